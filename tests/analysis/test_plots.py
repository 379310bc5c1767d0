import numpy as np
import pytest
import torch
from PIL import Image

from argnn.analysis.plots import geometry_figure, layout
from argnn.data import load
from argnn.nn import ARGNN


@pytest.mark.parametrize("name", ["mixed", "digits"])
def test_geometry_figure_is_a_picture_with_something_on_it(name, tmp_path):
    graph = load(name)
    torch.manual_seed(0)
    model = ARGNN(graph.num_features, 8, graph.class_count, num_layers=1, metric_spread=1.0)
    path = tmp_path / "geometry.png"
    statistics = geometry_figure(graph, model, path)
    assert statistics.log_volume.shape == (graph.num_nodes,)
    pixels = np.asarray(Image.open(path).convert("RGB"))
    assert pixels.shape[0] > 500
    assert pixels.std() > 10


def test_layout_is_the_same_for_the_same_seed():
    graph = load("mixed")
    first = layout(graph, seed=1)
    assert first.shape == (graph.num_nodes, 2)
    assert np.array_equal(first, layout(graph, seed=1))
    assert not np.array_equal(first, layout(graph, seed=2))
