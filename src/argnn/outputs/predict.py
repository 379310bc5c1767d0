"""Predict with a trained model, and write the predictions as a table."""

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from argnn.csv_cells import csv_text, plain_cell
from argnn.errors import ConfigError, DataError
from argnn.estimators import ARGNNLinkPredictor, ARGNNRegressor, load
from argnn.estimators.base import GraphEstimator, ids_of
from argnn.estimators.new_nodes import prepared
from argnn.estimators.node_estimator import NodeEstimator
from argnn.files import require_writable, write_output
from argnn.runs.prepare import graph_of_run, stored_run
from argnn.runs.problems import observed_graph
from argnn.store.run_folder import RunFolder
from argnn.telling import Tell, be_silent
from argnn.train.devices import resolve_device

_PAIR_COLUMNS = ["source", "target"]
#: The columns that hold decisions, not probabilities.
_DECISIONS = ("class", "labels", "link")
_MAX_PAIRS_FILE = 2**30


def predict(
    run: Path,
    out: Path,
    *,
    data: str | None = None,
    split: int | None = None,
    pairs: Path | None = None,
    top: int | None = None,
    node: str | None = None,
    new_nodes: Path | None = None,
    new_edges: Path | None = None,
    force: bool = False,
    data_root: str | None = None,
    device: str = "cpu",
    tell: Tell = be_silent,
) -> dict[str, Any]:
    """Load a model and a graph, predict, and write the table, whole or not at all.

    The options are those of the command. Of a run without ``data`` its own graph is taken, for
    links without the pairs that were held out.
    """
    require_writable(out, force)
    device = resolve_device(device, "--device")
    tell(0, 4, "reading the model")
    estimator: GraphEstimator = load(run, split=split, device=device)
    for option, given in {"--pairs": pairs, "--top": top}.items():
        if given is not None and not isinstance(estimator, ARGNNLinkPredictor):
            raise ConfigError(f"{option} belongs to a model of links, and this one has classes")
    if isinstance(estimator, ARGNNLinkPredictor) and (pairs is None) == (top is None):
        raise ConfigError(
            "a model of links needs --pairs FILE, with columns source and target, or --top K"
        )
    if node is not None and top is None:
        raise ConfigError("--node needs --top K, how many of its links are suggested")
    if isinstance(estimator, ARGNNLinkPredictor) and new_nodes is not None:
        raise ConfigError("--new-nodes belongs to a model of classes, and this one predicts links")
    if new_edges is not None and new_nodes is None:
        raise ConfigError("--new-edges needs --new-nodes FILE, the nodes that they belong to")
    tell(1, 4, "reading the graph")
    if data is None:
        graph, edges = _trained_graph(run, split, estimator, data_root)
    else:
        graph = estimator.read(data, root=data_root)
        edges = graph.edge_index
    if new_nodes is not None:
        context = prepared(graph, graph, estimator.schema_)
        graph = estimator.read_new(new_nodes, new_edges, context)
    tell(2, 4, "predicting")
    if not isinstance(estimator, ARGNNLinkPredictor):
        assert isinstance(estimator, NodeEstimator)
        columns = estimator.columns(graph)
    elif pairs is not None:
        asked = _read_pairs(pairs, graph)
        columns = estimator.pair_columns(asked, estimator.pair_logits(asked, graph))
    else:
        assert top is not None
        columns = estimator.suggested(top, _named_node(node, graph), graph, edges)
    decisions = [str(v) for name, values in columns if name in _DECISIONS for v in values]
    digits = ".9g" if isinstance(estimator, ARGNNRegressor) else ".6f"
    rows = zip(*(_cells(values, digits) for _, values in columns), strict=True)
    tell(3, 4, "writing the table")
    table = csv_text([[name for name, _ in columns], *rows])
    write_output(out, table.encode(), force=force)
    return {
        "out": str(out),
        "data": str(graph.name),
        "model": estimator.settings_.spec.model,
        "task": estimator.task,
        "rows": len(decisions) or graph.x.size(0),
        "counts": dict(sorted(Counter(decisions).items())),
        "temperature": estimator.temperature_,
        "ece": estimator.ece_,
        "decision_rule": getattr(estimator, "decision_rule_", None),
        "notes": [str(note) for note in graph.get("notes") or []],
    }


def _trained_graph(
    run: Path, split: int | None, estimator: GraphEstimator, data_root: str | None
) -> tuple[Data, Tensor]:
    """The graph that the model of a run was trained on, and its edges with those held out."""
    if not RunFolder(run).config.exists():
        raise ConfigError(f"{run}: does not say which graph it is of; name it after the run")
    _, config = stored_run(run)
    if config.link is None:
        found = estimator.read(config.data, root=data_root)
        return found, found.edge_index
    graph = graph_of_run(config, data_root)
    split = config.splits[0] if split is None else split
    return estimator.read(observed_graph(graph, split, config.link)), graph.edge_index


def _cells(values: Iterable[Any], digits: str) -> list[Any]:
    """A column in the form in which it is written."""
    return [f"{value:{digits}}" if isinstance(value, float) else value for value in values]


def _named_node(name: str | None, graph: Data) -> Any:
    """The id that a word of the command line means."""
    known = {str(node): node for node in ids_of(graph)} if name is not None else {}
    if name is not None and name not in known:
        raise ConfigError(f"--node: unknown node '{name[:80]}'")
    return None if name is None else known[name]


def _read_pairs(path: Path, graph: Data) -> list[tuple[Any, Any]]:
    """Pairs of node ids from a CSV file; every one must be in the graph."""
    place = {str(name): name for name in ids_of(graph)}
    pairs = []
    for line, row in _csv_rows(path):
        if len(row) != 2:
            raise DataError(f"{path}, line {line}: two columns are expected (got {len(row)})")
        for column, name in zip(_PAIR_COLUMNS, row, strict=True):
            if name not in place:
                raise DataError(f"{path}, line {line}, column {column}: unknown node '{name[:80]}'")
        pairs.append((place[row[0]], place[row[1]]))
    if not pairs:
        raise DataError(f"{path}: has no pairs")
    return pairs


def _csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows below the header with their line numbers; empty lines are left out."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.stat().st_size > _MAX_PAIRS_FILE:
        raise DataError(f"{path}: too large for a list of pairs ({path.stat().st_size} bytes)")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            if header != _PAIR_COLUMNS:
                raise DataError(f"{path}, line 1: the columns must be source,target")
            return [(reader.line_num, list(map(plain_cell, row))) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: not a CSV file ({error})") from error
