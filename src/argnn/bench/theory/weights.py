"""The table of recommended penalty weights beside the formulas that it is said to follow."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import yaml

from argnn.analysis.figures.style import PALETTE, new_figure, styled
from argnn.bench.theory.finding import Effort, Finding, FoundTable, Statement, graded
from argnn.data import DATASETS
from argnn.functional.schedules import FORMS, theory_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Half a unit of the last printed digit.
ROUNDING = 5e-6
_TABLE = "tab:theory_alpha_beta"


@cache
def printed() -> Mapping[str, Any]:
    """What the paper prints: statistics of the graphs, and recommended weights."""
    text = files("argnn.bench.theory").joinpath("printed.yaml").read_text(encoding="utf-8")
    found: Mapping[str, Any] = yaml.safe_load(text)
    return found


def measured_weights(effort: Effort) -> Finding:
    """Compute every cell by both forms, from the paper's statistics and from the graphs."""
    paper = printed()
    rows, matches = [], dict.fromkeys([(f, s) for s in ("paper", "graph") for f in FORMS], 0)
    for name, (nodes, edges, homophily) in paper["statistics"].items():
        spec = DATASETS[name]
        known = {
            "paper": (homophily, nodes, edges),
            "graph": (spec.homophily, spec.nodes, spec.edges),
        }
        for place, (channels, layers) in enumerate(paper["columns"]):
            target = (paper["alpha"][name][place], paper["beta"][name][place])
            found = {
                (form, source): theory_weights(*known[source], layers, channels, form)
                for form, source in matches
            }
            for key, pair in found.items():
                matches[key] += sum(map(agrees, pair, target))
            cells = [found[key][which] for which in (0, 1) for key in matches]
            rows.append([spec.title, channels, layers, *target, *cells])
    names = [f"{w}, {f} form, {s}" for w in ("alpha", "beta") for f, s in matches]
    cells_printed = 2 * len(rows)
    laws = [law_error(paper, name) for name in paper["statistics"]]
    implied = [implied_row(name) for name in paper["statistics"]]
    fitting = sum(row[-1] == "yes" for row in implied)
    return Finding(
        [
            follows_formula(max(matches.values()), cells_printed),
            follows_laws(max(laws)),
            some_homophily(fitting, len(implied)),
            peak_statement(),
        ],
        [
            FoundTable(
                "weights",
                ["graph", "channels", "layers", "printed alpha", "printed beta", *names],
                rows,
            ),
            FoundTable(
                "weights-implied",
                [
                    "graph",
                    "printed alpha",
                    "main form",
                    "theorem",
                    "H that gives alpha",
                    "printed beta",
                    "main form, beta",
                    "theorem, beta",
                    "H that gives beta",
                    "one H for both",
                ],
                implied,
            ),
        ],
        "54 pairs of the printed table. Statistics once as the paper prints them, once of the "
        "graphs themselves (data/datasets.csv, with which loading compares every graph).",
        lambda: _figure(implied),
    )


def agrees(value: float, target: float) -> bool:
    """Whether a value is the printed one, or the one below it: the table rounds or cuts off."""
    return -ROUNDING * 1.01 <= value - target < 2 * ROUNDING


def law_error(paper: Mapping[str, Any], name: str) -> float:
    """Largest distance, in units of the last digit, of a row from alpha ~ D/L and beta ~ sqrt D."""
    columns = paper["columns"]
    laws: dict[str, Callable[[int, int], float]] = {
        "alpha": lambda d, layers: d / layers,
        "beta": lambda d, _: math.sqrt(d),
    }
    worst = 0.0
    for which, law in laws.items():
        values = paper[which][name]
        sizes = [law(*column) for column in columns]
        # The constant that the most precise cell, the largest, implies.
        largest = max(range(len(values)), key=values.__getitem__)
        constant = values[largest] / sizes[largest]
        gaps = [abs(v - constant * size) for v, size in zip(values, sizes, strict=True)]
        worst = max(worst, max(gaps) / (2 * ROUNDING))
    return worst


def implied_row(name: str) -> list[Any]:
    """For D = 256 and L = 2, whose cells have most digits: the homophily that each cell implies."""
    paper = printed()
    nodes, edges, homophily = paper["statistics"][name]
    place = paper["columns"].index([256, 2])
    alpha, beta = paper["alpha"][name][place], paper["beta"][name][place]
    forms = [theory_weights(homophily, nodes, edges, 2, 256, form) for form in FORMS]
    c1, c2 = alpha * 2 / min(1.0, 256 / edges), beta * nodes / 16
    roots = [implied_homophily(c1, c2, form) for form in FORMS]
    by_alpha, by_beta = (
        " or ".join(f"{h:.3f}" for h in sorted(roots[0][which] + roots[1][which])) or "none"
        for which in (0, 1)
    )
    both = any(abs(a - b) < 0.005 for first, second in roots for a in first for b in second)
    values = [alpha, *(pair[0] for pair in forms), by_alpha]
    values += [beta, *(pair[1] for pair in forms), by_beta]
    return [DATASETS[name].title, *values, "yes" if both else "no"]


def implied_homophily(c1: float, c2: float, form: str) -> tuple[list[float], list[float]]:
    """Each H in (0, 1] for which a form has these constants, from alpha and from beta.

    Example:
        >>> implied_homophily(0.6, 0.15, "main")
        ([0.5], [0.5])
    """
    if form == "main":
        roots = [1.1 - c1], [10 * c2 - 1]
    else:
        left = 1.1**2 - 4 * c1
        sides = (-1, 1) if left >= 0 else ()
        roots = (
            [(1.1 + side * math.sqrt(left)) / 2 for side in sides],
            [(-1 + math.sqrt(1 + 40 * c2)) / 2],
        )
    first, second = ([round(h, 12) for h in found if 0 < h <= 1] for found in roots)
    return first, second


def follows_formula(matching: int, cells: int) -> Statement:
    """Verdict on the table, from the cells that the better formula reproduces."""
    return Statement(
        "recommended weights",
        "The table has alpha = c1/L min(1, D/E) and beta = c2 sqrt(D)/V (or H times that).",
        _TABLE,
        f"{matching} of {cells} cells are reproduced by the best of four computations",
        "verified if all cells agree in the printed digits, with changes if more than half do, "
        "else refuted",
        graded(matching == cells, 2 * matching > cells),
    )


def follows_laws(worst: float) -> Statement:
    """Verdict on how the printed cells depend on width and depth."""
    return Statement(
        "weights against width and depth",
        "alpha grows as D/L, beta as sqrt(D), and beta does not depend on L.",
        f"{_TABLE}, thm:convergence",
        f"printed cells are within {worst:.1f} units of their last digit of that",
        "verified within 2 units, with changes within 10, else refuted",
        graded(worst <= 2, worst <= 10),
    )


def some_homophily(fitting: int, graphs: int) -> Statement:
    """Verdict on whether the table follows the formulas with another homophily."""
    return Statement(
        "weights from some homophily",
        "Both weights of a graph come from its homophily H in (0, 1].",
        f"prop:hyperparams_select, {_TABLE}",
        f"for {fitting} of {graphs} graphs one H gives both printed weights, in either form",
        "verified if for all graphs, with changes if for some, refuted if for none",
        graded(fitting == graphs, fitting > 0),
    )


def peak_statement() -> Statement:
    """Where H (1.1 - H), the theorem's factor of alpha, is largest."""
    steps: Sequence[float] = [n / 1000 for n in range(1, 1001)]
    peak = max(steps, key=lambda h: theory_weights(h, 1, 1, 1, 1, "theorem")[0])
    return Statement(
        "homophily of the largest alpha",
        "The effective Ricci weight peaks at moderate homophily, about 0.5.",
        "app:constants_proof",
        f"its largest value is at H = {peak:g}",
        "verified within 0.1, else refuted",
        graded(abs(peak - 0.5) <= 0.1),
    )


@styled
def _figure(rows: Sequence[Sequence[Any]]) -> "Figure":
    figure = new_figure(7.2, 3.0)
    for ax, offset, word in zip(figure.subplots(1, 2), (1, 5), ("alpha", "beta"), strict=True):
        for place, label in enumerate(("printed", "main form", "theorem's form")):
            values = [row[offset + place] for row in rows]
            marker = "os^"[place]
            ax.plot(values, range(len(rows)), marker, color=PALETTE[place], label=label, ms=5)
        ax.set_yticks(range(len(rows)), [row[0] for row in rows])
        ax.set(xscale="log", xlabel=f"{word} (D = 256, L = 2)", ylim=(len(rows) - 0.5, -0.5))
    ax.legend(loc="best")
    return figure
