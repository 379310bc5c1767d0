"""Signals that ask a process to end. It tidies up first: temporary files must not stay."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from threading import Timer, current_thread, main_thread
from typing import Any

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_as_interrupts() -> Iterator[list[int]]:
    """Treat a request to end as Ctrl-C; gives the signals that came."""
    came: list[int] = []

    def interrupt(number: int) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before, hook = _handle_ending(interrupt), sys.unraisablehook
    sys.unraisablehook = _interrupt_again
    try:
        yield came
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt_again(lost: Any) -> None:
    """Interrupt once more where Python lost it: in callbacks of objects that are removed."""
    if isinstance(lost.exc_value, KeyboardInterrupt) and current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        target = main_thread().ident
        assert target is not None  # it runs
        timer = Timer(0.01, signal.pthread_kill, (target, signal.SIGINT))
        timer.daemon = True
        timer.start()
    else:
        sys.__unraisablehook__(lost)


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

    The parent alone decides what these mean.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        # It must live as long as we do; and it would unblock Ctrl-C when it is started later.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
