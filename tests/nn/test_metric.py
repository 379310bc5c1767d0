import inspect
import math
from dataclasses import fields

import pytest
import torch

import reference
from argnn import functional as AF
from argnn.nn import ARGNN, METRICS, ConstantMetric, Formulation, Metric, MetricNet

from .cases import (
    DEGENERATE,
    EDGES,
    NUM_NODES,
    edge_tensor,
    features,
    perturbed,
    relation,
    renamed,
    slow_metric,
)

INPUTS = ("features", "structure", "both")
INITS = ("uniform", "ones", "degree", "xavier")
CHANNELS = 4
X = features(NUM_NODES, CHANNELS)
EDGE_INDEX = edge_tensor(EDGES)


def net_of(metric_channels=6, **options):
    torch.manual_seed(0)
    return MetricNet(CHANNELS, metric_channels, **options).double()


# -- the start ------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("start", [0.3, 0.5, 1.0, 2.0])
def test_metric_with_init_ones_starts_exactly_at_start(depth, inputs, start):
    g = net_of(num_layers=depth, inputs=inputs, init="ones", start=start)(X, EDGE_INDEX)
    torch.testing.assert_close(g, torch.full_like(g, start), rtol=1e-6, atol=0)


@pytest.mark.parametrize("start", [0.5, 1.0, 2.0])
def test_metric_with_init_uniform_starts_within_half_and_three_halves(start):
    g = net_of(2000, init="uniform", start=start)(X, EDGE_INDEX)
    torch.testing.assert_close(g, g[:1].expand_as(g))  # drawn per channel, not per node
    assert g.min() >= 0.5 * start - 1e-6
    assert g.max() <= 1.5 * start + 1e-6
    assert g.min() < 0.55 * start
    assert g.max() > 1.45 * start
    assert g[0].mean().item() == pytest.approx(start, rel=0.03)


@pytest.mark.parametrize("channels", [4, 12, 128, 3000])
@pytest.mark.parametrize("start", [0.5, 1.0])
def test_metric_with_init_xavier_starts_within_one_plus_minus_root_three_over_d(channels, start):
    g = net_of(channels, init="xavier", start=start)(X, EDGE_INDEX)
    half = math.sqrt(3 / channels)
    torch.testing.assert_close(g, g[:1].expand_as(g))
    assert ((g / start - 1).abs() <= half + 1e-5).all()
    if channels >= 128:
        assert (g / start - 1).abs().max() > 0.9 * half


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_metric_with_init_xavier_is_positive_where_the_papers_interval_is_not(channels):
    for seed in range(20):
        torch.manual_seed(seed)
        g = MetricNet(CHANNELS, channels, init="xavier").double()(X, EDGE_INDEX)
        assert (g > 0).all()
        assert (g < 2).all()


@pytest.mark.parametrize("start", [0.5, 1.0])
def test_metric_with_init_degree_starts_at_the_degree_profile(start):
    g = net_of(init="degree", start=start)(X, EDGE_INDEX)
    near = reference.neighbors(relation(EDGES, "undirected"), NUM_NODES)
    size = torch.tensor([1 + math.log(1 + len(n)) for n in near], dtype=torch.float64)
    expected = (start * size / size.mean()).unsqueeze(-1).expand_as(g)
    torch.testing.assert_close(g, expected, rtol=1e-5, atol=0)
    assert g.mean().item() == pytest.approx(start, rel=1e-5)
    assert g[8].max() < g.mean(), "the isolated node has the smallest metric"


def test_metric_with_init_degree_is_ones_where_all_degrees_are_equal():
    ring = edge_tensor([(a, (a + 1) % 5) for a in range(5)])
    g = net_of(init="degree", start=0.7)(features(5, CHANNELS), ring)
    torch.testing.assert_close(g, torch.full_like(g, 0.7), rtol=1e-6, atol=0)


@pytest.mark.parametrize("init", INITS)
def test_metric_without_spread_is_the_same_for_all_features(init):
    net = net_of(init=init, spread=0.0)
    assert torch.equal(net(X, EDGE_INDEX), net(3 * X + 1, EDGE_INDEX))


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_metric_with_spread_varies_over_nodes(inputs, depth):
    g = net_of(inputs=inputs, num_layers=depth, init="ones", spread=1.0)(X, EDGE_INDEX)
    assert (g.std(0) > 1e-4).any()
    small = net_of(inputs=inputs, num_layers=depth, init="ones", spread=0.01)(X, EDGE_INDEX)
    assert 0 < small.std(0).max() < 0.1 * g.std(0).max()


# -- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", INPUTS)
def test_metric_floor_and_ceiling_hold_for_extreme_weights(inputs):
    net = net_of(inputs=inputs, floor=0.1, ceiling=3.0, start=1.0)
    g = perturbed(net, scale=50.0)(X, EDGE_INDEX)
    assert g.min() >= 0.1
    assert g.max() <= 3.0
    assert g.min() < 0.1001, "the floor is reached"
    assert g.max() == 3.0, "the ceiling is reached"


def test_metric_without_ceiling_is_unbounded_and_its_floor_is_positive():
    g = perturbed(net_of(), scale=50.0)(X, EDGE_INDEX)
    assert g.max() > 100
    assert g.min() >= 1e-6


# -- the network ----------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("closed", [False, True])
def test_metric_equals_the_network_on_concatenated_inputs(inputs, depth, norm, closed):
    net = net_of(
        inputs=inputs, num_layers=depth, norm=norm, closed=closed, hidden_channels=5, ceiling=4.0
    )
    perturbed(net)
    torch.testing.assert_close(
        net(X, EDGE_INDEX), slow_metric(net, X, EDGES), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 2.0, 10.0])
def test_metric_sharpness_is_beta_of_the_softplus(sharpness):
    net = net_of(sharpness=sharpness, init="ones", start=0.6)
    start = net(X, EDGE_INDEX)
    torch.testing.assert_close(start, torch.full_like(start, 0.6), rtol=1e-6, atol=0)
    perturbed(net)
    torch.testing.assert_close(
        net(X, EDGE_INDEX), slow_metric(net, X, EDGES), rtol=1e-10, atol=1e-10
    )


def test_metric_closed_neighbourhood_of_an_isolated_node_is_the_node():
    net = perturbed(net_of(closed=True, num_layers=1))
    own = X[8] @ net.lins[0].weight[:, :CHANNELS].t() + X[8] @ net.lins[0].weight[:, CHANNELS:].t()
    expected = torch.nn.functional.softplus(own + net.lins[0].bias) + net.floor
    torch.testing.assert_close(net(X, EDGE_INDEX)[8], expected)


def test_metric_depths_have_that_many_linear_layers_of_the_stated_sizes():
    for depth in (1, 2, 3):
        net = net_of(num_layers=depth, hidden_channels=5, metric_channels=7)
        sizes = [tuple(lin.weight.shape) for lin in net.lins]
        assert (
            sizes == [(7, 8)] if depth == 1 else sizes == [(5, 8), *[(5, 5)] * (depth - 2), (7, 5)]
        )


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("init", ["ones", "degree"])
def test_metric_neighbours_have_no_direction_except_in_the_descriptor(inputs, init):
    net = perturbed(net_of(inputs=inputs, init=init))
    g, turned = net(X, EDGE_INDEX), net(X, EDGE_INDEX.flip(0))
    assert torch.allclose(g, turned) == (inputs == "features")


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("init", ["xavier", "degree"])
@pytest.mark.parametrize("seed", [0, 1])
def test_metric_is_permutation_equivariant_and_edge_order_invariant(inputs, init, seed):
    net = perturbed(net_of(inputs=inputs, init=init))
    x, edge_index, order = renamed(X, EDGE_INDEX, seed)
    torch.testing.assert_close(net(x, edge_index), net(X, EDGE_INDEX)[order], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("init", INITS)
def test_metric_keeps_the_dtype(dtype, init):
    net = MetricNet(CHANNELS, 3, inputs="both", init=init).to(dtype)
    assert net(X.to(dtype), EDGE_INDEX).dtype == dtype


# -- gradients and degenerate graphs --------------------------------------------------------------


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_metric_gradients_reach_the_last_layer_first_and_all_layers_from_the_second_step(
    inputs, depth
):
    net = net_of(inputs=inputs, num_layers=depth, init="ones")
    target = torch.linspace(0.2, 2.0, NUM_NODES, dtype=torch.float64).unsqueeze(-1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        (net(X, EDGE_INDEX) - target).square().mean().backward()
        for index, lin in enumerate(net.lins):
            for parameter in (lin.weight, lin.bias):
                moves = bool(parameter.grad.abs().max() > 0)
                assert moves == (step == 1 or index == depth - 1)
        optimizer.step()


def test_metric_with_spread_sends_gradients_to_all_layers_at_once():
    net = net_of(num_layers=3, spread=1.0, init="ones")
    net(X, EDGE_INDEX).square().sum().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in net.parameters())


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("init", INITS)
def test_metric_is_finite_and_positive_on_degenerate_graphs(name, inputs, init):
    num_nodes, edges, change = DEGENERATE[name]
    x = change(features(num_nodes, CHANNELS)).requires_grad_()
    net = perturbed(net_of(inputs=inputs, init=init, norm=True))
    g = net(x, edge_tensor(edges))
    assert g.shape == (num_nodes, 6)
    assert g.isfinite().all()
    assert (g > 0).all()
    g.sum().backward()
    leaves = [x, *net.parameters()]
    assert all(leaf.grad is None or leaf.grad.isfinite().all() for leaf in leaves)


# -- construction ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": "feature"}, "inputs must be one of .*got 'feature'"),
        ({"init": "zeros"}, "init must be one of .*got 'zeros'"),
        ({"num_layers": 0}, "1, 2 or 3 .*got 0"),
        ({"num_layers": 4}, "1, 2 or 3 .*got 4"),
        ({"floor": 0.0}, "floor"),
        ({"floor": -1.0}, "floor"),
        (
            {"floor": 0.5, "ceiling": 0.5, "start": 2.0},
            "start < ceiling .*start 2.0, ceiling 0.5",
        ),
        ({"ceiling": -1.0}, "ceiling"),
        ({"start": 0.0}, "start 0.0"),
        ({"start": -0.5}, "start -0.5"),
        ({"floor": 0.5, "start": 0.6}, "start"),
    ],
)
def test_metric_refuses_impossible_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        MetricNet(CHANNELS, 3, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"start": math.nan},
        {"start": math.inf},
        {"floor": math.nan},
        {"sharpness": 0.0},
        {"sharpness": -1.0},
        {"hidden_channels": 0},
        {"hidden_channels": -3},
        {"ceiling": 0.3, "start": 0.5, "init": "ones"},
    ],
    ids=str,
)
def test_metric_refuses_values_that_give_no_usable_metric(options):
    with pytest.raises(ValueError, match="must|need"):
        MetricNet(CHANNELS, 3, **options)


def test_metric_reset_puts_the_start_back_and_repeats_with_the_seed():
    net = net_of(init="xavier", num_layers=3, norm=True)
    perturbed(net)
    torch.manual_seed(7)
    net.reset_parameters()
    first = {name: t.clone() for name, t in net.state_dict().items()}
    perturbed(net, seed=3)
    torch.manual_seed(7)
    net.reset_parameters()
    assert all(torch.equal(t, first[name]) for name, t in net.state_dict().items())
    assert (net(X, EDGE_INDEX) - 1).abs().max() <= math.sqrt(3 / 6) + 1e-5
    torch.manual_seed(8)
    net.reset_parameters()
    assert not torch.equal(net.lins[0].weight, first["lins.0.weight"])


def test_metric_repr_says_what_it_sees_and_where_it_starts():
    text = repr(net_of(inputs="structure", init="degree", start=0.5))
    assert text.startswith("MetricNet(")
    assert "inputs='structure', init='degree', start=0.5" in text


@pytest.mark.parametrize("value", [0.5, 1.0, 2.0])
def test_constant_metric_is_the_value_everywhere(value):
    metric = ConstantMetric(3, value)
    g = metric(X, EDGE_INDEX)
    assert torch.equal(g, torch.full((NUM_NODES, 3), value, dtype=torch.float64))
    assert list(metric.parameters()) == []
    metric.reset_parameters()
    assert repr(metric) == f"ConstantMetric(3, value={value})"


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_constant_metric_refuses_a_value_that_is_no_metric(value):
    with pytest.raises(ValueError, match="value must be"):
        ConstantMetric(3, value)


class Swapped(Metric):
    """A family of two numbers per node whatever the width, which swaps the channels of messages."""

    switches = {"metric_value": "value"}

    def __init__(self, value=1.0):
        super().__init__()
        self.metric_channels, self.value = 2, value

    @classmethod
    def build(cls, name, in_channels, channels, **options):
        return cls(**options)

    def forward(self, h, edge_index):
        return h.new_full((h.size(0), 2), self.value)

    def modulate(self, message, g, eps0, added):
        return message.flip(-1) * g[:, :1] + added


@pytest.mark.parametrize("name", METRICS)
def test_every_family_is_built_by_its_name_and_gives_a_positive_metric(name):
    metric = METRICS[name].build(name, CHANNELS, 3).double()
    g = metric(X, EDGE_INDEX, *([[X]] if metric.num_sums else []))
    assert g.shape == (X.size(0), metric.metric_channels)
    assert (g > 0).all()


@pytest.mark.parametrize("family", [*dict.fromkeys(METRICS.values()), Swapped])
def test_switches_of_a_family_are_switches_of_the_formulation_and_its_arguments(family):
    assert set(family.switches) <= {field.name for field in fields(Formulation)}
    arguments = [inspect.signature(kind).parameters for kind in family.__mro__[:-4]]
    assert set(family.switches.values()) <= set().union(*arguments)


def test_new_family_needs_only_its_line_in_the_table(monkeypatch):
    monkeypatch.setitem(METRICS, "swapped", Swapped)
    options = {"metric": "swapped", "metric_value": 3.0, "direction": "in"}
    model = ARGNN(CHANNELS, 4, 2, num_layers=1, **options).double().eval()
    g = model.forward_with_metric(X, EDGE_INDEX)[1][0]
    assert torch.equal(g, torch.full((X.size(0), 2), 3.0, dtype=torch.float64))
    conv = model.convs[0]
    h = torch.randn(X.size(0), 4, dtype=torch.float64)
    own = h @ conv.lin_self.weight.t() + conv.bias
    message = AF.aggregate(conv.lins_neighbor[0](h), EDGE_INDEX, "sym")
    assert torch.allclose(conv(h, EDGE_INDEX), own + 3 * message.flip(-1), rtol=1e-12, atol=1e-12)
