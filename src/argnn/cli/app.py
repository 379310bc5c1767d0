"""The application every command joins, and what all of them share."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console

from argnn.runs.progress import say as say  # commands take it from here
from argnn.version import __version__
from argnn.wording import one_line, printable, without_middle

_PLAIN_WIDTH = 120
_LONGEST_ERROR = 900

app = typer.Typer(
    name="argnn",
    help="Adaptive Riemannian Graph Neural Networks: every node learns its own metric.",
    pretty_exceptions_enable=False,
    add_completion=False,
)


def complain(message: str) -> None:
    """Print an error as one line, without characters that would control the terminal."""
    line = without_middle(printable(one_line(message)), _LONGEST_ERROR)
    typer.echo(f"argnn: error: {line}", err=True)


class InterruptedWorkError(Exception):
    """Ctrl-C, with what is kept in words."""


@contextmanager
def keeping(what: str) -> Iterator[None]:
    """Say what is kept if the user interrupts a command; elsewhere nothing was written."""
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedWorkError(what) from None


def output_console() -> Console:
    """Where results are printed: as wide as the terminal, or of a fixed width elsewhere."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def print_json(document: Any) -> None:
    """Print a document for a machine."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"argnn {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass
