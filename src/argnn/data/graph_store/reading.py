"""The graph of a store by the options of ``load``, most of which were settled by converting."""

from collections.abc import Mapping
from typing import Any

import torch
from torch_geometric.data import Data

from argnn.data.assemble import (
    DRAWN_RULES,
    DRAWN_SEED,
    NO_SPLIT_ASKED,
    TIME_RULE,
    WEIGHT_RULE,
    TooFewLabelsError,
    empty_masks,
    folded,
    known_labels,
)
from argnn.data.columns import is_standardized
from argnn.data.graph_store.opening import GraphStore
from argnn.data.import_options import WEIGHT_NAMES, ImportOptions
from argnn.data.schema import Schema
from argnn.data.splits import MASK_NAMES, Folds
from argnn.errors import ConfigError, DataError, error_prefix

#: The parts of a schema by which features are made.
_FEATURE_RULES = (
    *("num_features", "columns", "center", "scale", "structure"),
    *("directed", "row_normalize"),
)


def stored_graph(
    store: GraphStore, options: ImportOptions, schema: Schema | None, draw_split: bool
) -> Data:
    """The graph of a store; an option that the store was not converted with is refused.

    Weights, times and directions count where they are asked for, as with any other source. A store
    must have been converted by the rules of a ``schema``. A split that was drawn at the conversion
    is left out unless ``draw_split``.
    """
    if schema is None:
        _check_options(store, options)
    else:
        _check_schema(store, schema)
    weight, time = _asked_weight(store, options, schema), _asked_time(store, options)
    graph = store.graph(weight=weight, time=time)
    _say_what_is_left_out(graph, store, weight, time)
    if schema is not None:
        _take_labels(graph, schema)
    elif options.task == "node" and graph.get("targets") is not None:
        for name in ("targets", "target_names", "target_kind"):
            del graph[name]
    if options.folds is not None:
        _fold(graph, store, Folds(options.folds, options.groups))
    elif (not draw_split or schema is not None) and graph.split_rule in DRAWN_RULES:
        _leave_out_split(graph)
    elif draw_split and schema is None and graph.split_rule == NO_SPLIT_ASKED:
        raise TooFewLabelsError(f"{store.path}: was converted without a split, for lack of labels")
    return graph


def _check_options(store: GraphStore, options: ImportOptions) -> None:
    """Raise for an option that would change what the store holds."""
    rules = store.header.graph.schema
    if options.directed != store.directed:
        raise ConfigError(
            f"{store.path}: was converted {'with' if store.directed else 'without'} --directed, "
            f"so say {'--directed' if store.directed else 'no --directed'} here, or convert again"
        )
    structure, label = rules["structure"] or {}, rules["label"] or {}
    scaled = is_standardized(rules)
    if options.standardize is False and scaled:
        raise ConfigError(
            f"{store.path}: was converted with standardized numbers; convert the source again with "
            "--no-standardize"
        )
    decimals = {".", *(rule.get("decimal") for rule in rules["columns"] or ())}
    orders = {rule.get("order") for rule in rules["columns"] or ()}
    names = [label.get("column"), ",".join(label.get("columns") or ())]
    settled: dict[str, tuple[Any, bool]] = {
        "row-normalize": (options.row_normalize, rules["row_normalize"]),
        "features": (options.features, options.features == structure.get("kind")),
        "label": (options.label, options.label in names),
        "id": (options.node_id, options.node_id == rules["id"]),
        "drop": (options.drop, set(options.drop) <= set(rules.get("drop", ()))),
        "standardize": (options.standardize, scaled),
        "decimal": (options.decimal, options.decimal in decimals),
        "month-first": (options.month_first, "mdy" in orders),
    }
    for name, (asked, agrees) in settled.items():
        if asked and not agrees:
            raise ConfigError(
                f"{store.path}: was converted without this --{name}; convert the source again"
            )
    kind = store.header.graph.target_kind
    if options.task in ("regression", "multilabel") and options.task != kind:
        raise DataError(
            f"{store.path}: holds no targets of --task {options.task}; convert the source with it"
        )


def _check_schema(store: GraphStore, schema: Schema) -> None:
    """Raise unless the features of the store mean what they mean in a schema."""
    rules = store.header.graph.schema
    for name in _FEATURE_RULES:
        if rules.get(name) != schema.get(name):
            raise DataError(
                f"{store.path}: its features were made by other rules ({name}) than those of the "
                "model; use the source of the store"
            )


def _asked_weight(store: GraphStore, options: ImportOptions, schema: Schema | None) -> bool:
    asked = options.weight
    if asked is None:
        return False
    known = {*WEIGHT_NAMES, store.header.graph.schema.get("weight"), (schema or {}).get("weight")}
    if store.by_source.weight is None or asked not in known:
        raise DataError(f"{store.path}: no edge weights '{asked}'; convert with --weight")
    return True


def _asked_time(store: GraphStore, options: ImportOptions) -> bool:
    if options.time is None:
        return False
    if not store.has("edge_time"):
        raise DataError(f"{store.path}: no times of edges; convert the source with --time")
    return True


def _say_what_is_left_out(graph: Data, store: GraphStore, weight: bool, time: bool) -> None:
    """Correct the rule of the edges where weights or times were not asked for."""
    if store.by_source.weight is not None and not weight:
        graph.edge_rule = graph.edge_rule.replace(WEIGHT_RULE, "edge_weight dropped")
        graph.notes.append("edge weights ignored (not asked for)")
    if store.has("edge_time") and not time:
        graph.edge_rule = graph.edge_rule.replace(TIME_RULE, "edge_time dropped")
        graph.notes.append("times of edges ignored (not asked for)")


def _take_labels(graph: Data, schema: Schema) -> None:
    """Labels count only where the model has the same classes or targets."""
    rule: Mapping[str, Any] = schema["label"] or {}
    if graph.get("targets") is not None and rule.get("names") != graph.target_names:
        for name in ("targets", "target_names", "target_kind"):
            del graph[name]
    if "kind" not in rule and graph.class_names != list(rule.get("classes", ())):
        graph.y = torch.full_like(graph.y, -1)
        graph.class_names = list(rule.get("classes", ()))
        graph.class_count = len(graph.class_names)
    graph.schema = dict(schema)


def _fold(graph: Data, store: GraphStore, folds: Folds) -> None:
    """Replace the split by folds, unless it is of these folds; a store does not keep groups."""
    if graph.split_rule == folds.rule(DRAWN_SEED, bool(graph.class_names)):
        return
    if folds.column is not None:
        raise ConfigError(
            f"{store.path}: keeps no groups; convert the source with --folds {folds.count} "
            f"--groups {folds.column}"
        )
    source = Data() if graph.split_rule in (*DRAWN_RULES, NO_SPLIT_ASKED) else graph
    with error_prefix(f"{store.path}:"):
        y = known_labels(graph, graph.y, check=True)
        masks, graph.split_rule, notes = folded(source, y, graph.class_names, folds)
    graph.notes += notes
    for name, mask in zip(MASK_NAMES, masks, strict=True):
        graph[name] = mask


def _leave_out_split(graph: Data) -> None:
    masks = empty_masks(graph.x.size(0))
    for name, mask in zip(MASK_NAMES, masks, strict=True):
        graph[name] = mask
    graph.split_rule = NO_SPLIT_ASKED
