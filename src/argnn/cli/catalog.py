"""``argnn datasets``, ``inspect``, ``models`` and ``demo``."""

from pathlib import Path

from argnn.cli import options
from argnn.cli.app import command, keeping, output_console, print_json, print_listing, remarks, say
from argnn.cli.options import option
from argnn.runs.progress import SplitProgress, StepBar


@command("Look", "argnn datasets --json", options.DATA_ROOT, options.AS_JSON)
def datasets(data_root: str | None, as_json: bool) -> None:
    """List the data sets: sizes, homophily, and whether they are at hand."""
    from argnn.settings.catalog import dataset_rows, dataset_table

    print_listing(dataset_rows(data_root), dataset_table, as_json)


@command(
    "Look", "argnn inspect my_folder --label kind", options.DATA, options.AS_JSON, options.GRAPH
)
def inspect(given: options.Given) -> None:
    """Show what was understood of a graph before anything is trained on it."""
    from argnn.data.inspect import inspect_graph, inspection_tables

    with StepBar("inspect") as tell:
        report = inspect_graph(
            given.data,
            root=given.data_root,
            directed=given.directed,
            row_normalize=given.row_normalize,
            columns=options.graph_columns(vars(given)),
            tell=tell,
        )
    if given.as_json:
        print_json(report)
        return
    console = output_console()
    for table in inspection_tables(report):
        console.print(table)
    say(remarks(console), *(f"Note: {line}" for line in report["notes"]))
    say(remarks(console), *(f"Warning: {line}" for line in report["warnings"]))


@command("Look", "argnn models", options.AS_JSON)
def models(as_json: bool) -> None:
    """List the models: geometry, citation and search space."""
    from argnn.settings.catalog import model_rows, model_table

    print_listing(model_rows(), model_table, as_json)


@command(
    "Look",
    "argnn demo",
    option("out", Path, "Folder for the report.", default=Path("argnn-demo")),
)
def demo(out: Path) -> None:
    """Train on two embedded graphs beside a GCN, and write a page about the learned geometry."""
    from argnn.outputs.demo import NOTE, run_demo
    from argnn.runs.tables import comparison_table

    console = output_console()
    remarks(console).print("Training argnn and a GCN on two embedded graphs, on the same splits.")
    with keeping(f"finished splits are in {out}, and the same command begins anew"):
        with SplitProgress(console) as watcher:
            report = run_demo(out, watcher)
        console.print(comparison_table(report.results))
        say(
            console,
            f"Means over {report.num_splits} splits; {report.protocol}.",
            NOTE,
            f"Picture of the learned geometry: {report.picture}",
            f"The learned geometry, node by node: {report.page}",
        )
