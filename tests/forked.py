"""Processes that start in milliseconds: forks of a server that has imported argnn once.

Importing torch, PyG and scikit-learn takes five seconds of a processor. A fork is a process of its
own all the same: it can be killed, limited, and deprived of rights. Where a new Python is the
point, as for one test of ``cli/test_signals.py``, nothing of this is used.
"""

import contextlib
import gc
import importlib
import multiprocessing
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from adversarial.process import ONE_THREAD

PRELOADED = (
    *("argnn.cli.train", "argnn.outputs.demo", "argnn.runs.parallel", "argnn.runs.train_one"),
    *("argnn.bench.experiments.cells", "argnn.bench.perf", "argnn.bench.tuning.search"),
    *("argnn.data.inspect", "argnn.outputs.analyze", "argnn.outputs.export"),
    *("argnn.outputs.figures", "argnn.outputs.predict", "argnn.estimators"),
    *("matplotlib.font_manager", "optuna.storages.journal", "torch_geometric.nn"),
)
#: A process that has not ended after this time hangs.
PATIENCE = 900
_CONTEXT = multiprocessing.get_context("forkserver")


def _server() -> Any:
    """The context of the server, which is started by the first call."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ONE_THREAD.items():
            patch.setenv(name, value)  # a fork cannot use threads that the server had
        patch.setenv("HOME", tempfile.gettempdir())
        _CONTEXT.set_forkserver_preload(list(PRELOADED))
        multiprocessing.forkserver.ensure_running()
    return _CONTEXT


class Forked:
    """A started process, with the methods of ``subprocess.Popen`` that tests use.

    Args:
        target: A function that can be imported; :func:`command` and :func:`code` are two.
        arguments: Its arguments.
        cwd: Where it works; its standard output goes there, to a hidden file.
        environment: What is different there from the environment of this process; None removes.
    """

    def __init__(
        self, target: Callable[..., None], *arguments: object, cwd: Path, **environment: str | None
    ) -> None:
        reader, writer = _server().Pipe(duplex=False)
        self._errors, self._out = reader, Path(cwd) / f".out-{time.monotonic_ns()}"
        given = {**os.environ, **ONE_THREAD, **environment}
        given = {name: value for name, value in given.items() if value is not None}
        everything = (writer, str(self._out), str(cwd), given, target, arguments)
        self._process = _CONTEXT.Process(target=_become, args=everything)
        self._process.start()
        writer.close()
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, or the negative number of the signal that killed it."""
        return self._process.exitcode

    poll = returncode.fget

    def communicate(self, timeout: float = PATIENCE) -> tuple[str, str]:
        """What it printed, when it and all processes that it started have ended."""
        end, parts = time.monotonic() + timeout, []
        while True:
            ready, _, _ = select.select([self._errors], [], [], max(0.0, end - time.monotonic()))
            assert ready, "it takes too long"
            parts.append(os.read(self._errors.fileno(), 65536))
            if not parts[-1]:
                break
        self._process.join(max(1.0, end - time.monotonic()))
        assert self.returncode is not None, "it takes too long"
        return self._out.read_text(), b"".join(parts).decode()

    def end(self) -> None:
        """Kill it and what it started, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()
        self._process.join()
        self._errors.close()
        self._out.unlink(missing_ok=True)


def run_forked(
    target: Callable[..., None], *arguments: object, cwd: Path, **environment: str | None
) -> tuple[int, str, str]:
    """Exit code, output and errors of a process that ends by itself."""
    process = Forked(target, *arguments, cwd=cwd, **environment)
    try:
        out, errors = process.communicate()
        return process.returncode, out, errors
    finally:
        process.end()


def _become(
    errors: Connection,
    out: str,
    cwd: str,
    environment: dict[str, str],
    target: Callable[..., None],
    arguments: tuple[object, ...],
) -> None:
    gc.freeze()  # what the server made is no garbage
    missing = set(PRELOADED) - sys.modules.keys()
    os.setsid()
    os.dup2(errors.fileno(), 2)
    errors.close()
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert not missing, f"the server has not imported {missing}"
    # What processes that it starts import again.
    sys.modules["__main__"] = importlib.import_module("argnn.__main__")
    target(*arguments)


def command(*words: object) -> None:
    """Be the program ``argnn`` with these words."""
    from argnn.__main__ import main

    sys.argv = ["argnn", *map(str, words)]
    main()


def command_that_forks(*words: object) -> None:
    """Be the program, with workers that are forks of it and need not import everything again."""
    from argnn.runs import pool

    context, work, pipes = multiprocessing.get_context("fork"), pool._work, []

    class Forks:
        """Forgets in a worker what a new process would not have: handlers, and the other pipes."""

        RawArray = context.RawArray

        def Pipe(self) -> Any:  # noqa: N802
            pipes.append(context.Pipe())
            return pipes[-1]

        def Process(self, **options: Any) -> Any:  # noqa: N802
            return context.Process(**{**options, "target": as_if_new})

    def as_if_new(*arguments: Any) -> None:
        for ours, _ in pipes:
            ours.close()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        work(*arguments)

    pool.get_context = lambda kind: Forks()
    command(*words)


def code(text: str, *arguments: object) -> None:
    """Be a Python with this code."""
    sys.argv = ["-c", *map(str, arguments)]
    exec(text, {"__name__": "__main__"})


def work(
    environment: dict[str, str], pipe: Connection, course: Any, folder: Path, parent: int
) -> None:
    """Be a worker of a pool, whose parent is the server and passes for who started it."""
    from argnn.runs.pool import _work

    os.environ.update(environment)
    os.getppid = lambda: parent
    _work(pipe, course, folder, parent)


@pytest.fixture
def forked_workers(monkeypatch) -> None:
    """The processes of a pool are forked; those of real commands start as those of users."""
    context = _server()
    monkeypatch.setattr("argnn.runs.pool.get_context", lambda kind: context)
    monkeypatch.setattr("argnn.runs.pool._work", partial(work, dict(os.environ)))
