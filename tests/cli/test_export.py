"""``argnn export``: a program that torch runs alone, and gives what the package gives."""

import io
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import argnn as package
from argnn import ARGNNClassifier, ARGNNLinkPredictor
from argnn.data import load
from argnn.errors import ConfigError
from argnn.functional import edge_modulation, neighbor_moments
from argnn.functional.precision import default_eps
from argnn.outputs.export import FACTS, exported, share_steps
from argnn.outputs.onnx_program import _table, onnx_bytes
from argnn.outputs.plain_ops import _modulation, _triangles, cleaned, plain_table

ALONE = """
import json, sys
sys.modules["argnn"] = None  # importing it is an error from here on
import numpy as np, torch
for path, names in json.loads(sys.argv[1]).items():
    facts = {"argnn.json": ""}
    program = torch.export.load(path, extra_files=facts).module()
    inputs = np.load(f"{path}.npz")
    arrays = [torch.from_numpy(inputs[name]) for name in names]
    np.save(f"{path}.npy", program(*arrays).detach().numpy())
    print(json.dumps(json.loads(facts["argnn.json"])))
"""


def run_alone(programs: dict[str, dict[str, np.ndarray]]) -> list[tuple[np.ndarray, dict]]:
    """Outputs of programs, and their facts, in a process that cannot import the package."""
    for path, arrays in programs.items():
        np.savez(f"{path}.npz", **arrays)
    words = json.dumps({path: list(arrays) for path, arrays in programs.items()})
    surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALONE, words],
        capture_output=True,
        text=True,
        check=False,
        env=surroundings,
    )
    assert done.returncode == 0, done.stderr
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    return [(np.load(f"{path}.npy"), fact) for path, fact in zip(programs, facts, strict=True)]


@pytest.fixture
def graphs(small_npz):
    """The training graph, and another one with self-loops, duplicates and an isolated node."""
    small = load(small_npz())
    rng = np.random.default_rng(5)
    edges = rng.integers(0, 39, size=(2, 70))
    edges = np.concatenate([edges, edges[:, :9], np.stack([np.arange(4)] * 2)], axis=1)
    return small, load((rng.normal(size=(40, 3)).astype(np.float32), edges)), edges


def test_programs_run_without_the_package(argnn, small_npz, graphs):
    assert argnn("train", small_npz(), "--model=gcn", "--epochs=3", "--out=run").code == 0
    done = argnn("export", "run", "--out=model.pt2")
    assert (done.code, done.err) == (0, "")
    assert "torch.export.load('model.pt2')" in done.out
    lp = ARGNNLinkPredictor(
        "gcn", decoder="mlp", epochs=2, device="cpu", model_options={"hidden_channels": 8}
    ).fit(graphs[0])
    lp.save("links")
    assert argnn("export", "links", "--out=links.pt2").code == 0

    small, other, edges = graphs
    pairs = np.array([[0, 1], [5, 9], [3, 3]])
    whole = {"x": small.x.numpy(), "edge_index": small.edge_index.numpy(), "pairs": pairs.T.copy()}
    (found, facts), (scores, link_facts) = run_alone(
        {"model.pt2": {"x": other.x.numpy(), "edge_index": edges}, "links.pt2": whole}
    )
    np.testing.assert_allclose(found, package.load("run").predict_proba(other), atol=1e-5)
    assert (facts["task"], facts["classes"]) == ("node", [0, 1, 2])
    np.testing.assert_allclose(scores, lp.predict_proba(pairs, graph=small)[:, 1], atol=1e-5)
    assert link_facts["task"] == "link"


def test_json_report(argnn, small_npz):
    argnn("train", small_npz(), "--model=mlp", "--epochs=1", "--out=run")
    report = json.loads(argnn("export", "run", "--json").out)
    assert report["model"] == "mlp"
    assert report["size"] == Path("model.pt2").stat().st_size
    assert report["inputs"].keys() == {"x", "edge_index"}


def saved_and_opened(program: torch.export.ExportedProgram) -> torch.nn.Module:
    content = io.BytesIO()
    torch.export.save(program, content)
    content.seek(0)
    return torch.export.load(content).module()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "directed"),
    [
        ({}, False),
        ({"direction": "both"}, True),
        ({"modulation": "scalar", "attention": True, "neighbor_norm": "target"}, False),
        pytest.param(
            *({"modulation": "scalar", "attention": True, "direction": "both"}, True),
            marks=pytest.mark.torture,  # below with weights
        ),
    ],
    ids=["default", "directed", "scalar", "scalar, directed"],
)
def test_argnn_with_its_structural_metric(graphs, options, directed):
    torch.set_num_threads(1)
    small, other, raw_edges = graphs
    clf = ARGNNClassifier(
        trial=False,
        epochs=3,
        directed=directed,
        device="cpu",
        model_options={"hidden_channels": 8, **options},
    ).fit(small)
    program = saved_and_opened(exported(clf))
    few, loops = small.x[:5], torch.arange(5).expand(2, -1).contiguous()
    for x, edges in (
        (small.x, small.edge_index),
        (other.x, torch.from_numpy(raw_edges)),
        (few, loops),  # no edge is left
        (few, loops[:, :0]),
    ):
        found = program(x, edges).detach().numpy()
        expected = clf.predict_proba((x.numpy(), edges.numpy()))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_layers_share_what_the_edges_decide(graphs):
    def steps(num_layers: int) -> Counter[str]:
        sizes = {"hidden_channels": 4, "num_layers": num_layers}
        options = {"trial": False, "epochs": 1, "device": "cpu", "model_options": sizes}
        graph = exported(ARGNNClassifier(**options).fit(graphs[0])).graph
        called = [node for node in graph.nodes if node.op == "call_function"]
        return Counter(str(node.target).removeprefix("aten.").split(".")[0] for node in called)

    one, two = steps(1), steps(2)
    assert two["embedding_bag"] > one["embedding_bag"] > 0
    for step in ("argsort", "searchsorted", "rsqrt", "index_select"):
        assert two[step] == one[step] > 0, step


def test_equal_steps_are_one_step():
    class Twice(torch.nn.Module):
        def forward(self, x):
            return torch.exp(x) + torch.exp(x), x.sum(0), x.sum(1), x + 1, x + 1.0, x.sum(0)

    x = torch.rand(3, 3)
    program = torch.export.export(Twice(), (x,))
    share_steps(program)
    found = Counter(str(node.target) for node in program.graph.nodes)
    assert found["aten.exp.default"] == 1
    # What is returned keeps its name.
    assert (found["aten.sum.dim_IntList"], found["aten.add.Tensor"]) == (3, 3)
    for a, b in zip(saved_and_opened(program)(x), Twice()(x), strict=True):
        assert torch.equal(a, b)


def test_dispersion_of_features_far_from_zero(graphs):
    """Squares of large numbers would cancel."""
    small = graphs[0]
    h = small.x + 1000
    plain = plain_table(directed=False)[torch.ops.argnn.moments.default]
    mean, dispersion = plain(h, small.edge_index, "undirected", None)
    exact = neighbor_moments(h.double(), small.edge_index)
    torch.testing.assert_close(mean.double(), exact[0], rtol=1e-6, atol=0)
    torch.testing.assert_close(dispersion.double(), exact[1], rtol=1e-3, atol=1e-3)


def test_modulation_of_features_far_from_zero_and_of_near_ends(graphs):
    """Squares of differences are multiplied out: neither offset nor nearness may cancel digits."""
    small, draw = graphs[0], torch.Generator().manual_seed(0)
    source, target = small.edge_index
    h = 100 + small.x
    h[source[0]] = h[target[0]]  # no direction at all
    h[source[-1]] = h[target[-1]] + 1e-3 * torch.randn(h.size(1), generator=draw)
    g = 0.2 + 2 * torch.rand(h.shape, generator=draw)
    found = _modulation(h, g, small.edge_index, torch.zeros(1), default_eps(h.dtype))
    exact = edge_modulation(h.double(), g.double(), small.edge_index, eps=default_eps(h.dtype))
    # A far end has a square of at least 1/16 of the lengths, each of D products.
    bound = 16 * 4 * h.size(1) * torch.finfo(h.dtype).eps
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=bound)
    assert found[0] == 0


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_triangles_of_sparse_and_dense_graphs(share):
    draw = torch.Generator().manual_seed(0)
    upper = (torch.rand(30, 30, generator=draw) < share).triu(1)
    adjacency = (upper | upper.t()).double()
    expected = (adjacency @ adjacency @ adjacency).diagonal() / 2
    both = adjacency.nonzero().t()
    assert _triangles(both, adjacency.sum(0).long()).tolist() == expected.tolist()


@pytest.mark.parametrize("model", ["h2gcn", "linkx"])
def test_what_cannot_be_exported_is_said(argnn, listing, small_npz, model):
    ARGNNClassifier(model, epochs=1, device="cpu").fit(small_npz()).save("model")
    before = listing()
    done = argnn("export", "model")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert f"{model} cannot be exported: " in line
    assert listing() == before


@pytest.mark.parametrize("kind", [ARGNNClassifier, ARGNNLinkPredictor])
def test_model_with_weights_of_nodes_is_not_exported(argnn, small_npz, kind):
    more = {"trial": False} if kind is ARGNNClassifier else {}
    options = {"adjacency_rows": True}
    kind(model_options=options, epochs=1, device="cpu", **more).fit(small_npz()).save("model")
    done = argnn("export", "model")
    assert done.code == 2
    assert "argnn cannot be exported: its weights belong to the nodes of one graph" in done.err


def test_existing_files_and_links_are_kept(argnn, listing, small_npz):
    argnn("train", small_npz(), "--model=mlp", "--epochs=1", "--out=run")
    Path("model.pt2").write_text("mine")
    Path("link.pt2").symlink_to("model.pt2")
    before = listing()
    for arguments, message in (
        (["run"], "model.pt2: is there already; --force replaces it"),
        (["run", "--out=link.pt2", "--force"], "symbolic link"),
        (["run", "--split=8"], "has no split 8|is there already"),
        (["nothing", "--out=x.pt2"], "nothing: no such folder"),
    ):
        done = argnn("export", *arguments)
        assert done.code == 2
        assert any(part in done.err for part in message.split("|"))
    assert listing() == before
    assert argnn("export", "run", "--force").code == 0


def test_cleaned_edges_are_those_of_load(graphs):
    _, other, raw_edges = graphs
    edges = torch.from_numpy(raw_edges)
    for directed in (False, True):
        expected = load((other.x.numpy(), raw_edges), directed=directed).edge_index
        found, weight = cleaned(edges, 40, directed)
        assert sorted(found.t().tolist()) == sorted(expected.t().tolist())
        assert weight is None


def test_cleaned_weights_are_those_of_load(graphs):
    _, other, raw_edges = graphs
    weight = np.random.default_rng(1).integers(0, 4, raw_edges.shape[1]).astype(np.float32)
    data = Data(x=other.x, edge_index=torch.from_numpy(raw_edges), edge_weight=torch.tensor(weight))
    for directed in (False, True):
        expected = load(data, directed=directed, weight="edge_weight")
        edges, found = cleaned(data.edge_index, 40, directed, data.edge_weight)
        listed = torch.cat([edges, found.unsqueeze(0)]).t().tolist()
        both = torch.cat([expected.edge_index, expected.edge_weight.unsqueeze(0)])
        torch.testing.assert_close(torch.tensor(sorted(listed)), both.t())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "directed"),
    [
        ({"metric": "both"}, False),
        pytest.param({"direction": "both", "metric": "structure"}, True, marks=pytest.mark.torture),
        ({"modulation": "scalar", "attention": True, "metric_init": "degree"}, True),
    ],
    ids=["default", "directed", "scalar"],
)
def test_a_model_with_weights_takes_them_as_its_last_input(graphs, options, directed):
    torch.set_num_threads(1)
    small, other, raw_edges = graphs
    rng = np.random.default_rng(3)
    draw = lambda edges: torch.tensor(rng.integers(0, 4, edges.size(1)) / 2)  # noqa: E731
    small = Data(x=small.x, y=small.y, edge_index=small.edge_index)
    small.edge_weight = draw(small.edge_index)
    clf = ARGNNClassifier(
        trial=False,
        epochs=3,
        directed=directed,
        device="cpu",
        model_options={"hidden_channels": 8, **options},
        load_options={"weight": "edge_weight"},
    ).fit(small)
    program = exported(clf).module()
    unlike = Data(x=other.x, edge_index=torch.from_numpy(raw_edges))
    unlike.edge_weight = draw(unlike.edge_index)
    for graph in (small, unlike):
        found = program(graph.x, graph.edge_index, graph.edge_weight.float()).detach().numpy()
        expected = clf.predict_proba(graph)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        graph.edge_weight = torch.ones_like(graph.edge_weight)
        assert not np.allclose(expected, clf.predict_proba(graph), atol=1e-4)


def test_facts_have_the_name_that_the_script_reads():
    assert FACTS in ALONE


# ---- ONNX ----------------------------------------------------------------------------------------


@pytest.fixture
def onnx():
    """What runs ONNX models, if it and what makes them is installed."""
    for name in ("onnx", "onnxscript"):
        pytest.importorskip(name, reason="ONNX needs pip install 'argnn[onnx]'")
    return pytest.importorskip("onnxruntime", reason="ONNX needs pip install 'argnn[onnx]'")


def of_onnx(onnx, content, **arrays: np.ndarray) -> np.ndarray:
    """The result of an ONNX model, from a file or its content."""
    options = onnx.SessionOptions()
    options.log_severity_level = 4
    (found,) = onnx.InferenceSession(content, options).run(None, arrays)
    return found


def test_onnx_file(onnx, argnn, small_npz, graphs):
    assert argnn("train", small_npz(), "--model=gcn", "--epochs=3", "--out=run").code == 0
    done = argnn("export", "run", "--format=onnx")
    assert (done.code, done.err) == (0, "")
    assert "Program: model.onnx; onnxruntime.InferenceSession('model.onnx').run" in done.out
    facts = onnx.InferenceSession("model.onnx").get_modelmeta().custom_metadata_map[FACTS]
    assert json.loads(facts)["classes"] == [0, 1, 2]
    assert str(package.__file__).encode() not in Path("model.onnx").read_bytes()
    _, other, edges = graphs
    found = of_onnx(onnx, "model.onnx", x=other.x.numpy(), edge_index=edges)
    np.testing.assert_allclose(found, package.load("run").predict_proba(other), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "preset",
    ["default", *(pytest.param(p, marks=pytest.mark.torture) for p in ("paper", "reference"))],
)
def test_argnn_as_onnx(onnx, graphs, preset):
    torch.set_num_threads(1)
    sizes = {"hidden_channels": 8, "num_layers": 2}
    clf = ARGNNClassifier(
        preset=preset, trial=False, epochs=3, device="cpu", model_options=sizes
    ).fit(graphs[0])
    content = onnx_bytes(exported(clf), "argnn", {})
    alone = load((graphs[1].x.numpy(), np.empty((2, 0), dtype=np.int64)))
    for graph in (*graphs[:2], alone):
        arrays = {"x": graph.x.numpy(), "edge_index": graph.edge_index.numpy()}
        found = of_onnx(onnx, content, **arrays)
        np.testing.assert_allclose(found, clf.predict_proba(graph), atol=1e-5)


def test_links_as_onnx(onnx, graphs):
    options = {"epochs": 2, "device": "cpu", "model_options": {"hidden_channels": 8}}
    lp = ARGNNLinkPredictor("gcn", **options).fit(graphs[0])
    pairs, small = np.array([[0, 1], [5, 9], [3, 3]]), graphs[0]
    arrays = {"x": small.x.numpy(), "edge_index": small.edge_index.numpy(), "pairs": pairs.T.copy()}
    found = of_onnx(onnx, onnx_bytes(exported(lp), "gcn", {}), **arrays)
    np.testing.assert_allclose(found, lp.predict_proba(pairs, graph=small)[:, 1], atol=1e-5)


@pytest.mark.torture  # the next test refuses in less time
def test_what_cannot_become_onnx_is_said(onnx, argnn, listing, small_npz):
    ARGNNClassifier("qgcn", epochs=1, device="cpu").fit(small_npz()).save("model")
    before = listing()
    done = argnn("export", "model", "--format=onnx")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert "q-gcn cannot become an ONNX model: " in line
    assert listing() == before


def test_a_model_that_differs_is_refused(onnx, graphs, monkeypatch):
    clf = ARGNNClassifier("gcn", epochs=1, device="cpu").fit(graphs[0])
    wrong = {**_table(), torch.ops.aten.softmax.int: lambda x, dim: x}
    monkeypatch.setattr("argnn.outputs.onnx_program._table", lambda: wrong)
    with pytest.raises(ConfigError, match="gcn cannot become an ONNX model: its results differ"):
        onnx_bytes(exported(clf), "gcn", {})


def test_missing_packages_and_unknown_formats(refused, argnn, small_npz, monkeypatch):
    argnn("train", small_npz(), "--model=mlp", "--epochs=1", "--out=run")
    message = "--format must be one of pt2, onnx (got 'onxn')"
    refused("export", "run", "--format=onxn", message=message)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    message = "ONNX needs the package onnx; install it with pip install 'argnn[onnx]'"
    refused("export", "run", "--format=onnx", message=message)
