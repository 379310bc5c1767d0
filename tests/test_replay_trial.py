"""The replay of a trial on curves that were measured before."""

import json
import runpy
from pathlib import Path

from argnn.runs.recipes import RECIPES

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
