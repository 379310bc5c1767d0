"""H2GCN."""

import torch
from torch import Tensor
from torch_geometric.nn import Linear

from argnn.functional.dropout import dropout as drop
from argnn.functional.neighborhood import Edges, aggregate, neighborhood
from argnn.functional.two_hop import two_hop
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, UNSCALED_ROWS, AbstractNodeModel


class H2GCN(AbstractNodeModel):
    r"""H2GCN of Zhu et al.: separate sums over neighbours and over neighbours of neighbours.

    .. math::
        \mathbf{r}^0 = \mathrm{relu}(X W_e), \qquad
        \mathbf{r}^k = [\hat A_1 \mathbf{r}^{k-1} \,\|\, \hat A_2 \mathbf{r}^{k-1}], \qquad
        Y = [\mathbf{r}^0 \,\|\, \dots \,\|\, \mathbf{r}^K]\, W_c

    :math:`A_1` has the neighbours of each node and :math:`A_2` the nodes at distance 2. Each is
    normalised by the square roots of its own degrees. Directions and duplicates of edges do not
    matter. A round has no weights and doubles the width.

    Args:
        hidden_channels: Width of :math:`\mathbf{r}^0`.
        num_layers: Number of rounds :math:`K`; 1 and 2 are the H2GCN-1 and H2GCN-2 of the paper.
        dropout: Dropout on the input of the last linear map.
        relu: Whether there is an activation before the rounds.
    """

    citation = "Zhu et al.: Beyond homophily in GNNs, NeurIPS 2020"
    takes_edge_weight = True
    space = "Euclidean"
    search_space = {**EUCLIDEAN_SEARCH_SPACE, "num_layers": [1, 2], "relu": [True, False]}
    link_options = UNSCALED_ROWS
    recordable = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        relu: bool = True,
        normalize_input: bool = True,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.dropout, self.relu = dropout, relu
        self.encoder = InputLinear(
            in_channels,
            hidden_channels,
            bias=False,
            dropout=input_dropout,
            normalize=normalize_input,
            weight_initializer="glorot",
        )
        seen = (2 ** (num_layers + 1) - 1) * hidden_channels
        self.head = Linear(seen, out_channels, bias=False, weight_initializer="glorot")

    def reach(self) -> int:
        """How many hops around a node its scores depend on; degrees need two more."""
        return 2 * self.num_layers + 2

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        near = neighborhood(edge_index, x.size(0)).relation("undirected")
        far = two_hop(edge_index, x.size(0))
        r = self.encoder(x)
        rounds = [r.relu() if self.relu else r]
        for _ in range(self.num_layers):
            both = [aggregate(rounds[-1], hood, "sym") for hood in (near, far)]
            rounds.append(torch.cat(both, dim=-1))
        return self.head(drop(torch.cat(rounds, dim=-1), self.dropout, self.training)), []
