"""A synthetic graph whose local geometry is known, and the shapes that it is made of."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import hadamard
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.assemble import assemble
from argnn.data.splits import stratified_splits
from argnn.errors import ConfigError

GEOMETRIES = ("tree", "clique", "cycle", "grid")
NUM_SIGNALS = 4
NUM_FEATURES = 16
FRACTIONS = (0.4, 0.4, 0.2)


def tree(num_nodes: int, branching: int = 2) -> Tensor:
    """Edges of a tree filled level by level, each once, ``[2, num_nodes - 1]``.

    Example:
        >>> tree(4).tolist()
        [[0, 0, 1], [1, 2, 3]]
    """
    child = torch.arange(1, num_nodes)
    return torch.stack([(child - 1) // branching, child])


def clique(num_nodes: int) -> Tensor:
    """Edges between all pairs, each once, ``[2, num_nodes * (num_nodes - 1) / 2]``.

    Example:
        >>> clique(3).tolist()
        [[0, 0, 1], [1, 2, 2]]
    """
    return torch.triu_indices(num_nodes, num_nodes, offset=1)


def cycle(num_nodes: int) -> Tensor:
    """Edges of a ring of at least three nodes, each once, ``[2, num_nodes]``.

    Example:
        >>> cycle(3).tolist()
        [[0, 1, 2], [1, 2, 0]]
    """
    node = torch.arange(num_nodes)
    return torch.stack([node, node.roll(-1)])


def grid(num_rows: int, num_columns: int) -> Tensor:
    """Edges of a rectangular grid numbered row by row, each once.

    Example:
        >>> grid(2, 2).tolist()
        [[0, 2, 0, 1], [1, 3, 2, 3]]
    """
    node = torch.arange(num_rows * num_columns).view(num_rows, num_columns)
    across = torch.stack([node[:, :-1].flatten(), node[:, 1:].flatten()])
    down = torch.stack([node[:-1].flatten(), node[1:].flatten()])
    return torch.cat([across, down], dim=1)


def mixed(
    seed: int = 0,
    *,
    regions_per_kind: int = 20,
    noise: float = 1.0,
    extra_bridges: int = 12,
    num_splits: int = 10,
) -> Data:
    r"""Trees, cliques, cycles and grids, joined at random into one connected graph.

    Every region carries a hidden signal :math:`c \in \{0, 1, 2, 3\}`, which its nodes show through
    noise: :math:`x_i = p_c + \sigma \epsilon_i`. The label is :math:`y = (c + q) \bmod 4` with
    :math:`q` the geometry of the region (tree 0, clique 1, cycle 2, grid 3). All pairs of
    signal and geometry are equally frequent, so that neither alone tells the label; both together
    do. Averaging over neighbors removes the noise, but not every average keeps the geometry.

    A region is never divided by a split, so that a model cannot recognise a test node by the noise
    of its training neighbors and has to learn the geometry. The numbers of nodes and edges do not
    depend on the seed.

    Args:
        seed: Fixes signals, noise, bridges and splits.
        regions_per_kind: Regions of each geometry; multiples of twenty balance signals and splits.
        noise: The standard deviation :math:`\sigma`; the prototypes have norm two.
        extra_bridges: Edges between regions beyond those that make the graph connected.
        num_splits: How many splits to draw.

    Returns:
        A graph that also has ``geometry`` ``[N]``, ``geometry_names`` and ``region`` ``[N]``.
    """
    _check_sizes(regions_per_kind, noise, extra_bridges)
    rng = np.random.default_rng(seed)
    edge_index, region = _placed(_motifs(regions_per_kind))
    kind = np.repeat(np.arange(len(GEOMETRIES)), regions_per_kind)
    # A signal per region, equally frequent within each geometry.
    balanced = np.arange(regions_per_kind) % NUM_SIGNALS
    signal = np.concatenate([rng.permutation(balanced) for _ in GEOMETRIES])
    bridges = _bridges(region, extra_bridges, rng)
    y = torch.from_numpy((signal + kind) % NUM_SIGNALS)[region]
    pair = torch.from_numpy(signal * len(GEOMETRIES) + kind)
    train, val, test = stratified_splits(pair, FRACTIONS, num_splits, seed)
    # Rows of a Hadamard matrix: equally far apart, and no single feature tells the signal.
    prototypes: NDArray[Any] = hadamard(NUM_FEATURES)[1 : NUM_SIGNALS + 1] / 2
    shown = prototypes[signal[region]]
    source = Data(
        x=torch.from_numpy(shown + noise * rng.standard_normal(shown.shape)),
        edge_index=torch.cat([edge_index, bridges], dim=1),
        y=y,
        train_mask=train[region],
        val_mask=val[region],
        test_mask=test[region],
        geometry=torch.from_numpy(kind)[region],
        geometry_names=list(GEOMETRIES),
        region=region,
        split_rule=f"{num_splits} splits of whole regions at 40/40/20, drawn with seed {seed}",
    )
    return assemble(source, origin="mixed", name="mixed")


def _check_sizes(regions_per_kind: int, noise: float, extra_bridges: int) -> None:
    # Three regions for every signal: one each for training, validation and test.
    if regions_per_kind < 3 * NUM_SIGNALS:
        raise ConfigError(f"regions_per_kind must be at least 12 (got {regions_per_kind})")
    if not 0 <= noise < float("inf"):
        raise ConfigError(f"noise must not be negative (got {noise})")
    # There are always more free pairs than this, so that the drawing loop ends.
    most = 100 * regions_per_kind
    if not 0 <= extra_bridges <= most:
        raise ConfigError(f"extra_bridges must be between 0 and {most} (got {extra_bridges})")


def _motifs(regions_per_kind: int) -> list[tuple[Tensor, int]]:
    """Edges and number of nodes of every region, in the order of ``GEOMETRIES``."""
    sizes = np.linspace(12, 30, regions_per_kind).round().astype(int).tolist()
    shapes = [(3 + i % 3, 4 + i // 3 % 3) for i in range(regions_per_kind)]
    same = [(build(size), size) for build in (tree, clique, cycle) for size in sizes]
    return same + [(grid(rows, columns), rows * columns) for rows, columns in shapes]


def _placed(motifs: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
    """All regions in one graph: their edges, and the region of each node."""
    sizes = torch.tensor([size for _, size in motifs])
    starts = (sizes.cumsum(0) - sizes).tolist()
    edges = [edge_index + start for (edge_index, _), start in zip(motifs, starts, strict=True)]
    return torch.cat(edges, dim=1), torch.arange(len(motifs)).repeat_interleave(sizes)


def _bridges(region: Tensor, extra: int, rng: np.random.Generator) -> Tensor:
    """A random tree over the regions, then ``extra`` more edges between different regions."""
    members = [
        (region == index).nonzero().squeeze(1).numpy() for index in range(int(region.max()) + 1)
    ]
    order = rng.permutation(len(members))
    pairs = set()
    for position in range(1, len(order)):
        earlier = order[rng.integers(position)]
        pairs.add((int(rng.choice(members[earlier])), int(rng.choice(members[order[position]]))))
    while len(pairs) < len(order) - 1 + extra:
        first, second = rng.choice(len(members), size=2, replace=False)
        pair = (int(rng.choice(members[first])), int(rng.choice(members[second])))
        if pair[::-1] not in pairs:
            pairs.add(pair)
    return torch.tensor(sorted(pairs)).T
