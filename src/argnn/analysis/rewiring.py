r"""Rewire a graph along learned distances without changing the degree of any node.

Two edges :math:`\{a, b\}` and :math:`\{c, d\}` become :math:`\{a, d\}` and :math:`\{c, b\}` where
that makes their total length smaller. The length of an edge is its geodesic distance under the
mean of both ends' metrics,

.. math::
    d(i, j) = \sqrt{\textstyle\sum_k \frac{1}{2}(g_{ik} + g_{jk})\,(h_{ik} - h_{jk})^2},

which, unlike the distance under one of the two, is the same in both directions.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argnn import functional as AF
from argnn.functional.neighborhood import neighborhood

_Integers = NDArray[np.int64]
_Floats = NDArray[np.float64]
_Booleans = NDArray[np.bool_]

# Numbers in a tensor of pairs x channels: few enough to stay in cache, which halves the time.
_NUMBERS_PER_CHUNK = 2**17


@dataclass(frozen=True)
class Rewiring:
    """A rewired graph, and statistics of the rewiring.

    Attributes:
        edge_index: The new edges, each pair in both directions, ``[2, 2P]``.
        length_before: Total geodesic length of the edges before.
        length_after: The same after.
        homophily_before: Edge homophily before; NaN without labels.
        homophily_after: The same after.
        rounds: How often the edges were paired anew.
        tried: Number of swaps that were looked at.
        accepted: Number of swaps that were made.
        settled: Whether it stopped because hardly any swap was accepted, and not because of
            ``max_rounds``.
    """

    edge_index: Tensor
    length_before: float
    length_after: float
    homophily_before: float
    homophily_after: float
    rounds: int
    tried: int
    accepted: int
    settled: bool


@torch.no_grad()
def rewire(
    h: Tensor,
    g: Tensor,
    edge_index: Tensor,
    *,
    y: Tensor | None = None,
    seed: int = 0,
    max_rounds: int = 100,
    tolerance: float = 1e-3,
    patience: int = 10,
) -> Rewiring:
    """Shorten the edges of a graph by swapping the ends of two at a time.

    The graph is taken as undirected and simple, and stays so: no self-loop and no duplicate edge
    appears, and every node keeps its number of neighbours. Every round joins the edges to random
    couples and tries one swap for each.

    Args:
        h: Points, ``[N, D]``; see :class:`~argnn.analysis.Layer`.
        g: Metrics, ``[N, D]`` or factored, ``[N, 1 + R, D]``.
        edge_index: Source and target of each edge, ``[2, E]``.
        y: Label of each node, ``[N]``, to report homophily; swaps do not depend on it. The
            points of a trained model depend on its training labels: replace these by -1 to see
            the homophily of other nodes.
        seed: Fixes the couples and the ends that are swapped.
        max_rounds: Most rounds.
        tolerance: Stop once no more than this share of the tried swaps is accepted.
        patience: The number of rounds for that share. On a small graph a single round of random
            couples may miss all swaps that help.
    """
    if max_rounds < 0:
        raise ValueError(f"max_rounds must not be negative (got {max_rounds})")
    if not 0 <= tolerance < 1:
        raise ValueError(f"tolerance must be in [0, 1) (got {tolerance})")
    if patience < 1:
        raise ValueError(f"patience must be positive (got {patience})")
    work = _Edges(h, g, edge_index)
    length_before = float(work.length.sum())
    rng = np.random.default_rng(seed)
    per_round = work.first.size // 2
    made: list[int] = []
    settled = per_round == 0  # one edge has none to swap with
    while not settled and len(made) < max_rounds:
        made.append(work.swap(rng))
        recent = sum(made[-patience:])
        settled = len(made) >= patience and recent <= tolerance * patience * per_round
    after = work.edge_index()
    return Rewiring(
        edge_index=after.to(edge_index.device),
        length_before=length_before,
        length_after=float(work.length.sum()),
        homophily_before=_homophily(edge_index, y),
        homophily_after=_homophily(after, y),
        rounds=len(made),
        tried=len(made) * per_round,
        accepted=sum(made),
        settled=settled,
    )


def pair_lengths(h: Tensor, g: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Geodesic distance of pairs of nodes under the mean of both metrics, ``[P]``."""
    rows = max(_NUMBERS_PER_CHUNK // max(g.shape[1:].numel(), 1), 1)
    parts = zip(first.split(rows), second.split(rows), strict=True)
    return torch.cat([AF.metric_distance(h[a], h[b], AF.mean_metric(g[a], g[b])) for a, b in parts])


class _Edges:
    """The current edges with their lengths."""

    def __init__(self, h: Tensor, g: Tensor, edge_index: Tensor) -> None:
        self.h, self.g = h.cpu().double(), g.cpu().double()
        self.num_nodes = h.size(0)
        pairs: _Integers = neighborhood(edge_index, h.size(0)).pairs.cpu().numpy()
        self.first, self.second = pairs[0].copy(), pairs[1].copy()
        self.length = self._lengths(self.first, self.second)

    def edge_index(self) -> Tensor:
        """Every pair in both directions, sorted."""
        key = np.sort(self._key(self.first, self.second))
        pairs = torch.from_numpy(np.stack([key // self.num_nodes, key % self.num_nodes]))
        return torch.cat([pairs, pairs.flip(0)], dim=1)

    def swap(self, rng: np.random.Generator) -> int:
        """Form random couples of edges, swap their ends where it helps, and count the swaps.

        All swaps of a round are made at once. They do not affect each other: each edge is in one
        couple only, and a new edge must neither exist before the round nor be made by another
        couple in it.
        """
        couple, keep, move = self._couples(rng)
        possible = self._is_new(keep, move)
        couple, keep, move = couple[:, possible], keep[:, possible], move[:, possible]
        length = self._lengths(keep, move)
        better = np.flatnonzero(length.sum(0) < self.length[couple].sum(0))
        made = better[self._is_alone(keep[:, better], move[:, better])]
        edge = couple[:, made]
        self.first[edge], self.second[edge] = keep[:, made], move[:, made]
        self.length[edge] = length[:, made]
        return int(made.size)

    def _couples(self, rng: np.random.Generator) -> tuple[_Integers, _Integers, _Integers]:
        """Couples of edges, and both ends of the edges to replace them, ``[2, P // 2]`` each."""
        count = self.first.size
        couple = rng.permutation(count)[: count // 2 * 2].reshape(2, -1)
        first, second = self.first[couple], self.second[couple]
        # An edge has no direction, so that there are two ways to swap.
        turned = rng.random(couple.shape[1]) < 0.5
        keep = np.stack([first[0], np.where(turned, second[1], first[1])])
        move = np.stack([np.where(turned, first[1], second[1]), second[0]])
        return couple, keep, move

    def _is_new(self, keep: _Integers, move: _Integers) -> _Booleans:
        """Whether both edges of a swap are neither self-loops nor edges of the graph."""
        known = np.sort(self._key(self.first, self.second))
        key = self._key(keep, move)
        place = np.minimum(np.searchsorted(known, key), known.size - 1)
        is_new: _Booleans = np.logical_and.reduce((keep != move) & (known[place] != key))
        return is_new

    def _is_alone(self, keep: _Integers, move: _Integers) -> _Booleans:
        """Whether no earlier swap makes one of the two edges of a swap."""
        key = self._key(keep, move)
        is_earliest = np.zeros(key.size, dtype=np.bool_)
        is_earliest[np.unique(key, return_index=True)[1]] = True
        is_alone: _Booleans = np.logical_and.reduce(is_earliest.reshape(key.shape))
        return is_alone

    def _key(self, first: _Integers, second: _Integers) -> _Integers:
        """One number for an unordered pair."""
        return np.minimum(first, second) * self.num_nodes + np.maximum(first, second)

    def _lengths(self, first: _Integers, second: _Integers) -> _Floats:
        a, b = torch.from_numpy(first).flatten(), torch.from_numpy(second).flatten()
        length: _Floats = pair_lengths(self.h, self.g, a, b).numpy().reshape(first.shape)
        return length


def _homophily(edge_index: Tensor, y: Tensor | None) -> float:
    return float("nan") if y is None else AF.edge_homophily(edge_index.cpu(), y.cpu())
