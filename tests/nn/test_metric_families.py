"""Every source and shape of metrics: limits, gradients, symmetry, bounds, checkpoints, parts."""

import copy

import pytest
import torch
from tests.train.cases import task_of, two_blocks

from argnn import functional as AF
from argnn.errors import ConfigError
from argnn.nn import (
    ARGNN,
    METRICS,
    ARConv,
    LinkModel,
    MagnitudeRegularizer,
    RicciRegularizer,
    SmoothnessRegularizer,
)
from argnn.nn.metric import METRIC_SHAPES, MetricNet, SharedMetric
from argnn.nn.metric.shapes.full import MOST_CHANNELS
from argnn.settings.options import recorded_options, resolve_options
from argnn.train import TrainConfig, fit

from .cases import EDGES, NUM_NODES, edge_tensor, features, perturbed, renamed

IN, HIDDEN, OUT = 5, 6, 3
X = features(NUM_NODES, IN)
GRAPH = edge_tensor(EDGES)
SOURCES = [name for name in METRICS if name != "fixed"]
FORMS = {
    "operator": {"modulation": "operator"},
    "scalar": {"modulation": "scalar", "attention": True},
}
every_source = pytest.mark.parametrize("source", SOURCES)
every_shape = pytest.mark.parametrize("shape", METRIC_SHAPES)
every_form = pytest.mark.parametrize("form", FORMS)


def model_of(source="both", shape="diagonal", form="operator", **options):
    if (source, form) == ("message", "scalar"):
        pytest.skip("refused: tests/nn/test_message_metric.py")
    torch.manual_seed(0)
    kind = {"metric": source, "metric_shape": shape, **FORMS[form]}
    options = {"metric_block": 4, "metric_groups": 3, "metric_spread": 1.0, **kind, **options}
    model = ARGNN(IN, HIDDEN, OUT, **{"num_layers": 2, **options}).double()
    model.fit_to_graph(GRAPH, NUM_NODES)
    return model


def moved(model, scale=0.2):
    """The model with every parameter moved, inside its bounds."""
    perturbed(model, scale=scale)
    model.constrain()
    return model


# -- limits ---------------------------------------------------------------------------------------


@every_form
@every_source
def test_low_rank_and_full_with_free_numbers_of_zero_are_diagonal(source, form):
    plain = moved(model_of(source, form=form)).eval()
    for shape in ("lowrank", "full"):
        model = model_of(source, shape, form).eval()
        state = plain.state_dict()
        for name, value in model.state_dict().items():
            if ".metric_net." not in name or name not in state:
                if ".metric_net." in name:  # the free numbers of nodes
                    state[name] = torch.zeros_like(value)
                continue
            wide = torch.zeros_like(value)
            if value.shape == state[name].shape:
                wide = state[name]
            elif "lins" in name:  # the last layer: a row for each number
                wide[: len(state[name])] = state[name]
            else:  # a row for each group, a column for each number
                wide[:, : state[name].size(1)] = state[name]
            state[name] = wide
        model.load_state_dict(state)
        torch.testing.assert_close(model(X, GRAPH), plain(X, GRAPH), rtol=1e-8, atol=1e-8)


@every_form
@every_source
def test_blocks_of_one_channel_are_diagonal_and_one_block_is_scalar(source, form):
    for block, shape in ((1, "diagonal"), (HIDDEN, "scalar"), (1000, "scalar")):
        model = moved(model_of(source, shape, form)).eval()
        blocks = model_of(source, "block", form, metric_block=block).eval()
        blocks.load_state_dict(model.state_dict())
        assert torch.equal(blocks(X, GRAPH), model(X, GRAPH))


@every_form
@every_source
def test_scalar_metric_at_its_start_is_a_fixed_one(source, form):
    """A network without spread, groups and nodes all give one number to every node."""
    options = {"metric_spread": 0.0, "metric_start": 0.7}
    learned = model_of(source, "scalar", form, **options).eval()
    fixed = model_of("fixed", "diagonal", form, metric_value=0.7).eval()
    own = {k: v for k, v in learned.state_dict().items() if ".metric_net." not in k}
    fixed.load_state_dict(own)
    torch.testing.assert_close(learned(X, GRAPH), fixed(X, GRAPH), rtol=1e-6, atol=1e-6)


def test_uneven_blocks_have_the_number_of_their_channel():
    net = METRICS["both"].build("both", IN, 7, shape="block", block=3, spread=1.0, init="uniform")
    g = net(X.float(), GRAPH)
    assert g.shape == (NUM_NODES, 7)
    assert net.num_numbers == 3
    assert torch.equal(g[:, [0, 0, 3, 3, 6]], g[:, [1, 2, 4, 5, 6]])
    assert not torch.equal(g[:, 0], g[:, 3])


# -- gradients and symmetry -----------------------------------------------------------------------


@every_form
@every_shape
@every_source
def test_gradients_of_scores_and_penalties(source, shape, form):
    model = moved(model_of(source, shape, form, num_layers=1, norm="none"), scale=0.1)
    model.eval()
    names = [n for n, p in model.named_parameters() if ".metric_net." in n]
    values = [model.get_parameter(name).detach().clone() for name in names]
    penalties = [RicciRegularizer(1.0), SmoothnessRegularizer(1.0), MagnitudeRegularizer(1.0)]

    def of_metric(*numbers):
        state = dict(zip(names, numbers, strict=True))
        scores, metrics = torch.func.functional_call(
            _Both(model), {f"model.{k}": v for k, v in state.items()}, (X, GRAPH)
        )
        return scores, sum(penalty(metrics, GRAPH) for penalty in penalties)

    inputs = [value.requires_grad_() for value in values]
    assert torch.autograd.gradcheck(of_metric, inputs, atol=1e-5, rtol=1e-4, fast_mode=True)


class _Both(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, edges):
        return self.model.forward_with_metric(x, edges)


@every_shape
@pytest.mark.parametrize("source", ["both", "shared"])
def test_renamed_nodes_rename_the_scores(source, shape):
    model = moved(model_of(source, shape)).eval()
    x, edges, order = renamed(X, GRAPH, seed=3)
    torch.testing.assert_close(model(x, edges), model(X, GRAPH)[order], rtol=1e-9, atol=1e-9)


@every_shape
def test_renamed_nodes_take_their_free_metric_with_them(shape):
    model = moved(model_of("free", shape)).eval()
    x, edges, order = renamed(X, GRAPH, seed=3)
    expected = model(X, GRAPH)[order]
    with torch.no_grad():
        for parameter in model.node_parameters():
            parameter.copy_(parameter[order])
    torch.testing.assert_close(model(x, edges), expected, rtol=1e-9, atol=1e-9)


# -- training -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        *(("both", shape) for shape in METRIC_SHAPES),
        *(("shared", "diagonal"), ("free", "diagonal"), ("free", "full")),
        *(
            pytest.param(source, shape, marks=pytest.mark.torture)
            for source in ("features", "structure", "message", "shared", "free")
            for shape in METRIC_SHAPES
        ),
    ],
)
def test_metrics_are_positive_definite_in_all_of_200_epochs(source, shape):
    graph = two_blocks(size=12)
    torch.manual_seed(0)
    model = ARGNN(graph.x.size(1), 4, 2, 2, metric=source, metric_shape=shape, metric_groups=3)
    lowest = []

    def observe(epoch, outputs):
        metrics = model.forward_with_metric(graph.x, graph.edge_index)[1]
        lowest.append(min(float(AF.metric_eigenvalues(g.double()).min()) for g in metrics))

    config = TrainConfig(
        epochs=200,
        lr=0.05,
        ricci_weight=0.01,
        smoothness_weight=0.01,
        evaluate_every=10,
        optimizer="riemannian-adam" if source == "free" else "adam",
    )
    fit(model, graph, task_of(graph), config, observe=observe)
    assert len(lowest) == 20
    # The floor is 1e-6; eigenvalues of float32 entries of size s are exact to about 1e-7 * s.
    assert min(lowest) > 0
    trained = model.forward_with_metric(graph.x, graph.edge_index)[1][-1]
    assert (AF.metric_eigenvalues(trained.double()) - 0.5).abs().max() > 0.05  # it has moved


@every_shape
@every_source
def test_state_restores_the_model(source, shape):
    model = moved(model_of(source, shape)).eval()
    other = ARGNN(
        IN, HIDDEN, OUT, 2, metric=source, metric_shape=shape, metric_block=4, metric_groups=3
    )
    other.double().load_state_dict(model.state_dict())
    assert torch.equal(other.eval()(X, GRAPH), model(X, GRAPH))
    assert torch.equal(copy.deepcopy(model)(X, GRAPH), model(X, GRAPH))


@every_shape
@every_source
def test_metric_has_its_own_group_of_parameters(source, shape):
    model = model_of(source, shape)
    metric = {name for name, group in model.parameter_groups().items() if group == "metric"}
    assert metric == {name for name, _ in model.named_parameters() if ".metric_net." in name}
    assert metric


@every_shape
def test_reset_draws_the_start_again(shape):
    model = model_of("free", shape, metric_init="uniform")
    before = [p.detach().clone() for p in model.node_parameters()]
    moved(model)
    model.reset_parameters()
    after = model.node_parameters()
    assert [p.shape for p in before] == [p.shape for p in after]
    assert (after[0] >= 0.25).all()
    assert (after[0] <= 0.75).all()


# -- graphs, parts and pairs ----------------------------------------------------------------------


def test_free_metric_fits_its_graph_only():
    model = model_of("free")
    assert model.node_parameters()
    with pytest.raises(ValueError, match="each of the 9 nodes of its training graph"):
        model(X[:-1], GRAPH[:, (GRAPH < NUM_NODES - 1).all(0)])


def test_shared_metric_is_for_any_graph_and_similar_nodes_share_it():
    """The corners of a square are one group, also in a graph that was never seen."""
    square = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    star = torch.tensor([[4, 4, 4, 4], [5, 6, 7, 8]])
    both = torch.cat([square, star], dim=1)
    both = torch.cat([both, both.flip(0)], dim=1)
    net = SharedMetric(2, groups=3).double()
    net.fit_to_graph(both, 9)
    perturbed(net)
    group = net.group(torch.ones(9, 1), both)
    assert [len(set(group[a:b].tolist())) for a, b in ((0, 4), (4, 5), (5, 9))] == [1, 1, 1]
    assert len(set(group.tolist())) == 3
    alone = torch.cat([square, square.flip(0)], dim=1)
    torch.testing.assert_close(net(torch.ones(4, 1), alone), net(torch.ones(9, 1), both)[:4])


@every_shape
@every_form
def test_pairs_are_scored_under_the_mean_metric(shape, form):
    torch.manual_seed(0)
    options = {"metric": "both", "metric_shape": shape, "metric_spread": 1.0, **FORMS[form]}
    encoder = ARGNN(IN, HIDDEN, HIDDEN, 2, **options)
    model = moved(LinkModel(encoder, "metric").double()).eval()
    pairs = torch.tensor([[0, 1, 2], [3, 3, 4]])
    embedding, metrics = model.forward_with_metric(X, GRAPH)
    points = embedding[:, :HIDDEN]
    squares = [
        (points[a] - points[b]) @ (_matrix(metrics[-1], a) + _matrix(metrics[-1], b)) / 2
        @ (points[a] - points[b])
        for a, b in pairs.t().tolist()
    ]  # fmt: skip
    fermi = model.decoder.fermi_dirac
    expected = (fermi.radius - torch.stack(squares) / HIDDEN) * torch.exp(-fermi.log_temperature)
    torch.testing.assert_close(model.pair_scores(embedding, pairs), expected, rtol=1e-9, atol=1e-9)
    assert model.constrain() is None
    assert model.positive_parameters() == []


def _matrix(g, node):
    if g.dim() == 2:
        return torch.diag(g[node])
    return torch.diag(g[node, 0]) + g[node, 1:].t() @ g[node, 1:]


@every_shape
def test_convolution_takes_a_given_metric_and_checks_its_shape(shape):
    conv = ARConv(IN, 4, metric="both", modulation="operator", metric_options={"shape": shape})
    x = X.float()
    g = conv.metric(x, GRAPH)
    assert torch.equal(conv(x, GRAPH, g=g), conv(x, GRAPH))
    with pytest.raises(ValueError, match="the metric must have shape"):
        conv(x, GRAPH, g=g[..., :-1])


# -- options --------------------------------------------------------------------------------------


def test_shape_in_place_of_a_source_is_answered_with_the_right_option():
    with pytest.raises(ConfigError, match="for the shape set metric_shape=lowrank"):
        resolve_options("argnn", "default", {"metric": "lowrank"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric_shape": "round"}, "metric_shape must be one of diagonal, scalar"),
        ({"metric_rank": 0}, "metric_rank must be positive"),
        ({"metric_block": 0}, "metric_block must be positive"),
        ({"metric_groups": 0}, "metric_groups must be positive"),
        ({"metric": "free", "metric_init": "degree"}, "init of a free metric must be not 'degree'"),
        (
            {"metric_shape": "full", "hidden_channels": MOST_CHANNELS + 1},
            "at most 64 for full metrics .hidden_channels.; lowrank takes more",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(options, message):
    with pytest.raises(ConfigError, match=message):
        resolve_options("argnn", "default", options)


def test_records_leave_the_new_options_out_at_their_default():
    usual = resolve_options("argnn", "default")
    new = {"metric_shape", "metric_rank", "metric_block", "metric_groups"}
    assert new <= set(usual)
    assert not new & set(recorded_options("argnn", usual))
    changed = resolve_options("argnn", "default", {"metric_shape": "lowrank"})
    assert recorded_options("argnn", changed)["metric_shape"] == "lowrank"


def test_factor_starts_small_and_has_a_gradient():
    torch.manual_seed(0)
    net = MetricNet(IN, 32, shape="lowrank", rank=3, init="ones", start=0.5)
    g = net(X.float(), GRAPH)
    lengths = g[:, 1:].square().sum(-1)
    assert (lengths > 0.01).all()
    assert (lengths < 0.15).all()
    AF.modulate(torch.ones(NUM_NODES, 32), g).square().sum().backward()
    assert net.lins[-1].bias.grad[32:].abs().min() > 0
