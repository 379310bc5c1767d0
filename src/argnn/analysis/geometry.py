r"""Statistics of a learned metric field at each node.

All are computed in float64 from the metric diagonals :math:`\mathbf{g}_i > 0`, ``[N, D]``; of a
factored metric, ``[N, 1 + R, D]``, from its eigenvalues, or where it says so, from its matrix. The
graph is taken as undirected and simple: directions, duplicates and self-loops do not matter. A
statistic that needs a neighbour is NaN at a node without one.
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.analysis.layers import Layer
from argnn.analysis.properties import mean_at_nodes
from argnn.functional.neighborhood import Edges, Neighborhood, neighborhood
from argnn.functional.ricci import ricci_squares
from argnn.functional.smoothness import relative_gaps


def mean_curvature(g: Tensor) -> Tensor:
    r"""Mean learned curvature of each node, ``[N]`` (:eq:`kappa`).

    .. math:: \kappa_i = \frac{1}{D} \sum_k |\log g_{ik}|

    The paper shows "mean curvature" without defining it. This definition follows from what it
    says: the principal curvatures are "directly related to the inverses" :math:`1/g_{ik}`;
    :math:`\mathbf{g} = \mathbf{1}` is Euclidean, hence flat, while 0.5 and 2 are its hyperbolic and
    spherical geometries, hence equally far from flat; and :math:`\kappa` starts at zero and grows
    with "geometric adaptation". So the logarithm of the inverse is taken on each axis, and its
    absolute value, so that axes do not cancel. For the sign see :func:`log_volume`.

    The default preset starts training at :math:`g = 0.5`, that is at :math:`\kappa = 0.69`.

    Example:
        >>> mean_curvature(torch.tensor([[1.0, 1.0], [0.5, 2.0]])).round(decimals=3).tolist()
        [0.0, 0.693]
    """
    return _log_axes(g).abs().mean(-1)


def mean_inverse(g: Tensor) -> Tensor:
    r"""Mean of the paper's principal curvatures taken literally, ``[N]``.

    .. math:: \frac{1}{D} \sum_k 1 / g_{ik}

    It is one, not zero, in Euclidean space, and has no bound where the metric is near its floor.
    """
    return AF.metric_eigenvalues(g.double()).reciprocal().mean(-1)


def anisotropy(g: Tensor) -> Tensor:
    r"""Log-ratio :math:`\log(\max_k g_{ik} / \min_k g_{ik})` of each node, ``[N]``.

    Example:
        >>> anisotropy(torch.tensor([[3.0, 3.0], [1.0, torch.e]])).round(decimals=6).tolist()
        [0.0, 1.0]
    """
    log_g = _log_axes(g)
    return log_g.amax(-1) - log_g.amin(-1)


def effective_rank(g: Tensor) -> Tensor:
    r"""How many axes carry the metric of each node, between 1 and D, ``[N]``.

    .. math:: \exp\left(-\sum_k p_{ik} \log p_{ik}\right), \quad p_{ik} = g_{ik} / \sum_l g_{il}

    Example:
        >>> effective_rank(torch.tensor([[5.0, 5.0, 5.0]])).round(decimals=6).tolist()
        [3.0]
    """
    g_ = AF.metric_eigenvalues(g.double())
    entropy: Tensor = torch.special.entr(g_ / g_.sum(-1, keepdim=True)).sum(-1)
    return entropy.exp()


def log_volume(g: Tensor) -> Tensor:
    r"""Logarithm of the Riemannian volume element of each node, ``[N]``.

    .. math:: \log \sqrt{\det \mathbf{G}_i} = \tfrac{1}{2} \sum_k \log g_{ik}

    Half the log-determinant. Negative where the metric contracts space, zero where it is Euclidean.

    Example:
        >>> log_volume(torch.tensor([[torch.e, torch.e]])).round(decimals=6).tolist()
        [1.0]
    """
    return _log_axes(g).sum(-1) / 2


def main_variation(g: Tensor) -> Tensor:
    r"""Coordinate of each node along the direction in which the field varies most, ``[N]``.

    The first principal component of :math:`\log\mathbf{g}` over the nodes, centred; larger means
    larger metrics on the whole.
    """
    log_g = _log_axes(g)
    centred = log_g - log_g.mean(0)
    direction = torch.linalg.eigh(centred.t() @ centred).eigenvectors[:, -1]
    # A principal component has no sign of its own.
    coordinate: Tensor = centred @ (direction if direction.sum() >= 0 else -direction)
    return coordinate


def ricci_norm(g: Tensor, edge_index: Edges) -> Tensor:
    """Length of the discrete Ricci curvature of each node, ``[N]``.

    It measures the difference of a metric from the mean of its neighbours' metrics; see
    :func:`argnn.functional.discrete_ricci`. Of factored metrics it is the norm of a matrix.
    """
    both = _undirected(edge_index, g.size(0))
    length = ricci_squares(g.double(), both).sqrt()
    return torch.where(both.degree > 0, length, torch.nan)


def dispersion(g: Tensor, edge_index: Edges) -> Tensor:
    r"""Mean relative difference of each node's metric to its neighbours', ``[N]``.

    .. math::
        \frac{1}{|\mathcal{N}(i)|} \sum_{j \in \mathcal{N}(i)}
        \frac{\|\mathbf{g}_i - \mathbf{g}_j\|}{\frac{1}{2}(\|\mathbf{g}_i\| + \|\mathbf{g}_j\|)}

    NRMD (:func:`argnn.functional.nrmd`) is the mean of this over the nodes, weighted by degree.
    """
    both = _undirected(edge_index, g.size(0))
    low, high = both.pairs
    terms = relative_gaps(g, low, high)
    return mean_at_nodes(torch.cat([terms, terms]), torch.cat([low, high]), both.num_nodes)


def learned_curvature(layer: Layer, edge_index: Edges, alpha: float = 0.5) -> Tensor:
    """Mean learned Ollivier-Ricci curvature of the edges at each node, ``[N]``.

    Each edge is measured with the metric of the node itself. Edges between equal points have no
    curvature and are left out. One transport problem per edge and direction: slow, and needs POT.

    Args:
        layer: Points and metrics.
        edge_index: Source and target of each edge, ``[2, E]``.
        alpha: Laziness in [0, 1), see :func:`argnn.functional.learned_ollivier_ricci`.
    """
    both = _undirected(edge_index, layer.g.size(0))
    curvature = AF.learned_ollivier_ricci(layer.h, layer.g, both, alpha)
    defined = ~curvature.isnan()
    return mean_at_nodes(curvature[defined], both.target[defined], both.num_nodes)


def field_nrmd(g: Tensor, edge_index: Edges) -> float:
    """NRMD of the whole field; NaN where there are no edges to average over."""
    both = _undirected(edge_index, g.size(0))
    return float(AF.nrmd(g.double(), both)) if both.num_pairs else float("nan")


@dataclass(frozen=True)
class MetricStatistics:
    """The statistics of one layer's metric at each node, ``[N]`` each.

    ``kappa`` is the :func:`mean_curvature` and ``inverse_metric`` the :func:`mean_inverse`. The
    others are explained at the function of the same name.
    """

    kappa: Tensor
    inverse_metric: Tensor
    anisotropy: Tensor
    effective_rank: Tensor
    log_volume: Tensor
    main_variation: Tensor
    ricci_norm: Tensor
    dispersion: Tensor


#: Names of the statistics that every layer has.
STATISTICS = tuple(field.name for field in fields(MetricStatistics))


def metric_statistics(g: Tensor, edge_index: Edges) -> MetricStatistics:
    """All statistics of a metric field, ``[N, D]`` or factored."""
    axes = AF.metric_eigenvalues(g.double())
    return MetricStatistics(
        kappa=mean_curvature(axes),
        inverse_metric=mean_inverse(axes),
        anisotropy=anisotropy(axes),
        effective_rank=effective_rank(axes),
        log_volume=log_volume(axes),
        main_variation=main_variation(axes),
        ricci_norm=ricci_norm(g, edge_index),
        dispersion=dispersion(g, edge_index),
    )


@dataclass(frozen=True)
class AxisStatistics:
    r"""The statistics of each axis of a metric field, ``[D]`` each.

    Attributes:
        mean_log_g: Mean of :math:`\log g_{ik}` over the nodes; positive where the axis is
            stretched, negative where it is contracted.
        std_log_g: Standard deviation over the nodes: 0 for an axis on which all nodes agree.
        top_share: Share of nodes that have the axis among their most stretched ones.
    """

    mean_log_g: Tensor
    std_log_g: Tensor
    top_share: Tensor


def axis_statistics(g: Tensor, top: int = 5) -> AxisStatistics:
    """Statistics of the axes of a metric field, of factored ones those of the entries ``G_kk``.

    The ``top`` largest axes of a node count as its most stretched ones. Axes as large as the last
    of them count too, so that the order of equal axes does not matter.
    """
    if top < 1:
        raise ValueError(f"top must be positive (got {top})")
    log_g = AF.metric_diagonal(g.double()).log()
    last = log_g.topk(min(top, g.size(-1)), dim=-1).values[:, -1:]
    return AxisStatistics(
        mean_log_g=log_g.mean(0),
        std_log_g=log_g.std(0, unbiased=False),
        top_share=(log_g >= last).double().mean(0),
    )


def _log_axes(g: Tensor) -> Tensor:
    """Logarithms of the axes of each metric, ``[N, D]``: of its diagonal, or its eigenvalues."""
    return AF.metric_eigenvalues(g.double()).log()


def _undirected(edge_index: Edges, num_nodes: int) -> Neighborhood:
    return neighborhood(edge_index, num_nodes).relation("undirected")
