"""The contract of every model in the registry: a new entry is tested without a new line here."""

import copy
import inspect
import math
from dataclasses import asdict, fields
from importlib.metadata import EntryPoint

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from argnn.errors import ConfigError
from argnn.nn import (
    ARGNN,
    MODELS,
    PRESETS,
    AbstractNodeModel,
    LinkModel,
    model_class,
    model_name,
    models,
)
from argnn.registry import resolve
from argnn.train import LinkPrediction, NodeClassification, TrainConfig, fit

IN, HIDDEN, OUT = 5, 8, 3
NUM_NODES = 12
TRAINING_SETTINGS = {field.name for field in fields(TrainConfig)}


@pytest.fixture(autouse=True)
def _one_thread():
    """Two threads on networks this small spend their time waiting for each other."""
    torch.set_num_threads(1)


every_model = pytest.mark.parametrize("name", MODELS)


def toy(dtype=torch.float32):
    """A random undirected graph whose last node is isolated."""
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randint(0, NUM_NODES - 1, (2, 24), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    edge_index = torch.unique(torch.cat([pairs, pairs.flip(0)], dim=1), dim=1)
    x = torch.randn(NUM_NODES, IN, generator=generator, dtype=torch.float64).to(dtype)
    return Data(x=x, edge_index=edge_index, y=torch.arange(NUM_NODES) % OUT)


def build(name, seed=0, **options):
    torch.manual_seed(seed)
    return MODELS[name](
        **{"in_channels": IN, "hidden_channels": HIDDEN, "out_channels": OUT, **options}
    )


def nudged(model):
    """Every parameter moved a little, as after some training."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(0.1 * noise.to(parameter))
    return model


@every_model
def test_registered_name_finds_the_model_and_says_where_it_comes_from(name):
    model = resolve(name.upper(), MODELS, "model")
    assert issubclass(model, AbstractNodeModel)
    assert model.citation.strip()
    assert model.space.strip()
    assert inspect.getdoc(model)


@every_model
def test_search_space_values_are_accepted_by_the_model_or_the_training(name):
    space = MODELS[name].search_space
    assert space
    for key, values in space.items():
        assert isinstance(values, list)
        assert len(set(values)) == len(values) > 0
        for value in values:
            if key in TRAINING_SETTINGS:
                TrainConfig(**{key: value})
            else:
                build(name, **{key: value})


every_rival = pytest.mark.parametrize("name", [name for name in MODELS if name != "argnn"])


@every_rival
def test_search_space_of_a_rival_has_the_widths_and_penalties_of_argnn(name):
    space, argnn = MODELS[name].search_space, MODELS["argnn"].search_space
    for key in ("hidden_channels", "input_dropout", "weight_decay"):
        assert set(argnn[key]) <= set(space[key])
    assert min(space["dropout"]) == min(argnn["dropout"])
    assert max(space["dropout"]) == max(argnn["dropout"])


def training_scores(name, **options):
    """Scores in training, the same numbers drawn every time, of a model without other dropout."""
    graph, model = toy(), build(name, **{"dropout": 0.0, **options})
    torch.manual_seed(2)
    return model(graph.x, graph.edge_index).detach()


@every_rival
def test_input_dropout_acts_on_the_node_features_in_training(name):
    graph = toy()
    with_it, without = build(name, input_dropout=0.9), build(name, input_dropout=0.0)
    assert all(torch.equal(a, b) for a, b in zip(*map(values, (with_it, without)), strict=True))
    scores = (model.eval()(graph.x, graph.edge_index) for model in (with_it, without))
    assert torch.equal(*scores)
    changed = training_scores(name, input_dropout=0.9) - training_scores(name, input_dropout=0.0)
    assert changed.abs().max() > 1e-3


def values(model):
    return list(model.state_dict().values())


@every_rival
def test_usual_input_dropout_is_none_or_that_of_the_hidden_layers(name):
    usual = inspect.signature(MODELS[name]).parameters["input_dropout"].default
    assert usual in (0.0, None)
    same = 0.5 if usual is None else 0.0
    expected = training_scores(name, dropout=0.5)
    assert torch.equal(training_scores(name, dropout=0.5, input_dropout=same), expected)
    other = training_scores(name, dropout=0.5, input_dropout=0.5 - same)
    assert not torch.equal(other, expected)


@every_model
def test_model_learns_one_step_on_every_parameter(name):
    graph, model = toy(), build(name)
    before = copy.deepcopy(model.state_dict())
    half = torch.arange(NUM_NODES) < 6
    task = NodeClassification(graph.y, half, ~half)
    result = fit(model, graph, task, TrainConfig(epochs=1, lr=0.01))
    assert result.epochs_run == 1
    assert [n for n, p in model.named_parameters() if p.grad is None] == []
    assert any(not torch.equal(t, before[n]) for n, t in model.state_dict().items())


@every_model
def test_model_lowers_its_training_loss(name):
    graph, model = toy(), build(name, dropout=0.0)
    half = torch.arange(NUM_NODES) < 6
    task = NodeClassification(graph.y, half, ~half)
    losses = []  # of evaluations: edges that are dropped make those of the training go up and down

    @torch.no_grad()
    def note(_):
        scores = model.eval()(graph.x, graph.edge_index)
        losses.append(float(F.cross_entropy(scores[half], graph.y[half])))
        model.train()

    fit(model, graph, task, TrainConfig(epochs=30, lr=0.02), on_epoch=note)
    assert min(losses[-5:]) < losses[0]


@every_model
def test_model_learns_one_step_of_predicting_links(name):
    """With the decoder and the options that it names for them, from a part of the edges."""
    graph, kind = toy(), MODELS[name]
    encoder = build(name, out_channels=HIDDEN, **kind.link_options)
    model = LinkModel(encoder, kind.link_decoder)
    pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    hidden, known = pairs[:, :3], pairs[:, 3:]
    non_edges = torch.tensor([[0, 1, 2], [NUM_NODES - 1] * 3])
    task = LinkPrediction(known, hidden, non_edges, NUM_NODES)
    visible = Data(x=graph.x, edge_index=torch.cat([known, known.flip(0)], dim=1))
    result = fit(model, visible, task, TrainConfig(epochs=1, lr=0.01))
    assert math.isfinite(result.history[0].loss)
    assert [n for n, p in model.named_parameters() if p.grad is None] == []


@every_model
def test_model_scores_and_metrics_have_the_stated_shapes(name):
    graph, model = toy(), build(name).eval()
    scores, metrics = model.forward_with_metric(graph.x, graph.edge_index)
    assert scores.shape == (NUM_NODES, OUT)
    assert scores.dtype == graph.x.dtype
    assert torch.equal(scores, model(graph.x, graph.edge_index))
    assert all(g.dim() == 2 and g.size(0) == NUM_NODES and (g > 0).all() for g in metrics)
    assert (model.in_channels, model.out_channels) == (IN, OUT)
    own = {id(p) for p in model.parameters()}
    assert all(id(p) in own for p in model.metric_parameters())


#: Parts of each model whose parameters are encoder or head, where it has such parts.
ENCODER_HEAD_PARTS = {
    "argnn": {"encoder", "encoder_norm", "head"},
    "cusp": {"lins", "head"},
    "curvdrop": {"head"},
    "fagcn": {"encoder", "head"},
    "gnrf": {"encoder", "head"},
    "gprgnn": {"lins"},
    "h2gcn": {"encoder", "head"},
    "hgat": {"classifier"},
    "hgcn": {"classifier"},
    "kappa-gcn": {"classifier"},
    "linkx": {"edge_lin", "node_mlp", "final_mlp"},
    "q-gcn": {"classifier"},
}


@every_model
def test_every_parameter_is_in_one_group(name):
    model = build(name)
    groups = model.parameter_groups()
    assert list(groups) == [parameter for parameter, _ in model.named_parameters()]
    assert set(groups.values()) <= {"metric", "layers", "encoder_head"}
    metric = {id(p) for p in model.metric_parameters()}
    assert {n for n, p in model.named_parameters() if id(p) in metric} == {
        n for n, group in groups.items() if group == "metric"
    }
    outer = {n.partition(".")[0] for n, group in groups.items() if group == "encoder_head"}
    assert outer == ENCODER_HEAD_PARTS.get(name, set())


@every_model
def test_the_decoder_of_links_is_a_head_and_the_encoder_keeps_its_groups(name):
    encoder = build(name, out_channels=HIDDEN, **MODELS[name].link_options)
    model = LinkModel(encoder, "cosine")
    groups = model.parameter_groups()
    assert list(groups) == [parameter for parameter, _ in model.named_parameters()]
    inner = {f"encoder.{n}": group for n, group in encoder.parameter_groups().items()}
    assert groups == {**inner, "decoder.scale": "encoder_head"}


@every_model
@pytest.mark.parametrize("seed", [0, 1])
def test_model_is_permutation_equivariant_and_edge_order_invariant(name, seed):
    graph, model = toy(torch.float64), nudged(build(name).double()).eval()
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(NUM_NODES, generator=generator)
    shuffle = torch.randperm(graph.edge_index.size(1), generator=generator)
    expected = model(graph.x, graph.edge_index)[order]
    with torch.no_grad():
        for parameter in model.node_parameters():  # the rows go with their nodes
            parameter.copy_(parameter[order])
    moved = model(graph.x[order], torch.argsort(order)[graph.edge_index][:, shuffle])
    torch.testing.assert_close(moved, expected, rtol=1e-5, atol=1e-5)


@every_model
def test_model_is_finite_with_isolated_nodes_no_edges_and_one_node(name):
    graph = toy()
    none = torch.empty(2, 0, dtype=torch.int64)
    for x, edge_index in (
        (graph.x, graph.edge_index),
        (graph.x, none),
        (graph.x[:1], none),
        (torch.zeros_like(graph.x), graph.edge_index),
        (torch.ones_like(graph.x), graph.edge_index),
    ):
        model = nudged(build(name)).eval()
        scores = model(x, edge_index)
        assert scores.isfinite().all()
        scores.square().sum().backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@every_model
def test_model_state_dict_round_trip(name):
    graph, first, second = toy(), nudged(build(name)).eval(), build(name, seed=1).eval()
    expected = first(graph.x, graph.edge_index)
    assert not torch.equal(second(graph.x, graph.edge_index), expected)
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(graph.x, graph.edge_index), expected)


@every_model
def test_model_repeats_with_the_seed_and_reset_draws_anew(name):
    graph = toy()
    first, second = build(name).eval(), build(name).eval()
    expected = first(graph.x, graph.edge_index)
    assert torch.equal(second(graph.x, graph.edge_index), expected)
    torch.manual_seed(3)
    first.reset_parameters()
    redrawn = first(graph.x, graph.edge_index)
    assert not torch.equal(redrawn, expected)
    nudged(first)
    torch.manual_seed(3)
    first.reset_parameters()
    assert torch.equal(first(graph.x, graph.edge_index), redrawn)


@every_model
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_model_has_every_depth(name, num_layers):
    graph, model = toy(), build(name, num_layers=num_layers).eval()
    assert model(graph.x, graph.edge_index).shape == (NUM_NODES, OUT)


@every_model
def test_model_evaluates_without_chance(name):
    graph, model = toy(), build(name).eval()
    assert torch.equal(model(graph.x, graph.edge_index), model(graph.x, graph.edge_index))


# -- what a class says of itself ------------------------------------------------------------------


@every_model
def test_completed_options_leave_nothing_to_a_default_and_build_the_model(name):
    kind = MODELS[name]
    assert "default" in kind.preset_sizes
    for preset in kind.preset_sizes:
        options = kind.completed_options(preset, {"num_layers": 1, "input_dropout": 0.25})
        assert options.keys() == kind.option_types().keys()
        assert (options["num_layers"], options["input_dropout"]) == (1, 0.25)
        assert options["hidden_channels"] == kind.preset_sizes[preset]["hidden_channels"]
        kind(IN, out_channels=OUT, **options)


@every_model
def test_model_that_learns_a_metric_gives_one_per_layer_and_others_give_none(name):
    graph, model = toy(), build(name, num_layers=2).eval()
    metrics = model.forward_with_metric(graph.x, graph.edge_index)[1]
    assert len(metrics) == (2 if model.learns_metric else 0)


def test_options_of_a_signature_have_its_names_types_and_defaults():
    assert Mine.option_types() == {"hidden_channels": int, "num_layers": int, "slope": float | None}
    assert Mine.completed_options("default", {}) == {
        "hidden_channels": 64,
        "num_layers": 2,
        "slope": None,
    }


def test_options_of_argnn_are_sizes_and_switches_of_the_preset():
    options = ARGNN.completed_options("paper", {"hops": 1, "hidden_channels": 7})
    assert options == {"hidden_channels": 7, "num_layers": 3, **asdict(PRESETS["paper"])}
    assert ARGNN.option_types()["metric_ceiling"] == float | None
    with pytest.raises(ConfigError, match="unknown option 'hop' of argnn"):
        ARGNN.completed_options("paper", {"hop": 1})


# -- by name, by class, by entry point ------------------------------------------------------------


class Mine(AbstractNodeModel):
    """A model of another package."""

    citation, space, search_space = "nobody", "Euclidean", {"lr": [0.01]}

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        *,
        slope: float | None = None,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.lin = torch.nn.Linear(in_channels, out_channels)

    def forward_with_metric(self, x, edge_index):
        return self.lin(x), []


class NoForward(AbstractNodeModel):
    """A model that lacks what every model must have."""


NOT_A_MODEL = 3


@pytest.fixture
def offered(monkeypatch):
    """Entry points of other packages, by name."""
    found = {}

    def points(group):
        assert group == "argnn.models"
        return [EntryPoint(name, value, group) for name, value in found.items()]

    monkeypatch.setattr(models, "entry_points", points)
    return found


@every_model
def test_registered_model_is_found_by_any_spelling_of_its_name_and_by_its_class(name, monkeypatch):
    monkeypatch.delattr(models, "entry_points")  # they are not even looked at
    for given in (name, name.upper(), name.replace("-", "_"), MODELS[name]):
        assert model_class(given) is MODELS[name]
        assert model_name(given) == name


def test_class_outside_of_the_registry_is_taken_as_it_is():
    assert model_class(Mine) is Mine
    assert model_name(Mine) == f"{__name__}.Mine"
    model = model_class(Mine)(IN, HIDDEN, OUT)
    before = model.lin.weight.clone()
    model.reset_parameters()
    assert not torch.equal(model.lin.weight, before)


def test_entry_point_offers_a_model_by_name(offered):
    offered["my-model"] = f"{__name__}:Mine"
    assert model_class("My_Model") is Mine
    assert model_name("My_Model") == "my-model"


def test_entry_point_cannot_take_the_name_of_a_registered_model(offered):
    offered["GCN"] = f"{__name__}:Mine"
    assert model_class("GCN") is MODELS["gcn"]


def test_unknown_model_is_an_error_that_lists_entry_points_too(offered):
    with pytest.raises(ConfigError, match="unknown model 'gnc'; did you mean 'gcn'"):
        model_class("gnc")
    offered["my-model"] = f"{__name__}:Mine"
    with pytest.raises(ConfigError, match="did you mean 'my-model'"):
        model_class("my-modle")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_package_of_anybody:Model", "cannot be loaded .ModuleNotFoundError: No module"),
        (f"{__name__}:Missing", "cannot be loaded .AttributeError"),
        (f"{__name__}:NOT_A_MODEL", "must be a subclass of AbstractNodeModel .got 3"),
        (f"{__name__}:NoForward", "must have citation, space, search_space, forward_with_metric"),
    ],
)
def test_broken_entry_point_is_one_clear_error(offered, value, message):
    offered["my-model"] = value
    with pytest.raises(ConfigError, match=message) as caught:
        model_class("my-model")
    assert f"the model 'my-model' of the entry point {value}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [int, None, Mine(IN, HIDDEN, OUT)])
def test_anything_else_is_not_a_model(wrong):
    with pytest.raises(ConfigError, match="must be a subclass of AbstractNodeModel"):
        model_class(wrong)
