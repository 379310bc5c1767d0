"""The models that use Ollivier-Ricci curvature, trained in single precision on Texas."""

import math

import pytest
import torch
from torch_geometric.data import Data

from argnn.data import load, split_links, split_masks
from argnn.nn import MODELS, LinkModel
from argnn.train import LinkPrediction, NodeClassification, TrainConfig, fit

WIDTH = 64
OPTIONS = {
    "curvdrop": {},
    "curvdrop, deep": {"num_layers": 8, "edge_dropout": 0.2},
    "cusp": {},
    "cusp, hyperbolic": {"signature": "hhhh"},
    "cusp, spherical": {"signature": "ss"},
}


@pytest.fixture(scope="module")
def texas(benchmark_root) -> Data:
    return load("texas", root=benchmark_root)


def build(case, in_channels, out_channels):
    torch.manual_seed(0)
    kind = MODELS[case.split(",")[0]]
    return kind(in_channels, WIDTH, out_channels, **{"dropout": 0.0, **OPTIONS[case]})


def assert_finite(model, history):
    assert all(math.isfinite(record.gradient_norm) for record in history)
    assert all(p.isfinite().all() and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("case", OPTIONS)
def test_fifty_epochs_on_texas_learn_the_training_nodes(case, texas):
    train, val, _ = split_masks(texas, 0)
    model = build(case, texas.x.size(1), texas.class_count)
    task = NodeClassification(texas.y, train, val)
    config = TrainConfig(epochs=50, lr=0.03, weight_decay=0.0, evaluate_every=50)
    history = fit(model, texas, task, config).history
    assert min(record.task_loss for record in history) < 0.1
    assert_finite(model, history)


@pytest.mark.parametrize("case", ["curvdrop", "cusp"])
def test_links_of_texas_are_learned(case, texas):
    nodes = texas.x.size(0)
    split = split_links(texas.edge_index, nodes, "85/5/10", 0)
    task = LinkPrediction(split.train, split.val, split.val_negatives, nodes)
    encoder = build(case, texas.x.size(1), WIDTH)
    model = LinkModel(encoder, encoder.link_decoder)
    # Not faster: large steps push products of embeddings to zero, where they stay.
    config = TrainConfig(epochs=50, lr=0.005, weight_decay=0.0, evaluate_every=50)
    graph = Data(x=texas.x, edge_index=split.edge_index)
    history = fit(model, graph, task, config).history
    assert min(record.task_loss for record in history[-10:]) < 0.95 * history[0].task_loss
    assert_finite(model, history)


@pytest.mark.parametrize("case", OPTIONS)
def test_bfloat16_products_give_about_the_same(case):
    graph = torch.tensor([[0, 1, 2, 3, 1, 2], [1, 0, 3, 2, 2, 1]])
    x = torch.rand(5, 4, generator=torch.Generator().manual_seed(0))
    model = build(case, 4, 3).eval()
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(x, graph)
        loss = model.train()(x, graph).square().sum()
    loss.backward()
    torch.testing.assert_close(rough.float(), model.eval()(x, graph), rtol=0.1, atol=0.05)
    assert all(p.grad.isfinite().all() for p in model.parameters())
