"""Predictions for new nodes are those of the whole joined graph."""

import csv

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import argnn
from argnn import ARGNNClassifier, kernels
from argnn.data import load
from argnn.errors import ArgnnError, ConfigError
from argnn.nn import MODELS, AbstractNodeModel

N, M = 150, 8
# Node N knows a hub, N+1 hangs on N, N+2 points at the strip and is pointed at, N+3 and N+4 know
# only each other, N+5 has no edge, N+6 has a self-loop, N+7 knows two ends.
NEW = [
    *[(N, 40), (N + 1, N), (N + 2, 60), (61, N + 2), (N + 3, N + 4), (N + 6, N + 6)],
    *[(0, N + 7), (N + 7, N - 1), (N, 40), (60, N + 2)],
    # Among known nodes: near, far, and two that are there already.
    *[(40, 44), (100, 103), (0, 1), (1, 0)],
]


def features(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (np.eye(3)[np.arange(N + M) % 3] + 0.7 * rng.normal(size=(N + M, 3))).astype("f4")


def strip() -> np.ndarray:
    """A long strip with shortcuts, triangles and two hubs; some edges both ways."""
    rng = np.random.default_rng(1)
    path = np.stack([np.arange(N - 1), np.arange(1, N)])
    start = rng.integers(0, N - 4, 120)
    hubs = np.concatenate([[np.full(9, at), at + np.arange(1, 10)] for at in (30, 40)], axis=1)
    near = np.stack([start, start + rng.integers(2, 4, 120)])
    edges = np.concatenate([path, near, hubs], axis=1)
    return np.concatenate([edges, edges[::-1, ::3]], axis=1)


def joined(new=NEW) -> tuple[Data, Data, np.ndarray, np.ndarray]:
    """The known graph, the joined one, and what is new: features and edges."""
    x, edges = features(), np.array(new).T.reshape(2, -1)
    y = torch.arange(N) % 3
    known = Data(x=torch.from_numpy(x[:N]), edge_index=torch.from_numpy(strip().copy()), y=y)
    whole = np.concatenate([strip(), edges], axis=1)
    return known, Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(whole)), x[N:], edges


def fitted(graph=None, **options) -> ARGNNClassifier:
    return ARGNNClassifier(**{"epochs": 3, "trial": False, **options}).fit(
        joined()[0] if graph is None else graph
    )


def assert_exact(clf: ARGNNClassifier, *, smaller: bool = True) -> None:
    known, whole, x, edges = joined()
    context = clf.context(known)
    found = clf.predict_proba(x, edges, context=context)
    # Sums of 32-bit numbers in another order.
    np.testing.assert_allclose(found, clf.predict_proba(whole)[N:], atol=3e-6)
    assert (clf.predict(x, edges, context=context) == clf.predict(whole)[N:]).all()
    assert not smaller or clf.read_new(x, edges, context).num_nodes < N
    assert np.ptp(found, axis=0).min() > 1e-4  # nodes differ


@pytest.mark.parametrize("preset", ["default", "paper", "reference"])
@pytest.mark.parametrize("normalization", ["sym", "rw", "sum"])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_presets_normalizations_and_depths(preset, normalization, num_layers):
    sizes = {"num_layers": num_layers, "hidden_channels": 16}
    options = {"normalization": normalization, **sizes}
    assert_exact(fitted(preset=preset, model_options=options))


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("direction", ["in", "out", "both", "undirected"])
@pytest.mark.parametrize("metric", ["both", "structure"])
def test_directed_graphs(preset, direction, metric):
    options = {"direction": direction, "normalization": "sym", "metric": metric, "num_layers": 2}
    assert_exact(fitted(preset=preset, directed=True, model_options=options))


@pytest.mark.parametrize(
    "options",
    [
        {"hops": 3, "num_layers": 1},
        {"structure_features": True, "metric": "fixed"},
        {"structure_features": True, "encoder": False, "normalization": "rw"},
        {"metric_init": "degree", "metric": "features", "norm": "batch"},
    ],
    ids=str,
)
def test_switches_that_read_the_graph(options):
    assert_exact(fitted(model_options=options))


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"argnn", "linkx"}))
def test_other_methods(model):
    # The flow of gnrf reaches over the whole strip.
    assert_exact(fitted(model=model, epochs=2), smaller=model not in ("gnrf", "gprgnn"))


def test_kernels():
    clf = fitted(model_options={"hidden_channels": 16})
    with kernels.use("fused"):
        assert_exact(clf)


# ---- edges with weights --------------------------------------------------------------------------

WEIGHED = {"load_options": {"weight": "edge_weight"}}


def weights_of(edges, *, directed: bool) -> np.ndarray:
    """A weight for each edge; the same for both directions if edges have none."""
    source, target = np.asarray(edges)
    place = 3 * source + 7 * target if directed else source + target
    return (0.25 + place % 5).astype("f4")


def assert_exact_with_weights(clf_options, *, directed: bool = False) -> None:
    known, whole, x, edges = joined()
    for graph in (known, whole):
        graph.edge_weight = torch.from_numpy(weights_of(graph.edge_index, directed=directed))
    clf = fitted(known, directed=directed, **clf_options, **WEIGHED)
    given = (edges, weights_of(edges, directed=directed))
    found = clf.predict_proba(x, given, context=known)
    np.testing.assert_allclose(found, clf.predict_proba(whole)[N:], atol=3e-6)
    other = clf.predict_proba(x, (edges[:, :-4], given[1][:-4] + 1), context=known)
    assert np.abs(other - found).max() > 1e-4  # weights matter


@pytest.mark.parametrize("preset", ["default", "paper", "reference"])
@pytest.mark.parametrize("normalization", ["sym", "rw", "sum"])
def test_weights_of_presets_and_normalizations(preset, normalization):
    assert_exact_with_weights(
        {"preset": preset, "model_options": {"normalization": normalization, "metric": "both"}}
    )


@pytest.mark.parametrize("direction", ["in", "out", "both", "undirected"])
@pytest.mark.parametrize("metric", ["both", "structure"])
def test_weights_of_directed_graphs(direction, metric):
    options = {"direction": direction, "normalization": "sym", "metric": metric, "num_layers": 2}
    assert_exact_with_weights({"model_options": options}, directed=True)


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"argnn", "linkx", "mlp"}))
def test_weights_of_other_methods(model):
    assert_exact_with_weights({"model": model, "epochs": 2})


@pytest.mark.parametrize("form", ["triples", "table", "frame", "file", "npz"])
def test_weights_in_all_forms(folders, tmp_path, form):
    import pandas as pd

    for folder in folders:
        table = pd.read_csv(folder / "edges.csv")
        ends = np.array([table[name].str[1:].astype(int) for name in ("source", "target")])
        table["strength"] = weights_of(ends, directed=False)
        table.to_csv(folder / "edges.csv", index=False)
    known, whole = map(str, folders)
    clf = fitted(known, load_options={"weight": "strength", "standardize": False})
    expected = clf.predict_proba(whole)[N:]
    strength = weights_of(np.array(NEW).T, directed=False).tolist()
    nodes = rows_of(range(N, N + M))
    rows = [{**pair, "strength": w} for pair, w in zip(pairs_of(NEW), strength, strict=True)]
    edges = rows
    if form == "triples":
        edges = [(row["source"], row["target"], row["strength"]) for row in rows]
    elif form == "frame":
        edges = pd.DataFrame(rows)
    elif form == "file":
        edges = tmp_path / "new.csv"
        write(edges, rows)
    elif form == "npz":
        x, edges = clf.read(whole).x[N:].numpy(), None
        nodes = tmp_path / "new.npz"
        np.savez(nodes, x=x, edge_index=np.array(NEW).T, edge_weight=strength)
    found = clf.predict_proba(nodes, edges, context=known)
    np.testing.assert_allclose(found, expected, atol=3e-6)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (([[N], [3]],), "the graph has edge weights: give (edge_index, edge_weight)"),
        (([[N], [3]], [1.0, 2.0]), "edge_weight must have shape [1], one per edge"),
        (([[N], [3]], [-1.0]), "new edges: edge_weight[0] is negative"),
        (([[N], [3]], [np.nan]), "new edges: edge_weight[0] is not finite"),
        ([{"source": N, "target": 3}], "new edges: no column 'edge_weight'"),
        ([{"source": N, "target": 3, "weight": "x"}], "row 0, column weight: a weight must be"),
        ([{"source": N, "target": 3, "weight": -2}], "column weight: a weight must not be"),
    ],
    ids=str,
)
def test_bad_weights(edges, message):
    known, _, x, _ = joined()
    known.edge_weight = torch.from_numpy(weights_of(known.edge_index, directed=False))
    clf = fitted(known, **WEIGHED)
    with pytest.raises(ArgnnError) as refused:
        clf.predict(x[:1], edges, context=known)
    assert message in str(refused.value)


def test_an_edge_of_weight_zero_is_none():
    known, _, x, _ = joined()
    known.edge_weight = torch.from_numpy(weights_of(known.edge_index, directed=False))
    clf = fitted(known, **WEIGHED)
    zero = clf.predict_proba(x[:1], ([[N, N], [3, 90]], [2.0, 0.0]), context=known)
    np.testing.assert_array_equal(
        zero, clf.predict_proba(x[:1], ([[N], [3]], [2.0]), context=known)
    )


# ---- what may go wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["argnn", "gcn"])
def test_a_smaller_part_gives_something_else(model, monkeypatch):
    """Else the tests above would hold of any part."""
    known, whole, x, edges = joined()
    clf = fitted(model=model)
    short = {"argnn": "reach_with_degrees", "gcn": "reach"}[model]
    monkeypatch.setattr(type(clf.model_), short, lambda self: 1)
    gap = clf.predict_proba(x, edges, context=known) - clf.predict_proba(whole)[N:]
    assert np.abs(gap).max() > 1e-4


class WholeMean(AbstractNodeModel):
    """Reads the mean of all nodes, and does not say how far it reaches."""

    citation, space, search_space = "none", "Euclidean", {}

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int = 1
    ):
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.head = torch.nn.Linear(in_channels, out_channels)

    def forward_with_metric(self, x, edge_index):
        return self.head(x + x.mean(0)), []


def test_a_model_of_unknown_reach_sees_the_whole_graph():
    clf = fitted(model=WholeMean)
    assert_exact(clf, smaller=False)
    known, _, x, edges = joined()
    assert clf.read_new(x, edges, known).num_nodes == N + M


@pytest.mark.parametrize(
    "options", [{"model": "linkx"}, {"model_options": {"adjacency_rows": True}}], ids=str
)
def test_weights_of_nodes_are_refused(options):
    known, _, x, edges = joined()
    with pytest.raises(ConfigError, match="a weight for each node of its training graph"):
        fitted(**options).predict(x, edges, context=known)


def test_features_are_prepared_as_in_training():
    known, whole, x, edges = joined()
    known.x, whole.x, x = known.x.abs(), whole.x.abs(), np.abs(x)
    for options in ({"load_options": {"standardize": True}}, {"row_normalize": True}):
        clf = fitted(known, **options)
        found = clf.predict_proba(x, edges, context=known)
        np.testing.assert_allclose(found, clf.predict_proba(whole)[N:], atol=3e-6)
        raw = clf.proba(Data(x=whole.x, edge_index=clf.read(whole).edge_index))[N:]
        assert np.abs(found - raw).max() > 1e-3


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("model", ["argnn", "gcn"])
def test_degree_features_count_the_new_edges(directed, model):
    options = {"load_options": {"features": "degree"}, "directed": directed}
    assert_exact(fitted(model=model, **options))


@pytest.mark.parametrize("kind", ["random", "onehot", "laplacian"])
def test_features_of_single_nodes_are_refused(kind):
    known, _, x, edges = joined()
    clf = fitted(known, load_options={"features": kind})
    with pytest.raises(ConfigError, match=f"new nodes cannot have {kind} features"):
        clf.predict(x, edges, context=known)


def test_no_edges_at_all():
    known, _, x, _ = joined()
    clf = fitted()
    alone = Data(x=torch.from_numpy(x), edge_index=torch.empty(2, 0, dtype=torch.int64))
    for none in (None, np.empty((2, 0))):
        found = clf.predict_proba(x, none, context=known)
        np.testing.assert_allclose(found, clf.predict_proba(alone), atol=3e-6)


def test_a_context_serves_many_requests_and_is_not_changed():
    known, _, x, edges = joined()
    clf = fitted()
    context = clf.context(known)
    first = clf.predict_proba(x, edges, context=context)
    clf.predict_proba(10 * x[:2], [[N, N], [5, 6]], context=context)
    assert (clf.predict_proba(x, edges, context=context) == first).all()
    assert (clf.predict_proba(x, edges, context=known) == first).all()


def test_a_context_of_another_model_is_refused():
    known, _, x, edges = joined()
    context = fitted(known, load_options={"standardize": True}).context(known)
    with pytest.raises(ConfigError, match="prepared for another model"):
        fitted(known).predict(x, edges, context=context)


# ---- tables --------------------------------------------------------------------------------------

TOWNS = ("Bonn", "Jena", "Ulm")


def rows_of(nodes) -> list[dict[str, object]]:
    x = features()
    return [
        {
            "id": f"c{node}",
            "age": "" if node % 7 == 3 else f"{x[node, 0]:.5f}",
            "town": TOWNS[node % 3] if node % 5 else "",
            "size": f"{x[node, 1]:.5f}",
        }
        for node in nodes
    ]


def write(path, rows) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def pairs_of(edges) -> list[dict[str, str]]:
    return [{"source": f"c{a}", "target": f"c{b}"} for a, b in edges]


@pytest.fixture
def folders(tmp_path):
    """The known graph and the joined graph as folders of tables."""
    old = strip().T.tolist()
    labels = [{**row, "label": "xyz"[n % 3]} for n, row in enumerate(rows_of(range(N)))]
    unknown = [{**row, "label": ""} for row in rows_of(range(N, N + M))]
    for name, nodes, edges in (
        ("known", labels, old),
        ("whole", labels + unknown, [*old, *NEW]),
    ):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "nodes.csv", nodes)
        write(tmp_path / name / "edges.csv", pairs_of(edges))
    return tmp_path / "known", tmp_path / "whole"


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("given_as", ["path", "graph"])
def test_tables_in_all_forms(folders, given_as, standardize):
    import pandas as pd

    known, whole = folders
    options = {"standardize": standardize}
    if given_as == "path":
        clf, source = fitted(str(known), load_options=options), str(known)
    else:
        source = load(known, **options)
        clf = fitted(source)
        whole = load(whole, schema=source.schema)
    expected = clf.predict_proba(whole if given_as == "graph" else str(whole))[N:]
    context = clf.context(source)
    nodes, pairs = rows_of(range(N, N + M)), pairs_of(NEW)
    ids = [(f"c{a}", f"c{b}") for a, b in NEW]
    for new_nodes, new_edges in (
        (nodes, pairs),
        (nodes, ids),
        (pd.DataFrame(nodes), pd.DataFrame(pairs)),
        (pd.DataFrame(nodes), np.array(ids)),
    ):
        found = clf.predict_proba(new_nodes, new_edges, context=context)
        np.testing.assert_allclose(found, expected, atol=3e-6)


def test_number_tables_for_a_graph_of_arrays():
    known, whole, x, _ = joined()
    clf = fitted()
    nodes = [{"id": N + row, "a": a, "b": b, "c": c} for row, (a, b, c) in enumerate(x.tolist())]
    expected = clf.predict_proba(whole)[N:]
    for rows in (nodes, [{k: v for k, v in row.items() if k != "id"} for row in nodes]):
        found = clf.predict_proba(rows, NEW, context=known)
        np.testing.assert_allclose(found, expected, atol=3e-6)


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ([{"id": "c3", "age": 1, "town": "Ulm", "size": 2}], None, "row 0, column id: node 'c3'"),
        ([{"id": "n", "town": "Ulm", "size": 2}], None, "new nodes: no column 'age'"),
        ([{"id": "n", "age": "x", "town": "", "size": 2}], None, "row 0, column age"),
        ([{"age": 1, "town": "Ulm", "size": 2}], None, "new nodes: no column of node ids, such as"),
        ({"id": "n", "age": 1, "town": "Ulm", "size": 2}, None, "give a list of dictionaries"),
        ("twice", None, "new nodes, row 1, column id: duplicate id"),
        ("good", [("n", "c1"), ("n", "q")], "new edges, row 1, column target: unknown node 'q'"),
        ("good", [("n", "c1", "c2")], "new edges, row 0: an edge is a pair of ids"),
        ("good", ["nc"], "new edges, row 0: an edge is a pair of ids"),
        ("good", [("n", None)], "new edges, row 0, column target: a node id is missing"),
        (np.ones((2, 9)), None, "new nodes: the model was trained with 6 features (got 9)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_tables(folders, nodes, edges, message):
    good = [{"id": "n", "age": 1, "town": "Ulm", "size": 2}]
    nodes = {"good": good, "twice": good * 2}.get(nodes, nodes) if isinstance(nodes, str) else nodes
    clf = fitted(str(folders[0]))
    with pytest.raises(ArgnnError) as refused:
        clf.predict(nodes, edges, context=str(folders[0]))
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (np.ones((1, 2)), None, "new nodes: the model was trained with 3 features (got 2)"),
        (np.array([[1, np.nan, 0]]), None, "new nodes: x[0, 1] is not finite"),
        (np.ones(3), None, "new nodes: x must have shape [nodes, features]"),
        (np.ones((0, 3)), None, "new nodes: x must have shape [nodes, features]"),
        (np.ones((1, 3)), [[0], [N + 1]], f"new edges: edge_index[1, 0] is {N + 1}"),
        (np.ones((1, 3)), [[-1], [N]], "new edges: edge_index[0, 0] is -1"),
        (np.ones((1, 3)), [[0, 1, 2]], "new edges: edge_index must have shape [2, edges]"),
        (np.ones((1, 3)), [[0.5], [1.0]], "new edges: edge_index must hold integers"),
        ([{"a": 1, "b": 2}], None, "trained with 3 features (got 2)"),
        ([{"a": 1, "b": "x", "c": 3}], None, "new nodes, row 0, column b: a feature must be"),
        ([{"id": 7, "a": 1, "b": 2, "c": 3}], None, "row 0, column id: node 7 is in the graph"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_arrays(nodes, edges, message):
    with pytest.raises(ArgnnError) as refused:
        fitted().predict(nodes, edges, context=joined()[0])
    assert message in str(refused.value)


def test_new_edges_need_a_context():
    known = joined()[0]
    with pytest.raises(ConfigError, match="new_edges needs a context"):
        fitted().predict(known, [[0], [1]])


def test_after_loading(tmp_path):
    known, _, x, edges = joined()
    clf = fitted()
    clf.save(tmp_path / "model")
    again = argnn.load(tmp_path / "model")
    expected = clf.predict_proba(x, edges, context=known)
    assert (again.predict_proba(x, edges, context=known) == expected).all()
