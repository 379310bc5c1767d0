"""Scores of pairs of nodes from their embeddings."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import MLP
from torch_geometric.nn.inits import reset

from argnn.functional import mean_metric, metric_distance
from argnn.functional.neighborhood import Edges
from argnn.nn.models.base import AbstractNodeModel
from argnn.registry import resolve


class AbstractDecoder(nn.Module, ABC):
    """Scores pairs of nodes; the order within a pair does not matter.

    Args:
        encoder: The model whose embeddings are scored.
    """

    def __init__(self, encoder: AbstractNodeModel) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, a: Tensor, b: Tensor, metric: Tensor | None) -> Tensor:
        """Logit of each pair, ``[P]``.

        Args:
            a: Embeddings of the first nodes, ``[P, D]``.
            b: Embeddings of the second nodes, ``[P, D]``.
            metric: Mean of the two nodes' metrics in the last layer, ``[P, D]``, or factored,
                ``[P, 1 + R, D]``; None if the model has no metric.
        """

    def products(self, a: Tensor, b: Tensor) -> Tensor | None:
        """Logits of all pairs, ``[M, N]``, of ``[M, D]`` and ``[N, D]`` by a product of matrices.

        None where the decoder has no such form.
        """
        return None

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for part in self.children():
            reset(part)


class DotProduct(AbstractDecoder):
    r"""Inner product :math:`\langle z_i, z_j \rangle`."""

    def forward(self, a: Tensor, b: Tensor, metric: Tensor | None) -> Tensor:
        """Logit of each pair, ``[P]``."""
        return (a * b).sum(-1)

    def products(self, a: Tensor, b: Tensor) -> Tensor:
        """Logits of all pairs, ``[M, N]``."""
        return a @ b.t()


class Cosine(AbstractDecoder):
    r"""Cosine of the angle times a learned scale, as cosines alone would bound the logits."""

    def __init__(self, encoder: AbstractNodeModel) -> None:
        super().__init__(encoder)
        self.scale = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def forward(self, a: Tensor, b: Tensor, metric: Tensor | None) -> Tensor:
        """Logit of each pair, ``[P]``."""
        return self.scale * F.cosine_similarity(a, b, dim=-1)

    def products(self, a: Tensor, b: Tensor) -> Tensor:
        """Logits of all pairs, ``[M, N]``."""
        return self.scale * (F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t())

    def reset_parameters(self) -> None:
        """Start from a scale that turns a cosine of 1 into a probability of 0.99."""
        nn.init.constant_(self.scale, 5.0)


class _FermiDirac(nn.Module):
    r"""Logit :math:`(r - d^2) / t` of a squared distance, with learned :math:`r` and :math:`t`."""

    def __init__(self) -> None:
        super().__init__()
        self.radius = nn.Parameter(torch.empty(()))
        self.log_temperature = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.radius, 2.0)
        nn.init.zeros_(self.log_temperature)

    def forward(self, squared_distance: Tensor) -> Tensor:
        return (self.radius - squared_distance) * torch.exp(-self.log_temperature)


class Distance(AbstractDecoder):
    r"""Fermi-Dirac decoder on the distance in the encoder's space.

    .. math:: (r - d(z_i, z_j)^2) / t

    Starts from :math:`r = 2` and :math:`t = 1`, the values that HGCN keeps fixed.
    """

    def __init__(self, encoder: AbstractNodeModel) -> None:
        super().__init__(encoder)
        # In a list, so that the encoder's parameters are not counted twice.
        self._encoder = [encoder]
        self.fermi_dirac = _FermiDirac()

    def forward(self, a: Tensor, b: Tensor, metric: Tensor | None) -> Tensor:
        """Logit of each pair, ``[P]``."""
        return self.fermi_dirac(self._encoder[0].squared_distance(a, b))


class MetricDistance(AbstractDecoder):
    r"""Fermi-Dirac decoder on the geodesic distance under the learned metrics (:eq:`geodesic`).

    .. math::
        (r - \tfrac{1}{D}\, d_{\mathbf{G}_{ij}}(z_i, z_j)^2) / t,
        \qquad \mathbf{g}_{ij} = (\mathbf{g}_i + \mathbf{g}_j) / 2

    with the metrics of the last layer. The mean of the two metrics makes the score symmetric.
    Because of the division by the width :math:`D`, scores at the start do not depend on it.
    """

    def __init__(self, encoder: AbstractNodeModel) -> None:
        super().__init__(encoder)
        self.fermi_dirac = _FermiDirac()

    def forward(self, a: Tensor, b: Tensor, metric: Tensor | None) -> Tensor:
        """Logit of each pair, ``[P]``."""
        if metric is None:
            raise ValueError("the decoder 'metric' needs a model that learns a metric")
        if metric.size(-1) != a.size(-1):
            need = f"embeddings as wide as the metric, {metric.size(-1)} (got {a.size(-1)})"
            raise ValueError(f"the decoder 'metric' needs {need}")
        squared = metric_distance(a, b, metric).square() / a.size(-1)
        return self.fermi_dirac(squared)


class HadamardMLP(AbstractDecoder):
    r"""Multilayer perceptron on the product :math:`z_i \circ z_j`."""

    def __init__(self, encoder: AbstractNodeModel) -> None:
        super().__init__(encoder)
        width = encoder.out_channels
        self.net = MLP([width, width, 1], norm=None)

    def forward(self, a: Tensor, b: Tensor, metric: Tensor | None) -> Tensor:
        """Logit of each pair, ``[P]``."""
        return self.net(a * b).squeeze(-1)


#: Every decoder by the name the command line uses.
DECODERS: dict[str, type[AbstractDecoder]] = {
    "dot": DotProduct,
    "cosine": Cosine,
    "distance": Distance,
    "metric": MetricDistance,
    "mlp": HadamardMLP,
}


class LinkModel(AbstractNodeModel):
    """A model as encoder, and a decoder for pairs of its embeddings.

    Args:
        encoder: The model; its outputs are embeddings instead of scores.
        decoder: Name of a decoder in :data:`DECODERS`.

    Example:
        >>> from argnn.nn import GCN
        >>> model = LinkModel(GCN(4, 8, 8), "dot").eval()
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> embedding = model(torch.eye(2, 4), pair)
        >>> model.pair_scores(embedding, torch.tensor([[0], [1]])).shape
        torch.Size([1])
    """

    def __init__(self, encoder: AbstractNodeModel, decoder: str) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = resolve(decoder, DECODERS, "decoder")(encoder)
        self.in_channels, self.out_channels = encoder.in_channels, encoder.out_channels
        self.hidden_channels, self.recordable = encoder.hidden_channels, encoder.recordable
        self.takes_edge_weight = encoder.takes_edge_weight

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Embeddings, with the metric of the last layer appended, and all metrics.

        Pairs are scored from these embeddings alone: ``[N, D]`` without metrics, ``[N, D + D']`` if
        the last metric has ``D'`` numbers.
        """
        points, metrics = self.encoder.forward_with_metric(x, edge_index)
        if not metrics:
            return points, metrics
        # A part of a graph may have the metrics of more nodes than it computes points of.
        return joined(points, metrics[-1][: points.size(0)]), metrics

    def pair_scores(self, embedding: Tensor, pairs: Tensor) -> Tensor:
        """Logit of each pair, ``[P]``, for ``pairs`` ``[2, P]``."""
        width = self.out_channels
        # Not index_select: on a GPU, the order in which its gradient is summed changes.
        a, b = (F.embedding(nodes, embedding) for nodes in pairs)
        metric = None
        if embedding.size(-1) > width:
            metric = mean_metric(self._metric(a[:, width:]), self._metric(b[:, width:]))
        return self.decoder(a[:, :width], b[:, :width], metric)

    def product_scores(self, a: Tensor, b: Tensor) -> Tensor | None:
        """As ``products`` of the decoder, for embeddings of :meth:`forward_with_metric`."""
        return self.decoder.products(a[:, : self.out_channels], b[:, : self.out_channels])

    def _metric(self, rows: Tensor) -> Tensor:
        """The metrics of some nodes from the last columns of their embeddings."""
        size = self.encoder.metric_size
        return rows if size is None or len(size) == 1 else rows.view(-1, *size)

    def positive_parameters(self) -> list[nn.Parameter]:
        """Those of the encoder."""
        return self.encoder.positive_parameters()

    def constrain(self) -> None:
        """Bring the parameters of the encoder back into their bounds."""
        self.encoder.constrain()

    def metric_parameters(self) -> list[nn.Parameter]:
        """The metric parameters of the encoder."""
        return self.encoder.metric_parameters()

    def parameter_groups(self) -> dict[str, str]:
        """The groups of the encoder; the decoder is a head."""
        groups = {
            f"encoder.{name}": group for name, group in self.encoder.parameter_groups().items()
        }
        decoder = {f"decoder.{name}": "encoder_head" for name, _ in self.decoder.named_parameters()}
        return {**groups, **decoder}

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Let the encoder store what it needs to know about the graph."""
        self.encoder.fit_to_graph(edge_index, num_nodes)

    def node_parameters(self) -> list[nn.Parameter]:
        """Those of the encoder."""
        return self.encoder.node_parameters()

    def reach(self) -> int | None:
        """How many hops around a node its embedding depends on."""
        return self.encoder.reach()


def joined(points: Tensor, metric: Tensor) -> Tensor:
    """Embeddings ``[N, D]`` with the numbers of a metric as further columns."""
    return torch.cat([points, metric.flatten(1)], dim=-1)


def encoder_of(model: AbstractNodeModel) -> AbstractNodeModel:
    """The model itself, or what makes the embeddings of a predictor of links."""
    return model.encoder if isinstance(model, LinkModel) else model
