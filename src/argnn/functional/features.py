"""The first linear map of a network, fast where the input features are mostly zeros.

Bag-of-words features are 90 to 99 % zeros. Dropout of a zero changes nothing, so that dropout and
the product need only the other entries, which makes the first layer of a citation graph cheap on a
CPU. On a GPU the dense product is fast enough and has the same bits in every run, unlike CUDA's
sparse product.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.functional.dropout import dropout as drop
from argnn.functional.neighborhood import csr_tensor, row_starts
from argnn.kernels.contents import ContentCache

#: Share of non-zero entries up to which the sparse product is faster.
MAX_DENSITY = 0.15
# With fewer entries the dense product is faster.
_MIN_ENTRIES = 100_000


@dataclass(frozen=True)
class SparseFeatures:
    """Constant features in CSR form, and the order of their values in the transpose."""

    crow: Tensor
    column: Tensor
    value: Tensor
    transposed_crow: Tensor
    transposed_column: Tensor
    transposed_order: Tensor
    size: tuple[int, int]

    @staticmethod
    def of(x: Tensor) -> "SparseFeatures":
        """The non-zero entries of a matrix."""
        row, column = x.nonzero(as_tuple=True)
        order = torch.argsort(column, stable=True)
        return SparseFeatures(
            crow=row_starts(row, x.size(0)),
            column=column,
            value=x[row, column],
            transposed_crow=row_starts(column, x.size(1)),
            transposed_column=row[order],
            transposed_order=order,
            size=(x.size(0), x.size(1)),
        )

    def matrix(self, value: Tensor) -> Tensor:
        """The matrix with these values in place of the stored ones."""
        return csr_tensor(self.crow, self.column, value, self.size)

    def transpose(self, value: Tensor) -> Tensor:
        """Its transpose."""
        return csr_tensor(
            self.transposed_crow,
            self.transposed_column,
            value[self.transposed_order],
            (self.size[1], self.size[0]),
        )


_CACHE: ContentCache[SparseFeatures | None] = ContentCache()


def sparse_features(x: Tensor) -> SparseFeatures | None:
    """The sparse form of constant features; None where a dense product is faster.

    Prepared once, and again if ``x`` has changed; see :mod:`argnn.kernels.contents`.
    """
    if x.requires_grad or x.numel() < _MIN_ENTRIES or x.dim() != 2:
        return None
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
        return None
    return _CACHE.of(x, lambda: _sparse_form(x))


def _sparse_form(x: Tensor) -> SparseFeatures | None:
    dense = int(torch.count_nonzero(x)) > MAX_DENSITY * x.numel()
    return None if dense else SparseFeatures.of(x)


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, features, value):  # type: ignore[no-untyped-def]
        ctx.features, ctx.value = features, value
        with torch.autocast(weight.device.type, enabled=False):  # no sparse bfloat16 product
            return features.matrix(value) @ weight.t()

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        grad_weight = ctx.features.transpose(ctx.value) @ grad.contiguous()
        return grad_weight.t(), None, None


def input_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, dropout: float = 0.0, training: bool = False
) -> Tensor:
    """Linear map of features with dropout before it, ``[N, F] -> [N, D]``."""
    # A compiler cannot trace the search for zeros.
    features = None if torch.compiler.is_compiling() else sparse_features(x)
    if features is None:
        return F.linear(drop(x, dropout, training), weight, bias)
    value = drop(features.value, dropout, training)
    out: Tensor = _SparseLinear.apply(weight, features, value)
    return out if bias is None else out + bias
