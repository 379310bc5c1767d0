"""Graph neural Ricci flow."""

from torch import Tensor, nn
from torch_geometric.nn import Linear

from argnn.checks import require
from argnn.functional.curvature_flow import three_eighths_step
from argnn.functional.dropout import dropout as drop
from argnn.nn.conv.curvature_field import CurvatureField
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, ROWS_AS_THEY_ARE, AbstractNodeModel


class GNRF(AbstractNodeModel):
    r"""The graph neural Ricci flow of Chen et al.

    A linear map with activation, the flow of :class:`~argnn.nn.conv.curvature_field.CurvatureField`
    for a time :math:`T`, and a linear map of what that leads to.

    The method's own code asks an implicit solver for the flow, which takes a single step of the
    Runge-Kutta method instead; that step is taken here, and ``num_layers`` of them where more
    are wanted.

    Args:
        in_channels: Size of the node features.
        hidden_channels: Width of the flow.
        out_channels: Number of scores per node.
        num_layers: Number of steps that the time is divided into.
        dropout: Dropout before every linear map.
        input_dropout: Dropout on the node features; as ``dropout`` where it is None.
        time: How long the flow runs; no node moves farther than that.
        batch_norm: Whether the hidden features are normalised over the nodes before the flow.
        channel_curvature: Whether an edge has a curvature for every channel, else only one.
        normalize_input: Whether each row of the features is scaled to sum one, as in the
            method's own code.
    """

    citation = "Chen et al.: Graph neural Ricci flow, ICLR 2025"
    space = "Euclidean, flow of directions"
    search_space = {
        **EUCLIDEAN_SEARCH_SPACE,
        "hidden_channels": [64, 128, 256],
        "time": [0.1, 0.5, 1.0, 2.0, 5.0],
        "batch_norm": [True, False],
    }

    link_options = ROWS_AS_THEY_ARE

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
        self.encoder = InputLinear(
            in_channels,
            hidden_channels,
            dropout=dropout if input_dropout is None else input_dropout,
            normalize=normalize_input,
        )
        self.norm = nn.BatchNorm1d(hidden_channels) if batch_norm else None
        self.field = CurvatureField(
            hidden_channels, channel_curvature=channel_curvature, dropout=dropout
        )
        self.head = Linear(hidden_channels, out_channels)

    def reach(self) -> int:
        """Hops that scores depend on: a step is four speeds, of two hops each."""
        return 8 * self.num_layers

    def forward_with_metric(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        h = self.encoder(x).relu()
        h = h if self.norm is None else self.norm(h)
        h = self.flow(h, edge_index)
        return self.head(drop(h.relu(), self.dropout, self.training)), []

    def flow(self, h: Tensor, edge_index: Tensor) -> Tensor:
        """Where the flow leads to from features ``[N, hidden_channels]``."""
        for _ in range(self.num_layers):
            h = three_eighths_step(
                lambda place: self.field(place, edge_index), h, self.time / self.num_layers
            )
        return h
