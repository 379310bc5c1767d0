import dataclasses

import pytest
import torch
from tests.train.cases import model_of, task_of, two_blocks

from argnn.errors import ConfigError
from argnn.train import TrainConfig, fit, train_config
from argnn.train.config import OPTIMIZERS

GRAPH = two_blocks()
GROUPS = ("metric", "layers", "encoder_head")


def in_float64():
    graph = GRAPH.clone()
    graph.x = graph.x.double()
    return graph, model_of(graph, dropout=0.0, input_dropout=0.0, metric_spread=1.0).double()


def first_step(optimizer, parameter, gradient, lr, decay, eps=1e-8):
    """The first step from the papers' formulas: both moments are those of one gradient."""
    if optimizer == "adam":
        gradient = gradient + decay * parameter
    else:
        parameter = parameter - lr * decay * parameter
    return parameter - lr * gradient / (gradient.square().sqrt() + eps)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
@pytest.mark.parametrize("free", [None, *GROUPS])
def test_a_group_with_weight_decay_0_is_not_decayed(optimizer, free):
    graph, model = in_float64()
    model.fit_to_graph(graph.edge_index, graph.x.size(0))
    task = task_of(graph)
    task.loss(model, model.train()(graph.x, graph.edge_index)).backward()
    decays = {name: 0.0 if name == free else 0.3 for name in GROUPS}
    expected = {
        name: first_step(
            optimizer, p.detach(), p.grad, 0.01, decays[model.parameter_groups()[name]]
        )
        for name, p in model.named_parameters()
    }
    graph, trained = in_float64()
    own = {} if free is None else {f"{free}_weight_decay": 0.0}
    config = TrainConfig(epochs=1, lr=0.01, weight_decay=0.3, optimizer=optimizer, **own)
    fit(trained, graph, task, config)
    for name, parameter in trained.named_parameters():
        torch.testing.assert_close(parameter.detach(), expected[name], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_may_have_any_weight_decay_of_its_own(group):
    def sizes(**settings):
        graph, model = in_float64()
        config = TrainConfig(epochs=1, lr=0.1, optimizer="adamw", **settings)
        fit(model, graph, task_of(graph), config)
        found = dict.fromkeys(GROUPS, 0.0)
        for name, parameter in model.named_parameters():
            found[model.parameter_groups()[name]] += parameter.square().sum().item()
        return found

    usual, own = sizes(weight_decay=0.0), sizes(weight_decay=0.0, **{f"{group}_weight_decay": 5.0})
    assert own[group] < 0.6 * usual[group]
    others = [name for name in GROUPS if name != group]
    assert [own[name] for name in others] == [usual[name] for name in others]


def test_all_groups_with_the_common_weight_decay_give_the_bits_of_one_group():
    models = []
    for own in ({}, {f"{name}_weight_decay": 0.01 for name in GROUPS}):
        models.append(model_of(GRAPH))
        config = TrainConfig(epochs=5, weight_decay=0.01, **own)
        fit(models[-1], GRAPH, task_of(GRAPH), config)
    first, second = (list(model.parameters()) for model in models)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_a_run_of_every_optimizer_can_be_continued(optimizer):
    config = TrainConfig(epochs=6, checkpoint_every=3, optimizer=optimizer, layers_weight_decay=0.1)
    snapshots = []
    model, other = model_of(GRAPH), model_of(GRAPH, seed=1)
    fit(model, GRAPH, task_of(GRAPH), config, save=snapshots.append)
    fit(other, GRAPH, task_of(GRAPH), config, resume_from=snapshots[0])
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_names_are_found_whatever_their_case():
    assert TrainConfig(optimizer="AdamW").optimizer == "adamw"


def test_unknown_name_is_answered_with_the_nearest_ones():
    with pytest.raises(ConfigError, match=r"unknown optimizer 'adm'; did you mean 'adam'"):
        train_config("default", {"optimizer": "adm"})


@pytest.mark.parametrize("group", GROUPS)
def test_weight_decay_of_a_group_must_be_finite_and_not_negative(group):
    name = f"{group}_weight_decay"
    with pytest.raises(ConfigError, match=f"{name} must be finite and not negative"):
        TrainConfig(**{name: -0.1})


def test_records_leave_later_settings_out_at_their_default():
    config = TrainConfig()
    judging = {"select", "class_weight", "threshold"}
    batching = {"batching", "parts", "clusters_per_batch", "halo", "partition"}
    left_out = {"optimizer", *judging, *batching, *(f"{group}_weight_decay" for group in GROUPS)}
    assert set(dataclasses.asdict(config)) - set(config.to_json()) == left_out


def test_records_restore_the_settings():
    config = TrainConfig(optimizer="adamw", metric_weight_decay=0.0, lr=0.1)
    assert {"optimizer", "metric_weight_decay"} <= set(config.to_json())
    assert TrainConfig(**config.to_json()) == config
