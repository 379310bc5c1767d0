"""Damaged, foreign and hostile models end in one line and exit code 2, and touch nothing."""

import json
import pickle
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch_geometric.data import Data

import argnn
from argnn import ARGNNClassifier, ARGNNLinkPredictor
from argnn.errors import ArgnnError, RunError
from argnn.files import fingerprint, read_tensors, write_tensors
from argnn.store.model_folder import CARD, DOCUMENT, WEIGHTS

NUM_NODES = 30


def toy_graph() -> Data:
    generator = torch.Generator().manual_seed(0)
    return Data(
        x=torch.randn(NUM_NODES, 3, generator=generator),
        edge_index=torch.randint(NUM_NODES, (2, 80), generator=generator),
        y=torch.arange(NUM_NODES) % 3,
    )


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """One saved model of each kind, by name."""
    root = tmp_path_factory.mktemp("originals")
    torch.set_num_threads(1)
    graph = toy_graph()
    options = {"epochs": 1, "device": "cpu", "model_options": {"hidden_channels": 8}}
    for name in ("gcn", "argnn", "linkx"):
        ARGNNClassifier(name, trial=False, **options).fit(graph).save(root / name)
    ARGNNLinkPredictor("gcn", **options).fit(graph).save(root / "link")
    np.savez(root / "graph.npz", x=graph.x, edge_index=graph.edge_index)
    return root


@pytest.fixture
def model(originals, tmp_path) -> Path:
    """A copy of the gcn that a test may damage."""
    shutil.copytree(originals / "gcn", tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def refused(argnn, listing, originals):
    def check(folder: Path, message: str) -> None:
        before = listing()
        done = argnn("predict", folder, originals / "graph.npz", "--out=p.csv")
        assert (done.code, done.out) == (2, ""), done
        assert len(done.err.splitlines()) == 1, done.err
        assert done.err.isprintable() or done.err[:-1].isprintable()
        assert "Traceback" not in done.err
        assert len(done.err) < 1000
        assert message in done.err, done.err
        assert listing() == before

    return check


def rewrite(folder: Path, **changes) -> None:
    """Change the description and make its checksum right again, as an attacker would."""
    path = folder / DOCUMENT
    document = json.loads(path.read_text())
    for key, value in changes.items():
        if value is ...:
            del document[key]
        else:
            document[key] = value
    content = {key: value for key, value in document.items() if key != "digest"}
    path.write_text(json.dumps({**content, "digest": fingerprint(content)}))


def stored(folder: Path, key: str):
    return json.loads((folder / DOCUMENT).read_text())[key]


class Evil:
    """Leaves a mark when it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("was-here"),))


def test_the_original_is_fine(argnn, originals):
    for name in ("gcn", "argnn", "linkx"):
        done = argnn("predict", originals / name, originals / "graph.npz", f"--out={name}.csv")
        assert (done.code, done.err) == (0, "")


# ---- files -------------------------------------------------------------------------------------


def _truncated_json(folder: Path) -> None:
    path = folder / DOCUMENT
    path.write_bytes(path.read_bytes()[:200])


def _truncated_weights(folder: Path) -> None:
    path = folder / WEIGHTS
    path.write_bytes(path.read_bytes()[:-9])


def _changed_letter(folder: Path) -> None:
    path = folder / DOCUMENT
    path.write_text(path.read_text().replace('"dropout": 0.5', '"dropout": 0.4'))


def _flipped_weight(folder: Path) -> None:
    path = folder / WEIGHTS
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def _swapped_files(folder: Path) -> None:
    a, b = (folder / DOCUMENT).read_bytes(), (folder / WEIGHTS).read_bytes()
    (folder / DOCUMENT).write_bytes(b)
    (folder / WEIGHTS).write_bytes(a)


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _header(claims: dict) -> bytes:
    text = json.dumps(claims).encode()
    return struct.pack("<Q", len(text)) + text


def _claiming_terabytes(folder: Path) -> None:
    claims = {"lins.0.weight": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
    (folder / WEIGHTS).write_bytes(_header(claims))


def _with_weights(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Other weights with all checksums right."""
    import hashlib

    write_tensors(folder / WEIGHTS, tensors, {"format": 1})
    rewrite(folder, weights=hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest())


def _nan_weights(folder: Path) -> None:
    tensors = read_tensors(folder / WEIGHTS)[0]
    _with_weights(folder, {name: torch.full_like(t, torch.nan) for name, t in tensors.items()})


def _missing_weight(folder: Path) -> None:
    tensors = read_tensors(folder / WEIGHTS)[0]
    del tensors[max(tensors)]
    _with_weights(folder, tensors)


def _additional_weight(folder: Path) -> None:
    _with_weights(folder, {**read_tensors(folder / WEIGHTS)[0], "x\x1b[31m": torch.zeros(1)})


def _other_type(folder: Path) -> None:
    tensors = read_tensors(folder / WEIGHTS)[0]
    _with_weights(folder, {name: t.to(torch.int8) for name, t in tensors.items()})


def _foreign_weights(folder: Path) -> None:
    """Right names and shapes, but not written by this package."""
    import hashlib

    save_file(read_tensors(folder / WEIGHTS)[0], folder / WEIGHTS)
    rewrite(folder, weights=hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest())


def _folder_for_file(folder: Path) -> None:
    (folder / DOCUMENT).unlink()
    (folder / DOCUMENT).mkdir()


FILES = {
    "no description": (lambda f: (f / DOCUMENT).unlink(), "holds neither a model"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), "model.safetensors: no such file"),
    "empty description": (lambda f: (f / DOCUMENT).write_bytes(b""), "damaged, not JSON"),
    "empty weights": (lambda f: (f / WEIGHTS).write_bytes(b""), "not a tensor file"),
    "truncated description": (_truncated_json, "damaged, not JSON"),
    "truncated weights": (_truncated_weights, "not a tensor file"),
    "list": (lambda f: (f / DOCUMENT).write_text("[1]"), "must hold an object (got list)"),
    "binary": (lambda f: (f / DOCUMENT).write_bytes(b"\xff\x00\xfe"), "damaged, not JSON"),
    "nested": (lambda f: (f / DOCUMENT).write_text("[" * 10**6), "damaged, not JSON"),
    "nan": (lambda f: (f / DOCUMENT).write_text('{"format": NaN}'), "damaged, not JSON"),
    "long number": (lambda f: (f / DOCUMENT).write_text("1" * 10**5), "damaged, not JSON"),
    "claimed terabytes": (_claiming_terabytes, "not a tensor file"),
    "long header": (
        lambda f: (f / WEIGHTS).write_bytes(struct.pack("<Q", 2**63) + b"{}"),
        "not a tensor file",
    ),
    "pickled weights": (
        lambda f: (f / WEIGHTS).write_bytes(pickle.dumps(Evil())),
        "not a tensor file",
    ),
    "torch file": (lambda f: torch.save({"a": Evil()}, f / WEIGHTS), "not a tensor file"),
    "pickled description": (
        lambda f: (f / DOCUMENT).write_bytes(pickle.dumps(Evil())),
        "damaged, not JSON",
    ),
    "changed letter": (_changed_letter, "does not match its checksum"),
    "flipped weight": (_flipped_weight, "does not match the checksum"),
    "swapped files": (_swapped_files, "damaged, not JSON"),
    "nan weights": (_nan_weights, "weights that are not finite"),
    "missing weight": (_missing_weight, "lacks weight '"),
    "additional weight": (_additional_weight, "has an unknown weight 'x?[31m'"),
    "other type": (_other_type, "must have shape"),
    "foreign weights": (_foreign_weights, "not a tensor file of argnn"),
    "folder for a file": (_folder_for_file, "model.json: no such file"),
}


@pytest.mark.parametrize(("damage", "message"), FILES.values(), ids=FILES)
def test_bad_files(refused, model, damage, message):
    damage(model)
    refused(model, message)
    assert not Path("was-here").exists()


@pytest.mark.parametrize("name", [DOCUMENT, WEIGHTS])
def test_huge_files_are_not_read(model, name):
    _sparse(model / name, 2**40)
    with pytest.raises(RunError, match="too large for a description|not a tensor file"):
        argnn.load(model)


# ---- descriptions with right checksums ---------------------------------------------------------

WIDE = {"hidden_channels": 8, "num_layers": 2}
HOSTILE = {
    "next format": ({"format": 2}, "format 2 is not known to this version"),
    "format text": ({"format": "1"}, "format 1 is not known"),
    "format true": ({"format": True}, "format True is not known"),
    "no task": ({"task": ...}, "damaged, has no 'task'"),
    "unknown entry": ({"code": "import os"}, "unknown key 'code'"),
    "unknown task": ({"task": "root"}, "unknown task 'root'"),
    "task list": ({"task": ["node"]}, "task must be a text"),
    "unknown model": ({"model": "gpt"}, "unknown model 'gpt'"),
    "model path": ({"model": "../../etc/passwd"}, "unknown model '../../etc/passwd'"),
    "escape codes": ({"model": "\x1b[2J\n" * 99}, "unknown model '?[2J ?[2J"),
    "other model": ({"model": "mlp"}, "weight"),
    "options list": ({"options": []}, "options must be a mapping"),
    "nested option": ({"options": {**WIDE, "dropout": {}}}, "option dropout must be a plain"),
    "unknown option": ({"options": {**WIDE, "exec": 1}}, "exec"),
    "huge width": ({"options": {**WIDE, "hidden_channels": 10**9}}, "must be at most 65536"),
    "large width": ({"options": {**WIDE, "hidden_channels": 60_000}}, "must have shape [60000"),
    "negative width": ({"options": {**WIDE, "hidden_channels": -5}}, "positive whole number"),
    "deep": ({"options": {**WIDE, "num_layers": 10**8}}, "must be at most 1024"),
    "no width": ({"options": {}}, "hidden_channels"),
    "dropout": ({"options": {**WIDE, "dropout": 7}}, "dropout must be in [0, 1)"),
    "dropout text": ({"options": {**WIDE, "dropout": "x"}}, "dropout must be in [0, 1)"),
    "other width": ({"options": {**WIDE, "hidden_channels": 9}}, "must have shape [9"),
    "features": (
        {"in_channels": 10**15, "schema": None},
        "in_channels must be a number up",
    ),
    "many features": ({"in_channels": 2**24, "schema": None}, "must have shape [8, 16777216]"),
    "no features": (
        {"in_channels": 0, "schema": None},
        "in_channels must be a number from",
    ),
    "features text": (
        {"in_channels": "3", "schema": None},
        "in_channels must be a whole number",
    ),
    "schema features": ({"schema": {"num_features": 9}}, "schema has 9 features, not 3"),
    "schema list": ({"schema": [1]}, "schema must be a mapping"),
    "schema of nothing": ({"schema": {"num_features": 3}}, "schema"),
    "classes missing": ({"classes": [0, 1]}, "classes has 2 entries, not 3"),
    "classes twice": ({"classes": ["a", "a", "b"]}, "classes names a class twice"),
    "classes mixed": ({"classes": ["a", 1, 2]}, "classes mixes"),
    "classes nested": ({"classes": [[0], [1], [2]]}, "classes mixes"),
    "class surrogate": ({"classes": ["\ud800", "a", "b"]}, "no Unicode"),
    "class endless": ({"classes": ["a" * 10**6, "b", "c"]}, "too long"),
    "temperature zero": ({"temperature": 0}, "temperature must be a number above 0"),
    "temperature text": ({"temperature": "1"}, "temperature must be a number"),
    "temperature huge": ({"temperature": 10**400}, "temperature must be a smaller number"),
    "temperature true": ({"temperature": True}, "temperature must be a number"),
    "decoder": ({"decoder": "dot"}, "unknown decoder 'dot' for task node"),
    "links": ({"task": "link", "decoder": "dott", "classes": []}, "unknown decoder 'dott'"),
    "precision": ({"precision": "int4"}, "unknown precision"),
    "directed text": ({"directed": "no"}, "directed must be true or false"),
    "params": ({"params": 3}, "params must be a mapping"),
    "load options": ({"params": {"load_options": "x"}}, "load_options must be an object"),
    "load option": (
        {"params": {"load_options": {"loader": "os.system"}}},
        "unknown option 'loader' in load_options",
    ),
    "no facts": ({"facts": {}}, "does not describe a fitted model"),
    "weights": ({"weights": "0" * 64}, "does not match the checksum in model.json"),
    "weights path": ({"weights": "/etc/passwd"}, "does not match the checksum"),
}


@pytest.mark.parametrize(("changes", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_descriptions(refused, model, changes, message):
    rewrite(model, **changes)
    refused(model, message)


def greedy_linkx(originals: Path, folder: Path) -> Path:
    """A model whose description asks for far more weights than its file holds."""
    shutil.copytree(originals / "linkx", folder)
    rewrite(folder, options={**stored(folder, "options"), "hidden_channels": 60_000})
    return folder


@pytest.mark.slow
def test_refusing_takes_little_time_and_memory(limited, originals, tmp_path):
    folders = [tmp_path / str(number) for number in range(len(FILES) + len(HOSTILE))]
    for folder in folders:
        shutil.copytree(originals / "gcn", folder)
    for folder, (damage, _) in zip(folders, FILES.values(), strict=False):
        damage(folder)
    for folder, (changes, _) in zip(folders[len(FILES) :], HOSTILE.values(), strict=True):
        rewrite(folder, **changes)
    folders.append(greedy_linkx(originals, tmp_path / "linkx"))
    out = tmp_path / "p.csv"
    codes = limited([["predict", f, originals / "graph.npz", f"--out={out}"] for f in folders])
    assert codes == [2] * len(folders)


@pytest.mark.parametrize(
    "change",
    [
        {"train": {}},
        {"train": {"epochs": "x"}},
        {"train": 3},
        {"train": {"precision": "int4"}},
        {"calibration": {"ece": "x"}},
        {"calibration": 7},
        {"graph": 7},
        {"best_epoch": []},
        {"val_score": None},
        {"scores": 1},
    ],
    ids=str,
)
def test_hostile_facts(refused, model, change):
    rewrite(model, facts={**stored(model, "facts"), **change})
    if change == {"train": {}}:
        assert argnn.load(model).n_features_in_ == 3  # all settings at their defaults
    else:
        refused(model, "does not describe a fitted model")


def test_linkx_cannot_claim_more_than_its_file(refused, originals, tmp_path):
    refused(greedy_linkx(originals, tmp_path / "linkx"), "too small for the model")


def test_weights_of_another_model(refused, originals, model):
    shutil.copy(originals / "argnn" / WEIGHTS, model / WEIGHTS)
    refused(model, "weight '")


def test_card_is_not_read(argnn, originals, model):
    (model / CARD).write_bytes(b"\xff" * 99)
    assert argnn("predict", model, originals / "graph.npz", "--out=p.csv").code == 0


def test_run_folder_with_a_nested_config(refused, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("[" * 10**6)
    refused(tmp_path / "run", "config.json: damaged, not JSON")


@pytest.mark.parametrize("splits", [None, [], ["../../x"], [True], "0"], ids=str)
def test_run_folder_with_bad_splits(refused, tmp_path, splits):
    (tmp_path / "run").mkdir()
    run = {"splits": splits}
    document = {"fingerprint": fingerprint(run), "run": run}
    (tmp_path / "run" / "config.json").write_text(json.dumps(document))
    refused(tmp_path / "run", "config.json: damaged, has no splits")


# ---- random damage -----------------------------------------------------------------------------


def opened(folder: Path):
    """The model of a folder, or nothing where it is refused in one line."""
    try:
        return argnn.load(folder)
    except RunError as error:
        message = str(error)
    assert len(message.splitlines()) == 1
    return None


def predict_or_refuse(estimator) -> None:
    """What can be opened can be used, or says in one line why not."""
    graph, pairs = toy_graph(), [(0, 1)]
    arguments = (pairs, graph) if isinstance(estimator, ARGNNLinkPredictor) else (graph,)
    try:
        estimator.predict_proba(*arguments)
    except ArgnnError as error:
        message = str(error)
    else:
        return
    assert len(message.splitlines()) == 1


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_random_bytes_are_noticed(originals, tmp_path_factory, data):
    original = originals / data.draw(st.sampled_from(["gcn", "argnn", "linkx", "link"]))
    folder = tmp_path_factory.mktemp("flipped") / "m"
    shutil.copytree(original, folder)
    path = folder / data.draw(st.sampled_from([DOCUMENT, WEIGHTS]))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    path.write_bytes(bytes(content))
    loaded, expected = opened(folder), argnn.load(original)
    if loaded is not None:  # white space may change
        weights = loaded.model_.state_dict()
        for name, weight in expected.model_.state_dict().items():
            assert torch.equal(weight, weights[name])
        assert loaded.get_params() == expected.get_params()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=9,
)


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_random_entries_with_right_checksums(originals, tmp_path_factory, data):
    original = originals / data.draw(st.sampled_from(["gcn", "argnn", "linkx", "link"]))
    folder = tmp_path_factory.mktemp("hostile") / "m"
    shutil.copytree(original, folder)
    key = data.draw(st.sampled_from(sorted(set(json.loads((folder / DOCUMENT).read_text())))))
    value = data.draw(JSON)
    inner = stored(folder, key)
    if isinstance(inner, dict) and inner and data.draw(st.booleans()):
        value = {**inner, data.draw(st.sampled_from(sorted(inner))): value}
    try:
        rewrite(folder, **{key: value})
    except ValueError:  # infinite
        return
    loaded = opened(folder)
    if loaded is not None:
        predict_or_refuse(loaded)
