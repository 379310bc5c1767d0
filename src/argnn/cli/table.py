"""``argnn table``: results beside published ones, with intervals and paired tests."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from argnn.cli import options
from argnn.cli.app import command, output_console
from argnn.cli.completion import one_of
from argnn.cli.options import argument, option
from argnn.errors import ConfigError, error_prefix

_FORMATS = ("rich", "markdown", "csv", "latex", "json")
#: Without --format, the name of the file says it.
_BY_SUFFIX = {".md": "markdown", ".csv": "csv", ".tex": "latex", ".json": "json"}
_FILE_WIDTH = 160


@command(
    "Tables and speed",
    "argnn table results/embedded.jsonl --out table.tex",
    argument(
        *("files", list[Path], "Results files of argnn bench."),
        default=options.REQUIRED,
        metavar="FILE",
    ),
    option("task", str, "Only node or link.", values=one_of("node", "link")),
    option("score", list[str], "Only this score, such as f1 or auroc; may be given several times."),
    option(
        "output_format",
        str,
        "rich, markdown, csv, latex or json; rich if not given.",
        "--format",
        values=one_of(*_FORMATS),
    ),
    option("out", Path, "Write to a file; .md, .csv, .tex, .json say the format."),
    option("reference", str, "Method to test rivals against; the experiment's, or argnn."),
    option("diagram", Path, "Draw average ranks to a .pdf, .svg or .png file."),
    option(
        *("published", bool, "Show published figures beside ours.", "--published/--no-published"),
        default=True,
    ),
    option(
        "comparability",
        bool,
        "Show what choosing epochs by test score would print, where recorded.",
        "--comparability/--no-comparability",
        default=True,
    ),
    options.FORCE,
    options.AS_JSON,
)
def table(given: options.Given) -> None:
    """Compare methods: means with intervals, published figures, paired tests, average ranks."""
    chosen = _chosen_format(given.output_format, given.as_json, given.out)
    _check_outputs(given.files, given.out, given.diagram, given.force)

    from argnn.bench.leaderboard import check_names, leaderboard, merged
    from argnn.store.results import read_rows

    scores = given.score or []
    check_names(given.task, scores)
    rows = merged([(str(path), read_rows(path)) for path in given.files])
    with error_prefix(f"{', '.join(map(str, given.files))}:"):
        document = leaderboard(
            rows,
            task=given.task,
            scores=scores,
            reference=given.reference,
            published=given.published,
        )
    document = {"files": [str(path) for path in given.files], **document}
    if not given.comparability:
        document["boards"] = [{**board, "comparability": []} for board in document["boards"]]
    # The diagram first: where it cannot be drawn, nothing is printed or written.
    if given.diagram is not None:
        from argnn.bench.leaderboard.diagram import write_diagram

        write_diagram(document["boards"], given.diagram, force=given.force)
    _show(document, chosen, given.out, force=given.force, quiet=given.as_json)
    if given.diagram is not None and not given.as_json:
        output_console().print(f"Diagram: {given.diagram}", soft_wrap=True)


def _chosen_format(given: str | None, as_json: bool, out: Path | None) -> str:
    if given is not None and given not in _FORMATS:
        raise ConfigError(f"--format must be one of {', '.join(_FORMATS)} (got '{given}')")
    if as_json:
        if given not in (None, "json"):
            raise ConfigError(f"--json and --format {given} exclude each other")
        return "json"
    by_suffix = "rich" if out is None else _BY_SUFFIX.get(out.suffix.lower(), "rich")
    return given or by_suffix


def _check_outputs(
    files: Sequence[Path], out: Path | None, diagram: Path | None, force: bool
) -> None:
    """Raise if an output would replace a file, the results, or the other output."""
    from argnn.files import require_writable

    taken = {path.resolve(): path for path in files}
    for name, path in (("--out", out), ("--diagram", diagram)):
        if path is None:
            continue
        if path.resolve() in taken:
            raise ConfigError(f"{name} {path}: would replace {taken[path.resolve()]}")
        require_writable(path, force)
        taken[path.resolve()] = path
    if diagram is not None:
        from argnn.bench.leaderboard.diagram import check_diagram

        check_diagram(diagram)


def _show(
    document: Mapping[str, Any], chosen: str, out: Path | None, *, force: bool, quiet: bool
) -> None:
    if out is None and chosen == "rich":
        _print(document, output_console())
    elif out is None:
        typer.echo(_text(document, chosen), nl=False)
    else:
        from argnn.files import write_output

        write_output(out, _text(document, chosen).encode(), force=force)
        if not quiet:
            output_console().print(f"Tables: {out}", soft_wrap=True)


def _print(document: Mapping[str, Any], console: Console) -> None:
    from argnn.bench.leaderboard import grids, to_rich

    for grid in grids(document):
        console.print(to_rich(grid))


def _text(document: Mapping[str, Any], chosen: str) -> str:
    from argnn.bench.leaderboard import grids, to_csv, to_latex, to_markdown

    if chosen == "json":
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    if chosen == "csv":
        return to_csv(document)
    if chosen in ("markdown", "latex"):
        return (to_markdown if chosen == "markdown" else to_latex)(grids(document))
    text = io.StringIO()
    _print(document, Console(file=text, width=_FILE_WIDTH, highlight=False))
    return text.getvalue()
