"""Steps that Ctrl-C must not cut in two, such as giving a finished folder its name."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

#: Those that a program may handle; the last one is Ctrl-C, whose usual handler comes back last.
_PUT_OFF: tuple[int, ...] = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@contextmanager
def interrupts_put_off() -> Iterator[None]:
    """Let Ctrl-C, and a request to end that is handled, wait until the block has ended.

    Only for short blocks. The signals are not blocked: another thread would get them, and Python
    would interrupt the main thread all the same. Other threads are never interrupted.

    An interrupt that comes right before the block still prevents it. So what has to be done for
    certain is done once more after ``except BaseException``.
    """
    if current_thread() is not main_thread():  # only this one may set handlers
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before: dict[int, Any] = {}
    try:
        for number in _PUT_OFF:
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler
                signal.signal(number, lambda *signalled: came.append(signalled))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in came:
            before[number](number, frame)
