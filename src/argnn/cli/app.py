"""The application to which commands are added, and functions that they share."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, RenderableType

from argnn.cli import options
from argnn.runs.progress import remarks as remarks  # commands take these two from here
from argnn.runs.progress import say as say
from argnn.version import __version__
from argnn.wording import one_line, printable, without_middle

_PLAIN_WIDTH = 120
_LONGEST_ERROR = 900
EXAMPLE = "Example: "
NOTHING = "nothing was written"
FINISHED = "what was finished before is kept"
#: Options and arguments that name what a command writes, which it puts in its place whole.
_OUTPUTS = ("out", "tables", "diagram", "json_file", "store", "plots")

app = typer.Typer(
    name="argnn",
    help="Adaptive Riemannian Graph Neural Networks: every node learns its own metric.",
    epilog="Begin with: argnn demo. Exit codes: 0 done; 1 a part of the work failed; 2 something "
    "to mend, named in one line; 130 interrupted.",
    pretty_exceptions_enable=False,
)


def command(
    heading: str, example: str, *listed: Parameter | options.Group
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command to the application.

    Args:
        heading: Under which the help lists it.
        example: A use of it, which its help shows, and its errors about missing words.
        *listed: Its arguments and options, one by one or in groups. The function gets those that
            are among its parameters. A parameter ``**rest`` gets all others, and ``given`` one
            object with all of them and Typer's ``context``.
    """
    groups = [[one] if isinstance(one, Parameter) else one for one in listed]
    parameters = [one for group in groups for one in group]
    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    asked = Signature([context, *parameters, *options.SAYING])

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        named = signature(function).parameters
        has_rest = any(one.kind is Parameter.VAR_KEYWORD for one in named.values())
        wanted = [one.name for one in parameters if has_rest or one.name in named]

        @wraps(function)
        def guarded(**given: Any) -> None:
            with writing(*(given.get(name) for name in _OUTPUTS)):
                known = {name: given[name] for name in wanted}
                function(**known, **({"given": options.Given(**given)} if "given" in named else {}))
            if given["context"].obj is not None:
                given["context"].obj.append(function.__name__)

        guarded.__signature__ = asked  # type: ignore[attr-defined]
        return app.command(epilog=EXAMPLE + example, rich_help_panel=heading)(guarded)

    return decorate


def complain(message: str) -> None:
    """Print an error as one line, without characters that would control the terminal."""
    line = without_middle(printable(one_line(message)), _LONGEST_ERROR)
    typer.echo(f"argnn: error: {line}", err=True)


class InterruptedWorkError(Exception):
    """Ctrl-C, with words that say what is kept."""


@contextmanager
def keeping(what: str) -> Iterator[None]:
    """Say what is kept if the user interrupts a command; elsewhere nothing was written."""
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedWorkError(what) from None


@contextmanager
def writing(*outputs: Path | None) -> Iterator[None]:
    """If the user interrupts a command, say which of its outputs it has written by then."""
    before = {path: _stamp(path) for path in outputs if path is not None}
    try:
        yield
    except KeyboardInterrupt:
        written = [str(path) for path, stamp in before.items() if _stamp(path) != stamp]
        text = f"{', '.join(written)}: written" if written else NOTHING
        raise InterruptedWorkError(text) from None


def _stamp(path: Path) -> tuple[int, int] | None:
    """What identifies the file or folder at a path; it changes when another one is put there."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns


def output_console(quiet: bool = False) -> Console:
    """Where results are printed: as wide as the terminal, or of a fixed width elsewhere."""
    if quiet:
        return Console(quiet=True)
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def print_json(document: Any) -> None:
    """Print a document for a machine."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def print_listing(
    rows: Sequence[Any], table: Callable[[Any], RenderableType], as_json: bool
) -> None:
    """Print a list: as one JSON document, or as a table."""
    if as_json:
        print_json(rows)
    else:
        output_console().print(table(rows))


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"argnn {__version__}")
        raise typer.Exit


def _common(**given: Any) -> None:
    pass


_VERSION = options.option(
    "version", bool, "Show the version.", callback=_show_version, is_eager=True
)
_common.__signature__ = Signature([_VERSION, *options.SAYING])  # type: ignore[attr-defined]
app.callback()(_common)
