"""CurvDrop against a jumping knowledge network of PyG's layers."""

import itertools

import pytest
import torch
from torch_geometric.nn import GCNConv

from argnn.errors import ConfigError
from argnn.functional import curvature_weights, ollivier_ricci
from argnn.functional.edge_values import ordered_edges
from argnn.nn import LinkModel
from argnn.nn.models import curvdrop
from argnn.nn.models.curvdrop import CurvDrop


def both_ways(pairs):
    edges = torch.tensor(list(pairs)).t()
    return torch.cat([edges, edges.flip(0)], 1)


def cliques():
    """Two cliques of five, and the bridge 0-5."""
    pairs = list(itertools.combinations(range(5), 2))
    return both_ways([*pairs, *((a + 5, b + 5) for a, b in pairs), (0, 5)])


def build(num_layers=3, **options):
    torch.manual_seed(0)
    return CurvDrop(4, 8, 3, num_layers, **{"dropout": 0.0, **options}).double()


def features(nodes=11):
    return torch.randn(nodes, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def as_pyg(conv):
    """PyG's layer with the same weights."""
    other = GCNConv(conv.in_channels, conv.out_channels).double()
    other.load_state_dict(conv.state_dict())
    return other


def jumping_knowledge(model, x, edge_index):
    layers, h = [], x
    for conv in model.convs:
        h = as_pyg(conv)(h, edge_index).relu()
        layers.append(h)
    return model.head(torch.cat(layers, -1))


@pytest.mark.parametrize("training", [True, False])
def test_without_edge_dropout_it_is_a_jumping_knowledge_network(training):
    x, edges = features(), cliques()  # node 10 is isolated
    model = build(edge_dropout=0.0).train(training)
    torch.testing.assert_close(model(x, edges), jumping_knowledge(model, x, edges))


def test_evaluation_drops_nothing():
    x, edges = features(), cliques()
    model = build(edge_dropout=0.7).eval()
    torch.testing.assert_close(model(x, edges), jumping_knowledge(model, x, edges))


def test_every_layer_computes_with_the_edges_that_its_draw_leaves(monkeypatch):
    x, edges = features(), cliques()
    model = build(edge_dropout=0.5).train()
    draws = []

    def recorded(*arguments):
        draws.append(curvature_weights.kept_edges(*arguments))
        return draws[-1]

    monkeypatch.setattr(curvdrop, "kept_edges", recorded)
    found = model(x, edges)
    assert len(draws) == 3
    assert not torch.equal(draws[0], draws[1])

    closed = ordered_edges(edges, 11, closed=True)
    layers, h = [], x
    for conv, kept in zip(model.convs, draws, strict=True):
        stays = (kept == 1) & (closed.source != closed.target)
        left = torch.stack([closed.source[stays], closed.target[stays]])
        h = as_pyg(conv)(h, left).relu()
        layers.append(h)
    torch.testing.assert_close(found, model.head(torch.cat(layers, -1)))


def chances(monkeypatch, model, x, edges):
    """The chances of all pairs in one training step."""
    seen = []

    def recorded(edge_index, nodes, chance, dtype):
        seen.append(chance)
        return curvature_weights.kept_edges(edge_index, nodes, chance, dtype)

    monkeypatch.setattr(curvdrop, "kept_edges", recorded)
    model.train()(x, edges)
    return seen[0]


def test_the_bridge_of_two_cliques_is_never_dropped(monkeypatch):
    x, edges = features(), cliques()
    chance = chances(monkeypatch, build(edge_dropout=0.5), x, edges)
    curvature = ollivier_ricci(edges, 11)
    assert curvature.min().item() == pytest.approx(-0.6)
    assert (chance == 0).sum() == 1
    assert chance.mean().item() == pytest.approx(0.5)
    turned = chances(monkeypatch, build(edge_dropout=0.5, drop_negative=True), x, edges)
    assert turned.argmax() == chance.argmin()


def test_edges_of_equal_curvature_are_dropped_alike(monkeypatch):
    cycle = both_ways((a, (a + 1) % 7) for a in range(7))
    chance = chances(monkeypatch, build(edge_dropout=0.3), features(7), cycle)
    assert chance.tolist() == pytest.approx([0.3] * 7)


def test_draws_repeat_with_the_seed():
    x, edges = features(), cliques()
    model = build(edge_dropout=0.5).train()
    outputs = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        outputs.append(model(x, edges))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


def test_training_copes_with_odd_graphs():
    for edges in (
        torch.empty(2, 0, dtype=torch.int64),
        torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]]),  # self-loops, one pair
        torch.tensor([[0, 0, 2], [1, 1, 1]]),  # duplicates, one direction
    ):
        model = build().train()
        scores = model(features(4), edges)
        scores.square().sum().backward()
        assert scores.isfinite().all()
        assert all(p.grad.isfinite().all() for p in model.parameters())


def test_curvature_is_that_of_the_edges_that_are_given(monkeypatch):
    x = features()
    whole = cliques()
    message = whole[:, (whole != 4).all(0)]  # as in link prediction: some edges are hidden
    chance = chances(monkeypatch, build(edge_dropout=0.5), x, message)
    expected = curvature_weights.drop_chance(
        curvature_weights.pair_curvature(message, 11, method="exact"), 0.5
    )
    torch.testing.assert_close(chance, expected)
    assert chance.numel() == message.size(1) // 2


def test_gives_embeddings_for_links():
    torch.manual_seed(0)
    model = LinkModel(CurvDrop(4, 8, 8, dropout=0.0), "dot").train()
    embedding = model(features().float(), cliques())
    assert model.pair_scores(embedding, torch.tensor([[0, 1], [5, 2]])).isfinite().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_dropout": 1.0}, r"edge_dropout must be in \[0, 1\) \(got 1.0\)"),
        ({"ricci": "sinkhorn"}, "ricci must be one of .* 'sinkhorn'"),
    ],
)
def test_refuses_impossible_options(options, message):
    with pytest.raises(ConfigError, match=message):
        CurvDrop(4, 8, 3, **options)
