"""Spaces of constant curvature, and products of them, whose curvatures can be learned.

Formulas and conventions are those of :mod:`argnn.functional.stereographic`. The modules only hold
the curvatures and split the channels of a product into its factors.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from argnn.errors import ConfigError, require
from argnn.functional import stereographic
from argnn.functional.neighborhood import Edges

#: Largest absolute value of a curvature that may change its sign.
MAX_FREE_CURVATURE = 1.0


class Curvature(nn.Module):
    r"""Curvatures, one for each factor of a product, ``[Q]``.

    A curvature that keeps its sign is :math:`\pm\mathrm{softplus}(r)`, and zero stays zero. A free
    one is :math:`\tanh(r)`: between -1 and 1, and able to pass through zero.

    Args:
        initial: The curvatures at the start.
        learnable: Whether they are trained.
        free: Whether they may change their sign.

    Example:
        >>> Curvature([-1.0, 0.0, 0.5])().tolist()
        [-1.0, 0.0, 0.5]
    """

    sign: Tensor
    raw: Tensor

    def __init__(
        self, initial: Sequence[float], *, learnable: bool = True, free: bool = False
    ) -> None:
        super().__init__()
        for value in initial:
            require(math.isfinite(value), "a curvature", "finite", value)
            inside = not free or abs(value) < MAX_FREE_CURVATURE
            require(inside, "a free curvature", "between -1 and 1", value)
        self.initial, self.learnable, self.free = tuple(initial), learnable, free
        self.register_buffer("sign", torch.tensor(self.initial).sign(), persistent=False)
        raw = torch.empty(len(self.initial))
        if learnable:
            self.raw = nn.Parameter(raw)
        else:
            self.register_buffer("raw", raw)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Go back to the curvatures at the start."""
        size = torch.tensor(self.initial, dtype=torch.float64)
        if self.free:
            raw = size.atanh()
        else:
            # The inverse of softplus. For curvature zero the number does not matter.
            size = torch.where(size == 0, 1.0, size.abs())
            raw = size + torch.log(-torch.expm1(-size))
        self.raw.copy_(raw)

    def forward(self) -> Tensor:
        """The curvatures, ``[Q]``."""
        return self.raw.tanh() if self.free else self.sign * F.softplus(self.raw)

    def extra_repr(self) -> str:
        """The curvatures at the start, and how they may change."""
        return f"initial={self.initial}, learnable={self.learnable}, free={self.free}"


class StereographicProduct(nn.Module):
    r"""A product of one or more :math:`\kappa`-stereographic spaces of equal dimension.

    Points and tangent vectors at the origin are ``[..., D]``: the channels of the first factor,
    then those of the second, and so on. ``D`` may be any multiple of the number of factors.

    The curvatures are the only parameters. Take sums over neighbours in the tangent space:
    :meth:`logmap0`, :func:`argnn.functional.aggregate`, then :meth:`expmap0`.

    Args:
        curvatures: Curvature of each factor at the start: negative is hyperbolic, zero is
            Euclidean, positive is spherical.
        learnable: Whether the curvatures are trained.
        free: Whether a curvature may change its sign; it then stays between -1 and 1.

    Example:
        >>> space = StereographicProduct([-1.0, 0.0])
        >>> x = space.expmap0(torch.tensor([[1.0, 0.0, 1.0, 0.0]]))
        >>> x.round(decimals=4).tolist()
        [[0.7616000175476074, 0.0, 1.0, 0.0]]
        >>> space.logmap0(x).round(decimals=4).tolist()
        [[1.0, 0.0, 1.0, 0.0]]
    """

    def __init__(
        self, curvatures: Sequence[float], *, learnable: bool = True, free: bool = False
    ) -> None:
        super().__init__()
        if not curvatures:
            raise ConfigError("a product needs at least one factor (got none)")
        self.curvature = Curvature(curvatures, learnable=learnable, free=free)

    def reset_parameters(self) -> None:
        """Go back to the curvatures at the start."""
        self.curvature.reset_parameters()

    @property
    def num_factors(self) -> int:
        """Number of factors."""
        return self.curvature.raw.numel()

    def curvatures(self) -> Tensor:
        """The curvatures, ``[Q]``."""
        return self.curvature()

    def split(self, x: Tensor) -> Tensor:
        """The channels by factor, ``[..., D] -> [..., Q, D / Q]``."""
        if x.size(-1) % self.num_factors:
            raise ConfigError(
                f"the width must be a multiple of the {self.num_factors} factors (got {x.size(-1)})"
            )
        return x.reshape(*x.shape[:-1], self.num_factors, x.size(-1) // self.num_factors)

    def join(self, x: Tensor) -> Tensor:
        """The inverse of :meth:`split`."""
        return x.flatten(-2)

    def _k(self) -> Tensor:
        return self.curvatures().unsqueeze(-1)

    def clip_tangent(self, u: Tensor, max_angle: float = stereographic.MAX_ANGLE) -> Tensor:
        """See :func:`argnn.functional.stereographic.clip_tangent`."""
        return self.join(stereographic.clip_tangent(self.split(u), self._k(), max_angle))

    def expmap0(self, u: Tensor) -> Tensor:
        """Points from tangent vectors at the origin; vectors that are too long are shortened."""
        return self.join(stereographic.expmap0(self.split(u), self._k()))

    def logmap0(self, x: Tensor) -> Tensor:
        """Tangent vectors at the origin from points."""
        return self.join(stereographic.logmap0(self.split(x), self._k()))

    def squared_distance(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distance: the sum of the squared distances in all factors, ``[...]``."""
        squared = stereographic.squared_distance(self.split(x), self.split(y), self._k())
        return squared.sum(-1)

    def gyromidpoint(self, x: Tensor, edge_index: Edges, normalization: str = "sym") -> Tensor:
        """Midpoint of each node and its neighbours in every factor, ``[N, D]``.

        See :func:`argnn.functional.stereographic.gyromidpoint`. In factors with positive curvature,
        points must be in the hemisphere around the origin.
        """
        return self.join(
            stereographic.gyromidpoint(self.split(x), edge_index, self._k(), normalization)
        )
