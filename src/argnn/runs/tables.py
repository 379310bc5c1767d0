"""Results as Rich tables; printing them is left to the command line."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from argnn.runs.summary import SCORES, SELECTION, has_twins, without_twins

SCORE_NAMES = {
    "f1": "F1 (weighted)",
    "f1_macro": "F1 (macro)",
    "accuracy": "accuracy",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "hits@10": "hits@10",
    "hits@50": "hits@50",
    "mrr": "MRR",
}


def per_cent(value: float | None, digits: int = 2) -> str:
    """A share in per cent.

    Example:
        >>> per_cent(0.8765), per_cent(None)
        ('87.65', '-')
    """
    return "-" if value is None else f"{100 * value:.{digits}f}"


def with_interval(statistic: Mapping[str, Any]) -> str:
    """A mean in per cent, with its interval where there is one."""
    text = per_cent(statistic["mean"])
    return text if statistic["interval"] is None else f"{text} ± {per_cent(statistic['interval'])}"


def test_text(row: Mapping[str, Any], score: str) -> str:
    """A test score of one split, with that of the nodes without twins where there are twins.

    Example:
        >>> twins = {"test": 9, "with_twin": 4}
        >>> test_text({"test": {"f1": 0.9}, "twins": twins, "test_without_twins": None}, "f1")
        '90.00 (without twins -)'
    """
    text = per_cent((row["test"] or {}).get(score))
    if not has_twins(row):
        return text
    return f"{text} (without twins {per_cent((without_twins(row) or {}).get(score))})"


def score_table(summary: Mapping[str, Any]) -> Table:
    """Test scores of a run, and the validation score that chose its epochs."""
    several, others = summary["splits"] > 1, summary.get("test_without_twins")
    table = Table()
    table.add_column("score")
    table.add_column("mean ± interval, %" if several else "%", justify="right")
    if several:
        table.add_column("sd", justify="right")
        table.add_column("splits", justify="right")
    if others:
        table.add_column("without twins, %", justify="right")
    for part, word in (("test", "test"), ("val", "validation")):
        for name, value in summary[part].items():
            cells = [per_cent(value["sd"]), str(value["n"])] if several else []
            if others:
                cells.append(with_interval(others[name]) if part == "test" else "-")
            table.add_row(f"{word} {SCORE_NAMES[name]}", with_interval(value), *cells)
    return table


def twin_sentence(summary: Mapping[str, Any]) -> str | None:
    """What the column without twins leaves out; None where there is no such column."""
    if "test_without_twins" not in summary:
        return None
    twins = summary["twins"]
    return (
        f"Twins: {per_cent(twins['with_twin'] / twins['test'], 1)} % of the test nodes have the "
        "same neighbours as a training node, whose class can be copied. Without twins: the other "
        "test nodes."
    )


def trial_table(trial: Mapping[str, Any]) -> Table:
    """The short runs that chose the switches; the choice is marked."""
    table = Table(title="short runs on validation", title_justify="left")
    for name in ("", "switches", "validation accuracy, %", "loss", "s"):
        table.add_column(name, justify="left" if name in ("", "switches") else "right")
    for run in trial["runs"]:
        table.add_row(
            "*" if run["name"] == trial["chosen"] else "",
            run["name"],
            per_cent(run["val_score"]),
            "diverged" if run["val_loss"] is None else f"{run['val_loss']:.3f}",
            f"{run['seconds']:.1f}",
        )
    return table


def chosen_table(trials: Sequence[Mapping[str, Any]]) -> Table:
    """What the trial of each split chose."""
    table = Table(title="chosen by short runs on validation", title_justify="left")
    for name in ("split", "switches", "validation accuracy, %"):
        table.add_column(name, justify="left" if name == "switches" else "right")
    for trial in trials:
        [run] = [run for run in trial["runs"] if run["name"] == trial["chosen"]]
        table.add_row(str(trial["split"]), run["name"], per_cent(run["val_score"]))
    return table


def dataset_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """All data sets."""
    table = Table()
    numbers = ("nodes", "edges", "features", "classes", "splits", "homophily")
    for name in ("name", *numbers, "status", "citation"):
        table.add_column(name, justify="right" if name in numbers else "left", no_wrap=True)
    table.columns[-1].no_wrap = False
    for row in rows:
        homophily = "-" if row["homophily"] is None else f"{row['homophily']:.2f}"
        sizes = [str(row[name]) for name in numbers[:-1]]
        table.add_row(row["name"], *sizes, homophily, row["status"], row["citation"])
    return table


def model_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """All models."""
    table = Table(show_lines=True)
    for name in ("name", "space", "citation", "search space"):
        table.add_column(name)
    for row in rows:
        choices = [
            f"{name}: {', '.join(str(value) for value in values)}"
            for name, values in row["search_space"].items()
        ]
        table.add_row(row["name"], row["space"], row["citation"], "\n".join(choices))
    return table


def comparison_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Several models side by side on the same splits; a result names data, model and summary."""
    table = Table(title="test scores in per cent", title_justify="left")
    scores, selection = SCORES["node"], SELECTION["node"]
    names = [SCORE_NAMES[name] for name in scores]
    for name in ("data", "model", *names, f"validation {SCORE_NAMES[selection]}"):
        table.add_column(name, justify="left" if name in ("data", "model") else "right")
    for result in results:
        summary = result["summary"]
        cells = [per_cent(summary["test"][name]["mean"]) for name in scores]
        cells.append(per_cent(summary["val"][selection]["mean"]))
        table.add_row(result["data"], result["model"], *cells)
    return table
