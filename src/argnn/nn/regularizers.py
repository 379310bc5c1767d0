"""Penalties on the learned metrics: an energy times a weight."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from argnn import functional as AF
from argnn.errors import require
from argnn.functional.factored import frobenius_squares
from argnn.functional.neighborhood import Edges, neighborhood


class Regularizer(nn.Module, ABC):
    r"""A non-negative energy times a weight, summed over the layers.

    The weight is fixed or, with ``learnable=True``, :math:`e^{\theta}` with a learned
    :math:`\theta` ("adaptive regularisation", algorithm 3). The derivative of the loss with respect
    to this weight is the energy, which is never negative: gradient descent can only make the weight
    smaller. :meth:`effective_weight` gives its present value.

    Args:
        weight: The weight, or where a learnable one starts.
        reduction: ``"sum"`` as in the paper, or ``"mean"``.
        learnable: Whether the weight is a parameter.
    """

    def __init__(self, weight: float, *, reduction: str = "sum", learnable: bool = False) -> None:
        super().__init__()
        require(0 <= weight < math.inf, "weight", "finite and not negative", weight)
        if learnable and weight == 0:
            raise ValueError("a learnable weight must start above 0 (got 0)")
        reductions = AF.ricci.REDUCTIONS
        require(reduction in reductions, "reduction", f"one of {reductions}", repr(reduction))
        self.initial_weight = weight
        self.reduction = reduction
        self.learnable = learnable
        if learnable:
            self.log_weight = nn.Parameter(torch.tensor(math.log(weight)))

    def reset_parameters(self) -> None:
        """Give a learnable weight its value at the start."""
        if self.learnable:
            with torch.no_grad():
                self.log_weight.fill_(math.log(self.initial_weight))

    def effective_weight(self) -> float:
        """The present weight."""
        return float(self.log_weight.detach().exp()) if self.learnable else self.initial_weight

    def weighted(self, energy: Tensor) -> Tensor:
        """The weight times an energy."""
        return energy * (self.log_weight.exp() if self.learnable else self.initial_weight)

    def forward(self, metrics: list[Tensor], edge_index: Edges) -> Tensor:
        """Weighted energy of all layers, a scalar; directions of edges do not matter."""
        if not metrics:
            return torch.zeros(())
        both = neighborhood(edge_index, metrics[0].size(0)).relation("undirected")
        return self.weighted(torch.stack([self.energy(g, both) for g in metrics]).sum())

    @abstractmethod
    def energy(self, g: Tensor, edge_index: Edges) -> Tensor:
        """Energy of one layer's metric, a scalar."""

    def extra_repr(self) -> str:
        """Weight and reduction."""
        return f"{self.effective_weight():g}, reduction={self.reduction!r}"


class RicciRegularizer(Regularizer):
    r"""Weight times :math:`\mathcal{L}_{\mathrm{Ricci}}` (:eq:`ricci_energy`)."""

    def energy(self, g: Tensor, edge_index: Edges) -> Tensor:
        """Squared discrete Ricci curvature."""
        return AF.ricci_energy(g, edge_index, self.reduction)


class SmoothnessRegularizer(Regularizer):
    r"""Weight times :math:`\mathcal{L}_{\mathrm{smooth}}` (:eq:`smoothness_energy`)."""

    def energy(self, g: Tensor, edge_index: Edges) -> Tensor:
        """Squared differences along the edges."""
        return AF.smoothness_energy(g, edge_index, self.reduction)


class MagnitudeRegularizer(Regularizer):
    r"""Weight times :math:`\sum_i \|\mathbf{G}_i\|^2`: not in the paper, but in its public code."""

    def energy(self, g: Tensor, edge_index: Edges) -> Tensor:
        """Squared size of the metric: the sum over all entries of its matrix."""
        if g.dim() == 2:
            return AF.ricci.node_energy(g.square(), edge_index, self.reduction)
        squares = frobenius_squares(g).unsqueeze(-1)
        return AF.ricci.node_energy(squares, edge_index, self.reduction, g.size(-1))


def total_penalty(
    regularizers: Iterable[nn.Module], metrics: list[Tensor], edge_index: Edges
) -> Tensor:
    """Sum of several penalties; Ricci and smoothness share one pass over the edges.

    Args:
        regularizers: The penalties.
        metrics: Metrics of each layer, ``[N, D]`` or factored.
        edge_index: Source and target of each edge, ``[2, E]``; directions do not matter.
    """
    rest = list(regularizers)
    total = torch.zeros((), device=metrics[0].device if metrics else None)
    ricci = next((r for r in rest if isinstance(r, RicciRegularizer)), None)
    smoothness = next((r for r in rest if isinstance(r, SmoothnessRegularizer)), None)
    if metrics and ricci and smoothness and ricci.reduction == smoothness.reduction:
        energies = AF.metric_energies(metrics, edge_index, ricci.reduction)
        total = ricci.weighted(energies[0]) + smoothness.weighted(energies[1])
        rest = [r for r in rest if r is not ricci and r is not smoothness]
    for regularizer in rest:
        total = total + regularizer(metrics, edge_index)
    return total
