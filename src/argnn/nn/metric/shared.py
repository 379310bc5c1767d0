"""A metric that groups of similar nodes share."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from argnn import functional as AF
from argnn.errors import require
from argnn.functional.clusters import clustered, nearest
from argnn.functional.neighborhood import Edges, neighborhood
from argnn.functional.structure import NUM_DESCRIPTORS, standardized
from argnn.nn.graph_statistics import (
    OF_DESCRIPTOR,
    GraphStatistics,
    descriptor_statistics,
    standard_descriptor,
)
from argnn.nn.metric.learned import LearnedMetric


class SharedMetric(LearnedMetric):
    r"""One metric for each of :math:`K` groups of similar nodes.

    The paper's remark for very large graphs: :math:`O(KD)` parameters for any number of nodes.
    Nodes are similar if their structural descriptors are. The groups are those of the k-means
    method on the training graph, where it is stored which descriptor is the centre of each. So a
    node of another graph has a group, too.

    Args:
        metric_channels: Size :math:`D` of the vectors that the metric measures.
        groups: Number :math:`K` of groups; some may have no node.
        **options: See :class:`~argnn.nn.LearnedMetric`.
    """

    switches = {
        **LearnedMetric.switches,
        "metric_groups": "groups",
        "metric_sharpness": "sharpness",
        "metric_clamp": "clamp",
    }

    def __init__(self, metric_channels: int, *, groups: int = 16, **options: Any) -> None:
        super().__init__(metric_channels, **options)
        require(groups >= 1, "groups", "positive", groups)
        require(self.init != "degree", "init of a shared metric", "not 'degree'", repr(self.init))
        self.groups = groups
        self.statistics = GraphStatistics(**OF_DESCRIPTOR, center=(0.0, (groups, NUM_DESCRIPTORS)))
        self.raw = nn.Parameter(torch.empty(groups, self.num_numbers))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Go back to the start, where all groups have the same metric."""
        self.statistics.reset_parameters()
        self.raw.copy_(self.drawn_raw().to(self.raw).expand_as(self.raw))

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Find the groups of the training graph."""
        if num_nodes == 0:
            return
        values = descriptor_statistics(edge_index, num_nodes)
        points = AF.structural_descriptor(edge_index, num_nodes)
        values["center"] = clustered(standardized(points, **values), self.groups)
        self.statistics.store(**values)

    def forward(self, h: Tensor, edge_index: Edges) -> Tensor:
        """Metrics, ``[N, *metric_size]``; directions of edges do not matter."""
        hood = neighborhood(edge_index, h.size(0))
        if self.training and not self.statistics.is_fitted:
            self.fit_to_graph(hood, h.size(0))
        return self.metric_of(F.embedding(self.group(h, hood), self.raw))

    def group(self, h: Tensor, edge_index: Edges) -> Tensor:
        """The group of each node, ``[N]``."""
        center = self.statistics.get_buffer("center")
        wide = center.new_empty(h.size(0), 0)
        points = standard_descriptor(self.statistics, wide, edge_index)
        return nearest(points, center).to(h.device)

    def extra_repr(self) -> str:
        """The number of groups."""
        return f"{self.metric_channels}, groups={self.groups}"
