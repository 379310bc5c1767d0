"""Write one page about the learned geometry of a run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.analysis.explorer import Subject, Targets, Worth, document, page
from argnn.analysis.figures.training import CURVES
from argnn.analysis.layers import learned_layers
from argnn.analysis.properties import class_names
from argnn.analysis.tables import TABLES, check_format, geometry_tables, table_bytes
from argnn.data import split_masks
from argnn.errors import RunError
from argnn.estimators import ARGNNClassifier, ARGNNRegressor, load
from argnn.estimators.base import GraphEstimator
from argnn.files import require_folder, require_writable, write_output
from argnn.functional.neighborhood import edges_of
from argnn.nn import AbstractNodeModel, model_class
from argnn.nn.decoders import encoder_of
from argnn.runs.prepare import graph_of_run, stored_run
from argnn.runs.problems import observed_graph
from argnn.runs.summary import SCORES, selection_of_row, summary, without_twins
from argnn.runs.tables import PLAIN_SCORES, SCORE_NAMES, score_name, twin_sentence
from argnn.runs.trial import LEAD
from argnn.settings.run_config import RunConfig
from argnn.store.results import Row
from argnn.telling import Tell, be_silent
from argnn.train.calibration import reliability


def analyze(
    run: Path,
    out: Path,
    *,
    split: int | None = None,
    force: bool = False,
    data_root: str | None = None,
    seed: int = 0,
    tables: Path | None = None,
    table_format: str = "csv",
    ollivier: bool = False,
    tell: Tell = be_silent,
    beside: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Load a run, its graph and its model, and write the page, whole or not at all.

    The options are those of the command. ``beside`` holds further entries of the overview of the
    page, such as a ``comparison``. In the result, ``layers`` counts the layers with a metric.
    """
    require_writable(out, force)
    paths = _table_paths(tables, table_format)
    for path in paths.values():
        require_writable(path, force)
    tell(0, 5, "reading the run and its graph")
    folder, config = stored_run(run)
    estimator: GraphEstimator = load(run, split=split)
    split = config.splits[0] if split is None else split
    config = config.for_split(split)
    rows = {n: row for n in config.splits if (row := folder.finished_row(n)) is not None}
    graph = observed_graph(graph_of_run(config, data_root), split, config.link)
    tell(1, 5, "model")
    subject = run_subject(run, config, estimator, graph, split, rows, seed)
    subject = replace(subject, overview={**subject.overview, **(beside or {})})
    tell(2, 5, "tables, with curvatures" if ollivier else "tables")
    found = _tables(run, subject, ollivier) if paths else {}
    content = document(subject, tell)
    tell(5, 5, "page")
    written = page(content)
    files = {paths[name]: table_bytes(table, table_format) for name, table in found.items()}
    for path, data in {out: written, **files}.items():
        write_output(path, data, force=force)
    return {
        "out": str(out),
        "data": config.data,
        "model": config.model,
        "split": split,
        "nodes": graph.num_nodes,
        "layers": len(content["layers"]),
        "size": len(written),
        "headline": content["headline"],
        "notes": content["notes"],
        "tables": [str(path) for path in paths.values()],
    }


def _table_paths(folder: Path | None, table_format: str) -> dict[str, Path]:
    """File of each table; none where no tables were asked for."""
    if folder is None:
        return {}
    check_format(table_format)
    require_folder(folder)
    return {name: folder / f"{name}.{table_format}" for name in TABLES}


def _tables(run: Path, subject: Subject, ollivier: bool) -> Mapping[str, Any]:
    layers = learned_layers(subject.model, subject.graph)
    if not layers:
        raise RunError(f"{run}: its model learns no metric that tables could describe")
    return geometry_tables(
        subject.graph, layers, graph_ollivier=ollivier, learned_ollivier=ollivier
    )


def run_subject(
    run: Path,
    config: RunConfig,
    estimator: GraphEstimator,
    graph: Data,
    split: int,
    rows: Mapping[int, Row],
    seed: int,
) -> Subject:
    """What a page shows of one split of a run, or of an estimator in memory.

    ``run`` is its folder, or what stands for it in error messages; ``rows`` are the results of all
    splits that are finished.
    """
    row = rows.get(split)
    if row is None:
        raise RunError(f"{run}: split {split} has no result; is the run finished?")
    is_classifier = isinstance(estimator, ARGNNClassifier) and config.task == "node"
    nodes = estimator if is_classifier else None
    fits = estimator.settings_.spec.in_channels == graph.x.size(1)
    if not fits or (nodes and len(nodes.classes_) != graph.class_count):
        raise RunError(f"{run}: damaged, the model does not fit the graph of the run")
    model = encoder_of(estimator.model_)
    try:
        overview = _overview(config, graph, row, list(rows.values()))
        json.dumps(overview, allow_nan=False)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise RunError(f"{run}: a result.json is damaged ({what})") from error
    masks = None if config.task == "link" else split_masks(graph, split)
    proba, predicted = (None, None) if nodes is None else _classes(nodes, graph)
    if proba is not None and predicted is not None and masks is not None:
        overview |= _calibration(proba, predicted, graph.y, masks[2])
    return Subject(
        title=f"{graph.name}: {config.model}, split {split}",
        graph=graph,
        model=model,
        embedding=_embedding(model, graph).numpy(),
        probabilities=proba,
        predicted=predicted,
        class_names=class_names(graph) if nodes or config.task == "link" else [],
        masks=masks,
        overview=overview,
        seed=seed,
        targets=_targets(estimator, graph) if config.task in ("regression", "multilabel") else None,
        worth=_worth(config, masks),
        model_name=config.model,
    )


def _classes(estimator: ARGNNClassifier, graph: Data) -> tuple[NDArray[Any], NDArray[Any]]:
    """Probabilities of the classes, ``[N, C]``, and the number of the predicted one, ``[N]``."""
    proba = estimator.proba(graph)
    decided = estimator.decisions(proba)
    return proba, (decided[:, None] == estimator.classes_).argmax(1)


def _calibration(
    proba: NDArray[Any], predicted: NDArray[Any], y: Tensor, test: Tensor
) -> dict[str, Any]:
    """Confidence and share of right predictions of the test nodes; nothing without any."""
    tested = test & (y >= 0)
    if not bool(tested.any()):
        return {}
    chosen = torch.from_numpy(predicted)[tested]
    bins = reliability(torch.from_numpy(proba)[tested], y[tested], _BINS, chosen)
    count = int(tested.sum())
    error = sum(each.size * abs(each.right - each.confidence) for each in bins) / count
    return {"reliability": {"bins": bins, "error": error, "count": count, "width": 1 / _BINS}}


def _targets(estimator: GraphEstimator, graph: Data) -> Targets:
    is_regressor = isinstance(estimator, ARGNNRegressor)
    found = estimator.values(graph) if is_regressor else estimator.proba(graph)
    known = graph.targets.double().numpy()
    return Targets(graph.target_names, known, found, are_labels=not is_regressor)


def _worth(config: RunConfig, masks: tuple[Tensor, Tensor, Tensor] | None) -> Worth | None:
    """The scores of the trial with a learned and with a fixed metric, where it tried both."""
    trial = config.trial or {}
    found, score = trial.get("metric") or {}, trial.get("score")
    learned, fixed = found.get("learned"), found.get("fixed")
    if learned is None or fixed is None or score is None or score == "loss":
        return None
    plain = score in PLAIN_SCORES
    # What the trial itself takes for chance.
    chance = None if plain or masks is None else LEAD / int(masks[1].sum())
    return Worth(SCORE_NAMES[score], learned, fixed, is_share=not plain, chance=chance)


@torch.no_grad()
def _embedding(model: AbstractNodeModel, graph: Data) -> Tensor:
    """The last hidden state, or the scores if a model has no hidden states."""
    model.eval()
    states = getattr(model, "hidden_states", None)
    edges = edges_of(graph)
    found = states(graph.x, edges)[0][-1] if states else model(graph.x, edges)
    return torch.as_tensor(found).float()


def _overview(config: RunConfig, graph: Data, row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    found = summary(rows)
    sentence = twin_sentence(found)
    return {
        "task": config.task,
        "facts": _facts(config, graph, row),
        "protocol": found["protocol"],
        "interval": found["interval"],
        "scores": _scores(config.task, row, found),
        **_class_scores(row, class_names(graph) if config.task == "node" else None),
        "curves": _curves(row),
        "chosen_epoch": int(row["chosen_epoch"]),
        "notes": [*_notes(config, graph, row, rows), *([sentence] if sentence else [])],
    }


_MOST_CLASSES = 20
_BINS = 10  # of the reliability plot
_TASKS = {
    "node": "classes of nodes",
    "link": "links",
    "regression": "numbers of nodes",
    "multilabel": "labels of nodes",
}


def _facts(config: RunConfig, graph: Data, row: Row) -> list[list[str]]:
    split_rule = str(graph.split_rule)
    if config.link is not None:
        drawn = "drawn with the number of the split as seed"
        split_rule = f"pairs of nodes at {config.link.ratio}, {drawn}"
        if config.link.split_by == "time":
            split_rule = f"{config.link.rule}; non-edges {drawn}"
    has_presets = len(model_class(config.model).preset_sizes) > 1
    facts = {
        "Data": config.data,
        "Model": config.model + (f", preset {config.preset}" if has_presets else ""),
        "Task": _TASKS[config.task],
        "Nodes": f"{graph.num_nodes:,}",
        "Edges": f"{graph.edge_index.size(1):,} as listed ({graph.edge_rule})",
        "Features": f"{graph.x.size(1):,} ({graph.feature_rule})",
        "Split": f"{row['split']} ({split_rule})",
        "Seed": str(config.seed),
        "Chosen epoch": f"{row['chosen_epoch']} of {row['epochs_run']}",
        "Settings": config.source,
        "Device": str(row["device"]),
        **({"Seconds": f"{float(row['seconds']):.1f}"} if row["seconds"] else {}),
        "Version": ", ".join(f"{n} {row['versions'].get(n, '?')}" for n in ("argnn", "torch")),
    }
    return [[name, str(value)] for name, value in facts.items()]


def _scores(task: str, row: Row, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One line per score: this split, and the mean over all."""
    parts = {"test": ("", row["test"] or {})}
    if "test_without_twins" in found:
        parts["test_without_twins"] = (", without twins", without_twins(row) or {})
    lines = [
        {"name": f"test {score_name(name, task)}{word}", "here": _number(scores.get(name))}
        | found[part][name]
        | _unit(name)
        for part, (word, scores) in parts.items()
        for name in SCORES[task]
    ]
    chosen, value = selection_of_row(row)
    val = {"name": f"validation {SCORE_NAMES[chosen]}", "here": _number(value)}
    return [*lines, {**val, **found["val"][chosen], **_unit(chosen)}]


def _unit(score: str) -> dict[str, bool]:
    """Marks a score that is no share."""
    return {"plain": True} if score in PLAIN_SCORES else {}


def _class_scores(row: Row, names: Sequence[str] | None) -> dict[str, Any]:
    """Test scores of each class or label of this split; nothing where there are none.

    Classes have the ``names`` of the rest of the page; labels those of the result.
    """
    found = row.get("classes")
    if not found or not found["test"]:
        return {}
    test, scores = found["test"], ("precision", "recall", "f1", "average_precision")
    lines = [
        {
            "name": str(name),
            "nodes": int(test["support"][label]),
            "shares": [_number(test[score][label]) for score in scores],
        }
        for label, name in enumerate((names or found["names"])[:_MOST_CLASSES])
    ]
    return {"class_scores": lines}


def _curves(row: Row) -> dict[str, list[Any]]:
    """Columns of the history; a value that was not recorded is None."""
    history = row["history"]
    epochs = [int(record["epoch"]) for record in history]
    curves = {name: [_number(record.get(name)) for record in history] for name in CURVES}
    kept = {name: values for name, values in curves.items() if any(values)}
    if "penalty" not in kept:
        kept.pop("task_loss", None)  # equal to the loss
    return {"epoch": epochs, **kept}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _notes(config: RunConfig, graph: Data, row: Row, rows: Sequence[Row]) -> list[str]:
    notes = [str(note) for note in graph.get("notes") or []]
    unfinished = len(config.splits) - len(rows)
    if unfinished:
        notes.append(f"{unfinished} of {len(config.splits)} splits have no result.")
    if config.task == "link":
        notes.append(
            "A model of links predicts no classes. The map shows what the model saw: the "
            "edges without the pairs that were held out of training."
        )
    absent = (row["test"] or {}).get("absent_classes")
    if absent:
        names = class_names(graph)
        notes.append(f"Classes without a test node: {', '.join(names[label] for label in absent)}.")
    return notes
