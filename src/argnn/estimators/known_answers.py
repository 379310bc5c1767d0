"""What is known of the nodes of a graph besides the features: labels, and their part in training.

A model never computes from it. It is for tables, pages and scores.
"""

import copy
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


def part_names(graph: Data) -> list[str]:
    """The part of each node in training, ``"none"`` where it has none."""
    names = ["none"] * graph.x.size(0)
    for part, mask in zip(PART_NAMES, MASK_NAMES, strict=True):
        for node in graph[mask][:, 0].nonzero().flatten().tolist():
            names[node] = part
    return names
