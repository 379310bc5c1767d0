"""Operations and memory of a layer, counted over sizes and beside the stated orders."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from argnn.bench.perf.rows import kernels
from argnn.bench.theory.finding import Effort, Finding, Statement, graded, stated
from argnn.bench.theory.graphs import random_graph
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import MeasuredRows, column, grouped
from argnn.functional.neighborhood import neighborhood
from argnn.nn import ARGNN, ARConv
from argnn.settings.options import seeded

#: Terms that the counts are fitted with.
TERMS = ("N D^2", "E D^2", "E D", "N D", "E", "N")


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
    with seeded(effort.seed):
        rows = [_counts(*size) for size in product(*sizes)]
        growth = _parameter_growth(sizes[0][0], sizes[2][0])
    shares, fit = fitted_terms(rows)
    for row, value in zip(rows, fit, strict=True):
        row["by the fit"] = value
    off = [row["by the fit"] / row["operations"] - 1 for row in rows]
    kept = [kept_per_edge(rows, mode) for mode in ("plain", "fused")]
    terms = [
        {"term": term, "share at the largest size %": 100 * share} for term, share in shares.items()
    ]
    return Finding.of(
        "complexity",
        [operation_order(shares, off), memory_order(*kept), parameter_order(growth)],
        {"complexity": rows, "complexity-terms": terms},
        _panels(rows),
    )


def _counts(nodes: int, degree: int, channels: int) -> dict[str, float]:
    """Operations in plain torch, and numbers kept with plain operations and with kernels."""
    edge_index = random_graph(nodes, nodes * degree // 2, torch.Generator().manual_seed(nodes))
    hood = neighborhood(edge_index, nodes)
    hood.relation("undirected")
    conv = ARConv(channels, channels, metric_options={"hidden_channels": channels})
    x = torch.randn(nodes, channels, requires_grad=True)
    kept = {}
    for mode in ("plain", "fused"):
        with kernels(mode), _kept_numbers() as found:
            conv(x, hood)
        kept[f"kept, {mode}"] = sum(found.values())
    with kernels("plain"), OperationCounter() as counter:
        conv(x, hood).sum().backward()
    sizes = {"nodes": nodes, "edges": edge_index.size(1), "channels": channels}
    return {**sizes, "operations": counter.total, "by the fit": np.nan, **kept}


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


def fitted_terms(rows: MeasuredRows) -> tuple[dict[str, float], list[float]]:
    """Share of each term in the fit at the largest size, and the fit of every row.

    Not-negative least squares on relative errors, from nodes, edges, channels and operations.
    """
    names = ("nodes", "edges", "channels", "operations")
    n, e, d, counts = (np.array(column(rows, name), dtype=float) for name in names)
    design = np.column_stack([n * d**2, e * d**2, e * d, n * d, e, n])
    weights = nnls(design / counts[:, None], np.ones(len(rows)))[0]
    fit = design @ weights
    shares = design[-1] * weights / fit[-1]
    return dict(zip(TERMS, shares.tolist(), strict=True)), fit.tolist()


def kept_per_edge(rows: MeasuredRows, mode: str) -> list[float]:
    """Numbers kept for one more edge of the largest graph, in the narrowest and widest layer."""
    widths = grouped(grouped(rows, "nodes")[rows[-1]["nodes"]], "channels")
    found = []
    for width in (min(widths), max(widths)):
        first, last = widths[width][0], widths[width][-1]
        more = last[f"kept, {mode}"] - first[f"kept, {mode}"]
        found.append(more / (last["edges"] - first["edges"]))
    return found


def _parameter_growth(nodes: int, channels: int) -> list[int]:
    """Growth of the parameters when nodes double: with the metric network, with free metrics."""

    def count(metric: str, size: int) -> int:
        model = ARGNN(channels, channels, 2, 1, preset="paper", metric=metric)
        model.fit_to_graph(random_graph(size, size, torch.Generator().manual_seed(0)), size)
        return sum(p.numel() for p in model.parameters())

    return [count(metric, 2 * nodes) - count(metric, nodes) for metric in ("features", "free")]


def operation_order(shares: Mapping[str, float], off: Sequence[float]) -> Statement:
    """Verdict on the operations, from the fit."""
    worst, squared = max(map(abs, off)), shares["E D^2"]
    verdict = graded(worst <= 0.05)
    return stated("operations of a layer", verdict, worst=100 * worst, squared=100 * squared)


def memory_order(plain: Sequence[float], fused: Sequence[float]) -> Statement:
    """Verdict on the memory, from the numbers kept per edge in a narrow and in a wide layer."""
    by_plain, by_kernels = (wide <= 1.1 * narrow for narrow, wide in (plain, fused))
    return stated("memory of a layer", graded(by_plain, by_kernels), plain=plain, fused=fused)


def parameter_order(growth: Sequence[int]) -> Statement:
    """Verdict on the parameters, from what doubling the nodes adds."""
    network, free = growth
    return stated("parameters", graded(network > 0, free > 0), network=network, free=free)


def _panels(rows: MeasuredRows) -> list[Panel]:
    operations, kept = [], []
    for width, own in grouped(rows, "channels").items():
        over_width = [row["operations"] / width for row in own]
        operations.append(Series(f"D = {width}", column(own, "edges"), over_width, "."))
    largest = grouped(rows, "edges")[rows[-1]["edges"]]
    for mode, mark in (("plain", "o-"), ("fused", "s-")):
        per_edge = [row[f"kept, {mode}"] / row["edges"] for row in largest]
        kept.append(Series(mode, column(largest, "channels"), per_edge, mark))
    return [
        Panel(operations, "edges", "operations / D", log="xy"),
        Panel(kept, "channels", "numbers kept per edge"),
    ]
