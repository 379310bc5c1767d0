import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import GCNConv, Sequential

from argnn.nn import MESSAGE_FORMS, ARConv, ConstantMetric, MetricNet
from argnn.nn.conv.message_forms import OperatorForm

from .cases import (
    DEGENERATE,
    DIRECTIONS,
    EDGES,
    FEW,
    NORMALIZATIONS,
    NUM_NODES,
    edge_tensor,
    features,
    metrics,
    perturbed,
    renamed,
    slow_conv,
    slow_metric,
)

X = features(NUM_NODES, 4)
EDGE_INDEX = edge_tensor(EDGES)
FORMS = ("scalar", "operator")


def conv_of(in_channels=4, out_channels=6, seed=0, **options):
    torch.manual_seed(seed)
    return perturbed(ARConv(in_channels, out_channels, **options).double())


def metric_for(conv, seed=1):
    return metrics(NUM_NODES, conv.metric_channels, seed)


# -- a drop-in convolution ------------------------------------------------------------------------


@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize(("in_channels", "out_channels"), [(4, 6), (6, 4), (5, 5), (3, 1), (1, 3)])
def test_conv_maps_in_channels_to_out_channels(modulation, in_channels, out_channels):
    conv = conv_of(in_channels, out_channels, modulation=modulation)
    x = features(NUM_NODES, in_channels)
    assert conv(x, EDGE_INDEX).shape == (NUM_NODES, out_channels)
    size = in_channels if modulation == "scalar" else out_channels
    assert conv.metric_channels == size
    assert conv.metric(x, EDGE_INDEX).shape == (NUM_NODES, size)


def test_conv_takes_the_place_of_a_gcn_layer_in_a_pyg_sequential():
    def network(conv):
        return Sequential(
            "x, edge_index",
            [
                (conv(4, 8), "x, edge_index -> x"),
                torch.nn.ReLU(inplace=True),
                (conv(8, 3), "x, edge_index -> x"),
            ],
        )

    x = X.float()
    ours, theirs = network(ARConv)(x, EDGE_INDEX), network(GCNConv)(x, EDGE_INDEX)
    assert ours.shape == theirs.shape
    assert ours.isfinite().all()


@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize("layout", ["csr", "coo", "csc"])
@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta state")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
def test_conv_gives_the_same_on_a_transposed_sparse_adjacency(modulation, layout, direction):
    edges = sorted(set(EDGES))
    edge_index = edge_tensor(edges)
    adj_t = torch.sparse_coo_tensor(
        edge_index.flip(0), torch.ones(len(edges), dtype=torch.float64), (NUM_NODES, NUM_NODES)
    ).coalesce()
    adj_t = {"coo": adj_t, "csr": adj_t.to_sparse_csr(), "csc": adj_t.to_sparse_csc()}[layout]
    conv = conv_of(modulation=modulation, direction=direction)
    torch.testing.assert_close(conv(X, adj_t), conv(X, edge_index))
    torch.testing.assert_close(conv.metric(X, adj_t), conv.metric(X, edge_index))


def test_conv_by_default_sends_messages_along_the_listed_edges_as_pyg_does():
    edge_index = edge_tensor([(0, 1)])
    conv = conv_of(4, 3, metric="fixed", metric_options={"value": 0.5})
    x, changed = features(2, 4), features(2, 4)
    changed[0] += 1
    difference = conv(changed, edge_index) - conv(x, edge_index)
    gcn = GCNConv(4, 3, normalize=False).double()
    moved = gcn(changed, edge_index) - gcn(x, edge_index)
    assert (moved[1].abs() > 0).any()
    assert (difference[1].abs() > 0).any()
    changed = x.clone()
    changed[1] += 1  # node 1 sends nothing
    assert torch.equal(conv(changed, edge_index)[0], conv(x, edge_index)[0])


# -- the metric -----------------------------------------------------------------------------------


@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize("metric", ["features", "structure", "both", "fixed"])
def test_conv_without_a_metric_uses_the_one_it_shows(modulation, metric):
    conv = conv_of(modulation=modulation, metric=metric)
    g = conv.metric(X, EDGE_INDEX)
    torch.testing.assert_close(conv(X, EDGE_INDEX), conv(X, EDGE_INDEX, g=g))
    other = conv(X, EDGE_INDEX, g=3 * g)
    assert not torch.allclose(conv(X, EDGE_INDEX), other)


@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize("shape", [(NUM_NODES, 5), (NUM_NODES - 1, 4), (4,), (NUM_NODES, 4, 1)])
def test_conv_refuses_a_metric_of_the_wrong_shape(modulation, shape):
    conv = conv_of(4, 4, modulation=modulation)
    with pytest.raises(ValueError, match=r"shape \[9, 4\] \(got \["):
        conv(X, EDGE_INDEX, g=torch.ones(shape, dtype=torch.float64))


def test_conv_starts_away_from_the_metric_at_which_no_message_passes():
    for options in ({}, {"modulation": "operator"}, {"metric": "structure"}, {"metric": "both"}):
        torch.manual_seed(0)
        conv = ARConv(400, 400, **options).double()
        g = conv.metric(features(NUM_NODES, 400), EDGE_INDEX)
        assert ((g - 0.5).abs() < 0.1).all()


def test_conv_passes_metric_options_on():
    conv = ARConv(4, 4, metric_options={"start": 0.9, "init": "ones", "num_layers": 3})
    assert isinstance(conv.metric_net, MetricNet)
    assert len(conv.metric_net.lins) == 3
    g = conv.metric(X.float(), EDGE_INDEX)
    torch.testing.assert_close(g, torch.full_like(g, 0.9))
    fixed = ARConv(4, 4, metric="fixed", metric_options={"value": 2.0})
    assert isinstance(fixed.metric_net, ConstantMetric)
    assert (fixed.metric(X.float(), EDGE_INDEX) == 2).all()


# -- equality with the paper's loops and with dense matrices --------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("eps0", [0.0, 0.3])
def test_scalar_conv_equals_the_loop_of_the_paper(direction, normalization, attention, eps0):
    conv = conv_of(direction=direction, normalization=normalization, attention=attention, eps0=eps0)
    g = metric_for(conv)
    torch.testing.assert_close(
        conv(X, EDGE_INDEX, g=g), slow_conv(conv, X, EDGES, g), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("neighbor_norm", ["own", "target"])
def test_scalar_conv_measures_the_neighbour_in_the_stated_metric(neighbor_norm):
    conv = conv_of(neighbor_norm=neighbor_norm)
    g = metric_for(conv)
    torch.testing.assert_close(
        conv(X, EDGE_INDEX, g=g), slow_conv(conv, X, EDGES, g), rtol=1e-10, atol=1e-10
    )


def test_conv_with_its_learned_metric_equals_algorithm_1_of_the_paper():
    conv = conv_of(metric_options={"num_layers": 2, "hidden_channels": 5})
    g = slow_metric(conv.metric_net, X, EDGES)
    torch.testing.assert_close(
        conv(X, EDGE_INDEX), slow_conv(conv, X, EDGES, g), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("eps0", [0.0, 0.3])
def test_operator_conv_equals_dense_matrices(direction, normalization, hops, eps0):
    conv = conv_of(
        modulation="operator",
        direction=direction,
        normalization=normalization,
        hops=hops,
        eps0=eps0,
    )
    assert len(conv.lins_neighbor) == hops * (2 if direction == "both" else 1)
    g = metric_for(conv)
    torch.testing.assert_close(
        conv(X, EDGE_INDEX, g=g), slow_conv(conv, X, EDGES, g), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize("bias", [True, False])
def test_conv_without_self_path_has_only_messages(modulation, bias):
    conv = conv_of(modulation=modulation, self_path=False, bias=bias)
    assert conv.lin_self is None
    g = metric_for(conv)
    out = conv(X, EDGE_INDEX, g=g)
    torch.testing.assert_close(out, slow_conv(conv, X, EDGES, g), rtol=1e-10, atol=1e-10)
    expected = conv.bias if bias else torch.zeros(6, dtype=torch.float64)
    assert torch.equal(out[8], expected), "an isolated node hears nothing"


def test_the_scalar_modulation_is_the_rayleigh_quotient_of_the_operator():
    # On one channel the direction is +-1: both forms weigh by t_i.
    scalar = conv_of(1, 1, attention=False)
    operator = conv_of(1, 1, modulation="operator", direction="in")
    operator.load_state_dict(scalar.state_dict())
    x, g = features(NUM_NODES, 1), metrics(NUM_NODES, 1)
    torch.testing.assert_close(scalar(x, EDGE_INDEX, g=g), operator(x, EDGE_INDEX, g=g))


# -- the Euclidean singularity --------------------------------------------------------------------


@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_conv_passes_no_message_at_metric_one_and_the_baseline_repairs_it(modulation, direction):
    conv = conv_of(modulation=modulation, direction=direction)
    one = torch.ones(NUM_NODES, conv.metric_channels, dtype=torch.float64)
    own = X @ conv.lin_self.weight.t() + conv.bias
    torch.testing.assert_close(conv(X, EDGE_INDEX, g=one), own, rtol=1e-12, atol=1e-12)
    conv.eps0 = 0.2
    repaired = conv(X, EDGE_INDEX, g=one)
    heard = (repaired - own).abs().sum(-1) > 1e-3
    torch.testing.assert_close(repaired, slow_conv(conv, X, EDGES, one), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(repaired[8], own[8])
    assert heard.sum() >= 6


@pytest.mark.parametrize("modulation", FORMS)
def test_conv_messages_change_sign_with_the_inverse_metric(modulation):
    conv = conv_of(modulation=modulation, attention=False, self_path=False, bias=False)
    g = metric_for(conv)
    torch.testing.assert_close(conv(X, EDGE_INDEX, g=g), -conv(X, EDGE_INDEX, g=1 / g))


# -- symmetries -----------------------------------------------------------------------------------

EVERY_SWITCH = [
    {"modulation": modulation, "direction": direction, "normalization": norm, "metric": metric}
    for modulation in FORMS
    for direction, norm in zip(DIRECTIONS, ("sum", "sym", "rw", "sym"), strict=True)
    for metric in ("features", "both")
]


@pytest.mark.parametrize("options", EVERY_SWITCH, ids=lambda o: "-".join(o.values()))
@FEW
@given(seed=st.integers(0, 1000))
def test_conv_is_permutation_equivariant(options, seed):
    conv = conv_of(**options)
    x, edge_index, order = renamed(X, EDGE_INDEX, seed)
    exact = options["metric"] == "features"  # the structural descriptor is float32
    tolerance = 1e-10 if exact else 1e-5
    torch.testing.assert_close(
        conv(x, edge_index), conv(X, EDGE_INDEX)[order], rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("options", EVERY_SWITCH, ids=lambda o: "-".join(o.values()))
def test_conv_does_not_depend_on_the_order_of_edges_nor_on_self_loops(options):
    conv = conv_of(**options)
    expected = conv(X, EDGE_INDEX)
    shuffle = torch.randperm(len(EDGES), generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(conv(X, EDGE_INDEX[:, shuffle]), expected, rtol=1e-6, atol=1e-6)
    proper = edge_tensor([(j, i) for j, i in EDGES if j != i])
    torch.testing.assert_close(conv(X, proper), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("modulation", FORMS)
def test_undirected_conv_ignores_directions_and_duplicates(modulation):
    conv = conv_of(modulation=modulation, direction="undirected", normalization="sym")
    once = edge_tensor(sorted({(min(e), max(e)) for e in EDGES}))
    torch.testing.assert_close(conv(X, once), conv(X, EDGE_INDEX))
    torch.testing.assert_close(conv(X, EDGE_INDEX.flip(0)), conv(X, EDGE_INDEX))


@pytest.mark.parametrize("modulation", FORMS)
def test_out_direction_is_the_in_direction_of_the_reversed_graph(modulation):
    inward = conv_of(modulation=modulation, direction="in", normalization="sym")
    outward = conv_of(modulation=modulation, direction="out", normalization="sym")
    g = metric_for(inward)
    torch.testing.assert_close(
        outward(X, EDGE_INDEX, g=g), inward(X, EDGE_INDEX.flip(0).contiguous(), g=g)
    )


# -- state ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", EVERY_SWITCH, ids=lambda o: "-".join(o.values()))
def test_conv_state_dict_round_trip(options):
    first, second = conv_of(seed=0, **options), perturbed(conv_of(seed=1, **options), seed=5)
    assert not torch.allclose(first(X, EDGE_INDEX), second(X, EDGE_INDEX))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(X, EDGE_INDEX), second(X, EDGE_INDEX))
    assert torch.equal(copy.deepcopy(first)(X, EDGE_INDEX), first(X, EDGE_INDEX))


@pytest.mark.parametrize("modulation", FORMS)
def test_conv_reset_redraws_every_weight_and_repeats_with_the_seed(modulation):
    conv = conv_of(modulation=modulation, metric_options={"num_layers": 3, "norm": True})
    before = {name: t.clone() for name, t in conv.state_dict().items()}
    torch.manual_seed(1)
    conv.reset_parameters()
    first = {name: t.clone() for name, t in conv.state_dict().items()}
    assert [name for name in before if torch.equal(before[name], first[name])] == []
    assert (conv.bias == 0).all()
    perturbed(conv)
    torch.manual_seed(1)
    conv.reset_parameters()
    assert all(torch.equal(t, first[name]) for name, t in conv.state_dict().items())


@pytest.mark.parametrize("modulation", FORMS)
def test_conv_with_the_same_seed_is_the_same_conv(modulation):
    first, second = conv_of(modulation=modulation), conv_of(modulation=modulation)
    assert torch.equal(first(X, EDGE_INDEX), second(X, EDGE_INDEX))


def test_conv_repr():
    assert str(ARConv(4, 8)) == (
        "ARConv(4, 8, modulation='scalar', direction='in', normalization='sum')"
    )
    conv = ARConv(4, 8, modulation="operator", direction="both", normalization="sym")
    assert repr(conv) == (
        "ARConv(4, 8, modulation='operator', direction='both', normalization='sym')"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modulation": "vector"}, "modulation must be one of .*got 'vector'"),
        ({"direction": "left"}, "direction must be one of .*got 'left'"),
        ({"normalization": "mean"}, "normalization must be one of .*got 'mean'"),
        ({"hops": 0}, "hops .*got 0"),
        ({"hops": 2, "modulation": "scalar"}, "hops .*got 2"),
        ({"eps0": -0.1}, "eps0 .*got -0.1"),
        ({"eps0": 1.1}, "eps0 .*got 1.1"),
        ({"eps0": float("nan")}, "eps0"),
        ({"metric": "learned"}, "metric must be one of .*got 'learned'"),
        ({"metric": "fixed", "metric_options": {"value": -1.0}}, "value"),
    ],
)
def test_conv_refuses_impossible_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        ARConv(4, 8, **options)


def test_new_message_form_needs_only_its_line_in_the_table(monkeypatch):
    class Doubled(OperatorForm):
        on_inputs = True

        def convolved(self, conv, x, g, hood):
            return 2 * conv.lin_self(x) + g.sum(-1, keepdim=True)

    monkeypatch.setitem(MESSAGE_FORMS, "doubled", Doubled())
    conv = conv_of(modulation="doubled", metric="fixed", hops=2)
    assert conv.metric_channels == 4
    assert torch.equal(conv(X, EDGE_INDEX), 2 * conv.lin_self(X) + 4 * 0.5)


def test_conv_refuses_an_unknown_neighbor_norm_when_it_is_built():
    with pytest.raises(ValueError, match="neighbor_norm must be one of"):
        ARConv(4, 8, neighbor_norm="other")


@pytest.mark.parametrize("sizes", [(-2, 8), (0, 8), (4, 0), (4, -1)])
def test_conv_refuses_sizes_that_are_not_positive(sizes):
    with pytest.raises(ValueError, match="channels"):
        ARConv(*sizes)


# -- precision and modes --------------------------------------------------------------------------


@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize("metric", ["features", "structure", "both", "fixed"])
def test_conv_keeps_float32_and_float64_and_they_agree(modulation, metric):
    conv = conv_of(modulation=modulation, metric=metric)
    wide = conv(X, EDGE_INDEX)
    narrow = copy.deepcopy(conv).float()(X.float(), EDGE_INDEX)
    assert (wide.dtype, narrow.dtype) == (torch.float64, torch.float32)
    torch.testing.assert_close(narrow.double(), wide, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_conv_gives_the_same_without_gradients(modulation, mode):
    conv = conv_of(modulation=modulation, metric="both")
    expected = conv(X, EDGE_INDEX)
    with mode():
        out = conv(X, EDGE_INDEX)
        fresh = conv(X.clone(), EDGE_INDEX.clone())
    assert not out.requires_grad
    torch.testing.assert_close(out, expected.detach())
    torch.testing.assert_close(fresh, expected.detach())


@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize("metric", ["features", "both"])
def test_conv_can_be_trained_on_edges_first_met_in_inference_mode(modulation, metric):
    conv = conv_of(modulation=modulation, metric=metric, direction="both")
    edge_index = EDGE_INDEX.clone()
    with torch.inference_mode():
        conv(X, edge_index)
    conv(X, edge_index).sum().backward()
    assert all(p.grad.isfinite().all() for p in conv.parameters())


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("modulation", FORMS)
@pytest.mark.parametrize("metric", ["features", "structure", "both", "fixed"])
def test_conv_and_its_gradients_are_finite_on_degenerate_graphs(name, modulation, metric):
    num_nodes, edges, change = DEGENERATE[name]
    for direction, dtype in (("in", torch.float32), ("both", torch.float64)):
        x = change(features(num_nodes, 4, dtype=dtype)).requires_grad_()
        conv = conv_of(modulation=modulation, metric=metric, direction=direction).to(dtype)
        out = conv(x, edge_tensor(edges))
        assert out.isfinite().all()
        out.sum().backward()
        for leaf in (x, *conv.parameters()):
            assert leaf.grad is None or leaf.grad.isfinite().all()


@pytest.mark.parametrize("modulation", FORMS)
def test_conv_gradients_pass_gradcheck(modulation):
    conv = conv_of(3, 2, modulation=modulation, metric_options={"hidden_channels": 3})
    edge_index = edge_tensor([(0, 1), (1, 0), (2, 1), (2, 1), (3, 3)])
    x = features(5, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: conv(x, edge_index), (x,))
    g = metrics(5, conv.metric_channels).requires_grad_()
    assert torch.autograd.gradcheck(lambda g: conv(x.detach(), edge_index, g=g), (g,))
