"""Adam on manifolds: geoopt's, for metrics that are parameters themselves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from argnn.errors import package_needed

if TYPE_CHECKING:
    from geoopt import Manifold


def riemannian_adam(groups: Sequence[dict[str, Any]], **unused: Any) -> Optimizer:
    r"""The ``RiemannianAdam`` of geoopt, on ``AbstractNodeModel.positive_parameters``.

    A positive number :math:`g` moves along geodesics of the metric :math:`dg^2/g^2`: a step
    multiplies it by :math:`\exp(-\eta\, m/\sqrt{v})`, and it stays positive. Together with a free
    Cholesky factor below the diagonal this is the log-Cholesky geometry of positive definite
    matrices (Lin, SIAM J. Matrix Anal. Appl. 2019). All other parameters move as with Adam.

    Args:
        groups: Parameter groups with the entry ``positive``.
        **unused: ``fused`` and ``capturable``, which geoopt does not have.
    """
    with package_needed(
        "optimizer 'riemannian-adam' needs geoopt: pip install 'argnn[riemannian]'"
    ):
        import geoopt

    class RiemannianAdam(geoopt.optim.RiemannianAdam):  # type: ignore[misc]
        """Takes the manifold from the parameter group, and counts steps in a tensor.

        geoopt 0.5.1 counts steps in a Python number. A state that is loaded has a tensor of torch
        instead, whose powers are rounded in another way: a continued run would have other bits.
        Here it is a tensor from the first step on, in float64.
        """

        param_groups: list[dict[str, Any]]

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            every = self.param_groups
            try:
                for group in every:
                    for point in group["params"]:
                        if point.grad is not None and not self.state[point]:
                            self.state[point].update(_first_state(point))
                    positive = group["positive"]
                    self._default_manifold = on_line if positive else geoopt.Euclidean()
                    self.param_groups = [group]
                    super().step(closure)
            finally:
                self.param_groups = every

    on_line = _positive_numbers()
    return RiemannianAdam(groups)


def _first_state(point: Tensor) -> dict[str, Tensor]:
    zero = torch.zeros((), dtype=torch.float64)
    return {"step": zero, "exp_avg": torch.zeros_like(point), "exp_avg_sq": torch.zeros_like(point)}


def _positive_numbers() -> "Manifold":
    import geoopt

    class PositiveNumbers(geoopt.Manifold):  # type: ignore[misc]
        r"""Positive numbers, each a space of its own, with the metric :math:`u v / g^2`."""

        name = "PositiveNumbers"
        ndim = 0

        def inner(self, x: Tensor, u: Tensor, v: Any = None, *, keepdim: bool = False) -> Tensor:
            return u * (u if v is None else v) / x.square()

        component_inner = inner

        def egrad2rgrad(self, x: Tensor, u: Tensor) -> Tensor:
            return u * x.square()

        def expmap(self, x: Tensor, u: Tensor) -> Tensor:
            return x * torch.exp(u / x)

        retr = expmap

        def transp(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
            return v * (y / x)

        def proju(self, x: Tensor, u: Tensor) -> Tensor:
            return u

        def projx(self, x: Tensor) -> Tensor:
            return x.abs()

        def _check_point_on_manifold(self, x: Tensor, **_: Any) -> tuple[bool, str | None]:
            return bool((x > 0).all()), "all numbers must be positive"

        def _check_vector_on_tangent(self, x: Tensor, u: Tensor, **_: Any) -> tuple[bool, None]:
            return True, None

    return PositiveNumbers()
