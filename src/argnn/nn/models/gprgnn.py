"""GPR-GNN."""

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from argnn.errors import require
from argnn.functional.dropout import dropout as drop
from argnn.functional.neighborhood import Edges
from argnn.functional.pagerank import pagerank_coefficients, polynomial_aggregate
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, UNSCALED_ROWS
from argnn.nn.models.stack import AbstractStack


class GPRGNN(AbstractStack):
    r"""GPR-GNN of Chien et al.: a perceptron, then a learned polynomial of the adjacency.

    .. math:: Y = \sum_{k=0}^K \gamma_k \hat A^k\, \mathrm{MLP}(X)

    The learned :math:`\gamma` start from a personalised PageRank, see
    :func:`~argnn.functional.pagerank.pagerank_coefficients`.

    The method's own code decays all weights except :math:`\gamma`. The training here decays all of
    them, unless ``layers_weight_decay`` is 0.

    Args:
        hidden_channels: Width of the perceptron.
        num_layers: Number of linear maps of the perceptron.
        dropout: Dropout on the input of each linear map.
        propagation_dropout: Dropout on the result of the perceptron.
        hops: Number of hops :math:`K`.
        teleport: The PageRank's probability of going back to the start, in [0, 1]. With 1 the
            polynomial starts as :math:`\hat A^0`, with 0 as :math:`\hat A^K`.
    """

    citation = "Chien, Peng, Li, Milenkovic: GPR-GNN, ICLR 2021"
    takes_edge_weight = True
    search_space = {
        **EUCLIDEAN_SEARCH_SPACE,
        "teleport": [0.1, 0.2, 0.5, 0.9, 1.0],
        "propagation_dropout": [0.0, 0.5],
    }
    link_options = UNSCALED_ROWS
    encoder_head = ("lins",)
    recordable = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        propagation_dropout: float = 0.5,
        hops: int = 10,
        teleport: float = 0.1,
        normalize_input: bool = True,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        require(hops >= 0, "hops", "at least 0", hops)
        require(0 <= teleport <= 1, "teleport", "in [0, 1]", teleport)
        self.dropout, self.propagation_dropout = dropout, propagation_dropout
        self.hops, self.teleport = hops, teleport
        self.lins = self.feature_maps(out_channels, input_dropout, normalize_input)
        self.gamma = nn.Parameter(torch.tensor(pagerank_coefficients(teleport, hops)))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw all weights anew, and set the polynomial to the PageRank."""
        reset(self.lins)
        self.gamma.copy_(torch.tensor(pagerank_coefficients(self.teleport, self.hops)))

    def reach(self) -> int:
        """How many hops around a node its scores depend on; degrees need one more."""
        return self.hops + 1

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        h = self.through(self.lins, x)
        h = drop(h, self.propagation_dropout, self.training)
        return polynomial_aggregate(h, self.gamma, edge_index), []
