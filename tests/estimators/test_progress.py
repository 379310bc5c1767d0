"""What ``fit`` shows, what an interrupt leaves, and how threads wait."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import numpy as np
import pytest
import torch
from rich.console import Console

import argnn
from argnn import ARGNNClassifier, ARGNNLinkPredictor, ARGNNRegressor, waiting
from argnn.runs import progress
from argnn.runs.trial import TrialJob


@pytest.fixture
def terminal(monkeypatch):
    """A terminal that can be read."""
    text = StringIO()
    console = Console(file=text, force_terminal=True, width=120, highlight=False)
    monkeypatch.setattr(progress, "Console", lambda **o: Console(**o) if "quiet" in o else console)
    return text


@pytest.mark.usefixtures("brief_trial")
def test_bars_of_trial_and_training_on_a_terminal(graph, terminal):
    clf = ARGNNClassifier(epochs=3).fit(graph)
    shown = terminal.getvalue()
    assert "epochs of the trial" in shown
    assert f"chosen: {clf.settings_.trial['chosen']}" in shown
    assert "epochs of the training" in shown
    assert f"chosen epoch {clf.best_epoch_}, validation {100 * clf.val_score_:.1f} %" in shown


def test_nothing_where_nobody_watches(graph, terminal, capsys, monkeypatch):
    ARGNNClassifier("gcn", epochs=1, verbose=False).fit(graph)
    # Threads and processes of a search would draw over each other.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ARGNNClassifier("gcn", epochs=1).fit, graph).result()
    assert terminal.getvalue() == ""
    monkeypatch.undo()
    ARGNNClassifier("gcn", epochs=1).fit(graph)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", [ARGNNClassifier, ARGNNRegressor, ARGNNLinkPredictor])
def test_lines_elsewhere_if_asked_for(graph, kind, capsys):
    if kind is ARGNNRegressor:
        graph.y = graph.x[:, 0]
    kind("gcn", epochs=2, verbose=True).fit(graph)
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("epochs of the training, 2: chosen epoch ")


def test_showing_changes_no_weight(graph, terminal):
    shown, silent = (
        ARGNNClassifier("gcn", epochs=3, verbose=verbose).fit(graph) for verbose in (None, False)
    )
    assert terminal.getvalue()
    for a, b in zip(shown.model_.parameters(), silent.model_.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("moment", ["trial", "training", "judging"])
def test_interrupt_leaves_the_estimator_as_it_was(graph, moment, monkeypatch, tmp_path):
    fitted = ARGNNClassifier(epochs=2, trial=False).fit(graph)
    before = dict(vars(fitted))
    fresh = ARGNNClassifier(epochs=2)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    places = {
        "trial": (TrialJob, "settings"),
        "training": (progress.FitProgress, "training"),
        "judging": (ARGNNClassifier, "_keep_calibration"),
    }
    monkeypatch.setattr(*places[moment], interrupt)
    fitted.set_params(trial=True)
    before["trial"] = True
    for estimator in (fresh, fitted):
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(graph, y=np.roll(graph.y, 1))
    assert vars(fitted) == before
    assert not hasattr(fresh, "model_")
    assert fitted.predict_frame().equals(fitted.predict_frame(graph))


def test_verbose_is_not_stored(graph, tmp_path):
    ARGNNClassifier("gcn", epochs=1, verbose=True).fit(graph).save(tmp_path / "model")
    assert argnn.load(tmp_path / "model").verbose is None


def policy(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_package_sets_the_policy_before_torch_and_never_the_users():
    code = "import argnn, os, sys; print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])"
    assert policy(code) == "False PASSIVE"
    assert policy(code, OMP_WAIT_POLICY="ACTIVE") == "False ACTIVE"


def test_late_policy_keeps_one_more_thread_for_a_while(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(waiting, "_TORCH_WAS_FIRST", True)
    monkeypatch.setattr(waiting, "USER_WAIT_POLICY", None)

    def holders():
        return [thread for thread in threading.enumerate() if "short waits" in thread.name]

    torch.set_num_threads(2)
    try:
        with waiting.short_waits():
            assert len(holders()) == 1
            assert torch.get_num_threads() == 2
        assert holders() == []
        monkeypatch.setattr(waiting, "USER_WAIT_POLICY", "ACTIVE")
        with waiting.short_waits():
            assert holders() == []
    finally:
        torch.set_num_threads(before)
