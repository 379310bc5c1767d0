"""Random pairs of nodes that are not edges."""

import torch
from torch import Tensor


class NegativeSampler:
    """Draws random pairs of different nodes, all with the same probability, and marks edges.

    Nothing waits for the device: a pair that happens to be an edge is marked instead of drawn
    again. Several candidates are drawn for each pair, so that marks are rare except in dense
    graphs.

    Args:
        edges: The pairs to avoid, each once, ``[2, P]``.
        num_nodes: Number of nodes, at least 2.
    """

    #: Candidates drawn for each pair.
    CANDIDATES = 2

    def __init__(self, edges: Tensor, num_nodes: int) -> None:
        self.num_nodes = num_nodes
        self.edge_keys = self._keys(edges).unique()

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Pairs ``[2, count]``, and for each whether it is not an edge, ``[count]``."""
        device, nodes = self.edge_keys.device, self.num_nodes
        a = torch.randint(nodes, (self.CANDIDATES * count,), device=device)
        b = torch.randint(nodes - 1, (self.CANDIDATES * count,), device=device)
        pairs = torch.stack([a, b + (b >= a)])  # every ordered pair of different nodes once
        is_edge = self.is_edge(pairs)
        # Non-edges come first, otherwise in the order of drawing.
        chosen = is_edge.to(torch.uint8).argsort(stable=True)[:count]
        return pairs[:, chosen], ~is_edge[chosen]

    def _keys(self, pairs: Tensor) -> Tensor:
        low, high = pairs.amin(dim=0), pairs.amax(dim=0)
        return low * self.num_nodes + high

    def is_edge(self, pairs: Tensor) -> Tensor:
        """Which pairs ``[2, P]`` are edges, ``[P]``."""
        keys = self._keys(pairs)
        place = torch.searchsorted(self.edge_keys, keys).clamp_max(self.edge_keys.numel() - 1)
        return torch.eq(self.edge_keys[place], keys)
