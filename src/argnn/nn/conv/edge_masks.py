"""Edge masks of ``torch_geometric.explain``, for convolutions that do not use ``propagate``."""

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from argnn.functional.neighborhood import Neighborhood


def message_mask(conv: MessagePassing, hood: Neighborhood, direction: str) -> Tensor:
    """Factor on the message of every edge of a relation, ``[E']``.

    The factor of a message is the mask of the edge that it travels along. If only the opposite edge
    is listed, as for ``"out"`` or for a directed graph taken as undirected, it is the mask of that
    edge. For merged duplicates it is the mean of their masks.
    """
    mask: Tensor | None = conv._edge_mask
    if mask is None:
        raise ValueError("the convolution is to be explained, but has no edge mask")
    if mask.numel() != hood.is_neighbor.numel():
        raise ValueError(
            f"the edge mask has {mask.numel()} entries, but the graph "
            f"{hood.is_neighbor.numel()} edges"
        )
    own = (mask.sigmoid() if conv._apply_sigmoid else mask)[hood.is_neighbor]
    relation = hood.relation(direction)
    if relation is hood or direction == "out":  # reversed, in the same order
        return own
    return _looked_up(own, hood, relation)


def _looked_up(own: Tensor, hood: Neighborhood, relation: Neighborhood) -> Tensor:
    wanted = relation.source * hood.num_nodes + relation.target
    opposite = relation.target * hood.num_nodes + relation.source
    listed = hood.source * hood.num_nodes + hood.target
    known, place = torch.unique(listed, return_inverse=True)
    total = own.new_zeros(known.numel()).index_add(0, place, own)
    mean = total / torch.bincount(place, minlength=known.numel())
    last = max(known.numel() - 1, 0)
    at = torch.searchsorted(known, wanted).clamp_max(last)
    turned = torch.searchsorted(known, opposite).clamp_max(last)
    return mean[torch.where(known[at] == wanted, at, turned)]
