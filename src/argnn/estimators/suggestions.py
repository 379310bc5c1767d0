"""The best new links of a graph, among all pairs of its nodes, in little memory."""

import math

import torch
from torch import Tensor

from argnn.nn import LinkModel

#: Pairs that are scored at a time: by a product of matrices, and pair by pair.
_PRODUCTS, _PAIRS = 2**24, 2**17


@torch.no_grad()
def best_new_pairs(
    model: LinkModel, embedding: Tensor, edges: Tensor, k: int, node: int | None = None
) -> Tensor:
    """Pairs that are no edges, ``[2, K]``, those with the largest logit first.

    Of pairs with equal logits, any may be among the best.

    Args:
        model: The model.
        embedding: Its outputs on the graph, ``[N, D]``.
        edges: Pairs that are not new, ``[2, E]``; their order does not matter.
        k: Most pairs.
        node: Only pairs with this node, which then comes first; all where not given.
    """
    device = next(model.eval().parameters()).device
    embedding = embedding.to(device)
    edges = torch.cat([edges, edges.flip(0)], dim=1).to(device)
    nodes = embedding.size(0)
    everybody = torch.arange(nodes, device=device)
    rows = range(nodes) if node is None else range(node, node + 1)
    by_product = model.product_scores(embedding[:1], embedding[:1]) is not None
    step = max(1, (_PRODUCTS if by_product else _PAIRS) // nodes)
    # Products of matrices round differently: some more pairs are kept, and sorted by exact scores.
    wanted = 2 * k + 64
    best, found = embedding.new_empty(0), edges.new_empty(2, 0)
    for start in rows[::step]:
        block = everybody[start : min(start + step, rows.stop)]
        scores = _block_scores(model, embedding, block)
        source, target = edges[:, (edges[0] >= start) & (edges[0] <= block[-1])]
        scores[source - start, target] = -math.inf
        once = everybody > block.unsqueeze(1) if node is None else everybody != node
        scores = scores.masked_fill(~once, -math.inf)
        values, places = scores.flatten().topk(min(wanted, scores.numel()))
        pairs = torch.stack([block[places // nodes], places % nodes])
        best, kept = torch.cat([best, values]).topk(min(wanted, len(best) + len(values)))
        found = torch.cat([found, pairs], dim=1)[:, kept]
    found = found[:, best > -math.inf]
    exact = (-model.pair_scores(embedding, found)).tolist()
    ends = found.t().tolist()
    order = sorted(range(len(exact)), key=lambda place: (exact[place], ends[place]))
    return found[:, order[:k]].cpu()


def _block_scores(model: LinkModel, embedding: Tensor, block: Tensor) -> Tensor:
    """Logits of some nodes with all nodes, ``[B, N]``."""
    found = model.product_scores(embedding[block], embedding)
    if found is None:
        nodes = embedding.size(0)
        others = torch.arange(nodes, device=block.device).repeat(len(block))
        pairs = torch.stack([block.repeat_interleave(nodes), others])
        parts = [model.pair_scores(embedding, part) for part in pairs.split(_PAIRS, dim=1)]
        found = torch.cat(parts).view(len(block), nodes)
    return found
