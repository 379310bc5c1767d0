"""Loss and validation of links against slow forms, and what the task sees of a graph."""

import math

import pytest
import torch
from sklearn import metrics as SK

import reference
from argnn.data import split_links
from argnn.errors import ConfigError, DivergenceError
from argnn.nn import ARGNN, GCN, LinkModel
from argnn.train import LinkPrediction, TrainConfig, fit, link_scores

from .cases import assert_same_weights, two_blocks, weights

GRAPH = two_blocks()
SPLIT = split_links(GRAPH.edge_index, 60, "60/20/20", 0)


def task_of(split=SPLIT, y=GRAPH.y):
    return LinkPrediction(split.train, split.val, split.val_negatives, 60, y)


def observed(split=SPLIT):
    return type("Observed", (), {"x": GRAPH.x, "edge_index": split.edge_index})


def model_of(decoder="dot", seed=0, **options):
    torch.manual_seed(seed)
    return LinkModel(GCN(6, 8, 8, num_layers=2, **options), decoder)


def outputs_of(model, dtype=torch.float32):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(60, model.out_channels, generator=generator, dtype=torch.float64).to(dtype)


def slow_cross_entropy(logit, label):
    chance = 1 / (1 + math.exp(-logit))
    return -math.log(chance if label else 1 - chance)


def logits_of(outputs, pairs):
    """Inner products, pair by pair."""
    rows = outputs.double().tolist()
    ends = [(rows[i], rows[j]) for i, j in pairs.t().tolist()]
    return [sum(u * v for u, v in zip(a, b, strict=True)) for a, b in ends]


# -- loss -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("marked", ["none", "some", "all"])
def test_loss_is_the_mean_over_edges_plus_the_mean_over_non_edges(monkeypatch, marked):
    task, model = task_of(), model_of()
    generator = torch.Generator().manual_seed(1)
    count = SPLIT.train.size(1)
    drawn = torch.randint(60, (2, count), generator=generator)
    is_non_edge = {
        "none": torch.ones(count, dtype=torch.bool),
        "some": torch.arange(count) % 3 > 0,
        "all": torch.zeros(count, dtype=torch.bool),
    }[marked]
    asked = []
    monkeypatch.setattr(task.sampler, "draw", lambda n: asked.append(n) or (drawn, is_non_edge))
    outputs = 0.5 * outputs_of(model, torch.float64)
    found = task.loss(model, outputs)

    assert asked == [count]  # as many non-edges as edges
    positive = [slow_cross_entropy(z, True) for z in logits_of(outputs, SPLIT.train)]
    negative = [slow_cross_entropy(z, False) for z in logits_of(outputs, drawn[:, is_non_edge])]
    expected = sum(positive) / count + (sum(negative) / len(negative) if negative else 0.0)
    assert found.item() == pytest.approx(expected, rel=1e-12)


def test_non_edges_are_fresh_in_every_call():
    task, model = task_of(), model_of()
    outputs = outputs_of(model)
    torch.manual_seed(0)
    first, second = task.loss(model, outputs), task.loss(model, outputs)
    torch.manual_seed(0)
    assert torch.equal(task.loss(model, outputs), first)
    assert not torch.equal(second, first)


def test_validation_is_the_same_in_every_call():
    task, model = task_of(), model_of()
    assert task.validate(model, outputs_of(model)) == task.validate(model, outputs_of(model))


def test_loss_of_a_complete_graph_is_that_of_its_edges():
    """There is no non-edge to draw: the mean over none must not be 0 / 0."""
    pairs = torch.combinations(torch.arange(7)).t()
    task, model = LinkPrediction(pairs, pairs[:, :2], pairs[:, 2:4], 7), model_of()
    outputs = outputs_of(model, torch.float64)[:7].requires_grad_()
    loss = task.loss(model, outputs)
    positive = [slow_cross_entropy(z, True) for z in logits_of(outputs, pairs)]
    assert loss.item() == pytest.approx(sum(positive) / len(positive))
    loss.backward()
    assert outputs.grad.isfinite().all()


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_loss_is_finite_for_extreme_logits(size):
    task, model = task_of(), model_of()
    outputs = (size * outputs_of(model)).requires_grad_()
    loss = task.loss(model, outputs)
    loss.backward()
    assert loss.isfinite()
    assert outputs.grad.isfinite().all()


# -- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_validation_is_that_of_scikit_learn(dtype):
    task, model = task_of(), model_of()
    outputs = outputs_of(model, dtype)
    pairs = torch.cat([SPLIT.val, SPLIT.val_negatives], dim=1)
    label = [1] * SPLIT.val.size(1) + [0] * SPLIT.val_negatives.size(1)
    logits = logits_of(outputs, pairs)
    found = task.validate(model, outputs)
    assert found.score == pytest.approx(SK.roc_auc_score(label, logits))
    chance = [1 / (1 + math.exp(-z)) for z in logits]
    assert found.loss == pytest.approx(SK.log_loss(label, chance), rel=1e-5)


def test_loss_and_validation_do_not_see_each_others_pairs(monkeypatch):
    outputs, model = outputs_of(model_of()), model_of()
    task = task_of()
    other_val = LinkPrediction(SPLIT.train, SPLIT.test, SPLIT.test_negatives, 60, GRAPH.y)
    other_train = LinkPrediction(SPLIT.test, SPLIT.val, SPLIT.val_negatives, 60, GRAPH.y)
    losses = []
    for each in (task, other_val, other_train):
        torch.manual_seed(0)
        losses.append(each.loss(model, outputs).item())
    assert losses[0] == losses[1] != losses[2]
    validations = [each.validate(model, outputs) for each in (task, other_val, other_train)]
    assert validations[0] == validations[2] != validations[1]


# -- homophily ------------------------------------------------------------------------------------


def slow_homophily(edge_index, y):
    return reference.edge_homophily(list(map(tuple, edge_index.t().tolist())), y.tolist())


def test_homophily_is_that_of_the_observed_edges():
    found = task_of().homophily(SPLIT.edge_index)
    assert found == pytest.approx(slow_homophily(SPLIT.edge_index, GRAPH.y))
    assert found != pytest.approx(slow_homophily(GRAPH.edge_index, GRAPH.y))


def test_fit_asks_for_the_homophily_of_the_observed_edges(monkeypatch):
    """Penalty weights from theory are the one number that labels reach training by."""
    asked, task = [], task_of()
    real = task.homophily
    monkeypatch.setattr(task, "homophily", lambda edges: asked.append(real(edges)) or asked[-1])
    torch.manual_seed(0)
    model = LinkModel(ARGNN(6, 8, 8, num_layers=1), "dot")
    fit(model, observed(), task, TrainConfig(epochs=1, penalty_weights="theory"))
    assert asked == [pytest.approx(slow_homophily(SPLIT.edge_index, GRAPH.y))]


def test_homophily_without_labels():
    with pytest.raises(ConfigError, match="penalty weights from theory need labels"):
        task_of(y=None).homophily(SPLIT.edge_index)
    assert task_of(y=torch.full((60,), -1)).homophily(SPLIT.edge_index) == 0.0


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [torch.empty(2, 0).long(), torch.ones(3, 4).long(), torch.ones(4)]
)
@pytest.mark.parametrize("place", ["train_pairs", "val_pairs"])
def test_pairs_of_a_wrong_shape_are_refused(place, wrong):
    pairs = {"train_pairs": SPLIT.train, "val_pairs": SPLIT.val, place: wrong}
    with pytest.raises(ConfigError, match=rf"{place} must have shape \[2, P\], P > 0 \(got"):
        LinkPrediction(**pairs, val_negatives=SPLIT.val_negatives, num_nodes=60)


def test_validation_without_non_edges_is_refused():
    with pytest.raises(ConfigError, match="val_negatives must have shape"):
        LinkPrediction(SPLIT.train, SPLIT.val, torch.empty(2, 0).long(), num_nodes=60)


def test_model_without_decoder_is_refused():
    model = GCN(6, 8, 8)
    for ask in (task_of().loss, task_of().validate):
        with pytest.raises(ConfigError, match=r"needs a LinkModel \(got GCN\)"):
            ask(model, outputs_of(model))


# -- training -------------------------------------------------------------------------------------


def test_blocks_are_learned():
    graph = two_blocks(size=60)
    split = split_links(graph.edge_index, 120, "85/5/10", 0)
    task = LinkPrediction(split.train, split.val, split.val_negatives, 120)
    seen = type("Observed", (), {"x": graph.x, "edge_index": split.edge_index})
    torch.manual_seed(0)
    model = LinkModel(ARGNN(6, 16, 16, num_layers=2, dropout=0.2, input_dropout=0.0), "dot")
    fit(model, seen, task, TrainConfig(epochs=60, lr=0.01))
    with torch.no_grad():
        pairs = torch.combinations(torch.arange(120)).t()
        scores = model.pair_scores(model(seen.x, seen.edge_index), pairs)
    together = graph.y[pairs[0]] == graph.y[pairs[1]]
    assert link_scores(scores[together], scores[~together], 0.0).auroc > 0.85


def test_negatives_of_training_may_be_held_out_edges():
    """They avoid training pairs only: to avoid the others would tell the model about them."""
    task = task_of()
    torch.manual_seed(0)
    drawn, is_non_edge = task.sampler.draw(20_000)
    negatives = {tuple(sorted(pair)) for pair in drawn[:, is_non_edge].t().tolist()}
    assert set(map(tuple, SPLIT.train.t().tolist())).isdisjoint(negatives)
    for held_out in (SPLIT.val, SPLIT.test):
        assert set(map(tuple, held_out.t().tolist())) <= negatives


def test_validation_pairs_choose_the_epoch_and_nothing_else():
    """Other validation pairs: the same losses and the same last weights, bit for bit."""
    choices = (
        (SPLIT.val, SPLIT.val_negatives),
        (SPLIT.test, SPLIT.test_negatives),
        (SPLIT.val_negatives, SPLIT.val),
    )
    runs = [trained_with(LinkPrediction(SPLIT.train, *choice, 60)) for choice in choices]
    for last, losses, score in runs[1:]:
        assert_same_weights(last, runs[0][0])
        assert losses == runs[0][1]
        assert score != runs[0][2]


def trained_with(task):
    """The weights after the last epoch, the losses on the way, and the best validation score."""
    model, last = model_of(), {}
    result = fit(
        model,
        observed(),
        task,
        TrainConfig(epochs=12, lr=0.02),
        on_epoch=lambda record: last.update(weights(model)),
    )
    return last, [(r.loss, r.gradient_norm) for r in result.history], result.val_score


def test_stopped_and_continued_run_draws_the_same_negatives():
    config = TrainConfig(epochs=9, lr=0.02, checkpoint_every=2)
    whole, snapshots = model_of(dropout=0.3), []
    result = fit(whole, observed(), task_of(), config, save=snapshots.append)
    assert len(snapshots) == 4
    for snapshot in snapshots:
        other = model_of(seed=9, dropout=0.3)
        resumed = fit(other, observed(), task_of(), config, resume_from=snapshot)
        assert_same_weights(weights(other), weights(whole))
        assert resumed.history == result.history


def test_logits_that_are_no_numbers_stop_the_run():
    with pytest.raises(DivergenceError, match=r"became (nan|inf) in epoch 1 "):
        fit(model_of(), observed(), task_of(), TrainConfig(epochs=3, lr=1e30))


def test_pairs_that_grow_beyond_float32_stop_the_run():
    seen = type("Observed", (), {"x": 1e30 * GRAPH.x, "edge_index": SPLIT.edge_index})
    with pytest.raises(DivergenceError, match=r"became (nan|inf) in epoch 1 "):
        fit(model_of(), seen, task_of(), TrainConfig(epochs=3))
