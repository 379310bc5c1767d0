import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from argnn.errors import ArgnnError, ConfigError
from argnn.nn import ARGNN

from .cases import (
    DEGENERATE,
    EDGES,
    FEW,
    NUM_NODES,
    edge_tensor,
    features,
    perturbed,
    renamed,
    slow_conv,
    slow_metric,
)

PRESETS = ("paper", "reference", "default")
IN, HIDDEN, OUT = 5, 6, 3
X = features(NUM_NODES, IN)
EDGE_INDEX = edge_tensor(EDGES)

#: One member of the family for every switch that changes the shape of the network.
MEMBERS = {
    **{preset: {"preset": preset} for preset in PRESETS},
    "no self path": {"self_path": False, "metric": "structure"},
    "no encoder": {"encoder": False, "norm": "none"},
    "scalar": {"modulation": "scalar", "attention": True},
    "two hops, both directions": {"hops": 2, "direction": "both", "normalization": "rw"},
    "fixed metric": {"metric": "fixed"},
    "deep metric": {"metric_layers": 3, "metric_norm": True},
    "shallow metric": {"metric_layers": 1},
    "degree start": {"metric_init": "degree"},
    "jump last": {"jump": "last"},
    "jump max": {"jump": "max"},
    "jump lstm": {"jump": "lstm"},
    "batch norm": {"norm": "batch"},
    "no norm": {"norm": "none"},
    "conv head": {"head": "conv", "jump": "last"},
    "structure features": {"structure_features": True},
    "control": {"structure_features": True, "metric": "fixed", "self_path": False},
    "control, conv head": {"structure_features": True, "head": "conv", "jump": "last"},
    "control, no encoder": {"structure_features": True, "encoder": False, "norm": "none"},
}
every_member = pytest.mark.parametrize("options", MEMBERS.values(), ids=MEMBERS.keys())


def model_of(num_layers=2, seed=0, hidden_channels=HIDDEN, **options):
    torch.manual_seed(seed)
    model = ARGNN(IN, hidden_channels, OUT, num_layers, **options).double()
    return perturbed(model).eval()


# -- equality with slow forms ---------------------------------------------------------------------


def layer_norm(h, norm):
    centred = h - h.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    return centred / scale * norm.weight + norm.bias


def slow_layer(conv, h):
    g = slow_metric(conv.metric_net, h, EDGES)
    return slow_conv(conv, h, EDGES, g), g


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_paper_preset_is_algorithm_1_with_a_linear_read_out(num_layers):
    model = model_of(num_layers, preset="paper")
    h, metrics = X, []
    for conv in model.convs:
        h, g = slow_layer(conv, h)
        h = h.clamp_min(0)
        metrics.append(g)
    expected = h @ model.head.weight.t() + model.head.bias
    scores, found = model.forward_with_metric(X, EDGE_INDEX)
    torch.testing.assert_close(scores, expected, rtol=1e-9, atol=1e-9)
    for actual, wanted in zip(found, metrics, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_reference_preset_is_encoder_convolutions_and_a_normalised_last_convolution(num_layers):
    model = model_of(num_layers, preset="reference")
    h = X @ model.encoder.weight.t() + model.encoder.bias
    h = layer_norm(h, model.encoder_norm).clamp_min(0)
    for depth, (conv, norm) in enumerate(zip(model.convs, model.norms, strict=True), start=1):
        assert (conv.metric_net.sharpness, conv.metric_net.ceiling) == (2.0, 10.0)
        assert conv.metric_net.closed
        assert conv.neighbor_norm == "target"
        h = layer_norm(slow_layer(conv, h)[0], norm)
        if depth < num_layers:
            h = h.clamp_min(0)
    torch.testing.assert_close(model(X, EDGE_INDEX), h, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("self_path", [True, False])
def test_default_preset_is_the_recommended_formulation(num_layers, self_path):
    model = model_of(num_layers, self_path=self_path)
    model.fit_to_graph(EDGE_INDEX, NUM_NODES)
    h = X @ model.encoder.weight.t() + model.encoder.bias
    h = layer_norm(h, model.encoder_norm).clamp_min(0)
    states = [h] if self_path else []
    for conv, norm in zip(model.convs, model.norms, strict=True):
        h = layer_norm(slow_layer(conv, h)[0], norm).clamp_min(0)
        states.append(h)
    expected = torch.cat(states, dim=-1) @ model.head.weight.t() + model.head.bias
    torch.testing.assert_close(model(X, EDGE_INDEX), expected, rtol=1e-10, atol=1e-10)


def test_paper_preset_with_metric_one_passes_no_message_and_is_an_mlp(monkeypatch):
    model = model_of(3, preset="paper")
    for conv in model.convs:
        monkeypatch.setattr(conv, "metric", lambda x, edge_index: torch.ones_like(x))
    h = X
    for conv in model.convs:
        h = (h @ conv.lin_self.weight.t() + conv.bias).clamp_min(0)
    expected = h @ model.head.weight.t() + model.head.bias
    torch.testing.assert_close(model(X, EDGE_INDEX), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(model(X, edge_tensor([])), expected, rtol=1e-12, atol=1e-12)


def test_paper_preset_with_a_baseline_passes_messages_at_metric_one(monkeypatch):
    model = model_of(3, preset="paper", eps0=0.2)
    for conv in model.convs:
        monkeypatch.setattr(conv, "metric", lambda x, edge_index: torch.ones_like(x))
    difference = model(X, EDGE_INDEX) - model(X, edge_tensor([]))
    assert difference.abs().max() > 1e-3


def test_reference_preset_normalises_the_scores_of_the_last_convolution():
    torch.manual_seed(0)
    scores = ARGNN(IN, HIDDEN, OUT, 2, preset="reference").double().eval()(X, EDGE_INDEX)
    torch.testing.assert_close(
        scores.mean(-1), torch.zeros(NUM_NODES, dtype=torch.float64), rtol=0, atol=1e-9
    )
    torch.testing.assert_close(
        scores.square().mean(-1), torch.ones(NUM_NODES, dtype=torch.float64), rtol=0, atol=1e-2
    )


def test_reference_preset_metric_stays_between_its_floor_and_ten():
    model = perturbed(model_of(2, preset="reference"), scale=30.0)
    with torch.no_grad():
        metrics = model.forward_with_metric(X, EDGE_INDEX)[1]
    assert min(float(g.min()) for g in metrics) >= 1e-3
    assert max(float(g.max()) for g in metrics) == 10.0


def test_reference_preset_metric_starts_varied_near_the_zero_of_its_softplus():
    torch.manual_seed(0)
    g = ARGNN(IN, 64, OUT, 2, preset="reference").forward_with_metric(X.float(), EDGE_INDEX)[1][0]
    # Over draws the mean is 0.387 with a deviation of 0.023: softplus is convex.
    assert g.mean().item() == pytest.approx(math.log(2) / 2, abs=0.14)
    assert g.std(0).mean() > 1e-3


def test_default_preset_metric_starts_at_one_half_and_paper_near_one():
    torch.manual_seed(0)
    for g in ARGNN(IN, HIDDEN, OUT, 3).forward_with_metric(X.float(), EDGE_INDEX)[1]:
        torch.testing.assert_close(g, torch.full_like(g, 0.5))
    paper = ARGNN(IN, 128, OUT, 2, preset="paper")
    g = paper.forward_with_metric(X.float(), EDGE_INDEX)[1][1]
    assert ((g - 1).abs() <= math.sqrt(3 / 128) + 1e-5).all()


# -- who hears whom -------------------------------------------------------------------------------


def sensitivity(model, edges, num_nodes=5):
    """Which outputs move when the features of one node change, ``[changed, output]``."""
    x, edge_index = features(num_nodes, IN), edge_tensor(edges)
    base, rows = model(x, edge_index), []
    for node in range(num_nodes):
        changed = x.clone()
        changed[node] = features(num_nodes, IN, seed=9)[node]
        rows.append((model(changed, edge_index) - base).abs().amax(-1) > 1e-9)
    return torch.stack(rows).int().tolist()


#: 0 -> 1 -> 2 -> 0, 3 -> 0; node 4 is isolated.
FLOW = [(0, 1), (1, 2), (2, 0), (3, 0)]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("in", [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0] * 5]),
        ("out", [[0, 0, 1, 1, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0] * 5, [0] * 5]),
        (
            "undirected",
            [[0, 1, 1, 1, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0] * 5],
        ),
        ("both", [[0, 1, 1, 1, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0] * 5]),
    ],
)
def test_without_self_path_a_nodes_features_reach_only_those_it_sends_to(direction, expected):
    model = model_of(
        1, hidden_channels=32, self_path=False, metric="structure", direction=direction
    )
    assert sensitivity(model, FLOW) == expected


def test_without_self_path_an_isolated_node_says_nothing_about_itself():
    model = model_of(3, hidden_channels=32, self_path=False, metric="structure")
    assert sensitivity(model, FLOW)[4] == [0, 0, 0, 0, 0]
    with_self = model_of(3, hidden_channels=32, metric="structure")
    assert sensitivity(with_self, FLOW)[4] == [0, 0, 0, 0, 1]


def test_without_self_path_a_metric_fed_with_features_brings_the_own_features_back():
    # Wide, so that the rectifier does not silence a node in some draw.
    model = model_of(1, hidden_channels=32, self_path=False, metric="both", norm="none")
    assert [sensitivity(model, FLOW)[node][node] for node in range(5)] == [1, 1, 1, 1, 0]


def test_without_self_path_the_encoded_input_is_not_in_the_read_out():
    for jump in ("cat", "max", "lstm"):
        off = model_of(3, self_path=False, jump=jump)
        on = model_of(3, self_path=True, jump=jump)
        assert len(off.hidden_states(X, EDGE_INDEX)[0]) == 3
        assert len(on.hidden_states(X, EDGE_INDEX)[0]) == 4
    assert model_of(3, self_path=False).head.in_channels == 3 * HIDDEN
    assert model_of(3, self_path=True).head.in_channels == 4 * HIDDEN


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_features_travel_one_edge_per_layer(num_layers):
    path = [(a, a + 1) for a in range(4)]
    model = model_of(
        num_layers, hidden_channels=32, direction="in", metric="structure", jump="last"
    )
    reached = sensitivity(model, path)[0]
    assert reached[: num_layers + 2] == [1] * (num_layers + 1) + [0]


# -- shapes and options ---------------------------------------------------------------------------


@every_member
@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_model_shapes_metrics_and_forward(options, num_layers):
    model = model_of(num_layers, **options)
    scores, metrics = model.forward_with_metric(X, EDGE_INDEX)
    assert scores.shape == (NUM_NODES, OUT)
    assert scores.isfinite().all()
    assert torch.equal(scores, model(X, EDGE_INDEX))
    assert len(metrics) == num_layers
    for conv, g in zip(model.convs, metrics, strict=True):
        assert g.shape == (NUM_NODES, conv.metric_channels)
        assert (g > 0).all()
        assert g.isfinite().all()


@pytest.mark.parametrize("jump", ["cat", "max", "lstm"])
def test_jump_modes_read_all_states(jump):
    model = model_of(3, jump=jump)
    states, _ = model.hidden_states(X, EDGE_INDEX)
    together = {
        "cat": lambda: torch.cat(states, dim=-1),
        "max": lambda: torch.stack(states, dim=-1).amax(-1),
        "lstm": lambda: model.jump(states),
    }[jump]()
    expected = together @ model.head.weight.t() + model.head.bias
    torch.testing.assert_close(model(X, EDGE_INDEX), expected)
    changed = [state.clone() for state in states]
    changed[1] = changed[1] + 10
    assert not torch.allclose(model.jump(changed), model.jump(states))


def test_jump_last_reads_the_last_state_only():
    model = model_of(3, jump="last")
    states, _ = model.hidden_states(X, EDGE_INDEX)
    expected = states[-1] @ model.head.weight.t() + model.head.bias
    torch.testing.assert_close(model(X, EDGE_INDEX), expected)


@pytest.mark.parametrize(
    ("norm", "kind"), [("none", nn.Identity), ("layer", nn.LayerNorm), ("batch", nn.BatchNorm1d)]
)
def test_norms_follow_every_layer(norm, kind):
    model = model_of(3, norm=norm)
    assert [type(part) for part in (*model.norms, model.encoder_norm)] == [kind] * 4


def test_encoder_off_feeds_the_features_to_the_first_convolution():
    model = model_of(2, encoder=False, norm="none")
    assert model.encoder is None
    assert [(c.in_channels, c.out_channels) for c in model.convs] == [
        (IN, HIDDEN),
        (HIDDEN, HIDDEN),
    ]
    with_encoder = model_of(2)
    assert [c.in_channels for c in with_encoder.convs] == [HIDDEN, HIDDEN]


def test_paper_preset_can_be_given_an_encoder():
    model = model_of(2, preset="paper", encoder=True)
    assert [c.in_channels for c in model.convs] == [HIDDEN, HIDDEN]
    assert model(X, EDGE_INDEX).shape == (NUM_NODES, OUT)


@pytest.mark.parametrize(
    "options",
    [*MEMBERS.values(), {"encoder": False, "norm": "layer"}, {"encoder": False, "norm": "batch"}],
    ids=[*MEMBERS, "no encoder, layer norm", "no encoder, batch norm"],
)
def test_model_has_no_idle_parameter(options):
    model = model_of(2, **options).train()
    scores, _ = model.forward_with_metric(X, EDGE_INDEX)
    scores.square().sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


@every_member
def test_metric_parameters_are_those_of_the_metric_networks(options):
    model = model_of(2, **options)
    metric = {id(p) for p in model.metric_parameters()}
    expected = {id(p) for conv in model.convs for p in conv.metric_net.parameters()}
    assert metric == expected
    assert bool(metric) == (options.get("metric") != "fixed")


# -- symmetries -----------------------------------------------------------------------------------


@every_member
@FEW
@given(seed=st.integers(0, 1000))
def test_model_is_permutation_equivariant(options, seed):
    model = model_of(2, **options)
    x, edge_index, order = renamed(X, EDGE_INDEX, seed)
    scores, metrics = model.forward_with_metric(X, EDGE_INDEX)
    moved, moved_metrics = model.forward_with_metric(x, edge_index)
    torch.testing.assert_close(moved, scores[order], rtol=1e-5, atol=1e-5)
    for g, moved_g in zip(metrics, moved_metrics, strict=True):
        torch.testing.assert_close(moved_g, g[order], rtol=1e-5, atol=1e-5)


@every_member
def test_model_does_not_depend_on_the_order_of_edges(options):
    model = model_of(2, **options)
    shuffle = torch.randperm(len(EDGES), generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(
        model(X, EDGE_INDEX[:, shuffle]), model(X, EDGE_INDEX), rtol=1e-6, atol=1e-6
    )


# -- state ----------------------------------------------------------------------------------------


@every_member
def test_model_state_dict_round_trip(options):
    first, second = model_of(**options), perturbed(model_of(seed=1, **options), seed=8)
    assert not torch.allclose(first(X, EDGE_INDEX), second(X, EDGE_INDEX))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(X, EDGE_INDEX), second(X, EDGE_INDEX))
    assert torch.equal(copy.deepcopy(first)(X, EDGE_INDEX), first(X, EDGE_INDEX))


@every_member
def test_model_with_the_same_seed_is_the_same_model(options):
    first, second, third = (model_of(seed=seed, **options) for seed in (0, 0, 1))
    assert torch.equal(first(X, EDGE_INDEX), second(X, EDGE_INDEX))
    assert not torch.equal(first(X, EDGE_INDEX), third(X, EDGE_INDEX))


@every_member
def test_model_reset_leaves_no_weight_behind_and_repeats_with_the_seed(options):
    model = model_of(**options).train()
    model(X, EDGE_INDEX)  # moves the running statistics of a batch norm
    before = {name: t.clone() for name, t in model.state_dict().items()}
    torch.manual_seed(1)
    model.reset_parameters()
    first = {name: t.clone() for name, t in model.state_dict().items()}
    assert [name for name in before if torch.equal(before[name], first[name])] == []
    perturbed(model)
    torch.manual_seed(1)
    model.reset_parameters()
    assert all(torch.equal(t, first[name]) for name, t in model.state_dict().items())


@every_member
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_model_predicts_the_same_without_gradients_and_can_be_trained_afterwards(options, mode):
    x, edge_index = X.clone(), EDGE_INDEX.clone()
    model = model_of(**options)
    with mode():
        predicted = model(x, edge_index)
    scores = model(x, edge_index)
    torch.testing.assert_close(scores.detach(), predicted)
    scores.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@every_member
@pytest.mark.parametrize("name", DEGENERATE)
def test_model_and_its_gradients_are_finite_on_degenerate_graphs(options, name):
    num_nodes, edges, change = DEGENERATE[name]
    x = change(features(num_nodes, IN, dtype=torch.float32)).requires_grad_()
    model = model_of(**options).float()
    scores = model(x, edge_tensor(edges))
    assert scores.isfinite().all()
    scores.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in (x, *model.parameters()))


# -- dropout --------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_dropout_is_active_in_training_only_and_repeats_with_the_seed(preset):
    model = model_of(preset=preset)
    assert torch.equal(model(X, EDGE_INDEX), model(X, EDGE_INDEX))
    model.train()

    def drawn(seed):
        torch.manual_seed(seed)
        return model(X, EDGE_INDEX)

    assert torch.equal(drawn(0), drawn(0))
    assert not torch.equal(drawn(0), drawn(1))


@pytest.mark.parametrize("preset", PRESETS)
def test_model_without_dropout_is_the_same_in_training(preset):
    model = model_of(preset=preset, dropout=0.0, input_dropout=0.0)
    model.fit_to_graph(EDGE_INDEX, NUM_NODES)
    expected = model(X, EDGE_INDEX)
    assert torch.equal(model.train()(X, EDGE_INDEX), expected)


@pytest.mark.parametrize("p", [0.25, 0.5])
def test_hidden_dropout_keeps_the_share_and_the_mean(p):
    model = model_of(1, encoder=False, norm="none", metric="fixed", dropout=p, input_dropout=0.0)
    with torch.no_grad():
        for conv in model.convs:
            conv.bias.fill_(1000.0)  # every unit is alive
    x = features(4000, IN)
    edge_index = edge_tensor([(0, 1)])
    expected = model.hidden_states(x, edge_index)[0][-1]
    torch.manual_seed(0)
    dropped = model.train().hidden_states(x, edge_index)[0][-1]
    kept = dropped != 0
    assert kept.double().mean().item() == pytest.approx(1 - p, abs=0.015)
    torch.testing.assert_close(dropped[kept], expected[kept] / (1 - p))
    assert dropped.mean().item() == pytest.approx(expected.mean().item(), rel=0.03)


def test_input_dropout_acts_on_the_features_with_and_without_encoder():
    for encoder in (True, False):
        model = model_of(
            1, encoder=encoder, norm="none", dropout=0.0, input_dropout=0.5, metric="fixed"
        ).train()
        zeros = torch.zeros_like(X)
        assert torch.equal(model(zeros, EDGE_INDEX), model(zeros, EDGE_INDEX))
        assert not torch.equal(model(X, EDGE_INDEX), model(X, EDGE_INDEX))


# -- construction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("size", [0, -1])
def test_model_refuses_sizes_that_are_not_positive(position, size):
    sizes = [4, 8, 3, 2]
    sizes[position] = size
    name = ("in_channels", "hidden_channels", "out_channels", "num_layers")[position]
    with pytest.raises(ConfigError, match=rf"{name} must be positive \(got {size}\)"):
        ARGNN(*sizes)


def test_model_names_the_option_that_was_meant():
    with pytest.raises(ConfigError, match="unknown option 'self_pth' of argnn; did you mean 'self"):
        ARGNN(4, 8, 3, self_pth=False)
    with pytest.raises(ConfigError, match="unknown preset 'papr'; did you mean 'paper'"):
        ARGNN(4, 8, 3, preset="papr")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"modulation": "vector"}, "modulation"),
        ({"direction": "left"}, "direction"),
        ({"normalization": "mean"}, "normalization"),
        ({"neighbor_norm": "other"}, "neighbor_norm"),
        ({"metric": "learned"}, "metric"),
        ({"metric_init": "zeros"}, "metric_init"),
        ({"metric_layers": 4}, "metric_layers"),
        ({"metric_hidden": 0}, "metric_hidden"),
        ({"metric_value": -1.0, "metric": "fixed"}, "metric_value"),
        ({"metric_start": -1.0}, "metric_start"),
        ({"metric_floor": -1.0}, "metric_floor"),
        ({"hops": 0}, "hops"),
        ({"hops": 2, "modulation": "scalar"}, "hops"),
        ({"eps0": 2.0}, "eps0"),
        ({"norm": "instance"}, "norm"),
        ({"jump": "first"}, "jump"),
        ({"head": "mlp"}, "head"),
        ({"head": "conv", "jump": "cat"}, "head"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": -0.1}, "dropout"),
        ({"input_dropout": float("nan")}, "input_dropout"),
    ],
    ids=str,
)
def test_model_refuses_impossible_switches_by_their_name_and_as_the_users_error(options, name):
    with pytest.raises(ArgnnError, match=name):
        ARGNN(4, 8, 3, **options)


def test_model_repr_shows_its_layers():
    text = repr(ARGNN(4, 8, 3, 2))
    assert text.startswith("ARGNN(")
    assert "2 x ARConv(8, 8, modulation='operator', direction='undirected'" in text
