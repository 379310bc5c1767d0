r"""Metrics that are not diagonal, in factored form: :math:`\mathbf{G} = \mathrm{diag}(\mathbf{g}) + \mathbf{U}\mathbf{U}^\top`.

A tensor ``[..., 1 + R, D]`` holds a metric: its first row is :math:`\mathbf{g} \ge 0`, the other
:math:`R` rows are the columns of :math:`\mathbf{U}`. A field of metrics therefore has two
dimensions if it is diagonal, ``[N, D]``, and three if it is factored, ``[N, 1 + R, D]``. Layers never
build a :math:`D \times D` matrix. The Ricci energy and eigenvalues need the matrices, some rows or
nodes at a time: at most about :data:`PIECE` numbers.
"""  # noqa: E501

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from argnn.functional.metric import geodesic_distance
from argnn.functional.precision import accumulation_dtype, safe_sqrt

#: Most numbers of a temporary tensor. More work is done piece by piece, and again for gradients.
PIECE = 2**24


def is_factored(g: Tensor) -> bool:
    """Whether a field of metrics is factored, ``[N, 1 + R, D]``, and not diagonal, ``[N, D]``."""
    return g.dim() == 3


def factored_metric(diagonal: Tensor, factor: Tensor) -> Tensor:
    r"""The field :math:`\mathrm{diag}(\mathbf{g}_i) + \mathbf{U}_i\mathbf{U}_i^\top`.

    Args:
        diagonal: :math:`\mathbf{g}_i`, ``[N, D]``.
        factor: The columns of :math:`\mathbf{U}_i`, ``[N, R, D]``.
    """
    return torch.cat([diagonal.unsqueeze(1), factor], dim=1)


def metric_diagonal(g: Tensor) -> Tensor:
    r"""The entries :math:`G_{kk}` of each metric, ``[N, D]``: the squared length of each axis.

    Example:
        >>> metric_diagonal(torch.tensor([[[1.0, 1.0], [2.0, 0.0]]])).tolist()
        [[5.0, 1.0]]
    """
    return g[:, 0] + g[:, 1:].square().sum(1) if is_factored(g) else g


def metric_eigenvalues(g: Tensor) -> Tensor:
    """Eigenvalues of each metric, ``[N, D]``: a diagonal itself, those of others in rising order.

    Builds the matrices of some nodes at a time.
    """
    if not is_factored(g):
        return g
    size = max(PIECE // g.size(-1) ** 2, 1)
    found = [torch.linalg.eigvalsh(matrix_rows(part, 0, g.size(-1))) for part in g.split(size)]
    return torch.cat(found)


def matrix_rows(g: Tensor, begin: int, end: int) -> Tensor:
    """Some rows of the matrix of each metric of a factored field, ``[N, end - begin, D]``."""
    diagonal, factor = g[:, 0], g[:, 1:]
    own = torch.diag_embed(diagonal[:, begin:end])
    with torch.autocast(g.device.type, enabled=False):
        product = factor[:, :, begin:end].transpose(1, 2) @ factor
    return product + F.pad(own, (begin, g.size(-1) - end))


def times(g: Tensor, v: Tensor) -> Tensor:
    r""":math:`\mathbf{G}\mathbf{v}` for factored metrics, ``[..., 1 + R, D]`` and ``[..., D]``."""
    diagonal, factor = g[..., 0, :], g[..., 1:, :]
    along = (factor * v.unsqueeze(-2)).sum(-1, keepdim=True)
    return diagonal * v + (factor * along).sum(-2)


def metric_distance(x: Tensor, y: Tensor, g: Tensor) -> Tensor:
    r"""Distance of two points under a locally constant metric (:eq:`geodesic_factored`).

    .. math:: d_{\mathbf{G}}(\mathbf{x}, \mathbf{y}) =
        \sqrt{(\mathbf{x} - \mathbf{y})^\top \mathbf{G}\,(\mathbf{x} - \mathbf{y})}

    Args:
        x: Points, ``[..., D]``.
        y: Points, ``[..., D]``.
        g: Metrics with as many leading dimensions, ``[..., D]`` or ``[..., 1 + R, D]``.

    Example:
        >>> x, y = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])
        >>> metric_distance(x, y, torch.tensor([[[1.0, 1.0], [0.0, 3.0], [4.0, 3.0]]])).item()
        4.123105525970459
    """
    if g.dim() == x.dim():
        return geodesic_distance(x, y, g)
    dtype = accumulation_dtype(x.dtype)
    difference, g_ = x.to(dtype) - y.to(dtype), g.to(dtype)
    along = (g_[..., 1:, :] * difference.unsqueeze(-2)).sum(-1)
    square = (g_[..., 0, :] * difference.square()).sum(-1) + along.square().sum(-1)
    return safe_sqrt(square).to(x.dtype)


def mean_metric(a: Tensor, b: Tensor) -> Tensor:
    """Mean of the metrics of two fields, row by row; a factored one then has twice the rank.

    Example:
        >>> mean_metric(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 2.0]])).tolist()
        [[2.0, 2.0]]
    """
    if not is_factored(a):
        return (a + b) / 2
    both = torch.cat([a[:, 1:], b[:, 1:]], dim=1)
    return factored_metric((a[:, 0] + b[:, 0]) / 2, both * 0.5**0.5)


def scaled_metric(g: Tensor, factor: float) -> Tensor:
    """A field times a positive number, ``[N, D]`` or factored.

    Example:
        >>> scaled_metric(torch.tensor([[[1.0, 1.0], [2.0, 0.0]]]), 4.0).tolist()
        [[[4.0, 4.0], [4.0, 0.0]]]
    """
    if not is_factored(g):
        return factor * g
    return factored_metric(factor * g[:, 0], factor**0.5 * g[:, 1:])


# --- the operator ---------------------------------------------------------------------------------


class Operator(NamedTuple):
    r"""Matrices :math:`\mathrm{diag}(\mathbf{t}) + \mathbf{F}^\top \mathbf{C} \mathbf{F}`.

    Attributes:
        axes: :math:`\mathbf{t}`, ``[N, D]``.
        factor: :math:`\mathbf{F}`, ``[N, K, D]``.
        core: :math:`\mathbf{C}`, ``[N, K, K]``; None is the unit matrix.
    """

    axes: Tensor
    factor: Tensor
    core: Tensor | None


def metric_operator(g: Tensor) -> Operator:
    r"""The modulation of a factored metric as a matrix (:eq:`operator_factored`).

    .. math::
        \mathbf{T} = \tanh(-\log\mathbf{G}) = 2\,(\mathbf{I} + \mathbf{G}^2)^{-1} - \mathbf{I}
        = 2\,\mathrm{Re}\,(\mathbf{I} + i\mathbf{G})^{-1} - \mathbf{I}

    By the Woodbury identity the inverse is that of a complex :math:`R \times R` matrix
    :math:`\mathbf{I} + \mathbf{Q} + i\mathbf{P}` with
    :math:`\mathbf{P} = \mathbf{U}^\top\mathrm{diag}(\frac{1}{1+g^2})\mathbf{U}` and
    :math:`\mathbf{Q} = \mathbf{U}^\top\mathrm{diag}(\frac{g}{1+g^2})\mathbf{U}`. Its real part is
    at least :math:`\mathbf{I}`, so that no inverse is larger than 1.

    It takes :math:`O(D R^2 + R^3)` for each node, and :math:`O(D R)` to apply the result.

    Args:
        g: A factored field, ``[N, 1 + R, D]``.
    """
    g = g.to(accumulation_dtype(g.dtype))
    diagonal, factor = g[:, 0], g[:, 1:]
    p = 1 / (1 + diagonal.square())
    rows_p, rows_q = factor * p.unsqueeze(1), factor * (diagonal * p).unsqueeze(1)
    with torch.autocast(g.device.type, enabled=False):
        imaginary, real = rows_p @ factor.mT, rows_q @ factor.mT
    unit = torch.eye(factor.size(1), dtype=g.dtype, device=g.device)
    # inv_ex does not wait for a GPU. The matrix always has an inverse.
    inverse = torch.linalg.inv_ex(torch.complex(real + unit, imaginary)).inverse
    x, y = 2 * inverse.real, 2 * inverse.imag
    core = torch.cat([torch.cat([y, -x], dim=-1), torch.cat([-x, -y], dim=-1)], dim=-2)
    return Operator(2 * p - 1, torch.cat([rows_p, rows_q], dim=1), core)


def apply_operator(operator: Operator, v: Tensor) -> Tensor:
    """The matrix of each node times the vector of that node, ``[N, D]``."""
    axes, factor, core = operator
    along = (factor * v.unsqueeze(1)).sum(-1)
    if core is not None:
        along = (core * along.unsqueeze(1)).sum(-1)
    return axes * v + (factor * along.unsqueeze(-1)).sum(1)


def quadratic_at(operator: Operator, v: Tensor, node: Tensor) -> Tensor:
    r""":math:`\mathbf{v}_e^\top \mathbf{T}_{n(e)} \mathbf{v}_e` of vectors at nodes, ``[E]``.

    Args:
        operator: The matrices of all nodes.
        v: Vectors, ``[E, D]``.
        node: The node whose matrix acts on each, ``[E]``.
    """
    axes, factor, core = operator

    def values(begin: int, end: int) -> Tensor:
        u, at = v[begin:end], node[begin:end]
        mapped = along = _matrices_at(factor, at) @ u.unsqueeze(-1)
        if core is not None:
            mapped = _matrices_at(core, at) @ along
        return (F.embedding(at, axes) * u.square()).sum(-1) + (along * mapped).sum((-2, -1))

    with torch.autocast(v.device.type, enabled=False):
        pieces = in_pieces(values, v.size(0), max(PIECE // max(factor.shape[1:].numel(), 1), 1))
    return torch.cat(pieces) if pieces else v.new_zeros(0)


def _matrices_at(matrices: Tensor, nodes: Tensor) -> Tensor:
    """The matrix of each node of a list, ``[N, K, D] -> [P, K, D]``."""
    # Not index_select: on a GPU, the order in which its gradient is summed changes.
    return F.embedding(nodes, matrices.flatten(1)).view(-1, *matrices.shape[1:])


# --- Frobenius norms ------------------------------------------------------------------------------


def frobenius_squares(g: Tensor) -> Tensor:
    r""":math:`\|\mathbf{G}_i\|_F^2` of each metric, ``[N]``."""
    if not is_factored(g):
        return g.square().sum(-1)
    diagonal, factor = g[:, 0], g[:, 1:]
    with torch.autocast(g.device.type, enabled=False):
        gram = factor @ factor.mT
    crossed = (diagonal * factor.square().sum(1)).sum(-1)
    return diagonal.square().sum(-1) + 2 * crossed + gram.square().sum((-2, -1))


def frobenius_gaps(g: Tensor, first: Tensor, second: Tensor) -> list[Tensor]:
    r""":math:`\|\mathbf{G}_i - \mathbf{G}_j\|_F^2` of pairs of nodes of a factored field.

    With :math:`\mathbf{S}, \boldsymbol\Delta = \mathbf{U}_i \pm \mathbf{U}_j` the difference is
    :math:`\mathrm{diag}(\boldsymbol\delta) + \frac{1}{2}(\boldsymbol\Delta\mathbf{S}^\top +
    \mathbf{S}\boldsymbol\Delta^\top)`, whose norm needs products of size :math:`R \times R` only.
    Every term has a difference squared, so that close metrics lose no digits.

    Args:
        g: A factored field, ``[N, 1 + R, D]``.
        first: One node of each pair, ``[P]``.
        second: The other, ``[P]``.

    Returns:
        The squares of all pairs in order, in several pieces.
    """

    def squares(begin: int, end: int) -> Tensor:
        a, b = (_matrices_at(g, nodes[begin:end]) for nodes in (first, second))
        gap, total = a - b, a[:, 1:] + b[:, 1:]
        diagonal, factor = gap[:, 0], gap[:, 1:]
        crossed = (diagonal * (factor * total).sum(1)).sum(-1)
        mixed = factor @ total.mT
        within = (factor @ factor.mT) * (total @ total.mT) + mixed * mixed.mT
        return diagonal.square().sum(-1) + 2 * crossed + within.sum((-2, -1)) / 2

    with torch.autocast(g.device.type, enabled=False):
        return in_pieces(squares, first.numel(), max(PIECE // max(g.shape[1:].numel(), 1), 1))


def in_pieces(compute: Callable[[int, int], Tensor], count: int, size: int) -> list[Tensor]:
    """Results for runs of at most ``size`` rows; several ones are computed again for gradients."""
    runs = [(begin, min(begin + size, count)) for begin in range(0, count, size)]
    if len(runs) == 1:
        return [compute(*runs[0])]
    return [
        checkpoint(compute, *run, use_reentrant=False, preserve_rng_state=False) for run in runs
    ]
