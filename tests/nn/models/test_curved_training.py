"""What the models of curved spaces have in common: training in float32 stays finite."""

import math

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import load, split_links, split_masks
from argnn.nn import MODELS, LinkModel
from argnn.train import LinkPrediction, NodeClassification, TrainConfig, fit

CURVED = {
    "hgcn": {},
    "hgat": {},
    "hgat learned": {"attention": "learned"},
    "hgcn attention": {"attention": True},
    "kappa-gcn": {},
    "kappa-gcn spherical": {"curvature": 0.9},
    "kappa-gcn hyperbolic": {"curvature": -0.9},
    "kappa-gcn product": {"factors": 2},
    "q-gcn": {},
    "q-gcn mixed": {"time": 4},
    "q-gcn sphere": {"time": 64},
}
WIDTH = 64
#: Near the rim of the ball, large steps take longer.
SMALL_STEPS = {"kappa-gcn hyperbolic": 0.02}
every_case = pytest.mark.parametrize("case", CURVED)


@pytest.fixture(scope="module")
def texas(benchmark_root) -> Data:
    return load("texas", root=benchmark_root)


def build(case, in_channels, out_channels, **options):
    torch.manual_seed(0)
    options = {"dropout": 0.0, **CURVED[case], **options}
    return MODELS[case.split()[0]](in_channels, WIDTH, out_channels, **options)


def assert_finite(model):
    for name, parameter in model.named_parameters():
        assert parameter.isfinite().all(), name
        assert parameter.grad.isfinite().all(), name


@every_case
def test_fifty_epochs_on_texas_learn_the_training_nodes(case, texas):
    train, val, _ = split_masks(texas, 0)
    task = NodeClassification(texas.y, train, val)
    model = build(case, texas.x.size(1), texas.class_count)
    lr = SMALL_STEPS.get(case, 0.05)
    config = TrainConfig(epochs=50, lr=lr, weight_decay=0.0, evaluate_every=50)
    history = fit(model, texas, task, config).history
    assert all(math.isfinite(record.gradient_norm) for record in history)
    assert history[-1].task_loss < 0.1
    assert_finite(model)


@pytest.mark.parametrize(
    "case", ["hgcn", "hgat", "kappa-gcn", "kappa-gcn spherical", "q-gcn mixed"]
)
def test_links_of_texas_are_learned(case, texas):
    split = split_links(texas.edge_index, texas.x.size(0), "85/5/10", 0)
    graph = Data(x=texas.x, edge_index=split.edge_index)
    task = LinkPrediction(split.train, split.val, split.val_negatives, texas.x.size(0))
    kind = MODELS[case.split()[0]]
    encoder = build(case, texas.x.size(1), WIDTH, **kind.link_options)
    model = LinkModel(encoder, kind.link_decoder)
    config = TrainConfig(epochs=20, lr=0.02, weight_decay=0.0, evaluate_every=20)
    history = fit(model, graph, task, config).history
    assert all(math.isfinite(record.gradient_norm) for record in history)
    assert history[-1].task_loss < 0.9 * history[0].task_loss
    assert_finite(model)


@pytest.mark.parametrize("case", ["hgcn", "kappa-gcn", "q-gcn"])
def test_recordable_model_never_asks_for_the_values_of_a_tensor(case, monkeypatch):
    graph = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    x = torch.rand(5, 4)
    model = build(case, 4, 3, dropout=0.5)
    assert model.recordable
    model(x, graph).sum().backward()  # the graph is prepared here

    def refused(*_):
        raise AssertionError("waits for the device")

    for name in ("item", "tolist", "numpy", "cpu", "nonzero", "__bool__", "__int__", "__float__"):
        monkeypatch.setattr(Tensor, name, refused)
    loss = model(x, graph).square().sum()
    loss.backward()


def test_models_whose_sums_wait_are_not_recorded():
    assert not build("hgat", 4, 3).recordable
    assert not build("hgcn attention", 4, 3).recordable


@every_case
def test_bfloat16_products_give_about_the_same(case):
    graph = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    x = torch.rand(5, 4)
    model = build(case, 4, 3).eval()
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(x, graph)
    torch.testing.assert_close(rough.float(), model(x, graph), rtol=0.1, atol=0.05)
