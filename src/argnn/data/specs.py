"""Which data sets there are (``datasets.csv``), and what each of them must hold."""

import csv
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any, Literal

Loader = Literal["planetoid", "actor", "wikipedia", "webkb", "digits", "mixed"]

_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
NODE_FILE, EDGE_FILE = "out1_node_feature_label.txt", "out1_graph_edges.txt"


@dataclass(frozen=True)
class DatasetSpec:
    """Facts about one data set; loading compares them with what it finds.

    Attributes:
        name: Key in ``DATASETS``.
        title: Name as it is printed.
        source: What the graph is, in words.
        loader: Which function reads the files.
        nodes: Number of nodes.
        edges: Number of undirected edges without self-loops and duplicates.
        same_class_edges: How many of these edges join nodes of the same class.
        stored_edges: Columns of ``edge_index`` before self-loops are removed and directions added.
        features: Number of features of a node.
        classes: Number of classes.
        citation: The paper to cite.
        splits: Number of fixed splits.
        split_rule: Where the splits come from, in words.
        directed: Whether the source distinguishes directions.
        folder: Folder of the raw files below the data root; empty if there are none.
        prefix: What the names of the raw files start with.
        downloadable: Whether exactly these files are still in the network.
    """

    name: str
    title: str
    source: str
    loader: Loader
    nodes: int
    edges: int
    same_class_edges: int
    stored_edges: int
    features: int
    classes: int
    citation: str
    splits: int = 10
    split_rule: str = ""
    directed: bool = True
    folder: str = ""
    prefix: str = ""
    downloadable: bool = True

    @property
    def homophily(self) -> float:
        """Share of the edges that join nodes of the same class."""
        return self.same_class_edges / self.edges

    @property
    def embedded(self) -> bool:
        """Whether the graph is made here, without files or network."""
        return not self.folder

    @property
    def raw_files(self) -> tuple[str, ...]:
        """Names of the raw files, in the order in which they are hashed."""
        if self.embedded:
            return ()
        splits = tuple(f"{self.prefix}_split_0.6_0.2_{i}.npz" for i in range(self.splits))
        if self.loader == "planetoid":
            return tuple(f"ind.{self.prefix}.{part}" for part in _PLANETOID_PARTS) + splits
        return (NODE_FILE, EDGE_FILE, *splits)


def _read_specs() -> dict[str, DatasetSpec]:
    text = files("argnn.data").joinpath("datasets.csv").read_text("utf-8")
    types = {field.name: field.type for field in fields(DatasetSpec)}
    read: dict[Any, Callable[[str], Any]] = {int: int, bool: "yes".__eq__}
    specs = {}
    for row in csv.DictReader(text.splitlines()):
        facts = {name: read.get(types[name], str)(cell) for name, cell in row.items()}
        specs[row["name"]] = DatasetSpec(**facts)
    return specs


def _read_sums() -> dict[str, dict[str, str]]:
    sums: dict[str, dict[str, str]] = {}
    for line in files("argnn.data").joinpath("raw_files.txt").read_text("utf-8").splitlines():
        data_set, file, digest = line.split()
        sums.setdefault(data_set, {})[file] = digest
    return sums


DATASETS: dict[str, DatasetSpec] = _read_specs()
#: SHA-256 sums, by data set and raw file, of the files that the results of this project were made
#: with. Every file is compared with its sum whenever it is read: the sources name no versions,
#: disks decay, and some of the files are pickles, which could run code.
SHA256: dict[str, dict[str, str]] = _read_sums()
