"""Operations and memory of a layer, counted over sizes and beside the stated orders."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from argnn.analysis.figures.style import PALETTE, new_figure, styled
from argnn.bench.perf.rows import kernels
from argnn.bench.theory.finding import Effort, Finding, FoundTable, Statement, graded
from argnn.bench.theory.graphs import random_graph
from argnn.functional.neighborhood import neighborhood
from argnn.nn import ARGNN, ARConv
from argnn.settings.options import seeded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Terms that the counts are fitted with.
TERMS = ("N D^2", "E D^2", "E D", "N D", "E", "N")
_COUNTS = ["nodes", "edges", "channels", "operations", "by the fit", "kept, plain", "kept, fused"]


class OperationCounter(TorchDispatchMode):
    """Counts two operations for each term of a matrix product, else one for each entry made."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            left, right = args[-2:]
            entries = left.numel() if left.layout == torch.strided else left._nnz()
            self.total += 2 * entries * right.size(1)
        self.total += sum(tensor.numel() for tensor in tensors)
        return result


def measured_complexity(effort: Effort) -> Finding:
    """Count one layer, forward and backward, on random graphs of several sizes."""
    sizes = effort.of(
        ((20, 40), (2, 8), (4, 8)),
        ((100, 200, 400), (2, 8, 20), (8, 16, 32, 64)),
        ((200, 400, 800, 1600), (2, 8, 20), (16, 32, 64, 128)),
    )
    rows: list[list[Any]] = []
    with seeded(effort.seed):
        for nodes, degree, channels in product(*sizes):
            drawn = random_graph(nodes, nodes * degree // 2, torch.Generator().manual_seed(nodes))
            rows.append([nodes, drawn.size(1), channels, *_counts(drawn, nodes, channels)])
        parameters = _parameter_counts(sizes[0][0], sizes[2][0])
    shares, fit = fitted_terms(rows)
    rows = [[*row[:4], value, *row[4:]] for row, value in zip(rows, fit, strict=True)]
    return Finding(
        [
            operation_order(shares, [row[4] / row[3] - 1 for row in rows]),
            memory_order(kept_per_edge(rows, 5), kept_per_edge(rows, 6)),
            parameter_order(parameters),
        ],
        [
            FoundTable("complexity", _COUNTS, rows),
            FoundTable(
                "complexity-terms",
                ["term", "share at the largest size %"],
                [[term, 100 * share] for term, share in shares.items()],
            ),
        ],
        "One ARConv of the paper's form, forward and backward, in plain torch operations: a "
        "matrix product counts its multiplications and additions, every operation the entries of "
        "its result. Kept: numbers that autograd keeps for the backward pass. Counts, "
        "not times; for times see argnn perf.",
        lambda: _figure(rows),
    )


def _counts(edge_index: Tensor, nodes: int, channels: int) -> list[int]:
    """Operations in plain torch, and numbers kept with plain operations and with kernels."""
    hood = neighborhood(edge_index, nodes)
    hood.relation("undirected")
    conv = ARConv(channels, channels, metric_options={"hidden_channels": channels})
    x = torch.randn(nodes, channels, requires_grad=True)
    kept = []
    for mode in ("plain", "fused"):
        with kernels(mode), _kept_numbers() as found:
            conv(x, hood)
        kept.append(sum(found.values()))
    with kernels("plain"), OperationCounter() as counter:
        conv(x, hood).sum().backward()
    return [counter.total, *kept]


@contextmanager
def _kept_numbers() -> Iterator[dict[int, int]]:
    """Sizes of the tensors that autograd keeps, by address: one that is kept twice counts once."""
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes() // max(tensor.element_size(), 1)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield found


def fitted_terms(rows: Sequence[Sequence[float]]) -> tuple[dict[str, float], list[float]]:
    """Share of each term in the fit at the largest size, and the fit of every row.

    Not-negative least squares on relative errors, from nodes, edges, channels and operations.
    """
    from scipy.optimize import nnls

    n, e, d, counts = np.array([row[:4] for row in rows], dtype=float).T
    design = np.column_stack([n * d**2, e * d**2, e * d, n * d, e, n])
    weights = nnls(design / counts[:, None], np.ones(len(rows)))[0]
    fit = design @ weights
    shares = design[-1] * weights / fit[-1]
    return dict(zip(TERMS, shares.tolist(), strict=True)), fit.tolist()


def kept_per_edge(rows: Sequence[Sequence[Any]], column: int) -> list[float]:
    """Numbers kept for one more edge, in the narrowest and in the widest layer."""

    def of(channels: int) -> float:
        own = [row for row in rows if row[2] == channels and row[0] == rows[-1][0]]
        return float((own[-1][column] - own[0][column]) / (own[-1][1] - own[0][1]))

    widths = sorted({row[2] for row in rows})
    return [of(widths[0]), of(widths[-1])]


def _parameter_counts(nodes: int, channels: int) -> tuple[int, int]:
    """Growth of the parameters when nodes double: with the metric network, with free metrics."""
    growth = []
    for metric in ("features", "free"):
        counts = []
        for size in (nodes, 2 * nodes):
            model = ARGNN(channels, channels, 2, 1, preset="paper", metric=metric)
            edges = random_graph(size, size, torch.Generator().manual_seed(0))
            model.fit_to_graph(edges, size)
            counts.append(sum(p.numel() for p in model.parameters()))
        growth.append(counts[1] - counts[0])
    return growth[0], growth[1]


def operation_order(shares: dict[str, float], off: Sequence[float]) -> Statement:
    """Verdict on the operations, from the fit."""
    worst, squared = max(map(abs, off)), shares["E D^2"]
    return Statement(
        "operations of a layer",
        "O((N + E) D^2) per layer.",
        "thm:complexity, app:proof_complexity",
        f"a sum of the terms fits all counts to {100 * worst:.1f} %; E D^2 has a share of "
        f"{100 * squared:.2g} % of it",
        "verified if the fit is within 5 % (and with E D^2 below 1 % it is even O(N D^2 + E D)), "
        "else refuted",
        graded(worst <= 0.05),
    )


def memory_order(plain: Sequence[float], fused: Sequence[float]) -> Statement:
    """Verdict on the memory, from the numbers kept per edge in a narrow and in a wide layer."""

    def constant(kept: Sequence[float]) -> bool:
        return kept[1] <= 1.1 * kept[0]

    return Statement(
        "memory of a layer",
        "O(N D + E) numbers for features and graph.",
        "app:proof_complexity",
        f"from a narrow to a wide layer, {plain[0]:.0f} to {plain[1]:.0f} numbers are kept per "
        f"edge by plain operations, {fused[0]:.0f} to {fused[1]:.0f} by kernels",
        "verified if the numbers per edge do not depend on the width for plain operations, with "
        "changes if for kernels only, else refuted",
        graded(constant(plain), constant(fused)),
    )


def parameter_order(growth: tuple[int, int]) -> Statement:
    """Verdict on the parameters, from what doubling the nodes adds."""
    network, free = growth
    return Statement(
        "parameters",
        "O(L D^2) shared weights plus O(N D) for learnable metrics.",
        "app:proof_complexity",
        f"twice the nodes add {network} parameters with the metric network, {free} with free "
        "metrics",
        "verified if the network's grow with the nodes, with changes if only those of free "
        "metrics do, else refuted",
        graded(network > 0, free > 0),
    )


@styled
def _figure(rows: Sequence[Sequence[Any]]) -> "Figure":
    figure = new_figure(7.2, 2.9)
    left, right = figure.subplots(1, 2)
    channels = sorted({row[2] for row in rows})
    for place, width in enumerate(channels):
        own = [row for row in rows if row[2] == width]
        found = [row[1] for row in own], [row[3] / row[2] for row in own]
        left.plot(*found, ".", color=PALETTE[place], label=f"D = {width}")
    left.set(xscale="log", yscale="log", xlabel="edges", ylabel="operations / D")
    left.xaxis.set_minor_formatter("")
    left.legend(loc="lower right")
    largest = [row for row in rows if row[0] == rows[-1][0] and row[1] == rows[-1][1]]
    for place, (column, label) in enumerate(((5, "plain"), (6, "fused"))):
        values = [row[column] / row[1] for row in largest]
        right.plot(channels, values, "os"[place] + "-", color=PALETTE[place], label=label)
    right.set(xlabel="channels", ylabel="numbers kept per edge")
    right.legend(loc="best")
    return figure
