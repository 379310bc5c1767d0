"""The contents of the page as plain JSON values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis.explorer.packing import Packed, pack_columns, pack_floats, pack_integers
from argnn.analysis.geometry import field_nrmd, metric_statistics
from argnn.analysis.layers import Layer, learned_layers, metric_kind
from argnn.analysis.messages import Messages, layer_messages, ordered_pairs
from argnn.analysis.projection import project
from argnn.analysis.properties import (
    clustering,
    degree,
    labels_of,
    local_homophily,
    node_names,
)
from argnn.analysis.rewiring import rewire
from argnn.data.graph_store.array_files import Tell, be_silent
from argnn.functional.factored import is_factored
from argnn.functional.neighborhood import edges_of, neighborhood
from argnn.nn import AbstractNodeModel

# Metric entries of all layers together; one byte each keeps the page small.
_MOST_METRIC_ENTRIES = 7_000_000
_MOST_PAIRS_FOR_ALL_ROUNDS = 100_000
_ALL_ROUNDS, _FEW_ROUNDS = 100, 30
#: Most nodes, and most edges in both directions, that a page holds.
_MOST_NODES, _MOST_EDGES = 20_000, 1_000_000


@dataclass(frozen=True)
class Subject:
    """The graph and the model that a page shows.

    Attributes:
        title: Name of the page.
        graph: The graph, on the CPU.
        model: The model whose geometry is shown, on the CPU.
        embedding: The vector of each node that is drawn, ``[N, D]``.
        probabilities: Of each class at each node, ``[N, C]``; None where no classes are predicted.
        class_names: Names of the classes.
        masks: Training, validation and test nodes, ``[N]`` each; None where there are none.
        overview: Facts, scores, curves and notes above the map.
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


@dataclass(frozen=True)
class _Sample:
    """The nodes and edges that are shown: all, unless the graph is large.

    Attributes:
        nodes: The nodes that are shown, in order, ``[n]``.
        place: Number of each node among them, -1 if it is not shown, ``[N]``.
        edges: The columns of the ordered pairs that are shown, ``[e]``.
    """

    nodes: Tensor
    place: Tensor
    edges: Tensor


def _sample(pairs: Tensor, num_nodes: int, seed: int) -> _Sample:
    generator = torch.Generator().manual_seed(seed)
    nodes = torch.randperm(num_nodes, generator=generator)[:_MOST_NODES].sort().values
    place = torch.full((num_nodes,), -1)
    place[nodes] = torch.arange(len(nodes))
    edges = (place[pairs] >= 0).all(dim=0).nonzero().squeeze(1)
    chosen = torch.randperm(len(edges), generator=generator)[:_MOST_EDGES].sort().values
    return _Sample(nodes, place, edges[chosen])


def document(subject: Subject, tell: Tell = be_silent) -> dict[str, Any]:
    """Compute everything that the page of a subject shows.

    All statistics are those of the whole graph. Of a large graph, the page shows a sample of the
    nodes and the edges between them, and says so. ``tell`` is told what is done.
    """
    graph = subject.graph
    layers = learned_layers(subject.model, graph)
    pairs = ordered_pairs(edges_of(graph), graph.num_nodes)
    sample = _sample(pairs, graph.num_nodes, subject.seed)
    ids = node_names(graph, sample.nodes.tolist())
    embedding, jobs = subject.embedding[sample.nodes.numpy()], torch.get_num_threads()
    tell(3, 5, "positions on the map")
    views = [project(embedding, dimensions, subject.seed, jobs) for dimensions in (2, 3)]
    tell(4, 5, "statistics of layers, messages, rewiring")
    source, target = sample.place[pairs[:, sample.edges]]
    return {
        "title": subject.title,
        **subject.overview,
        "notes": [
            *subject.overview.get("notes", []),
            *_matrices(layers),
            *_left_out(sample, pairs),
        ],
        "classes": [str(name) for name in subject.class_names],
        "ids": None if ids == [str(n) for n in range(len(ids))] else ids,
        "count": len(sample.nodes),
        "nodes": _nodes(subject, sample),
        "views": [{"method": method, "points": pack_floats(points)} for points, method in views],
        "neighbors": {
            "count": pack_integers(torch.bincount(target, minlength=len(sample.nodes)).numpy()),
            "source": pack_integers(source.numpy()),
        },
        "rewired": _rewired(subject, layers, sample),
        "metric": metric_kind(subject.model),
        "layers": _layers(subject, layers, sample),
    }


def _matrices(layers: Sequence[Layer]) -> list[str]:
    """A note on what is shown of metrics that are not diagonal."""
    if not any(is_factored(layer.g) for layer in layers):
        return []
    return [
        "The metrics of this run are not diagonal: statistics are those of their eigenvalues, and "
        "axes show the entries on the diagonal of their matrices."
    ]


def _left_out(sample: _Sample, pairs: Tensor) -> list[str]:
    """A note on what the page does not show."""
    nodes, edges = len(sample.nodes), len(sample.edges)
    if nodes == len(sample.place) and edges == pairs.size(1):
        return []
    return [
        f"The graph is too large for a page: it shows {nodes:,} of {len(sample.place):,} nodes, "
        f"drawn at random, and {edges:,} of {pairs.size(1):,} edges, counted in both directions. "
        "Figures are those of the whole graph."
    ]


def _nodes(subject: Subject, sample: _Sample) -> dict[str, Packed | None]:
    graph, chances = subject.graph, subject.probabilities
    labels, chosen = labels_of(graph), sample.nodes.numpy()
    edges, count = graph.edge_index, graph.num_nodes
    part = np.full(count, -1)  # 0, 1, 2 for training, validation, test; -1 for none of them
    for number, mask in enumerate(subject.masks or ()):
        part[mask.numpy()] = number
    return {
        "label": pack_integers(labels.numpy()[chosen]) if bool((labels >= 0).any()) else None,
        "predicted": None if chances is None else pack_integers(chances.argmax(1)[chosen]),
        "probability": None if chances is None else pack_floats(chances[chosen]),
        "part": None if subject.masks is None else pack_integers(part[chosen]),
        "degree": pack_integers(degree(edges, count).numpy()[chosen]),
        "homophily": pack_floats(local_homophily(edges, labels).numpy()[chosen]),
        "clustering": pack_floats(clustering(edges, count).numpy()[chosen]),
    }


def _rewired(subject: Subject, layers: Sequence[Layer], sample: _Sample) -> dict[str, Any] | None:
    graph = subject.graph
    num_pairs = neighborhood(graph.edge_index, graph.num_nodes).num_pairs
    if not layers or num_pairs < 2:
        return None
    labels, masks = labels_of(graph), subject.masks
    rounds = _ALL_ROUNDS if num_pairs <= _MOST_PAIRS_FOR_ALL_ROUNDS else _FEW_ROUNDS
    last = layers[-1]
    done = rewire(last.h, last.g, graph.edge_index, y=labels, seed=subject.seed, max_rounds=rounds)
    ends = sample.place[neighborhood(done.edge_index, graph.num_nodes).pairs]
    low, high = ends[:, (ends >= 0).all(dim=0)].numpy()  # of which both nodes are shown
    held_out = None
    if masks is not None:  # homophily between nodes that were not trained on
        hidden = torch.where(masks[0], -1, labels)
        both = (graph.edge_index, done.edge_index)
        held_out = [_plain(AF.edge_homophily(edges, hidden)) for edges in both]
    return {
        "low": pack_integers(low),
        "high": pack_integers(high),
        "accepted": done.accepted,
        "length": [_plain(done.length_before), _plain(done.length_after)],
        "homophily": [_plain(done.homophily_before), _plain(done.homophily_after)],
        "held_out": held_out,
    }


def _layers(subject: Subject, layers: Sequence[Layer], sample: _Sample) -> list[dict[str, Any]]:
    messages = layer_messages(subject.model, subject.graph)
    room = _MOST_METRIC_ENTRIES
    described: list[dict[str, Any]] = []
    # Predictions depend on the last layer first, so that it is always shown in full.
    for number in reversed(range(len(layers))):
        room -= len(sample.nodes) * layers[number].g.size(-1)
        whole = room >= 0 or not described
        both = layers[number], messages[number]
        described.append(_layer(number + 1, subject.graph, *both, whole, sample))
    return described[::-1]


def _layer(
    number: int, graph: Data, layer: Layer, messages: Messages, whole: bool, sample: _Sample
) -> dict[str, Any]:
    statistics = vars(metric_statistics(layer.g, edges_of(graph)))
    attention, nodes, edges = messages.attention, sample.nodes, sample.edges
    shown = AF.metric_diagonal(layer.g[nodes].double()).log()
    return {
        "number": number,
        "axes": layer.g.size(-1),
        "nrmd": _plain(field_nrmd(layer.g, graph.edge_index)),
        "log_metric": pack_columns(shown.numpy()) if whole else None,
        "statistics": {name: pack_floats(v[nodes].numpy()) for name, v in statistics.items()},
        "tau": pack_floats(messages.tau[edges].numpy()),
        "attention": None if attention is None else pack_floats(attention[edges].numpy()),
        "weight": pack_floats(messages.weight[edges].numpy()),
    }


def _plain(value: float) -> float | None:
    """A number that JSON can hold, None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None
