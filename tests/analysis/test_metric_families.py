"""Metrics that are not diagonal, in every statistic, table, explanation and page."""

import pytest
import torch
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis import Layer, axis_statistics, metric_statistics, rewire
from argnn.analysis.explanation import explain_node
from argnn.analysis.explorer import Subject, document, page
from argnn.analysis.layers import learned_layers
from argnn.analysis.messages import layer_messages, ordered_pairs
from argnn.analysis.rewiring import pair_lengths
from argnn.analysis.tables import geometry_tables
from argnn.nn import ARGNN, METRICS
from argnn.nn.metric import METRIC_SHAPES
from browser import needs_chromium

from .cases import GRAPHS, edge_tensor, field, labelled, points

NODES, EDGES = GRAPHS["random"]
FAMILIES = [
    *(("both", shape) for shape in METRIC_SHAPES),
    *((source, "diagonal") for source in METRICS),
    ("free", "full"),
]
every_family = pytest.mark.parametrize(("source", "shape"), dict.fromkeys(FAMILIES))


def factored_field(rank=2):
    factor = torch.stack([points(NODES, seed=s) for s in range(rank)], dim=1)
    return AF.factored_metric(field(NODES), factor)


def dense(g):
    return torch.diag_embed(g[:, 0]) + g[:, 1:].mT @ g[:, 1:]


def trained(source, shape, **options) -> tuple[ARGNN, Data]:
    torch.manual_seed(0)
    graph = labelled("random")
    graph.x = points(NODES, 5).float()
    options = {"metric": source, "metric_shape": shape, "metric_spread": 1.0, **options}
    model = ARGNN(5, 6, 2, 2, **options)
    model.fit_to_graph(graph.edge_index, NODES)
    return model.eval(), graph


def test_statistics_are_those_of_eigenvalues_and_matrices():
    g, edges = factored_field(), edge_tensor(EDGES)
    found = metric_statistics(g, edges)
    matrix = dense(g)
    values = torch.linalg.eigvalsh(matrix)
    expected = metric_statistics(values, edges)
    for name in ("kappa", "inverse_metric", "anisotropy", "effective_rank", "log_volume"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name))
    both = torch.cat([edges, edges.flip(0)], dim=1)
    ricci = AF.discrete_ricci(matrix.flatten(1), both)
    torch.testing.assert_close(found.ricci_norm, ricci.norm(dim=-1))
    torch.testing.assert_close(found.log_volume, matrix.logdet() / 2)
    axes = axis_statistics(g)
    torch.testing.assert_close(axes.mean_log_g, matrix.diagonal(dim1=1, dim2=2).log().mean(0))


def test_lengths_of_pairs_are_those_of_the_mean_matrix():
    g, h = factored_field(), points(NODES)
    first, second = edge_tensor(EDGES)
    mean = (dense(g)[first] + dense(g)[second]) / 2
    gap = (h[first] - h[second]).unsqueeze(-1)
    expected = (gap.mT @ mean @ gap).flatten().sqrt()
    torch.testing.assert_close(pair_lengths(h, g, first, second), expected)
    done = rewire(h, g, edge_tensor(EDGES))
    assert done.length_after <= done.length_before


def test_layer_needs_the_channels_of_its_metric():
    with pytest.raises(ValueError, match="nodes and channels"):
        Layer(torch.ones(3, 4), torch.ones(3, 4, 5))


@pytest.mark.parametrize("form", ["operator", "scalar", "interpolation"])
@every_family
def test_weights_of_messages_are_those_of_the_explanation(source, shape, form):
    if (source, form) == ("message", "scalar"):
        pytest.skip("refused: tests/nn/test_message_metric.py")
    model, graph = trained(source, shape, modulation=form, attention=form == "scalar")
    told = explain_node(model, graph, 1)
    heard = told.neighbors[told.neighbors["layer"] == 1].set_index("neighbor")["weight"]
    pairs = ordered_pairs(graph.edge_index, NODES)
    weight = layer_messages(model, graph)[0].weight
    for (j, i), value in zip(pairs.t().tolist(), weight.tolist(), strict=True):
        if i == 1:
            assert heard[j] == pytest.approx(value, rel=1e-4, abs=1e-6)
    lengths = AF.metric_diagonal(learned_layers(model, graph)[0].g)[1]
    first = told.axes[told.axes["layer"] == 1].iloc[0]
    assert first["g"] == pytest.approx(float(lengths.max()), rel=1e-6)


def test_weights_of_messages_know_the_sending_metric():
    model, graph = trained("both", "diagonal", sending_metric=True)
    told = explain_node(model, graph, 1)
    heard = told.neighbors[told.neighbors["layer"] == 1].set_index("neighbor")["weight"]
    weight = layer_messages(model, graph)[0].weight
    pairs = ordered_pairs(graph.edge_index, NODES)
    found = [w for (_, i), w in zip(pairs.t().tolist(), weight.tolist(), strict=True) if i == 1]
    assert sorted(found) == pytest.approx(sorted(heard), rel=1e-4)
    plain = trained("both", "diagonal")[0]
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "sending" not in k})
    without = layer_messages(plain, graph)[0].weight
    assert (without > weight).all()  # a start of 0.5 sends 0.6 of each message


def about(model, graph):
    return Subject(
        title="a family",
        graph=graph,
        model=model,
        embedding=learned_layers(model, graph)[-1].h.numpy(),
        probabilities=None,
        class_names=["a", "b"],
    )


@every_family
def test_page_and_tables_show_every_family(source, shape):
    model, graph = trained(source, shape)
    layers = learned_layers(model, graph)
    tables = geometry_tables(graph, layers)
    assert len(tables["axes"]) == 2 * 6
    assert tables["nodes"]["kappa"].notna().all()
    shown = document(about(model, graph))
    assert [layer["axes"] for layer in shown["layers"]] == [6, 6]
    told = any("not diagonal" in note for note in shown["notes"])
    assert told == (shape in ("lowrank", "full"))
    assert page(shown).startswith(b"<!doctype html>")


#: Families whose page is opened in the usual suite; the others are among the many cases.
OPENED = (("both", "lowrank"), ("both", "full"), ("fixed", "diagonal"))


@needs_chromium
@pytest.mark.parametrize(
    ("source", "shape"),
    [
        pytest.param(*family, marks=() if family in OPENED else pytest.mark.torture)
        for family in dict.fromkeys(FAMILIES)
    ],
)
def test_browser_shows_every_family(opened, source, shape):
    model, graph = trained(source, shape)
    seen = opened(about(model, graph))
    for color in ("curvature κ", "log volume", "metric axis"):
        seen.select("color", color)
        assert color in seen.text("#status")
    for layer in ("1", "2"):
        seen.select("layer", layer)
        seen.js("document.getElementById('map').focus()")
        seen.key("n")
        assert "log g of 6 axes" in seen.text("#detail")
        assert seen.js("document.querySelectorAll('#detail svg rect').length") == 12
    assert ("not diagonal" in seen.text("#notes")) == (shape in ("lowrank", "full"))
    assert ("is fixed" in seen.text("#headline")) == (source == "fixed")
