"""The model card: what a user has to know about a model that somebody else trained."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scipy.stats import binomtest

from argnn.nn import model_class
from argnn.train.scores import decision_rule
from argnn.wording import one_line

if TYPE_CHECKING:
    from argnn.store.model_folder import Checkpoint

#: The validation score that chooses the epoch unless the user names another.
SELECTION = {
    "node": "validation accuracy",
    "link": "validation AUROC",
    "regression": "validation r2",
    "multilabel": "validation average_precision",
}
_TITLES = {
    "node": "Classifier of nodes",
    "link": "Predictor of links",
    "regression": "Predictor of numbers of nodes",
    "multilabel": "Predictor of labels of nodes",
}
_MAX_NAMED = 20

_LIMITS = {
    "node": (
        "The model knows the classes above and no others: a node of another kind gets one of them.",
        "Scores hold for graphs like the one it was trained on. Another graph needs the same "
        "features, computed in the same way.",
    ),
    "link": (
        "A pair is scored from the edges the model is shown; pairs that are shown as edges score "
        "higher.",
        "Probabilities are calibrated for as many links as non-links. Among all pairs of a graph "
        "links are far rarer, so that they must be read as a ranking there.",
    ),
    **dict.fromkeys(
        ("regression", "multilabel"),
        (
            "Scores hold for graphs like the one it was trained on. Another graph needs the same "
            "features, computed in the same way.",
        ),
    ),
}
_CALIBRATION_LIMIT = (
    "The calibration error on validation was measured where temperature and epoch were chosen, and "
    "is optimistic."
)


def model_card(checkpoint: "Checkpoint") -> str:
    """Text of the card, in Markdown."""
    facts, spec, task = checkpoint.facts, checkpoint.spec, checkpoint.task
    calibrated = checkpoint.target is None
    graph = facts.get("graph", {})
    parts = [
        f"# {_TITLES[task]}: {spec.model} on {_inline(graph.get('name', 'a graph'))}",
        _section("Data", _data_lines(checkpoint, graph)),
        _section("Protocol", _protocol_lines(facts, task)),
        _section("Scores", _score_lines(facts, task)),
        *_calibration_section(checkpoint),
        _section("Limits", [*_LIMITS[task], *([_CALIBRATION_LIMIT] if calibrated else [])]),
        _section("Settings", _setting_lines(checkpoint)),
        "Open it with `argnn.load(folder)`; `model.json` and `model.safetensors` hold no code.",
    ]
    return "\n\n".join(parts) + "\n"


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a share of ``count`` nodes.

    Example:
        >>> [round(bound, 4) for bound in wilson_interval(0.5, 100)]
        [0.4038, 0.5962]
    """
    found = binomtest(round(share * count), count).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def _section(title: str, lines: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines)


def _inline(text: object) -> str:
    """One line that cannot change the layout of the card."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]<>#|" else c for c in one_line(text))
    return escaped if len(escaped) <= 300 else escaped[:297] + "..."


def _data_lines(checkpoint: "Checkpoint", graph: Mapping[str, Any]) -> list[str]:
    # Both directions of an undirected edge are listed.
    named = {"nodes": "nodes", "edges": "listed edges", "features": "features"}
    sizes = [f"{graph[name]} {what}" for name, what in named.items() if name in graph]
    lines = [", ".join(sizes)] if sizes else []
    if checkpoint.classes:
        labels = ", ".join(_inline(label) for label in checkpoint.classes[:_MAX_NAMED])
        rest = len(checkpoint.classes) - _MAX_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        what = "labels" if checkpoint.task == "multilabel" else "classes"
        lines.append(f"{len(checkpoint.classes)} {what}: {labels}{more}")
    elif checkpoint.target is not None:
        lines.append(f"targets: {', '.join(map(_inline, checkpoint.target.names[:_MAX_NAMED]))}")
    rules = (("edges", "edge_rule"), ("features", "feature_rule"))
    lines += [f"{name}: {_inline(graph[key])}" for name, key in rules if graph.get(key)]
    return lines


def _protocol_lines(facts: Mapping[str, Any], task: str) -> list[str]:
    lines = [f"split: {_inline(facts.get('split_rule', 'not recorded'))}"]
    counts = facts.get("counts", {})
    if counts:
        lines.append(", ".join(f"{counts[name]} {name}" for name in counts))
    chosen, run = facts.get("best_epoch"), facts.get("epochs_run")
    select = facts.get("train", {}).get("select")
    score = f"validation {select}" if select else SELECTION[task]
    lines.append(f"selection: epoch {chosen} of {run}, by {score}; no test label was read")
    return lines


def _score_lines(facts: Mapping[str, Any], task: str) -> list[str]:
    lines = []
    for part, remark in (("val", "the epoch was chosen by it, so it is optimistic"), ("test", "")):
        scores = facts.get("scores", {}).get(part)
        if scores:
            note = f" ({remark})" if remark else " (scored once, after training)"
            lines.append(f"{part}{note}: {_scores_text(scores, task)}")
    return lines or ["none recorded"]


def _scores_text(scores: Mapping[str, Any], task: str) -> str:
    texts = []
    for name, value in scores.items():
        if isinstance(value, float) and name != "threshold":
            plain = task == "regression"
            text = f"{name} {value:.4g}" if plain else f"{name} {100 * value:.2f} %"
            # Only accuracy is a share of independent decisions with a textbook interval.
            if name == "accuracy" and scores.get("count"):
                low, high = wilson_interval(value, scores["count"])
                text += f" (95 % Wilson interval {100 * low:.2f} to {100 * high:.2f})"
            texts.append(text)
    what = "pairs" if task == "link" else "nodes"
    return ", ".join(texts) + (f", n = {scores['count']} {what}" if scores.get("count") else "")


def _calibration_section(checkpoint: "Checkpoint") -> list[str]:
    if checkpoint.target is not None:
        return []
    lines = [*_calibration_lines(checkpoint), *_decision_lines(checkpoint)]
    return [_section("Calibration", lines)]


def _calibration_lines(checkpoint: "Checkpoint") -> list[str]:
    found = checkpoint.facts.get("calibration")
    if not found:
        return ["probabilities are not calibrated"]
    lines = [
        f"temperature {checkpoint.temperature:.4g}, chosen on validation",
        f"expected calibration error on validation {100 * found['ece']:.2f} % "
        f"({100 * found['ece_uncalibrated']:.2f} % without), n = {found['count']}",
    ]
    test = checkpoint.facts.get("test_ece")
    if test is not None:
        lines.append(f"expected calibration error on the test set {100 * test:.2f} %")
    return lines


def _decision_lines(checkpoint: "Checkpoint") -> list[str]:
    """The threshold between two classes, where it is not a probability of one half."""
    if checkpoint.task != "node":
        return []
    numbers = checkpoint.threshold, checkpoint.temperature
    rule = decision_rule(checkpoint.classes, *numbers, checkpoint.facts.get("rare_class", 1))
    if rule is None:
        return []
    return [f"class {_inline(rule['class'])} from probability {rule['from_probability']:.4g}"]


def _setting_lines(checkpoint: "Checkpoint") -> list[str]:
    facts, spec = checkpoint.facts, checkpoint.spec
    options = ", ".join(f"{name}={value}" for name, value in spec.options.items())
    train = ", ".join(f"{name}={value}" for name, value in facts.get("train", {}).items())
    versions = ", ".join(f"{name} {value}" for name, value in facts.get("versions", {}).items())
    lines = [
        f"method: {_inline(model_class(spec.model).citation)}",
        f"where from: {_inline(facts.get('source', 'not recorded'))}",
        f"model: `{options}`",
        f"training: `{train}`",
        f"versions: {versions}",
    ]
    return [*lines[:2], f"decoder: {spec.decoder}", *lines[2:]] if spec.decoder else lines
