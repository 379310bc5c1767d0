"""Edge splits for link prediction: pairs for training, validation and test."""

import re
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from torch import Tensor
from torch_geometric.utils import to_undirected

from argnn.errors import ConfigError, DataError

#: Shares of training, validation and test pairs: HGCN's, and the ARGNN paper's.
RATIOS = ("85/5/10", "80/5/15")
#: How pairs are divided: at random, or the newest ones last.
SPLITS_BY = ("random", "time")
#: Tells the random numbers of non-edges from those of the pairs, and from those of the user.
_FOR_NON_EDGES = (7919,)
#: How many numbered splits ``"all"`` means.
NUM_LINK_SPLITS = 10

_Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class LinkSplit:
    """One division of the unordered pairs of a graph.

    Attributes:
        edge_index: The observed graph: training pairs in both directions, sorted, ``[2, 2P]``.
        train: Training pairs, ``[2, P]``, the smaller node first.
        val: Validation pairs.
        val_negatives: As many pairs that are no edge of the whole graph.
        test: Test pairs.
        test_negatives: As many pairs that are no edge, none of them in ``val_negatives``.
    """

    edge_index: Tensor
    train: Tensor
    val: Tensor
    val_negatives: Tensor
    test: Tensor
    test_negatives: Tensor


def parse_ratio(text: str) -> tuple[float, float, float]:
    """Three shares from a text such as ``"85/5/10"``, which must sum to 100.

    Example:
        >>> parse_ratio("80/5/15")
        (0.8, 0.05, 0.15)
    """
    if not re.fullmatch(r"\d+(\.\d+)?(/\d+(\.\d+)?){2}", text.strip()):
        raise ConfigError(f"--ratio must read like {RATIOS[0]} (got '{text}')")
    train, val, test = (float(part) for part in text.split("/"))
    if min(train, val, test) <= 0 or abs(train + val + test - 100) > 1e-9:
        raise ConfigError(f"--ratio must be three positive shares that sum to 100 (got '{text}')")
    return train / 100, val / 100, test / 100


def split_links(
    edge_index: Tensor,
    num_nodes: int,
    ratio: str,
    seed: int,
    *,
    spanning_forest: bool = False,
    edge_time: Tensor | None = None,
) -> LinkSplit:
    """Divide the unordered pairs of a graph at random, or by time.

    Directions, self-loops and duplicates are removed first, so that the two directions of an
    edge are always in the same part. Negatives are drawn uniformly from the pairs that are no
    edge of the whole graph, and no pair is drawn twice.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``.
        num_nodes: Number of nodes.
        ratio: Shares of training, validation and test pairs, such as ``"85/5/10"``.
        seed: Fixes the split.
        spanning_forest: Keep a random spanning forest in training, so that every component of
            the graph stays connected.
        edge_time: Time of each edge, ``[E]``. The newest pairs are test pairs, those before them
            validation pairs; a pair is as old as its first edge. Pairs of one moment that fall
            into two parts are divided at random, and seeds also differ in their non-edges.

    Raises:
        DataError: There are too few pairs or too few non-edges.
    """
    _, val_share, test_share = parse_ratio(ratio)
    both = to_undirected(edge_index, num_nodes=num_nodes).cpu()
    pairs: _Pairs = both[:, both[0] < both[1]].numpy()  # each once, the smaller node first, sorted
    count = pairs.shape[1]
    # As floating point numbers, 0.29 * 100 is less than 29, and must not be cut to 28.
    num_val, num_test = (int(share * count + 1e-9) for share in (val_share, test_share))
    if min(num_val, num_test, count - num_val - num_test) < 1:
        raise DataError(f"{count} pairs are too few for a split at {ratio}")
    order = np.random.default_rng(seed).permutation(count)
    if spanning_forest:
        order = _forest_last(pairs, order, num_nodes, num_val + num_test, ratio)
    if edge_time is not None:
        if spanning_forest:
            raise ConfigError("a spanning forest would put new edges into training")
        newest = _newest_first(pairs, order, edge_index, edge_time, num_nodes)
        test, val, train = np.split(newest, [num_test, num_test + num_val])
        order = np.concatenate([val, test, train])
    # A stream of their own: else they share numbers with a graph that was drawn with this seed.
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_FOR_NON_EDGES))
    negatives = _non_edges(pairs, num_nodes, num_val + num_test, rng)
    val, test, train = np.split(order, [num_val, num_val + num_test])
    observed = pairs[:, np.sort(train)]
    return LinkSplit(
        edge_index=to_undirected(torch.from_numpy(observed), num_nodes=num_nodes),
        train=torch.from_numpy(observed),
        val=torch.from_numpy(pairs[:, val]),
        val_negatives=torch.from_numpy(negatives[:, :num_val]),
        test=torch.from_numpy(pairs[:, test]),
        test_negatives=torch.from_numpy(negatives[:, num_val:]),
    )


def _newest_first(
    pairs: _Pairs, order: _Pairs, edge_index: Tensor, edge_time: Tensor, num_nodes: int
) -> _Pairs:
    """The pairs by the time of their first edge; of equal times, in the given order."""
    ends = edge_index.cpu()
    no_loop = (ends[0] != ends[1]).numpy()
    keys = (torch.minimum(*ends) * num_nodes + torch.maximum(*ends)).numpy()
    place = np.searchsorted(pairs[0] * num_nodes + pairs[1], keys[no_loop])
    first = np.full(pairs.shape[1], np.inf)
    np.minimum.at(first, place, edge_time.double().cpu().numpy()[no_loop])
    newest: _Pairs = order[np.argsort(-first[order], kind="stable")]
    return newest


def _forest_last(
    pairs: _Pairs, order: _Pairs, num_nodes: int, num_held_out: int, ratio: str
) -> _Pairs:
    """The same order with a random spanning forest moved to its end, where training pairs are."""
    count = pairs.shape[1]
    # Random and distinct weights, none of them zero, from the places in the random order.
    weight = np.empty(count)
    weight[order] = 1.0 + np.arange(count)[::-1]
    tree = minimum_spanning_tree(coo_array((weight, tuple(pairs)), shape=(num_nodes, num_nodes)))
    in_forest = np.isin(weight, tree.tocoo().data)
    free = count - int(in_forest.sum())
    if free < num_held_out:
        raise DataError(
            f"only {free} of {count} pairs are outside a spanning forest, but a split at {ratio} "
            f"holds out {num_held_out}"
        )
    moved = in_forest[order]
    return np.concatenate([order[~moved], order[moved]])


def _non_edges(pairs: _Pairs, num_nodes: int, count: int, rng: np.random.Generator) -> _Pairs:
    """Distinct pairs of different nodes that are not in ``pairs``, in random order."""
    taken = pairs[0] * num_nodes + pairs[1]
    possible = num_nodes * (num_nodes - 1) // 2 - len(taken)
    if possible < count:
        raise DataError(f"{count} non-edges are needed, but the graph has only {possible}")
    if 2 * count > possible:
        low, high = np.triu_indices(num_nodes, k=1)
        keys = np.setdiff1d(low * num_nodes + high, taken, assume_unique=True)
        keys = rng.permutation(keys)[:count]
    else:
        keys = _drawn_keys(taken, num_nodes, count, rng)
    return np.stack([keys // num_nodes, keys % num_nodes])


def _drawn_keys(taken: _Pairs, num_nodes: int, count: int, rng: np.random.Generator) -> _Pairs:
    keys: _Pairs = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        a, b = rng.integers(num_nodes, size=(2, 2 * (count - len(keys)) + 16))
        fresh = (np.minimum(a, b) * num_nodes + np.maximum(a, b))[a != b]
        fresh = fresh[~np.isin(fresh, taken)]
        drawn = np.concatenate([keys, fresh])
        # Of equal draws the first is kept, in the order of drawing.
        keys = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return keys[:count]
