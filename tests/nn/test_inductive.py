"""What a trained model says about a node does not depend on strangers in the same graph.

The cases are all presets of ARGNN, switches that read the graph, and every other method of the
registry. ``linkx`` is the only one left out: it has a weight for each node of its training graph,
and refuses every graph of another size.
"""

from functools import cache

import pytest
import torch
from torch.nn import functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.utils import k_hop_subgraph, to_undirected

from argnn import kernels
from argnn.functional.graph_part import GraphPart, WholeDegrees
from argnn.functional.neighborhood import neighborhood
from argnn.nn import MODELS, PRESETS, LinkModel

from .cases import features

IN, HIDDEN, OUT = 5, 8, 3
BOUND_TO_NODES = {"linkx"}

SWITCHES = {
    "structure": {"metric": "structure"},
    "degree start": {"metric": "features", "metric_init": "degree"},
    "degree start, both": {"metric_init": "degree"},
    "both directions": {"direction": "both", "normalization": "rw"},
    "two hops": {"hops": 2},
    "batch norm": {"norm": "batch", "jump": "lstm"},
    "scalar with structure": {"preset": "paper", "metric": "both", "normalization": "sym"},
    "control": {"metric": "fixed", "structure_features": True},
    "target norm": {"preset": "paper", "metric": "both", "neighbor_norm": "target"},
}
CASES = {
    **{f"argnn, {preset}": ("argnn", {"preset": preset}) for preset in PRESETS},
    **{f"argnn, {name}": ("argnn", options) for name, options in SWITCHES.items()},
    **{name: (name, {}) for name in MODELS if name != "argnn" and name not in BOUND_TO_NODES},
    "gnrf, two steps": ("gnrf", {"num_layers": 2}),
    "hgat, learned": ("hgat", {"attention": "learned"}),
    "hgcn, attention": ("hgcn", {"attention": True}),
    "cusp, bounds": ("cusp", {"ricci": "bounds", "hops": 3}),
    "curvdrop, deep": ("curvdrop", {"num_layers": 4}),
}
every_case = pytest.mark.parametrize("case", CASES)


def random_graph(nodes: int, edges: int, seed: int) -> Data:
    """Some edges both ways and some one way, with duplicates, self-loops and isolated nodes."""
    generator = torch.Generator().manual_seed(seed)
    listed = torch.randint(nodes, (2, edges), generator=generator)
    edge_index = torch.cat([listed, listed[:, : edges // 2].flip(0), listed[:, :3]], dim=1)
    return Data(x=features(nodes, IN, seed), edge_index=edge_index)


def long_graph(nodes: int = 220) -> Data:
    """A long strip with shortcuts, hubs and triangles: far from each end to the other."""
    generator = torch.Generator().manual_seed(7)
    place = torch.arange(nodes - 3)
    step = torch.randint(1, 4, (2 * place.numel(),), generator=generator)
    source = place.repeat(2)
    path = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    edge_index = torch.cat([path, torch.stack([source, source + step])], dim=1)
    both = torch.cat([edge_index, edge_index[:, ::2].flip(0)], dim=1)
    return Data(x=features(nodes, IN, 7), edge_index=both)


def clique(nodes: int) -> Data:
    pairs = torch.triu_indices(nodes, nodes, offset=1)
    return Data(x=3 * features(nodes, IN, 4), edge_index=torch.cat([pairs, pairs.flip(0)], dim=1))


TRAINING = random_graph(40, 90, seed=1)
A = random_graph(25, 40, seed=2)
STRANGERS = {
    "a random graph": random_graph(60, 300, seed=3),
    "isolated nodes": Data(
        x=features(2000, IN, 5), edge_index=torch.empty(2, 0, dtype=torch.int64)
    ),
    "a clique": clique(50),
}


@cache
def trained(case: str, dtype=torch.float64):
    """A model after a few steps of somebody's own loop, and one look at its training graph."""
    name, options = CASES[case]
    torch.manual_seed(0)
    model = MODELS[name](IN, HIDDEN, OUT, **options).to(dtype)
    x, y = TRAINING.x.to(dtype), torch.arange(TRAINING.num_nodes) % OUT
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model.train()(x, TRAINING.edge_index), y).backward()
        optimizer.step()
    with torch.no_grad():
        model.eval()(x, TRAINING.edge_index)
    return model


@torch.no_grad()
def told(model, graph: Data) -> list[torch.Tensor]:
    """Scores and metrics."""
    x = graph.x.to(next(model.parameters()).dtype)
    scores, metrics = model.forward_with_metric(x, graph.edge_index)
    return [scores, *metrics]


def side_by_side(first: Data, second: Data) -> Data:
    offset = first.x.size(0)
    edge_index = torch.cat([first.edge_index, second.edge_index + offset], dim=1)
    return Data(x=torch.cat([first.x, second.x]), edge_index=edge_index)


def assert_same(found, expected, tolerance=1e-9):
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def tolerance_of(model, *graphs: Data, least: float = 1e-9) -> float:
    """The least difference that means something.

    It is large where rounding of the features alone moves what a model says: two neighbours are
    nearly equal then, and energies depend on the direction between them.
    """
    moves = [least]
    epsilon = torch.finfo(next(model.parameters()).dtype).eps
    for graph in graphs:
        noise = 2 * epsilon * torch.sign(features(*graph.x.shape, 6))
        rounded = Data(x=graph.x * (1 + noise), edge_index=graph.edge_index)
        for a, b in zip(told(model, graph), told(model, rounded), strict=True):
            moves.append(20 * float(((a - b).abs() / (1 + a.abs())).max()))
    return max(moves)


@every_case
@pytest.mark.parametrize("strangers", STRANGERS)
def test_a_component_does_not_depend_on_others(case, strangers):
    model, other = trained(case), STRANGERS[strangers]
    alone, size, tolerance = told(model, A), A.x.size(0), tolerance_of(model, A)
    assert_same([part[:size] for part in told(model, side_by_side(A, other))], alone, tolerance)
    assert_same([part[-size:] for part in told(model, side_by_side(other, A))], alone, tolerance)


@every_case
def test_a_batch_equals_its_parts(case):
    model = trained(case)
    graphs = [A, STRANGERS["a random graph"], random_graph(3, 2, seed=8), STRANGERS["a clique"]]
    parts = zip(*(told(model, graph) for graph in graphs), strict=True)
    expected = [torch.cat(part) for part in parts]
    assert_same(told(model, Batch.from_data_list(graphs)), expected, tolerance_of(model, *graphs))


def near(graph: Data, node: int, hops: int) -> tuple[Data, int]:
    """The nodes within some hops, with all edges among them, and where the node is now."""
    both = torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1)
    kept = k_hop_subgraph(node, hops, both, num_nodes=graph.num_nodes)[0]
    return graph.subgraph(kept), int((kept == node).nonzero())


@every_case
@pytest.mark.parametrize("node", [0, 100, 137])
def test_the_neighbourhood_of_a_node_is_enough(case, node):
    model, graph = trained(case), long_graph()
    if model.reach() is None:
        pytest.skip("the method does not say how many hops it depends on")
    part, place = near(graph, node, model.reach())
    assert part.num_nodes < graph.num_nodes
    expected = told(model, graph)[0][node]
    assert_same([told(model, part)[0][place]], [expected], tolerance_of(model, graph))


def with_true_degrees(graph: Data, part: Data, kept: torch.Tensor):
    """The edges of a part, with the degrees of its nodes in the whole graph."""
    hood = neighborhood(graph.edge_index, graph.num_nodes)
    both = hood.relation("undirected").degree
    degrees = WholeDegrees(*(degree[kept] for degree in (hood.degree, hood.out_degree, both)))
    return GraphPart(part.edge_index, degrees)


OF_ARGNN = [name for name in CASES if name.startswith("argnn")]


@pytest.mark.parametrize("case", OF_ARGNN)
@pytest.mark.parametrize("node", [0, 100, 137])
@pytest.mark.parametrize("directed", [True, False])
def test_with_true_degrees_one_hop_less_is_enough(case, node, directed):
    model, graph = trained(case), long_graph()
    if not directed:
        graph.edge_index = to_undirected(graph.edge_index)
    hops = model.reach_with_degrees()
    assert hops == model.reach() - 1
    graph.place = torch.arange(graph.num_nodes)
    part, place = near(graph, node, hops)
    assert part.num_nodes < graph.num_nodes
    expected = told(model, graph)[0][node]
    with torch.no_grad():
        found = model(part.x.double(), with_true_degrees(graph, part, part.place))[place]
    assert_same([found], [expected], tolerance_of(model, graph))


def test_without_true_degrees_one_hop_less_is_not_enough():
    """Else the degrees would not matter, and the test above would hold of any."""
    model, graph = trained("argnn, default"), long_graph()
    part, place = near(graph, 100, model.reach() - 1)
    gap = told(model, part)[0][place] - told(model, graph)[0][100]
    assert float(gap.abs().max()) > 1e-6


@every_case
def test_less_than_the_neighbourhood_is_not_enough(case):
    """Else the test above would hold of any model. Some nodes may hear nothing from afar."""
    model, graph = trained(case), long_graph()
    if not model.reach():
        pytest.skip("the method depends on no neighbours, or does not say on how many")
    hops, whole, gaps = 1 if model.reach() > 2 else 0, told(model, graph)[0], []
    if torch.equal(whole, whole[:1].expand_as(whole)):
        pytest.skip("with these weights the last activation is zero: all nodes have equal scores")
    for node in range(0, graph.num_nodes, 20):
        part, place = near(graph, node, hops)
        gaps.append(float((told(model, part)[0][place] - whole[node]).abs().max()))
    assert max(gaps) > 1e-8


@pytest.mark.parametrize("case", ["argnn, default", "argnn, paper", "cusp", "gcn"])
def test_links_can_be_told_from_neighbourhoods(case):
    encoder, graph = trained(case), long_graph()
    decoder = "dot" if encoder.out_channels != encoder.hidden_channels else "metric"
    model = LinkModel(encoder, decoder).eval()
    assert model.reach() == encoder.reach()
    part, place = near(graph, 100, model.reach())
    expected = told(model, graph)[0][100]
    assert_same([told(model, part)[0][place]], [expected], tolerance_of(model, graph))


@pytest.mark.parametrize("case", OF_ARGNN)
def test_kernels_are_as_local_as_plain_sums(case):
    model, size = trained(case, torch.float32), A.x.size(0)
    with kernels.use("fused"):
        alone = told(model, A)
        beside = told(model, side_by_side(A, STRANGERS["a random graph"]))
        tolerance = tolerance_of(model, A, least=1e-5)
    assert_same([part[:size] for part in beside], alone, tolerance)


def test_a_model_that_was_never_fitted_is_local_too():
    torch.manual_seed(0)
    for options in SWITCHES.values():
        options = {"metric_spread": 1.0, **options}
        model = MODELS["argnn"](IN, HIDDEN, OUT, **options).double().eval()
        beside = told(model, side_by_side(A, STRANGERS["a random graph"]))
        same = [part[: A.x.size(0)] for part in beside]
        assert_same(same, told(model, A), tolerance_of(model, A))


@pytest.mark.parametrize("name", sorted(BOUND_TO_NODES))
def test_weights_of_nodes_refuse_another_graph(name):
    torch.manual_seed(0)
    model = MODELS[name](IN, HIDDEN, OUT).double().eval()
    told(model, TRAINING)
    assert model.node_parameters()
    assert model.reach() is None
    with pytest.raises(ValueError, match="cannot be used on a graph of another size"):
        told(model, A)
