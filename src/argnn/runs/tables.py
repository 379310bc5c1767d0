"""Results as Rich tables; printing them is left to the command line."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from argnn.runs.summary import SCORES, SELECTION, has_twins, without_twins
from argnn.store.model_card import wilson_interval
from argnn.tables import rich_table
from argnn.wording import printable

SCORE_NAMES = {
    "f1": "F1 (weighted)",
    "f1_macro": "F1 (macro)",
    "accuracy": "accuracy",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "hits@10": "hits@10",
    "hits@50": "hits@50",
    "mrr": "MRR",
    "average_precision": "average precision",
    "loss": "loss",
    "f1_micro": "F1 (micro)",
    "r2": "R²",
    "mae": "MAE",
    "rmse": "RMSE",
}
#: Scores that are no shares, and so are not printed in per cent.
PLAIN_SCORES = ("loss", "r2", "mae", "rmse")
#: Most classes with a column of the confusion matrix, and most classes with a row.
_MOST_CONFUSED, _MOST_CLASSES = 6, 20


def per_cent(value: float | None, digits: int = 2) -> str:
    """A share in per cent.

    Example:
        >>> per_cent(0.8765), per_cent(None)
        ('87.65', '-')
    """
    return "-" if value is None else f"{100 * value:.{digits}f}"


def score_name(name: str, task: str) -> str:
    """A score in words; the AUPRC of classes is weighted by their sizes.

    Example:
        >>> score_name("auprc", "node"), score_name("auprc", "link")
        ('AUPRC (weighted)', 'AUPRC')
    """
    return SCORE_NAMES[name] + (" (weighted)" if (name, task) == ("auprc", "node") else "")


def score_text(name: str, value: float | None) -> str:
    """A score in per cent, or as it is where it is no share.

    Example:
        >>> score_text("accuracy", 0.8765), score_text("loss", 0.31234)
        ('87.65', '0.3123')
    """
    return f"{value:.4g}" if name in PLAIN_SCORES and value is not None else per_cent(value)


def with_interval(statistic: Mapping[str, Any], name: str = "") -> str:
    """A mean, in per cent unless it is no share, with its interval where there is one."""
    text, half = score_text(name, statistic["mean"]), statistic["interval"]
    return text if half is None else f"{text} ± {score_text(name, half)}"


def test_text(row: Mapping[str, Any], score: str) -> str:
    """A test score of one split, with that of the nodes without twins where there are twins.

    Example:
        >>> twins = {"test": 9, "with_twin": 4}
        >>> test_text({"test": {"f1": 0.9}, "twins": twins, "test_without_twins": None}, "f1")
        '90.00 (without twins -)'
    """
    text = score_text(score, (row["test"] or {}).get(score))
    if not has_twins(row):
        return text
    return f"{text} (without twins {per_cent((without_twins(row) or {}).get(score))})"


def score_table(summary: Mapping[str, Any]) -> Table:
    """Test scores of a run, and the validation score that chose its epochs."""
    several, others = summary["splits"] > 1, summary.get("test_without_twins")
    unit = "" if summary["task"] == "regression" else ", %"
    words = (f"mean ± interval{unit}", "sd", "splits") if several else (unit[2:] or "value",)
    header = ["score", *words]
    rows = []
    for part, word in (("test", "test"), ("val", "validation")):
        for name, value in _shown_scores(summary, part):
            is_rare = name == "rare"
            label = (
                _RARE.format(rare_name(summary)) if is_rare else score_name(name, summary["task"])
            )
            cells = [f"{word} {label}", with_interval(value, name)]
            cells += [score_text(name, value["sd"]), str(value["n"])] if several else []
            if others:
                cells.append(with_interval(others[name], name) if name in others else "-")
            rows.append(cells)
    return rich_table([*header, *(["without twins, %"] if others else [])], rows, left=["score"])


_RARE = "average precision of {}"


def _shown_scores(summary: Mapping[str, Any], part: str) -> list[tuple[str, Any]]:
    """The scores to show; for two classes also that of the rarer one, not weighted by size."""
    scores = list(summary[part].items())
    classes = summary.get("classes")
    if part == "test" and classes and len(classes["names"]) == 2:
        scores.append(("rare", classes["average_precision_rare"]))
    return scores


def rare_name(summary: Mapping[str, Any]) -> str:
    """The name of the rarest training class.

    Example:
        >>> rare_name({"classes": {"names": ["0", "1"], "rare": 1}})
        'class 1'
    """
    classes = summary["classes"]
    return class_word(classes["names"][classes["rare"]])


def class_word(name: str) -> str:
    """A class as it is called in a sentence.

    Example:
        >>> class_word("3"), class_word("fraud")
        ('class 3', 'fraud')
    """
    return f"class {name}" if name.isdigit() else name


def class_table(summary: Mapping[str, Any]) -> Table | None:
    """Test scores of each class, and for few classes the confusion matrix.

    None where there are no classes or no test nodes.
    """
    found = summary.get("classes")
    if found is None:
        return None
    names, confusion = found["names"], found["confusion"]
    shown = confusion is not None and len(names) <= _MOST_CONFUSED
    header = ["class", "nodes", "precision", "recall", "F1", "average precision"]
    header += [f"as {printable(name)}" for name in names] if shown else []
    rows = []
    for number, name in enumerate(names[:_MOST_CLASSES]):
        scores = ("precision", "recall", "f1", "average_precision")
        cells = [printable(name), str(found["support"][number])]
        cells += [per_cent(found[score][number]) for score in scores]
        rows.append(cells + ([str(count) for count in confusion[number]] if shown else []))
    if len(names) > _MOST_CLASSES:
        more = f"... {len(names) - _MOST_CLASSES} more"
        rows.append([more, *[""] * (len(header) - 1)])
    escaped = [[escape(cell) for cell in row] for row in rows]
    header = [escape(name) for name in header]
    return rich_table(header, escaped, left=header[:1], title="classes on test nodes, in per cent")


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


def pooled_sentence(summary: Mapping[str, Any]) -> str | None:
    """The scores of all folds together; None where there are no folds."""
    if "pooled" not in summary:
        return None
    scores = {name: value for name, value in summary["pooled"].items() if name != "count"}
    said = [
        f"{score_name(name, summary['task'])} {score_text(name, value)}"
        for name, value in scores.items()
    ]
    unit = "" if summary["task"] == "regression" else ", in %"
    count = summary["pooled"]["count"]
    return f"Pooled over {count} nodes, each tested once{unit}: {', '.join(said)}."


def one_split_sentence(row: Mapping[str, Any]) -> str | None:
    """How far chance alone moves the test accuracy of one split; None where there are no classes.

    Example:
        >>> one_split_sentence({"task": "node", "test": {"accuracy": 0.5, "count": 100}})
        'Interval of the test accuracy: 40.38 to 59.62 (95 % Wilson interval, 100 test nodes).'
    """
    if row["task"] != "node" or not row["test"]:
        return None
    count = row["test"]["count"]
    low, high = (per_cent(bound) for bound in wilson_interval(row["test"]["accuracy"], count))
    return (
        f"Interval of the test accuracy: {low} to {high} (95 % Wilson interval, "
        f"{count:,} test nodes)."
    )


def trial_table(trial: Mapping[str, Any]) -> Table:
    """The recipes of a trial that went furthest, best first; the choice is marked."""
    runs = sorted(trial["runs"], key=_place)
    fewest = min((run["epochs"] for run in runs), default=0)
    shown = [run for run in runs if run["epochs"] > fewest] or runs
    rows = [
        (
            "*" if run["name"] == trial["chosen"] else "",
            run["name"],
            str(run["epochs"]),
            _validation_text(trial, run["val_score"]),
            "diverged" if run["val_loss"] is None else f"{run['val_loss']:.3f}",
            f"{run['seconds']:.1f}",
        )
        for run in shown
    ]
    score = f"{SCORE_NAMES[trial['score']]}{unit_of(trial['score'])}"
    header = ("", "recipe", "epochs", score, "loss", "s")
    table = rich_table(header, rows, left=header[:2], title="trial on validation")
    others = len(runs) - len(shown)
    table.caption = f"{others} other recipes ended after {fewest} epochs" if others else None
    return table


def unit_of(name: str) -> str:
    """The unit behind the name of a score.

    Example:
        >>> unit_of("accuracy"), unit_of("loss")
        (', %', '')
    """
    return "" if name in PLAIN_SCORES else ", %"


def _validation_text(trial: Mapping[str, Any], value: float | None) -> str:
    """A validation score of a trial in words; trials store a loss with a minus."""
    name = trial["score"]
    return score_text(name, -value if name == "loss" and value is not None else value)


def _place(run: Mapping[str, Any]) -> tuple[float, float]:
    score = run["val_score"]
    return -run["epochs"], math.inf if score is None else -score


def metric_sentence(trial: Mapping[str, Any]) -> str:
    """Whether a trial chose a learned metric, and its validation score beside that of the other.

    Example:
        >>> metric = {"chosen": "fixed", "learned": 0.71, "fixed": 0.714}
        >>> metric_sentence({"score": "accuracy", "metric": metric})
        'Metric: fixed, the same at every node. Validation accuracy 71.40 %, learned: 71.00 %.'
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
    unit = unit_of(trial["score"]).strip(",")
    here, there = (f"{_validation_text(trial, metric[name])}{unit}" for name in (kind, other))
    return f"{sentence} Validation {SCORE_NAMES[trial['score']]} {here}, {other}: {there}."


def chosen_table(trials: Sequence[Mapping[str, Any]]) -> Table:
    """What the trial of each split chose, and how much better a learned metric was there."""
    rows = []
    for trial in trials:
        scores = [r["val_score"] for r in trial["runs"] if r["name"] == trial["chosen"]]
        metric = trial["metric"]
        found = (*scores[:1], metric["learned"], metric["fixed"]) if scores else (None, None, None)
        rows.append(
            (
                str(trial["split"]),
                trial["chosen"],
                *(_validation_text(trial, score) for score in found),
            )
        )
    score = trials[0]["score"]
    header = (
        "split",
        "recipe",
        *(
            f"{word}{unit_of(score)}"
            for word in (SCORE_NAMES[score], "learned metric", "fixed metric")
        ),
    )
    return rich_table(header, rows, left=header[1:2], title="chosen by trials on validation")


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
