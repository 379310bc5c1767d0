"""Nodes of one graph as rows, so that scikit-learn can divide, train on and score them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from argnn.data import load
from argnn.errors import ConfigError
from argnn.estimators.reading import read_labels


class NodeSelection:
    """Some nodes of a graph, which scikit-learn's splitters can use like an array.

    An estimator that is given a selection sees all features and edges of the graph, but learns from
    the labels of these nodes only, and predicts or scores these only. :func:`argnn.nodes` makes
    one; an index, a mask, a list of indices or a slice in brackets takes a part of it.

    Attributes:
        graph: The whole graph.
        index: The rows of the nodes in it, ``[M]``.
    """

    def __init__(self, graph: Data, index: NDArray[np.int64]) -> None:
        self.graph, self.index = graph, index

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> tuple[int]:
        """The number of nodes."""
        return (len(self),)

    def __getitem__(self, key: Any) -> "NodeSelection":
        if isinstance(key, tuple) and key[1:] == (Ellipsis,):  # as scikit-learn indexes arrays
            key = key[0]
        chosen = self.index[key if isinstance(key, slice) else np.asarray(key)]
        return NodeSelection(self.graph, np.atleast_1d(chosen))

    def __repr__(self) -> str:
        name, count = self.graph.get("name"), self.graph.num_nodes
        return f"NodeSelection({len(self)} of the {count} nodes of {name})"

    def labelled(self) -> "NodeSelection":
        """Those of the nodes that have a label or targets in the graph."""
        known = [not _is_missing(value) for value in self._values()]
        return self[np.array(known, dtype=np.bool_)]

    @property
    def labels(self) -> NDArray[Any]:
        """The labels ``[M]`` or targets ``[M, T]`` of the nodes in the graph; none is missing."""
        values = self._values()
        if any(map(_is_missing, values)):
            raise ConfigError("some of these nodes have no label: take .labelled() of them")
        return np.array(values.tolist())

    def _values(self) -> NDArray[Any]:
        targets = self.graph.get("targets")
        if targets is None:
            return read_labels(self.graph, self.graph)[self.index]
        values: NDArray[Any] = targets.numpy()[self.index]
        return values[:, 0] if values.shape[1] == 1 else values

    def spread(self, values: Any, fill: Any = None) -> Any:
        """Values of these nodes as values of all nodes; ``fill`` stands for the others."""
        if values is None:
            return None
        rows = np.asarray(values)
        if rows.ndim < 1 or len(rows) != len(self):
            found = "a single value" if rows.ndim < 1 else len(rows)
            raise ConfigError(f"a selection of {len(self)} nodes needs as many rows (got {found})")
        whole = np.full((self.graph.num_nodes, *rows.shape[1:]), fill, dtype=object)
        whole[self.index] = rows
        names = getattr(values, "columns", None)  # of a pandas table
        return whole if names is None else type(values)(whole, columns=names)


def _is_missing(value: Any) -> bool:
    return value is None or (not isinstance(value, str) and bool(np.isnan(value).any()))


def nodes(graph: Any, **options: Any) -> NodeSelection:
    """The nodes of a graph as rows for scikit-learn's cross-validation and searches.

    Args:
        graph: Anything that :func:`argnn.data.load` takes.
        **options: Further arguments of it. Give them here, not as ``load_options`` of the
            estimator; but give ``directed`` and ``weight`` to both.

    Example:
        >>> from sklearn.model_selection import cross_val_score
        >>> from argnn import ARGNNClassifier
        >>> rows = nodes("mixed").labelled()
        >>> clf = ARGNNClassifier("gcn", epochs=5)
        >>> cross_val_score(clf, rows, rows.labels, cv=3).shape
        (3,)
    """
    read = load(graph, **{"task": "auto", "draw_split": False, **options})
    return NodeSelection(read, np.arange(read.x.size(0)))


def selected_fit(
    graph: Any, y: Any, train_mask: Any, val_mask: Any, sample_weight: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """The arguments of ``fit``; a selection becomes its graph, with the nodes as training mask."""
    if not isinstance(graph, NodeSelection):
        return graph, y, train_mask, val_mask, sample_weight
    if train_mask is not None or val_mask is not None:
        raise ConfigError("a selection says which nodes are trained on: leave out the masks")
    if len(np.unique(graph.index)) < len(graph):
        raise ConfigError("a selection to train on must not hold a node twice")
    weight = graph.spread(sample_weight, fill=1.0)
    return graph.graph, graph.spread(y), graph.index, None, weight


def selected_score(graph: Any, y: Any, mask: Any) -> tuple[Any, Any, Any]:
    """The arguments of ``score``; a selection becomes its graph, with the nodes as mask."""
    if not isinstance(graph, NodeSelection):
        return graph, y, mask
    if mask is not None:
        raise ConfigError("a selection says which nodes are scored: leave out the mask")
    return graph.graph, graph.spread(y), graph.index


def selected_rows(graph: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """Of the rows of all nodes, those of a selection."""
    return rows[graph.index] if isinstance(graph, NodeSelection) else rows
