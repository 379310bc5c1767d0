"""Rules of the trial, replayed on curves that were measured before."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from argnn.runs.recipes import RECIPES, STANDING

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        return runpy.run_path(str(SCRIPTS / "trial_rules.py"))


def curve(script, right, judged=0.5, *, of=60, epochs=120):
    """One training with so many right answers of those that choose, in all or in each epoch."""
    counts = np.broadcast_to(right, epochs)
    chose = np.arange(of) < counts[:, None]
    judges = np.arange(100) < 100 * np.broadcast_to(judged, epochs)[:, None]
    return script["Curve"](chose, np.where(chose, 0.1, 2.0), judges)


def test_recipes_are_those_of_the_trial(script):
    names = {recipe.name for recipe in RECIPES}
    assert {*script["TRIED"]} < names
    assert STANDING in script["TRIED"]


@pytest.mark.parametrize("ahead", [0, 2, 4])
def test_what_stands_gives_way_to_a_lead(script, ahead):
    other = "one layer"
    curves = {STANDING: curve(script, 40), other: curve(script, 40 + ahead)}
    rule = script["Rule"]
    leads = (0.5, 1.5, 2.5, 3.5, 4.5)
    chosen = [lead for lead in leads if rule(lead=lead).choice(curves) == other]
    assert chosen == [lead for lead in leads if lead < ahead]


def test_standard_errors_are_those_of_the_difference(script):
    """Where 4 nodes of 60 differ, all for the challenger, it leads by two standard errors."""
    other = "one layer"
    curves = {STANDING: curve(script, 40), other: curve(script, 44)}
    ahead = np.arange(60) < 4
    errors = ahead.mean() / (ahead.std(ddof=1) / np.sqrt(60))
    assert script["Rule"](errors=errors - 0.01).choice(curves) == other
    assert script["Rule"](errors=errors + 0.01).choice(curves) == STANDING


def test_one_lucky_epoch_counts_a_tenth_among_ten(script):
    lucky = np.full(120, 30)
    lucky[7] = 50
    curves = {STANDING: curve(script, lucky), "one layer": curve(script, 40)}
    rule = script["Rule"]
    assert rule().choice(curves) == STANDING
    assert rule(value=script["best_ten"]).choice(curves) == "one layer"


def test_two_of_each_kind_go_on(script):
    kept = script["_kept"]([f"{n}, adjacency rows" for n in range(5)] + ["a", "b", "c"], 5, 2)
    assert kept == ["0, adjacency rows", "1, adjacency rows", "2, adjacency rows", "a", "b"]


def test_nodes_that_judge_neither_teach_nor_choose(script, tmp_path):
    alike = np.eye(5)
    script["_save"](tmp_path / "graph", *script["_planted"](alike, 0.2, count=200))
    with np.load(tmp_path / "graph.npz") as file:
        train, val = file["train_mask"], file["val_mask"]
    assert not (train & val).any()
    for first in range(0, train.shape[1], 3):
        known = train[:, first + 1] | val[:, first + 1]
        assert known.sum() == 150
        assert (known == (train[:, first + 2] | val[:, first + 2])).all()
        assert not (train[:, first] & ~known).any()
        assert (train[:, first] | val[:, first]).all()
        assert (val[:, first] & known).sum() == script["CHOOSING"]


def test_each_validation_node_judges_once_in_each_folding(script, tmp_path):
    """Every rule is right as often as its recipe, where all recipes are right at the same nodes."""
    right = np.zeros((120, 50), dtype=bool)
    right[:, ::2] = True
    for recipe in (*script["TRIED"], script["RIVAL"]):
        np.savez(tmp_path / f"texas__3__0__{recipe}.npz", correct=right, loss=right * 1.0)
    for found in (script["on_small"](tmp_path), script["alone"](tmp_path)):
        assert {place for values in found.values() for place in values} == {("texas", 3)}
        assert {values["texas", 3] for values in found.values()} == {0.5}
