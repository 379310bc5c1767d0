"""The script of the table of graphs that nobody tuned."""

import runpy
from argparse import Namespace
from pathlib import Path

import pytest

from argnn.settings.resolve import base_settings

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "untuned_table.py"))
KEY = ("graph", "method", "split", "seed")


def job(model="mlp", splits=(0,), trials=0, limit=60.0):
    return SCRIPT["Job"]("mixed", model, splits, (0,), "cpu", trials, "0", limit)


def line(method, validation, split=0, **more):
    return {"graph": "mixed", "method": method, "split": split, "seed": 0, **more} | {
        "validation": validation
    }


def test_no_stored_settings_are_used():
    request = job("argnn")._request(SCRIPT["IN_MEMORY"])
    assert base_settings(request) is None  # so that there is a trial


def test_rivals_to_tune_are_chosen_by_their_mean_validation_score():
    names = ("gcn", "gat", "graphsage", "mlp", "linkx")
    rows = [line("argnn", 0.1), *(line(name, 0.5) for name in names)]
    rows += [line("linkx", 0.7, split=1), line("hgcn", 0.9) | {"error": "too long"}]
    rows += [line("tuned hgat", 0.9), line("hgat", 0.9) | {"graph": "other"}]
    assert SCRIPT["strongest"](rows, "mixed") == ["argnn", "linkx", "gcn", "gat", "graphsage"]


def test_untuned_and_tuned_lines_of_a_method(tmp_path):
    [found] = job().run()
    assert [found[name] for name in KEY] == ["mixed", "mlp", 0, 0]
    assert found["search_epochs"] == 0
    tuned = job(splits=(0, 1), trials=2).run()
    assert [[row[name] for name in KEY] for row in tuned] == [
        ["mixed", "tuned mlp", 0, 0],
        ["mixed", "tuned mlp", 1, 0],
    ]
    assert all(0 < row["test"] <= 1 and row["search_epochs"] >= 200 for row in tuned)
    SCRIPT["store"]([found, *tuned, argnn_line()], tmp_path, "a test")
    lines = (tmp_path / "untuned.csv").read_text().splitlines()
    assert lines[1] == "# machine: a test"
    assert len(lines) == 4 + 1 + 4


def argnn_line():
    runs = [("self path, sum", 15), ("one layer", 50), ("wide", 150), ("wide, fixed metric", 150)]
    trial = {
        "chosen": "wide, fixed metric",
        "metric": {"chosen": "fixed", "learned": 0.5, "fixed": 0.6},
        "runs": [{"name": name, "epochs": epochs} for name, epochs in runs],
    }
    numbers = dict.fromkeys(("test", "epochs", "seconds", "search_epochs", "search_seconds"), 1)
    facts = {"metric": "fixed", "git_commit": None, "versions": {"argnn": "0", "torch": "0"}}
    return {**line("argnn", 0.6), **numbers, **facts, "trial": trial}


def test_what_was_measured_again_replaces_its_lines(tmp_path):
    ours, rival = argnn_line(), {**argnn_line(), "method": "mlp", "test": 0.5}
    other_seed = {**argnn_line(), "seed": 1}
    SCRIPT["store"]([ours, other_seed, rival], tmp_path, "a GPU")
    changed = {**ours, "test": 0.75, "git_commit": "abcdef0123"}
    SCRIPT["store"]([changed], tmp_path, "a CPU", again=True)
    head, lines = SCRIPT["_replaced"](tmp_path / "untuned.csv", "and so on", [])
    assert head["machine"] == "a GPU"
    again = f"argnn on {ours['graph']} was measured again on a CPU at commit abcdef0"
    assert head["history"] == f"{again}; and so on"
    found = {(row["method"], row["seed"]): row["test"] for row in lines}
    assert found == {("argnn", "0"): "75.000", ("argnn", "1"): "100.000", ("mlp", "0"): "50.000"}
    head, counts = SCRIPT["_read"](tmp_path / "recipes.csv")
    assert head["history"] == "and a CPU at commit abcdef0"
    tried = {row["recipe"]: row["tried"] for row in counts}  # two trials before, one again
    assert (tried["one layer"], tried["deep"]) == ("3", "0")


def test_recipes_are_followed_through_the_rounds():
    rows = {row.pop("recipe"): row for row in SCRIPT["recipe_rows"]([argnn_line()["trial"]])}
    stages = ("tried", "second round", "third round", "chosen")
    assert [rows["self path, sum"][name] for name in stages] == [1, 0, 0, 0]
    assert [rows["one layer"][name] for name in stages] == [1, 1, 0, 0]
    assert [rows["wide"][name] for name in stages] == [1, 1, 1, 1]
    assert sum(rows["wide, adjacency rows"].values()) == 0


def test_a_training_that_takes_too_long_is_a_line_with_an_error():
    [found] = job(limit=-1.0).run()
    assert "not over" in found["error"]
    assert "test" not in found


@pytest.mark.parametrize("trials", [0, 3])
def test_what_is_there_is_not_done_again(trials):
    given = Namespace(graphs=["mixed"], models=["gcn", "mlp"], splits=[0], seeds=[0])
    given.device, given.trials, given.search_splits, given.limit = "cpu", trials, "0", 60.0
    rows = [line("gcn", 0.5)]
    [job] = SCRIPT["jobs"](given, rows)
    assert job.model == ("gcn" if trials else "mlp")
    done = [line(method, 0.5) for _, method, _, _ in job.keys]
    assert SCRIPT["jobs"](given, [*done, *rows]) == []
