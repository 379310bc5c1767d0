"""The example of the extending guide is a model like any other."""

import re
from pathlib import Path

import torch

from argnn.data import split_links
from argnn.nn import LinkModel
from argnn.train import LinkPrediction, NodeClassification, TrainConfig, fit

from .cases import two_blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"


def example():
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    exec(code, names)
    return names["MyMethod"]


def test_example_learns_classes_and_links():
    graph, config = two_blocks(), TrainConfig(epochs=30, lr=0.01)
    torch.manual_seed(0)
    model = example()(graph.x.size(1), 16, 2)
    task = NodeClassification(graph.y, graph.train_mask, graph.val_mask)
    assert fit(model, graph, task, config).val_score > 0.8

    links = split_links(graph.edge_index, graph.x.size(0), "80/5/15", seed=0)
    task = LinkPrediction(links.train, links.val, links.val_negatives, graph.x.size(0))
    graph.edge_index = links.edge_index
    predictor = LinkModel(example()(graph.x.size(1), 16, 16), "dot")
    history = fit(predictor, graph, task, config).history
    assert history[-1].task_loss < history[0].task_loss
