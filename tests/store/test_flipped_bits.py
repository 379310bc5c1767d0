"""One flipped bit in any file that a run writes: refused, or what it says stays the same."""

import logging
import random
import shutil
from collections.abc import Iterator

import pytest
import torch

from argnn.bench.tuning.search import plan_search, run_search
from argnn.data import cache as graph_cache
from argnn.errors import ArgnnError
from argnn.estimators import load
from argnn.files import read_checked
from argnn.runs.parallel import run_splits
from argnn.runs.prepare import Request, prepare
from argnn.runs.train_one import curvature_file, load_curvature
from argnn.settings.run_config import RunConfig
from argnn.store.results import read_rows
from argnn.store.run_folder import (
    RunFolder,
    create_run,
    open_run,
    read_checkpoint,
    write_checkpoint,
)
from result_rows import append_row, several

FLIPS = 60


def flips(content: bytes, seed: int = 0) -> Iterator[bytes]:
    """The content with one bit changed, at places all over it and at both of its ends."""
    rng = random.Random(seed)
    size = 8 * len(content)
    for place in (0, 5, size - 8, size - 3, *(rng.randrange(size) for _ in range(FLIPS))):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A finished run with everything beside it that a run may hold."""
    root = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGNN_CACHE", str(root / "cache"))
        torch.set_num_threads(1)
        changes = ("epochs=3", "hidden_channels=4")
        plan = prepare(Request("mixed", model="gcn", split="0,1", overrides=changes, workers=1))
        folder = create_run(root / "run", plan.config.to_json())
        run_splits(plan, folder)
    record = {"epoch": 1, "ricci_energy": 0.5, "smoothness_energy": 0.25, "metric_change": 0.125}
    folder.write_geometry(0, [{**record, "lyapunov": 0.0625}])
    values = {"history": [{"epoch": 1, "loss": 0.5}], "best": 33.25}
    write_checkpoint(folder.checkpoint(0), {"w": torch.arange(6.0)}, values, "run")
    return folder


def told(folder: RunFolder) -> dict[str, object]:
    """Everything that the package reads from a run: configuration, scores, model, records."""
    _, config = open_run(folder.root)
    model = load(folder.root, split=0)
    tensors, values = read_checkpoint(folder.checkpoint(0), "run")
    return {
        "config": RunConfig.from_json(config, "config.json"),
        **{f"{split} {k}": v for split in (0, 1) for k, v in folder.finished_row(split).items()},
        "weights": {name: part.tolist() for name, part in model.model_.state_dict().items()},
        "model": (model.temperature_, model.val_score_, model.classes_.tolist()),
        "geometry": folder.read_geometry(0),
        "tensors": {name: tensor.tolist() for name, tensor in tensors.items()},
        "values": values,
        "code": read_checked(folder.code, ("sessions",))["sessions"],
    }


READ = [
    "code.json",
    "config.json",
    "split-0/checkpoint.safetensors",
    "split-0/geometry.json",
    "split-0/model/model.json",
    "split-0/model/model.safetensors",
    "split-0/result.json",
    "split-1/result.json",
]
#: For people, or made anew; ``scores.json`` is checked by whoever opens it with ``read_checked``.
NOT_READ = ["log.txt", "scores.json", "split-0/model/README.md"]


def test_every_file_of_a_run_is_known(written):
    files = {str(path.relative_to(written.root)) for path in written.root.rglob("*.*")}
    unseen = {name.replace("split-0", "split-1") for name in READ + NOT_READ if "/model/" in name}
    assert files == {*READ, *NOT_READ, *unseen}


@pytest.mark.parametrize("name", READ)
def test_run_is_refused_or_says_the_same(written, tmp_path, name):
    shutil.copytree(written.root, tmp_path / "run")
    folder, path = RunFolder(tmp_path / "run"), tmp_path / "run" / name
    expected, whole = told(folder), path.read_bytes()
    refused = 0
    for content in flips(whole):
        path.write_bytes(content)
        try:
            found = told(folder)
        except ArgnnError:
            refused += 1
            continue
        # Where the name of a checksum was hit, the file is one without, and has a key more.
        assert {key: found[key] for key in expected} == expected
    assert refused > FLIPS / 2


def test_scores_have_a_checksum(written, tmp_path):
    path = tmp_path / "scores.json"
    shutil.copy(written.scores, path)
    expected, whole = read_checked(path), path.read_bytes()
    for content in flips(whole):
        path.write_bytes(content)
        try:
            found = read_checked(path)
        except ArgnnError:
            continue
        assert {key: found[key] for key in expected} == expected


def test_results_are_refused_or_say_the_same(tmp_path, caplog):
    path = tmp_path / "r.jsonl"
    for row in several({"cora": {"gcn": [0.7333, 0.3333, 0.5], "mlp": [0.25]}}):
        append_row(path, {key: value for key, value in row.items() if key != "format"})
    expected, whole = read_rows(path), path.read_bytes()
    for content in [*flips(whole), *flips(whole, seed=1), *flips(whole, seed=2)]:
        path.write_bytes(content)
        caplog.clear()
        try:
            with caplog.at_level(logging.WARNING):
                found = read_rows(path)
        except ArgnnError:
            continue
        known = [{key: row[key] for key in expected[0]} for row in found]
        # An end that looks like a write that was cut off is left out, and a warning says so.
        cut = "its last line was cut off" in caplog.text
        assert known == (expected[:-1] if cut else expected)


def test_journal_is_refused_or_says_the_same(tmp_path, small_npz):
    path = tmp_path / "study.journal"
    request = Request(str(small_npz()), model="gcn", overrides=("train.epochs=1",))
    search = plan_search(request, 2, splits="0")

    def searched():
        return [(record.params, record.scores) for record in run_search(search, path)]

    expected, whole = searched(), path.read_bytes()
    start = whole.index(b'"scores"')
    scores = whole[start : start + 40]
    hit = [whole.replace(scores, changed) for changed in flips(scores)]
    for content in [*hit, *flips(whole)]:
        path.write_bytes(content)
        try:
            # Trials that a cut line hides run again, and come to the same.
            found = searched()
        except ArgnnError:
            continue
        assert found == expected


def test_cached_graph_is_made_anew_or_the_same(tmp_path):
    graph = prepare(Request("mixed", model="gcn")).graph
    path = tmp_path / "graph.safetensors"
    graph_cache.store_graph(path, graph)
    whole = path.read_bytes()
    for content in flips(whole):
        path.write_bytes(content)
        found = graph_cache.stored_graph(path)
        if found is not None:
            for name in ("x", "edge_index", "y", "train_mask"):
                assert torch.equal(found[name], graph[name])


def test_cached_curvature_is_made_anew_or_the_same(cache, small_npz):
    plan = prepare(Request(str(small_npz()), model="curvdrop", overrides=("epochs=1",)))
    facts = load_curvature(plan.config, plan.graph)
    graph = plan.graph
    path = curvature_file(graph.edge_index, graph.x.size(0), plan.config.options["ricci"])
    whole = path.read_bytes()
    for content in list(flips(whole))[:15]:
        path.write_bytes(content)
        found = load_curvature(plan.config, plan.graph)
        assert {**found, "seconds": 0} == {**facts, "seconds": 0}
