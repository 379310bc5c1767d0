"""Graphs of any size with features and planted classes, drawn straight into a store.

Everything is drawn in blocks of a fixed size, each with a random generator of its own. So a graph
depends on its recipe only, not on the memory that is used.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from argnn.data.assemble import edge_rule
from argnn.data.graph_store.header import GraphFacts
from argnn.data.graph_store.new_folder import new_folder
from argnn.data.graph_store.opening import GraphStore, open_store
from argnn.data.graph_store.sorting import EdgeSorter
from argnn.data.graph_store.writing import MEMORY, StoreWriter
from argnn.data.import_graph import written_schema
from argnn.data.import_options import ImportOptions
from argnn.errors import ConfigError, require
from argnn.telling import Tell, be_silent

KINDS = ("communities", "rmat")
#: Probabilities of the four quarters of the adjacency matrix, as of the Graph 500 benchmark.
RMAT = (0.57, 0.19, 0.19, 0.05)
HOMOPHILY = 0.8
#: Distance of the means of two classes in units of the noise, on average.
_DISTANCE = 2.0
_EDGES_AT_ONCE, _NODES_AT_ONCE = 1 << 20, 1 << 14
#: More pairs than asked for, since some are drawn twice.
_SURPLUS = 1.03
#: Rounds after which missing pairs are drawn evenly: the likely ones may be used up.
_ROUNDS = 12
_STREAMS = ("places", "means", "nodes", "edges")

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class GraphRecipe:
    """A graph to be drawn.

    Every node has a place, and the classes are equal ranges of places. The features of a node are
    the mean of its class plus noise. Places are shuffled over the nodes.

    Attributes:
        nodes: Number of nodes.
        edges: Number of pairs of nodes that are joined; a store lists each in both directions.
        kind: ``"communities"``: one end of an edge is any node; the other is of the same class
            with probability ``homophily``. ``"rmat"``: places of both ends by R-MAT, which gives
            a few nodes many edges and joins near places more often.
        features: Number of features.
        classes: Number of classes.
        homophily: Share of edges within classes, of communities only; 0.8 if not given.
        noise: Deviation of each feature from the mean of its class. At 1, the means of two
            classes are two deviations apart.
        train_share: Share of training nodes; the others are for validation and test, half each.
        seed: Of all that is drawn.
    """

    nodes: int
    edges: int
    kind: str = KINDS[0]
    features: int = 64
    classes: int = 10
    homophily: float | None = None
    noise: float = 1.0
    train_share: float = 0.6
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"kind must be one of {', '.join(KINDS)} (got '{self.kind}')")
        require(2 <= self.classes <= 10_000, "classes", "from 2 to 10000", self.classes)
        least = 2 * self.classes
        fits = least <= self.nodes < 2**31
        require(fits, "nodes", f"from {least}, two of each class, to {2**31 - 1}", self.nodes)
        most = self.nodes * (self.nodes - 1) // 8
        require(0 <= self.edges <= most, "edges", f"from 0 to {most}, a quarter of all", self.edges)
        require(1 <= self.features <= 50_000, "features", "from 1 to 50000", self.features)
        require(0 <= self.noise < 1e6, "noise", "from 0 to 1000000", self.noise)
        require(0 < self.train_share < 1, "train_share", "between 0 and 1", self.train_share)
        require(0 <= self.seed < 2**63, "seed", "from 0", self.seed)
        if self.homophily is None:
            return
        if self.kind != "communities":
            raise ConfigError(f"homophily belongs to communities, not to {self.kind}")
        require(0 <= self.homophily <= 1, "homophily", "from 0 to 1", self.homophily)

    def rng(self, stream: str, block: int = 0) -> np.random.Generator:
        """The random numbers of a block."""
        key = (_STREAMS.index(stream), block)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    @cached_property
    def node_at(self) -> NDArray[np.int32]:
        """The node at each place, ``[N]``."""
        nodes = np.arange(self.nodes, dtype=np.int32)
        self.rng("places").shuffle(nodes)
        return nodes

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """First place of each class, and the number of nodes, ``[C + 1]``."""
        return np.arange(self.classes + 1) * self.nodes // self.classes

    def class_at(self, place: NDArray[Any]) -> NDArray[np.int64]:
        """The class of the node at a place."""
        return np.searchsorted(self.begins, place, side="right") - 1


def generate(
    store: Path | str,
    recipe: GraphRecipe,
    *,
    force: bool = False,
    memory: int = MEMORY,
    tell: Tell = be_silent,
) -> GraphStore:
    """Draw a graph into a store; the arguments are those of ``convert``.

    The same recipe gives the same files, byte for byte.
    """
    path = Path(store).expanduser()
    with (
        new_folder(path, force=force) as folder,
        StoreWriter(folder, recipe.nodes, memory=memory) as writer,
    ):
        for source, target in _pairs(recipe, folder, memory, tell):
            writer.add_edges(source, target)
        edges = writer.sort_edges(tell)
        for rows in _node_rows(recipe, tell):
            writer.add_nodes(**rows)
        alone = int((np.diff(edges.into.start) == 0).sum())
        writer.finish(_said(recipe, path.stem, alone), tell=tell)
    return open_store(path)


def _said(recipe: GraphRecipe, name: str, alone: int) -> GraphFacts:
    classes = [f"class {index}" for index in range(recipe.classes)]
    scaling = {"center": None, "scale": None}
    label = {"column": None, "classes": classes}
    options = ImportOptions()
    width = recipe.features
    share = recipe.homophily if recipe.homophily is not None else HOMOPHILY
    how = f"homophily {share:g}" if recipe.kind == "communities" else f"quarters {RMAT}"
    train = f"{100 * recipe.train_share:g} % of the nodes for training"
    notes = [f"drawn as {recipe.kind}: {how}, noise {recipe.noise:g}, seed {recipe.seed}"]
    return GraphFacts(
        name=name,
        class_names=classes,
        feature_names=[f"feature {index}" for index in range(width)],
        edge_rule=edge_rule(Data(), keeps_directions=False, said=False),
        feature_rule="as stored",
        split_rule=f"{train}, the others half each, drawn with seed {recipe.seed}",
        notes=notes + ([f"{alone} nodes without edges"] if alone else []),
        schema=written_schema(options, width, None, None, scaling, None, label),
    )


def _node_rows(recipe: GraphRecipe, tell: Tell) -> Iterator[dict[str, NDArray[Any]]]:
    """Features, labels and masks, some nodes at a time."""
    y = np.empty(recipe.nodes, dtype=np.int16)
    y[recipe.node_at] = np.repeat(np.arange(recipe.classes), np.diff(recipe.begins))
    width, share = recipe.features, recipe.train_share
    spread = _DISTANCE / math.sqrt(2 * width)
    means = spread * recipe.rng("means").standard_normal((recipe.classes, width), np.float32)
    for block, begin in enumerate(range(0, recipe.nodes, _NODES_AT_ONCE)):
        labels = y[begin : begin + _NODES_AT_ONCE].astype(np.int64)
        rng = recipe.rng("nodes", block)
        noise = rng.standard_normal((len(labels), width), np.float32)
        part = np.digitize(rng.random(len(labels)), (share, (1 + share) / 2))[:, None]
        x = means[labels] + np.float32(recipe.noise) * noise
        masks = {"train_mask": part == 0, "val_mask": part == 1, "test_mask": part == 2}
        yield {"x": x, "y": labels, **masks}
        tell(begin + len(labels), recipe.nodes, "features")


def _pairs(recipe: GraphRecipe, folder: Path, memory: int, tell: Tell) -> Iterator[Ends]:
    """As many different pairs of nodes as asked for."""
    with closing(_DistinctPairs(recipe, folder, memory)) as found:
        _draw(found, tell)
        yield from found.chosen()


def _draw(found: "_DistinctPairs", tell: Tell) -> None:
    """Draw until there are enough."""
    recipe, block = found.recipe, 0
    for round_number in range(2 * _ROUNDS):
        missing = recipe.edges - found.count
        if missing <= 0:
            break
        wanted = int(_SURPLUS * missing) + 1000
        draw = _DRAWS[recipe.kind] if round_number < _ROUNDS else _even_ends
        blocks = range(block, block - (-wanted // _EDGES_AT_ONCE))
        block = blocks.stop
        found.add(draw, blocks, wanted, tell)
    if found.count < recipe.edges:
        raise ConfigError(f"so many different edges cannot be drawn (got {recipe.edges})")


class _DistinctPairs:
    """Different pairs of nodes on the disk, the smaller node first."""

    def __init__(self, recipe: GraphRecipe, folder: Path, memory: int) -> None:
        self.recipe, self.folder, self.memory = recipe, folder, memory
        self.count, self._round = 0, 0
        self._sorters: list[EdgeSorter] = []
        self._sorter = self._new()

    def _new(self) -> EdgeSorter:
        folder = self.folder / f"round-{self._round}"
        folder.mkdir()
        nodes = self.recipe.nodes
        sorter = EdgeSorter(folder, nodes, weighted=False, timed=False, memory=self.memory)
        self._sorters.append(sorter)
        return sorter

    def close(self) -> None:
        """Close all files."""
        for sorter in self._sorters:
            sorter.close()

    def add(self, draw: Callable[..., Ends], blocks: range, wanted: int, tell: Tell) -> None:
        """Draw pairs, leave out those that are known, and count all."""
        recipe = self.recipe
        for done, block in enumerate(blocks):
            count = min(_EDGES_AT_ONCE, wanted - done * _EDGES_AT_ONCE)
            ends = draw(recipe, recipe.rng("edges", block), count)
            source, target = (recipe.node_at[end] for end in ends)
            kept = source != target
            low, high = np.minimum(source, target)[kept], np.maximum(source, target)[kept]
            self._sorter.add(low.astype(np.int64), high.astype(np.int64), both=False)
            tell(done * _EDGES_AT_ONCE, wanted, f"drawing edges, round {self._round + 1}")
        old, self._round = self._sorter, self._round + 1
        self._sorter, self.count = self._new(), 0
        for records in old.sorted():
            self.count += len(records)
            self._sorter.add(*np.divmod(records["key"], recipe.nodes), both=False)
        old.folder.rmdir()

    def chosen(self) -> Iterator[Ends]:
        """As many pairs as asked for, left out evenly where there are more."""
        begin, edges = 0, self.recipe.edges
        for records in self._sorter.sorted():
            place = np.arange(begin, begin + len(records) + 1) * edges // max(1, self.count)
            keys = records["key"][place[1:] > place[:-1]]
            begin += len(records)
            low, high = np.divmod(keys, self.recipe.nodes)
            yield low, high
        self._sorter.folder.rmdir()


def _even_ends(recipe: GraphRecipe, rng: np.random.Generator, count: int) -> Ends:
    """Places of the ends of edges, each as likely as any other."""
    return rng.integers(recipe.nodes, size=count), rng.integers(recipe.nodes, size=count)


def _community_ends(recipe: GraphRecipe, rng: np.random.Generator, count: int) -> Ends:
    """Any place, and one of the same class or of another."""
    first = rng.integers(recipe.nodes, size=count)
    own = recipe.class_at(first)
    begin, size = recipe.begins[own], np.diff(recipe.begins)[own]
    share = recipe.homophily if recipe.homophily is not None else HOMOPHILY
    is_inside, draw = rng.random(count) < share, rng.random(count)
    inside = begin + (draw * size).astype(np.int64)
    outside = (draw * (recipe.nodes - size)).astype(np.int64)
    outside += np.where(outside >= begin, size, 0)
    return first, np.where(is_inside, inside, outside)


def _rmat_ends(recipe: GraphRecipe, rng: np.random.Generator, count: int) -> Ends:
    """Places by R-MAT: at each level, an edge falls into one of four quarters of the matrix."""
    bounds = [round(2**16 * sum(RMAT[: index + 1])) for index in range(3)]
    levels = (recipe.nodes - 1).bit_length()
    source, target = np.zeros((2, count), dtype=np.int64)
    for _ in range(levels):
        draw = rng.integers(2**16, size=count, dtype=np.uint16)
        second, third, fourth = (draw >= bound for bound in bounds)
        source <<= 1
        target <<= 1
        source |= third
        target |= second ^ third ^ fourth
    fits = (source < recipe.nodes) & (target < recipe.nodes)
    return source[fits], target[fits]


_DRAWS: dict[str, Callable[..., Ends]] = {"communities": _community_ends, "rmat": _rmat_ends}
