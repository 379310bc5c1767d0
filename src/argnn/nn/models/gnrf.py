"""Graph neural Ricci flow."""

from torch import Tensor, nn
from torch_geometric.nn import Linear

from argnn.errors import require
from argnn.functional.curvature_flow import three_eighths_step
from argnn.functional.dropout import dropout as drop
from argnn.functional.neighborhood import Edges
from argnn.nn.conv.curvature_field import CurvatureField
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, UNSCALED_ROWS, AbstractNodeModel


class GNRF(AbstractNodeModel):
    r"""The graph neural Ricci flow of Chen et al.

    A linear map with activation, the flow of :class:`~argnn.nn.conv.curvature_field.CurvatureField`
    for some ``time``, and a linear map of the result.

    The method's own code names an implicit solver, which in fact takes one Runge-Kutta step. The
    flow here takes ``num_layers`` of these steps.

    Args:
        hidden_channels: Width of the flow.
        num_layers: Number of steps that the time is divided into.
        dropout: Dropout before every linear map.
        time: Duration of the flow; no node moves farther than this number.
        batch_norm: Whether the hidden features are normalised over the nodes before the flow.
        channel_curvature: Whether an edge has one curvature per channel, instead of one in all.
    """

    citation = "Chen et al.: Graph neural Ricci flow, ICLR 2025"
    takes_edge_weight = True
    space = "Euclidean, flow of directions"
    search_space = {
        **EUCLIDEAN_SEARCH_SPACE,
        "hidden_channels": [64, 128, 256],
        "time": [0.1, 0.5, 1.0, 2.0, 5.0],
        "batch_norm": [True, False],
    }
    link_options = UNSCALED_ROWS

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        *,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        time: float = 1.0,
        batch_norm: bool = True,
        channel_curvature: bool = True,
        normalize_input: bool = True,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        require(time >= 0, "time", "not negative", time)
        self.dropout, self.time = dropout, time
        dropped = dropout if input_dropout is None else input_dropout
        self.encoder = InputLinear(
            in_channels, hidden_channels, dropout=dropped, normalize=normalize_input
        )
        self.norm = nn.BatchNorm1d(hidden_channels) if batch_norm else None
        self.field = CurvatureField(
            hidden_channels, channel_curvature=channel_curvature, dropout=dropout
        )
        self.head = Linear(hidden_channels, out_channels)

    def reach(self) -> int:
        """How many hops around a node its scores depend on: each of the four stages needs two."""
        return 8 * self.num_layers

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        h = self.encoder(x).relu()
        h = h if self.norm is None else self.norm(h)
        h = self.flow(h, edge_index)
        return self.head(drop(h.relu(), self.dropout, self.training)), []

    def flow(self, h: Tensor, edge_index: Edges) -> Tensor:
        """The end of the flow that starts from features ``[N, hidden_channels]``."""
        for _ in range(self.num_layers):
            h = three_eighths_step(
                lambda place: self.field(place, edge_index), h, self.time / self.num_layers
            )
        return h
