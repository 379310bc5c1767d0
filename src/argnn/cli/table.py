"""``argnn table``: results beside published ones, with intervals and paired tests."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from argnn.cli.app import command, output_console
from argnn.cli.completion import one_of
from argnn.cli.options import AsJson, Force
from argnn.errors import ConfigError, error_prefix

_FORMATS = ("rich", "markdown", "csv", "latex", "json")
#: Without --format, the name of the file says it.
_BY_SUFFIX = {".md": "markdown", ".csv": "csv", ".tex": "latex", ".json": "json"}
_FILE_WIDTH = 160


@command("Tables and speed", "argnn table results/embedded.jsonl --out table.tex")
def table(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Results files of argnn bench.")
    ],
    task: Annotated[
        str | None, typer.Option(help="Only node or link.", autocompletion=one_of("node", "link"))
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(help="Only this score, such as f1 or auroc; may be given several times."),
    ] = None,
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="rich, markdown, csv, latex or json; rich if not given.",
            autocompletion=one_of(*_FORMATS),
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write to a file; .md, .csv, .tex, .json say the format.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Method to test rivals against; argnn if there is one.")
    ] = None,
    diagram: Annotated[
        Path | None, typer.Option(help="Draw average ranks to a .pdf, .svg or .png file.")
    ] = None,
    published: Annotated[bool, typer.Option(help="Show published figures beside ours.")] = True,
    comparability: Annotated[
        bool,
        typer.Option(help="Show what choosing epochs by test score would print, where recorded."),
    ] = True,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Compare methods: means with intervals, published figures, paired tests, average ranks."""
    chosen = _chosen_format(output_format, as_json, out)
    _check_outputs(files, out, diagram, force)

    from argnn.bench.leaderboard import check_names, leaderboard, merged
    from argnn.store.results import read_rows

    scores = score or []
    check_names(task, scores)
    rows = merged([(str(path), read_rows(path)) for path in files])
    with error_prefix(f"{', '.join(map(str, files))}:"):
        document = leaderboard(
            rows, task=task, scores=scores, reference=reference, published=published
        )
    document = {"files": [str(path) for path in files], **document}
    if not comparability:
        document["boards"] = [{**board, "comparability": []} for board in document["boards"]]
    # The diagram first: where it cannot be drawn, nothing is printed or written.
    if diagram is not None:
        from argnn.bench.leaderboard.diagram import write_diagram

        write_diagram(document["boards"], diagram, force=force)
    _show(document, chosen, out, force=force, quiet=as_json)
    if diagram is not None and not as_json:
        output_console().print(f"Diagram: {diagram}", soft_wrap=True)


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
    """Refuse to write over what is there, the results, or one output over the other."""
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
