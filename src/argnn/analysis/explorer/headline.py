"""What was learned, in one or two sentences that claim no more than the numbers say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argnn.analysis.variation import HARDLY, MAIN_STATISTICS, Peak, class_share, peak, spearman

#: A relation is named from this size of Spearman's rho and over at least so many nodes.
STRONG_RHO, FEWEST_NODES = 0.5, 30
_ALIKE = 0.05  # relations that differ by less are equally strong

_WORDS = {
    "log_volume": "log volume",
    "kappa": "curvature κ",
    "main_variation": "main variation",
}
_PROPERTIES = {
    "degree": "hubs",
    "homophily": "nodes among neighbors of their own class",
    "clustering": "nodes in tightly knit places",
}


class Relation(NamedTuple):
    """Spearman's rho of a statistic of a layer (from 0) with a property, over so many nodes."""

    layer: int
    statistic: str
    property: str
    rho: float
    size: int


@dataclass(frozen=True)
class Worth:
    """What the trial measured for a learned and for a fixed metric.

    Attributes:
        score: Name of the validation score.
        learned: The best score with a learned metric.
        fixed: The best one with a fixed metric.
        is_share: Whether the score is a share, to be shown in per cent.
        chance: A difference up to this is chance; None where that is not known.
    """

    score: str
    learned: float
    fixed: float
    is_share: bool = True
    chance: float | None = None


@dataclass(frozen=True)
class Findings:
    """The numbers behind the sentence.

    Attributes:
        model: Name of the model.
        kind: ``"learned"``, ``"fixed"`` or ``"none"``, see
            :func:`~argnn.analysis.layers.metric_kind`.
        peak: What varies most; None without a metric.
        relation: The strongest relation, in layers that vary; None where none is defined.
        class_share: Share of the variance between classes, of the statistic of the relation or
            else of the peak; None where it is not defined.
        worth: What the trial measured, where there was one.
        doubt: Says that the model predicts no better than chance, where that is so.
    """

    model: str
    kind: str
    peak: Peak | None = None
    relation: Relation | None = None
    class_share: float | None = None
    worth: Worth | None = None
    doubt: str | None = None


def findings(
    model: str,
    kind: str,
    statistics: Sequence[Mapping[str, NDArray[Any]]],
    variations: Sequence[Mapping[str, float]],
    properties: Mapping[str, NDArray[Any]],
    labels: NDArray[Any],
    worth: Worth | None,
) -> Findings:
    """Look for the strongest relation of what varies.

    ``statistics`` and ``variations`` are those of each layer, ``properties`` are degree, homophily
    and clustering; a label is negative where there is none.
    """
    top = peak([dict(variation) for variation in variations])
    if kind != "learned" or top is None or top.variation < HARDLY:
        return Findings(model, kind, top, worth=worth)
    relations = [
        Relation(layer, name, word, *spearman(values[name], properties[word]))
        for layer, values in enumerate(statistics)
        for name in MAIN_STATISTICS
        if variations[layer][name] >= HARDLY
        for word in _PROPERTIES
    ]
    known = [each for each in relations if not np.isnan(each.rho) and each.size >= FEWEST_NODES]
    strongest = max((abs(each.rho) for each in known), default=0.0)
    # Of those about as strong the first, which is about the plainest statistic.
    best = next((each for each in known if abs(each.rho) >= strongest - _ALIKE), None)
    about = best if best and abs(best.rho) >= STRONG_RHO else top
    share = class_share(statistics[about.layer][about.statistic], labels)
    return Findings(model, kind, top, best, share, worth)


def headline(found: Findings) -> str:
    """One to three sentences; first, where it is so, that the model predicts by chance.

    Example:
        >>> headline(Findings("gcn", "none"))
        'gcn learns no metric: the map shows its raw outputs.'
    """
    sentences = [_learned(found)] if found.doubt is None else [found.doubt, _learned(found)]
    if found.worth is not None:
        sentences.append(_compared(found.worth))
    return " ".join(sentences)


def _learned(found: Findings) -> str:
    if found.kind == "none" or found.peak is None:
        return f"{found.model} learns no metric: the map shows its raw outputs."
    if found.kind == "fixed":
        return "The metric of this run is fixed: all nodes have the same, and none was learned."
    if found.peak.variation < HARDLY:
        return (
            "A metric was learned, but it is nearly the same at all nodes: no layer varies by more "
            f"than {100 * found.peak.variation:.3g} %."
        )
    strong = found.relation is not None and abs(found.relation.rho) >= STRONG_RHO
    about = "its variance" if strong else f"the variance of its {_WORDS[found.peak.statistic]}"
    return f"{_related(found)}{_classes(found.class_share, about)}."


def _related(found: Findings) -> str:
    best = found.relation
    if best is not None and abs(best.rho) >= STRONG_RHO:
        layer, nodes = best.layer + 1, _PROPERTIES[best.property]
        numbers = f"Spearman's rho {best.rho:.2f}, {best.size:,} nodes"
        way = "rises" if best.rho > 0 else "falls"
        fact = f"{way} with {best.property} ({numbers})"
        if best.statistic != "log_volume":
            return f"In layer {layer}, the {_WORDS[best.statistic]} of the metric {fact}"
        verb = "stretches" if best.rho > 0 else "contracts"
        return f"Layer {layer} {verb} {nodes} relative to others: its log volume {fact}"
    assert found.peak is not None
    layer, name = found.peak.layer + 1, _WORDS[found.peak.statistic]
    varies = f"Layer {layer} varies most, by {change(found.peak.variation)} ({name})"
    if best is None:
        return varies
    return (
        f"{varies}, but follows no property of the graph closely (strongest: "
        f"{_WORDS[best.statistic]} of layer {best.layer + 1} with {best.property}, Spearman's rho "
        f"{best.rho:.2f}, {best.size:,} nodes)"
    )


def _classes(share: float | None, about: str) -> str:
    if share is None:
        return ""
    if share < HARDLY:
        return f"; classes hardly differ in it ({100 * share:.1f} % of {about})"
    return f"; classes make up {100 * share:.0f} % of {about}"


def _compared(worth: Worth) -> str:
    gap = worth.learned - worth.fixed
    shown = [
        f"{100 * value:.1f} %" if worth.is_share else f"{value:.3g}"
        for value in (worth.learned, worth.fixed)
    ]
    numbers = f"validation {worth.score} {shown[0]} learned, {shown[1]} fixed"
    if worth.chance is None:
        return f"In the trial: {numbers}."
    if abs(gap) <= worth.chance:
        return f"A fixed metric scored the same in the trial ({numbers})."
    return f"A fixed metric scored {'less' if gap > 0 else 'more'} in the trial ({numbers})."


def change(variation: float) -> str:
    """A relative change in words.

    Example:
        >>> change(0.123), change(2.5)
        ('12 %', 'a factor of 3.5')
    """
    return f"{100 * variation:.0f} %" if variation < 1 else f"a factor of {1 + variation:.3g}"
