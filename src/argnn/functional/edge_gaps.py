"""Distances between the two ends of edges."""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from argnn.functional.analytic import squared_length
from argnn.functional.edge_values import OrderedEdges, at_sources, at_targets
from argnn.functional.neighborhood import csr_tensor


def edge_gaps(x: Tensor, edges: OrderedEdges) -> Tensor:
    r"""Squared Euclidean distance of both ends of each edge, ``[N, H, D] -> [E, H]``.

    .. math::
        \|\mathbf{x}_i - \mathbf{x}_j\|^2 = \|\mathbf{x}_i\|^2 + \|\mathbf{x}_j\|^2
        - 2\langle\mathbf{x}_i, \mathbf{x}_j\rangle

    On a CPU the right-hand side is evaluated by sparse products, without a tensor of size
    ``E x D``, and in float64, so that the difference of close points keeps all digits of float32.
    The distance of a node to itself is exactly zero, with a gradient of zero.

    Example:
        >>> from argnn.functional.edge_values import ordered_edges
        >>> edges = ordered_edges(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> edge_gaps(torch.tensor([[[0.0, 0.0]], [[3.0, 4.0]]]), edges).squeeze(-1).tolist()
        [25.0, 25.0]
    """
    if x.device.type != "cpu":
        return squared_length(at_targets(x, edges) - at_sources(x, edges)).squeeze(-1)
    return _EdgeGaps.apply(x, edges)


class _EdgeGaps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, edges):  # type: ignore[no-untyped-def]
        ctx.edges = edges
        ctx.save_for_backward(x)
        size = (edges.num_nodes, edges.num_nodes)
        pattern = csr_tensor(
            edges.start, edges.source, x.new_zeros(edges.num_edges, dtype=torch.float64), size
        )
        wide = x.double()
        square = (wide * wide).sum(-1)
        gaps = x.new_empty(edges.num_edges, x.size(1))
        for head, points in enumerate(wide.unbind(1)):
            points = points.contiguous()
            product = torch.sparse.sampled_addmm(pattern, points, points.t(), beta=0).values()
            ends = square[edges.target, head] + square[edges.source, head]
            gaps[:, head] = ends.sub_(product, alpha=2).clamp_min_(0)
        # Rounding may leave small values at self-loops.
        return gaps.masked_fill_((edges.source == edges.target).unsqueeze(-1), 0)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (x,) = ctx.saved_tensors
        edges = ctx.edges
        size = (edges.num_nodes, edges.num_nodes)
        out = torch.empty_like(x)
        one = x.new_ones(x.size(0), 1, dtype=torch.float64)
        for head, weight in enumerate(grad.unbind(1)):
            points = torch.cat([x[:, head].double(), one], dim=-1)
            weight = weight.double()
            back = weight[edges.by_source]
            sums = csr_tensor(edges.start, edges.source, weight, size) @ points
            sums += csr_tensor(edges.start_by_source, edges.target_by_source, back, size) @ points
            out[:, head] = 2 * (sums[:, -1:] * points[:, :-1] - sums[:, :-1])
        return out, None
