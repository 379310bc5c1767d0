"""Numbers and several labels: losses, scores, and what stays unseen."""

import numpy as np
import pytest
import torch
from sklearn import metrics as SK
from torch.nn import functional as F

from argnn.errors import ConfigError
from argnn.nn import MODELS
from argnn.settings.options import ModelSpec, resolve_options, seeded
from argnn.train import SELECTIONS, TrainConfig, fit
from argnn.train.scores import label_scores, multilabel_scores, regression_scores
from argnn.train.target_tasks import MultiLabel, NodeRegression, TargetRule
from planted_targets import parts, planted_values

from .cases import model_of, two_blocks

ANY = model_of(two_blocks())
NAMES = ["first", "second"]


def regression(targets, **options):
    masks = parts(len(targets))
    return NodeRegression(targets, masks["train_mask"], masks["val_mask"], NAMES, **options)


def labels(targets, **options):
    masks = parts(len(targets))
    return MultiLabel(targets, masks["train_mask"], masks["val_mask"], NAMES, **options)


def outputs_of(targets, seed=0):
    return torch.randn(*targets.shape, generator=torch.Generator().manual_seed(seed))


def test_numbers_are_standardised_by_the_training_nodes():
    targets = planted_values()[1] * torch.tensor([100.0, 0.01]) + 7
    task, train = regression(targets), parts(200)["train_mask"]
    mean, deviation = targets[train].mean(0), targets[train].std(0, correction=0)
    torch.testing.assert_close(torch.tensor(task.rule.center), mean)
    torch.testing.assert_close(torch.tensor(task.rule.scale), deviation)
    outputs = outputs_of(targets)
    expected = (outputs[train] - (targets[train] - mean) / deviation).square().mean()
    torch.testing.assert_close(task.loss(ANY, outputs), expected)
    # Outputs that are the standardised targets become the targets.
    torch.testing.assert_close(task.rule.finished((targets - mean) / deviation), targets)


def test_scores_of_numbers_are_those_of_scikit_learn():
    targets = planted_values()[1]
    task, val = regression(targets), parts(200)["val_mask"]
    outputs = outputs_of(targets)
    predicted = task.rule.finished(outputs)
    found = task.validate(ANY, outputs).score
    assert found == pytest.approx(SK.r2_score(targets[val], predicted[val]), rel=1e-5)
    scores = regression_scores(predicted[val], targets[val])
    assert scores.r2 == pytest.approx(SK.r2_score(targets[val], predicted[val]))
    assert scores.mae == pytest.approx(SK.mean_absolute_error(targets[val], predicted[val]))
    squared = SK.mean_squared_error(targets[val], predicted[val], multioutput="raw_values")
    assert scores.rmse == pytest.approx(np.sqrt(squared).mean())


def test_constant_numbers_have_no_r2():
    same = torch.ones(5, 1)
    assert regression_scores(torch.rand(5, 1), same).r2 is None


def test_losses_and_scores_of_labels_are_those_of_scikit_learn():
    targets = (planted_values()[1] > 0.4).float()
    masks = parts(200)
    outputs = outputs_of(targets)
    train, val = masks["train_mask"], masks["val_mask"]
    expected = F.binary_cross_entropy_with_logits(outputs[train], targets[train])
    torch.testing.assert_close(labels(targets).loss(ANY, outputs), expected)
    said, true = (outputs[val] > 0).int(), targets[val].int()
    wanted = {
        "average_precision": SK.average_precision_score(true, outputs[val], average="macro"),
        "f1_macro": SK.f1_score(true, said, average="macro"),
        "f1_micro": SK.f1_score(true, said, average="micro"),
    }
    scores = multilabel_scores(outputs[val], targets[val])
    for select, value in wanted.items():
        task = labels(targets).configured(TrainConfig(select=select))
        assert task.validate(ANY, outputs).score == pytest.approx(value), select
        assert getattr(scores, select) == pytest.approx(value), select
    single = label_scores(outputs[val], targets[val])
    assert single.recall == pytest.approx(SK.recall_score(true, said, average=None))
    assert single.support == true.sum(0).tolist()
    assert single.confusion is None


@pytest.mark.parametrize("make", [regression, labels])
def test_loss_is_the_chosen_score(make):
    targets = (planted_values()[1] > 0).float()
    task = make(targets).configured(TrainConfig(select="loss"))
    found = task.validate(ANY, outputs_of(targets))
    assert found.score == -found.loss


@pytest.mark.parametrize("make", [regression, labels])
def test_sample_weights_weigh_nodes(make):
    targets = (planted_values()[1] > 0).float()
    weights = torch.arange(200) % 3 + 1.0
    outputs, train = outputs_of(targets), parts(200)["train_mask"]
    task = make(targets)
    single = task.losses(outputs[train], task.train_labels).mean(1)
    expected = (single * weights[train]).sum() / weights[train].sum()
    torch.testing.assert_close(make(targets, sample_weight=weights).loss(ANY, outputs), expected)


@pytest.mark.parametrize("make", [regression, labels])
def test_targets_outside_training_and_validation_are_not_kept(make):
    targets = (planted_values()[1] > 0).float()
    changed = torch.where(parts(200)["test_mask"].unsqueeze(1), 1 - targets, targets)
    first, second = vars(make(targets)), vars(make(changed))
    assert first.keys() == second.keys()
    for name, value in first.items():
        same = torch.equal(value, second[name]) if isinstance(value, torch.Tensor) else None
        assert same if same is not None else value == second[name], name


def test_constant_targets_of_the_training_nodes_are_refused():
    targets = planted_values()[1].clone()
    targets[parts(200)["train_mask"], 1] = 3.0
    with pytest.raises(ConfigError, match="target second is 3 for all training nodes"):
        regression(targets)


def test_constant_validation_targets_have_no_r2():
    targets = planted_values()[1].clone()
    targets[parts(200)["val_mask"]] = 3.0
    with pytest.raises(ConfigError, match="no R²: choose by loss"):
        regression(targets).configured(TrainConfig(select="r2"))


def test_labels_of_no_validation_node_have_no_average_precision():
    targets = (planted_values()[1] > 0).float()
    targets[parts(200)["val_mask"]] = 0
    with pytest.raises(ConfigError, match="no average precision: choose by loss"):
        labels(targets).configured(TrainConfig())
    labels(targets).configured(TrainConfig(select="loss"))


@pytest.mark.parametrize("make", [regression, labels])
def test_a_score_that_is_not_defined_ends_the_training(make):
    """Also where the settings name no score, so that nothing was checked before."""
    targets = (planted_values()[1] > 0).float()
    targets[parts(200)["val_mask"]] = 0
    with pytest.raises(ConfigError, match="do not define the score that chooses the epoch"):
        quick_fit("mlp", make(targets), planted_values()[0], epochs=1)


def test_class_weights_and_homophily_belong_to_classes():
    task = regression(planted_values()[1])
    with pytest.raises(ConfigError, match="class_weight belongs to classes"):
        task.configured(TrainConfig(class_weight="balanced"))
    with pytest.raises(ConfigError, match="need classes, not task regression"):
        task.homophily(torch.zeros(2, 0, dtype=torch.int64))


def test_nodes_without_targets_are_refused():
    targets = planted_values()[1].clone()
    node = int(parts(200)["train_mask"].nonzero()[0])
    targets[node] = torch.nan
    with pytest.raises(ConfigError, match=f"train_mask selects node {node}, which has no label"):
        regression(targets)


@pytest.mark.parametrize("select", SELECTIONS["multilabel"])
def test_shuffled_labels_give_chance(select):
    """A fifth of the nodes has a label, and the outputs know nothing."""
    targets = (torch.arange(8000).view(4000, 2) // 2 % 5 == 0).float()
    outputs = outputs_of(targets)
    task = MultiLabel(targets, torch.arange(4000) < 2, torch.arange(4000) >= 2, NAMES).configured(
        TrainConfig(select=select)
    )
    found = task.validate(ANY, outputs).score
    if select != "loss":
        # F1 of a coin: 2 * 0.2 * 0.5 / 0.7; a random ranking has the share as its precision.
        chance = 0.2 if select == "average_precision" else 0.2 / 0.7
        assert found == pytest.approx(chance, abs=0.03)


def test_shuffled_numbers_give_no_r2():
    targets = planted_values(2000)[1]
    order = torch.randperm(2000, generator=torch.Generator().manual_seed(3))
    found = regression_scores(targets[order], targets).r2
    assert found == pytest.approx(-1, abs=0.15)  # two independent draws of the same numbers
    mean = targets.mean(0).expand(2000, 2)
    assert regression_scores(mean, targets).r2 == pytest.approx(0, abs=1e-6)


def quick_fit(name, task, graph, epochs, **options):
    options = resolve_options(name, "default", {"hidden_channels": 8, **options})
    with seeded(0):
        model = ModelSpec(name, options, in_channels=4, out_channels=2).build()
    config = TrainConfig(epochs=epochs, lr=0.02, weight_decay=0.0, seed=0)
    return fit(model, graph, task, config)


@pytest.mark.parametrize("kind", [regression, labels])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_method_learns_targets(name, kind):
    graph, values = planted_values(120)
    task = kind(values if kind is regression else (values > 0).float())
    result = quick_fit(name, task, graph, epochs=12)
    losses = [record.task_loss for record in result.history]
    assert min(losses[6:]) < losses[0]
    assert np.isfinite(result.val_score)


@pytest.mark.parametrize("name", ["argnn", "graphsage"])
def test_planted_numbers_are_found(name):
    graph, values = planted_values(400)
    result = quick_fit(name, regression(values), graph, 150, hidden_channels=32, dropout=0.0)
    assert result.val_score > 0.7


def test_rule_of_labels_gives_probabilities():
    rule = TargetRule("multilabel", NAMES, [0.0, 0.0], [1.0, 1.0])
    outputs = torch.tensor([[0.0, 2.0]])
    torch.testing.assert_close(rule.finished(outputs), torch.sigmoid(outputs))


def test_a_probability_of_one_half_is_a_label():
    """As estimators and ``predictions.csv`` have it; an output of exactly 0 was none in scores."""
    outputs, targets = torch.tensor([[0.0], [0.0], [-1.0]]), torch.tensor([[1.0], [1.0], [0.0]])
    scores = multilabel_scores(outputs, targets)
    assert (scores.f1_micro, scores.f1_macro) == (1, 1)
    assert label_scores(outputs, targets).recall == [1]


def test_a_single_label_has_one_line_of_scores():
    """The first line was that of the nodes without it."""
    outputs, targets = (
        torch.tensor([[2.0], [1.0], [-1.0], [-2.0]]),
        torch.tensor([[1.0], [0], [0], [0]]),
    )
    scores = label_scores(outputs, targets)
    assert (scores.precision, scores.recall, scores.support) == ([0.5], [1], [1])
    nobody = label_scores(-outputs.abs(), torch.zeros(4, 1))
    assert (nobody.precision, nobody.recall, nobody.f1) == ([0], [0], [0])
