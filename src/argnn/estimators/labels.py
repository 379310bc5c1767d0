"""Labels and masks as people give them: texts, missing values, indices."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.errors import ConfigError

UNLABELLED = -1


def is_missing(label: Any) -> bool:
    """Whether a label means that there is none: None, NaN, pandas' NA, an empty text, or -1.

    Example:
        >>> [is_missing(label) for label in (None, float("nan"), "", -1, "-1", 0)]
        [True, True, True, True, False, False]
    """
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, str):
        return label == ""
    if isinstance(label, float | np.floating):
        return math.isnan(label) or label == UNLABELLED
    return isinstance(label, int | np.integer) and label == UNLABELLED


def as_objects(y: Any, num_nodes: int) -> NDArray[np.object_]:
    """One label per node as Python values, with None where there is none."""
    values = y.tolist() if isinstance(y, Tensor) or hasattr(y, "tolist") else list(y)
    if not isinstance(values, list) or len(values) != num_nodes:
        found = len(values) if isinstance(values, list) else "a single value"
        raise ConfigError(f"y must hold one label for each of the {num_nodes} nodes (got {found})")
    labels = np.empty(num_nodes, dtype=object)
    for node, value in enumerate(values):
        if isinstance(value, list | tuple | dict | set):
            raise ConfigError(f"y must be flat, one label per node (got {value!r} at {node})")
        labels[node] = None if is_missing(value) else value
    return labels


def by_id(y: Any, graph: Data, source: Any) -> Any:
    """A pandas column or table in the order of the nodes, where its index holds their ids.

    Nodes without a row have no label. An index without ids says nothing: rows are in order, and
    so they are where the index is that of the node table in ``source``.
    """
    ids = graph.get("node_ids")
    if ids is None or not hasattr(y, "reindex"):
        return y
    index = y.index
    table: Any = source[1] if isinstance(source, tuple) and len(source) == 2 else None
    if hasattr(table, "columns") and index.equals(table.index):
        return y
    known = index.isin(list(ids))
    if not known.any() or list(index) == list(range(len(ids))):
        return y
    if not known.all():
        raise ConfigError(f"y has a row for {index[~known][0]!r}, which is no node")
    if not index.is_unique:
        raise ConfigError(f"y has two rows for node {index[index.duplicated()][0]!r}")
    return y.reindex(list(ids))


def class_table(labels: NDArray[np.object_]) -> NDArray[Any]:
    """The distinct labels in order; texts and numbers must not be mixed.

    Example:
        >>> class_table(np.array(["b", None, "a", "b"], dtype=object)).tolist()
        ['a', 'b']
    """
    known = [label for label in labels if label is not None]
    if not known:
        raise ConfigError("no node has a label")
    if len({isinstance(label, str) for label in known}) > 1:
        raise ConfigError("y mixes texts and numbers")
    classes = np.array(sorted(set(known)))
    # Labels that are whole numbers stored as floats come from columns with missing values.
    whole = classes.dtype.kind == "f" and bool((classes == classes.astype(np.int64)).all())
    return classes.astype(np.int64) if whole else classes


def encode(labels: NDArray[np.object_], classes: NDArray[Any], visible: Tensor) -> Tensor:
    """Numbers of the classes, ``[N]``; -1 where there is no label or it must not be seen."""
    number = {label: index for index, label in enumerate(classes.tolist())}
    codes = [
        number.get(label, UNLABELLED) if seen and label is not None else UNLABELLED
        for label, seen in zip(labels, visible.tolist(), strict=True)
    ]
    return torch.tensor(codes)


def as_weights(weight: Any) -> Tensor | None:
    """Weights of nodes as a tensor; none if there are none."""
    return None if weight is None else torch.as_tensor(np.asarray(weight, dtype=np.float64))


def part_sizes(train: Tensor, val: Tensor) -> dict[str, int]:
    """How many nodes were learned from, and how many chose the epoch."""
    return {"training nodes": int(train.sum()), "validation nodes": int(val.sum())}


def scored_nodes(known: NDArray[np.bool_], mask: Any) -> NDArray[np.bool_]:
    """The labelled nodes of a mask, of which there must be one."""
    chosen = known if mask is None else known & as_mask(mask, len(known), "mask").numpy()
    if not chosen.any():
        raise ConfigError("no labelled node to score")
    return chosen


def as_mask(nodes: Any, num_nodes: int, name: str) -> Tensor:
    """A boolean mask ``[N]`` from one, or from indices as scikit-learn's splitters give them."""
    values = np.asarray(nodes.cpu() if isinstance(nodes, Tensor) else nodes)
    if values.ndim != 1 or values.dtype.kind not in "biu":
        raise ConfigError(
            f"{name} must be a boolean mask [{num_nodes}] or a list of node indices "
            f"(got {values.dtype}, {list(values.shape)})"
        )
    if values.dtype.kind == "b":
        if len(values) != num_nodes:
            raise ConfigError(f"{name} must have {num_nodes} entries (got {len(values)})")
        return torch.from_numpy(values.copy())
    bad = values[(values < 0) | (values >= num_nodes)]
    if len(bad):
        raise ConfigError(f"{name} must hold indices from 0 to {num_nodes - 1} (got {bad[0]})")
    mask = torch.zeros(num_nodes, dtype=torch.bool)
    mask[torch.from_numpy(values.astype(np.int64))] = True
    return mask
