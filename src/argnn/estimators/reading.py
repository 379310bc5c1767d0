"""How an estimator reads a graph: features and edges, and apart from them, the labels.

Labels may be texts or missing, and masks may be indices.
"""

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import load, stratified_splits
from argnn.data.assemble import UNUSABLE_MASKS
from argnn.data.splits import MASK_NAMES
from argnn.data.targets import array_targets, label_values, target_names
from argnn.errors import ArgnnError, ConfigError, DataError
from argnn.estimators.saving import class_name
from argnn.registry import suggestion
from argnn.wording import shortened

UNLABELLED = -1
_OF_LABELS = (str, int, float, np.bool_, np.integer, np.floating)
_LOAD_OPTIONS = set(inspect.signature(load).parameters) - {
    "source",
    "directed",
    "draw_split",
    "folds",
    "groups",
    "row_normalize",
    "schema",
    "task",
}
#: Errors that reading a graph with a damaged schema may raise.
_SCHEMA_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
#: How pandas calls true and false.
_TRUTHS = ("bool", "boolean")
_TARGETS = ("targets", "target_names", "target_kind")
_LABELS = ("y", "train_mask", "val_mask", "test_mask", "class_names", *_TARGETS)


@dataclass(frozen=True)
class Reading:
    """How a source of a graph is turned into numbers.

    Attributes:
        directed: Keep the directions of edges.
        row_normalize: Scale the rows of the features to sum one.
        options: Further arguments of ``argnn.data.load``.
        schema: The encoding of an earlier graph, which this one has to follow.
        task: What labels are read for, as of ``argnn.data.load``.
    """

    directed: bool = False
    row_normalize: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, Any] | None = None
    task: str = "node"

    def graph(self, source: Any) -> Data:
        """The graph, checked by ``argnn.data.load``; of a ``Data`` no label is looked at."""
        if not isinstance(source, Data):
            return self._loaded(source)
        graph = self._loaded(
            Data(**{k: v for k, v in source.to_dict().items() if k not in _LABELS})
        )
        graph.column_schema = source.get("column_schema") or source.get("schema")
        return graph

    def _loaded(self, source: Any) -> Data:
        unknown = sorted(set(self.options) - _LOAD_OPTIONS)
        if unknown:
            hint = suggestion(unknown[0], _LOAD_OPTIONS)
            raise ConfigError(f"unknown option '{shortened(unknown[0])}' in load_options; {hint}")
        if self.schema is None:
            return load(
                source,
                directed=self.directed,
                row_normalize=self.row_normalize,
                draw_split=False,
                task=self.task,
                **self.options,
            )
        # Times only divide pairs for training.
        options = {name: value for name, value in self.options.items() if name != "time"}
        try:
            return load(source, schema=self.schema, **options)
        except ArgnnError:
            raise
        except _SCHEMA_ERRORS as error:
            # The schema comes from a file, and a damaged one can raise anything.
            raise DataError(
                f"the graph cannot be read with the model's schema ({error})"
            ) from error


@dataclass(frozen=True)
class LabelledGraph:
    """A graph, and its labels apart from it.

    Attributes:
        graph: Features and edges.
        labels: A Python value per node, None where there is none; of targets that are no classes,
            0 where they are known.
        masks: The training, validation and test masks that came with the graph, by name.
        split_rule: Where they come from, in words.
        targets: Targets ``[N, T]`` that are no classes, NaN where not known.
        names: Their names.
    """

    graph: Data
    labels: NDArray[np.object_]
    masks: dict[str, Tensor]
    split_rule: str
    targets: Tensor
    names: list[str]

    @property
    def known(self) -> Tensor:
        """The nodes with a label, ``[N]``."""
        return torch.tensor([label is not None for label in self.labels])


def read_labelled(source: Any, y: Any, reading: Reading) -> LabelledGraph:
    """Read a graph for training; labels or targets ``y`` replace those of the graph."""
    graph = replace(reading, task="node" if y is not None else reading.task).graph(source)
    nodes = graph.x.size(0)
    holder = source if isinstance(source, Data) else graph
    targets, names = torch.empty(nodes, 0), list[str]()
    y = None if y is None else by_id(y, graph, source)
    if reading.task != "node":
        targets, names = given_targets(source, y, graph, reading.task)
        labels = np.empty(nodes, dtype=object)
        labels[~targets.isnan().any(1).numpy()] = 0
    else:
        labels = _labels(holder, nodes) if y is None else as_objects(y, nodes)
    masks = _own_masks(holder, nodes)
    rule = "masks of the graph" if isinstance(source, Data) else str(graph.get("split_rule"))
    return LabelledGraph(graph, labels, masks, rule, targets, names)


def given_targets(source: Any, y: Any, graph: Data, task: str) -> tuple[Tensor, list[str]]:
    """Targets ``[N, T]`` and their names: ``y``, else those of a graph that was read already."""
    holder = source if isinstance(source, Data) else graph
    names = holder.get("target_names")
    if y is None and holder.get("targets") is not None:
        return holder.targets, list(names)
    if y is None and not has_targets(source, graph):
        raise DataError("the graph has no targets: give y")
    y = holder.get("y") if y is None else y
    if hasattr(y, "columns"):  # a pandas table
        names = [str(name) for name in y.columns]
    if hasattr(y, "toarray"):  # a sparse matrix of labels
        y = y.toarray()
    values = y if isinstance(y, Tensor) else _numbers(y, "y")
    targets = array_targets(values, task, graph.x.size(0))
    return targets, target_names(names, targets.size(1))


def has_targets(source: Any, graph: Data) -> bool:
    """Whether a source, or the graph that was read from it, knows targets of its own."""
    holder = source if isinstance(source, Data) else graph
    y = holder.get("y")
    read = holder is graph and y is not None and bool((torch.as_tensor(y) == -1).all())
    return holder.get("targets") is not None or (y is not None and not read)


def is_multilabel(source: Any, y: Any) -> bool:
    """Whether the labels of nodes are given as a matrix ``[N, L]``."""
    if y is None:
        y = source.get("y") if isinstance(source, Data) else None
        kind = source.get("target_kind") if isinstance(source, Data) else None
        if kind is not None:
            return bool(kind == "multilabel")
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and len(y) and hasattr(y[0], "__len__"):
        shape = (len(y), 0 if isinstance(y[0], str) else len(y[0]))
    return shape is not None and len(shape) == 2 and shape[1] > 1


def read_labels(source: Any, graph: Data) -> NDArray[np.object_]:
    """The labels that come with a graph that was read already."""
    return _labels(source if isinstance(source, Data) else graph, graph.x.size(0))


def _labels(graph: Data, num_nodes: int) -> NDArray[np.object_]:
    if graph.get("y") is None:
        raise DataError("the graph has no labels: give y")
    labels = as_objects(graph.y, num_nodes)
    if graph.get("class_names") is None:
        return labels
    names = label_values(graph.class_names)
    named = np.empty_like(labels)
    for node, label in enumerate(labels):
        if label is not None:
            named[node] = names[int(label)]
    return named


def own_masks(source: Any, graph: Data) -> dict[str, Tensor]:
    """Masks that came with a graph that was read already; none where it has several splits."""
    holder = source if isinstance(source, Data) else graph
    mask = holder.get("test_mask")
    if mask is not None and mask.dim() == 2 and mask.size(1) > 1:
        return {}
    return _own_masks(holder, graph.x.size(0))


def _own_masks(graph: Data, num_nodes: int) -> dict[str, Tensor]:
    """Masks that came with a graph and are not empty, of its first split."""
    found = {}
    for name in MASK_NAMES:
        mask = graph.get(name)
        if mask is not None and bool(mask.any()):
            found[name] = as_mask(mask[:, 0] if mask.dim() == 2 else mask, num_nodes, name)
    return found


def chosen_masks(
    seen: LabelledGraph, train_mask: Any, val_mask: Any, val_fraction: float, seed: int
) -> tuple[Tensor, Tensor, str]:
    """Training and validation nodes, and where they come from, in words.

    Given masks come first, then those of the graph; what is missing is drawn, stratified by class,
    from labelled nodes.
    """
    nodes, own, labelled = len(seen.labels), seen.masks, seen.known
    train = None if train_mask is None else as_mask(train_mask, nodes, "train_mask")
    val = None if val_mask is None else as_mask(val_mask, nodes, "val_mask")
    rule = "masks of the user"
    if train is None and val is None:
        if seen.split_rule.startswith(UNUSABLE_MASKS):
            # All labelled nodes would be learned from, those of a test mask among them.
            raise DataError(f"{seen.graph.name}: {seen.split_rule}")
        train, val = (
            own[name] & labelled if name in own else None for name in ("train_mask", "val_mask")
        )
        rule = seen.split_rule if train is not None or val is not None else "all labelled nodes"
        _check_apart(train, val, own.get("test_mask"))
    if train is None:
        # Marked test nodes are never learned from.
        reserved = [mask for mask in (val, own.get("test_mask")) if mask is not None]
        train = labelled & ~torch.stack(reserved).any(0) if reserved else labelled
    if val is not None:
        return train, val, rule
    train, val = _drawn(seen.labels, train, val_fraction, seed)
    return train, val, f"{rule}; a stratified share of {val_fraction:g} validates"


def _check_apart(train: Tensor | None, val: Tensor | None, test: Tensor | None) -> None:
    """Raise where the masks of a graph would train or validate on its test nodes."""
    for name, mask in (("train_mask", train), ("val_mask", val)):
        if mask is not None and test is not None and bool((mask & test).any()):
            node = int((mask & test).nonzero()[0])
            raise DataError(f"node {node} is in {name} and in test_mask of the graph")


def _drawn(
    labels: NDArray[np.object_], pool: Tensor, fraction: float, seed: int
) -> tuple[Tensor, Tensor]:
    """Split the nodes of a mask in two, class by class."""
    if isinstance(fraction, bool) or not 0 < fraction < 1:
        raise ConfigError(f"val_fraction must be between 0 and 1 (got {fraction})")
    numbers: dict[Any, int] = {}
    codes = [
        numbers.setdefault(label, len(numbers)) if inside and label is not None else -1
        for label, inside in zip(labels, pool.tolist(), strict=True)
    ]
    shares = (1 - fraction, fraction, 0.0)
    train, val, _ = (m[:, 0] for m in stratified_splits(torch.tensor(codes), shares, 1, seed))
    if not bool(val.any()):
        raise ConfigError(
            f"too few labels ({int(pool.sum())}) to draw validation nodes from; give val_mask"
        )
    # Nodes of the mask without a label stay in it, so that the error names them.
    return pool & ~val, val


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
    y = y.to_numpy() if hasattr(y, "columns") else y  # a pandas table
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
        y = y.reshape(-1)
    values = y.tolist() if isinstance(y, Tensor) or hasattr(y, "tolist") else list(y)
    if not isinstance(values, list) or len(values) != num_nodes:
        found = len(values) if isinstance(values, list) else "a single value"
        raise ConfigError(f"y must hold one label for each of the {num_nodes} nodes (got {found})")
    labels = np.empty(num_nodes, dtype=object)
    for node, value in enumerate(values):
        if is_missing(value):
            continue
        if isinstance(value, list | tuple | dict | set):
            raise ConfigError(
                f"y must be flat, one label per node (got {value!r} at {node}); several labels are "
                "a matrix of 0 and 1 with a column for each"
            )
        if not isinstance(value, _OF_LABELS) or value in (math.inf, -math.inf):
            raise ConfigError(
                f"a label must be a text or a finite number (got {value!r} at node {node})"
            )
        labels[node] = value
    return labels


def as_classes(labels: NDArray[np.object_], classes: NDArray[Any]) -> NDArray[np.object_]:
    """Labels as the classes of a model write them: 1 is the class "1", and "1" the class 1.

    Example:
        >>> as_classes(np.array([1, None, 2.0], dtype=object), np.array(["1", "2"])).tolist()
        ['1', None, '2']
    """
    known = classes.tolist()
    texts = {class_name(name): name for name in known}
    written = np.empty_like(labels)
    for node, label in enumerate(labels):
        written[node] = label if label in known else texts.get(class_name(label), label)
    return written


def by_id(values: Any, graph: Data, source: Any, name: str = "y") -> Any:
    """Values of nodes in the order of the nodes, where they come with ids.

    That is a dictionary, or a pandas column or table whose index holds ids; integers and their
    texts are the same ids. In a graph without ids a dictionary goes by row. Nodes without a row
    have no value. Rows are taken in order where the index only counts them, or is that of the node
    table in ``source``.

    Args:
        values: One for each node; what has no ids is given back as it is.
        graph: A graph that ``load`` gave.
        source: What it was loaded from.
        name: What the values are, for error messages.
    """
    ids = graph.get("node_ids")
    if ids is None and isinstance(values, Mapping):
        ids = range(graph.x.size(0))
    if ids is None:
        return values
    if isinstance(values, Mapping):
        given = list(values.values())
        places = _places_of_ids(list(values), ids, name)
        return [None if place is None else given[place] for place in places]
    if not hasattr(values, "reindex") or _counts_rows(values.index, ids, source, name):
        return values
    missing = len(values)  # a row that there is not
    places = _places_of_ids(list(values.index), ids, name)
    rows = [missing if place is None else place for place in places]
    return values.reset_index(drop=True).reindex(rows)


def mask_by_id(mask: Any, graph: Data, source: Any, name: str) -> Any:
    """As :func:`by_id`, for a mask of true and false: a node without a row is not in it.

    Numbers are rows, whatever the ids are.
    """
    kind = str(getattr(mask, "dtype", ""))
    if not (isinstance(mask, Mapping) or (hasattr(mask, "reindex") and kind in _TRUTHS)):
        return mask
    values = [False if is_missing(value) else value for value in by_id(mask, graph, source, name)]
    if any(value not in (0, 1) for value in values):
        raise ConfigError(f"{name} must be true or false for each node")
    return np.array(values, dtype=np.bool_)


def _counts_rows(index: Any, ids: Any, source: Any, name: str) -> bool:
    """Whether the index of a pandas column or table stands for rows in the order of the nodes."""
    table: Any = source[1] if isinstance(source, tuple) and len(source) == 2 else None
    if hasattr(table, "columns") and index.equals(table.index):
        return True
    in_order = list(range(len(ids)))
    if list(index) != in_order:
        return False
    if list(ids) != in_order and sorted(map(str, ids)) == sorted(map(str, in_order)):
        raise ConfigError(
            f"the index of {name} may count rows or hold ids, which have another order here: give "
            f"{name}.to_numpy() for rows in the order of the nodes, dict({name}) for ids"
        )
    return True


def _places_of_ids(given: list[Any], ids: Any, name: str) -> list[int | None]:
    """For each node the place of its id among those that are given; None if it is not there."""
    known: set[Any] = set(ids)
    unknown = [key for key in given if key not in known]
    if unknown and {str(key) for key in given} <= {str(key) for key in ids}:
        given, ids, unknown = list(map(str, given)), list(map(str, ids)), []
    if unknown:
        found = f"{name} has a row for {shortened(repr(unknown[0]))}, which is no node"
        in_order = f"; for rows in the order of the nodes give {name}.to_numpy()"
        raise ConfigError(found + (in_order if len(unknown) == len(given) else ""))
    places = {key: place for place, key in enumerate(given)}
    if len(places) < len(given):
        twice = next(key for place, key in enumerate(given) if places[key] != place)
        raise ConfigError(f"{name} has two rows for node {twice!r}")
    return [places.get(key) for key in ids]


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


def encode(labels: NDArray[np.object_], classes: NDArray[Any]) -> Tensor:
    """Numbers of the classes, ``[N]``; -1 where there is no label, or none of these."""
    number = {label: index for index, label in enumerate(classes.tolist())}
    return torch.tensor([number.get(label, UNLABELLED) for label in labels])


def as_weights(weight: Any) -> Tensor | None:
    """Weights of nodes as a tensor; none if there are none."""
    return None if weight is None else _numbers(weight, "sample_weight")


def _numbers(values: Any, name: str) -> Tensor:
    """A copy of some numbers, since those of pandas may be read-only."""
    try:
        if np.asarray(values).dtype.kind in "mM":
            raise TypeError("got dates or times")
        return torch.from_numpy(np.array(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold numbers ({error})") from error


def scored_nodes(known: NDArray[np.bool_], mask: Any) -> NDArray[np.bool_]:
    """The labelled nodes of a mask; an error if there is none."""
    chosen = known if mask is None else known & as_mask(mask, len(known), "mask").numpy()
    if not chosen.any():
        raise ConfigError("no labelled node to score")
    return chosen


def as_mask(nodes: Any, num_nodes: int, name: str) -> Tensor:
    """A boolean mask ``[N]`` from one, also of 0 and 1, or from row numbers, as of splitters."""
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
    # A list of nodes names none of them twice, so this is a mask of integers.
    if len(values) == num_nodes > 2 and bool(((values == 0) | (values == 1)).all()):
        return torch.from_numpy(values == 1)
    bad = values[(values < 0) | (values >= num_nodes)]
    if len(bad):
        raise ConfigError(f"{name} must hold indices from 0 to {num_nodes - 1} (got {bad[0]})")
    mask = torch.zeros(num_nodes, dtype=torch.bool)
    mask[torch.from_numpy(values.astype(np.int64))] = True
    return mask
