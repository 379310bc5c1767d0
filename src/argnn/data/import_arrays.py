"""Graphs of arrays, whose features are numbers already."""

import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.assemble import arranged_edges, without_weightless_edges
from argnn.data.import_graph import (
    ImportedGraph,
    check_width,
    group_numbers,
    labelled_nodes,
    structure_rule,
    written_schema,
)
from argnn.data.import_options import WEIGHT_NAMES, ImportOptions, no_features
from argnn.data.node_ids import NodeId
from argnn.data.schema import Schema
from argnn.data.structural_features import Structure, check_edges, structural_features
from argnn.data.targets import TARGET_TASKS, array_targets, target_names, task_of_array
from argnn.errors import ConfigError, DataError, error_prefix

_TIME_NAMES = ("time", "edge_time")
_MOST_NODES_PER_END = 100


def import_arrays(
    source: Data,
    options: ImportOptions,
    schema: Schema | None,
    origin: str,
    notes: list[str] | None = None,
) -> ImportedGraph:
    """Scale the features of a graph and add to them as the options say, and record how.

    ``source``, which is not changed, holds ``edge_index``, and ``x`` unless features are made from
    the edges. Options that name columns are refused. ``notes`` are what the reader found.
    """
    _refuse_columns(options, origin)
    data, notes = copy.copy(source), list(notes or ())  # a copy of the object, not of its tensors
    if schema is not None:
        _forget_unknown_labels(data, schema)
    task = _task(data, options, schema)
    node_ids, names = _node_ids(data, origin), _feature_names(data)
    if task in TARGET_TASKS:
        _move_targets(data, task, len(node_ids), origin)
        if options.task == "auto":
            notes.append(f"y: read for --task {task}")
    _number_groups(data, options.groups, len(node_ids), origin)
    structure = None if schema is not None else _made_before(data, options, origin)
    _choose_times(data, options.time, origin)
    _choose_weights(data, options.weight, notes, origin, any_name=schema is not None)
    scaling: dict[str, Any] = {"center": None, "scale": None}
    if schema is not None and _is_encoded(data, schema):
        if schema["structure"] is not None:
            edge_index = _arranged(data, len(node_ids), options.directed, origin)
            check_edges(schema["structure"], edge_index, origin)
    else:
        if options.standardize and schema is None and structure is not None:
            raise ConfigError(f"{origin}: has made features already; standardize it first")
        scaling = _standardize(data, options, schema, notes, origin)
        if schema["structure"] if schema is not None else options.features is not None:
            edge_index = _arranged(data, len(node_ids), options.directed, origin)
            structure = structure_rule(options, schema, node_ids, options.directed, edge_index)
            assert structure is not None
            x, made = structural_features(structure, edge_index, node_ids, origin)
            notes.append(f"{len(made)} features made from the edges ({structure['kind']})")
            _append(data, torch.from_numpy(x), origin)
            names += made
    if data.get("x") is None and _is_edges(data.get("edge_index")):
        raise no_features(origin)
    if schema is not None:
        check_width(data.x.size(1) if data.x.dim() == 2 else 0, schema, origin)
        return ImportedGraph(data, node_ids, names, dict(schema), notes)
    label = _label_rule(data)
    written = written_schema(options, len(names), None, None, scaling, structure, label)
    return ImportedGraph(data, node_ids, names, written, notes)


def _task(data: Data, options: ImportOptions, schema: Schema | None) -> str:
    """What the targets are for: as the schema says, as the user says, or as they look."""
    if schema is not None:
        return str((schema["label"] or {}).get("kind", "node"))
    if data.get("targets") is not None:  # a graph that was loaded before
        return str(data.target_kind)
    return task_of_array(data.get("y")) if options.task == "auto" else options.task


def _move_targets(data: Data, task: str, num_nodes: int, origin: str) -> None:
    """Targets that are no classes do not stand in ``y``."""
    y = data.get("y") if data.get("targets") is None else data.targets
    if y is None:
        return
    with error_prefix(f"{origin}:", DataError):
        if not isinstance(y, Tensor):
            raise DataError(f"y must be an array (got {type(y).__name__})")
        data.targets = array_targets(y, task, num_nodes)
    given = data.get("target_names") or data.get("class_names")
    data.target_names = target_names(given, data.targets.size(1))
    data.target_kind, data.y, data.class_names = task, None, None


def _is_encoded(data: Data, schema: Schema) -> bool:
    """Whether the graph was loaded by this very schema, or has all of its features already."""
    if data.get("schema") == schema:
        return True
    x = _dense(data)
    is_full = x is not None and x.size(1) == schema["num_features"]
    return is_full and schema["structure"] is not None


def _number_groups(data: Data, asked: str | None, num_nodes: int, origin: str) -> None:
    """Keep the groups of the nodes if that was asked for."""
    data.fold_groups = None
    if asked is None:
        return
    cells = data.get(asked)
    cells = cells.tolist() if hasattr(cells, "tolist") else cells
    if not isinstance(cells, list) or len(cells) != num_nodes:
        what = "must hold one for each node" if asked in data else "no such node attribute"
        raise DataError(f"{origin}: groups '{asked}': {what}")
    labelled = labelled_nodes(data, num_nodes)
    data.fold_groups = group_numbers(cells, labelled, lambda row: f"{origin}, {asked}[{row}]")


def _choose_times(data: Data, asked: str | None, origin: str) -> None:
    """Keep the times of the edges if that was asked for."""
    if asked is None:
        return
    if data.get("edge_time") is None or asked not in _TIME_NAMES:
        what = "it has none" if data.get("edge_time") is None else "they are called time here"
        raise DataError(f"{origin}: no times of edges '{asked}'; {what}")
    data.keep_time = True


def _choose_weights(
    data: Data, asked: str | None, notes: list[str], origin: str, any_name: bool
) -> None:
    """Keep the weights of the edges if that was asked for; a model may know another name."""
    has_weights = data.get("edge_weight") is not None
    if asked is None:
        notes += ["edge weights ignored (not asked for)"] if has_weights else []
        return
    if not has_weights or not (any_name or asked in WEIGHT_NAMES):
        what = f"they are called {WEIGHT_NAMES[0]} here" if has_weights else "it has none"
        raise DataError(f"{origin}: no edge weights '{asked}'; {what}")
    data.keep_weight = True
    notes += without_weightless_edges(data, origin)


def _standardize(
    data: Data, options: ImportOptions, schema: Schema | None, notes: list[str], origin: str
) -> dict[str, Any]:
    """Shift and scale features, by the schema where there is one; returns by how much."""
    x = _dense(data)
    center, scale = None, None
    if x is not None and schema is not None:
        center, scale = schema.get("center"), schema.get("scale")
    elif x is not None and options.standardize:
        deviation = x.double().std(dim=0, correction=0)
        center = x.double().mean(dim=0).tolist()
        scale = torch.where(deviation > 0, deviation, 1.0).tolist()
    if x is not None and center is not None and scale is not None:
        if not len(center) == len(scale) == x.size(1):
            raise DataError(
                f"{origin}: the model was trained with {len(center)} features (got {x.size(1)})"
            )
        data.x = (x.double() - torch.tensor(center)) / torch.tensor(scale)
        notes.append("features shifted and scaled to mean 0 and deviation 1")
    return {"center": center, "scale": scale}


def _append(data: Data, made: Tensor, origin: str) -> None:
    """Add columns to the features."""
    parts = [made.double()]
    if data.get("x") is not None:
        x = _dense(data)
        if x is None:
            raise DataError(f"{origin}: x must be a dense array of shape [nodes, features]")
        parts.insert(0, x.double())
    data.x = torch.cat(parts, dim=1)


def _arranged(data: Data, nodes: int, directed: bool, origin: str) -> Tensor:
    """The edges after a check, without self-loops and duplicates."""
    edge_index = data.get("edge_index")
    if not _is_edges(edge_index):
        raise DataError(f"{origin}: edge_index must hold integers of shape [2, edges]")
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes:
        raise DataError(f"{origin}: edge_index must hold node ids from 0 to {nodes - 1}")
    return arranged_edges(edge_index.long(), nodes, directed)


def _made_before(data: Data, options: ImportOptions, origin: str) -> Structure | None:
    """The rule by which ``load`` made features from the edges, if it gave this graph.

    Where edges are held out later, these features have to be made again.
    """
    rule: Structure | None = (data.get("schema") or {}).get("structure")
    if rule is None:
        return None
    if options.features is not None:
        raise ConfigError(f"{origin}: has {rule['kind']} features already")
    x = _dense(data)
    if x is None or x.size(1) != data.schema["num_features"]:
        raise DataError(
            f"{origin}: has features made from edges, but x was changed since it was loaded, so "
            "that they cannot be told from the others; add columns before load makes features"
        )
    return rule


def _refuse_columns(options: ImportOptions, origin: str) -> None:
    drop = next(iter(options.drop), None)
    for option, value in {"label": options.label, "node_id": options.node_id, "drop": drop}.items():
        if value is not None:
            raise ConfigError(f"{origin}: {option}='{value}' needs a table with named columns")


def _forget_unknown_labels(data: Data, schema: Schema) -> None:
    """Set labels of classes that the schema does not know to -1."""
    rule, y = schema["label"], data.get("y")
    if rule is not None and "kind" in rule:
        data.class_names = None
        return
    if rule is None:
        data.y = None
    elif isinstance(y, Tensor) and not y.is_floating_point():
        data.y = torch.where(y < len(rule["classes"]), y, -1)
    data.class_names = None if rule is None else list(rule["classes"])


def _is_edges(edge_index: Any) -> bool:
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
        return False
    return not edge_index.is_floating_point() or not edge_index.numel()


def _node_ids(data: Data, origin: str) -> list[NodeId]:
    given = data.get("node_ids")
    count = _node_count(data, origin)
    if given is None:
        return list(range(count))
    if len(given) != count:
        raise DataError(f"{origin}: node_ids has {len(given)} entries for {count} nodes")
    return list(given)


def _node_count(data: Data, origin: str) -> int:
    """From the features, else another field with one entry per node, else from the edges."""
    for name in ("x", "y", "train_mask"):
        value = data.get(name)
        if isinstance(value, Tensor) and value.dim():
            return value.size(0)
    if data.get("node_ids") is not None:
        return len(data.node_ids)
    if "num_nodes" in data:
        return int(data.num_nodes)
    edge_index = data.get("edge_index")
    if not _is_edges(edge_index) or not edge_index.numel():
        return 0
    largest = int(edge_index.max())
    # A single wrong number must not make a billion nodes.
    if largest > _MOST_NODES_PER_END * edge_index.numel():
        raise DataError(
            f"{origin}: edge_index holds {largest}, but there are only {edge_index.size(1)} edges; "
            "give x, y or node_ids to say how many nodes there are"
        )
    return largest + 1


def _dense(data: Data) -> Tensor | None:
    """The features if they are a dense matrix; others are refused later."""
    x = data.get("x")
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.is_complex() or x.dim() != 2:
        return None
    return x


def _feature_names(data: Data) -> list[str]:
    given, x = data.get("feature_names"), _dense(data)
    count = 0 if x is None else x.size(1)
    if given is not None and len(given) == count:
        return [str(name) for name in given]
    return [f"feature {index}" for index in range(count)]


def _label_rule(data: Data) -> dict[str, Any] | None:
    if data.get("targets") is not None:
        kind, names = data.target_kind, data.target_names
        rule = {"column": None, "classes": [], "kind": kind, "columns": [], "separator": None}
        return {**rule, "names": names}
    y = data.get("y")
    if not isinstance(y, Tensor) or y.is_floating_point() or not y.numel() or int(y.max()) < 0:
        return None
    count = int(y.max()) + 1
    given = data.get("class_names")
    # Labels are checked later, but a label of a billion must not make a billion names here.
    if given is None and count > len(y):
        return None
    names = given if given is not None else [f"class {index}" for index in range(count)]
    return {"column": None, "classes": [str(name) for name in names]}
