"""Models with curvature on the command line."""

import io

import pytest
from rich.console import Console

from argnn.runs.progress import CountingBar

pytest.importorskip("ot", reason="small graphs use POT")


@pytest.mark.parametrize("model", ["curvdrop", "cusp"])
@pytest.mark.parametrize("task", ["node", "link"])
def test_train_runs_models_with_curvature(argnn, small_npz, model, task):
    path = small_npz()
    done = argnn(
        "train", str(path), "--model", model, "--task", task, "--epochs", "2", "--split", "0"
    )
    assert done.code == 0, done.err
    assert f"{model}, split 0" in done.out


def test_unknown_way_to_find_curvature_is_refused(argnn, small_npz):
    done = argnn("train", str(small_npz()), "--model", "curvdrop", "--set", "ricci=sinkhorn")
    assert done.code == 2
    assert "ricci must be one of" in done.err


def test_counting_shows_a_bar_on_a_terminal_only():
    for is_terminal in (True, False):
        text = io.StringIO()
        console = Console(file=text, force_terminal=is_terminal, width=100)
        with CountingBar(console, "curvature of edges") as counting:
            counting(3, 8)
            counting(8, 8)
        assert ("curvature of edges" in text.getvalue()) is is_terminal
        assert ("8/8" in text.getvalue()) is is_terminal


def test_counting_shows_nothing_where_nothing_is_counted():
    text = io.StringIO()
    with CountingBar(Console(file=text, force_terminal=True), "curvature of edges"):
        pass
    assert text.getvalue() == ""
