"""What the Euclidean models have in common: training in float32 learns and stays finite."""

import math

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import load, split_links, split_masks
from argnn.nn import LinkModel
from argnn.nn.models import FAGCN, GAT, GCN, GNRF, GPRGNN, H2GCN, GraphSAGE
from argnn.nn.models.linkx import LINKX
from argnn.train import LinkPrediction, NodeClassification, TrainConfig, fit

MODELS = {
    "gcn": (GCN, {}),
    "gat": (GAT, {}),
    "graphsage": (GraphSAGE, {}),
    "h2gcn": (H2GCN, {}),
    "h2gcn-1": (H2GCN, {"num_layers": 1}),
    "gprgnn": (GPRGNN, {"propagation_dropout": 0.0}),
    "fagcn": (FAGCN, {}),
    "gnrf": (GNRF, {}),
    "gnrf scalar": (GNRF, {"channel_curvature": False, "batch_norm": False, "time": 0.5}),
    "linkx": (LINKX, {}),
}
RECORDABLE = ("gcn", "graphsage", "h2gcn", "gprgnn")
WIDTH = 64
every_case = pytest.mark.parametrize("case", MODELS)


@pytest.fixture(scope="module")
def texas(benchmark_root) -> Data:
    return load("texas", root=benchmark_root)


def build(case, in_channels, out_channels, **options):
    torch.manual_seed(0)
    kind, own = MODELS[case]
    return kind(in_channels, WIDTH, out_channels, **{"dropout": 0.0, **own, **options})


def assert_finite(model):
    for name, parameter in model.named_parameters():
        assert parameter.isfinite().all(), name
        assert parameter.grad.isfinite().all(), name


@every_case
def test_fifty_epochs_on_texas_learn_the_training_nodes(case, texas):
    train, val, _ = split_masks(texas, 0)
    task = NodeClassification(texas.y, train, val)
    model = build(case, texas.x.size(1), texas.class_count)
    config = TrainConfig(epochs=50, lr=0.05, weight_decay=0.0)
    history = fit(model, texas, task, config).history
    assert all(math.isfinite(record.gradient_norm) for record in history)
    assert min(record.task_loss for record in history) < 0.1
    assert_finite(model)


@every_case
def test_links_of_texas_are_learned(case, texas):
    split = split_links(texas.edge_index, texas.x.size(0), "85/5/10", 0)
    graph = Data(x=texas.x, edge_index=split.edge_index)
    task = LinkPrediction(split.train, split.val, split.val_negatives, texas.x.size(0))
    encoder = build(case, texas.x.size(1), WIDTH, **MODELS[case][0].link_options)
    model = LinkModel(encoder, encoder.link_decoder)
    # Not faster: products of embeddings that start large are first pushed to zero, and with
    # large steps they stay there.
    history = fit(model, graph, task, TrainConfig(epochs=50, lr=0.005, weight_decay=0.0)).history
    assert all(math.isfinite(record.gradient_norm) for record in history)
    assert min(record.task_loss for record in history[-10:]) < 0.95 * history[0].task_loss
    assert_finite(model)


@pytest.mark.parametrize("case", RECORDABLE)
def test_recordable_model_never_asks_for_the_values_of_a_tensor(case, monkeypatch):
    graph = torch.tensor([[0, 1, 2, 3, 1, 2], [1, 0, 3, 2, 2, 1]])
    x = torch.rand(5, 4)
    model = build(case, 4, 3, dropout=0.5)
    assert model.recordable
    model(x, graph).sum().backward()  # the graph is prepared here

    def refused(*_):
        raise AssertionError("waits for the device")

    for name in ("item", "tolist", "numpy", "cpu", "nonzero", "__bool__", "__int__", "__float__"):
        monkeypatch.setattr(Tensor, name, refused)
    model(x, graph).square().sum().backward()


@pytest.mark.parametrize("case", [case for case in MODELS if case not in RECORDABLE])
def test_models_whose_sums_wait_are_not_recorded(case):
    assert build(case, 4, 3).recordable == (case == "h2gcn-1")


@every_case
def test_bfloat16_products_give_about_the_same(case):
    graph = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    x = torch.rand(5, 4, generator=torch.Generator().manual_seed(0))
    model = build(case, 4, 3).eval()
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(x, graph)
    torch.testing.assert_close(rough.float(), model(x, graph), rtol=0.1, atol=0.05)
