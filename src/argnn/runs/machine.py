"""This process and its machine: threads, memory, signals, versions.

The command line needs this before anything else, so torch is imported where it is used.
"""

import ctypes
import os
import platform
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from multiprocessing import resource_tracker
from pathlib import Path
from threading import Timer, current_thread, main_thread
from types import FrameType
from typing import Any

from argnn.interrupts import interrupts_put_off
from argnn.version import __version__


def core_count() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_for(workers: int) -> int:
    """Threads of each of several workers; never more than ``$OMP_NUM_THREADS`` allows."""
    share = max(1, core_count() // workers)
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(limit)) if limit.isdigit() and int(limit) > 0 else share


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let torch use that many threads inside a block."""
    import torch

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4
#: The largest limit that glibc accepts, and also takes by itself: larger blocks are always asked of
#: the system anew, unless none is.
_LARGEST_KEPT_BLOCK = 32 * 2**20
_MOST_MAPPED_BLOCKS = 65536  # glibc's own
#: Share of the free memory up to which a process leaves room for the gaps between kept blocks.
_ROOMY = 0.5


@contextmanager
def step_memory_kept() -> Iterator[Callable[[], None]]:
    """Keep the memory that training steps free for the next steps; give it back at the end.

    A step frees and asks for the same tensors again and again. By default glibc returns them to
    the system, which then has to clear every page of them in every step: at 120,000 nodes a third
    of the processor time (``scripts/measure_memory.py``).

    Kept blocks of different sizes leave gaps between them, which raise the peak of memory. So large
    blocks are kept only where twice as much memory is free as the process takes.

    Yields:
        A function to call after each step; the first call shows how much memory a step takes.
    """
    libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    if not hasattr(libc, "mallopt"):  # another C library
        yield lambda: None
        return
    assert libc is not None

    def limit(most_mapped: int, kept: int) -> None:
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BLOCK)
        libc.mallopt(_M_MMAP_MAX, most_mapped)
        libc.mallopt(_M_TRIM_THRESHOLD, kept)

    is_first = True

    def step_done() -> None:
        nonlocal is_first
        if is_first and _is_roomy():
            limit(0, -1)
        is_first = False

    try:
        limit(_MOST_MAPPED_BLOCKS, 2**30)
        yield step_done
    finally:
        limit(_MOST_MAPPED_BLOCKS, 2 * _LARGEST_KEPT_BLOCK)
        libc.malloc_trim(0)


def _is_roomy() -> bool:
    """Whether much more memory is free than this process has taken so far."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    most, used = (Path(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if most.is_file() and (text := most.read_text().strip()).isdigit():  # of a container
        free = min(free, int(text) - int(used.read_text()))
    return peak_mib() * 2**20 <= _ROOMY * free


_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def reset_peak() -> bool:
    """Forget earlier peaks; False where the system does not offer that."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return True


def peak_mib() -> float:
    """Most memory held since :func:`reset_peak`, or since the start where that failed."""
    if _STATUS.exists():
        return _status_mib("VmHWM")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def resident_mib() -> float:
    """Memory held now; Linux only."""
    return _status_mib("VmRSS")


def _status_mib(field: str) -> float:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"{_STATUS} has no {field}")


_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_as_interrupts() -> Iterator[list[int]]:
    """Treat SIGTERM and the like as Ctrl-C; gives the list of signals that came."""
    came: list[int] = []

    def interrupt(number: int) -> None:
        came.append(number)
        raise KeyboardInterrupt

    def note_ctrl_c(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    before, hook = _handle_ending(interrupt), sys.unraisablehook
    sys.unraisablehook = partial(_interrupt_again, came)
    usual = signal.getsignal(signal.SIGINT)
    noted = usual is signal.default_int_handler and current_thread() is main_thread()
    if noted:
        signal.signal(signal.SIGINT, note_ctrl_c)
    try:
        yield came
    finally:
        if noted:
            signal.signal(signal.SIGINT, usual)
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def noting_ctrl_c() -> Iterator[list[int]]:
    """Only note the first Ctrl-C, in the list that it gives; the next one interrupts as usual."""
    came: list[int] = []
    usual = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: object) -> None:
        came.append(number)
        signal.signal(signal.SIGINT, usual)

    # What the user switched off stays so. Only the main thread may set handlers.
    if usual in (signal.SIG_IGN, None) or current_thread() is not main_thread():
        yield came
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, usual)


def _interrupt_again(came: Sequence[int], lost: Any) -> None:
    """Interrupt once more where Python lost an interrupt in a callback of a removed object.

    After an interrupt nothing is said of objects that it left half made.
    """
    if isinstance(lost.exc_value, KeyboardInterrupt) and current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        target = main_thread().ident
        assert target is not None  # it runs
        timer = Timer(0.01, signal.pthread_kill, (target, signal.SIGINT))
        timer.daemon = True
        timer.start()
    elif not came:
        sys.__unraisablehook__(lost)


def leave_when_asked() -> None:
    """Let a worker process remove its files when it is asked to end; by default it would not."""
    _handle_ending(lambda number: sys.exit(128 + number))


def _handle_ending(act: Callable[[int], None]) -> dict[signal.Signals, signal.Handlers]:
    """Act on the first request to end, and ignore others; gives the handlers that it replaced."""

    def handle(number: int, frame: object) -> None:
        for other in before:
            signal.signal(other, signal.SIG_IGN)
        act(number)

    # What the user switched off, as nohup does, stays so. Only the main thread may set handlers.
    before = {
        number: signal.SIG_DFL
        for number in _ENDING
        if current_thread() is main_thread() and signal.getsignal(number) == signal.SIG_DFL
    }
    for number in before:
        signal.signal(number, handle)
    return before


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Undo what a library does to the handlers; Ray sets its own when it starts."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        yield
    finally:
        if current_thread() is main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def children_ignoring_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C and a closed terminal do not reach.

    Only the parent acts on these signals.
    """
    # Another thread of this process gets them all the same, and this one would be interrupted.
    with interrupts_put_off():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            # It must live as long as we do; and it would unblock Ctrl-C when it is started later.
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


_PACKAGES = ("torch", "torch_geometric", "numpy", "scikit-learn", "safetensors")


@cache
def versions() -> dict[str, str]:
    """Versions of everything that takes part in the numbers."""
    packages = {name: version(name) for name in _PACKAGES}
    return {"argnn": __version__, "python": platform.python_version(), **packages}


@cache
def git_state() -> dict[str, Any]:
    """Commit of the checkout that argnn runs from, and whether its code was changed since.

    Both are None for an installed package.
    """
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists() or not (root / "src" / "argnn").is_dir():
        return {"git_commit": None, "git_changed": None}
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--", "src")
    return {"git_commit": commit, "git_changed": None if changes is None else bool(changes)}


def code_state() -> dict[str, Any]:
    """Versions of everything that takes part in the numbers, and the commit."""
    return {**versions(), **git_state()}


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def device_name(device: str) -> str:
    """The device in words."""
    if device.startswith("cuda"):
        import torch

        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({platform.machine()})"
