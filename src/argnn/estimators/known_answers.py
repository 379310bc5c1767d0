"""What is known of the nodes of a graph besides the features: labels, and their part in training.

A model never computes from it. It is for tables, pages and scores.
"""

import copy
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.splits import MASK_NAMES

#: What a table calls the parts of training.
PART_NAMES = ("train", "val", "test")

Masks = Mapping[str, Tensor]


def with_answers(graph: Data, masks: Masks, rule: str, answers: Mapping[str, Any]) -> Data:
    """A graph with labels or targets, and with one split.

    Args:
        graph: Features and edges.
        masks: Nodes of each part, by the names of a graph; one that is missing is empty.
        rule: Where the split comes from, in words.
        answers: Attributes of the labels or targets.
    """
    told = copy.copy(graph)
    nobody = torch.zeros(graph.x.size(0), dtype=torch.bool)
    for name in MASK_NAMES:
        told[name] = masks.get(name, nobody).unsqueeze(1)
    told.split_rule = rule
    for name, value in answers.items():
        told[name] = value
    return told


def fitted_masks(train: Tensor, val: Tensor, known: Tensor, own: Masks) -> dict[str, Tensor]:
    """The parts of a fit; test nodes are labelled, and not read by it.

    Where the graph has test nodes, ``own``, only these are.
    """
    test = known & ~train & ~val & own.get("test_mask", known)
    return dict(zip(MASK_NAMES, (train, val, test), strict=True))


def remembered_masks(graph: Data, fitted: Data | None, rule: str, nodes: int) -> dict[str, Tensor]:
    """The parts that the nodes of a graph had in training; none where that is not known.

    Args:
        graph: The graph, as the model reads it.
        fitted: That of the fit; None for a model from disk.
        rule: The split of the training, in words.
        nodes: How many nodes its graph had.
    """
    if fitted is not None:
        same = graph.get("node_ids") == fitted.get("node_ids") and torch.equal(graph.x, fitted.x)
        return {name: fitted[name][:, 0] for name in MASK_NAMES} if same else {}
    # Only a split that belongs to the graph, such as those of benchmarks, is the same again.
    own = re.fullmatch(re.escape(str(graph.get("split_rule"))) + r"(?:; split (\d+))?", rule)
    mask = graph.get("train_mask")
    if own is None or mask is None or not mask.any() or graph.x.size(0) != nodes:
        return {}
    split = int(own[1] or 0)
    return {name: graph[name][:, split] for name in MASK_NAMES} if split < mask.size(1) else {}


def part_names(graph: Data) -> list[str]:
    """The part of each node in training, ``"none"`` where it has none."""
    names = ["none"] * graph.x.size(0)
    for part, mask in zip(PART_NAMES, MASK_NAMES, strict=True):
        for node in graph[mask][:, 0].nonzero().flatten().tolist():
            names[node] = part
    return names
