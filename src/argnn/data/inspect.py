"""A report on a graph before training, as JSON values and as tables for a terminal."""

import math
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

import numpy as np
import torch
from rich.markup import escape
from rich.table import Table
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.columns import column_places, described
from argnn.data.graph_store.opening import check_store
from argnn.data.import_graph import labelled_nodes
from argnn.data.import_options import Columns, NoFeaturesError
from argnn.data.loading import as_store, load_with_or_without_split
from argnn.data.splits import split_masks
from argnn.data.tables import GIVE_FOLDER, listed
from argnn.functional import edge_homophily, node_homophily, twin_counts, twin_groups
from argnn.tables import rich_table
from argnn.telling import Tell, be_silent
from argnn.wording import printable

GraphReport = dict[str, Any]

_FEW_NODES = 5
_DOMINANT = 0.9
_UNEQUAL_SCALES = 1000.0
_MOST_ROWS = 30
#: Of a column that may be the label: nodes that are looked at, share of them that it must tell,
#: fewest of them in a leaf of a tree of numbers, and most classes.
_MOST_COMPARED, _NEARLY_ALL, _LEAST_IN_LEAF, _MOST_CLASSES = 5000, 0.95, 5, 20
_LABEL_WORDS = ("label", "class", "target", "status", "category", "type", "group", "kind")


def inspect_graph(
    data: str,
    *,
    root: str | None = None,
    directed: bool = False,
    row_normalize: bool = False,
    columns: Columns | None = None,
    tell: Tell = be_silent,
) -> GraphReport:
    """Sizes, degrees, components, homophily, classes, columns and warnings, as JSON values.

    A graph without node features gives a warning, not an error. ``data`` is the name of a data set
    or the path of a graph; for the options see :func:`argnn.data.load`. All files of a graph store
    are compared with their checksums, of which ``tell`` is told.
    """
    store = as_store(data)
    if store is not None:
        check_store(store, tell)
    options = (columns or Columns()).given()
    options |= {"root": root, "directed": directed, "row_normalize": row_normalize, "task": "auto"}
    try:
        return _report(load_with_or_without_split(data, **options), data, has_features=True)
    except NoFeaturesError:
        graph = load_with_or_without_split(data, **options | {"features": "degree"})
        return _report(graph, data, has_features=False)


def _report(graph: Data, data: str, has_features: bool) -> GraphReport:
    directed = "directions kept" in graph.edge_rule
    ends = graph.edge_index.flatten() if directed else graph.edge_index[1]
    degrees = torch.bincount(ends, minlength=graph.num_nodes).numpy()
    report: GraphReport = {
        "name": graph.name,
        "data": data,
        "nodes": graph.num_nodes,
        "edges": graph.edge_index.size(1) // (1 if directed else 2),
        "directed": directed,
        "weighted": graph.get("edge_weight") is not None,
        "features": graph.x.size(1) if has_features else 0,
        "degrees": {
            "min": int(degrees.min()),
            "median": float(np.median(degrees)),
            "mean": float(degrees.mean()),
            "max": int(degrees.max()),
        },
        "isolated": int((degrees == 0).sum()),
        "components": _components(graph),
        "homophily": {
            "edge": _defined(edge_homophily(graph.edge_index, graph.y)),
            "node": _defined(node_homophily(graph.edge_index, graph.y)),
        },
        "classes": _classes(graph),
        **_targets(graph),
        "unlabelled": int((~labelled_nodes(graph, graph.num_nodes)).sum()),
        "splits": _splits(graph),
        "twins": _twins(graph),
        "columns": _columns(graph, has_features),
        "rules": {
            "edges": graph.edge_rule,
            "features": graph.feature_rule,
            "splits": graph.split_rule,
        },
        "notes": [note for note in graph.notes if has_features or "(degree)" not in note],
    }
    report["warnings"] = [
        *_feature_warnings(graph, has_features),
        *leak_warnings(graph),
        *class_warnings(graph),
        *_edge_warnings(report),
        *_twin_warnings(report["twins"]),
    ]
    return report


def _defined(share: float) -> float | None:
    return None if math.isnan(share) else share


def _components(graph: Data) -> dict[str, int]:
    source, target = graph.edge_index.numpy()
    shape = (graph.num_nodes, graph.num_nodes)
    adjacency = csr_matrix((np.ones(len(source), dtype=np.int8), (source, target)), shape=shape)
    count, member = connected_components(adjacency, directed=True, connection="weak")
    return {"count": int(count), "largest": int(np.bincount(member).max())}


def _classes(graph: Data) -> list[dict[str, Any]]:
    labels = graph.y[graph.y >= 0]
    counts = torch.bincount(labels, minlength=graph.class_count).tolist()
    return [
        {"name": name, "nodes": count, "share": count / max(1, len(labels))}
        for name, count in zip(graph.class_names, counts, strict=True)
    ]


def _targets(graph: Data) -> dict[str, Any]:
    """What is known of targets that are no classes; nothing where there are none."""
    targets = graph.get("targets")
    if targets is None:
        return {}
    known = targets[labelled_nodes(graph, graph.num_nodes)].double()
    rows = [
        {
            "name": name,
            "nodes": len(values),
            **{word: getattr(values, word)().item() for word in ("min", "mean", "max")},
        }
        for name, values in zip(graph.target_names, known.unbind(1), strict=True)
    ]
    return {"task": graph.target_kind, "targets": rows}


def _splits(graph: Data) -> dict[str, int]:
    """How many splits there are, and how many nodes each part of the first one has."""
    parts = {"train": graph.train_mask, "val": graph.val_mask, "test": graph.test_mask}
    sizes = {name: int(mask[:, 0].sum()) for name, mask in parts.items()}
    return {"count": graph.train_mask.size(1) if sizes["train"] else 0, **sizes}


def _twins(graph: Data) -> dict[str, float | None] | None:
    """How many test nodes have the same neighbours as a training node, over all splits.

    How often twins are of one class is counted on validation nodes, so that no test label is
    used: the mean share of a node's training twins that have its class. None without splits.
    """
    if not graph.train_mask.any() or graph.get("targets") is not None:
        return None
    groups = twin_groups(graph.edge_index, graph.num_nodes)
    tested, with_twin, agreeing = 0, 0, []
    for split in range(graph.train_mask.size(1)):
        train, val, test = split_masks(graph, split)
        twins = twin_counts(groups, train)
        tested += int(test.sum())
        with_twin += int((test & (twins > 0)).sum())
        for label in graph.y[val].unique():
            asked = val & (graph.y == label) & (twins > 0)
            alike = twin_counts(groups, train & (graph.y == label))
            agreeing.append(alike[asked] / twins[asked])
    shares = torch.cat(agreeing)
    return {
        "test": tested,
        "with_twin": with_twin,
        "share": with_twin / tested if tested else None,
        "same_class": shares.mean().item() if len(shares) else None,
    }


def _columns(graph: Data, has_features: bool) -> list[dict[str, str]]:
    """What each column of the user's table was turned into."""
    schema = graph.schema
    if schema["columns"] is None:
        return []
    rows = [{"column": rule["name"], "became": described(rule)} for rule in schema["columns"]]
    if schema["id"] is not None:
        rows.insert(0, {"column": schema["id"], "became": "the ids of the nodes"})
    if "kind" in (schema["label"] or {}):
        became = {"regression": "a number to predict", "multilabel": "labels to predict"}
        rows += [
            {"column": name, "became": became[schema["label"]["kind"]]}
            for name in schema["label"]["columns"]
        ]
    elif schema["label"] is not None:
        count = len(schema["label"]["classes"])
        rows.append({"column": schema["label"]["column"], "became": f"the class, one of {count}"})
    if schema["structure"] is not None and has_features:
        kind = schema["structure"]["kind"]
        rows.append({"column": "(edges)", "became": f"{kind} features"})
    return rows


def _feature_warnings(graph: Data, has_features: bool) -> list[str]:
    if not has_features:
        kinds = "degree, onehot, random or laplacian"
        return [f"the nodes have no features: choose some with --features {kinds}"]
    # A few columns at a time: a copy of all would take twice the memory of the graph.
    parts = (part.double().std(dim=0, correction=0) for part in graph.x.split(64, dim=1))
    deviation = torch.cat([*parts])
    constant = _named(graph.feature_names, (deviation == 0) & ~_hashed(graph))
    varying = deviation[deviation > 0]
    warnings = [f"features that are the same for all nodes: {constant}"] if constant else []
    if len(varying) and float(varying.max() / varying.min()) > _UNEQUAL_SCALES:
        scales = "the features differ a thousandfold and more in scale"
        warnings.append(f"{scales}: consider --standardize")
    return warnings


def _hashed(graph: Data) -> Tensor:
    """Which features are hashes, of which some are always 0."""
    hashed = torch.zeros(graph.x.size(1), dtype=torch.bool)
    for rule, place in column_places(graph.schema["columns"] or []):
        hashed[place] = rule["kind"] in ("hashed", "text")
    return hashed


def leak_warnings(graph: Data) -> list[str]:
    """Warn of columns from which the class of nearly every node follows, such as a copy of it."""
    known = (graph.y >= 0).nonzero().squeeze(1)
    rows = known[:: 1 + len(known) // _MOST_COMPARED]
    y, warnings = graph.y[rows], []
    if len(y.unique()) < 2:
        return []
    for rule, place in column_places(graph.schema["columns"] or []):
        share = 0.0 if rule["kind"] == "vector" else _told_share(graph.x[rows, place], y)
        if share >= _NEARLY_ALL:
            which = "every" if share == 1 else "nearly every"
            told = f"column {rule['name']} tells the class of {which} labelled node"
            warnings.append(f"{told}: --drop {quote(rule['name'])} if it is the label again")
    return warnings


def _told_share(values: Tensor, y: Tensor) -> float:
    """How many classes follow from the features of a column, of those a constant does not tell."""
    kinds, which = values.unique(dim=0, return_inverse=True)
    if len(kinds) > len(y) // 2:  # with so many values, the class follows by chance
        leaves = {"max_leaf_nodes": 2 * len(y.unique()), "min_samples_leaf": _LEAST_IN_LEAF}
        tree = DecisionTreeClassifier(**leaves, random_state=0).fit(values.numpy(), y.numpy())
        which = torch.from_numpy(tree.apply(values.numpy()))
    counts = torch.zeros(int(which.max()) + 1, int(y.max()) + 1, dtype=torch.int64)
    counts.index_put_((which, y), torch.tensor(1), accumulate=True)
    usual, told = int(counts.sum(0).max()), int(counts.max(1).values.sum())
    return (told - usual) / (len(y) - usual)


def label_hint(graph: Data) -> str:
    """For a table without labels, which of its columns could hold them."""
    likely = [
        rule["name"]
        for rule, place in column_places(graph.schema["columns"] or [])
        if _is_likely_label(rule, graph.x[:_MOST_COMPARED, place.start])
    ]
    likely.sort(key=lambda name: not any(word in name.lower() for word in _LABEL_WORDS))
    if not likely:
        beside = [note for note in graph.get("notes") or [] if note.endswith(GIVE_FOLDER)]
        return f" ({beside[0]})" if beside else ""
    return f"; the column of the classes could be {listed(likely, 3)} (--label {quote(likely[0])})"


def _is_likely_label(rule: Mapping[str, Any], values: Tensor) -> bool:
    if rule["kind"] == "category":
        return 2 <= len(rule["categories"]) <= _MOST_CLASSES
    return rule["kind"] == "boolean" or (
        rule["kind"] == "number"
        and 2 <= len(values.unique()) <= min(_MOST_CLASSES, len(values) // 2)
    )


def _named(names: list[str], chosen: Tensor) -> str:
    return listed([name for name, kept in zip(names, chosen.tolist(), strict=True) if kept])


def _class_word(name: str) -> str:
    return f"class {name.removeprefix('class ')}"


def class_warnings(graph: Data) -> list[str]:
    """What is to be known about the classes of a graph before training."""
    if graph.get("targets") is not None:
        return []
    classes, splits = _classes(graph), _splits(graph)
    if not classes:
        only = "the graph has no labels: only links can be learned (--task link)"
        return [only + label_hint(graph)]
    if len(classes) == 1:
        return [f"there is only one class, {classes[0]['name']}: nothing can be learned"]
    small = [row["name"] for row in classes if row["nodes"] < _FEW_NODES]
    warnings = [f"classes of fewer than {_FEW_NODES} nodes: {listed(small)}"] if small else []
    largest = max(classes, key=lambda row: row["nodes"])
    if largest["share"] > _DOMINANT:
        warnings.append(
            f"{100 * largest['share']:.0f} % of the labelled nodes are of "
            f"{_class_word(largest['name'])}: look at the macro F1, not at the accuracy "
            "(--select f1_macro or average_precision)"
        )
    if not splits["count"]:
        return [*warnings, "there are too few labels to draw a split: give a column split"]
    seen = torch.bincount(graph.y[graph.train_mask[:, 0]], minlength=len(classes))
    unseen = _named(graph.class_names, seen == 0)
    if unseen:
        warnings.append(f"classes without a training node in the first split: {unseen}")
    if (judged := graph.y[graph.val_mask[:, 0]].unique()).numel() == 1:
        name = _class_word(graph.class_names[int(judged)])
        warnings.append(
            f"all validation nodes of the first split are of {name}: they cannot tell good epochs "
            "and settings from bad ones"
        )
    if not splits["test"]:
        warnings.append("there are no test nodes: nothing will be scored")
    return warnings


def _edge_warnings(report: GraphReport) -> list[str]:
    if not report["edges"]:
        return ["there are no edges: a model without a graph is enough"]
    share = report["isolated"] / report["nodes"]
    warnings = [f"{100 * share:.0f} % of the nodes have no edges"] if share > 0.1 else []
    largest = report["components"]["largest"]
    if largest < 0.5 * report["nodes"]:
        warnings.append(
            f"the graph falls into {report['components']['count']} parts; the largest holds "
            f"{largest} of {report['nodes']} nodes"
        )
    return warnings


def _twin_warnings(twins: dict[str, Any] | None) -> list[str]:
    if twins is None or not twins["with_twin"]:
        return []
    alike, agreement = twins["same_class"], ""
    if alike is not None:
        agreement = f" Of validation nodes with such a twin, {100 * alike:.0f} % are of its class."
    return [
        f"{twins['with_twin']} of {twins['test']} test nodes over all splits "
        f"({100 * twins['share']:.1f} %) have a twin, a training node with the same neighbours."
        f"{agreement} A model can copy the class of a twin: only the scores without twins say what "
        "it does on other nodes"
    ]


def inspection_tables(report: GraphReport) -> Iterator[Table]:
    """A table of facts, then one of classes and one of columns where there are any."""
    yield _facts(report)
    if report["classes"]:
        rows = [(c["name"], str(c["nodes"]), f"{100 * c['share']:.1f}") for c in report["classes"]]
        yield _table(("class", "nodes", "%"), rows)
    if "targets" in report:
        rows = [
            (row["name"], str(row["nodes"]), *(f"{row[w]:.4g}" for w in ("min", "mean", "max")))
            for row in report["targets"]
        ]
        yield _table((f"target of {report['task']}", "nodes", "min", "mean", "max"), rows)
    if report["columns"]:
        columns = [(row["column"], row["became"]) for row in report["columns"]]
        yield _table(("column", "became"), columns)


def _facts(report: GraphReport) -> Table:
    degrees, components = report["degrees"], report["components"]
    spread = f"{degrees['min']} to {degrees['max']}"
    splits, rule = report["splits"], report["rules"]["splits"]
    sizes = "/".join(str(splits[part]) for part in ("train", "val", "test"))
    facts = {
        "nodes": str(report["nodes"]),
        "edges": f"{report['edges']} {'directed' if report['directed'] else 'undirected'}"
        + (", weighted" if report["weighted"] else ""),
        "features": str(report["features"]),
        "degrees": f"{spread}, median {degrees['median']:g}, mean {degrees['mean']:.2f}",
        "nodes without edges": str(report["isolated"]),
        "components": f"{components['count']}, the largest of {components['largest']} nodes",
        "homophily": _homophily_words(report["homophily"]),
        "unlabelled nodes": str(report["unlabelled"]),
        "splits": f"{splits['count']} ({rule}); {sizes} nodes in the first"
        if splits["count"]
        else rule,
    }
    table = _table(("", str(report["name"])), list(facts.items()))
    table.columns[0].no_wrap = True
    return table


def _homophily_words(shares: Mapping[str, float | None]) -> str:
    if shares["edge"] is None:
        return "-"
    node = "-" if shares["node"] is None else f"{shares['node']:.2f}"
    return f"{shares['edge']:.2f} of edges, {node} of nodes"


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Cells come from the user's file, so that nothing in them may act as markup."""
    names = [escape(name) for name in header]
    words = [names[0], *(name for name in names if name not in ("nodes", "%"))]
    cells = [[escape(printable(cell)) for cell in row] for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        cells.append([f"... {len(rows) - _MOST_ROWS} more", *[""] * (len(header) - 1)])
    return rich_table(names, cells, left=words)
