"""Graphs of arrays, whose features are numbers already."""

import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.assemble import arranged_edges
from argnn.data.import_graph import ImportedGraph, check_width
from argnn.data.import_options import ImportOptions, NoFeaturesError
from argnn.data.node_ids import NodeId
from argnn.data.schema import SCHEMA_VERSION, Schema
from argnn.data.structural_features import (
    Structure,
    check_edges,
    learned_structure,
    structural_features,
)
from argnn.errors import ConfigError, DataError

_WEIGHT_NAMES = ("weight", "edge_weight")
_MOST_NODES_PER_END = 100


def import_arrays(
    source: Data,
    options: ImportOptions,
    schema: Schema | None,
    origin: str,
    notes: list[str] | None = None,
) -> ImportedGraph:
    """Scale the features of a graph and add to them as the options say, and record how.

    Args:
        source: Holds ``edge_index``, and ``x`` unless features are made from the edges. It is not
            changed.
        options: How to read it; options that name columns are refused.
        schema: The schema of a graph that was read before.
        origin: The file or data set, for error messages.
        notes: What the reader found.
    """
    _refuse_columns(options, origin)
    reader = _ArrayReader(source, options, schema, origin, notes or [])
    reader.choose_weights()
    if schema is not None and reader.is_encoded(schema):
        if schema["structure"] is not None:
            check_edges(schema["structure"], reader.arranged_edges(), origin)
    else:
        reader.standardize()
        reader.add_structure()
    return reader.imported()


class _ArrayReader:
    """The steps of an import, and what they have found so far."""

    def __init__(
        self, source: Data, options: ImportOptions, schema: Schema | None, origin: str, notes: Any
    ) -> None:
        self.options, self.schema, self.origin = options, schema, origin
        self.notes = list(notes)
        self.data = copy.copy(source)  # of the object, not of its tensors
        if schema is not None:
            _forget_unknown_labels(self.data, schema)
        self.node_ids = _node_ids(self.data, origin)
        self.names = _feature_names(self.data)
        self.center: list[float] | None = None
        self.scale: list[float] | None = None
        self.structure = None if schema is not None else _made_before(self.data, options, origin)

    def is_encoded(self, schema: Schema) -> bool:
        """Whether the graph was loaded by this very schema, or has all of its features already."""
        if self.data.get("schema") == schema:
            return True
        x = _dense(self.data)
        is_full = x is not None and x.size(1) == schema["num_features"]
        return is_full and schema["structure"] is not None

    def choose_weights(self) -> None:
        """Keep the weights of the edges if that was asked for."""
        asked, has_weights = self.options.weight, self.data.get("edge_weight") is not None
        if asked is None:
            if has_weights:
                self.notes.append("edge weights ignored (not asked for)")
            return
        if asked not in _WEIGHT_NAMES or not has_weights:
            what = f"they are called {_WEIGHT_NAMES[0]} here" if has_weights else "it has none"
            raise DataError(f"{self.origin}: no edge weights '{asked}'; {what}")
        self.data.keep_weight = True

    def standardize(self) -> None:
        """Shift and scale features, by the schema where there is one."""
        x = _dense(self.data)
        if x is None:
            return
        if self.schema is not None:
            self.center, self.scale = self.schema.get("center"), self.schema.get("scale")
        elif self.options.standardize and self.structure is not None:
            raise ConfigError(f"{self.origin}: has made features already; standardize it first")
        elif self.options.standardize:
            deviation = x.double().std(dim=0, correction=0)
            self.center = x.double().mean(dim=0).tolist()
            self.scale = torch.where(deviation > 0, deviation, 1.0).tolist()
        if self.center is None or self.scale is None:
            return
        if not len(self.center) == len(self.scale) == x.size(1):
            raise DataError(
                f"{self.origin}: the model was trained with {len(self.center)} features "
                f"(got {x.size(1)})"
            )
        self.data.x = (x.double() - torch.tensor(self.center)) / torch.tensor(self.scale)
        self.notes.append("features shifted and scaled to mean 0 and deviation 1")

    def add_structure(self) -> None:
        """Append features made from the edges, by the schema where there is one."""
        options = self.options
        asked = options.features is not None if self.schema is None else self.schema["structure"]
        if not asked:
            return
        edge_index = self.arranged_edges()
        if self.schema is not None:
            self.structure = self.schema["structure"]
        else:
            self.structure = learned_structure(
                str(options.features), options.seed, self.node_ids, options.directed, edge_index
            )
        assert self.structure is not None
        made, names = structural_features(self.structure, edge_index, self.node_ids, self.origin)
        parts = [torch.from_numpy(made).double()]
        if self.data.get("x") is not None:
            x = _dense(self.data)
            if x is None:
                raise DataError(
                    f"{self.origin}: x must be a dense array of shape [nodes, features]"
                )
            parts.insert(0, x.double())
        self.data.x = torch.cat(parts, dim=1)
        self.names += names
        self.notes.append(f"{len(names)} features made from the edges ({self.structure['kind']})")

    def arranged_edges(self) -> Tensor:
        """The edges after a check, without self-loops and duplicates."""
        edge_index, nodes = self.data.get("edge_index"), len(self.node_ids)
        if not _is_edges(edge_index):
            raise DataError(f"{self.origin}: edge_index must hold integers of shape [2, edges]")
        if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes:
            raise DataError(f"{self.origin}: edge_index must hold node ids from 0 to {nodes - 1}")
        return arranged_edges(edge_index.long(), nodes, self.options.directed)

    def imported(self) -> ImportedGraph:
        """The result of all steps."""
        if self.data.get("x") is None and _is_edges(self.data.get("edge_index")):
            raise NoFeaturesError(self.origin)
        if self.schema is not None:
            x = self.data.x
            check_width(x.size(1) if x.dim() == 2 else 0, self.schema, self.origin)
        schema = dict(self.schema) if self.schema is not None else self._written_schema()
        return ImportedGraph(self.data, self.node_ids, self.names, schema, self.notes)

    def _written_schema(self) -> dict[str, Any]:
        return {
            "version": SCHEMA_VERSION,
            "directed": self.options.directed,
            "row_normalize": self.options.row_normalize,
            "num_features": len(self.names),
            "id": None,
            "weight": self.options.weight,
            "drop": [],
            "columns": None,
            "center": self.center,
            "scale": self.scale,
            "structure": self.structure,
            "label": _label_rule(self.data),
        }


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
