"""Random graphs to measure on: undirected, without self-loops and duplicate edges."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from argnn.bench.perf.config import CLASSES, PerfConfig, hub_degree
from argnn.functional.precision import is_wide

#: Exponent of the degree distribution of a power-law graph.
EXPONENT = 2.5
# Draws after which pairs are taken evenly: those of the heaviest nodes may be used up.
_MAX_DRAWS = 20


@dataclass(frozen=True)
class Workload:
    """What every row works on.

    Attributes:
        x: Features, ``[N, F]``.
        edge_index: Both directions of every edge, ``[2, E]``, sorted by source and target as
            PyG's ``coalesce`` leaves them.
        y: Labels, ``[N]``.
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor


def workload(config: PerfConfig) -> Workload:
    """Graph, features and labels on the device; the same seed gives the same everywhere.

    Random numbers come from the CPU. They are sorted and compared on the device, where a hundred
    million edges take no longer than their numbers.
    """
    generator, device = torch.Generator().manual_seed(config.seed), torch.device(config.device)
    draw = power_law_graph if config.graph == "power-law" else random_graph
    place = device if is_wide(device) else torch.device("cpu")
    return Workload(
        edge_index=draw(config.nodes, config.edges, generator, place).to(device),
        x=torch.randn(config.nodes, config.input_channels, generator=generator).to(device),
        y=torch.randint(CLASSES, (config.nodes,), generator=generator).to(device),
    )


_CPU = torch.device("cpu")


def random_graph(
    nodes: int, edges: int, generator: torch.Generator, device: torch.device = _CPU
) -> Tensor:
    """Pairs of nodes drawn evenly, ``[2, edges // 2 * 2]``.

    Args:
        nodes: Number of nodes.
        edges: Number of listed edges.
        generator: Source of randomness, on the CPU.
        device: Where the graph is put together.
    """

    def draw(count: int) -> Tensor:
        return torch.randint(nodes, (count,), generator=generator).to(device)

    return _both_directions(_distinct_pairs(draw, draw, nodes, edges // 2, generator), nodes)


def power_law_graph(
    nodes: int, edges: int, generator: torch.Generator, device: torch.device = _CPU
) -> Tensor:
    r"""One hub, and pairs of nodes drawn with power-law weights, ``[2, edges // 2 * 2]``.

    Node 0 has degree :func:`~argnn.bench.perf.config.hub_degree`. The ends of the other edges
    are drawn with weight :math:`r^{-1/(\gamma-1)}` for the node of rank :math:`r`, which makes
    the expected degrees follow :math:`d^{-\gamma}`; ranks are shuffled over the nodes.

    Args:
        nodes: Number of nodes.
        edges: Number of listed edges, at least twice the degree of the hub.
        generator: Source of randomness, on the CPU.
        device: Where the graph is put together.
    """
    hub = hub_degree(nodes)
    spokes = 1 + torch.randperm(nodes - 1, generator=generator)[:hub].to(device)
    rank = torch.arange(1, nodes, dtype=torch.float64)
    cumulated = rank.pow(-1 / (EXPONENT - 1)).cumsum(0).to(device)
    label = 1 + torch.randperm(nodes - 1, generator=generator).to(device)

    def draw(count: int) -> Tensor:
        drawn = torch.rand(count, generator=generator, dtype=torch.float64).to(device)
        place = torch.searchsorted(cumulated, cumulated[-1] * drawn)
        return label[place.clamp_max(nodes - 2)]

    def draw_evenly(count: int) -> Tensor:
        return torch.randint(1, nodes, (count,), generator=generator).to(device)

    others = _distinct_pairs(draw, draw_evenly, nodes, edges // 2 - hub, generator)
    # Node 0 is the smaller end of its pairs, so that their keys are the numbers of the spokes.
    return _both_directions(torch.cat([spokes, others]), nodes)


def _distinct_pairs(
    draw: Callable[[int], Tensor],
    draw_evenly: Callable[[int], Tensor],
    nodes: int,
    count: int,
    generator: torch.Generator,
) -> Tensor:
    """Keys ``smaller end * nodes + larger end`` of distinct pairs, ``[count]``."""
    keys, draws = draw(0), 0
    while keys.numel() < count:
        source = draw if draws < _MAX_DRAWS else draw_evenly
        wanted = (count - keys.numel()) * 5 // 4 + 8
        a, b = source(wanted), source(wanted)
        fresh = (torch.minimum(a, b) * nodes + torch.maximum(a, b))[a != b]
        keys, draws = torch.unique(torch.cat([keys, fresh])), draws + 1
    return keys[torch.randperm(keys.numel(), generator=generator)[:count].to(keys.device)]


def _both_directions(keys: Tensor, nodes: int) -> Tensor:
    low, high = keys // nodes, keys % nodes
    both = torch.cat([keys, high * nodes + low]).sort().values
    return torch.stack([both // nodes, both % nodes])
