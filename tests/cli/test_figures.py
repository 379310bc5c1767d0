"""``argnn figures`` and ``argnn train --dashboard``, from the run folder to the files."""

import json
import shutil

import pytest

from argnn.cli import main
from argnn.files import fingerprint, read_checked, write_checked
from result_rows import finished, write_rows

TRAIN = ("train", "mixed", "--epochs", 3, "--device", "cpu", "--set", "hidden_channels=8")


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    return stopped.value.code


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with a dashboard, one without, and one of a model without a metric."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGNN_CACHE", str(folder / "cache"))
        patch.setenv("OMP_NUM_THREADS", "1")
        fixed = ("--set", "num_layers=2", "--set", "metric=structure")
        assert run(*TRAIN, *fixed, "--out", folder / "watched", "--dashboard") == 0
        assert run(*TRAIN, *fixed, "--out", folder / "plain") == 0
        assert run(*TRAIN, "--model", "gcn", "--out", folder / "gcn") == 0
    return folder


@pytest.fixture
def runs(trained, tmp_path):
    """Copies that a test may damage."""
    for name in ("watched", "plain", "gcn"):
        shutil.copytree(trained / name, tmp_path / "here" / name)
    return tmp_path / "here"


@pytest.fixture
def quick_layout(monkeypatch):
    """Principal components in the place of t-SNE, which has its own tests."""
    monkeypatch.setattr("argnn.analysis.projection._FEWEST_FOR_TSNE", 10**9)


def test_figures_of_runs_and_results_come_from_one_command(argnn, runs, quick_layout):
    rows = [finished(0.5 + split / 10, split=split) for split in range(3)]
    write_rows(runs / "results.jsonl", rows)
    done = argnn(
        "figures", "watched", "gcn", "--out", "drawn", "--format", "png", "--json",
        "--results", "results.jsonl",
    )  # fmt: skip
    assert done.code == 0, done.err
    report = json.loads(done.out)
    names = ["map", "hull", "metric", "training"]
    expected = [f"watched-{name}" for name in names] + ["gcn-training", "homophily", "ablation"]
    assert report["files"] == [f"drawn/{name}.png" for name in expected]
    assert report["notes"] == ["gcn: gcn learns no metric: no map, hull, metric"]
    [point] = report["points"]
    assert point["name"] == "watched"
    assert point["kappa"] > 0
    assert all((runs / file).stat().st_size > 5000 for file in report["files"])


def test_existing_figures_are_left_alone_unless_forced(argnn, runs):
    kept = runs / "drawn" / "gcn-training.svg"
    kept.parent.mkdir()
    kept.write_text("mine")
    done = argnn("figures", "gcn", "--out", "drawn", "--format", "svg")
    assert done.code == 2
    assert "gcn-training.svg: is there already; --force replaces it" in done.err
    assert kept.read_text() == "mine"
    assert argnn("figures", "gcn", "--out", "drawn", "--format", "svg", "--force").code == 0
    assert "<svg" in kept.read_text()


def test_a_run_of_a_gpu_is_drawn_without_one(argnn, runs, quick_layout):
    path = runs / "watched" / "config.json"
    config = json.loads(path.read_text())["run"] | {"device": "cuda"}
    path.write_text(json.dumps({"run": config, "fingerprint": fingerprint(config)}))
    done = argnn("figures", "watched", "--out", "drawn", "--format", "png")
    assert (done.code, done.err) == (0, "")
    assert argnn("analyze", "watched", "--out", "page.html").code == 0


def changed_result(run, **changes):
    path = run / "split-0" / "result.json"
    write_checked(path, read_checked(path) | changes)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: shutil.rmtree(run), "no such run folder"),
        (lambda run: (run / "config.json").write_text("{"), "damaged, not JSON"),
        (lambda run: (run / "split-0/result.json").unlink(), "no split finished"),
        (lambda run: (run / "split-0/result.json").write_text("[]"), "must hold an object"),
        (lambda run: (run / "split-0/model/model.safetensors").unlink(), "no such file"),
        (lambda run: (run / "split-0/model/model.safetensors").write_bytes(b"x"), "damaged"),
        (lambda run: (run / "split-0/geometry.json").write_text('{"epochs": [1]}'), "damaged"),
        (lambda run: changed_result(run, history=5), "history must be a list"),
        (
            lambda run: changed_result(run, history=[{"epoch": 1, "loss": "low"}]),
            "history, entry 1",
        ),
        (lambda run: changed_result(run, chosen_epoch="x"), "chosen_epoch must be a whole"),
    ],
)
def test_a_damaged_run_is_one_clear_line(argnn, runs, damage, message):
    damage(runs / "watched")
    done = argnn("figures", "plain", "watched", "--out", "drawn")
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (runs / "drawn").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name at least one run folder"),
        (("plain", "--format", "gif"), "written as pdf, svg, png"),
        (("plain", "--split", "7"), "split 7 is not finished"),
        (("--results", "none.jsonl"), "none.jsonl"),
    ],
)
def test_bad_requests_are_one_clear_line(argnn, runs, arguments, message):
    done = argnn("figures", *arguments, "--out", "drawn")
    assert done.code == 2
    assert message in done.err
    assert not (runs / "drawn").exists()


def test_a_watched_run_has_the_same_weights(runs):
    weights = [
        runs / name / "split-0" / "model" / "model.safetensors" for name in ("watched", "plain")
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert not (runs / "plain" / "split-0" / "events").exists()


def test_the_dashboard_holds_scores_energies_histograms_and_points(runs):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = runs / "watched" / "split-0"
    events = EventAccumulator(str(folder / "events")).Reload()
    scalars = set(events.Tags()["scalars"])
    assert {"loss/total", "validation/score", "geometry/ricci_energy"} <= scalars
    assert {"geometry/metric_change", "geometry/lyapunov", "nrmd/layer_1"} <= scalars
    assert set(events.Tags()["histograms"]) >= {"log_g/layer_1", "log_g/layer_2", "kappa/layer_1"}
    history = json.loads((folder / "result.json").read_text())["history"]
    assert [event.value for event in events.Scalars("loss/total")] == pytest.approx(
        [record["loss"] for record in history]
    )
    names = (folder / "events/00000/points/metadata.tsv").read_text().splitlines()
    points = (folder / "events/00000/points/tensors.tsv").read_text().splitlines()
    assert len(names) == len(points) > 100


def test_the_record_of_the_metric_has_every_epoch(runs):
    folder = runs / "watched" / "split-0"
    records = json.loads((folder / "geometry.json").read_text())["epochs"]
    assert [record["epoch"] for record in records] == [1, 2, 3]
    assert records[0]["metric_change"] is None
    assert all(record["metric_change"] > 0 for record in records[1:])
    assert all(record["ricci_energy"] >= 0 for record in records)
    history = json.loads((folder / "result.json").read_text())["history"]
    losses = [record["loss"] for record in history]
    # The last metric is its own optimum, so that only the gap of the loss is left.
    assert records[-1]["lyapunov"] == pytest.approx(losses[-1] - min(losses), abs=1e-6)


def test_a_model_without_a_metric_has_no_record(argnn, runs):
    done = argnn(*TRAIN, "--model", "gcn", "--out", "seen", "--dashboard")
    assert done.code == 0, done.err
    assert "tensorboard --logdir seen" in done.out
    assert not (runs / "seen/split-0/geometry.json").exists()
    assert any((runs / "seen/split-0/events").iterdir())


def test_without_tensorboard_nothing_is_begun(argnn, runs, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    done = argnn(*TRAIN, "--out", "new", "--dashboard")
    assert done.code == 2
    assert "pip install 'argnn[dashboard]'" in done.err
    assert not (runs / "new").exists()
