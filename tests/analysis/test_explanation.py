import math

import pytest
import torch
from torch_geometric.data import Data

from argnn.analysis import explain_node
from argnn.errors import DataError
from argnn.functional.neighborhood import neighborhood
from argnn.nn import ARGNN, GCN

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 2], [1, 0, 2, 1, 3, 2, 2, 0]])
FORMS = {
    "operator": {},
    "hops": {"hops": 2},
    "both": {"direction": "both"},
    "scalar": {"modulation": "scalar", "attention": True, "metric_spread": 1.0},
    "paper": {"preset": "paper", "metric_start": 0.5, "metric_spread": 1.0},
    "control": {"metric": "fixed", "structure_features": True},
    "structure": {"preset": "paper", "metric_start": 0.5, "structure_features": True},
}


def case(**options):
    torch.manual_seed(0)
    graph = Data(
        x=torch.randn(5, 6, generator=torch.Generator().manual_seed(1)),
        edge_index=EDGES,
        class_names=["a", "<b>", "c"],
        node_ids=["n0", "n1", "n2", "n3", "n4"],
        feature_names=[f"word {k}" for k in range(6)],
    )
    return ARGNN(6, 8, 3, num_layers=2, **options), graph


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_messages_are_those_of_the_first_layer(form):
    """Their sum is what the convolution adds to the node's own part."""
    model, graph = case(**FORMS[form])
    conv = model.eval().convs[0]
    h = model.encoded(graph.x, EDGES)
    g = conv.metric(h, EDGES)
    found = explain_node(model, graph, 2).neighbors
    rows = found[found["layer"] == 1]
    lins = dict(
        zip(
            [(d, hop) for d in conv.directions() for hop in range(1, conv.hops + 1)],
            conv.lins_neighbor,
            strict=True,
        )
    )
    total = torch.zeros(conv.out_channels)
    for row in rows.to_dict("records"):
        sent = lins[row["direction"], row["hop"]](h[row["neighbor"]])
        if conv.modulation == "operator":
            vector = row["constant"] * torch.tanh(-g[2].log()) * sent
        else:
            vector = row["weight"] * sent
        total = total + vector
        assert row["message"] == pytest.approx(float(vector.norm()), rel=1e-4)
        assert row["message"] == pytest.approx(abs(row["weight"]) * float(sent.norm()), rel=1e-4)
    own = conv._self_part(h)[2]
    torch.testing.assert_close(total + own, conv(h, EDGES, g=g)[2], rtol=1e-4, atol=1e-5)


def test_the_loudest_comes_first_and_shares_add_up():
    model, graph = case()
    found = explain_node(model, graph, 2).neighbors
    assert set(found["neighbor"]) == {0, 1, 3}
    assert set(found["name"]) == {"n0", "n1", "n3"}
    for _, rows in found.groupby("layer"):
        assert rows["message"].is_monotonic_decreasing
        assert rows["share"].sum() == pytest.approx(1)


def test_tau_and_attention_are_missing_in_the_operator_form_only():
    operator = explain_node(*case(), 2).neighbors
    assert operator[["tau", "attention"]].isna().all(axis=None)
    scalar = explain_node(*case(**FORMS["paper"]), 2).neighbors
    assert scalar["tau"].between(-1, 1).all()
    assert scalar["attention"].between(0, 1).all()
    product = scalar["constant"] * scalar["tau"] * scalar["attention"]
    assert (product - scalar["weight"]).abs().max() < 1e-5


def test_axes_have_names_only_where_the_metric_lives_on_features():
    axes = explain_node(*case(**FORMS["paper"]), 2).axes
    first = axes[axes["layer"] == 1]
    assert set(first["name"]) == {f"word {k}" for k in range(6)}
    assert axes[axes["layer"] == 2]["name"].isna().all()
    assert first["log_g"].is_monotonic_decreasing
    assert explain_node(*case(), 2).axes["name"].isna().all()


def test_the_prediction_is_that_of_the_model_which_is_left_as_it_was():
    model, graph = case()
    found = explain_node(model.train(), graph, 1)
    assert model.training
    scores = model.eval()(graph.x, EDGES)[1]
    assert found.prediction == graph.class_names[int(scores.argmax())]
    assert list(found.probabilities.values()) == pytest.approx(scores.softmax(-1).tolist())


def test_text_names_neighbors_axes_and_form():
    text = explain_node(*case(**FORMS["paper"]), 2).text(top=2)
    assert text.startswith("Node n2: ")
    assert "scalar form" in text
    assert text.count("\n") == 2
    assert "most stretched: word" in text


def test_a_node_without_neighbors_says_so():
    found = explain_node(*case(), 4)
    assert len(found.neighbors) == 0
    assert found.text().count("heard no neighbour") == 2
    assert math.isclose(sum(found.probabilities.values()), 1, rel_tol=1e-5)


def test_a_graph_of_one_node():
    model, _ = case()
    graph = Data(x=torch.ones(1, 6), edge_index=torch.empty(2, 0, dtype=torch.int64))
    assert "heard no neighbour" in explain_node(model, graph, 0).text()
    assert neighborhood(graph.edge_index, 1).num_edges == 0


def test_what_cannot_be_explained_is_refused():
    model, graph = case()
    with pytest.raises(DataError, match="GCN learns no metric"):
        explain_node(GCN(6, 8, 3), graph, 0)
    with pytest.raises(DataError, match="no node 5 in a graph of 5"):
        explain_node(model, graph, 5)
