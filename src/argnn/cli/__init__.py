"""The command line: parse, call one function, print. One module per command."""

import logging
import sys
from collections.abc import Sequence

import typer

from argnn.bench.allocator import keep_freed_memory
from argnn.cli import (  # noqa: F401 - importing a command registers it
    analyze,
    bench,
    catalog,
    export,
    figures,
    inspect,
    perf,
    predict,
    table,
    train,
    tune,
)
from argnn.cli.app import app, complain
from argnn.errors import ArgnnError

__all__ = ["app", "main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; an error that the user can mend is one line and exit code 2."""
    logging.basicConfig(format="argnn: %(message)s")
    logging.getLogger("argnn").setLevel(logging.INFO)
    keep_freed_memory()
    try:
        code = app(args=arguments, prog_name="argnn", standalone_mode=False)
    except ArgnnError as error:
        complain(str(error))
        code = 2
    except typer.Abort:
        complain("interrupted")
        code = 130
    except Exception as error:
        # Typer brings a copy of click along, or uses the installed one; both errors have this.
        if not hasattr(error, "format_message"):
            raise
        complain(error.format_message())
        code = 2
    sys.exit(code if isinstance(code, int) else 0)
