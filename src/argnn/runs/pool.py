"""Run jobs in this process, in several local processes, or on Ray.

Every local process has a pipe of its own. In the pools of ``concurrent.futures`` and loky, all
waiting jobs fail when one process dies, and it is not known which job that one was running.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import connection, get_context
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from torch import Tensor
from torch_geometric.data import Data

from argnn.errors import FORESEEN, ConfigError, RunError
from argnn.files import read_tensors, write_tensors
from argnn.folders import scratch_folder
from argnn.nn import DECODERS, MESSAGE_FORMS, METRIC_SHAPES, METRICS, MODELS
from argnn.runs.machine import (
    children_ignoring_interrupts,
    leave_when_asked,
    using_threads,
)
from argnn.settings.run_config import RunConfig
from argnn.train import EpochRecord
from argnn.train.config import OPTIMIZERS

EXECUTORS = ("local", "ray")
#: What a graph is made of; it has those of the second row only where the user gave them.
_TENSORS = (
    *("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"),
    *("edge_weight", "edge_time", "targets"),
)
#: What is said about it; ``schema`` tells which features have to be made again for links.
_FACTS = ("name", "class_count", "class_names", "schema", "target_names", "target_kind")
_POLL_SECONDS = 0.1
_EPOCH_SECONDS = 3
_PATIENCE_SECONDS = 10
_STOP = "stop early"
#: Where users put classes of their own.
_TABLES: tuple[Mapping[str, Any], ...] = (
    *(MODELS, METRICS, METRIC_SHAPES, MESSAGE_FORMS, DECODERS),
    OPTIMIZERS,
)

#: Is told a job, its epoch, loss and validation score.
TellEpoch = Callable[[Any, int, float, float], None]


class StopEarly(Exception):  # noqa: N818 (a request, no error)
    """Raised by ``tell`` where a job is to end with what it has found so far."""


class PoolJob(Protocol):
    """What a pool runs. A worker gets it, and gives its result back, as a pickle."""

    @property
    def config(self) -> RunConfig:
        """Says which graph the job needs, how many threads, and which device."""

    def run(self, graph: Data, on_epoch: Callable[[EpochRecord], None]) -> Any:
        """Do the work, and give its result."""

    def failed(self, error: Exception, seconds: float) -> Any:
        """The result of a job that ended with an error after some time."""


def result_of(
    job: PoolJob, graphs: Mapping[str, Data], on_epoch: Callable[[EpochRecord], None]
) -> Any:
    """Run a job in this process."""
    began = time.perf_counter()
    with using_threads(job.config.threads):
        try:
            return job.run(graphs[job.config.graph["digest"]], on_epoch)
        except Exception as error:  # one bad job must not take the others with it
            return job.failed(error, time.perf_counter() - began)


class Pool(ABC):
    """Runs jobs in the order in which they come.

    Args:
        workers: How many jobs run at the same time.
        attempts: How often a job may begin; it begins again when its worker has died.
        tell: Is told how the jobs are going; not every epoch need be told.
    """

    def __init__(self, workers: int, attempts: int, tell: TellEpoch) -> None:
        self.workers, self.attempts, self.tell = workers, attempts, tell
        self.waiting: deque[tuple[PoolJob, int]] = deque()
        self.running: dict[Any, tuple[PoolJob, int]] = {}

    def submit(self, job: PoolJob) -> None:
        """Add a job; others may be running."""
        self.waiting.append((job, 1))
        self._fill()

    def next_done(self) -> tuple[Any, Any]:
        """Wait until any job is over; gives the job and its result."""
        while True:
            worker, result = self._wait()
            job, attempt = self.running.pop(worker)
            died = isinstance(result, RunError)
            again = died and attempt < self.attempts
            if again:
                self.waiting.append((job, attempt + 1))
            self._fill()
            if not again:
                return job, job.failed(result, 0.0) if died else result

    def run(self, jobs: Sequence[PoolJob]) -> Iterator[tuple[Any, Any]]:
        """Run jobs; gives each with its result as soon as it is over."""
        for job in jobs:
            self.submit(job)
        for _ in jobs:
            yield self.next_done()

    def withdrawn(self) -> list[Any]:
        """The jobs that have not begun; they are not run any more."""
        jobs = [job for job, _ in self.waiting]
        self.waiting.clear()
        return jobs

    def stop_early(self) -> None:
        """Raise :class:`StopEarly` in the jobs that run."""
        raise KeyboardInterrupt  # this pool cannot do it

    def _fill(self) -> None:
        while self.waiting and len(self.running) < self.workers:
            job, attempt = self.waiting.popleft()
            self.running[self._start(job)] = job, attempt

    @abstractmethod
    def _start(self, job: PoolJob) -> Any:
        """Begin a job; gives its worker."""

    @abstractmethod
    def _wait(self) -> tuple[Any, Any]:
        """The next worker that ends its job, and the result; an error if the worker died."""

    @abstractmethod
    def close(self) -> None:
        """End all workers at once, also those that are running a job."""


@contextmanager
def open_executor(
    name: str, workers: int | None, address: str | None = None, threads: int = 1
) -> Iterator[int | None]:
    """Connect to what runs jobs; gives how many run at the same time, None if that is not fixed.

    Without the ``address`` of a Ray cluster, a Ray is started on this machine and ended again.
    """
    if name not in EXECUTORS:
        raise ConfigError(f"--executor must be one of {', '.join(EXECUTORS)} (got '{name}')")
    if workers is not None and workers < 1:
        raise ConfigError(f"--workers must be at least 1 (got {workers})")
    if name == "ray":
        from argnn.runs.ray_pool import ray_session

        with ray_session(workers, address) as cpus:
            yield workers or max(1, cpus // threads)
    elif address is not None:
        raise ConfigError("--address belongs to --executor ray")
    else:
        yield workers


def ignore(*told: object) -> None:
    """Ignore it."""


@contextmanager
def open_pool(
    graphs: Mapping[str, Data],
    workers: int = 1,
    executor: str = "local",
    attempts: int = 1,
    tell: TellEpoch = ignore,
) -> Iterator[Pool]:
    """A pool; jobs that still run when it is left are ended.

    ``graphs`` has the graphs of all jobs by checksum. One local worker is this process, several are
    new ones. ``"ray"`` is for the inside of :func:`open_executor`.
    """
    pool: Pool
    with ExitStack() as stack:
        if executor == "ray":
            from argnn.runs.ray_pool import RayPool

            pool = RayPool(graphs, workers, attempts, tell)
        elif workers == 1:
            pool = _Here(graphs, tell)
        else:
            folder = stack.enter_context(scratch_folder(Path(tempfile.gettempdir()), "argnn-"))
            for digest, graph in graphs.items():
                pack(graph, folder / digest)
            pool = _Processes(folder, workers, attempts, tell)
        stack.callback(pool.close)
        yield pool


class _Here(Pool):
    """One job after the other in this process, each when its result is asked for."""

    def __init__(self, graphs: Mapping[str, Data], tell: TellEpoch) -> None:
        super().__init__(1, 1, tell)
        self.graphs = graphs

    def withdrawn(self) -> list[Any]:
        """A job begins when its result is asked for: the next one, too, has not begun."""
        following = [job for job, _ in self.running.values()]
        self.running.clear()
        return [*following, *super().withdrawn()]

    def _start(self, job: PoolJob) -> None:
        return None

    def _wait(self) -> tuple[None, Any]:
        [(job, _)] = self.running.values()
        return None, result_of(job, self.graphs, lambda record: self.tell(job, *_course(record)))

    def close(self) -> None:
        """Do nothing: there is no other process."""


def _course(record: EpochRecord) -> tuple[int, float, float]:
    score = float("nan") if record.val_score is None else record.val_score
    return record.epoch, record.loss, score


class _Processes(Pool):
    """Local processes that each run one job after the other; one that dies is replaced."""

    def __init__(self, folder: Path, workers: int, attempts: int, tell: TellEpoch) -> None:
        super().__init__(workers, attempts, tell)
        self.folder = folder
        self.idle: list[_Worker] = []

    def _start(self, job: PoolJob) -> "_Worker":
        worker = self.idle.pop() if self.idle else None
        if worker is None or not worker.process.is_alive():
            worker = _Worker(self.folder)
        worker.begin(job)
        return worker

    def _wait(self) -> tuple["_Worker", Any]:
        while True:
            ready = connection.wait([worker.pipe for worker in self.running], _POLL_SECONDS)
            for worker, (job, _) in self.running.items():
                epoch, loss, score = worker.course
                if epoch > worker.told:
                    worker.told = epoch
                    self.tell(job, int(epoch), loss, score)
            for worker in self.running:
                if worker.pipe in ready:
                    return worker, self._result(worker)

    def stop_early(self) -> None:
        """Tell the workers; each job learns of it at its next epoch."""
        for worker in self.running:
            with suppress(OSError):
                worker.pipe.send(_STOP)

    def _result(self, worker: "_Worker") -> Any:
        try:
            result = worker.pipe.recv()
        except (EOFError, OSError):
            _end([worker])
            return RunError(f"the worker process died (code {worker.process.exitcode})")
        self.idle.append(worker)
        return result

    def close(self) -> None:
        """End the processes: nothing of a job is worth keeping before its end."""
        _end([*self.idle, *self.running])


class _Worker:
    """A local process, seen from the parent."""

    def __init__(self, folder: Path) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        # Plain shared numbers: no queue that a killed worker could leave locked.
        self.course = context.RawArray("d", 3)
        self.told = 0.0
        arguments = (theirs, self.course, folder, os.getpid())
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        with children_ignoring_interrupts(), _without_script():
            self.process.start()
        theirs.close()  # or the pipe would not end with the process

    def begin(self, job: PoolJob) -> None:
        self.course[0] = self.told = 0.0
        with suppress(OSError):  # it has just died, which the end of its pipe will tell
            self.pipe.send(job)


@contextmanager
def _without_script() -> Iterator[None]:
    """Start processes that do not first run the script that started this one, as Python does.

    A script without ``if __name__ == "__main__":`` would begin the same work anew in each of them.
    A script that puts something of its own into a table has to run there, too.
    """
    entries = (entry for table in _TABLES for entry in table.values())
    if any(entry.__module__.partition(".")[0] not in ("argnn", "torch") for entry in entries):
        yield
        return
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _end(workers: Sequence[_Worker]) -> None:
    """Let workers end between two epochs, then ask the others, and kill those that remain."""
    for worker in workers:
        worker.pipe.close()
    end = time.monotonic() + _EPOCH_SECONDS
    for worker in workers:
        worker.process.join(max(0.0, end - time.monotonic()))
        worker.process.terminate()
    for worker in workers:
        worker.process.join(_PATIENCE_SECONDS)
        worker.process.kill()
        worker.process.join()


def _work(pipe: connection.Connection, course: Any, folder: Path, parent: int) -> None:
    """What a worker process does: one job after the other, as long as its parent lives."""

    def tell(record: EpochRecord) -> None:
        course[:] = _course(record)
        if pipe.poll():
            try:
                pipe.recv()
            except (EOFError, OSError):
                # The pool ends or was killed; no file is half written now.
                shutil.rmtree(folder, ignore_errors=True)
                sys.exit(1)
            raise StopEarly

    graphs = graphs_for_worker(folder, parent)
    try:
        with suppress(EOFError, OSError):  # the parent has left, perhaps without tidying up
            while True:
                job = pipe.recv()
                if job != _STOP:  # which came too late for the last job
                    pipe.send(result_of(job, graphs, tell))
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        # Python may take long to end. There is nothing left to tidy up, so a signal just ends it.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def graphs_for_worker(folder: Path, parent: int) -> dict[str, Data]:
    """The graphs that :func:`pack` left, by name, in a process that ends with its parent."""
    threading.Thread(target=_leave_with_parent, args=(parent, folder), daemon=True).start()
    try:
        graphs = {path.name: unpacked(path) for path in folder.iterdir()}
    except FORESEEN:
        if os.getppid() == parent:
            raise
        os._exit(1)  # the parent was killed, and another worker has tidied up
    leave_when_asked()
    return graphs


def _leave_with_parent(parent: int, folder: Path) -> None:
    """End this process when its parent was killed, and remove the files that the parent left."""
    while os.getppid() == parent:
        time.sleep(0.5)
    shutil.rmtree(folder, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)  # the main thread leaves in an orderly way,
    time.sleep(_PATIENCE_SECONDS)  # unless it hangs
    os._exit(1)


def graph_tensors(graph: Data) -> dict[str, Tensor]:
    """All numbers of a graph, by name."""
    return {name: graph[name] for name in _TENSORS if graph.get(name) is not None}


def pack(graph: Data, path: Path) -> None:
    """Write a graph for all workers; through pipes they would get it one after the other."""
    facts = {name: graph[name] for name in _FACTS if graph.get(name) is not None}
    write_tensors(path, graph_tensors(graph), facts)


def unpacked(path: Path) -> Data:
    """The graph that :func:`pack` left."""
    tensors, facts = read_tensors(path)
    return Data(**tensors, **facts)
