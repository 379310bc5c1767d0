"""CUSP."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import reset

from argnn.errors import require
from argnn.functional import stereographic
from argnn.functional.analytic import tan_ratio
from argnn.functional.curvature_weights import cusp_adjacency
from argnn.functional.dropout import dropout as drop
from argnn.functional.edge_values import ordered_edges, weighted_aggregate
from argnn.functional.neighborhood import Edges
from argnn.functional.ollivier import CURVATURE_METHODS, node_curvature
from argnn.nn.graph_statistics import GraphStatistics
from argnn.nn.manifolds import StereographicProduct
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE
from argnn.nn.models.stack import AbstractStack

#: Sign of the curvature of a factor, by its letter.
_SIGNS = {"h": -1.0, "e": 0.0, "s": 1.0}
_FREQUENCIES = 16
# Smallest curvature at the start; smaller ones would hardly learn.
_SMALLEST_CURVATURE = 1e-3


class CurvatureCode(nn.Module):
    r"""A vector for the curvature of each node, by random Fourier features.

    .. math::
        \phi(\kappa_i) = \sqrt{1/D'}\,[\sin \kappa_i\omega,\; \cos \kappa_i\omega], \qquad
        \omega = W_3(W_2\,\mathrm{relu}(W_1 f) + f), \quad f = 10^{-u},\; u \sim U(0, 1)

    followed by a linear map into the tangent space of a product, its exponential map, and a linear
    map. Training draws new frequencies :math:`f` in every call, as the authors' code does.
    Evaluation uses frequencies that were drawn with the weights and are stored with them.

    Args:
        space: The product.
        channels: Width of the tangent space.
        out_channels: Width of the code :math:`D'`.
    """

    frequencies: Tensor

    def __init__(self, space: StereographicProduct, channels: int, out_channels: int) -> None:
        super().__init__()
        # In a list, so that the curvatures are parameters of the model only.
        self._space, self.out_channels = [space], out_channels
        self.lins = nn.ModuleList(Linear(_FREQUENCIES, _FREQUENCIES) for _ in range(3))
        self.lin_in = Linear(2 * _FREQUENCIES, channels)
        self.lin_out = Linear(channels, out_channels)
        self.register_buffer("frequencies", torch.empty(_FREQUENCIES))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights and frequencies anew."""
        for module in (*self.lins, self.lin_in, self.lin_out):
            module.reset_parameters()
        self.frequencies.copy_(self._drawn())

    def _drawn(self) -> Tensor:
        return torch.pow(10, -torch.rand_like(self.frequencies))

    def forward(self, curvature: Tensor) -> Tensor:
        """The code ``[N, out_channels]`` of curvatures ``[N]``."""
        f = self._drawn() if self.training else self.frequencies
        first, second, third = self.lins
        omega = third(second(first(f).relu()) + f)
        angle = curvature.unsqueeze(-1) * omega
        waves = torch.cat([angle.sin(), angle.cos()], -1) * math.sqrt(1 / self.out_channels)
        u = self.lin_in(waves).to(curvature.dtype)  # from bfloat16, if products use it
        return self.lin_out(self._space[0].expmap0(u))


class CuspPooling(nn.Module):
    r"""Attention over the factors of a product, then over hops.

    With tangent vectors :math:`u_{lq}` of a node after :math:`l` hops in factor :math:`q`,

    .. math::
        z_{lq} = W_q u_{lq} + b_q, \quad
        \beta_{lq} = \mathrm{softmax}_q\,\sigma(\theta_q \cdot (z_{lq} - \bar z_{lq})), \quad
        \zeta = \sum_l \mathrm{softmax}(\epsilon)_l\,
        [\beta_{lq} \otimes \exp_0 z_{lq}]_q

    where :math:`\bar z` is the mean over the nodes of the training graph. The first evaluation
    after training steps, which is that of validation, stores this mean with the weights. Hops act
    on nodes and :math:`W_q` on channels, so their order does not matter: features are mapped once,
    before all hops.

    Args:
        space: The product.
        channels: Width of all factors together.
        hops: Number of hops.
    """

    def __init__(self, space: StereographicProduct, channels: int, hops: int) -> None:
        super().__init__()
        self._space = [space]
        factors, width = space.num_factors, channels // space.num_factors
        self.weight = nn.Parameter(torch.empty(factors, width, width))
        self.bias = nn.Parameter(torch.empty(channels))
        self.theta = nn.Parameter(torch.empty(factors, width))
        self.epsilon = nn.Parameter(torch.empty(hops + 1))
        self.statistics = GraphStatistics(center=(0.0, (hops + 1, 1, factors)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        bound = 1 / math.sqrt(self.weight.size(-1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)
        nn.init.normal_(self.theta)
        nn.init.normal_(self.epsilon)
        self.statistics.reset_parameters()

    def mapped(self, u: Tensor) -> Tensor:
        """The linear maps of all factors, without their biases, ``[N, D] -> [N, D]``."""
        return u @ torch.block_diag(*self.weight)

    def factor_weights(self, scores: Tensor) -> Tensor:
        """Weights of the factors, ``[L + 1, N, Q] -> [L + 1, N, Q]``; they sum to one."""
        return (scores - self._center(scores)).sigmoid().softmax(-1)

    def _center(self, scores: Tensor) -> Tensor:
        """Mean over the nodes, ``[L + 1, 1, Q]``; in evaluation the stored one, if any."""
        if self.statistics.is_fitted and not self.training:
            return self.statistics.get_buffer("center").to(scores)
        center = scores.mean(1, keepdim=True)
        if self.training:  # every step changes the weights, and so the mean
            self.statistics.reset_parameters()
        elif scores.size(1) > 0:
            self.statistics.store(center=center)
        return center

    def forward(self, hops: Tensor) -> Tensor:
        """Pooled vectors ``[N, D]`` from :meth:`mapped` tangent vectors ``[L + 1, N, D]``."""
        space = self._space[0]
        z = hops + self.bias
        # All further maps only scale vectors: one factor per node, hop and factor of the product.
        members = torch.block_diag(*torch.ones_like(self.theta).unsqueeze(-1))
        y = space.curvatures() * (z.square() @ members)
        shorter, y = stereographic.shortening(y, z.dtype, stereographic.MAX_ANGLE)
        beta = self.factor_weights(shorter * (z @ torch.block_diag(*self.theta.unsqueeze(-1))))
        length = shorter * beta * tan_ratio(beta.square() * y)
        length = length * self.epsilon.softmax(0).view(-1, 1, 1)
        return ((length @ members.t()) * z).sum(0)


class CUSP(AbstractStack):
    r"""CUSP of Grover et al.: hops on a graph weighted by curvature, in a product of spaces.

    Features are mapped into the tangent space of a product of hyperbolic, Euclidean and spherical
    factors, and taken :math:`K` hops along edges weighted by
    :func:`~argnn.functional.curvature_weights.cusp_weight`. All hops are pooled
    (:class:`CuspPooling`), a code of the nodes' curvatures is added (:class:`CurvatureCode`), and
    rows are scaled to length one.

    Deviations from the authors' code: messages are summed in the tangent space, because sums of
    points may lie outside of the space, so the maps between two hops cancel; frequencies of the
    code, and the mean over all nodes in the attention, are fixed in evaluation, so that a
    prediction does not depend on far nodes; for links, curvatures and weights come from the
    training edges, and the last linear map is kept before pairs are scored by their cosine.

    Args:
        hidden_channels: Width of the product and of the code; a multiple of the number of factors.
        num_layers: Number of linear maps before the hops.
        dropout: Dropout on input and result of these maps.
        hops: Number of hops :math:`K`.
        signature: One letter per factor: h(yperbolic), e(uclidean) or s(pherical).
        ricci: How curvatures are computed: ``"auto"``, ``"exact"`` or ``"bounds"``.
    """

    citation = "Grover et al.: Spectro-Riemannian graph neural networks, ICLR 2025"
    takes_edge_weight = True
    space = "product of constant curvature spaces"
    search_space = {
        **EUCLIDEAN_SEARCH_SPACE,
        "signature": ["hhse", "hhee", "hs", "hhhh"],
        "hops": [5, 10],
    }
    link_decoder = "cosine"
    encoder_head = ("lins", "head")

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        hops: int = 10,
        signature: str = "hhse",
        ricci: str = "auto",
        normalize_input: bool = False,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        require(hops >= 0, "hops", "at least 0", hops)
        require(ricci in CURVATURE_METHODS, "ricci", f"one of {CURVATURE_METHODS}", repr(ricci))
        letters = signature.lower()
        named = letters != "" and set(letters) <= set(_SIGNS)
        require(named, "signature", "letters of h, e and s", repr(signature))
        self.dropout, self.hops, self.ricci = dropout, hops, ricci
        divides, factors = hidden_channels % len(letters) == 0, f"the {len(letters)} factors"
        require(divides, "hidden_channels", f"a multiple of {factors}", hidden_channels)
        self.lins = self.feature_maps(hidden_channels, input_dropout, normalize_input)
        self.product = StereographicProduct([_SIGNS[letter] for letter in letters])
        self.code = CurvatureCode(self.product, hidden_channels, hidden_channels)
        self.pooling = CuspPooling(self.product, hidden_channels, hops)
        self.head = Linear(2 * hidden_channels, out_channels)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw all weights, curvatures and frequencies anew."""
        reset(self.lins)
        size = torch.rand(self.product.num_factors, dtype=torch.float64)
        # The inverse of softplus.
        self.product.curvature.raw.copy_(size.clamp_min(_SMALLEST_CURVATURE).expm1().log())
        self.code.reset_parameters()
        self.pooling.reset_parameters()
        self.head.reset_parameters()

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        h = self.through(self.lins, x)
        u = self.pooling.mapped(drop(h, self.dropout, self.training)).to(x.dtype)
        pooled = self.pooling(self.filter_bank(u, edge_index))
        curvature = node_curvature(edge_index, x.size(0), method=self.ricci)
        out = F.normalize(torch.cat([pooled, self.code(curvature.to(x.dtype))], -1), dim=-1)
        return self.head(out), []

    def reach(self) -> int:
        """How many hops around a node its scores depend on; a curvature needs two more."""
        return self.hops + 2

    def metric_parameters(self) -> list[nn.Parameter]:
        """The learned curvatures of the factors."""
        return list(self.product.parameters())

    def filter_bank(self, u: Tensor, edge_index: Edges) -> Tensor:
        """The results ``[K + 1, N, D]`` of 0, 1, ... K hops from tangent vectors ``[N, D]``."""
        nodes = u.size(0)
        edges = ordered_edges(edge_index, nodes, closed=True)
        weight = cusp_adjacency(edge_index, nodes, u.dtype, self.ricci)
        bank = [u]
        for _ in range(self.hops):
            bank.append(weighted_aggregate(bank[-1], weight, edges))
        return torch.stack(bank)
