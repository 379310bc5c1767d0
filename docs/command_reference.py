"""The directive ``argnn-commands``: all commands with all options, read from the program."""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from argnn.cli import app
from argnn.cli.app import EXAMPLE


def escaped(text: str) -> str:
    """A text whose characters mean themselves."""
    return re.sub(r"([*`|_\\])", r"\\\1", " ".join(text.split()))


def option_lines(option: Any) -> Iterator[str]:
    """An option or argument: how it is written, what it means, and its default."""
    is_argument = option.param_type_name == "argument"
    words = [option.metavar or option.name.upper()] if is_argument else option.opts
    words = [*words, *option.secondary_opts]
    has_value = not (is_argument or option.is_flag)
    yield ", ".join(f"``{word}``" for word in words) + (f" *{option.bare_type()}*" * has_value)
    default = option.default
    known = has_value and not option.required and default is not None
    yield f"   {escaped(option.help or '')}" + (f" Default: ``{default}``." if known else "")


def reference() -> Iterator[str]:
    """All commands, as lines of reStructuredText."""
    for name, command in sorted(get_command(app).commands.items()):
        title = f"argnn {name}"
        yield from (title, "-" * len(title), "")
        yield from (escaped(part) + "\n" for part in command.help.split("\n\n"))
        yield from (".. code-block:: sh", "", f"   {command.epilog.removeprefix(EXAMPLE)}", "")
        panels: dict[str, list[Any]] = {}
        for option in command.params:
            usual = "Arguments" if option.param_type_name == "argument" else "Options"
            panels.setdefault(option.rich_help_panel or usual, []).append(option)
        for heading, options in panels.items():
            yield from (f"**{heading}**", "")
            for option in options:
                yield from option_lines(option)
            yield ""


class Commands(SphinxDirective):
    """One section for each command."""

    def run(self) -> list[nodes.Node]:
        """Parse the reference where the directive stands."""
        text = "\n".join(reference())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("argnn-commands", Commands)
    return {"version": "1", "parallel_read_safe": True}
