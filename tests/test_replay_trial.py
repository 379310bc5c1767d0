"""The replay of a trial on curves that were measured before."""

import json
import runpy
from pathlib import Path

import pytest

from argnn.data import load
from argnn.runs.recipes import RECIPES, STANDING

SCRIPTS = Path(__file__).parents[1] / "scripts"
SCRIPT = runpy.run_path(str(SCRIPTS / "replay_trial.py"))


def recipe_key(recipe, **changes):
    return SCRIPT["settings_key"]({**recipe.model, **recipe.train, **changes})


def curve(name, final, early=0.0, epochs=200):
    scores = [early] * 20 + [final] * (epochs - 20)
    return SCRIPT["Curve"](name, scores, [1 - score for score in scores])


def test_every_recipe_of_the_trial_is_measured_by_the_other_script(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    recipes = runpy.run_path(str(SCRIPTS / "try_recipes.py"))["recipes"]()
    measured = {SCRIPT["settings_key"](settings) for _, settings in recipes}
    assert {recipe_key(recipe) for recipe in RECIPES} <= measured


def test_a_recipe_that_starts_slowly_is_lost_and_the_metric_is_varied():
    first, second, *_ = keys = [recipe_key(recipe) for recipe in RECIPES[:8]]
    curves = {key: curve(str(n), 0.5, early=0.4) for n, key in enumerate(keys)}
    curves[first] = curve("slow", 0.9)
    curves[second] = curve("fast", 0.6, early=0.4)
    assert SCRIPT["replayed"](curves, keys).name == "fast"
    curves[recipe_key(RECIPES[1], metric="fixed")] = curve("fixed", 0.7)
    assert SCRIPT["replayed"](curves, keys).name == "fixed"


def test_what_stands_gives_way_to_a_lead_only():
    second, first = keys = [recipe_key(recipe) for recipe in RECIPES[:2]]
    assert RECIPES[1].name == STANDING
    curves = {first: curve("first", 0.5), second: curve("second", 0.6)}
    assert SCRIPT["replayed"](curves, keys, 0.05).name == "second"
    assert SCRIPT["replayed"](curves, keys, 0.15).name == "first"
    curves[recipe_key(RECIPES[0], metric="fixed")] = curve("fixed", 0.64)
    assert SCRIPT["replayed"](curves, keys, 0.05).name == "second"
    assert SCRIPT["replayed"](curves, keys, 0.03).name == "fixed"


def test_folds_of_validation_nodes_add_up_and_judge_each_other(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    measured = runpy.run_path(str(SCRIPTS / "try_recipes.py"))["curve"]
    settings = {"epochs": 3, "hidden_channels": 4}
    found = measured("mixed", load("mixed"), 0, settings, "cpu")
    nodes = sum(found["fold_sizes"])
    assert max(found["fold_sizes"]) - min(found["fold_sizes"]) <= 1
    assert found["scores"] == [round(sum(c) / nodes, 5) for c in found["fold_correct"]]
    means = [sum(losses) / nodes for losses in found["fold_losses"]]
    # Both were rounded: 5e-6 of the mean, and five sums to 5e-5.
    assert found["losses"] == pytest.approx(means, abs=1e-5 + 25e-5 / nodes)
    leads = runpy.run_path(str(SCRIPTS / "replay_leads.py"))
    for fold, part in enumerate(leads["parts"]({**found, "recipe": "x"})):
        rest = nodes - found["fold_sizes"][fold]
        right = [sum(c) - c[fold] for c in found["fold_correct"]]
        assert part.scores == [count / rest for count in right]
        best = max(range(3), key=lambda e: (right[e], -part.losses[e]))
        assert part.judged() == found["fold_correct"][best][fold]


def test_leads_are_judged_on_nodes_that_had_no_say(monkeypatch, tmp_path):
    """The other recipe is best on four parts, and bad on the fifth."""
    monkeypatch.syspath_prepend(SCRIPTS)
    leads = runpy.run_path(str(SCRIPTS / "replay_leads.py"))
    lines = []
    for recipe, correct in zip(RECIPES[:2], ([10, 10, 10, 10, 0], [8] * 5), strict=True):
        row = {"graph": "a", "split": 0, "recipe": recipe.name, "fold_sizes": [12] * 5}
        row |= {"settings": {**recipe.model}, "fold_correct": [correct], "fold_losses": [[1] * 5]}
        lines.append(json.dumps(row))
    (tmp_path / "curves.jsonl").write_text("\n".join(lines))
    [line, _] = leads["rows"](leads["read"](tmp_path / "curves.jsonl"))
    found = dict(zip(leads["HEADER"], line, strict=True))
    # With the last part left out, the other leads by 8 nodes of 48, else what stands by 2.
    assert found["lead 0"] == f"{100 * (4 * 8 + 0) / 60:.2f}"
    assert found["ten steps alone"] == found["best recipe alone"] == f"{100 * 40 / 60:.2f}"


def test_recipes_alone_are_compared_where_all_splits_were_measured(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(SCRIPTS)
    leads = runpy.run_path(str(SCRIPTS / "replay_leads.py"))
    facts = {"recipe": "x", "settings": {}, "fold_sizes": [2] * 5, "fold_losses": [[1] * 5]}
    places = [("a", 0, 1), ("a", 1, 2), ("a", 2, 0), ("b", 0, 1)]
    rows = [{**facts, "graph": g, "split": n, "fold_correct": [[c] * 5]} for g, n, c in places]
    (tmp_path / "curves.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert leads["recipes_alone"](leads["read"](tmp_path / "curves.jsonl")) == [
        ['"x"', "50.00", ""]
    ]


def test_a_left_out_graph_has_no_say(tmp_path):
    """A recipe that is good on one graph only is not chosen for it."""
    keys = [recipe_key(recipe) for recipe in RECIPES]
    special = SCRIPT["settings_key"]({"num_layers": 3})
    common = {key: curve(str(n), 0.5, early=0.4) for n, key in enumerate(keys)}
    common[keys[0]] = curve("good", 0.5, early=0.5)
    graphs = {name: dict(common) for name in ("a", "b", "c")}
    graphs["a"][special] = curve("special", 0.9, early=0.8)
    for name in ("b", "c"):
        graphs[name][special] = curve("special", 0.1)
    found = {row[0]: row[1:] for row in SCRIPT["rows"](graphs)}
    assert found["a"][:3] == ["90.00", "50.00", "50.00"]
    assert "the same" in found["b"][3]
    [line] = [{"graph": "a", "recipe": "x", "settings": {}, "scores": [0.1], "losses": [1.0]}]
    (tmp_path / "curves.jsonl").write_text(json.dumps(line) + "\n")
    assert len(SCRIPT["read_curves"](tmp_path / "curves.jsonl")["a"]) == 1
