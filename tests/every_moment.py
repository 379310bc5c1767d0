"""Ctrl-C at every moment of a call: nothing half done may stay, and no interrupt is lost.

Python acts on a signal when a function begins, and when a function of C has returned. The call is
made once for each such moment, which is much faster than a command for each.
"""

import gc
import inspect
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from adversarial.moments import is_watched

#: Two interrupts within a microsecond: nothing of Python's own can be done against that.
_GLUE = ("interrupts.py", "contextlib.py", "signal.py")


class _Moments:
    """Counts the moments of this process, and acts on a signal at one of them, and once more."""

    def __init__(self, first: int | None, second: int | None) -> None:
        self.first, self.second, self.process = first, second, os.getpid()
        self.count = self.later = 0
        self.where, self.lost = "", False
        self.watched: dict[Any, bool] = {}

    def profile(self, frame: FrameType, event: str, function: object) -> None:
        if event not in ("call", "c_return") or not self._is_ours(frame):
            return
        if event == "call" and frame.f_code.co_flags & inspect.CO_GENERATOR:
            return
        self.count += 1
        if self.count == self.first:
            if self.second is not None:
                sys.settrace(self.trace)
            self._act(frame, f"{event} {getattr(function, '__name__', '')}")

    def trace(self, frame: FrameType, event: str, told: object) -> None:
        """Where functions begin after the first interrupt, as Python then stops to profile."""
        if frame.f_code.co_flags & inspect.CO_GENERATOR:  # an exception goes on, it does not begin
            return
        if not self._is_ours(frame) or Path(frame.f_code.co_filename).name in _GLUE:
            return
        self.later += 1
        if self.later == self.second:
            self._act(frame, "then call")

    def _is_ours(self, frame: FrameType) -> bool:
        code = frame.f_code
        if code not in self.watched:
            self.watched[code] = is_watched(code)
        return self.watched[code] and os.getpid() == self.process and not self.lost

    def _act(self, frame: FrameType, what: str) -> None:
        self.where += f"{what} in {frame.f_code.co_qualname}, line {frame.f_lineno}; "
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)


def _call(
    work: Callable[[], object], first: int | None, second: int | None
) -> tuple[_Moments, BaseException | None]:
    moments, error = _Moments(first, second), None
    before, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook

    def lost(told: Any) -> None:
        """Python ignored it in a callback; the command line then interrupts again."""
        moments.lost = True

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = lost
    try:
        sys.setprofile(moments.profile)
        work()
    except BaseException as raised:
        error = raised.with_traceback(None)
        error.__context__ = None
    finally:
        sys.setprofile(None)
        sys.settrace(None)
        gc.collect(0)
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, before)
    return moments, error


def interrupt_at_every_moment(
    prepare: Callable[[], Callable[[], object]],
    check: Callable[[], object],
    *,
    twice: bool = False,
    step: int = 1,
) -> int:
    """Interrupt what ``prepare`` gives at each of its moments, and ``check`` what it leaves.

    Args:
        prepare: Makes everything as it is before the call, and gives the call.
        check: Raises where something is wrong after an interrupt.
        twice: Interrupt the tidying up, too, wherever a function begins.
        step: Take only every so many moments.

    Returns:
        How often it was interrupted.
    """
    work = prepare()
    work()  # makes what is made only once
    del work
    total, _ = _call(prepare(), None, None)
    tried, wrong = 0, []
    for first in range(1, total.count + 1, step):
        second = None if not twice else 1
        while True:
            moments, error = _call(prepare(), first, second)
            if moments.count < first:  # the work differs a little from call to call
                break
            if second is not None and moments.later < second:
                break
            tried += 1
            try:
                if not moments.lost:
                    assert isinstance(error, KeyboardInterrupt), f"ended with {error!r}"
                check()
            except Exception as found:
                wrong.append(f"{moments.where}: {type(found).__name__} {str(found)[:300]}")
            if second is None:
                break
            second += 1
    if wrong:
        shown = "\n".join(wrong[:8])
        pytest.fail(f"{len(wrong)} of {tried} interrupts do harm:\n{shown}", pytrace=False)
    return tried
