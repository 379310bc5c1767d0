import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from argnn.analysis.figures import geometry_figure
from argnn.analysis.figures.metric import layout
from argnn.data import load
from argnn.nn import ARGNN

from .figure_files import has_something_on_it

pytest.importorskip("igraph", reason="the layout needs igraph")


@pytest.mark.parametrize("name", ["mixed", "digits"])
def test_geometry_figure_is_a_picture_with_something_on_it(name):
    graph = load(name).subgraph(torch.arange(0, 1600, 4))  # a layout takes time like nodes squared
    torch.manual_seed(0)
    model = ARGNN(graph.num_features, 8, graph.class_count, num_layers=1, metric_spread=1.0)
    assert has_something_on_it(geometry_figure(graph, model))


def test_layout_is_the_same_for_the_same_seed():
    nodes = torch.arange(40)
    ring = Data(edge_index=torch.stack([nodes, (nodes + 1) % 40]), num_nodes=40)
    first = layout(ring, seed=1)
    assert first.shape == (40, 2)
    assert np.array_equal(first, layout(ring, seed=1))
    assert not np.array_equal(first, layout(ring, seed=2))
