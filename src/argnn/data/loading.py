"""Load a graph: by the name of a data set, from a file, or from an object in memory."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy.sparse import issparse
from torch_geometric.data import Data

from argnn.data.assemble import TooFewLabelsError
from argnn.data.benchmarks import check_counts, load_benchmark
from argnn.data.columns import is_standardized
from argnn.data.digits_graph import digits
from argnn.data.formats import objects
from argnn.data.formats.graphml import read_graphml
from argnn.data.formats.parquet_files import read_parquet
from argnn.data.formats.text_files import SUFFIXES, read_csv, read_edge_list
from argnn.data.graph_store.header import is_store
from argnn.data.graph_store.opening import GraphStore, open_store
from argnn.data.graph_store.reading import stored_graph
from argnn.data.import_arrays import import_arrays
from argnn.data.import_graph import ImportedGraph, TableImport
from argnn.data.import_options import MAX_CATEGORIES, ImportOptions
from argnn.data.limited_reading import read_limited
from argnn.data.npz import load_npz
from argnn.data.schema import Schema, check_schema
from argnn.data.specs import DATASETS
from argnn.data.splits import Folds
from argnn.data.synthetic import mixed
from argnn.data.tables import GraphTables, Table, listed
from argnn.errors import ConfigError, DataError
from argnn.registry import resolve
from argnn.wording import printable

_EMBEDDED: dict[str, Callable[[], Data]] = {"digits": digits, "mixed": mixed}
_SUPPORTED = (
    ".npz, .graphml, edge lists (.txt, .tsv, .csv), and folders with edges.csv or edges.parquet"
)


def load(
    source: Any,
    *,
    root: str | Path | None = None,
    directed: bool = False,
    row_normalize: bool = False,
    features: str | None = None,
    label: str | None = None,
    node_id: str | None = None,
    weight: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    standardize: bool | None = None,
    decimal: str | None = None,
    month_first: bool = False,
    max_categories: int = MAX_CATEGORIES,
    seed: int = 0,
    folds: int | None = None,
    groups: str | None = None,
    draw_split: bool = True,
    task: str = "node",
    schema: Mapping[str, Any] | None = None,
) -> Data:
    """Load a graph, check it, and bring it to the one form that the library works with.

    Args:
        source: A name of ``DATASETS``; the path of a file (``.npz``, ``.graphml``, an edge list),
            of a folder with ``edges.csv`` or ``edges.parquet`` and perhaps a table of nodes, or of
            a store, the folder that ``argnn convert`` writes; a PyG ``Data``; a networkx graph;
            ``(X, edge_index)``; a sparse adjacency matrix, alone or as ``(A, X)``; a pandas table
            of edges, alone or as ``(edges, nodes)``.
        root: Folder of the raw benchmark files; else ``$ARGNN_DATA``, else the cache.
        directed: Keep the directions of the edges instead of listing both.
        row_normalize: Scale each row of the nodes' own features to sum one.
        features: Features made from the edges, added after those that the nodes have:
            ``"degree"``, ``"onehot"``, ``"random"`` or ``"laplacian"``. For link prediction they
            are made again from the training edges of each split.
        label: Node column of the classes; ``label`` or ``y`` if not given. For other targets
            several columns may be named, with commas.
        node_id: Node column of the ids; ``id`` or the first one if not given.
        weight: Edge column of the weights, kept as ``edge_weight``; left out if not given. Where
            there is only one and it has no name, it is called ``weight``. Weights must be finite
            and not negative; an edge of weight zero is left out.
        time: Edge column of time stamps, kept as ``edge_time``: numbers, or ISO dates, which become
            seconds since 1970. Of duplicates the first in time counts.
        drop: Node columns to leave out.
        standardize: Shift and scale every number column to mean 0 and deviation 1. If not given,
            columns of tables are, unless rows are normalized, and arrays are not.
        decimal: The sign before decimals, ``"."`` or ``","``, for columns in which both fit. If not
            given, it is that of the other columns, else a point.
        month_first: Read dates such as 03/04/2024 with the month first, where both fit.
        max_categories: Most different words in a column that becomes one feature per word; more
            are hashed.
        seed: Seed of random features.
        folds: Divide the labelled nodes into so many folds in place of any other split: in split k
            fold k is tested, the next one validates, and the others train. Folds are drawn with a
            fixed seed, stratified by class. Not for a name of ``DATASETS``.
        groups: Node column, or attribute of a ``Data``, of groups that lie in one fold each; it is
            then no feature.
        draw_split: Draw a split where there are labels but no masks. If false, masks that are
            missing or cannot be used are empty.
        task: What the labels are: ``"node"`` for classes, ``"regression"`` for numbers,
            ``"multilabel"`` for several labels of one node (columns or arrays of 0 and 1, or texts
            such as ``"red;round"``), or ``"auto"`` to tell by how they look.
        schema: The ``schema`` of a graph that was loaded before, to encode this one in the same
            way. Options that it holds are taken from it, labels may be missing, and no split is
            drawn.

    Returns:
        A graph with ``x`` ``[N, F]``, ``edge_index`` ``[2, E]``, ``y`` ``[N]`` (``-1``: no label),
        ``train_mask``, ``val_mask``, ``test_mask`` ``[N, S]``, ``name``, ``class_count``,
        ``class_names``, ``node_ids``, ``feature_names``, ``schema`` (plain JSON values), in words
        ``edge_rule``, ``feature_rule``, ``split_rule`` and ``notes``, and on request
        ``edge_weight`` and ``edge_time`` ``[E]``. Targets that are no classes are ``targets``
        ``[N, T]`` (NaN: not known), ``target_names`` and ``target_kind``; ``y`` is then -1.

    Raises:
        DataError: A file is missing, damaged or contradicts itself.
        ConfigError: There is no data set of that name, or an option has an impossible value.

    Example:
        >>> graph = load("mixed")
        >>> graph.edge_rule
        'self-loops removed, both directions listed, duplicates merged'
    """
    options = ImportOptions.among(locals())
    if schema is not None:
        check_schema(schema)
        if folds is not None:
            raise ConfigError("folds are drawn for training, not where a schema is given")
        stored = {name: schema[name] for name in ("directed", "row_normalize")}
        options = replace(options, **stored, weight=weight or schema.get("weight"))
        options = replace(options, decimal=decimal or schema.get("weight_decimal"))
    store = as_store(source)
    if store is not None:
        return stored_graph(store, options, schema, draw_split)
    name, origin, imported = _imported(source, root, options, schema)
    graph = imported.assembled(
        origin,
        name,
        imported.schema,
        directed=options.directed,
        row_normalize=options.row_normalize,
        draw_split=draw_split and schema is None,
        folds=None if folds is None else Folds(folds, groups),
    )
    graph.node_ids, graph.feature_names = imported.node_ids, imported.feature_names
    graph.schema, graph.notes = imported.schema, imported.notes + graph.notes
    graph.feature_rule += made_feature_rule(imported.schema)
    return graph


def load_with_or_without_split(source: Any, **options: Any) -> Data:
    """:func:`load`, without a split if there are too few labels for one."""
    try:
        return load(source, **options)
    except TooFewLabelsError:
        return load(source, **options, draw_split=False)


def made_feature_rule(schema: Schema) -> str:
    """How features were scaled or made, in words that are added to the feature rule."""
    has_columns = schema["columns"] is not None
    words = ", numbers standardized" if has_columns and is_standardized(schema) else ""
    structure = schema["structure"]
    return words if structure is None else f"{words}, with {structure['kind']} features"


def _imported(
    source: Any, root: str | Path | None, options: ImportOptions, schema: Schema | None
) -> tuple[str, str, ImportedGraph]:
    """The name of the graph, its origin for error messages, and what was read."""
    found = _object_in_memory(source)
    if isinstance(found, GraphTables):
        return "graph", "graph", TableImport(found, options, schema).imported()
    if found is not None:
        data, notes = found
        name = str(data.get("name") or "graph")
        return name, name, import_arrays(data, options, schema, name, notes)
    path = as_path(source)
    if path is not None:
        return path.stem, str(path), read_limited(path, lambda: _read(path, options, schema))
    spec = resolve(str(source), DATASETS, "data set")
    if options.folds is not None:  # stored settings were chosen on the known splits
        raise ConfigError(f"{spec.name} has splits of its own: folds are for your own graphs")
    graph = _EMBEDDED[spec.loader]() if spec.embedded else load_benchmark(spec, root)
    check_counts(spec, graph)
    graph.split_rule = spec.split_rule
    imported = import_arrays(graph, options, schema, spec.name)
    imported.undirected = not spec.directed
    return spec.name, spec.name, imported


def _read(path: Path, options: ImportOptions, schema: Schema | None) -> ImportedGraph:
    found = _read_path(path)
    if isinstance(found, GraphTables):
        return TableImport(found, options, schema).imported()
    return import_arrays(found, options, schema, str(path))


def _object_in_memory(source: Any) -> GraphTables | tuple[Data, list[str]] | None:
    """The graph that an object holds; None if the object is a name or a path."""
    if isinstance(source, Data):
        return source, []
    if objects.is_networkx(source):
        return objects.networkx_tables(source)
    if objects.is_frame(source):
        return objects.frame_tables(source)
    if issparse(source):
        return objects.adjacency_data(source)
    if not isinstance(source, tuple | list) or len(source) != 2:
        return None
    first, second = source
    if objects.is_frame(first) and objects.is_frame(second):
        return objects.frame_tables(first, second)
    # In (features, edges), which may start with a sparse matrix, too, the edges have two rows.
    if issparse(first) and first.shape[0] == first.shape[1] == _row_count(second):
        return objects.adjacency_data(first, second)
    return objects.arrays_data(first, second), []


def _row_count(value: Any) -> int:
    shape = getattr(value, "shape", None)
    return int(shape[0]) if shape else len(value) if hasattr(value, "__len__") else -1


def as_store(source: Any) -> GraphStore | None:
    """The store that a path means, if it does."""
    path = as_path(source) if isinstance(source, str | Path) else None
    return open_store(path) if path is not None and _exists(path) and is_store(path) else None


def as_path(source: Any) -> Path | None:
    """The path that ``source`` means; None if it is the name of a data set."""
    if isinstance(source, Path):
        return source.expanduser()
    if not isinstance(source, str):
        raise ConfigError(
            "a graph is a name, a path, a PyG Data object, a networkx graph, pandas tables, "
            f"or a pair of arrays (got {type(source).__name__})"
        )
    try:
        resolve(source, DATASETS, "data set")
    except ConfigError:
        path = Path(source).expanduser()
        looks_like_path = os.sep in source or bool(path.suffix) or _exists(path)
        return path if looks_like_path else None
    return None


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 (Path.exists raises for a name that is too long)


def _read_path(path: Path) -> GraphTables | Data:
    if _exists(path) and path.is_dir():
        return _read_folder(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return load_npz(path)
    if not _exists(path):
        raise DataError(f"{path}: no such file (supported graph files are {_SUPPORTED})")
    if suffix in (".graphml", ".xml"):
        return read_graphml(path)
    if suffix in SUFFIXES:
        return read_edge_list(path)
    what = f"'{path.suffix}'" if path.suffix else "no suffix"
    raise DataError(f"{path}: supported graph files are {_SUPPORTED} (got {what})")


def _read_folder(folder: Path) -> GraphTables:
    readers: dict[str, Callable[[Path], Table]] = {"csv": read_csv, "parquet": read_parquet}
    found = [kind for kind in readers if os.path.lexists(folder / f"edges.{kind}")]
    if len(found) > 1:
        names = " and ".join(f"edges.{kind}" for kind in found)
        raise DataError(f"{folder}: holds {names}; keep one")
    if not found:
        inside = listed(sorted(printable(path.name) for path in folder.iterdir())) or "nothing"
        raise DataError(
            f"{folder}: a folder needs edges.csv or edges.parquet, which is not there (found: "
            f"{inside}; supported graph files are {_SUPPORTED})"
        )
    read, nodes = readers[found[0]], folder / f"nodes.{found[0]}"
    edges = read(folder / f"edges.{found[0]}")
    return GraphTables(edges, read(nodes) if os.path.lexists(nodes) else None)
