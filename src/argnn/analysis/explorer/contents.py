"""The contents of the page as plain JSON values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis.explorer.chance import doubt_of_classes, doubt_of_targets
from argnn.analysis.explorer.headline import Worth, findings, headline
from argnn.analysis.explorer.packing import Packed, pack_columns, pack_floats, pack_integers
from argnn.analysis.geometry import field_nrmd, metric_statistics
from argnn.analysis.layers import Layer, learned_layers, metric_kind
from argnn.analysis.messages import Messages, layer_messages, ordered_pairs
from argnn.analysis.projection import project
from argnn.analysis.properties import (
    clustering,
    degree,
    feature_names,
    labels_of,
    local_homophily,
    node_names,
)
from argnn.analysis.rewiring import rewire
from argnn.analysis.variation import (
    HARDLY,
    MAIN_STATISTICS,
    axis_variation,
    farthest_nodes,
    metric_variation,
    peak,
)
from argnn.functional.factored import is_factored
from argnn.functional.neighborhood import edges_of, neighborhood
from argnn.nn import AbstractNodeModel
from argnn.telling import Tell, be_silent

# Metric entries of all layers together; one byte each keeps the page small.
_MOST_METRIC_ENTRIES = 7_000_000
_MOST_PAIRS_FOR_ALL_ROUNDS = 100_000
_ALL_ROUNDS, _FEW_ROUNDS = 100, 30
#: Most nodes, and most edges in both directions, that a page holds.
_MOST_NODES, _MOST_EDGES = 20_000, 1_000_000
#: Most input features, numbers or labels of nodes, and unusual nodes that a page holds.
_MOST_FEATURES, _MOST_TARGETS, _MOST_UNUSUAL = 30, 10, 12
#: Larger confusion matrices would not be read: then the most frequent mistakes are listed.
_MOST_CONFUSED, _MOST_MISTAKES = 10, 8

_Statistics = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Targets:
    """Numbers or labels of the nodes, where these are predicted instead of classes.

    Attributes:
        names: Name of each of them.
        known: Their values, NaN where they are not known, ``[N, T]``.
        predicted: Predicted numbers, or probabilities of the labels, ``[N, T]``.
        are_labels: Whether they are labels, which a node has or has not.
    """

    names: Sequence[str]
    known: NDArray[Any]
    predicted: NDArray[Any]
    are_labels: bool


@dataclass(frozen=True)
class Subject:
    """The graph and the model that a page shows.

    Attributes:
        title: Name of the page.
        graph: The graph, on the CPU.
        model: The model whose geometry is shown, on the CPU.
        embedding: The vector of each node that is drawn, ``[N, D]``.
        probabilities: Of each class at each node, ``[N, C]``; None where no classes are predicted.
        predicted: Number of the predicted class of each node, ``[N]``; the most probable one where
            it is not given.
        class_names: Names of the classes.
        masks: Training, validation and test nodes, ``[N]`` each; None where there are none.
        overview: Facts, scores, curves and notes below the map.
        seed: Fixes drawing and rewiring.
        targets: What is predicted instead of classes.
        worth: What the trial measured for a learned and for a fixed metric.
        model_name: Name of the model.
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
    predicted: NDArray[Any] | None = None
    targets: Targets | None = None
    worth: Worth | None = None
    model_name: str = "The model"

    @property
    def decided(self) -> NDArray[Any] | None:
        """Number of the predicted class of each node, ``[N]``; None without classes."""
        if self.predicted is not None or self.probabilities is None:
            return self.predicted
        return np.asarray(self.probabilities.argmax(1))


@dataclass(frozen=True)
class _Sample:
    """The nodes and edges that are shown: all, unless the graph is large.

    ``nodes`` ``[n]`` in order, ``place`` of each node among them, -1 if not shown, ``[N]``, and
    ``edges``, the columns of the ordered pairs that are shown, ``[e]``.
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


def _doubt(subject: Subject, labels: NDArray[Any]) -> str | None:
    """A sentence if the predictions of the test nodes are no better than chance."""
    if subject.masks is None:
        return None
    tested, targets = subject.masks[2].cpu().numpy(), subject.targets
    if targets is not None:
        tested = tested & ~np.isnan(targets.known).any(1)
        known, said = targets.known[tested], targets.predicted[tested]
        return doubt_of_targets(known, said, are_labels=targets.are_labels)
    tested, predicted = tested & (labels >= 0), subject.decided
    return None if predicted is None else doubt_of_classes(labels[tested], predicted[tested])


def document(subject: Subject, tell: Tell = be_silent) -> dict[str, Any]:
    """Compute everything that the page of a subject shows.

    All statistics are those of the whole graph. Of a large graph, the page shows a sample of the
    nodes and the edges between them, and says so. ``tell`` is told what is done.
    """
    graph = subject.graph
    layers = learned_layers(subject.model, graph)
    edges = edges_of(graph)
    pairs = ordered_pairs(edges, graph.num_nodes)
    sample = _sample(pairs, graph.num_nodes, subject.seed)
    ids = node_names(graph, sample.nodes.tolist())
    embedding, jobs = subject.embedding[sample.nodes.numpy()], torch.get_num_threads()
    tell(3, 5, "positions on the map")
    views = [project(embedding, dimensions, subject.seed, jobs) for dimensions in (2, 3)]
    tell(4, 5, "statistics of layers, messages, rewiring")
    source, target = sample.place[pairs[:, sample.edges]]
    properties, labels = _properties(graph), labels_of(graph).numpy()
    statistics = [_statistics(layer, graph) for layer in layers]
    variations = [metric_variation(*both) for both in zip(statistics, layers, strict=True)]
    kind, top = metric_kind(subject.model), peak(variations)
    found = findings(
        subject.model_name, kind, statistics, variations, properties, labels, subject.worth
    )
    return {
        "title": subject.title,
        "headline": headline(replace(found, doubt=_doubt(subject, labels))),
        **subject.overview,
        "notes": [
            *subject.overview.get("notes", []),
            *_matrices(layers),
            *_left_out(sample, pairs),
        ],
        "classes": [str(name) for name in subject.class_names],
        "ids": None if ids == [str(n) for n in range(len(ids))] else ids,
        "count": len(sample.nodes),
        "whole": {"nodes": graph.num_nodes, "edges": pairs.size(1) // 2},
        "nodes": _nodes(subject, sample, properties),
        "features": _features(graph, sample),
        "targets": _targets(subject.targets, sample),
        **_confusion(subject, labels),
        "views": [{"method": method, "points": pack_floats(points)} for points, method in views],
        "neighbors": {
            "count": pack_integers(torch.bincount(target, minlength=len(sample.nodes)).numpy()),
            "source": pack_integers(source.numpy()),
        },
        "rewired": _rewired(subject, layers, pairs, sample),
        "metric": kind,
        "hardly": HARDLY,
        "start": None if top is None or top.variation < HARDLY else [top.layer, top.statistic],
        "layers": _layers(subject, layers, statistics, variations, pairs[:, sample.edges], sample),
    }


def _properties(graph: Data) -> dict[str, NDArray[Any]]:
    edges, count = graph.edge_index, graph.num_nodes
    return {
        "degree": degree(edges, count).numpy(),
        "homophily": local_homophily(edges, labels_of(graph)).numpy(),
        "clustering": clustering(edges, count).numpy(),
    }


def _statistics(layer: Layer, graph: Data) -> dict[str, NDArray[Any]]:
    found = vars(metric_statistics(layer.g, edges_of(graph)))
    return {name: values.numpy() for name, values in found.items()}


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
        "Scores, the sentence on top, the matrix of classes and the calibration are those of the "
        "whole graph, lists, means and rewiring those of the nodes shown."
    ]


def _nodes(subject: Subject, sample: _Sample, properties: _Statistics) -> dict[str, Packed | None]:
    graph, chances, predicted = subject.graph, subject.probabilities, subject.decided
    labels, chosen = labels_of(graph), sample.nodes.numpy()
    part = np.full(graph.num_nodes, -1)  # 0, 1, 2: training, validation, test; -1: none of them
    for number, mask in enumerate(subject.masks or ()):
        part[mask.numpy()] = number
    return {
        "label": pack_integers(labels.numpy()[chosen]) if bool((labels >= 0).any()) else None,
        "predicted": None if predicted is None else pack_integers(predicted[chosen]),
        "probability": None if chances is None else pack_floats(chances[chosen]),
        "part": None if subject.masks is None else pack_integers(part[chosen]),
        "degree": pack_integers(properties["degree"][chosen]),
        "homophily": pack_floats(properties["homophily"][chosen]),
        "clustering": pack_floats(properties["clustering"][chosen]),
    }


def _features(graph: Data, sample: _Sample) -> dict[str, Any] | None:
    """The input features that vary most over the nodes shown, in their order."""
    x = graph.x[sample.nodes].double()
    varying = x.var(0, unbiased=False)
    kept = varying.topk(min(_MOST_FEATURES, int((varying > 0).sum()))).indices.sort().values
    if not len(kept):
        return None
    names = feature_names(graph)
    return {
        "names": [names[k] for k in kept.tolist()],
        "of": x.size(1),
        "values": pack_columns(x[:, kept].numpy()),
    }


def _targets(targets: Targets | None, sample: _Sample) -> dict[str, Any] | None:
    if targets is None:
        return None
    chosen = sample.nodes.numpy()
    lines = [
        {
            "name": str(name),
            "known": pack_floats(targets.known[chosen, k]),
            "predicted": pack_floats(targets.predicted[chosen, k]),
            "spread": _plain(np.nanstd(targets.known[:, k])),
        }
        for k, name in enumerate(targets.names[:_MOST_TARGETS])
        if np.isfinite(targets.known[:, k]).any()
    ]
    return {"are_labels": targets.are_labels, "of": len(targets.names), "lines": lines}


def _confusion(subject: Subject, labels: NDArray[Any]) -> dict[str, Any]:
    """How many test nodes of each class were taken for which, of many classes for which most."""
    predicted, count = subject.decided, len(subject.class_names)
    nothing = {"confusion": None, "mistakes": None}
    if predicted is None or subject.masks is None:
        return nothing
    tested = subject.masks[2].numpy() & (labels >= 0)
    found = np.zeros((count, count), dtype=np.int64)
    np.add.at(found, (labels[tested], predicted[tested]), 1)
    if not tested.any():
        return nothing
    if count <= _MOST_CONFUSED:
        return {**nothing, "confusion": found.tolist()}
    wrong = found - np.diag(np.diag(found))
    places = [divmod(int(k), count) for k in wrong.ravel().argsort(kind="stable")[::-1]]
    lines = [[*place, int(wrong[place])] for place in places[:_MOST_MISTAKES] if wrong[place]]
    return {**nothing, "mistakes": lines}


def _rewired(
    subject: Subject, layers: Sequence[Layer], pairs: Tensor, sample: _Sample
) -> dict[str, Any] | None:
    """The rewired edges between the nodes that are shown: each keeps its degree in the page."""
    nodes = sample.nodes
    edges = sample.place[pairs[:, sample.edges]]
    num_pairs = neighborhood(edges, len(nodes)).num_pairs
    if not layers or num_pairs < 2:
        return None
    labels, masks = labels_of(subject.graph)[nodes], subject.masks
    rounds = _ALL_ROUNDS if num_pairs <= _MOST_PAIRS_FOR_ALL_ROUNDS else _FEW_ROUNDS
    h, g = layers[-1].h[nodes], layers[-1].g[nodes]
    done = rewire(h, g, edges, y=labels, seed=subject.seed, max_rounds=rounds)
    low, high = neighborhood(done.edge_index, len(nodes)).pairs.numpy()
    held_out = None
    if masks is not None and subject.decided is not None:  # between nodes not trained on
        hidden = torch.where(masks[0][nodes], -1, labels)
        held_out = [_plain(AF.edge_homophily(each, hidden)) for each in (edges, done.edge_index)]
    return {
        "low": pack_integers(low),
        "high": pack_integers(high),
        "accepted": done.accepted,
        "length": [_plain(done.length_before), _plain(done.length_after)],
        "homophily": [_plain(done.homophily_before), _plain(done.homophily_after)],
        "held_out": held_out,
    }


def _layers(
    subject: Subject,
    layers: Sequence[Layer],
    statistics: Sequence[_Statistics],
    variations: Sequence[Mapping[str, float]],
    pairs: Tensor,
    sample: _Sample,
) -> list[dict[str, Any]]:
    messages = layer_messages(subject.model, subject.graph, pairs)
    room = _MOST_METRIC_ENTRIES
    described: list[dict[str, Any]] = []
    # Predictions depend on the last layer first, so that it is always shown in full.
    for number in reversed(range(len(layers))):
        room -= len(sample.nodes) * layers[number].g.size(-1)
        whole = room >= 0 or not described
        varies = max(variations[number][name] for name in MAIN_STATISTICS) >= HARDLY
        both = layers[number], messages[number]
        shown = _layer(subject.graph, *both, sample, whole=whole, varies=varies)
        nodes = sample.nodes.numpy()
        shown["number"], shown["variation"] = number + 1, variations[number]
        shown["statistics"] = {k: pack_floats(v[nodes]) for k, v in statistics[number].items()}
        described.append(shown)
    return described[::-1]


def _layer(
    graph: Data, layer: Layer, messages: Messages, sample: _Sample, *, whole: bool, varies: bool
) -> dict[str, Any]:
    attention = messages.attention
    log_g = AF.metric_diagonal(layer.g[sample.nodes].double()).log()
    axes = axis_variation(log_g.numpy())
    return {
        "axes": layer.g.size(-1),
        "nrmd": _plain(field_nrmd(layer.g, graph.edge_index)),
        "log_metric": pack_columns(log_g.numpy()) if whole else None,
        "axis_variation": axes.round(4).tolist(),
        "best_axis": int(axes.argmax()),
        "unusual": farthest_nodes(log_g, _MOST_UNUSUAL) if varies else [],
        "tau": pack_floats(messages.tau.numpy()),
        "attention": None if attention is None else pack_floats(attention.numpy()),
        "weight": pack_floats(messages.weight.numpy()),
    }


def _plain(value: float) -> float | None:
    """A number that JSON can hold, None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None
