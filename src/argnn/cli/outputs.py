"""``argnn predict``, ``export``, ``analyze``, ``importances`` and ``figures``."""

from pathlib import Path
from typing import Any

from argnn.cli import options
from argnn.cli.app import command, output_console, print_json, remarks, say, writing
from argnn.cli.completion import graphs, one_of
from argnn.cli.options import argument, option
from argnn.runs.progress import StepBar

#: How many importances are printed; the table has all.
_MOST_COLUMNS = 20


@command(
    "Use a trained model",
    "argnn predict runs/cora-argnn --out predictions.csv",
    options.RUN,
    argument("data", str, "Name or path of a graph; that of the run if not given.", values=graphs),
    option("out", Path, "The table to write.", default=Path("predictions.csv")),
    options.SPLIT,
    option("pairs", Path, "For links: CSV file with columns source,target."),
    option("top", int, "For links: suggest so many new ones instead.", min=1),
    option("node", str, "With --top: only links of the node with this id."),
    option(
        *("new_nodes", Path),
        "Predict nodes that the graph does not have: .csv, .parquet or .npz.",
    ),
    option("new_edges", Path, "Their edges: a table with columns source,target."),
    options.DEVICE.replace(default="cpu"),
    options.FORCE,
    options.DATA_ROOT,
    options.AS_JSON,
)
def predict(as_json: bool, **rest: Any) -> None:
    """Predict the class, labels or numbers of every node, or links: of given pairs, or new ones."""
    from argnn.outputs import predict as work

    with StepBar("predict") as tell:
        report = work.predict(**rest, tell=tell)
    _show(report, as_json, *_prediction_lines(report))


def _rule_lines(rule: dict[str, Any] | None) -> list[str]:
    """The threshold between two classes, where it is not a probability of one half."""
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


@command(
    "Use a trained model",
    "argnn export runs/cora-argnn --format onnx",
    options.RUN,
    option("out", Path, "The file to write; model.pt2 or model.onnx if not given."),
    options.SPLIT,
    option(
        "kind_of_file",
        str,
        "pt2, which torch alone can run, or onnx.",
        "--format",
        default="pt2",
        values=one_of("pt2", "onnx"),
    ),
    options.FORCE,
    options.AS_JSON,
)
def export(
    run: Path, out: Path | None, split: int | None, kind_of_file: str, force: bool, as_json: bool
) -> None:
    """Write a trained model as a torch.export program, or as an ONNX model."""
    from argnn.outputs.export import export_model

    kind = kind_of_file
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


@command(
    "Use a trained model",
    "argnn analyze runs/cora-argnn --out report.html",
    options.TRAINED,
    option("out", Path, "The page to write.", default=Path("report.html")),
    options.SPLIT,
    option("seed", int, "Seed of the drawing and of the rewiring.", default=0),
    option("tables", Path, "Folder for the statistics as tables, too."),
    option(
        *("table_format", str, "csv or parquet."),
        default="csv",
        values=one_of("csv", "parquet"),
    ),
    option("ollivier", bool, "Tables with Ollivier-Ricci curvatures; slow."),
    options.FORCE,
    options.DATA_ROOT,
    options.AS_JSON,
)
def analyze(as_json: bool, **rest: Any) -> None:
    """Write an interactive page about the learned geometry: one file, no network needed."""
    from argnn.outputs import analyze as work

    with StepBar("analyze") as tell:
        report = work.analyze(**rest, tell=tell)
    layers = f"{report['layers']} layers" if report["layers"] else "no metric"
    _show(
        report,
        as_json,
        f"{report['data']}: {report['nodes']} nodes, {report['model']}, split {report['split']}, "
        f"{layers}",
        report["headline"],
        *(f"Note: {note}" for note in report["notes"]),
        *(f"Table: {file}" for file in report["tables"]),
        f"Page: {report['out']} ({report['size'] / 1e6:.1f} MB)",
    )


@command(
    "Use a trained model",
    "argnn importances runs/shop-argnn",
    options.TRAINED,
    option("out", Path, "The table to write.", default=Path("importances.csv")),
    options.SPLIT,
    option("repeats", int, "How often each column is shuffled.", default=5, min=1),
    option("seed", int, "Seed of the shuffling.", default=0),
    options.FORCE,
    options.DATA_ROOT,
    options.AS_JSON,
)
def importances(as_json: bool, **rest: Any) -> None:
    """Shuffle each column of the nodes, and say by how much the validation score falls."""
    from argnn.outputs import importances as work

    report = work.importances(**rest, verbose=False if as_json else None)
    _show(
        report,
        as_json,
        f"{report['data']}: {report['model']}, fall of the validation score",
        *(
            f"  {row['column']}: {row['importance']:.4f} (deviation {row['deviation']:.4f})"
            for row in report["columns"][:_MOST_COLUMNS]
        ),
        f"Table: {report['out']}",
    )


@command(
    "Use a trained model",
    "argnn figures runs/cora-argnn --format pdf",
    argument("runs", list[Path], "Folders of runs."),
    option("out", Path, "Folder for the figures.", default=Path("figures")),
    option("results", list[Path], "Results file of argnn bench, for the bars."),
    options.SPLIT,
    option(
        "formats",
        list[str],
        "pdf, svg or png; all if not given.",
        "--format",
        values=one_of("pdf", "svg", "png"),
    ),
    option("dpi", int, "Dots per inch of images.", default=200, min=30, max=1200),
    options.FORCE,
    options.DATA_ROOT,
    options.AS_JSON,
)
def figures(as_json: bool, **rest: Any) -> None:
    """Draw the figures of some runs: maps, hulls, metrics, training, homophily and bars."""
    from argnn.analysis.figures import FORMATS
    from argnn.outputs.figures import draw_figures

    usual = {"runs": (), "results": (), "formats": FORMATS}
    rest |= {name: rest[name] or values for name, values in usual.items()}
    with StepBar("figures") as tell:
        report = draw_figures(**rest, tell=tell)
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
