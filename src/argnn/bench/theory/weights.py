"""The table of recommended penalty weights beside the formulas that it is said to follow."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from argnn.bench.theory.finding import Effort, Finding, Statement, graded, packaged, stated
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import column
from argnn.data import DATASETS
from argnn.functional.schedules import FORMS, theory_weights

#: Half a unit of the last printed digit.
ROUNDING = 5e-6
#: How each weight depends on channels and layers.
LAWS: dict[str, Callable[[int, int], float]] = {
    "alpha": lambda channels, layers: channels / layers,
    "beta": lambda channels, layers: math.sqrt(channels),
}


def measured_weights(effort: Effort) -> Finding:
    """Compute every cell by both forms, from the paper's statistics and from the graphs."""
    paper = packaged("printed.yaml")
    rows, matches = [], dict.fromkeys([(f, s) for s in ("paper", "graph") for f in FORMS], 0)
    for name, (nodes, edges, homophily) in paper["statistics"].items():
        spec = DATASETS[name]
        known = {
            "paper": (homophily, nodes, edges),
            "graph": (spec.homophily, spec.nodes, spec.edges),
        }
        for place, (channels, layers) in enumerate(paper["columns"]):
            row = {"graph": spec.title, "channels": channels, "layers": layers}
            row |= {f"printed {weight}": paper[weight][name][place] for weight in LAWS}
            for which, weight in enumerate(LAWS):
                for form, source in matches:
                    cell = theory_weights(*known[source], layers, channels, form)[which]
                    row[f"{weight}, {form} form, {source}"] = cell
                    matches[form, source] += agrees(cell, row[f"printed {weight}"])
            rows.append(row)
    implied = [implied_row(name) for name in paper["statistics"]]
    return Finding.of(
        "weights",
        [
            follows_formula(max(matches.values()), 2 * len(rows)),
            follows_laws(max(law_error(name) for name in paper["statistics"])),
            some_homophily(column(implied, "one H for both").count("yes"), len(implied)),
            peak_statement(),
        ],
        {"weights": rows, "weights-implied": implied},
        [_panel(implied, "alpha", ""), _panel(implied, "beta", ", beta")],
    )


def agrees(value: float, target: float) -> bool:
    """Whether a value is the printed one, or the one below it: the table rounds or cuts off."""
    return -ROUNDING * 1.01 <= value - target < 2 * ROUNDING


def law_error(name: str) -> float:
    """Largest distance, in units of the last digit, of a row from alpha ~ D/L and beta ~ sqrt D."""
    paper, gaps = packaged("printed.yaml"), []
    for weight, law in LAWS.items():
        values = np.array(paper[weight][name])
        sizes = np.array([law(*sized) for sized in paper["columns"]])
        # The constant that the most precise cell, the largest, implies.
        constant = values.max() / sizes[values.argmax()]
        gaps.append(float(np.abs(values - constant * sizes).max()))
    return max(gaps) / (2 * ROUNDING)


def implied_row(name: str) -> dict[str, Any]:
    """For D = 256 and L = 2, whose cells have most digits: the homophily that each cell implies."""
    paper = packaged("printed.yaml")
    nodes, edges, homophily = paper["statistics"][name]
    place = paper["columns"].index([256, 2])
    alpha, beta = (paper[weight][name][place] for weight in LAWS)
    main, theorem = (theory_weights(homophily, nodes, edges, 2, 256, form) for form in FORMS)
    c1, c2 = alpha * 2 / min(1.0, 256 / edges), beta * nodes / 16
    roots = [implied_homophily(c1, c2, form) for form in FORMS]
    by_alpha, by_beta = (sorted(first + second) for first, second in zip(*roots, strict=True))
    both = any(abs(a - b) < 0.005 for first, second in roots for a in first for b in second)
    return {
        "graph": DATASETS[name].title,
        "printed alpha": alpha,
        "main form": main[0],
        "theorem": theorem[0],
        "H that gives alpha": " or ".join(f"{h:.3f}" for h in by_alpha) or "none",
        "printed beta": beta,
        "main form, beta": main[1],
        "theorem, beta": theorem[1],
        "H that gives beta": " or ".join(f"{h:.3f}" for h in by_beta) or "none",
        "one H for both": "yes" if both else "no",
    }


def implied_homophily(c1: float, c2: float, form: str) -> tuple[list[float], list[float]]:
    """Each H in (0, 1] for which a form has these constants, from alpha and from beta.

    Example:
        >>> implied_homophily(0.6, 0.15, "main")
        ([0.5], [0.5])
    """
    factor = [0.0] if form == "theorem" else []  # of H, which raises the degree by one
    by_alpha = np.polysub([-1, 1.1, *factor], [c1])
    by_beta = np.polysub([0.1, 0.1, *factor], [c2])
    first, second = (
        [round(h, 12) for h in np.roots(law).tolist() if isinstance(h, float) and 0 < h <= 1]
        for law in (by_alpha, by_beta)
    )
    return first, second


def follows_formula(matching: int, cells: int) -> Statement:
    """Verdict on the table, from the cells that the better formula reproduces."""
    verdict = graded(matching == cells, 2 * matching > cells)
    return stated("recommended weights", verdict, matching=matching, cells=cells)


def follows_laws(worst: float) -> Statement:
    """Verdict on how the printed cells depend on width and depth."""
    verdict = graded(worst <= 2, worst <= 10)
    return stated("weights against width and depth", verdict, worst=worst)


def some_homophily(fitting: int, graphs: int) -> Statement:
    """Verdict on whether the table follows the formulas with another homophily."""
    verdict = graded(fitting == graphs, fitting > 0)
    return stated("weights from some homophily", verdict, fitting=fitting, graphs=graphs)


def peak_statement() -> Statement:
    """Where H (1.1 - H), the theorem's factor of alpha, is largest."""
    steps = [n / 1000 for n in range(1, 1001)]
    peak = max(steps, key=lambda h: theory_weights(h, 1, 1, 1, 1, "theorem")[0])
    return stated("homophily of the largest alpha", graded(abs(peak - 0.5) <= 0.1), peak=peak)


def _panel(rows: list[dict[str, Any]], weight: str, suffix: str) -> Panel:
    graphs = column(rows, "graph")
    kinds = {
        "printed": f"printed {weight}",
        "main form": f"main form{suffix}",
        "theorem's form": f"theorem{suffix}",
    }
    series = [Series(label, column(rows, name), graphs) for label, name in kinds.items()]
    return Panel(series, f"{weight} (D = 256, L = 2)", log="x")
