"""Node features that are made from the edges alone.

They always come after the nodes' own features. Where some edges are held out, as in link
prediction, :func:`with_edges` makes them again from the remaining edges.
"""

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from torch import Tensor
from torch_geometric.data import Data

from argnn.errors import DataError

#: What can be asked for, and what it is.
FEATURE_KINDS: Mapping[str, str] = {
    "degree": "logarithm of the degree, and which power of two it reaches",
    "onehot": "one feature per node",
    "random": "random numbers, drawn with a seed",
    "laplacian": "eigenvectors of the normalized Laplacian",
}
#: The kinds that change with the edges.
_FROM_EDGES = ("degree", "laplacian")
MOST_ONE_HOT = 20_000
_RANDOM_SIZE = 32
_LAPLACIAN_SIZE = 16
_DEGREE_BINS = 16
# Below this size it is faster to compute all eigenvectors than a few by iteration.
_DENSE_NODES = 200
# A limit of time: in a large random graph the iteration would hardly converge.
_TOLERANCE, _MOST_RESTARTS = 1e-4, 100

Structure = dict[str, Any]
#: Features ``[N, F]`` and their names.
Features = tuple[NDArray[np.float32], list[str]]

#: Which degrees are counted, for an undirected and for a directed graph.
SIDES = (["both"], ["in", "out"])


def learned_structure(
    kind: str, seed: int, node_ids: Sequence[object], directed: bool, edge_index: Tensor
) -> Structure:
    """The rule of structural features, as plain JSON values.

    ``kind`` is a key of :data:`FEATURE_KINDS`, ``seed`` that of random features. In a ``directed``
    graph, edges in and edges out are counted apart. For the edges see :func:`structural_features`.
    """
    rule: Structure = {"kind": kind}
    if kind == "degree":
        rule["sides"] = list(SIDES[directed])
    elif kind == "onehot":
        rule |= {"size": len(node_ids), "nodes": _digest(node_ids)}
    elif kind == "random":
        rule |= {"size": _RANDOM_SIZE, "seed": seed}
    else:
        rule["size"] = min(_LAPLACIAN_SIZE, max(1, len(node_ids) - 1))
        rule["edges"] = _edges_digest(edge_index)
    return rule


def made_width(rule: Structure | None) -> int:
    """How many features a rule makes; none without a rule."""
    if rule is None:
        return 0
    if rule["kind"] == "degree":
        return (_DEGREE_BINS + 2) * len(rule["sides"])
    return int(rule["size"])


def with_edges(graph: Data, edge_index: Tensor) -> Data:
    """A copy of a graph that has only these edges.

    Features that ``load`` made from the edges are made again from these, so that in link
    prediction they do not depend on edges that are held out.

    Args:
        graph: A graph that ``load`` gave. It is not changed.
        edge_index: Known edges without self-loops and duplicates, in both directions, ``[2, E]``.
    """
    seen = copy.copy(graph)  # of the object, not of its tensors
    seen.edge_index = edge_index
    if graph.get("edge_weight") is not None:
        seen.edge_weight = _weights_of(graph, edge_index)
    if "edge_time" in seen:
        del seen.edge_time  # is of the edges before
    rule = (graph.get("schema") or {}).get("structure")
    if rule is None or rule["kind"] not in _FROM_EDGES:
        return seen
    if rule["kind"] == "laplacian":
        rule = {**rule, "edges": _edges_digest(edge_index)}
    nodes = range(graph.x.size(0))
    made, _ = structural_features(rule, edge_index, nodes, str(graph.get("name")))
    own = graph.x[:, : graph.x.size(1) - made.shape[1]]
    seen.x = torch.cat([own, torch.from_numpy(made).to(own)], dim=1)
    seen.schema = {**graph.schema, "structure": rule}
    return seen


def _weights_of(graph: Data, edge_index: Tensor) -> Tensor:
    """The weights that some of a graph's edges, which are sorted, have there, ``[E]``.

    In a graph with directions an edge that is there the other way round only has that weight.
    """
    nodes, last = graph.x.size(0), graph.edge_index.size(1) - 1
    there, back = edge_index, edge_index.flip(0)
    known, *wanted = (edges[0] * nodes + edges[1] for edges in (graph.edge_index, there, back))
    place, other = (torch.searchsorted(known, keys).clamp_max(last) for keys in wanted)
    is_there = known[place] == wanted[0]
    unknown = (~is_there & (known[other] != wanted[1])).nonzero()
    if len(unknown):
        source, target = edge_index[:, int(unknown[0])].tolist()
        raise DataError(f"the graph has no edge from {source} to {target}, and so no weight of it")
    weight: Tensor = graph.edge_weight[torch.where(is_there, place, other)]
    return weight


def check_edges(rule: Structure, edge_index: Tensor, origin: str) -> None:
    """Raise if the rule holds only for the edges of training, and these are others.

    The eigenvectors of another graph are another basis, so that columns change their meaning.
    """
    if rule.get("edges") not in (None, _edges_digest(edge_index)):
        raise DataError(
            f"{origin}: laplacian features hold only for the edges that the model was trained "
            "with, and these are others; choose degree features to predict on other edges"
        )


def _edges_digest(edge_index: Tensor) -> str:
    return hashlib.sha256(edge_index.contiguous().numpy().tobytes()).hexdigest()[:16]


def structural_features(
    rule: Structure, edge_index: Tensor, node_ids: Sequence[object], origin: str
) -> Features:
    """Features ``[N, F]`` by a rule of :func:`learned_structure`, and their names.

    ``edge_index`` has neither self-loops nor duplicates; ``origin`` is named in errors.
    """
    nodes, kind = len(node_ids), rule["kind"]
    if kind == "degree":
        return _degrees(edge_index, nodes, rule["sides"])
    if kind == "onehot":
        return _one_hot(rule, node_ids, origin)
    if kind == "random":
        values = np.random.default_rng(rule["seed"]).standard_normal((nodes, rule["size"]))
        return values.astype(np.float32), [f"random {index}" for index in range(rule["size"])]
    check_edges(rule, edge_index, origin)
    try:
        return _laplacian(edge_index, nodes, rule["size"])
    except ArpackNoConvergence as error:
        raise DataError(
            f"{origin}: the eigenvectors of this graph's Laplacian were not found; "
            "choose degree or random features"
        ) from error


def _degrees(edge_index: Tensor, nodes: int, sides: Sequence[str]) -> Features:
    ends = {side: edge_index[0 if side == "out" else 1] for side in sides}
    return degree_features({side: torch.bincount(ends[side], minlength=nodes) for side in sides})


def degree_features(degrees: Mapping[str, Tensor]) -> Features:
    """Features of degrees, ``[N]`` by side; they mean the same in a graph of another size."""
    parts: list[NDArray[np.float32]] = []
    names: list[str] = []
    for side, counts in degrees.items():
        degree = counts.double().numpy()
        word = "degree" if side == "both" else f"{side}-degree"
        power = np.log2(np.maximum(degree, 1)).astype(int) + (degree > 0)
        reached = np.minimum(power, _DEGREE_BINS)
        bins = np.eye(_DEGREE_BINS + 1, dtype=np.float32)[reached]
        parts += [np.log1p(degree, dtype=np.float64)[:, None].astype(np.float32), bins]
        names += [f"log(1 + {word})", f"{word} is 0"]
        names += [f"{word} from {2**power}" for power in range(_DEGREE_BINS)]
    return np.concatenate(parts, axis=1), names


def _one_hot(rule: Structure, node_ids: Sequence[object], origin: str) -> Features:
    if len(node_ids) > MOST_ONE_HOT:
        raise DataError(
            f"{origin}: one-hot features need a feature per node, and {len(node_ids)} are more "
            f"than {MOST_ONE_HOT}; choose degree, random or laplacian"
        )
    if rule.get("nodes") != _digest(node_ids):
        raise DataError(
            f"{origin}: one-hot features hold for the nodes that the model was trained with only"
        )
    names = [f"is node {node}" for node in node_ids]
    return np.eye(len(node_ids), dtype=np.float32), names


def _digest(node_ids: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(list(node_ids)).encode()).hexdigest()[:16]


def _laplacian(edge_index: Tensor, nodes: int, size: int) -> Features:
    r"""Eigenvectors of :math:`I - D^{-1/2} A D^{-1/2}` after the first, of smallest eigenvalues.

    The sign of each is fixed: its entry of largest absolute value is positive. They are scaled by
    :math:`\sqrt{N}`, so that values are of order one in a graph of any size. In a graph with too
    few nodes, the last features are zero.
    """
    source, target = edge_index.numpy()
    adjacency = sp.csr_matrix((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
    adjacency = adjacency.maximum(adjacency.T)  # directions would make it unsymmetric
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    scale = sp.diags(1 / np.sqrt(np.maximum(degree, 1)))
    normalized = scale @ adjacency @ scale
    count = min(size + 1, nodes)
    if nodes <= _DENSE_NODES or count >= nodes - 1:
        _, vectors = np.linalg.eigh(-normalized.toarray())
    else:
        # The largest eigenvalues of the adjacency are the smallest of the Laplacian.
        start = np.random.default_rng(0).standard_normal(nodes)
        values, vectors = eigsh(
            normalized, k=count, which="LA", v0=start, tol=_TOLERANCE, maxiter=_MOST_RESTARTS
        )
        vectors = vectors[:, np.argsort(-values)]
    chosen = vectors[:, 1:count]
    largest = np.take_along_axis(chosen, np.abs(chosen).argmax(axis=0)[None], axis=0)
    result = np.zeros((nodes, size), dtype=np.float32)
    result[:, : count - 1] = chosen * np.where(largest < 0, -1.0, 1.0) * np.sqrt(nodes)
    return result, [f"laplacian {index}" for index in range(size)]
