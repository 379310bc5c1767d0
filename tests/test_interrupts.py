"""Ctrl-C at every moment of what writes, holds or starts something."""

import errno
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch

from argnn.data.graph_store.new_folder import new_folder
from argnn.data.limited_reading import _run_child
from argnn.estimators.base import whole_or_not
from argnn.files import write_output
from argnn.runs.machine import children_ignoring_interrupts, using_threads
from argnn.store.results import ResultsFile
from every_moment import interrupt_at_every_moment


def files(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture(autouse=True)
def no_waiting_for_disks(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture(
    params=[
        {},
        {"twice": True, "step": 40},
        pytest.param({"twice": True}, marks=pytest.mark.torture),
    ],
    ids=["once", "sample of twice", "twice"],
)
def how(request):
    """How often a call is interrupted, and at which of its moments."""
    return request.param


@pytest.fixture
def case(tmp_path):
    """A folder that is new and empty for each call."""
    folder = tmp_path / "case"

    def anew():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    return anew


def test_write_output(case, tmp_path, how):
    path = tmp_path / "case" / "new" / "a.csv"

    def prepare():
        case()
        return lambda: write_output(path, b"whole", force=False)

    def check():
        found = files(tmp_path / "case")
        assert set(found) <= {"new", "new/a.csv"}
        assert found.get("new/a.csv", b"whole") == b"whole"

    interrupt_at_every_moment(prepare, check, **how)


def test_write_output_without_hard_links(case, tmp_path, monkeypatch):
    path = tmp_path / "case" / "a.csv"

    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)

    def prepare():
        case()
        return lambda: write_output(path, b"whole", force=False)

    def check():
        assert files(tmp_path / "case") in ({}, {"a.csv": b"whole"})

    interrupt_at_every_moment(prepare, check)


@pytest.mark.parametrize("force", [False, True])
def test_new_folder(case, tmp_path, how, force):
    store = tmp_path / "case" / "store"

    def prepare():
        folder = case()
        if force:
            (folder / "store").mkdir()
            (folder / "store" / "header.json").write_text("old")

        def work():
            with new_folder(store, force=force) as writing:
                (writing / "header.json").write_text("new")
                (writing / "inside").mkdir()

        return work

    def check():
        found = files(tmp_path / "case")
        good = [{"store": None, "store/header.json": b"new", "store/inside": None}]
        good.append({"store": None, "store/header.json": b"old"} if force else {})
        assert found in good

    import argnn.data.graph_store.new_folder as module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "is_store", lambda path: True)
        interrupt_at_every_moment(prepare, check, **how)


def test_results_file(case, tmp_path):
    path = tmp_path / "case" / "rows.jsonl"

    def prepare():
        case()

        def work():
            with ResultsFile(path) as results:
                results._write(b"{}\n")

        return work

    def check():
        assert not path.exists() or path.read_bytes() in (b"", b"{}\n")
        path.unlink(missing_ok=True)
        with ResultsFile(path):
            pass

    before = len(list(Path("/proc/self/fd").iterdir()))
    interrupt_at_every_moment(prepare, check)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def children() -> list[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(word) for word in text.split()]


def test_results_file_as_it_was_where_the_disk_refuses(case, monkeypatch):
    def refuse(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = case() / "rows.jsonl"
    with ResultsFile(path) as results:
        results._write(b"{}\n")
        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match=r"No space left .*rows.jsonl"):
            results._write(b"{}\n")
    assert path.read_bytes() == b"{}\n"


class Estimator:
    """Something with a ``fit`` of its own."""

    def __init__(self) -> None:
        self.alpha = 1

    @whole_or_not
    def fit(self):
        self.first_ = 1
        self.second_ = len("two")
        return self


def test_estimator_is_as_before(how):
    made = []

    def prepare():
        made[:] = [Estimator()]
        return made[0].fit

    def check():
        assert vars(made[0]) in ({"alpha": 1}, {"alpha": 1, "first_": 1, "second_": 3})

    interrupt_at_every_moment(prepare, check, **how)


def test_threads_are_as_before():
    before = torch.get_num_threads()

    def work():
        with using_threads(before + 1):
            pass

    def check():
        found = torch.get_num_threads()
        torch.set_num_threads(before)
        assert found == before

    interrupt_at_every_moment(lambda: work, check)


def test_signals_are_as_before_when_a_process_was_started():
    def work():
        with children_ignoring_interrupts():
            pass

    def check():
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
        assert signal.getsignal(signal.SIGTERM) == usual

    usual = signal.getsignal(signal.SIGTERM)
    interrupt_at_every_moment(lambda: work, check)


def test_a_process_is_started_whole_where_another_thread_gets_the_signal(monkeypatch):
    monkeypatch.setattr(signal, "pthread_sigmask", lambda *_: set())
    begun, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)

    def start():
        with children_ignoring_interrupts():
            signal.raise_signal(signal.SIGINT)
            begun.append("whole")

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        signal.signal(signal.SIGINT, before)
    assert begun


def test_read_limited():
    before = children()

    def check():
        left = [c for c in children() if c not in before]
        for c in left:
            os.kill(c, 9)
            os.waitpid(c, 0)
        assert not left

    interrupt_at_every_moment(lambda: lambda: _run_child(lambda: None), check)
