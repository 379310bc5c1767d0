"""The weights of the messages between neighbours in each layer."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from argnn import functional as AF
from argnn.analysis.layers import Layer, learned_layers, observed
from argnn.functional.neighborhood import Edges, edges_of, neighborhood
from argnn.nn import ARGNN, AbstractNodeModel

# Edges at a time, so that temporary tensors stay small on large graphs.
_EDGES_PER_CHUNK = 2**15
_NEGLIGIBLE = 1e-30


@dataclass(frozen=True)
class Messages:
    r"""The factors of the message along each ordered pair of neighbours, ``[P]`` each.

    Attributes:
        tau: Modulation along the edge, see :func:`argnn.functional.edge_modulation`.
        attention: :math:`\sigma(\alpha_{ij})`; None where the layer does not use it.
        weight: The final factor. In the scalar form it is the constant weight times tau times
            attention; in the operator form the constant weight times the length of the message
            after the modulation over its length before. Zero where no message is sent.
    """

    tau: Tensor
    attention: Tensor | None
    weight: Tensor


def ordered_pairs(edge_index: Edges, num_nodes: int) -> Tensor:
    """Every pair of neighbours in both directions, sorted by target, ``[2, P]``.

    Example:
        >>> ordered_pairs(torch.tensor([[2, 0], [1, 1]]), 3).tolist()
        [[1, 0, 2, 1], [0, 1, 1, 2]]
    """
    pairs = neighborhood(edge_index, num_nodes).pairs
    both: Tensor = to_undirected(pairs, num_nodes=num_nodes)
    return both.flip(0)


@torch.no_grad()
def layer_messages(
    model: AbstractNodeModel, graph: Data, pairs: Tensor | None = None
) -> list[Messages]:
    """The messages of every layer along :func:`ordered_pairs`; none for a model without metric.

    Only the first hop is used, also where a layer has several. All is on the CPU. Where only some
    of the ordered pairs are wanted, ``pairs`` are these, in the same order.
    """
    if not isinstance(model, ARGNN):
        return []
    if pairs is None:
        pairs = ordered_pairs(edges_of(graph), graph.num_nodes)
    entered = observed(model, graph)[0]
    parts = zip(model.convs, entered, learned_layers(model, graph), strict=True)
    return [_messages(conv, x, layer, pairs, graph) for conv, x, layer in parts]


def _messages(conv: Any, x: Tensor, layer: Layer, pairs: Tensor, graph: Data) -> Messages:
    h, g, norm = layer.h, layer.g, conv.neighbor_norm
    tau = _in_chunks(lambda e: AF.edge_modulation(h, g, e, conv.eps0), pairs)
    attention = None
    if conv.message_form.on_edges and conv.attention:
        raw = _in_chunks(lambda e: AF.edge_attention(h, g, e, neighbor_norm=norm), pairs)
        attention = raw.sigmoid()
    weight = torch.zeros_like(tau)
    for number, direction in enumerate(conv.directions()):
        constant = _constant_weights(graph, pairs, direction, conv.normalization)
        if conv.message_form.on_edges:
            weight += constant * tau * (1 if attention is None else attention)
        else:
            mapped = conv.sent(number * conv.hops, x, None)
            sent = conv.sent(number * conv.hops, x, conv.sending(x, edges_of(graph)))
            gain = functools.partial(_gains, mapped, sent, g, conv.eps0)
            weight += constant * _in_chunks(gain, pairs, g[0].numel() // g.size(-1))
    return Messages(tau, attention, weight)


def message_gain(mapped: Tensor, sent: Tensor, g: Tensor, eps0: float) -> Tensor:
    """Length of messages after all operators over that before, ``[K, D] -> [K]``; 0 / 0 is 0.

    ``mapped`` are messages, and ``sent`` the same after the sending metric, if there is one.

    ``g`` are the metrics of the nodes that receive them; see
    :func:`argnn.functional.modulate`.
    """
    before = mapped.norm(dim=-1)
    after = AF.modulate(sent, g, eps0).norm(dim=-1)
    return torch.where(before > 0, after / before.clamp_min(_NEGLIGIBLE), 0.0)


def _gains(mapped: Tensor, sent: Tensor, g: Tensor, eps0: float, edges: Tensor) -> Tensor:
    return message_gain(mapped[edges[0]], sent[edges[0]], g[edges[1]], eps0)


def _constant_weights(graph: Data, pairs: Tensor, direction: str, normalization: str) -> Tensor:
    """Constant weight of each ordered pair in one relation, 0 where the pair is not in it."""
    hood = neighborhood(edges_of(graph), graph.num_nodes).relation(direction)
    found = hood.edge_weight(normalization, torch.float32)
    weight = torch.zeros(pairs.size(1))
    if not pairs.numel():
        return weight
    key = pairs[1] * graph.num_nodes + pairs[0]
    wanted = hood.target * graph.num_nodes + hood.source
    place = torch.searchsorted(key, wanted).clamp_max(key.numel() - 1)
    known = key[place] == wanted  # a self-loop is no pair
    return weight.index_add_(0, place[known], found[known])


def _in_chunks(function: Callable[[Tensor], Tensor], pairs: Tensor, rows: int = 1) -> Tensor:
    """Results for all pairs; each needs so many rows of channels."""
    size = max(_EDGES_PER_CHUNK // rows, 1)
    parts = [function(part).float() for part in pairs.split(size, dim=1)]
    return torch.cat(parts) if parts else torch.zeros(0)
