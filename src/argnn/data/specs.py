"""Which data sets there are, and what each of them must hold."""

from dataclasses import dataclass
from typing import Literal

from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from argnn.errors import DataError

Loader = Literal["planetoid", "actor", "wikipedia", "webkb", "digits", "mixed"]

_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
NODE_FILE, EDGE_FILE = "out1_node_feature_label.txt", "out1_graph_edges.txt"


@dataclass(frozen=True)
class DatasetSpec:
    """Facts about one data set; loading compares them with what it finds.

    Attributes:
        name: Key in ``DATASETS``.
        title: Name as it is printed.
        source: Where the graph comes from, in words.
        loader: Which reader understands the files.
        nodes: Number of nodes.
        edges: Number of undirected edges without self-loops and duplicates.
        stored_edges: Columns of ``edge_index`` before self-loops are removed and directions added.
        features: Number of features of a node.
        classes: Number of classes.
        citation: The paper to cite.
        splits: Number of fixed splits.
        split_rule: Where the splits come from, in words.
        directed: Whether the source distinguishes directions.
        folder: Folder of the raw files below the data root; empty if there are none.
        prefix: What the names of the raw files start with.
        downloadable: Whether PyG's own class fetches exactly these files.
    """

    name: str
    title: str
    source: str
    loader: Loader
    nodes: int
    edges: int
    stored_edges: int
    features: int
    classes: int
    citation: str
    splits: int = 10
    split_rule: str = "ten fixed Geom-GCN splits, 48/32/20 per cent of the covered nodes"
    directed: bool = True
    folder: str = ""
    prefix: str = ""
    downloadable: bool = True

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


def check_counts(spec: DatasetSpec, graph: Data) -> None:
    """Raise ``DataError`` if a graph, as stored, is not the one that ``spec`` describes."""
    simple = to_undirected(remove_self_loops(graph.edge_index)[0], num_nodes=graph.num_nodes)
    counts = {
        "nodes": (spec.nodes, graph.num_nodes),
        "stored edges": (spec.stored_edges, graph.edge_index.size(1)),
        "undirected edges": (spec.edges, simple.size(1) // 2),
        "features": (spec.features, graph.x.size(1)),
        "classes": (spec.classes, int(graph.y.max()) + 1),
        "splits": (spec.splits, graph.train_mask.size(1)),
    }
    for what, (expected, found) in counts.items():
        if expected != found:
            raise DataError(f"{spec.name}: expected {expected} {what} (got {found})")


_YANG = "Yang, Cohen and Salakhutdinov, Revisiting Semi-Supervised Learning, ICML 2016"
_PEI = "Pei et al., Geom-GCN: Geometric Graph Convolutional Networks, ICLR 2020"
_MUSAE = "Rozemberczki, Allen and Sarkar, Multi-Scale Attributed Node Embedding, 2021; " + _PEI

_SPECS = (
    DatasetSpec(
        name="cora",
        title="Cora",
        source="citations between papers on machine learning",
        loader="planetoid",
        nodes=2708,
        edges=5278,
        stored_edges=10556,
        features=1433,
        classes=7,
        citation=_YANG,
        directed=False,
        folder="Cora/geom-gcn/raw",
        prefix="cora",
    ),
    DatasetSpec(
        name="citeseer",
        title="CiteSeer",
        source="citations between papers on computer science",
        loader="planetoid",
        nodes=3327,
        edges=4552,
        stored_edges=9104,
        features=3703,
        classes=6,
        citation=_YANG,
        directed=False,
        folder="CiteSeer/geom-gcn/raw",
        prefix="citeseer",
    ),
    DatasetSpec(
        name="pubmed",
        title="PubMed",
        source="citations between papers on diabetes",
        loader="planetoid",
        nodes=19717,
        edges=44324,
        stored_edges=88648,
        features=500,
        classes=3,
        citation=_YANG,
        directed=False,
        folder="PubMed/geom-gcn/raw",
        prefix="pubmed",
    ),
    DatasetSpec(
        name="actor",
        title="Actor",
        source="actors named on the same Wikipedia page",
        loader="actor",
        nodes=7600,
        edges=26659,
        stored_edges=30019,
        features=932,
        classes=5,
        citation=_PEI,
        folder="Actor/raw",
        prefix="film",
    ),
    DatasetSpec(
        name="chameleon",
        title="Chameleon",
        source="links between Wikipedia pages on chameleons; many nodes are duplicates",
        loader="wikipedia",
        nodes=2277,
        edges=31371,
        stored_edges=36101,
        features=2325,
        classes=5,
        citation=_MUSAE,
        folder="chameleon/geom_gcn/raw",
        prefix="chameleon",
    ),
    DatasetSpec(
        name="squirrel",
        title="Squirrel",
        source="links between Wikipedia pages on squirrels; many nodes are duplicates",
        loader="wikipedia",
        nodes=5201,
        edges=198353,
        stored_edges=217073,
        features=2089,
        classes=5,
        citation=_MUSAE,
        folder="squirrel/geom_gcn/raw",
        prefix="squirrel",
    ),
    DatasetSpec(
        name="texas",
        title="Texas",
        source="links between web pages of a university (WebKB)",
        loader="webkb",
        nodes=183,
        edges=279,
        stored_edges=325,
        features=1703,
        classes=5,
        citation=_PEI,
        folder="texas/raw",
        prefix="texas",
    ),
    DatasetSpec(
        name="cornell",
        title="Cornell",
        source="links between web pages of a university (WebKB), corrected version",
        loader="webkb",
        nodes=183,
        edges=277,
        stored_edges=298,
        features=1703,
        classes=5,
        citation=_PEI,
        folder="cornell/raw",
        prefix="cornell",
    ),
    DatasetSpec(
        name="wisconsin",
        title="Wisconsin",
        source="links between web pages of a university (WebKB)",
        loader="webkb",
        nodes=251,
        edges=450,
        stored_edges=515,
        features=1703,
        classes=5,
        citation=_PEI,
        folder="wisconsin/raw",
        prefix="wisconsin",
    ),
    DatasetSpec(
        name="cornell-old",
        title="Cornell (old)",
        source="faulty version of Cornell: the features and labels of Texas on another graph",
        loader="webkb",
        nodes=183,
        edges=277,
        stored_edges=298,
        features=1703,
        classes=5,
        citation=_PEI,
        folder="cornell_old/cornell/raw",
        prefix="cornell",
        downloadable=False,
    ),
    DatasetSpec(
        name="digits",
        title="Digits",
        source="handwritten digits of scikit-learn, joined to their eight nearest neighbors",
        loader="digits",
        nodes=1797,
        edges=9929,
        stored_edges=19858,
        features=64,
        classes=10,
        citation="Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998",
        split_rule="ten stratified 5/15/80 splits drawn with seed 0",
        directed=False,
    ),
    DatasetSpec(
        name="mixed",
        title="Mixed",
        source="planted trees, cliques, cycles and grids; the geometry of each node is known",
        loader="mixed",
        nodes=1648,
        edges=5995,
        stored_edges=11990,
        features=16,
        classes=4,
        citation="made here",
        split_rule="ten splits of whole regions at 40/40/20, drawn with seed 0",
        directed=False,
    ),
)

DATASETS: dict[str, DatasetSpec] = {spec.name: spec for spec in _SPECS}
