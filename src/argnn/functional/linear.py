"""The sum of several linear maps, without a tensor for each of them."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.functional.precision import in_autocast_dtype


def joint_linear(
    parts: Sequence[Tensor], weights: Sequence[Tensor], bias: Tensor | None = None
) -> Tensor:
    r"""Sum of linear maps of several inputs, ``[N, D]``.

    .. math:: \mathbf{y}_i = \mathbf{b} + \sum_p \mathbf{W}_p\,\mathbf{x}^p_i

    It equals the linear map of the concatenated inputs, but nothing is concatenated: each product
    is added to the sum in place.

    Args:
        parts: Inputs :math:`\mathbf{x}^p`, ``[N, F_p]`` each.
        weights: :math:`\mathbf{W}_p`, ``[D, F_p]`` each.
        bias: ``[D]`` or none.

    Example:
        >>> x, y = torch.tensor([[1.0]]), torch.tensor([[2.0]])
        >>> joint_linear([x, y], [torch.tensor([[3.0]]), torch.tensor([[4.0]])]).item()
        11.0
    """
    parts, weights = ([in_autocast_dtype(t) for t in tensors] for tensors in (parts, weights))
    bias = None if bias is None else in_autocast_dtype(bias)
    if len(parts) == 1 or torch.compiler.is_compiling():
        out = F.linear(parts[0], weights[0], bias)
        for part, weight in zip(parts[1:], weights[1:], strict=True):
            out = out + F.linear(part, weight)
        return out
    return _JointLinear.apply(bias, len(parts), *parts, *weights)


class _JointLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, bias, count, *tensors):  # type: ignore[no-untyped-def]
        parts, weights = tensors[:count], tensors[count:]
        ctx.count = count
        ctx.save_for_backward(*tensors)
        with torch.autocast(parts[0].device.type, enabled=False):
            out = F.linear(parts[0], weights[0], bias)
            for part, weight in zip(parts[1:], weights[1:], strict=True):
                out.addmm_(part, weight.t())
        return out

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        count = ctx.count
        parts, weights = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        needed = ctx.needs_input_grad[2:]
        to_parts = [grad @ w if n else None for w, n in zip(weights, needed, strict=False)]
        to_weights = [
            grad.t() @ p if n else None for p, n in zip(parts, needed[count:], strict=True)
        ]
        to_bias = grad.sum(0) if ctx.needs_input_grad[0] else None
        return to_bias, None, *to_parts, *to_weights
