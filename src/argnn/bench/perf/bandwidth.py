r"""Bytes that the edge part of a layer has to move, and how close it comes to a plain copy.

Counted is useful traffic: every row that an edge gathers once per edge, with 4 bytes for the
index of its node and 16 bytes for the scalars that are saved per edge for the backward, and
what every node reads and writes of its own, with 8 bytes for its offset. Rows that come from a
cache are counted all the same, so on a small graph the share can exceed 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.bench.perf.config import PerfConfig
from argnn.bench.perf.graphs import Workload
from argnn.bench.perf.rows import kernels
from argnn.bench.perf.timing import repeats_for, seconds_of, spread
from argnn.functional.neighborhood import neighborhood

INDEX_BYTES = 4
NORM_BYTES = 4
SAVED_BYTES = 16
OFFSET_BYTES = 8
#: What the pass over targets leaves on an edge for the pass over sources, and where to find it.
EDGE_GRADIENT_BYTES, POSITION_BYTES = 20, 8
_COPY_BYTES = {"cpu": 2**28, "cuda": 2**30}
_COPY_REPEATS = 15
_SAMPLE_SECONDS, _MOST_CALLS = 0.02, 100


@dataclass(frozen=True)
class EdgeTraffic:
    """Useful bytes of one layer, with ``messages = h``.

    Attributes:
        nodes: Number of nodes.
        edges: Number of listed edges.
        channels: Number of channels.
        element: Bytes of a number.

    Example:
        >>> one = EdgeTraffic(nodes=1, edges=1, channels=1, element=4)
        >>> one.propagate_forward(saved=False), one.propagate_backward(), one.aggregate_forward()
        (44, 128, 20)
    """

    nodes: int
    edges: int
    channels: int
    element: int

    def propagate_forward(self, *, saved: bool) -> int:
        """The fused forward; ``saved`` says whether scalars are saved for a backward.

        An edge gathers ``h_j`` and the norm of node ``j``; a node reads ``h_i`` and ``g_i`` and
        writes its sum. Before that it reads both to compute its norm, which must be known before
        its neighbours can be summed.
        """
        edge = self._row + INDEX_BYTES + NORM_BYTES + (SAVED_BYTES if saved else 0)
        return self.edges * edge + self.nodes * ((2 + 3) * self._row + NORM_BYTES + OFFSET_BYTES)

    def propagate_backward(self) -> int:
        """The fused backward, in two passes.

        The pass over targets gathers ``h_j`` and reads ``h_i``, ``g_i`` and the gradient of node
        ``i``; the pass over sources gathers the gradient, ``h_i`` and ``g_i`` and reads ``h_j``.
        The first reads the saved scalars and leaves five numbers per edge, which the second
        reads. Written are the gradients of ``h`` and ``g``.
        """
        scalars = SAVED_BYTES + 2 * EDGE_GRADIENT_BYTES + POSITION_BYTES
        edge = (1 + 3) * self._row + 2 * INDEX_BYTES + scalars
        return self.edges * edge + self.nodes * ((3 + 1 + 2) * self._row + 2 * OFFSET_BYTES)

    def aggregate_forward(self) -> int:
        """A sum over neighbours with constant weights.

        An edge gathers ``x_j``, a node writes its sum; weights are not counted, as they can be
        taken apart into factors of the nodes.
        """
        edge, node = self._row + INDEX_BYTES, self._row + OFFSET_BYTES
        return self.edges * edge + self.nodes * node

    @property
    def _row(self) -> int:
        return self.channels * self.element


def copy_bandwidth(device: torch.device) -> dict[str, Any]:
    """Bytes read and written per second by a copy of a large tensor."""
    size = _COPY_BYTES[device.type]
    source = torch.ones(size // 4, device=device)
    copy = torch.empty_like(source)
    found = _timed(lambda: copy.copy_(source), device, lambda _: _COPY_REPEATS)
    moved = 2 * size
    return {**found, "bytes": moved, "gb_per_s": moved / found["median_ms"] / 1e6}


def edge_parts(
    config: PerfConfig, work: Workload, copy_gb_per_s: float, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Time and useful traffic of the fused edge part of one layer.

    Args:
        config: Sizes and options.
        work: Graph on the device.
        copy_gb_per_s: Measured bandwidth of a copy.
        tell: Is told which part begins.
    """
    found = []
    for name, (action, moved) in _actions(config, work).items():
        tell(name)
        with kernels("fused"):
            part = _timed(action, work.x.device, lambda took: repeats_for(took, took, config))
        rate = moved / part["median_ms"] / 1e6
        rates = {"bytes": moved, "gb_per_s": rate, "share_of_copy": rate / copy_gb_per_s}
        found.append({"name": name, **part, **rates})
    return found


def _actions(config: PerfConfig, work: Workload) -> dict[str, tuple[Callable[[], object], int]]:
    """What is timed, by name, with its useful bytes."""
    device = work.x.device
    edge_index = neighborhood(work.edge_index, config.nodes)  # prepared, as in training
    generator = torch.Generator(device).manual_seed(config.seed)
    shape = (config.nodes, config.channels)
    drawn = torch.rand(3, *shape, generator=generator, device=device)
    drawn = drawn.bfloat16() if config.dtype == "bfloat16" else drawn
    h, g, grad = (drawn[0] - 0.5), drawn[1] + 0.5, drawn[2]
    h_, g_ = h.clone().requires_grad_(), g.clone().requires_grad_()
    saved: list[Tensor] = []
    traffic = EdgeTraffic(config.nodes, edge_index.num_edges, config.channels, h.element_size())

    def forward() -> None:
        with torch.no_grad():
            AF.propagate(h, g, h, edge_index)

    def training_forward() -> None:
        AF.propagate(h_, g_, h_, edge_index)

    def forward_backward() -> None:
        torch.autograd.grad(AF.propagate(h_, g_, h_, edge_index), (h_, g_), grad)

    def backward() -> None:
        if not saved:  # the first call, which is not timed
            saved.append(AF.propagate(h_, g_, h_, edge_index))
        torch.autograd.grad(saved[0], (h_, g_), grad, retain_graph=True)

    def aggregate() -> None:
        with torch.no_grad():
            AF.aggregate(h, edge_index, "sym")

    back, with_saved = traffic.propagate_backward(), traffic.propagate_forward(saved=True)
    return {
        "propagate, forward": (forward, traffic.propagate_forward(saved=False)),
        "propagate, forward in training": (training_forward, with_saved),
        "propagate, backward": (backward, back),
        "propagate, forward + backward": (forward_backward, with_saved + back),
        "aggregate, forward": (aggregate, traffic.aggregate_forward()),
    }


def _timed(
    action: Callable[[], object], device: torch.device, repeats: Callable[[float], int]
) -> dict[str, Any]:
    """Median and spread of one call, from several samples.

    Args:
        action: What is timed.
        device: Where it runs.
        repeats: Number of samples, from an estimate of the seconds of a call.
    """
    action()  # prepares the graph, compiles
    estimate = seconds_of(action, device)
    calls = 1
    if device.type == "cuda":
        # A sample of one short kernel would mostly be the time that Python takes to start it.
        calls = min(_MOST_CALLS, math.ceil(_SAMPLE_SECONDS / estimate))

    def sample() -> None:
        for _ in range(calls):
            action()

    times = [seconds_of(sample, device) / calls for _ in range(repeats(calls * estimate))]
    return {**spread(times), "calls_per_sample": calls}
