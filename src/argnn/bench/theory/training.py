"""Plain descents with everything that claims speak of: gradient norm and metric of every step."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.data.synthetic import mixed
from argnn.functional.neighborhood import Edges, neighborhood
from argnn.nn import ARGNN
from argnn.settings.options import seeded

#: Of the network's layers.
CHANNELS = 16
#: Total loss and the metrics of all layers side by side, ``[N, M]``.
Objective = Callable[[], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class DescentStep:
    """A step: squared norm of the gradient, and the metric before the step, ``[N, M]``."""

    squared_gradient: float
    metric: Tensor


def planted_graph(seed: int) -> Data:
    """The smallest ``mixed`` graph, 984 nodes, with one split."""
    return mixed(seed, regions_per_kind=12, num_splits=1)


def penalty(metrics: Sequence[Tensor], edge_index: Edges, weights: tuple[float, float]) -> Tensor:
    """Weighted Ricci and smoothness energy of all layers."""
    ricci, smooth = AF.metric_energies(metrics, edge_index)
    return weights[0] * ricci + weights[1] * smooth


def paper_weights(graph: Data) -> tuple[float, float]:
    """The paper's penalty weights for two layers of a planted graph, from all labels."""
    edges, homophily = graph.edge_index, AF.edge_homophily(graph.edge_index, graph.y)
    return AF.theory_weights(float(homophily), graph.num_nodes, edges.size(1) // 2, 2, CHANNELS)


def adam_fit(parameters: Sequence[Tensor], loss: Callable[[], Tensor], steps: int) -> None:
    """Minimise a loss with Adam, whose rate falls from 0.01 along a cosine."""
    optimizer = torch.optim.Adam(list(parameters), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        schedule.step()


def descent(
    parameters: Sequence[Tensor],
    objective: Objective,
    *,
    steps: int,
    rate: Callable[[int], float],
    adam: bool = False,
) -> Iterator[DescentStep]:
    """Gradient descent, or Adam, with the rate of every step, counted from 1."""
    build = torch.optim.Adam if adam else torch.optim.SGD
    optimizer = build(list(parameters), lr=rate(1))
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        loss, metric = objective()
        loss.backward()
        squares = [p.grad.square().sum() for p in parameters if p.grad is not None]
        yield DescentStep(float(torch.stack(squares).sum()), metric.detach().clone())
        optimizer.step()


def network_descent(
    graph: Data,
    seed: int,
    *,
    factors: tuple[float, float] = (1.0, 1.0),
    edge_index: Tensor | None = None,
    free: bool = False,
    **how: Any,
) -> Iterator[DescentStep]:
    """Descent of two layers of the paper's form, without dropout, on a planted graph.

    The ``factors`` are on the paper's weights of Ricci and smoothness energy. With ``free``, free
    metrics are all that is trained.
    """
    nodes = graph.train_mask.reshape(graph.num_nodes, -1)[:, 0]
    edges = graph.edge_index if edge_index is None else edge_index
    hood = neighborhood(edges, graph.num_nodes)
    options: dict[str, Any] = {"metric": "free", "metric_init": "uniform"} if free else {}
    sizes = graph.x.size(1), CHANNELS, int(graph.y.max()) + 1
    with seeded(seed):
        model = ARGNN(*sizes, num_layers=2, preset="paper", dropout=0.0, **options)
    if free:
        model.fit_to_graph(edges, graph.num_nodes)
    alpha, beta = paper_weights(graph)
    weights = factors[0] * alpha, factors[1] * beta

    def objective() -> tuple[Tensor, Tensor]:
        scores, metrics = model.forward_with_metric(graph.x, hood)
        task = F.cross_entropy(scores[nodes], graph.y[nodes])
        return task + penalty(metrics, hood, weights), torch.cat(metrics, dim=1)

    parameters = model.metric_parameters() if free else model.parameters()
    return descent(list(parameters), objective, **how)
