"""Properties of nodes that follow from the graph alone: degrees and clustering."""

from collections.abc import Iterator

import torch
from torch import Tensor

from argnn.functional.graph_part import GraphPart
from argnn.functional.neighborhood import (
    Edges,
    Neighborhood,
    neighborhood,
    plain_aggregate,
    row_starts,
)
from argnn.kernels.triangles import count_triangles

#: Columns of :func:`structural_descriptor`.
DESCRIPTOR_NAMES = ("log_degree", "log_in", "log_out", "neighbor_log_degree", "clustering")
NUM_DESCRIPTORS = len(DESCRIPTOR_NAMES)

#: A column with a smaller standard deviation counts as constant.
MIN_DEVIATION = 1e-9

# Two-step walks expanded at a time; bounds the memory of the triangle count.
_WALKS_PER_CHUNK = 20_000_000


def structural_descriptor(edge_index: Edges, num_nodes: int) -> Tensor:
    """Five numbers per node, ``[N, 5]`` in float64; they depend on nodes within two hops only.

    They are on the device of the edges, or on the CPU if that has no float64.

    The logarithms of one plus the number of neighbours, of edges in and of edges out, the
    mean of the first over the neighbours, and the clustering coefficient. Edges with weights count
    by their weights, except for the clustering coefficient.
    """
    hood = neighborhood(edge_index, num_nodes)
    if torch.compiler.is_compiling():
        return _descriptor_op(hood.edge_index, hood.weight, num_nodes)
    hood = hood.wide
    found = hood.kept("structural_descriptor", lambda: _descriptor(hood))
    return found.clone()  # the caller may write into it


@torch.library.custom_op("argnn::structural_descriptor", mutates_args=())
def _descriptor_op(edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
    return structural_descriptor(neighborhood(edge_index, num_nodes, edge_weight), num_nodes)


@_descriptor_op.register_fake
def _(edge_index, edge_weight, num_nodes):  # type: ignore[no-untyped-def]
    return edge_index.new_empty(num_nodes, NUM_DESCRIPTORS, dtype=torch.float64)


def _descriptor(hood: Neighborhood) -> Tensor:
    if isinstance(hood, GraphPart) and hood.place is not None:
        return hood.place.describe()
    both = hood.relation("undirected")
    log_degree = both.weighted_degree.double().log1p()
    columns = [
        log_degree,
        hood.weighted_degree.double().log1p(),
        hood.weighted_out_degree.double().log1p(),
        plain_aggregate(log_degree.unsqueeze(-1), both, "rw").squeeze(-1),
        clustering_coefficient(hood, hood.num_nodes),
    ]
    return torch.stack(columns, dim=-1)


def column_statistics(values: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column, ``[N, F] -> [F]`` twice."""
    mean = values.mean(0)
    return mean, (values - mean).square().mean(0).sqrt()


def standardized(values: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Columns minus a given mean, divided by a given deviation, ``[N, F]``; 0 for a constant one.

    Example:
        >>> values = torch.tensor([[3.0, 7.0], [5.0, 8.0]])
        >>> standardized(values, torch.tensor([4.0, 7.0]), torch.tensor([0.5, 0.0])).tolist()
        [[-2.0, 0.0], [2.0, 0.0]]
    """
    centred = values - mean
    return torch.where(deviation > MIN_DEVIATION, centred / deviation.clamp_min(MIN_DEVIATION), 0.0)


def clustering_coefficient(edge_index: Edges, num_nodes: int) -> Tensor:
    """Share of pairs of a node's neighbours that have an edge, ``[N]`` in float64.

    Zero for nodes with fewer than two neighbours. Directions, duplicates and weights do not matter.

    Example:
        >>> square = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])  # with one diagonal
        >>> clustering_coefficient(square, 4).round(decimals=3).tolist()
        [0.667, 1.0, 0.667, 1.0]
    """
    both = neighborhood(edge_index, num_nodes).relation("undirected")
    degree = both.degree.double()
    possible = degree * (degree - 1) / 2
    return torch.where(possible > 0, triangles(both) / possible.clamp_min(1), 0.0)


def triangles(hood: Neighborhood) -> Tensor:
    """Number of triangles at each node of an undirected graph without duplicates, ``[N]``."""
    count = torch.zeros(hood.num_nodes, dtype=torch.float64, device=hood.source.device)
    for _, third in _triangles_by_pair(hood):
        # Every triangle is found from each of its three edges, and counted at the third corner.
        count += torch.bincount(third, minlength=hood.num_nodes)
    return count


def triangles_of_rows(start: Tensor, other: Tensor) -> Tensor:
    """As :func:`triangles`, on a CPU, in memory that grows with the edges only, ``[N]``.

    Args:
        start: Place of the first neighbour of each node, and the number of all, ``[N + 1]``.
        other: The neighbours of each node, each once, without the node itself, ``[E]``.
    """
    return torch.from_numpy(count_triangles(start.numpy(), other.numpy()))


def shared_neighbors(hood: Neighborhood) -> Tensor:
    """Number of common neighbours of each pair in :attr:`Neighborhood.pairs`, ``[P]``.

    For an undirected graph without duplicates.
    """
    count = torch.zeros(hood.num_pairs, dtype=torch.int64, device=hood.source.device)
    for pair, _ in _triangles_by_pair(hood):
        count += torch.bincount(pair, minlength=hood.num_pairs)
    return count


def _triangles_by_pair(hood: Neighborhood) -> Iterator[tuple[Tensor, Tensor]]:
    """Numbers of pairs and the third corners of their triangles, in several parts.

    For every edge, takes the neighbours of the end that has fewer, and looks up which of them have
    an edge to the other end. The work is bounded by edges times arboricity.
    """
    n = hood.num_nodes
    known = torch.sort(hood.source * n + hood.target).values
    neighbors = known % max(n, 1)
    start = row_starts(hood.target, n)
    size = start.diff()  # in a part of a graph, the degree may count edges that are not here
    low, high = hood.pairs
    swap = size[low] > size[high]
    small, large = torch.where(swap, high, low), torch.where(swap, low, high)
    work = size[small].cumsum(0)
    begin = 0
    while begin < small.numel():
        spent = work[begin - 1] if begin else work.new_zeros(())
        end = int(torch.searchsorted(work, spent + _WALKS_PER_CHUNK, right=True))
        end = max(end, begin + 1)
        a, b = small[begin:end], large[begin:end]
        width = size[a]
        edge = torch.repeat_interleave(width)
        offset = torch.arange(edge.numel(), device=a.device) - (width.cumsum(0) - width)[edge]
        third = neighbors[start[a[edge]] + offset]
        wanted = b[edge] * n + third
        place = torch.searchsorted(known, wanted).clamp_max(known.numel() - 1)
        joined = known[place] == wanted
        yield begin + edge[joined], third[joined]
        begin = end
