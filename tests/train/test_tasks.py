import math

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional as F

from argnn.errors import ConfigError
from argnn.train import NodeClassification, TrainConfig, Validation

from .cases import model_of, task_of, two_blocks

ANY = model_of(two_blocks())  # classes are judged by scores alone


def masks(num_nodes, **selected):
    out = {}
    for name, nodes in selected.items():
        out[name] = torch.zeros(num_nodes, dtype=torch.bool)
        out[name][list(nodes)] = True
    return out


def test_loss_is_the_cross_entropy_of_the_training_nodes():
    graph = two_blocks()
    scores = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    expected = F.cross_entropy(scores[graph.train_mask], graph.y[graph.train_mask])
    torch.testing.assert_close(task_of(graph).loss(ANY, scores), expected)


def test_validation_is_accuracy_and_cross_entropy_of_the_validation_nodes():
    graph = two_blocks()
    scores = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    found = task_of(graph).validate(ANY, scores)
    right = scores.argmax(-1)[graph.val_mask] == graph.y[graph.val_mask]
    assert found.score == pytest.approx(right.double().mean().item())
    expected = F.cross_entropy(scores[graph.val_mask], graph.y[graph.val_mask])
    assert found.loss == pytest.approx(expected.item())


def test_loss_and_validation_do_not_see_each_others_nodes():
    graph, task = two_blocks(), task_of(two_blocks())
    scores = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    changed = scores.clone()
    changed[~graph.train_mask] += torch.randn(2)
    assert torch.equal(task.loss(ANY, changed), task.loss(ANY, scores))
    changed = scores.clone()
    changed[~graph.val_mask] *= -3
    assert task.validate(ANY, changed) == task.validate(ANY, scores)


@pytest.mark.parametrize("replace", [lambda y: 1 - y, lambda y: y * 0 - 1, lambda y: y + 900])
def test_task_holds_no_label_outside_training_and_validation(replace):
    graph = two_blocks()
    y = torch.where(graph.test_mask, replace(graph.y), graph.y)
    first = vars(task_of(graph))
    second = vars(NodeClassification(y, graph.train_mask, graph.val_mask))
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, second[name]), name
            assert value.untyped_storage().data_ptr() != graph.y.untyped_storage().data_ptr(), name
        else:
            assert value == second[name], name


def test_task_keeps_its_labels_when_the_callers_tensor_changes():
    graph = two_blocks()
    task = task_of(graph)
    before = task.val_labels.clone()
    graph.y.zero_()
    assert torch.equal(task.val_labels, before)


def test_homophily_uses_training_labels_only():
    # 0-1 same, 1-2 different among training nodes; 3 (validation) and 4 (test) do not count.
    y = torch.tensor([0, 0, 1, 0, 0])
    edge_index = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 4, 4]])
    task = NodeClassification(y, **masks(5, train_mask=(0, 1, 2), val_mask=(3,)))
    assert task.homophily(edge_index) == 0.5
    for node in (3, 4):
        other = y.clone()
        other[node] = 1
        changed = NodeClassification(other, **masks(5, train_mask=(0, 1, 2), val_mask=(3,)))
        assert changed.homophily(edge_index) == 0.5


def test_homophily_is_zero_where_no_edge_joins_training_nodes():
    task = NodeClassification(torch.tensor([0, 0, 1]), **masks(3, train_mask=(0,), val_mask=(1,)))
    assert task.homophily(torch.tensor([[0], [2]])) == 0.0
    assert task.homophily(torch.empty(2, 0, dtype=torch.int64)) == 0.0


@pytest.mark.parametrize("name", ["train_mask", "val_mask"])
def test_empty_mask_is_refused(name):
    chosen = masks(4, train_mask=(0,), val_mask=(1,))
    chosen[name] = torch.zeros(4, dtype=torch.bool)
    with pytest.raises(ConfigError, match=f"{name} selects no node"):
        NodeClassification(torch.zeros(4, dtype=torch.int64), **chosen)


@pytest.mark.parametrize("name", ["train_mask", "val_mask"])
def test_unlabelled_node_in_a_mask_is_refused_by_its_number(name):
    y = torch.tensor([0, 1, -1, 0])
    chosen = masks(4, train_mask=(0,), val_mask=(1,))
    chosen[name][2] = True
    with pytest.raises(ConfigError, match=f"{name} selects node 2, which has no label"):
        NodeClassification(y, **chosen)


def test_unlabelled_node_outside_the_masks_is_fine():
    y = torch.tensor([0, 1, -1, -1])
    NodeClassification(y, **masks(4, train_mask=(0,), val_mask=(1,)))


def test_overlapping_masks_are_refused():
    with pytest.raises(ConfigError, match="node 2 is in both train_mask and val_mask"):
        NodeClassification(torch.zeros(4).long(), **masks(4, train_mask=(0, 2), val_mask=(2, 3)))


@pytest.mark.parametrize("name", ["train_mask", "val_mask"])
@pytest.mark.parametrize(
    "wrong",
    [
        torch.ones(3, dtype=torch.bool),
        torch.ones(4, 10, dtype=torch.bool),
        torch.tensor([1, 0, 0, 0]),
        torch.tensor([0, 1]),
    ],
)
def test_mask_of_wrong_shape_or_type_is_refused(name, wrong):
    chosen = masks(4, train_mask=(0,), val_mask=(1,))
    chosen[name] = wrong
    with pytest.raises(ConfigError, match=rf"{name} must be a boolean mask of shape \[4\] \(got"):
        NodeClassification(torch.zeros(4).long(), **chosen)


def test_labels_that_are_no_vector_are_refused():
    y = torch.zeros(4, 1, dtype=torch.int64)
    chosen = {k: m.unsqueeze(-1) for k, m in masks(4, train_mask=(0,), val_mask=(1,)).items()}
    with pytest.raises(ConfigError, match="y must"):
        NodeClassification(y, **chosen)


def test_validation_compares_score_first_then_smaller_loss():
    assert Validation(0.8, 5.0).key > Validation(0.7, 0.1).key
    assert Validation(0.8, 0.1).key > Validation(0.8, 0.2).key
    assert Validation(0.0, 9.0).key > Validation(-math.inf, math.inf).key


def weighted_loss(scores, y, mask, weights):
    """Weighted mean of the cross-entropy, written out."""
    losses = [F.cross_entropy(scores[i : i + 1], y[i : i + 1]).item() for i in mask.nonzero()[:, 0]]
    chosen = [weights[i] for i in mask.nonzero()[:, 0]]
    return sum(w * v for w, v in zip(chosen, losses, strict=True)) / sum(chosen)


def test_balanced_weights_are_those_of_scikit_learn():
    graph = two_blocks()
    train = graph.train_mask & ((graph.y == 0) | (torch.arange(60) % 5 == 0))
    task = NodeClassification(graph.y, train, graph.val_mask)
    scores = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    labels = graph.y[train].numpy()
    by_class = compute_class_weight("balanced", classes=np.unique(labels), y=labels)
    assert by_class[1] > by_class[0]
    weights = [by_class[label] for label in graph.y.tolist()]
    found = task.configured(TrainConfig(class_weight="balanced")).loss(ANY, scores).item()
    assert found == pytest.approx(weighted_loss(scores, graph.y, train, weights), rel=1e-5)


def test_named_classes_and_nodes_have_their_weights_and_others_one():
    graph, sample = two_blocks(), torch.arange(60) % 4 + 1.0
    task = NodeClassification(
        graph.y, graph.train_mask, graph.val_mask, classes=["ok", "fraud"], sample_weight=sample
    )
    scores = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    judged = task.configured(TrainConfig(class_weight={"fraud": 7.0}))
    weights = [(1.0, 7.0)[label] * float(s) for label, s in zip(graph.y, sample, strict=True)]
    expected = weighted_loss(scores, graph.y, graph.train_mask, weights)
    assert judged.loss(ANY, scores).item() == pytest.approx(expected, rel=1e-5)
    again = judged.configured(TrainConfig(class_weight={"fraud": 7.0}))
    assert torch.equal(again.loss(ANY, scores), judged.loss(ANY, scores))
    # Only the training loss has weights.
    assert judged.validate(ANY, scores) == task_of(graph).validate(ANY, scores)


def test_weights_of_one_change_no_more_than_the_rounding_of_a_mean():
    graph = two_blocks()
    scores = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    even = task_of(graph).configured(TrainConfig(class_weight={"0": 1.0, "1": 1.0}))
    torch.testing.assert_close(even.loss(ANY, scores), task_of(graph).loss(ANY, scores))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.ones(3), r"sample_weight must have shape \[60\] \(got \[3\]\)"),
        (torch.ones(60).index_fill(0, torch.tensor(4), -1.0), "not negative .got -1.0 at 4"),
        (torch.ones(60).index_fill(0, torch.tensor(2), math.nan), "finite and not negative"),
    ],
)
def test_impossible_sample_weights_are_refused(weight, message):
    graph = two_blocks()
    with pytest.raises(ConfigError, match=message):
        NodeClassification(graph.y, graph.train_mask, graph.val_mask, sample_weight=weight)


def test_unknown_classes_have_no_weight():
    task = task_of(two_blocks())
    with pytest.raises(ConfigError, match="class_weight: there is no class '7'"):
        task.configured(TrainConfig(class_weight={"7": 2.0}))


@pytest.mark.parametrize("weight", ["even", {"0": 0.0}, {"0": -1.0}, {"0": math.inf}])
def test_impossible_class_weights_are_refused(weight):
    with pytest.raises(ConfigError, match="class_weight"):
        TrainConfig(class_weight=weight)
