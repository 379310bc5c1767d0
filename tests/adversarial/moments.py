"""Stop a command at a moment that was chosen before: Ctrl-C, or an error of the system.

Python acts on a signal when a function begins, and when a function of C has returned. So these are
the moments. A moment is known by its place in the code and by how often that was reached: it is
the same in every run.
"""

import atexit
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

#: Modules of Python by which this package writes, starts processes and tidies up.
_PARTS_OF_PYTHON = (
    *("contextlib", "pathlib", "shutil", "subprocess", "tempfile", "threading", "os", "weakref"),
    *("multiprocessing", "concurrent", "logging", "signal", "socket", "selectors"),
)
_PACKAGE = f"{os.sep}argnn{os.sep}"
_LIBRARY = str(Path(os.__file__).parent) + os.sep

#: What a process writes to its errors when the moment has come.
REACHED = "(reached)"
#: A place in the code: file, function, instruction, what happens there, and who of us called it.
Moment = tuple[Any, ...]


def is_watched(code: CodeType) -> bool:
    """Whether moments in a function count: those of this package, and what it writes with."""
    path = code.co_filename
    if path.startswith(_LIBRARY) and "site-packages" not in path:
        first = Path(path.removeprefix(_LIBRARY)).parts[0].removesuffix(".py")
        return first in _PARTS_OF_PYTHON
    return _PACKAGE in path and "site-packages" not in path and "/tests/" not in path


class Watch:
    """Counts the moments of this process, and acts at one of them."""

    def __init__(self, moment: Moment | None, act: Callable[[], None]) -> None:
        self.moment, self.act, self.process = moment, act, os.getpid()
        self.reached: Counter[Moment] = Counter()
        self._watched: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, function: object) -> None:
        if event not in ("call", "c_return"):
            return
        code = frame.f_code
        if (watched := self._watched.get(code)) is None:
            watched = self._watched[code] = is_watched(code)
        if not watched or os.getpid() != self.process:
            return
        name = getattr(function, "__name__", "") if event == "c_return" else ""
        moment = (*_place(frame), event, name, *_caller(frame))
        self.reached[moment] += 1
        if self.moment == (*moment, self.reached[moment]):
            self.act()


def _place(frame: FrameType) -> tuple[str, str, int]:
    code = frame.f_code
    return code.co_filename, code.co_qualname, frame.f_lasti


def _caller(frame: FrameType) -> tuple[str, int]:
    """The line of this package that led to a frame of Python's own modules."""
    at: FrameType | None = frame
    while at is not None and _PACKAGE not in at.f_code.co_filename:
        at = at.f_back
    return ("", 0) if at is None or at is frame else (at.f_code.co_filename, at.f_lineno or 0)


def recording(path: Path) -> Callable[[], None]:
    """What a process calls to write down all its moments when it ends."""

    def arm() -> None:
        watch = Watch(None, lambda: None)

        def write() -> None:
            sys.setprofile(None)
            path.write_text(json.dumps(list(watch.reached.items())))

        atexit.register(write)
        sys.setprofile(watch)

    return arm


def interrupting(moment: Moment, number: int = signal.SIGINT) -> Callable[[], None]:
    """What a process calls to get a signal at a moment."""

    def act() -> None:
        os.write(2, REACHED.encode())
        signal.raise_signal(number)

    return lambda: sys.setprofile(Watch(moment, act))


def recorded(path: Path) -> list[Moment]:
    """What :func:`recording` wrote: the first and the last time of each moment of the command."""
    found = [(tuple(moment), count) for moment, count in json.loads(path.read_text())]
    return [
        (*moment, time)
        for moment, count in found
        if _PACKAGE in moment[0] + moment[5]  # others are those of the test's own
        for time in sorted({1, count})
    ]


def described(moment: Moment) -> str:
    """A moment in words."""
    file, function, at, event, name, caller, line, *count = moment
    parts = Path(file).parts
    where = "/".join(parts[-2:])
    what = f"after {name}" if event == "c_return" else "at its begin"
    by = f" for {Path(caller).name}:{line}" if caller else ""
    times = f", time {count[0]}" if count else ""
    return f"{where} {function}+{at} {what}{by}{times}"
