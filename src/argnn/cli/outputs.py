"""What trained models give: ``argnn predict``, ``export``, ``analyze`` and ``figures``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from argnn.cli.app import command, output_console, print_json, remarks, say, writing
from argnn.cli.completion import graphs, one_of
from argnn.cli.options import AsJson, DataRoot, Device, Force, Run, Split
from argnn.runs.progress import StepBar

#: How many importances are printed; the table has all.
_MOST_COLUMNS = 20


@command("Use a trained model", "argnn predict runs/cora-argnn --out predictions.csv")
def predict(
    run: Run,
    data: Annotated[
        str | None,
        typer.Argument(
            help="Name or path of a graph; that of the run if not given.", autocompletion=graphs
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The table to write.")] = Path("predictions.csv"),
    split: Split = None,
    pairs: Annotated[
        Path | None, typer.Option(help="For links: CSV file with columns source,target.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="For links: suggest so many new ones instead.")
    ] = None,
    node: Annotated[
        str | None, typer.Option(help="With --top: only links of the node with this id.")
    ] = None,
    new_nodes: Annotated[
        Path | None,
        typer.Option(help="Predict nodes that the graph does not have: .csv, .parquet or .npz."),
    ] = None,
    new_edges: Annotated[
        Path | None, typer.Option(help="Their edges: a table with columns source,target.")
    ] = None,
    device: Device = "cpu",
    force: Force = False,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Predict the class, labels or numbers of every node, or links: of given pairs, or new ones."""
    from argnn.outputs import predict as work

    with StepBar("predict") as tell:
        report = work.predict(
            run,
            out,
            data=data,
            split=split,
            pairs=pairs,
            top=top,
            node=node,
            new_nodes=new_nodes,
            new_edges=new_edges,
            force=force,
            data_root=data_root,
            device=device,
            tell=tell,
        )
    _show(report, as_json, *_prediction_lines(report))


def _rule_lines(rule: dict[str, Any] | None) -> list[str]:
    """From where a node is of a class, where that is not the more probable one."""
    if rule is None:
        return []
    return [f"A node is of class {rule['class']} from probability {rule['from_probability']:.3g}."]


def _prediction_lines(report: dict[str, Any]) -> list[str]:
    is_node, ece = report["task"] != "link", report["ece"]
    calibration = "Probabilities are not calibrated."
    if ece is not None:
        calibration = (
            f"Probabilities: temperature {report['temperature']:.3g}, expected calibration error "
            f"{100 * ece:.1f} % on validation."
        )
    counts = {n if is_node else ("no link", "link")[int(n)]: c for n, c in report["counts"].items()}
    return [
        f"{report['data']}: {report['rows']} {'nodes' if is_node else 'pairs'} with "
        f"{report['model']}",
        *(f"  {label}: {count}" for label, count in counts.items()),
        *(f"Note: {note}" for note in report["notes"]),
        *([] if report["task"] == "regression" else [calibration]),
        *_rule_lines(report["decision_rule"]),
        f"Table: {report['out']}",
    ]


@command("Use a trained model", "argnn export runs/cora-argnn --format onnx")
def export(
    run: Run,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; model.pt2 or model.onnx if not given.")
    ] = None,
    split: Split = None,
    kind: Annotated[
        str,
        typer.Option(
            "--format",
            help="pt2, which torch alone can run, or onnx.",
            autocompletion=one_of("pt2", "onnx"),
            rich_help_panel="Output",
        ),
    ] = "pt2",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a trained model as a torch.export program, or as an ONNX model."""
    from argnn.outputs.export import export_model

    out = Path(f"model.{kind}") if out is None else out
    with writing(out):
        with StepBar("export") as tell:
            report = export_model(run, out, split=split, kind=kind, force=force, tell=tell)
        runs = f"torch.export.load('{out}').module()(...)"
        if kind == "onnx":
            runs = f"onnxruntime.InferenceSession('{out}').run(None, ...)"
        _show(
            report,
            as_json,
            f"{report['model']}: {report['size']} bytes",
            *(f"  {name}: {text}" for name, text in report["inputs"].items()),
            f"  returns: {report['output']}",
            f"Program: {out}; {runs} runs it.",
        )


@command("Use a trained model", "argnn analyze runs/cora-argnn --out report.html")
def analyze(
    run: Annotated[Path, typer.Argument(help="Folder of a run of argnn train.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    split: Split = None,
    seed: Annotated[int, typer.Option(help="Seed of the drawing and of the rewiring.")] = 0,
    tables: Annotated[
        Path | None, typer.Option(help="Folder for the statistics as tables, too.")
    ] = None,
    table_format: Annotated[
        str, typer.Option(help="csv or parquet.", autocompletion=one_of("csv", "parquet"))
    ] = "csv",
    ollivier: Annotated[
        bool, typer.Option("--ollivier", help="Tables with Ollivier-Ricci curvatures; slow.")
    ] = False,
    force: Force = False,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Write an interactive page about the learned geometry: one file, no network needed."""
    from argnn.outputs import analyze as work

    with StepBar("analyze") as tell:
        report = work.analyze(
            run,
            out,
            split=split,
            force=force,
            data_root=data_root,
            seed=seed,
            tables=tables,
            table_format=table_format,
            ollivier=ollivier,
            tell=tell,
        )
    layers = f"{report['layers']} layers" if report["layers"] else "no metric"
    _show(
        report,
        as_json,
        f"{report['data']}: {report['nodes']} nodes, {report['model']}, split {report['split']}, "
        f"{layers}",
        report["headline"],
        *(f"Note: {note}" for note in report["notes"]),
        *(f"Table: {file}" for file in report["tables"]),
        f"Page: {out} ({report['size'] / 1e6:.1f} MB)",
    )


@command("Use a trained model", "argnn importances runs/shop-argnn")
def importances(
    run: Annotated[Path, typer.Argument(help="Folder of a run of argnn train.")],
    out: Annotated[Path, typer.Option(help="The table to write.")] = Path("importances.csv"),
    split: Split = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often each column is shuffled.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the shuffling.")] = 0,
    force: Force = False,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Shuffle each column of the nodes, and say by how much the validation score falls."""
    from argnn.outputs import importances as work

    report = work.importances(
        run,
        out,
        split=split,
        repeats=repeats,
        seed=seed,
        force=force,
        data_root=data_root,
        verbose=False if as_json else None,
    )
    _show(
        report,
        as_json,
        f"{report['data']}: {report['model']}, fall of the validation score",
        *(
            f"  {row['column']}: {row['importance']:.4f} (deviation {row['deviation']:.4f})"
            for row in report["columns"][:_MOST_COLUMNS]
        ),
        f"Table: {out}",
    )


@command("Use a trained model", "argnn figures runs/cora-argnn --format pdf")
def figures(
    runs: Annotated[list[Path] | None, typer.Argument(help="Folders of runs.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("figures"),
    results: Annotated[
        list[Path] | None, typer.Option(help="Results file of argnn bench, for the bars.")
    ] = None,
    split: Split = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="pdf, svg or png; all if not given.",
            autocompletion=one_of("pdf", "svg", "png"),
        ),
    ] = None,
    dpi: Annotated[int, typer.Option(min=30, max=1200, help="Dots per inch of images.")] = 200,
    force: Force = False,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Draw the figures of some runs: maps, hulls, metrics, training, homophily and bars."""
    from argnn.analysis.figures import FORMATS
    from argnn.outputs.figures import draw_figures

    with StepBar("figures") as tell:
        report = draw_figures(
            runs or [],
            out,
            results=results or [],
            split=split,
            formats=formats or FORMATS,
            dpi=dpi,
            force=force,
            data_root=data_root,
            tell=tell,
        )
    points = [[_shown(*item) for item in point.items()] for point in report["points"]]
    _show(
        report,
        as_json,
        *(f"Note: {note}" for note in report["notes"]),
        *(f"{name}: {', '.join(numbers)}" for name, *numbers in points),
        *report["files"],
    )


def _shown(name: str, value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return f"{name} not defined" if value is None else f"{name} {value:.3g}"


def _show(report: dict[str, Any], as_json: bool, *lines: str) -> None:
    """Print a report for a machine, or these lines for a person."""
    if as_json:
        print_json(report)
        return
    console = output_console()
    for line in lines:
        say(remarks(console) if line.startswith("Note: ") else console, line)
