"""The geometry of a graph as pandas tables, and these as CSV or Parquet files.

Layers are counted from 1. A value that is not defined (because of no neighbour, no label, a single
node or a constant column) is missing, and never replaced by a number.
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis import geometry, properties
from argnn.analysis.geometry import STATISTICS
from argnn.analysis.layers import Layer
from argnn.analysis.properties import class_names, labels_of
from argnn.analysis.variation import spearman
from argnn.csv_cells import safe_cell
from argnn.data import features_and_edges
from argnn.errors import ConfigError, package_needed
from argnn.files import write_output
from argnn.functional.neighborhood import edges_of, neighborhood

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: Columns of :func:`node_table` that describe the metric; the last one on request.
METRIC_COLUMNS = (*STATISTICS, "learned_ollivier")
#: Columns of :func:`node_table` that describe the graph; the last one on request.
GRAPH_COLUMNS = ("homophily", "degree", "clustering", "graph_ollivier")
#: What :func:`group_table` can group by.
GROUPINGS = ("class", "degree", "homophily")
FORMATS = ("csv", "parquet")
#: Names of what :func:`geometry_tables` returns.
TABLES = ("nodes", "layers", "groups", "correlations", "axes")

_LAYER_FACTS = ("nodes", "pairs", "axes", "homophily", "nrmd")
_HOMOPHILY_BINS = 5


def geometry_tables(
    graph: Data,
    layers: Sequence[Layer],
    *,
    graph_ollivier: bool = False,
    learned_ollivier: bool = False,
    top: int = 5,
) -> dict[str, "DataFrame"]:
    """All tables by name: nodes, layers, groups, correlations, axes.

    For the options see :func:`node_table` and :func:`axis_table`.
    """
    nodes = node_table(
        graph, layers, graph_ollivier=graph_ollivier, learned_ollivier=learned_ollivier
    )
    groups = [group_table(nodes, by) for by in GROUPINGS]
    return {
        "nodes": nodes,
        "layers": layer_table(nodes, graph, layers),
        "groups": require_pandas().concat(groups, ignore_index=True),
        "correlations": correlation_table(nodes),
        "axes": axis_table(layers, top),
    }


def node_table(
    graph: Data,
    layers: Sequence[Layer],
    *,
    graph_ollivier: bool = False,
    learned_ollivier: bool = False,
) -> "DataFrame":
    """One row per layer and node: its label, properties in the graph, and statistics of its metric.

    Args:
        graph: The graph.
        layers: Its learned layers, see :func:`~argnn.analysis.learned_layers`.
        graph_ollivier: Whether to add the mean Ollivier-Ricci curvature of a node's edges.
        learned_ollivier: Whether to add the same under the learned distances; slow.
    """
    edges, num_nodes = edges_of(features_and_edges(graph).cpu()), graph.num_nodes
    shared = _graph_columns(graph, graph_ollivier)
    requested = ["learned_ollivier"] if learned_ollivier else []
    parts = []
    for number, layer in enumerate(layers, start=1):
        statistics = vars(geometry.metric_statistics(layer.g, edges))
        found = {name: values.numpy() for name, values in statistics.items()}
        if learned_ollivier:
            found["learned_ollivier"] = geometry.learned_curvature(layer, edges).numpy()
        parts.append({"layer": np.full(num_nodes, number), **shared, **found})
    names = ("layer", *shared, *STATISTICS, *requested)
    none = [np.empty(0)]  # where the model has no metric
    columns = {name: np.concatenate([p[name] for p in parts] or none) for name in names}
    # In the order of the labels, not of the alphabet; two classes may share a name.
    order = dict.fromkeys(class_names(graph))
    columns["class"] = require_pandas().Categorical(columns["class"], list(order))
    return require_pandas().DataFrame(columns)


def layer_table(nodes: "DataFrame", graph: Data, layers: Sequence[Layer]) -> "DataFrame":
    """One row per layer: sizes, homophily, NRMD, mean kappa and the means of other statistics.

    ``nodes`` is the :func:`node_table` of the same graph and layers.
    """
    # The main variation is centred: its mean is always zero.
    statistics = [name for name in METRIC_COLUMNS if name in nodes and name != "main_variation"]
    means = nodes.groupby("layer")[statistics].mean().add_prefix("mean_")
    edges = graph.edge_index.cpu()
    homophily = AF.edge_homophily(edges, labels_of(graph))
    shared = graph.num_nodes, neighborhood(edges, graph.num_nodes).num_pairs
    facts = [
        (*shared, layer.g.size(-1), homophily, geometry.field_nrmd(layer.g, edges))
        for layer in layers
    ]
    table = require_pandas().DataFrame(facts, columns=_LAYER_FACTS, index=range(1, len(layers) + 1))
    return table.join(means).rename_axis("layer").reset_index()


def group_table(nodes: "DataFrame", by: str) -> "DataFrame":
    """Mean and spread of every statistic within groups of nodes; one row each.

    Args:
        nodes: Result of :func:`node_table`.
        by: ``"class"``; ``"degree"``, in bins that double (0, 1, 2-3, 4-7, ...); or
            ``"homophily"``, in five bins of equal width.

    Returns:
        Columns ``layer``, ``by``, ``group``, ``statistic``, ``count`` (nodes at which it is
        defined), ``mean`` and ``std`` (of a sample: missing for one node). Nodes that are in no
        group are left out.
    """
    if by not in GROUPINGS:
        raise ConfigError(f"by must be one of {', '.join(GROUPINGS)} (got '{by}')")
    statistics = [name for name in METRIC_COLUMNS if name in nodes]
    grouped = nodes[["layer", *statistics]].assign(group=_groups(nodes, by))
    long = grouped.dropna(subset="group").melt(
        ["layer", "group"], statistics, var_name="statistic", value_name="value"
    )
    # In the order of the columns, not of the alphabet.
    long["statistic"] = require_pandas().Categorical(long["statistic"], statistics)
    values = long.groupby(["layer", "group", "statistic"], observed=True)["value"]
    table = values.agg(["count", "mean", "std"]).reset_index()
    table["group"], table["statistic"] = table["group"].astype(str), table["statistic"].astype(str)
    table.insert(1, "by", by)
    return table


def correlation_table(nodes: "DataFrame") -> "DataFrame":
    """Spearman's rank correlation of every statistic with every property of the graph.

    Over the nodes of a :func:`node_table` at which both are defined; missing where there are fewer
    than three, or where one of the two is constant. There are no p-values: neighbouring nodes are
    not independent. Columns ``layer``, ``statistic``, ``property``, ``spearman`` and ``count``.
    """
    rows = [
        (layer, statistic, name, *spearman(*part[[statistic, name]].to_numpy(float).T))
        for layer, part in nodes.groupby("layer")
        for statistic in METRIC_COLUMNS
        for name in GRAPH_COLUMNS
        if statistic in nodes and name in nodes
    ]
    names = ["layer", "statistic", "property", "spearman", "count"]
    return require_pandas().DataFrame(rows, columns=names)


def axis_table(layers: Sequence[Layer], top: int = 5) -> "DataFrame":
    """One row per layer and axis of the metric, the most stretched axis first.

    Columns ``layer``, ``axis`` (from 0), ``mean_log_g``, ``std_log_g`` and ``top_share``, for which
    see :func:`~argnn.analysis.axis_statistics`.
    """
    names = ["layer", "axis", "mean_log_g", "std_log_g", "top_share"]
    parts = []
    for number, layer in enumerate(layers, start=1):
        statistics = vars(geometry.axis_statistics(layer.g, top))
        found = {name: values.numpy() for name, values in statistics.items()}
        columns = {"layer": number, "axis": np.arange(layer.g.size(-1)), **found}
        part = require_pandas().DataFrame(columns)
        parts.append(part.sort_values("mean_log_g", ascending=False, kind="stable"))
    empty = require_pandas().DataFrame(columns=names)
    return require_pandas().concat(parts, ignore_index=True) if parts else empty


# --- files ------------------------------------------------------------------------------------


def table_bytes(table: "DataFrame", kind: str) -> bytes:
    """A table as the bytes of a ``"csv"`` or ``"parquet"`` file."""
    check_format(kind)
    if kind == "csv":
        words = [name for name in table if table[name].dtype.kind == "O"]
        safe = table.assign(**{name: table[name].map(safe_cell) for name in words})
        return str(safe.to_csv(index=False)).encode()
    content: bytes = table.to_parquet(index=False)
    return content


def write_table(table: "DataFrame", path: Path) -> None:
    """Write a table; the suffix of the path, ``.csv`` or ``.parquet``, says how.

    A file that is there already is replaced; a symbolic link is refused.
    """
    write_output(path, table_bytes(table, path.suffix.removeprefix(".")), force=True)


def write_tables(tables: Mapping[str, "DataFrame"], folder: Path, kind: str = "csv") -> list[Path]:
    """Write tables into a folder under their names, as CSV or Parquet; returns the files.

    The folder is made where it does not exist; files of the same names are replaced.
    """
    check_format(kind)
    paths = [folder / f"{name}.{kind}" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        write_table(table, path)
    return paths


def check_format(kind: str) -> None:
    """Raise unless tables can be written in this format."""
    if kind not in FORMATS:
        raise ConfigError(f"tables are written as {' or '.join(FORMATS)} (got '{kind}')")
    if kind == "parquet":
        _required("pyarrow", "Parquet files")


# --- columns and groups -----------------------------------------------------------------------


def _graph_columns(graph: Data, graph_ollivier: bool) -> dict[str, NDArray[Any]]:
    edges, num_nodes = edges_of(features_and_edges(graph).cpu()), graph.num_nodes
    names = dict(enumerate(class_names(graph)))
    shown = [names[label] if label >= 0 else None for label in labels_of(graph).tolist()]
    columns = {
        "node": np.arange(num_nodes),
        "class": np.array(shown, dtype=object),
        "homophily": properties.local_homophily(edges, labels_of(graph)).numpy(),
        "degree": properties.degree(edges, num_nodes).numpy(),
        "clustering": properties.clustering(edges, num_nodes).numpy(),
    }
    if graph_ollivier:
        columns["graph_ollivier"] = properties.graph_curvature(edges, num_nodes).numpy()
    return columns


def _groups(nodes: "DataFrame", by: str) -> "Series":
    """The group of each row, missing if it is in none; groups are ordered."""
    pandas = require_pandas()
    if by == "class":
        return nodes["class"]
    known = nodes[by].dropna()
    if by == "degree":  # bit lengths are the bins 0, 1, 2-3, 4-7, ...
        numbers = [int(value).bit_length() for value in known]
        names = {bits: f"{2**bits // 2}-{2**bits - 1}" for bits in numbers} | {0: "0", 1: "1"}
    else:  # a share of exactly one belongs to the last bin
        numbers = [min(int(share * _HOMOPHILY_BINS), _HOMOPHILY_BINS - 1) for share in known]
        width = 1 / _HOMOPHILY_BINS
        names = {n: f"{n * width:.1f}-{(n + 1) * width:.1f}" for n in numbers}
    order = [names[number] for number in sorted(set(numbers))]
    groups = pandas.Series([names[n] for n in numbers], index=known.index, dtype=object)
    return groups.reindex(nodes.index).astype(pandas.CategoricalDtype(order, ordered=True))


def require_pandas() -> Any:
    """The pandas package, or an error that says how to get it."""
    return _required("pandas", "tables")


def _required(package: str, what: str) -> Any:
    with package_needed(f"{what} need {package}: pip install 'argnn[tables]'"):
        return importlib.import_module(package)
