"""The command line: parse, call one function, print. Importing a module adds its commands."""

import errno
import logging
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from argnn.cli import (  # noqa: F401 - importing a command registers it
    ablate,
    bench,
    catalog,
    compare,
    outputs,
    perf,
    stores,
    table,
    theory,
    train,
    tune,
)
from argnn.cli.app import EXAMPLE, FINISHED, NOTHING, InterruptedWorkError, app, complain
from argnn.errors import ArgnnError
from argnn.runs.machine import ending_as_interrupts, noting_ctrl_c
from argnn.runs.ranks import is_leader, leave_process, meeting
from argnn.version import __version__

__all__ = ["app", "main"]

_INTERRUPTED = 130
logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; an error that the user can mend is one line and exit code 2.

    Ctrl-C ends it with code 130, a request to end such as SIGTERM with 128 and its number.
    """
    with ending_as_interrupts() as signals:
        code = _flushed(_exit_code(arguments, signals))
    leave_process(128 + signals[0] if code == _INTERRUPTED and signals else code)


def _exit_code(arguments: Sequence[str] | None, signals: Sequence[int]) -> int:
    ended: list[str] = []  # the command, when its work is over
    try:
        logging.basicConfig(format="argnn: %(message)s")
        logging.getLogger("argnn").setLevel(logging.INFO)
        words, began = sys.argv[1:] if arguments is None else arguments, time.monotonic()
        with meeting():
            if not is_leader():
                return _followed()
            how = {"prog_name": "argnn", "standalone_mode": False, "obj": ended}
            code = app(args=list(words) or ["--help"], **how)
        logger.debug("argnn %s: %.1f s in all", __version__, time.monotonic() - began)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        complain(f"interrupted; {FINISHED if ended else NOTHING}")
        return _INTERRUPTED
    except InterruptedWorkError as error:
        complain(f"interrupted; {error}")
        return _INTERRUPTED
    except Exception as error:
        if not signals:
            return _told(error)
        code = error  # a library has swallowed the interrupt, and broke down later
    if signals:
        complain(f"interrupted; {FINISHED}")
        return _INTERRUPTED
    return code if isinstance(code, int) else 0


def _told(error: Exception) -> int:
    """Say in a line what the user can mend; any other error is one of the program."""
    if isinstance(error, ArgnnError):
        for line in error.lines:
            complain(line)
    elif isinstance(error, OSError):
        complain(_words(error))
    # Typer brings a copy of click along, or uses the installed one; both errors have this.
    elif hasattr(error, "format_message"):
        complain(_usage_words(error))
    else:
        raise error
    return 2


def _followed() -> int:
    """Do what the first process says; after Ctrl-C, which it hears as well, until it has ended."""
    from argnn.runs.parallel import follow

    with noting_ctrl_c() as noted:
        try:
            follow()
        except Exception:
            if not noted:
                raise
            return _INTERRUPTED
    return 0


def _usage_words(error: Any) -> str:
    """What is wrong with the words of a command, with a suggestion or an example."""
    if close := getattr(error, "possibilities", None):
        return f"{error.message}; did you mean {' or '.join(close)}?"
    text: str = error.format_message()
    context = getattr(error, "ctx", None)
    if context is None or not text.startswith(("Missing", "No such option")):
        return text
    _, found, example = (context.command.epilog or "").partition(EXAMPLE)
    if found and text.startswith("Missing"):
        return f"{text.rstrip('.')}; for example: {example}"
    return f"{text.rstrip('.')}; see: {context.command_path} --help"


def _words(error: OSError) -> str:
    """What the operating system said, and about which file."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return f"cannot read or write ({reason})"
    return f"{error.filename}: {reason[:1].lower()}{reason[1:]}"


def _flushed(code: int) -> int:
    """Write what is left of the output, and give the exit code that this leads to."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Otherwise Python would try again when it exits, and print an error of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if code == 0 and error.errno == errno.EPIPE:
            return 1  # the reader has closed the pipe
        if code == 0:
            complain(f"standard output: {_words(error)}")
            return 2
    return code
