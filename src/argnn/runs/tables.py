"""Results as Rich tables; printing them is left to the command line."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from argnn.runs.summary import SCORES, SELECTION, has_twins, without_twins
from argnn.tables import rich_table

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
    header = ["score", *(("mean ± interval, %", "sd", "splits") if several else ("%",))]
    rows = []
    for part, word in (("test", "test"), ("val", "validation")):
        for name, value in summary[part].items():
            cells = [f"{word} {SCORE_NAMES[name]}", with_interval(value)]
            cells += [per_cent(value["sd"]), str(value["n"])] if several else []
            if others:
                cells.append(with_interval(others[name]) if part == "test" else "-")
            rows.append(cells)
    return rich_table([*header, *(["without twins, %"] if others else [])], rows, left=["score"])


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
    """The recipes of a trial that went furthest, best first; the choice is marked."""
    runs = sorted(trial["runs"], key=lambda run: (-run["epochs"], -(run["val_score"] or -1.0)))
    fewest = min((run["epochs"] for run in runs), default=0)
    shown = [run for run in runs if run["epochs"] > fewest] or runs
    rows = [
        (
            "*" if run["name"] == trial["chosen"] else "",
            run["name"],
            str(run["epochs"]),
            per_cent(run["val_score"]),
            "diverged" if run["val_loss"] is None else f"{run['val_loss']:.3f}",
            f"{run['seconds']:.1f}",
        )
        for run in shown
    ]
    header = ("", "recipe", "epochs", "validation, %", "loss", "s")
    table = rich_table(header, rows, left=header[:2], title="trial on validation")
    others = len(runs) - len(shown)
    table.caption = f"{others} other recipes ended after {fewest} epochs" if others else None
    return table


def metric_sentence(trial: Mapping[str, Any]) -> str:
    """Whether a trial chose a learned metric, and what that was worth on validation.

    Example:
        >>> metric_sentence({"metric": {"chosen": "fixed", "learned": 0.71, "fixed": 0.714}})
        'Metric: fixed, the same at every node. On validation 71.40 %, with a learned one 71.00 %.'
    """
    metric = trial["metric"]
    kind, other = ("fixed", "learned") if metric["chosen"] == "fixed" else ("learned", "fixed")
    words = {
        "fixed": "fixed, the same at every node",
        "features": "learned from features",
        "structure": "learned from the structure of the graph",
        "both": "learned from features and structure",
    }
    sentence = f"Metric: {words.get(metric['chosen'], metric['chosen'])}."
    if metric[kind] is None or metric[other] is None:
        return f"{sentence} The trial has not compared it with a {other} one."
    return (
        f"{sentence} On validation {per_cent(metric[kind])} %, "
        f"with a {other} one {per_cent(metric[other])} %."
    )


def chosen_table(trials: Sequence[Mapping[str, Any]]) -> Table:
    """What the trial of each split chose, and the worth of a learned metric there."""
    rows = []
    for trial in trials:
        scores = [r["val_score"] for r in trial["runs"] if r["name"] == trial["chosen"]]
        metric = trial["metric"]
        found = (*scores[:1], metric["learned"], metric["fixed"]) if scores else (None, None, None)
        rows.append((str(trial["split"]), trial["chosen"], *(per_cent(score) for score in found)))
    header = ("split", "recipe", "validation, %", "learned metric, %", "fixed metric, %")
    return rich_table(header, rows, left=header[1:2], title="chosen by trials on validation")


def dataset_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """All data sets."""
    words, sizes = ("name", "status", "citation"), ("nodes", "edges", "features", "classes")
    header = ("name", *sizes, "splits", "homophily", "status", "citation")
    shown = [
        {**row, "homophily": "-" if row["homophily"] is None else f"{row['homophily']:.2f}"}
        for row in rows
    ]
    table = rich_table(header, [[str(row[name]) for name in header] for row in shown], left=words)
    for column in table.columns[:-1]:
        column.no_wrap = True
    return table


def model_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """All models."""
    header, cells = ("name", "space", "citation", "search space"), []
    for row in rows:
        choices = [
            f"{name}: {', '.join(str(value) for value in values)}"
            for name, values in row["search_space"].items()
        ]
        cells.append((row["name"], row["space"], row["citation"], "\n".join(choices)))
    table = rich_table(header, cells, left=header)
    table.show_lines = True
    return table


def comparison_cells(results: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Header and rows of several models on the same splits; a result has data, model, summary."""
    scores, selection = SCORES["node"], SELECTION["node"]
    names = [*(SCORE_NAMES[name] for name in scores), f"validation {SCORE_NAMES[selection]}"]
    cells = [["data", "model", *names]]
    for result in results:
        test, val = result["summary"]["test"], result["summary"]["val"]
        found = [*(test[name] for name in scores), val[selection]]
        cells.append([result["data"], result["model"], *(per_cent(s["mean"]) for s in found)])
    return cells


def comparison_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Several models side by side."""
    header, *rows = comparison_cells(results)
    return rich_table(header, rows, left=header[:2], title="test scores in per cent")
