r"""Derivatives of the method in closed form: as they should read, for comparison with autograd.

The appendix of the paper prints such formulas; ``argnn theory gradients`` compares them with these
and with autograd. Training uses none of them.
"""

import torch
from torch import Tensor

from argnn.functional.neighborhood import Edges, neighbor_sum, neighborhood
from argnn.functional.ricci import discrete_ricci


def ricci_energy_gradient(g: Tensor, edge_index: Edges) -> Tensor:
    r"""Gradient of the Ricci energy on an undirected graph, ``[N, D]`` (:eq:`ricci_gradient`).

    .. math::
        \frac{\partial \mathcal{L}_{\mathrm{Ricci}}}{\partial g_{ik}} =
        \mathrm{Ric}_{ik} - \sum_{j \in \mathcal{N}(i)} \frac{\mathrm{Ric}_{jk}}{|\mathcal{N}(j)|}
    """
    hood = neighborhood(edge_index, g.size(0))
    ricci = discrete_ricci(g, hood)
    share = ricci / hood.degree.clamp_min(1).to(g).unsqueeze(-1)
    return ricci - neighbor_sum(share.index_select(0, hood.source), hood)


def ricci_energy_hessian(edge_index: Edges, num_nodes: int) -> Tensor:
    r"""Hessian of the Ricci energy in one channel, float64, ``[N, N]`` (:eq:`ricci_hessian`).

    .. math:: \tfrac{1}{2}(\mathbf{I} - \mathbf{P})^\top(\mathbf{I} - \mathbf{P}), \qquad
        \mathbf{P} = \mathbf{D}^{-1}\mathbf{A}

    It joins nodes that are two hops apart, and is zero for a constant metric. Every node must
    have an edge.
    """
    hood = neighborhood(edge_index, num_nodes)
    walk = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    walk[hood.target, hood.source] = hood.inverse_degree(torch.float64)[hood.target]
    rest = torch.eye(num_nodes, dtype=torch.float64) - walk
    return 0.5 * rest.T @ rest


def smoothness_energy_gradient(g: Tensor, edge_index: Edges) -> Tensor:
    r"""Gradient of the smoothness energy, ``[N, D]`` (:eq:`smoothness_gradient`).

    .. math::
        \frac{\partial \mathcal{L}_{\mathrm{smooth}}}{\partial g_{ik}} =
        2 \sum_{j \in \mathcal{N}(i)} (g_{ik} - g_{jk})
    """
    hood = neighborhood(edge_index, g.size(0))
    return 4 * hood.degree.to(g).unsqueeze(-1) * discrete_ricci(g, hood)


def modulation_gradient(direction: Tensor, g: Tensor) -> Tensor:
    r"""Gradient of each modulation by the target's metric, ``[E, D]`` (:eq:`modulation_gradient`).

    .. math::
        \frac{\partial \tau_{ij}}{\partial g_{ik}} =
        -\frac{d_{ij,k}^2}{g_{ik}}\,\mathrm{sech}^2(\log g_{ik})
        = -\frac{4\,d_{ij,k}^2\,g_{ik}}{(1 + g_{ik}^2)^2}

    Args:
        direction: :math:`\mathbf{d}_{ij}`, ``[E, D]``.
        g: Metric of the target of each edge, ``[E, D]``.
    """
    return -4 * direction.square() * g / (1 + g.square()).square()


def attention_gradient(h_i: Tensor, h_j: Tensor, g_i: Tensor, g_j: Tensor) -> tuple[Tensor, Tensor]:
    r"""Gradients of each attention by both metrics, ``[E, D]`` each (:eq:`attention_gradient`).

    .. math::
        \frac{\partial \alpha_{ij}}{\partial g_{ik}} = \frac{h_{ik} h_{jk}}{n_i n_j}
        - \frac{p_{ij}\,h_{ik}^2}{2\,n_i^3\,n_j}, \qquad
        \frac{\partial \alpha_{ij}}{\partial g_{jk}} = -\frac{p_{ij}\,h_{jk}^2}{2\,n_i\,n_j^3}

    with :math:`p_{ij} = \sum_k g_{ik} h_{ik} h_{jk}` and :math:`n_i = \|\mathbf{h}_i\|_{G_i}`.

    Args:
        h_i: Features of the target of each edge, ``[E, D]``.
        h_j: Features of its source.
        g_i: Metric of the target.
        g_j: Metric of the source.
    """
    product = (g_i * h_i * h_j).sum(-1, keepdim=True)
    n_i, n_j = ((g * h.square()).sum(-1, keepdim=True).sqrt() for g, h in ((g_i, h_i), (g_j, h_j)))
    of_target = h_i * h_j / (n_i * n_j) - product * h_i.square() / (2 * n_i**3 * n_j)
    return of_target, -product * h_j.square() / (2 * n_i * n_j**3)
