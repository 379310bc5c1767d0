"""``argnn ablate``: one part changed, level by level."""

import json

import pytest

from argnn.store.results import read_rows

SMALL = ("--set", "hidden_channels=4", "--set", "train.epochs=2", "--split", "0,1", "--seeds", 1)


def test_list_names_every_study_and_its_levels(argnn):
    done = argnn("ablate", "--list")
    assert (done.code, done.err) == (0, "")
    for row in json.loads(argnn("ablate", "--list", "--json").out):
        assert f"│ {row['name']} " in done.out
        assert row["reference"] in row["levels"]


def test_a_study_runs_draws_and_goes_on(argnn, tmp_path):
    command = ("ablate", "mixed", "--study", "metric-net", *SMALL, "--workers", 1)
    done = argnn(*command, "--plots", "drawn")
    assert done.code == 0, done.err
    assert "metric network of 2 *" in done.out
    assert (tmp_path / "here/drawn/ablate-metric-net.png").read_bytes().startswith(b"\x89PNG")
    rows = read_rows(tmp_path / "here/results/ablate-metric-net.jsonl")
    assert len(rows) == 3 * 2
    assert {row["config"]["source"] for row in rows} == {rows[0]["config"]["source"]}
    again = json.loads(argnn(*command, "--json").out)
    [study] = again["studies"]
    assert [level["runs"] for level in study["levels"]] == [2, 2, 2]
    assert [level["level"] for level in study["levels"] if level["reference"]] == [
        "metric network of 2"
    ]
    assert len(read_rows(tmp_path / "here/results/ablate-metric-net.jsonl")) == 6
    assert argnn("table", "results/ablate-metric-net.jsonl").code == 0


def test_own_graph_takes_the_preset_and_no_trial(argnn, tmp_path):
    rows = [f"{n},{n % 2},{'ab'[n % 2]}" for n in range(40)]
    edges = [f"{n},{(n + 2) % 40}" for n in range(40)]
    folder = tmp_path / "here/shop"
    folder.mkdir()
    (folder / "nodes.csv").write_text("\n".join(["id,size,kind", *rows]))
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    small = ("--set", "train.epochs=1", "--seeds", 1, "--workers", 1, "--json")
    done = argnn("ablate", "shop", "--label", "kind", "--study", "neighbor-norm", *small)
    assert done.code == 0, done.err
    row = read_rows(tmp_path / "here/results/ablate-neighbor-norm.jsonl")[0]
    assert row["config"]["trial"] is None
    assert row["config"]["source"].startswith("preset default; set by the user: modulation")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mixed", "--study", "dept"), "unknown study 'dept'; did you mean 'depth'?"),
        (("mixt", "--study", "depth"), "unknown data set 'mixt'; did you mean 'mixed'?"),
        (("mixed", "--split", "one"), "--split must be numbers with commas, or all (got 'one')"),
        (("mixed", "--study", "lr", "--study", "lr"), "experiment 'ablate-lr' is named twice"),
        (("mixed", "--set", "dropot=1"), "dropout"),
    ],
)
def test_bad_words_are_refused(refused, words, message):
    refused("ablate", *words, message=message)


@pytest.mark.parametrize(
    ("labels", "task"),
    [(["0.5", "1.25", "2.5"], "regression"), (["a;b", "a", "b", "b;c", "c"], "multilabel")],
)
@pytest.mark.parametrize("command", ["ablate", "tune"])
def test_labels_are_what_train_takes_them_for(argnn, tmp_path, command, labels, task):
    rows = [f"n{n},{n % 5},{labels[n % len(labels)]}" for n in range(60)]
    edges = [f"n{n},n{(n + 3) % 60}" for n in range(60)]
    folder = tmp_path / "here/own"
    folder.mkdir()
    (folder / "nodes.csv").write_text("\n".join(["id,size,label", *rows]))
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    if command == "tune":
        pytest.importorskip("optuna")
        done = argnn("tune", "own", "--model=gcn", "--trials=1", "--epochs=1", "--out=t.yaml")
        assert (done.code, f"task: {task}" in (tmp_path / "here/t.yaml").read_text()) == (0, True)
        return
    small = ("--set=train.epochs=1", "--seeds=1", "--workers=1", "--json")
    done = argnn("ablate", "own", "--study=metric-net", *small)
    assert done.code == 0, done.err
    assert {
        row["task"] for row in read_rows(tmp_path / "here/results/ablate-metric-net.jsonl")
    } == {task}
