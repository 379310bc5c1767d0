"""The rows of the adjacency matrix as an input."""

import pytest
import torch

from argnn.errors import ConfigError
from argnn.estimators import ARGNNClassifier
from argnn.nn import ARGNN
from argnn.nn.adjacency_linear import AdjacencyLinear
from argnn.settings.options import ModelSpec, resolve_options

from .cases import EDGES, NUM_NODES, edge_tensor, features, perturbed, renamed

IN, HIDDEN, OUT = 5, 6, 3
X = features(NUM_NODES, IN)
GRAPH = edge_tensor([(j, i) for j, i in EDGES if i != j])
SHAPES = {
    "default": {},
    "fixed metric": {"metric": "fixed"},
    "no self path": {"self_path": False, "metric": "structure"},
    "conv head": {"head": "conv", "jump": "last"},
    "with descriptor": {"structure_features": True},
}
every_shape = pytest.mark.parametrize("options", SHAPES.values(), ids=SHAPES)


def dense_adjacency():
    dense = torch.zeros(NUM_NODES, NUM_NODES, dtype=torch.float64)
    for j, i in GRAPH.t().tolist():
        dense[i, j] += 1
    return dense


def model_with_rows(**options):
    torch.manual_seed(0)
    model = ARGNN(IN, HIDDEN, OUT, 2, adjacency_rows=True, **options).double()
    model.fit_to_graph(GRAPH, NUM_NODES)
    return perturbed(model).eval()


def test_linear_map_of_the_adjacency_is_a_dense_product():
    lin = AdjacencyLinear(3).double()
    out = lin(GRAPH, NUM_NODES)
    expected = dense_adjacency() @ lin.weight + lin.bias
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-12)


def test_rows_are_further_columns_of_the_features():
    """The encoder of features with the adjacency matrix beside them gives the same scores."""
    model = model_with_rows()
    wide = ARGNN(IN + NUM_NODES, HIDDEN, OUT, 2).double().eval()
    state = model.state_dict()
    weight, bias = state.pop("rows.weight"), state.pop("rows.bias")
    state["encoder.weight"] = torch.cat([state["encoder.weight"], weight.t()], dim=1)
    state["encoder.bias"] = state["encoder.bias"] + bias
    wide.load_state_dict(state)
    expected = wide(torch.cat([X, dense_adjacency()], dim=1), GRAPH)
    torch.testing.assert_close(model(X, GRAPH), expected, rtol=1e-10, atol=1e-10)


@every_shape
def test_switched_on_the_other_weights_start_as_without_it(options):
    states = []
    for switch in (True, False):
        torch.manual_seed(0)
        states.append(ARGNN(IN, HIDDEN, OUT, 2, adjacency_rows=switch, **options).state_dict())
    on, off = states
    assert on.keys() - off.keys() == {"rows.weight", "rows.bias"}
    assert all(torch.equal(on[name], value) for name, value in off.items())


@every_shape
def test_every_row_of_the_weight_of_a_neighbour_reaches_the_scores(options):
    model = model_with_rows(**options)
    model(X, GRAPH).square().sum().backward()
    reached = model.rows.weight.grad.abs().amax(-1) > 0
    senders = set(GRAPH[0].tolist())
    assert senders >= set(reached.nonzero().squeeze(-1).tolist())
    assert reached.sum() >= len(senders) - 2  # a relu may be closed everywhere


def test_other_names_of_the_nodes_need_other_rows_of_the_weight():
    model = model_with_rows()
    expected = model(X, GRAPH)
    moved, edges, order = renamed(X, GRAPH, seed=1)
    assert not torch.allclose(model(moved, edges), expected[order])
    with torch.no_grad():
        model.rows.weight.copy_(model.rows.weight[order])
    torch.testing.assert_close(model(moved, edges), expected[order], rtol=1e-10, atol=1e-10)


def test_rows_are_parameters_of_nodes_in_the_group_of_the_encoder():
    model = model_with_rows()
    assert [id(p) for p in model.node_parameters()] == [id(model.rows.weight)]
    assert model.parameter_groups()["rows.weight"] == "encoder_head"
    assert ARGNN(IN, HIDDEN, OUT).node_parameters() == []


def test_scores_depend_on_one_more_hop():
    assert model_with_rows().reach() == ARGNN(IN, HIDDEN, OUT, 2).reach() + 1


def test_rows_need_an_encoder():
    with pytest.raises(ConfigError, match="adjacency_rows needs encoder=True"):
        ARGNN(IN, HIDDEN, OUT, adjacency_rows=True, encoder=False)


def test_a_graph_of_another_size_is_refused():
    with pytest.raises(ValueError, match="of another size .got 3 nodes"):
        model_with_rows()(X[:3], GRAPH[:, :0])


def test_option_reaches_the_model():
    spec = ModelSpec(
        "argnn", resolve_options("argnn", "default", {"adjacency_rows": True}), None, 2
    )
    assert spec.build().rows is not None


def test_saved_model_predicts_the_same_and_keeps_to_its_graph(tmp_path):
    from argnn import load
    from argnn.data import mixed

    graph = mixed()
    options = {"adjacency_rows": True, "num_layers": 1}
    clf = ARGNNClassifier(model_options=options, trial=False, epochs=3, device="cpu").fit(graph)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.predict_proba(graph) == clf.predict_proba(graph)).all()
    keep = torch.arange(graph.num_nodes) < graph.num_nodes - 1
    with pytest.raises(ConfigError, match="cannot be used on a graph of another size"):
        again.predict(graph.subgraph(keep))
