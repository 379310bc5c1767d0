"""The sentence about chance: each kind of answer, good and guessed."""

import numpy as np
import pytest

from argnn.analysis.explorer.chance import doubt_of_classes, doubt_of_targets
from argnn.analysis.explorer.headline import Findings, headline


def test_doubt_comes_first():
    found = headline(Findings("gcn", "none", doubt="Doubt."))
    assert found == "Doubt. gcn learns no metric: the map shows its raw outputs."


def test_classes():
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=200)
    right = np.where(rng.random(200) < 0.6, true, rng.integers(3, size=200))
    assert doubt_of_classes(true, right) is None
    assert "no better than chance" in doubt_of_classes(true, rng.integers(3, size=200))
    share = f"{100 * (true == 0).mean():.1f} %"
    same = doubt_of_classes(true, np.zeros(200, dtype=int))
    assert same.endswith(f": {share} of 200 test nodes right, guesses {share}.")
    assert doubt_of_classes(true[:0], true[:0]) is None


def test_model_that_finds_a_rare_class_is_not_doubted():
    """Fewer nodes are right than if it named the frequent class everywhere."""
    true = np.repeat([0, 1], [180, 20])
    predicted = np.concatenate([np.repeat([0, 1], [140, 40]), np.repeat([0, 1], [2, 18])])
    assert (true == predicted).mean() < 0.9
    assert doubt_of_classes(true, predicted) is None


def test_guesses_are_rarely_taken_for_more():
    """One in twenty by the rule; the bound has four standard errors."""
    rng = np.random.default_rng(1)
    draws = [(rng.integers(2, size=100), rng.integers(2, size=100)) for _ in range(300)]
    trusted = sum(doubt_of_classes(*pair) is None for pair in draws)
    assert trusted <= 300 * 0.05 + 4 * np.sqrt(300 * 0.05 * 0.95)


@pytest.mark.parametrize("are_labels", [False, True])
def test_targets(are_labels):
    rng = np.random.default_rng(2)
    true = rng.normal(size=(200, 2))
    noise = rng.normal(size=(200, 2))
    known = (true > 0).astype(float) if are_labels else true
    one_of_two = np.stack([noise[:, 0], true[:, 1] + noise[:, 1]], axis=1)
    assert doubt_of_targets(known, one_of_two, are_labels=are_labels) is None
    for guesses in (noise, np.zeros_like(noise)):
        found = doubt_of_targets(known, guesses, are_labels=are_labels)
        assert found == "The model predicts no better than chance on 200 test nodes."
    assert doubt_of_targets(known[:0], noise[:0], are_labels=are_labels) is None
