"""``argnn ablate``: vary one part of argnn and compare the levels."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from argnn.cli import completion, options
from argnn.cli.app import command, output_console, print_json, print_listing, say
from argnn.cli.bench import keeping_results, ran, report_failures, with_results_files
from argnn.cli.options import argument, option
from argnn.errors import ConfigError
from argnn.tables import rich_table

if TYPE_CHECKING:
    from argnn.bench.experiments.files import DataChoice, Experiment

_GRAPH = [option for option in options.GRAPH if option.name != "row_normalize"]


@command(
    "Train",
    "argnn ablate cora --study depth",
    argument(
        "data",
        str,
        "A data set or the path of a graph; cora, actor, wisconsin if none.",
        values=completion.graphs,
    ),
    option(
        "study",
        list[str],
        "Name of a study (see --list); may be repeated; all if not given.",
        values=completion.studies,
    ),
    option("split", str, "Number of the split, several with commas, or all.", default="all"),
    option("seeds", int, "Seeds of each split; five on small graphs, else one."),
    option(
        "settings",
        list[str],
        "key=value for all levels, such as train.epochs=50.",
        "--set",
        values=completion.settings,
    ),
    option("out", Path, "Results file; results/ablate-STUDY.jsonl if not given."),
    option("plots", Path, "Folder for a figure of each study, ablate-STUDY.png."),
    options.EXECUTOR,
    options.CELLS,
    options.ADDRESS,
    options.DEVICE,
    option("listing", bool, "List the studies.", "--list"),
    options.FORCE,
    options.AS_JSON,
    _GRAPH,
)
def ablate(given: options.Given) -> None:
    """Change one part of argnn at a time and compare, paired over splits.

    Each level has the settings stored for the graph, or those of the preset, with one change.
    Nothing is tuned again. The same command goes on where it was stopped.
    """
    from argnn.bench.ablation import find_study, levels, studies

    console = output_console(given.as_json)
    if given.listing:
        _list_studies(studies(), given.as_json)
        return
    choice = _choice(given)
    task = _task(choice, given.data_root)
    chosen = [
        find_study(
            name,
            choice,
            splits=_splits(given.split),
            seeds=None if given.seeds is None else tuple(range(given.seeds)),
            settings=given.settings or (),
            task=task,
        )
        for name in given.study or studies()
    ]
    figures = _figure_paths(chosen, given.plots, given.force)
    targets = with_results_files(chosen, given.out)
    with keeping_results(targets):
        found = ran(targets, console, given)
        reports = []
        for experiment, path in targets:
            report = {
                "study": experiment.name,
                "title": experiment.title,
                "score": experiment.score,
                "results": str(path),
                "levels": levels(experiment, found.of(experiment)),
            }
            reports.append(report)
            _print_report(report, console)
            _draw(experiment, report, figures.get(experiment.name), given.force)
        if given.as_json:
            print_json({"studies": reports})
        report_failures(found)


def _choice(given: options.Given) -> "DataChoice | None":
    """The user's own graph, with what the options say about it."""
    from argnn.bench.experiments.files import DataChoice, data_choice

    if given.data is None:
        return None
    choice = DataChoice(given.data, given.directed, options.graph_columns(vars(given)))
    return data_choice(choice, Path.cwd())


def _task(choice: "DataChoice | None", data_root: str | None) -> str:
    """What the labels of the user's own graph are; the known graphs have classes."""
    from argnn.data import DATASETS
    from argnn.runs.prepare import load_graph
    from argnn.settings.resolve import AUTO, Request

    if choice is None or choice.name in DATASETS:
        return "node"
    request = Request(
        choice.name,
        task=AUTO,
        directed=choice.directed,
        columns=choice.columns,
        data_root=data_root,
    )
    return str(load_graph(choice.name, request).get("target_kind") or "node")


def _splits(text: str) -> tuple[int, ...] | None:
    words = [word.strip() for word in text.split(",")]
    if words == ["all"]:
        return None
    if not all(word.isascii() and word.isdigit() for word in words):
        raise ConfigError(f"--split must be numbers with commas, or all (got '{text}')")
    return tuple(dict.fromkeys(int(word) for word in words))


def _list_studies(known: "Mapping[str, Experiment]", as_json: bool) -> None:
    rows = [
        {
            "name": name,
            "title": study.title,
            "levels": [method.label for method in study.methods],
            "reference": study.reference,
            "tables": list(study.tables),
        }
        for name, study in known.items()
    ]
    header = ("study", "what is changed", "levels")
    cells = [[name, study.title, str(len(study.methods))] for name, study in known.items()]
    print_listing(rows, lambda _: rich_table(header, cells, left=header[:2]), as_json)


def _figure_paths(
    chosen: "Sequence[Experiment]", folder: Path | None, force: bool
) -> dict[str, Path]:
    """Where figures go; refused before the work if one is there already."""
    from argnn.files import require_folder, require_writable

    if folder is None:
        return {}
    require_folder(folder)
    paths = {experiment.name: folder / f"{experiment.name}.png" for experiment in chosen}
    for path in paths.values():
        require_writable(path, force)
    return paths


def _draw(
    experiment: "Experiment", report: Mapping[str, Any], path: Path | None, force: bool
) -> None:
    if path is None:
        return
    from argnn.analysis.figures import ablation_figure
    from argnn.analysis.figures.style import figure_bytes
    from argnn.bench.ablation import bars
    from argnn.files import write_output
    from argnn.runs.summary import INTERVAL
    from argnn.runs.tables import SCORE_NAMES

    figure = ablation_figure(
        bars(experiment, report["levels"]), f"Test {SCORE_NAMES[experiment.score]}", INTERVAL
    )
    write_output(path, figure_bytes(figure, "png"), force=force)


def _print_report(report: Mapping[str, Any], console: Console) -> None:
    from argnn.runs.tables import SCORE_NAMES

    score = SCORE_NAMES[report["score"]]
    console.print(f"{report['study']}: {report['title']}; test {score}", style="bold")
    for graph in dict.fromkeys(level["graph"] for level in report["levels"]):
        rows = [_cells(level) for level in report["levels"] if level["graph"] == graph]
        header = [name for name in rows[0] if any(row[name] for row in rows)]
        cells = [[row[name] for name in header] for row in rows]
        console.print(rich_table(header, cells, left=("level",), title=graph))
    say(
        console,
        "Differences: level minus reference (marked *), paired over splits, with their 95 % "
        "interval; p: Wilcoxon, Holm-corrected over the levels of a graph. Bold: the best by "
        "validation. Converged: median epoch that reaches 99 % of the best validation score. "
        "Unstable: runs that failed, or ended with a larger loss than they began with.",
    )
    say(console, f"Results: {report['results']} (argnn table, argnn figures --results)")


def _cells(level: Mapping[str, Any]) -> dict[str, str]:
    """The cells of a level by column; a column that is empty for all levels is not shown."""
    from rich.markup import escape

    from argnn.bench.leaderboard.grids import points
    from argnn.runs.tables import per_cent, with_interval

    tested = level["difference"]
    p = tested and tested["wilcoxon"] and tested["wilcoxon"]["holm"]
    name = escape(level["level"]) + (" *" if level["reference"] else "")
    return {
        "level": f"[bold]{name}[/bold]" if level["best_by_validation"] else name,
        "validation": per_cent(level["val"]["mean"]),
        "test": with_interval(level["test"]),
        "difference": "" if tested is None else points(tested["difference"], tested["interval"]),
        "p": "" if p is None else f"{p:.3f}",
        "converged": _number(level["converged_at"], "g"),
        "s/epoch": _number(level["seconds_per_epoch"], ".3f"),
        "MiB": _number(level["peak_memory_mib"], ".0f"),
        "unstable": f"{level['unstable']} of {level['runs']}" if level["unstable"] else "",
        "published": ", ".join(per_cent(value["value"], 1) for value in level["published"]),
    }


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
