"""Which rule of the trial chooses best? Judged on nodes that had no say; no test label is read.

A graph with few validation nodes says little about the rule that used them. So sixteen small graphs
are drawn, on which a few nodes teach and hundreds judge: neighbours among the tables of
scikit-learn, parts of real graphs without the test nodes of their splits 0 to 2, and planted
graphs. Every recipe is trained once for each division, what it answers at every epoch is kept, and
rules are replayed on many random draws of the nodes that choose. Cornell, Texas and Wisconsin have
no nodes to spare: there, four fifths of the validation nodes choose and the last fifth judges.

    python scripts/trial_rules.py draw GRAPHS --shared FOLDER
    python scripts/trial_rules.py measure GRAPHS CURVES --divisions 0 1
    python scripts/trial_rules.py table GRAPHS CURVES docs/results --machine "2 CPU cores"

The second command goes on where it was stopped.
"""

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from sklearn.neighbors import kneighbors_graph
from torch import Tensor
from torch.nn import functional as F
from validation import validated

from argnn.data import load
from argnn.nn import AbstractNodeModel
from argnn.runs.machine import git_state
from argnn.runs.problems import Problem
from argnn.runs.recipes import RECIPES, STANDING
from argnn.runs.summary import interval_half_width
from argnn.runs.trial import LEAD, going_on
from argnn.settings.resolve import IN_MEMORY
from argnn.version import __version__

Array = np.ndarray[Any, Any]

#: So many nodes choose; the drawn graphs have a division into nodes that teach, choose and judge.
CHOOSING, DIVISIONS = 60, 4
#: Beside the divisions, the nodes that teach and choose are divided anew so many times.
AGAIN, SHORT = 2, 40
EPOCHS, DRAWS = 120, 20
SMALL = ("cornell", "texas", "wisconsin")
FOLDS, FOLDINGS = 5, 6
#: It was ahead of argnn on two of the small graphs, and often learns for hundreds of epochs.
RIVAL, RIVAL_EPOCHS = "h2gcn", 1000
#: Recipes that small graphs try, without the deep and wide ones, which are slow.
TRIED = (
    "self path, sum",
    STANDING,
    "self path, sum, adjacency rows",
    "one layer, adjacency rows",
    "self path, rw",
    "one layer",
    "self path, less dropout",
)
#: Measured on all splits of the small graphs; the first is what the others are compared with.
ALONE = (STANDING, "self path, sum", RIVAL)
#: The splits on which what stands was chosen.
_USED = range(3)
_ROUNDS = ((15, 5), (50, 3), (EPOCHS, 1))
_BY_NAME = {recipe.name: recipe for recipe in RECIPES}


# Graphs.


def draw(folder: Path, shared: Path) -> None:
    """Write the graphs."""
    for name, table, few in (
        ("iris", datasets.load_iris(), (30, 50)),
        ("wine", datasets.load_wine(), (30, 50)),
        ("breast", datasets.load_breast_cancer(), (60, CHOOSING)),
        ("digits", datasets.load_digits(), (100, CHOOSING)),
    ):
        _save(folder / name, *_neighbors(table, 500 if name == "digits" else None), *few)
    for name, source in (
        *((name, name) for name in ("cora", "citeseer", "actor", "chameleon")),
        ("amherst", str(shared / "fb_amherst.npz")),
        ("twitch", str(shared / "twitch_de.npz")),
        ("pages", str(shared / "facebook_pages.npz")),
    ):
        _save(folder / f"{name}_sub", *_part(source))
    alike, even = np.eye(5), np.full((5, 5), 0.2)
    around = np.roll(alike, 1, 1)
    for name, joined, told, more in (
        ("p_homo", 0.6 * alike + 0.4 * even, 0.12, {}),
        ("p_cycle", 0.3 * (around + around.T) + 0.4 * even, 0.15, {"hubs": True}),
        ("p_words", even, 0.25, {"hubs": True}),
        ("p_weak", 0.8 * alike + 0.2 * even, 0.05, {"degree": 6}),
        ("p_webkb", 0.1 * alike + 0.5 * around + 0.4 * even, 0.25, {"degree": 3, "hubs": True}),
    ):
        _save(folder / name, *_planted(joined, told, **more))


def _neighbors(table: Any, count: int | None) -> tuple[Array, Array, Array]:
    """The five nearest neighbours of the rows of a table."""
    x, y = table.data, table.target
    if count is not None:
        rows = np.random.default_rng(1).permutation(len(y))[:count]
        x, y = x[rows], y[rows]
    x = (x - x.mean(0)) / (x.std(0) + 1e-9)
    found = kneighbors_graph(x, 5).tocoo()
    return x, np.stack([found.row, found.col]), y


def _part(source: str, count: int = 420, most: int = 10, width: int = 500) -> tuple[Array, ...]:
    """Snowballs with at most so many neighbours; no test node of the splits 0 to 2."""
    graph, rng = load(source), np.random.default_rng(7)
    y = graph.y.numpy()
    allowed = ~graph.test_mask[:, :3].any(1).numpy() & (y >= 0)
    edges = graph.edge_index.numpy()
    edges = edges[:, allowed[edges[0]] & allowed[edges[1]]]
    beside = defaultdict[int, list[int]](list)
    for one, other in edges.T:
        beside[one].append(other)
        beside[other].append(one)
    seen: set[int] = set()
    for start in rng.permutation([v for v in np.flatnonzero(allowed) if v in beside]):
        queue = [] if start in seen or len(seen) >= count else [start]
        seen.update(queue)
        while queue and len(seen) < count:
            near = list(dict.fromkeys(beside[queue.pop(0)]))
            rng.shuffle(near)
            for node in near[:most]:
                if node not in seen and len(seen) < count:
                    seen.add(node)
                    queue.append(node)
    nodes = np.array(sorted(seen))
    classes, counts = np.unique(y[nodes], return_counts=True)
    nodes = nodes[np.isin(y[nodes], classes[counts >= 12])]
    place = np.full(len(y), -1)
    place[nodes] = np.arange(len(nodes))
    edges = place[edges]
    x = np.asarray(graph.x.to_dense() if graph.x.is_sparse else graph.x)[nodes]
    x = x[:, (x != 0).any(0)]
    if x.shape[1] > width:  # the most frequent features
        x = x[:, np.sort(np.argsort(-(x != 0).sum(0))[:width])]
    return x, edges[:, (edges >= 0).all(0)], np.unique(y[nodes], return_inverse=True)[1]


def _planted(
    joined: Array, told: float, *, degree: int = 4, hubs: bool = False, count: int = 450
) -> tuple[Array, Array, Array]:
    """Classes whose nodes are joined by given shares, and words that tell a little of the class."""
    rng, words = np.random.default_rng(3), 200
    y = rng.integers(0, 5, count)
    weight = rng.pareto(2.5, count) + 1 if hubs else np.ones(count)
    sources, targets = [], []
    for node in range(count):
        for _ in range(rng.poisson(degree / 2)):
            among = np.flatnonzero(y == rng.choice(5, p=joined[y[node]]))
            sources.append(node)
            targets.append(rng.choice(among, p=weight[among] / weight[among].sum()))
    topic = rng.dirichlet(np.full(words, 0.3), size=5)
    common = rng.dirichlet(np.full(words, 0.3))
    x = np.zeros((count, words))
    for node in range(count):
        chances = told * topic[y[node]] + (1 - told) * common
        x[node, rng.choice(words, size=25, p=chances)] = 1
    return x, np.array([sources, targets]), y


def _save(
    path: Path, x: Array, edges: Array, y: Array, teaching: int = 90, choosing: int = CHOOSING
) -> None:
    """The graph; each division has a column of masks, followed by those that divide it anew."""
    rng, classes = np.random.default_rng(0), len(set(y))
    masks = np.zeros((2, len(y), DIVISIONS * (AGAIN + 1)), dtype=bool)

    def permuted(nodes: Array) -> Array:
        while True:
            found = rng.permutation(nodes)
            if len(set(y[found[:teaching]])) == classes:
                return found

    for division in range(DIVISIONS):
        column = division * (AGAIN + 1)
        nodes = permuted(np.arange(len(y)))
        masks[0, nodes[:teaching], column] = masks[1, nodes[teaching:], column] = True
        for again in range(1, AGAIN + 1):
            known = permuted(nodes[: teaching + choosing])
            masks[0, known[:teaching], column + again] = True
            masks[1, known[teaching:], column + again] = True
    edges = np.concatenate([edges, edges[::-1]], 1)
    edges = np.unique(edges[:, edges[0] != edges[1]], axis=1)
    train, val = masks
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path.with_suffix(".npz"),
        x=x.astype(np.float32),
        edge_index=edges,
        y=y.astype(np.int64),
        train_mask=train,
        val_mask=val,
        test_mask=~(train | val),
    )


# Curves.


def measure(folder: Path, out: Path, divisions: Sequence[int], splits: Sequence[int]) -> None:
    """Train what is not there yet."""
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*.npz")):
        graph = load(path)
        for first in (division * (AGAIN + 1) for division in divisions):
            for recipe in TRIED:
                _train(out, path.stem, graph, first, recipe, EPOCHS)
                for again in range(1, AGAIN + 1 if first == 0 else 1):
                    _train(out, path.stem, graph, first + again, recipe, SHORT, again)
    for name in SMALL:
        graph = load(name)
        for split in splits:
            for recipe in TRIED if split in _USED else ALONE[:-1]:
                _train(out, name, graph, split, recipe, EPOCHS)
            _train(out, name, graph, split, RIVAL, RIVAL_EPOCHS)


def _train(
    out: Path, name: str, graph: Any, split: int, recipe: str, epochs: int, seed: int = 0
) -> None:
    """Keep what every validation node was answered at every epoch, and its loss."""
    file = out / f"{name}__{split}__{seed}__{recipe}.npz"
    if file.exists():
        return
    correct, losses, nodes = list[Array](), list[Array](), list[Array]()

    def watch(problem: Problem) -> Callable[[AbstractNodeModel, int, Tensor], None]:
        task: Any = problem.task
        nodes.append(task.val_nodes.numpy())

        def see(_model: AbstractNodeModel, _epoch: int, outputs: Tensor) -> None:
            scores = outputs.detach()[task.val_nodes].float()
            correct.append((scores.argmax(-1) == task.val_labels).numpy())
            loss = F.cross_entropy(scores, task.val_labels, reduction="none")
            losses.append(loss.half().numpy())

        return see

    settings: dict[str, Any] = {}
    model = "argnn" if recipe in _BY_NAME else recipe
    if model == "argnn":
        settings = {**_BY_NAME[recipe].model, **_BY_NAME[recipe].train}
    settings |= {"epochs": epochs, "patience": 0}
    asked = {"fresh": True, "device": "cpu", "seed": seed, "model": model}
    validated(IN_MEMORY, graph, split, settings, watch=watch, **asked)
    np.savez_compressed(file, correct=np.array(correct), loss=np.array(losses), nodes=nodes[0])
    print(file.stem, flush=True)


# Rules.


@dataclass(frozen=True)
class Curve:
    """One training: for every epoch, which nodes that choose or judge were right."""

    chose: Array
    losses: Array
    judged: Array

    @cached_property
    def scores(self) -> Array:
        """Accuracy of every epoch on the nodes that choose."""
        found: Array = self.chose.mean(1)
        return found

    @cached_property
    def loss(self) -> Array:
        """Mean loss of every epoch on the nodes that choose."""
        found: Array = self.losses.astype(float).mean(1)
        return found

    def order(self, epochs: int) -> Array:
        """The first epochs, the best first: by accuracy, then by loss."""
        return np.lexsort((self.loss[:epochs], -self.scores[:epochs]))

    def hits(self) -> Array:
        """Which nodes that judge are right, at the best epoch."""
        found: Array = self.judged[self.order(len(self.judged))[0]]
        return found

    def accuracy(self) -> float:
        """Their share."""
        return float(self.hits().mean())


#: What a rule compares, a value for each node that chooses: a curve after so many epochs.
Value = Callable[[Curve, int], Array]


def best_epoch(curve: Curve, epochs: int) -> Array:
    """Right or wrong at the best epoch."""
    return curve.chose[curve.order(epochs)[0]].astype(float)


def best_ten(curve: Curve, epochs: int) -> Array:
    """Share of the ten best epochs in which the node was right."""
    found: Array = curve.chose[curve.order(epochs)[:10]].mean(0)
    return found


def least_loss(curve: Curve, epochs: int) -> Array:
    """Minus the loss at the epoch where the mean is least."""
    return -curve.losses[int(curve.loss[:epochs].argmin())].astype(float)


@dataclass(frozen=True)
class Rule:
    """A rule: what is compared, what stands and its lead, in nodes or in standard errors."""

    value: Value = best_epoch
    lead: float = 0.0
    errors: float = 0.0
    stands: str = STANDING
    rounds: tuple[tuple[int, int], ...] = _ROUNDS
    kinds: int = 1

    def choice(self, curves: Mapping[str, Curve]) -> str:
        """The recipe that the rule chooses."""
        left = [name for name in TRIED if name in curves]
        for epochs, count in self.rounds:
            values = {name: self.value(curves[name], epochs) for name in left}
            ranked = sorted(left, key=lambda name: self._key(name, values), reverse=True)
            left = _kept(ranked, count, self.kinds)
        return left[0]

    def _key(self, name: str, values: Mapping[str, Array]) -> tuple[float, ...]:
        mine, standing = values[name], values.get(self.stands)
        score = float(mine.mean())
        if name == self.stands:
            return (0.5, score + self.lead / len(mine))
        if not self.errors or standing is None:
            return (0.5, score)
        ahead = mine - standing
        error = ahead.std(ddof=1) / math.sqrt(len(ahead))
        return (float(ahead.mean() > 0 and ahead.mean() >= self.errors * error), score)


def _has_rows(name: str) -> dict[str, bool]:
    return {"adjacency_rows": "adjacency rows" in name}


def _kept(ranked: list[str], count: int, kinds: int) -> list[str]:
    """As in the trial, or at least two of each kind."""
    if kinds == 1 or count < 2 * kinds:
        return going_on(ranked, count, _has_rows)
    rows = [name for name in ranked if "adjacency rows" in name][:kinds]
    others = [name for name in ranked if "adjacency rows" not in name][:kinds]
    sure = {*rows, *others}
    free = [name for name in ranked if name not in sure][: count - len(sure)]
    return [name for name in ranked if name in sure or name in free]


_BY_TEN = {"value": best_ten}
RULES: dict[str, Rule] = {
    "present rule, lead 3": Rule(lead=LEAD),
    **{f"lead {lead}": Rule(lead=lead) for lead in (0, 1, 2, 5)},
    "lead of half a standard error": Rule(errors=0.5),
    "lead of one standard error": Rule(errors=1),
    "lead of 1.64 standard errors": Rule(errors=1.64),
    "self path sum stands, lead 3": Rule(lead=LEAD, stands="self path, sum"),
    "no halving, lead 3": Rule(lead=LEAD, rounds=((EPOCHS, 1),)),
    "longer rounds, lead 3": Rule(lead=LEAD, rounds=((30, 5), (60, 3), (EPOCHS, 1))),
    "two of each kind, lead 3": Rule(lead=LEAD, rounds=((15, 5), (50, 4), (EPOCHS, 1)), kinds=2),
    **{f"ten best epochs, lead {lead}": Rule(lead=lead, **_BY_TEN) for lead in (0, 1, 2, 3)},
    "ten best epochs, one standard error": Rule(errors=1, **_BY_TEN),
    "least loss, lead 0": Rule(value=least_loss),
    "least loss, one standard error": Rule(value=least_loss, errors=1),
}
PRESENT = next(iter(RULES))
#: Rules with a lead in nodes: for each graph, one is chosen on the other graphs.
_CHOSEN_FROM = [name for name in RULES if "lead" in name and name.split()[-1].isdigit()]
_WITHOUT = "the best rule of the other graphs"
_ORACLE = "the best recipe by the nodes that judge"
#: The gain of so many nodes that choose the recipe, where at least so many are left to judge.
_MORE, _LEFT = (120, 180), 150
_MORE_RULES = (PRESENT, "ten best epochs, lead 2")

#: Right or wrong, and losses, by recipe: ``[epochs, nodes]`` both.
Raw = dict[str, tuple[Array, Array]]
#: Accuracy by graph and division, or split, for each rule.
Found = dict[str, dict[tuple[str, int], float]]


def on_drawn(curves: Path) -> tuple[Found, Found]:
    """Rules on the drawn graphs, the second with more nodes that choose the recipe."""
    found: Found = defaultdict(dict)
    more: Found = defaultdict(dict)
    for place, raw in _read(curves, AGAIN + 1, drawn=True).items():
        size = next(iter(raw.values()))[0].shape[1]
        orders = [np.random.default_rng(number).permutation(size) for number in range(DRAWS)]
        _add(found, place, [_judged(raw, order) for order in orders])
        if size >= max(_MORE) + _LEFT:
            _add(more, place, [_judged_with_more(raw, order) for order in orders])
    found[_WITHOUT] = {
        place: found[_chosen_without(found, place[0])][place] for place in found[PRESENT]
    }
    return found, more


def _add(found: Found, place: tuple[str, int], draws: Sequence[Mapping[str, float]]) -> None:
    for name in draws[0]:
        found[name][place] = statistics.mean(draw[name] for draw in draws)


def _judged(raw: Raw, order: Array, judging: int = CHOOSING) -> dict[str, float]:
    """Every rule and every recipe; the first nodes choose."""
    curves = _curves(raw, order[:CHOOSING], order[judging:])
    alone = {name: curve.accuracy() for name, curve in curves.items()}
    found = {name: alone[rule.choice(curves)] for name, rule in RULES.items()}
    found[_ORACLE] = max(alone.values())
    return {**found, **{f"{name} alone": value for name, value in alone.items()}}


def _judged_with_more(raw: Raw, order: Array) -> dict[str, float]:
    """The recipe is chosen on more nodes than the epoch."""
    usual = _curves(raw, order[:CHOOSING], order[max(_MORE) :])
    found = {PRESENT: usual[RULES[PRESENT].choice(usual)].accuracy()}
    for count in _MORE:
        curves = _curves(raw, order[:count], order[max(_MORE) :])
        for name in _MORE_RULES:
            chosen = RULES[name].choice(curves)
            found[f"{name}, {count} nodes choose the recipe"] = usual[chosen].accuracy()
    return found


def _chosen_without(found: Found, graph: str) -> str:
    def score(name: str) -> float:
        means = _by_graph(found[name])
        return statistics.mean(value for other, value in means.items() if other != graph)

    return max(_CHOSEN_FROM, key=score)


def divided_again(folder: Path, graphs: Path) -> Found:
    """The recipe is chosen by cross-validation on the nodes that teach or choose, in short runs."""
    found: Found = defaultdict(dict)
    everything = [_read(folder, AGAIN + 1, drawn=True, again=again) for again in range(AGAIN + 1)]
    for place in sorted(set(everything[0]).intersection(*everything[1:])):
        with np.load(graphs / f"{place[0]}.npz") as file:
            train, val = file["train_mask"], file["val_mask"]
        column = place[1] * (AGAIN + 1)
        known = (train[:, column + 1] | val[:, column + 1])[val[:, column]]
        usual = _curves(everything[0][place], np.flatnonzero(known), np.flatnonzero(~known))
        found[PRESENT][place] = usual[RULES[PRESENT].choice(usual)].accuracy()
        divided = [usual]
        for other in everything[1:]:
            raw = other[place]
            every = np.arange(raw[STANDING][0].shape[1])
            divided.append(_curves(raw, every, every))
        for words, value in (("", best_epoch), (", ten best epochs", best_ten)):
            for lead in (0, 3):
                chosen = _cross_validated(divided, value, lead)
                name = f"cross-validation, lead {lead}{words}"
                found[name][place] = usual[chosen].accuracy()
    return found


def _cross_validated(divided: Sequence[Mapping[str, Curve]], value: Value, lead: float) -> str:
    def score(name: str) -> float:
        values = np.concatenate([value(curves[name], SHORT) for curves in divided])
        return float(values.mean()) + (lead / len(values) if name == STANDING else 0)

    return max(TRIED, key=score)


def on_small(curves: Path) -> Found:
    """Rules and single recipes on the small graphs."""
    found: Found = defaultdict(dict)
    for place, raw in _read(curves, 1, drawn=False).items():
        curves_of = {name: raw[name] for name in TRIED}
        for name, value in _held_out(curves_of, RULES).items():
            found[name][place] = value
    return found


def alone(curves: Path) -> Found:
    """Single methods on the small graphs, on more splits."""
    found: Found = defaultdict(dict)
    for place, raw in _read(curves, 1, ALONE, drawn=False).items():
        for name, value in _held_out({name: raw[name] for name in ALONE}, {}).items():
            found[name][place] = value
    return found


def _held_out(raw: Raw, rules: Mapping[str, Rule]) -> dict[str, float]:
    """Accuracy where each part of the validation nodes judges once what the others chose."""
    right: dict[str, list[Array]] = defaultdict(list)
    size = next(iter(raw.values()))[0].shape[1]
    for number in range(FOLDINGS):
        part = np.random.default_rng(number).permutation(size) % FOLDS
        for fold in range(FOLDS):
            curves = _curves(raw, np.flatnonzero(part != fold), np.flatnonzero(part == fold))
            hits = {name: curve.hits() for name, curve in curves.items()}
            for name, rule in rules.items():
                right[name].append(hits[rule.choice(curves)])
            for name, values in hits.items():
                right[f"{name} alone"].append(values)
    return {name: float(np.concatenate(parts).mean()) for name, parts in right.items()}


def _read(
    folder: Path,
    columns: int,
    wanted: Sequence[str] = TRIED,
    *,
    drawn: bool,
    again: int = 0,
) -> dict[tuple[str, int], Raw]:
    """The curves of every division or split that is complete."""
    found: dict[tuple[str, int], Raw] = defaultdict(dict)
    for path in sorted(folder.glob("*.npz")):
        graph, column, seed, recipe = path.stem.split("__")
        if (graph not in SMALL) == drawn and int(column) % columns == again == int(seed):
            with np.load(path) as file:
                curve = file["correct"], file["loss"]
            found[graph, int(column) // columns][recipe] = curve
    return {place: raw for place, raw in found.items() if {*wanted} <= {*raw}}


def _curves(raw: Raw, choosing: Array, judging: Array) -> dict[str, Curve]:
    return {
        name: Curve(right[:, choosing], losses[:, choosing], right[:, judging])
        for name, (right, losses) in raw.items()
    }


def _by_graph(values: Mapping[tuple[str, int], float]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for (graph, _), value in values.items():
        found[graph].append(value)
    return {graph: statistics.mean(scores) for graph, scores in found.items()}


# Tables.


def gain(values: Mapping[Any, float], present: Mapping[Any, float]) -> str:
    """Mean difference to the present rule and its 95 % interval, in points."""
    found = [100 * (values[key] - present[key]) for key in present]
    return f"{statistics.mean(found):+.2f} ± {interval_half_width(found):.2f}"


def drawn_table(found: Found, *others: Found) -> list[list[str]]:
    """A line for each rule: mean over graphs, and the gain with an interval over graphs."""
    lines = [["rule", "graphs", "accuracy", "gain"]]
    for some in (found, *others):
        present = _by_graph(some[PRESENT])
        for name, values in some.items():
            if some is found or name != PRESENT:
                means = _by_graph(values)
                score = f"{100 * statistics.mean(means.values()):.2f}"
                lines.append([name, str(len(means)), score, gain(means, present)])
    return lines


def small_table(found: Found) -> list[list[str]]:
    """A line for each rule: gain on each graph with an interval over splits."""
    graphs = sorted({graph for graph, _ in found[PRESENT]})
    lines = [["rule", "accuracy", *graphs, "all"]]
    for name, values in found.items():
        score = f"{100 * statistics.mean(_by_graph(values).values()):.2f}"
        cells = [
            gain(values, {key: value for key, value in found[PRESENT].items() if key[0] in among})
            for among in (*([graph] for graph in graphs), graphs)
        ]
        lines.append([name, score, *cells])
    return lines


def alone_table(found: Found) -> list[list[str]]:
    """A line for each method, on the splits that chose what stands and on the others."""
    ours = found[f"{STANDING} alone"]
    graphs = sorted({graph for graph, _ in ours})
    lines = [["method", *graphs, "gain"]]
    for words, used in (("splits 0 to 2", True), ("splits 3 to 9", False)):
        for name, values in found.items():
            some = {place: value for place, value in values.items() if (place[1] in _USED) == used}
            if not some:  # not measured
                continue
            means = _by_graph(some)
            cells = [f"{100 * means[graph]:.2f}" for graph in graphs]
            lines.append([f"{name}, {words}", *cells, gain(some, {key: ours[key] for key in some})])
    return lines


def write(path: Path, machine: str, note: str, lines: Sequence[Sequence[str]]) -> None:
    """A table as the pages read it."""
    head = [
        f"# command: python scripts/{Path(__file__).name} table GRAPHS CURVES docs/results",
        f"# note: {note}",
        f"# machine: {machine}",
        f"# versions: argnn {__version__}, torch {torch.__version__}",
        f"# date: written on {date.today()} (commit {str(git_state()['git_commit'])[:7]})",
    ]
    rows = (",".join(f'"{cell}"' if "," in cell else cell for cell in line) for line in lines)
    path.write_text("\n".join([*head, *rows]) + "\n", encoding="utf-8")


def main() -> None:
    """Draw, measure or write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    drawing, measuring = commands.add_parser("draw"), commands.add_parser("measure")
    drawing.add_argument("graphs", type=Path)
    drawing.add_argument(
        "--shared", type=Path, required=True, help="with fb_amherst.npz and others"
    )
    measuring.add_argument("graphs", type=Path)
    measuring.add_argument("curves", type=Path)
    measuring.add_argument("--divisions", nargs="*", type=int, default=[0])
    measuring.add_argument("--splits", nargs="*", type=int, default=list(range(10)))
    storing = commands.add_parser("table")
    storing.add_argument("graphs", type=Path)
    storing.add_argument("curves", type=Path)
    storing.add_argument("out", type=Path)
    storing.add_argument("--machine", required=True)
    given = parser.parse_args()
    if given.command == "draw":
        draw(given.graphs, given.shared)
    elif given.command == "measure":
        measure(given.graphs, given.curves, given.divisions, given.splits)
    else:
        found, more = on_drawn(given.curves)
        again = divided_again(given.curves, given.graphs)
        divisions = len(found[PRESENT])
        note = (
            f"{divisions} divisions of the graphs; {CHOOSING} nodes choose, {DRAWS} draws of them"
        )
        write(given.out / "trial-rules.csv", given.machine, note, drawn_table(found, more, again))
        small = on_small(given.curves)
        note = f"validation nodes of {len(small[PRESENT])} splits; four fifths choose"
        write(given.out / "trial-rules-small.csv", given.machine, note, small_table(small))
        single = alone(given.curves)
        note = "validation nodes; four fifths choose the epoch; gain over ten steps"
        write(given.out / "trial-rules-alone.csv", given.machine, note, alone_table(single))


if __name__ == "__main__":
    main()
