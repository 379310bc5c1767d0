"""``argnn bench``: run the cells of experiments, and go on where an earlier run stopped."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from argnn.cli.app import app, complain, keeping, output_console, print_json, say
from argnn.cli.bench_progress import CellProgress, counted
from argnn.cli.options import Address, AsJson, DataRoot, Device, Executor
from argnn.errors import ConfigError
from argnn.tables import rich_table

if TYPE_CHECKING:
    from rich.table import Table

    from argnn.bench.experiments.cells import Bench, CellKey
    from argnn.bench.experiments.files import Experiment
    from argnn.store.results import Row

_SHOWN_FAILURES = 5


@app.command()
def bench(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help="Names (see --list), or paths of YAML files.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Results file; results/EXPERIMENT.jsonl if not given.")
    ] = None,
    executor: Executor = "local",
    workers: Annotated[
        int | None, typer.Option(help="Cells at the same time; one per core if not given.")
    ] = None,
    address: Address = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run cells again that failed before.")
    ] = False,
    device: Device = "auto",
    data_root: DataRoot = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List the experiments of the package.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run experiments cell by cell; finished cells are skipped on restart."""
    if listing:
        _list_experiments(as_json)
        return
    from argnn.bench.experiments.cells import plan_bench, run_bench
    from argnn.runs.pool import open_executor

    targets = _targets(experiments or [], out)
    console = Console(quiet=True) if as_json else output_console()
    results = ", ".join(dict.fromkeys(str(path) for _, path in targets))
    with (
        keeping(f"what is finished is in {results}, and the same command goes on"),
        open_executor(executor, workers, address) as slots,
        CellProgress(console) as watcher,
    ):
        planned = plan_bench(
            targets,
            workers=slots,
            device=device,
            data_root=data_root,
            executor=executor,
            tell=watcher.preparing,
        )
        rows = run_bench(planned, watcher, executor=executor, retry_failed=retry_failed)
    reports = [_report(*target, planned, rows) for target in targets]
    if as_json:
        print_json({"experiments": reports})
    else:
        for report in reports:
            _print_report(report, console)
    _report_failures(planned, rows)


def _list_experiments(as_json: bool) -> None:
    from argnn.bench.experiments.files import packaged_experiments

    rows = [
        {
            "name": experiment.name,
            "task": experiment.task,
            "cells": experiment.num_cells(),
            "title": experiment.title,
            "tables": list(experiment.tables),
        }
        for experiment in packaged_experiments().values()
    ]
    if as_json:
        print_json(rows)
    else:
        names = ("name", "task", "cells", "title")
        cells = [[str(row[name]) for name in names] for row in rows]
        output_console().print(rich_table(names, cells, left=("name", "task", "title")))


def _targets(names: list[str], out: Path | None) -> "list[tuple[Experiment, Path]]":
    """The experiments, and the results file of each; files that are there must be sound."""
    from argnn.bench.experiments.files import find_experiment
    from argnn.store.results import check_results

    if not names:
        raise ConfigError("name an experiment (see argnn bench --list) or a YAML file")
    found: list[tuple[Experiment, Path]] = []
    for name in names:
        experiment = find_experiment(name)
        if experiment.name in [other.name for other, _ in found]:
            raise ConfigError(f"experiment '{experiment.name}' is named twice")
        found.append((experiment, out or Path("results") / f"{experiment.name}.jsonl"))
    for path in dict.fromkeys(path for _, path in found):
        if path.exists() and not path.is_file():
            raise ConfigError(f"--out {path}: is not a plain file")
        if path.exists():
            check_results(path)
    return found


def _report(
    experiment: "Experiment", path: Path, planned: "Bench", rows: "Mapping[CellKey, Row]"
) -> dict[str, Any]:
    """What became of an experiment."""
    from argnn.bench.experiments.cells import outcomes

    own = [rows[key] for key in planned.members[experiment.name]]
    failed = sum("error" in row for row in own)
    return {
        "experiment": experiment.name,
        "results": str(path),
        "cells": len(own),
        "finished": len(own) - failed,
        "failed": failed,
        "score": experiment.score,
        "outcomes": outcomes(own, experiment.score),
    }


def _print_report(report: dict[str, Any], console: Console) -> None:
    from argnn.runs.tables import SCORE_NAMES

    score = SCORE_NAMES[report["score"]]
    console.print(f"{report['experiment']}: mean test {score} in per cent", style="bold")
    console.print(_outcome_table(report))
    say(
        console,
        f"{counted(report['cells'])}: {report['finished']} finished, {report['failed']} failed. "
        f"Results: {report['results']}",
    )
    say(console, f"Next: argnn table {report['results']}")


def _outcome_table(report: dict[str, Any]) -> "Table":
    """Methods by graphs."""
    from rich.text import Text

    found = {(row["method"], _graph(row)): row for row in report["outcomes"]}
    graphs = list(dict.fromkeys(graph for _, graph in found))
    columns = [(graph, "test") for graph in graphs]
    for graph in {_graph(row) for row in found.values() if "test_without_twins" in row}:
        columns.insert(columns.index((graph, "test")) + 1, (graph, "test_without_twins"))
    names = [graph + ("" if part == "test" else ", without twins") for graph, part in columns]
    rows: list[list[Text | str]] = [
        [Text(method), *(_mean(found.get((method, graph)), part) for graph, part in columns)]
        for method in dict.fromkeys(method for method, _ in found)
    ]
    return rich_table(["method", *names], rows, left=("method",))


def _graph(row: dict[str, Any]) -> str:
    return Path(row["data"]).stem + (" (directed)" if row["directed"] else "")


def _mean(row: dict[str, Any] | None, part: str) -> str:
    from argnn.runs.tables import per_cent

    if row is None:
        return ""
    failed = f" ({row['failed']} failed)" if row["failed"] else ""
    return per_cent(row[part]["mean"] if part in row else None) + failed


def _report_failures(planned: "Bench", rows: "Mapping[CellKey, Row]") -> None:
    """Name the first failed cells; all of them are in the results."""
    failed = [(cell, rows[cell.key]) for cell in planned.cells if "error" in rows[cell.key]]
    for cell, row in failed[:_SHOWN_FAILURES]:
        complain(f"{cell.label} failed: {row['error']}")
    if failed:
        complain(f"{counted(len(failed))} failed; --retry-failed runs them again")
        raise typer.Exit(1)
