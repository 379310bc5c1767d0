"""Studies: what their levels change, and what a table says of planted rows."""

from dataclasses import replace
from functools import cache

import pytest

from argnn.bench.ablation import bars, find_study, is_unstable, levels, studies
from argnn.bench.experiments.files import DataChoice, parsed_experiment
from argnn.bench.leaderboard.published import published_values
from argnn.errors import ConfigError
from argnn.nn import ARGNN
from argnn.outputs.figures import _bars
from argnn.runs.run import convergence_epoch
from argnn.runs.summary import statistic
from argnn.settings.options import parse_overrides
from argnn.settings.resolve import stored_settings
from argnn.train import train_config
from packaged import STUDY_NAMES, read_studies
from result_rows import failed, finished, write_rows

#: The studies that the contract of the command names.
NAMED = {"regularizers", "geometry", "depth", "width", "lr", "metric-net", "dropout"}
NAMED |= {"weight-decay", "init", "theory"}


@cache
def planted():
    """The study of depth with 2 and 3 layers."""
    study = find_study("depth", DataChoice("cora"))
    return replace(study, methods=study.methods[1:3])


def test_the_studies_of_the_contract_are_there():
    assert set(STUDY_NAMES) == set(studies())
    assert set(read_studies()) >= NAMED
    for study in read_studies().values():
        assert [choice.name for choice in study.data] == ["cora", "actor", "wisconsin"]
        assert study.reference in [method.label for method in study.methods]
        assert not study.trial


@pytest.mark.parametrize("name", STUDY_NAMES)
def test_every_level_fits_the_settings_of_every_graph(name):
    entries = [e for e in stored_settings() if e.key[:2] == ("argnn", "node")]
    changes = [
        parse_overrides(method.overrides, "argnn") for method in read_studies()[name].methods
    ]
    for entry in [e for e in entries if e.preset == "default"]:
        complete = []
        for own in changes:
            options = ARGNN.completed_options("default", {**entry.model, **own.options})
            complete.append((options, train_config("default", {**entry.train, **own.train})))
        # Each level is something else, whatever the settings that it changes.
        assert all(complete.count(level) == 1 for level in complete), entry.key


def test_published_rows_have_the_labels_of_levels():
    labels = {method.label for study in read_studies().values() for method in study.methods}
    sources = {table for study in read_studies().values() for table in study.tables}
    printed = [v for v in published_values() if v.source.split("tab:")[-1] in
               {table.removeprefix("tab:") for table in sources}]  # fmt: skip
    assert {value.method for value in printed} <= labels
    assert {value.source.split(", ")[-1] for value in printed} == sources


def row(score, method, split=0, seed=0, course=(1, 1.0, 0.5)):
    found = finished(score, method=method, split=split, seed=seed, model="argnn")
    names = ("converged_at", "first_loss", "last_loss")
    return {**found, "course": dict(zip(names, course, strict=True))}


class TestLevels:
    def test_differences_are_level_minus_reference_over_splits(self):
        rows = [row(0.8 + s / 100, "3 layers", s, seed) for s in range(3) for seed in (0, 1)]
        rows += [row(0.7 + 2 * s / 100, "2 layers", s, seed) for s in range(3) for seed in (0, 1)]
        two, three = levels(planted(), rows)
        assert (two["level"], three["level"]) == ("2 layers", "3 layers")
        expected = statistic([-0.10, -0.09, -0.08])
        assert two["difference"]["difference"] == pytest.approx(expected["mean"], abs=1e-12)
        assert two["difference"]["interval"] == pytest.approx(expected["interval"], abs=1e-12)
        assert two["difference"]["wilcoxon"]["p"] == 0.25  # 2 of the 8 signs, exactly
        assert three["difference"] is None
        assert (three["test"]["n"], three["runs"]) == (3, 6)
        assert (three["best_by_validation"], two["best_by_validation"]) == (True, False)
        assert three["published"][0]["value"] == pytest.approx(0.868)

    def test_failures_and_growing_losses_are_counted(self):
        rows = [row(0.8, "3 layers", course=(4, 1.0, 0.5)), row(0.8, "3 layers", 1, 0, (8, 1.0, 2))]
        rows += [failed(method="3 layers", split=2, model="argnn")]
        [level] = levels(planted(), rows)
        assert (level["runs"], level["unstable"], level["converged_at"]) == (3, 2, 6)

    def test_rows_of_older_versions_have_no_course(self):
        [level] = levels(planted(), [finished(0.8, method="3 layers", model="argnn")])
        assert (level["unstable"], level["converged_at"]) == (0, None)

    def test_nothing_but_failures_is_a_level_without_scores(self):
        [level] = levels(planted(), [failed(method="3 layers", model="argnn")])
        assert (level["test"]["mean"], level["best_by_validation"]) == (None, False)
        assert bars(planted(), [level]) == []

    def test_the_reference_is_the_first_bar(self):
        found = levels(planted(), [row(0.7, "2 layers"), row(0.8, "3 layers")])
        assert [bar.method for bar in bars(planted(), found)] == ["3 layers", "2 layers"]


def test_a_loss_that_is_not_a_number_is_unstable():
    assert is_unstable(row(0.5, "x", course=(1, 1.0, float("nan"))))
    assert not is_unstable(row(0.5, "x", course=(1, 1.0, 1.0)))


def test_convergence_of_a_loss_and_of_nothing():
    history = [{"epoch": n, "val_score": v} for n, v in enumerate([-2.0, None, -1.005, -1.0], 1)]
    assert convergence_epoch(history) == 3
    assert convergence_epoch([{"epoch": 1, "val_score": None}]) is None


def test_settings_of_all_levels_give_way_to_those_of_a_level():
    study = find_study("depth", settings=["num_layers=9", "train.epochs=2"])
    found = [parse_overrides(method.overrides, "argnn") for method in study.methods]
    assert [overrides.options["num_layers"] for overrides in found] == [1, 2, 3, 4, 5, 6]
    assert {overrides.train["epochs"] for overrides in found} == {2}


def test_bars_of_a_results_file_count_splits_not_seeds(tmp_path):
    rows = [row(0.5 + s / 10 + seed / 100, "a", s, seed) for s in (0, 1) for seed in range(5)]
    [bar] = _bars([write_rows(tmp_path / "rows.jsonl", rows)])
    expected = statistic([0.52, 0.62])
    assert (bar.mean, bar.n) == (pytest.approx(expected["mean"], abs=1e-12), 2)
    assert bar.interval == pytest.approx(expected["interval"], abs=1e-12)


FILE = """
name: mine
title: Mine
task: node
data: [mixed]
set: [dropout=0.1]
models: [gcn]
methods: [{model: gcn, label: other, set: [dropout=0.2]}]
reference: gcn
trial: false
"""


def test_settings_of_a_file_hold_for_all_methods():
    experiment = parsed_experiment(FILE, "mine.yaml", None)
    assert [method.overrides for method in experiment.methods] == [
        ("dropout=0.1",),
        ("dropout=0.1", "dropout=0.2"),
    ]
    assert (experiment.reference, experiment.trial) == ("gcn", False)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("reference: gcn", "reference: gnc", "reference 'gnc' is no method; did you mean 'gcn'"),
        ("[dropout=0.1]", "[droput=0.1]", "dropout"),
        ("[dropout=0.1]", "[dropout=0.1, dropout=0.1]", "set, entry 2"),
    ],
)
def test_bad_keys_are_named(before, after, message):
    with pytest.raises(ConfigError, match=message):
        parsed_experiment(FILE.replace(before, after), "mine.yaml", None)
