"""Everything that the page shows, as plain JSON values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis.explorer.packing import (
    Packed,
    pack_columns,
    pack_floats,
    pack_integers,
)
from argnn.analysis.geometry import field_nrmd, metric_statistics
from argnn.analysis.layers import Layer, learned_layers
from argnn.analysis.messages import Messages, layer_messages, ordered_pairs
from argnn.analysis.projection import project
from argnn.analysis.properties import clustering, degree, labels_of, local_homophily
from argnn.analysis.rewiring import rewire
from argnn.functional.neighborhood import neighborhood
from argnn.nn import AbstractNodeModel

# Metric entries of all layers together; one byte each keeps the page small.
_MOST_METRIC_ENTRIES = 7_000_000
_MOST_PAIRS_FOR_ALL_ROUNDS = 100_000
_ALL_ROUNDS, _FEW_ROUNDS = 100, 30


@dataclass(frozen=True)
class Subject:
    """What a page is about.

    Attributes:
        title: Name of the page.
        graph: The graph, on the CPU.
        model: The model whose geometry is shown, on the CPU.
        embedding: The vector of each node that is drawn, ``[N, D]``.
        probabilities: Of each class at each node, ``[N, C]``; None where no classes are predicted.
        class_names: Names of the classes.
        masks: Training, validation and test nodes, ``[N]`` each; None where there are none.
        overview: What is shown above the map: facts, scores, curves, notes.
        seed: Fixes drawing and rewiring.
    """

    title: str
    graph: Data
    model: AbstractNodeModel
    embedding: NDArray[Any]
    probabilities: NDArray[Any] | None
    class_names: Sequence[str]
    masks: tuple[Tensor, Tensor, Tensor] | None = None
    overview: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


def document(subject: Subject) -> dict[str, Any]:
    """Compute all that the page of a subject shows."""
    graph = subject.graph
    layers = learned_layers(subject.model, graph)
    pairs = ordered_pairs(graph.edge_index, graph.num_nodes)
    return {
        "title": subject.title,
        **subject.overview,
        "classes": [str(name) for name in subject.class_names],
        "ids": _ids(graph),
        "count": graph.num_nodes,
        "nodes": _nodes(subject),
        "views": _views(subject),
        "neighbors": _neighbors(pairs, graph.num_nodes),
        "rewired": _rewired(subject, layers),
        "layers": _layers(subject, layers),
    }


def _ids(graph: Data) -> list[str] | None:
    """Names of the nodes; None where they are their numbers."""
    ids = graph.get("node_ids")
    names = None if ids is None else [str(name) for name in ids]
    return None if names == [str(n) for n in range(graph.num_nodes)] else names


def _nodes(subject: Subject) -> dict[str, Packed | None]:
    graph, chances = subject.graph, subject.probabilities
    labels = labels_of(graph)
    edges, count = graph.edge_index, graph.num_nodes
    return {
        "label": pack_integers(labels.numpy()) if bool((labels >= 0).any()) else None,
        "predicted": None if chances is None else pack_integers(chances.argmax(1)),
        "probability": None if chances is None else pack_floats(chances),
        "part": None if subject.masks is None else pack_integers(_part_of(subject.masks)),
        "degree": pack_integers(degree(edges, count).numpy()),
        "homophily": pack_floats(local_homophily(edges, labels).numpy()),
        "clustering": pack_floats(clustering(edges, count).numpy()),
    }


def _part_of(masks: tuple[Tensor, Tensor, Tensor]) -> NDArray[Any]:
    """0, 1, 2 for training, validation, test; -1 for a node that is in none."""
    part = np.full(masks[0].numel(), -1)
    for number, mask in enumerate(masks):
        part[mask.numpy()] = number
    return part


def _views(subject: Subject) -> list[dict[str, Any]]:
    seed, jobs = subject.seed, torch.get_num_threads()
    found = [project(subject.embedding, dimensions, seed, jobs) for dimensions in (2, 3)]
    return [{"method": view.method, "points": pack_floats(view.points)} for view in found]


def _neighbors(pairs: Tensor, num_nodes: int) -> dict[str, Packed]:
    count = torch.bincount(pairs[1], minlength=num_nodes)
    return {"count": pack_integers(count.numpy()), "source": pack_integers(pairs[0].numpy())}


def _rewired(subject: Subject, layers: Sequence[Layer]) -> dict[str, Any] | None:
    graph = subject.graph
    num_pairs = neighborhood(graph.edge_index, graph.num_nodes).num_pairs
    if not layers or num_pairs < 2:
        return None
    labels = labels_of(graph)
    rounds = _ALL_ROUNDS if num_pairs <= _MOST_PAIRS_FOR_ALL_ROUNDS else _FEW_ROUNDS
    last = layers[-1]
    done = rewire(last.h, last.g, graph.edge_index, y=labels, seed=subject.seed, max_rounds=rounds)
    low, high = neighborhood(done.edge_index, graph.num_nodes).pairs.numpy()
    return {
        "low": pack_integers(low),
        "high": pack_integers(high),
        "accepted": done.accepted,
        "length": [_plain(done.length_before), _plain(done.length_after)],
        "homophily": [_plain(done.homophily_before), _plain(done.homophily_after)],
        "held_out": _held_out_homophily(subject, done.edge_index),
    }


def _held_out_homophily(subject: Subject, rewired: Tensor) -> list[float | None] | None:
    """Homophily before and after between nodes that were not trained on; None without masks."""
    if subject.masks is None:
        return None
    hidden = torch.where(subject.masks[0], -1, labels_of(subject.graph))
    return [
        _plain(AF.edge_homophily(edges, hidden)) for edges in (subject.graph.edge_index, rewired)
    ]


def _layers(subject: Subject, layers: Sequence[Layer]) -> list[dict[str, Any]]:
    messages = layer_messages(subject.model, subject.graph)
    room = _MOST_METRIC_ENTRIES
    described: list[dict[str, Any]] = []
    # The last layer is the one that predictions rest on: it is shown whole before the others.
    for number in reversed(range(len(layers))):
        room -= layers[number].g.numel()
        whole = room >= 0 or not described
        described.append(_layer(number + 1, subject.graph, layers[number], messages[number], whole))
    return described[::-1]


def _layer(
    number: int, graph: Data, layer: Layer, messages: Messages, whole: bool
) -> dict[str, Any]:
    statistics = vars(metric_statistics(layer.g, graph.edge_index))
    attention = messages.attention
    return {
        "number": number,
        "axes": layer.g.size(1),
        "nrmd": _plain(field_nrmd(layer.g, graph.edge_index)),
        "log_metric": pack_columns(layer.g.double().log().numpy()) if whole else None,
        "statistics": {name: pack_floats(values.numpy()) for name, values in statistics.items()},
        "tau": pack_floats(messages.tau.numpy()),
        "attention": None if attention is None else pack_floats(attention.numpy()),
        "weight": pack_floats(messages.weight.numpy()),
    }


def _plain(value: float) -> float | None:
    """A number that JSON can hold, None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None
