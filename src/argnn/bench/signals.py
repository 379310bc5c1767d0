"""Signals that ask a process to end. It tidies up first: temporary files must not stay."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from threading import current_thread, main_thread

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_as_interrupts() -> Iterator[list[int]]:
    """Treat a request to end as Ctrl-C; gives the signals that came."""
    came: list[int] = []

    def interrupt(number: int) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = _handle_ending(interrupt)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_when_asked() -> None:
    """Let a worker process end in an orderly way; without, it ends at once and leaves its files."""
    _handle_ending(lambda number: sys.exit(128 + number))


def _handle_ending(act: Callable[[int], None]) -> dict[signal.Signals, signal.Handlers]:
    """Act on the first request to end, and ignore others; gives the handlers before."""

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
def children_ignoring_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: the parent alone decides what it means."""
    resource_tracker.ensure_running()  # it would unblock the signal when it is started later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
