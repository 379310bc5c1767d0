"""What all rivals have in common: training in float32 learns and stays finite."""

import math
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import load, split_links, split_masks
from argnn.kernels import unchanged
from argnn.nn import MODELS, LinkModel
from argnn.train import LinkPrediction, NodeClassification, TrainConfig, fit

WIDTH = 64
GRAPH = torch.tensor([[0, 1, 2, 3, 1, 2], [1, 0, 3, 2, 2, 1]])


@dataclass(frozen=True)
class Case:
    """A model with some options; products of embeddings stay at zero after large steps."""

    options: dict = field(default_factory=dict)
    lr: float = 0.05
    link_lr: float | None = 0.005


# Distances are learned from in larger steps than products. Near the rim of the ball, and with
# curvatures of edges, steps are smaller.
CASES = {
    "gcn": Case(),
    "gat": Case(),
    "graphsage": Case(),
    "h2gcn": Case(),
    "h2gcn, one round": Case({"num_layers": 1}),
    "gprgnn": Case({"propagation_dropout": 0.0}),
    "fagcn": Case(),
    "gnrf": Case(),
    "gnrf, scalar": Case({"channel_curvature": False, "batch_norm": False, "time": 0.5}),
    "linkx": Case(),
    "hgcn": Case(link_lr=0.02),
    "hgcn, attention": Case({"attention": True}, link_lr=None),
    "hgat": Case(link_lr=0.02),
    "hgat, learned": Case({"attention": "learned"}, link_lr=None),
    "kappa-gcn": Case(link_lr=0.02),
    "kappa-gcn, spherical": Case({"curvature": 0.9}, link_lr=0.02),
    "kappa-gcn, hyperbolic": Case({"curvature": -0.9}, lr=0.02, link_lr=None),
    "kappa-gcn, product": Case({"factors": 2}, link_lr=None),
    "q-gcn": Case(link_lr=None),
    "q-gcn, mixed": Case({"time": 4}, link_lr=0.02),
    "q-gcn, sphere": Case({"time": WIDTH}, link_lr=None),
    "curvdrop": Case(lr=0.03),
    "curvdrop, deep": Case({"num_layers": 8, "edge_dropout": 0.2}, lr=0.03, link_lr=None),
    "cusp": Case(lr=0.03),
    "cusp, hyperbolic": Case({"signature": "hhhh"}, lr=0.03, link_lr=None),
    "cusp, spherical": Case({"signature": "ss"}, lr=0.03, link_lr=None),
}
#: Every way in which Python gets at the values of a tensor.
WAITING = ("item", "tolist", "numpy", "cpu", "nonzero", "__bool__", "__int__", "__float__")
RECORDABLE = ("gcn", "graphsage", "h2gcn", "gprgnn", "hgcn", "kappa-gcn", "q-gcn")
every_case = pytest.mark.parametrize("case", CASES)
#: Further options of a model that is trained anyway.
more_in_torture = [
    pytest.param(case, marks=pytest.mark.torture) if "," in case else case for case in CASES
]


@pytest.fixture(scope="module")
def texas(benchmark_root) -> Data:
    return load("texas", root=benchmark_root)


def kind_of(case):
    return MODELS[case.split(",")[0]]


def build(case, in_channels, out_channels, **options):
    torch.manual_seed(0)
    options = {"dropout": 0.0, **CASES[case].options, **options}
    return kind_of(case)(in_channels, WIDTH, out_channels, **options)


def assert_finite(model, history):
    assert all(math.isfinite(record.gradient_norm) for record in history)
    for name, parameter in model.named_parameters():
        assert parameter.isfinite().all(), name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("case", more_in_torture)
def test_fifty_epochs_on_texas_learn_the_training_nodes(case, texas):
    train, val, _ = split_masks(texas, 0)
    task = NodeClassification(texas.y, train, val)
    model = build(case, texas.x.size(1), texas.class_count)
    config = TrainConfig(epochs=50, lr=CASES[case].lr, weight_decay=0.0, evaluate_every=50)
    history = fit(model, texas, task, config).history
    # Large steps and edges that are dropped make single losses go up and down. The shares of the
    # classes alone reach 0.7 of the first loss.
    assert min(record.task_loss for record in history) < 0.5 * history[0].task_loss
    assert_finite(model, history)


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case].link_lr])
def test_links_of_texas_are_learned(case, texas):
    split = split_links(texas.edge_index, texas.x.size(0), "85/5/10", 0)
    graph = Data(x=texas.x, edge_index=split.edge_index)
    task = LinkPrediction(split.train, split.val, split.val_negatives, texas.x.size(0))
    encoder = build(case, texas.x.size(1), WIDTH, **kind_of(case).link_options)
    model = LinkModel(encoder, encoder.link_decoder)
    lr = CASES[case].link_lr
    config = TrainConfig(epochs=50, lr=lr, weight_decay=0.0, evaluate_every=50)
    history = fit(model, graph, task, config).history
    # The negatives are drawn anew in every epoch, so that single losses go up and down.
    assert min(record.task_loss for record in history[-10:]) < 0.9 * history[0].task_loss
    assert_finite(model, history)


@pytest.mark.parametrize("case", RECORDABLE)
def test_recordable_model_never_asks_for_the_values_of_a_tensor(case, monkeypatch):
    x = torch.rand(5, 4)
    model = build(case, 4, 3, dropout=0.5)

    def refused(*_):
        raise AssertionError("waits for the device")

    with unchanged(x, GRAPH):  # as in a training
        model(x, GRAPH).sum().backward()  # the graph is prepared here
        with monkeypatch.context() as patch:
            for name in WAITING:
                patch.setattr(Tensor, name, refused)
            model(x, GRAPH).square().sum().backward()


@every_case
def test_only_models_that_never_wait_are_recorded(case):
    gated = case == "hgcn, attention"
    assert build(case, 4, 3).recordable == (case.split(",")[0] in RECORDABLE and not gated)


@every_case
def test_bfloat16_products_give_about_the_same(case):
    x = torch.rand(5, 4, generator=torch.Generator().manual_seed(0))
    model = build(case, 4, 3)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model.eval()(x, GRAPH)
        loss = model.train()(x, GRAPH).square().sum()
    loss.backward()
    torch.testing.assert_close(rough.float(), model.eval()(x, GRAPH), rtol=0.1, atol=0.05)
    assert all(p.grad.isfinite().all() for p in model.parameters())
