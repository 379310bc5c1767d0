"""Edge splits: what is observed, what is asked about, and what is refused."""

from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import chisquare
from sklearn.metrics import roc_auc_score

from argnn.data import load
from argnn.data.links import RATIOS, LinkSplit, parse_ratio, split_links
from argnn.errors import ConfigError, DataError

FEW = settings(max_examples=40)

RATIO = "60/20/20"  # small graphs can be divided by it


def as_set(pairs):
    return set(map(tuple, pairs.t().tolist()))


def edge_tensor(pairs):
    return torch.tensor(sorted(pairs), dtype=torch.int64).reshape(-1, 2).t().contiguous()


def random_pairs(num_nodes, density, seed):
    rng = np.random.default_rng(seed)
    low, high = np.triu_indices(num_nodes, k=1)
    chosen = rng.random(len(low)) < density
    return set(zip(low[chosen].tolist(), high[chosen].tolist(), strict=True))


def sizes(ratio, count):
    """Rounded down in whole numbers; what is left is for training."""
    _, val, test = (int(part) for part in ratio.split("/"))
    return val * count // 100, test * count // 100


def check(split, pairs, num_nodes, ratio):
    """Everything that holds for every split."""
    parts = [as_set(part) for part in (split.train, split.val, split.test)]
    assert sum(part.size(1) for part in (split.train, split.val, split.test)) == len(pairs)
    assert set.union(*parts) == pairs  # with the line before: each pair exactly once
    assert (split.val.size(1), split.test.size(1)) == sizes(ratio, len(pairs))

    both_ways = parts[0] | {(b, a) for a, b in parts[0]}
    assert split.edge_index.t().tolist() == sorted(map(list, both_ways))

    negatives = torch.cat([split.val_negatives, split.test_negatives], dim=1)
    assert split.val_negatives.size(1) == split.val.size(1)
    assert split.test_negatives.size(1) == split.test.size(1)
    assert len(as_set(negatives)) == negatives.size(1)  # distinct, and disjoint
    assert as_set(negatives).isdisjoint(pairs)
    assert (negatives[0] < negatives[1]).all()
    assert negatives.min() >= 0
    assert negatives.max() < num_nodes
    assert {getattr(split, field.name).dtype for field in fields(split)} == {torch.int64}


def assert_same_split(first, second):
    for field in fields(LinkSplit):
        assert torch.equal(getattr(first, field.name), getattr(second, field.name)), field.name


@FEW
@given(
    num_nodes=st.integers(8, 40),
    density=st.floats(0.05, 0.6),
    ratio=st.sampled_from([*RATIOS, RATIO]),
    seed=st.integers(0, 10**6),
)
def test_parts_and_negatives_of_random_graphs(num_nodes, density, ratio, seed):
    pairs = random_pairs(num_nodes, density, seed)
    assume(min(sizes(ratio, len(pairs))) > 0)
    assume(num_nodes * (num_nodes - 1) // 2 - len(pairs) >= sum(sizes(ratio, len(pairs))))
    check(split_links(edge_tensor(pairs), num_nodes, ratio, seed), pairs, num_nodes, ratio)


@FEW
@given(seed=st.integers(0, 10**6), density=st.floats(0.15, 0.5))
def test_directions_duplicates_and_loops_are_forgotten(seed, density):
    pairs = random_pairs(16, density, seed)
    assume(min(sizes(RATIO, len(pairs))) > 0)
    generator = torch.Generator().manual_seed(seed)
    clean = edge_tensor(pairs)
    turned = torch.where(torch.rand(clean.size(1), generator=generator) < 0.5, clean, clean.flip(0))
    loops = torch.arange(16).expand(2, 16)
    noisy = torch.cat([clean, turned, clean.flip(0), loops, turned[:, :5]], dim=1)
    noisy = noisy[:, torch.randperm(noisy.size(1), generator=generator)]
    expected = split_links(clean, 16, RATIO, seed)
    for edge_index in (turned, clean.flip(0), noisy):
        assert_same_split(split_links(edge_index, 16, RATIO, seed), expected)


def test_same_seed_same_split_other_seed_another():
    edge_index = edge_tensor(random_pairs(40, 0.2, 0))
    first = split_links(edge_index, 40, RATIO, 3)
    assert_same_split(split_links(edge_index, 40, RATIO, 3), first)
    other = split_links(edge_index, 40, RATIO, 4)
    for field in fields(LinkSplit):
        assert as_set(getattr(other, field.name)) != as_set(getattr(first, field.name)), field.name


def test_caller_keeps_its_edges_and_its_random_state():
    edge_index = edge_tensor(random_pairs(40, 0.2, 0)).flip(0)
    before, state = edge_index.clone(), torch.get_rng_state()
    split_links(edge_index, 40, RATIO, 3)
    assert torch.equal(edge_index, before)
    assert torch.equal(torch.get_rng_state(), state)


# Of the pairs of 12 nodes 42 are no edge, of which 8 are drawn; of those of 8 nodes 8 are, and
# all of them are taken: the way for dense graphs.
@pytest.mark.parametrize(("num_nodes", "num_pairs"), [(12, 24), (8, 20)])
def test_every_pair_has_the_same_chance(num_nodes, num_pairs):
    everything = sorted(random_pairs(num_nodes, 2.0, 0))
    chosen = np.random.default_rng(1).permutation(len(everything))[:num_pairs]
    edges = {everything[i] for i in chosen}
    edge_index, first = edge_tensor(edges), {}
    for seed in range(1000):
        split = split_links(edge_index, num_nodes, RATIO, seed)
        for part in ("val", "test", "val_negatives", "test_negatives"):
            a, b = getattr(split, part)[:, 0].tolist()
            first.setdefault(part, Counter())[a, b] += 1
    for part, counts in first.items():
        assert counts.keys() == (edges if part in ("val", "test") else set(everything) - edges)
        assert chisquare(list(counts.values())).pvalue > 0.001, part


# -- dense graphs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", range(0, 16, 3))
@pytest.mark.parametrize("ratio", RATIOS)
def test_dense_graph_works_while_there_are_non_edges_enough(missing, ratio):
    everything = sorted(random_pairs(12, 2.0, 0))
    order = np.random.default_rng(missing).permutation(len(everything))
    pairs = {everything[i] for i in order[missing:]}
    needed = sum(sizes(ratio, len(pairs)))
    if missing >= needed:
        check(split_links(edge_tensor(pairs), 12, ratio, 0), pairs, 12, ratio)
    else:
        message = f"{needed} non-edges are needed, but the graph has only {missing}"
        with pytest.raises(DataError, match=message):
            split_links(edge_tensor(pairs), 12, ratio, 0)


def test_dense_cases_of_this_file_are_of_both_kinds():
    needed = [(missing, sum(sizes(ratio, 66 - missing))) for missing in (0, 15) for ratio in RATIOS]
    assert [missing >= count for missing, count in needed] == [False, False, True, True]


def test_all_non_edges_may_be_needed():
    pairs = set(sorted(random_pairs(10, 2.0, 0))[:32])  # 13 of the 45 pairs are no edge
    split = split_links(edge_tensor(pairs), 10, RATIO, 0)  # 6 and 6 are asked for
    check(split, pairs, 10, RATIO)


# -- spanning forest ------------------------------------------------------------------------------


def component_count(edge_index, num_nodes):
    ones = np.ones(edge_index.size(1))
    matrix = coo_array((ones, tuple(edge_index.numpy())), shape=(num_nodes, num_nodes))
    return connected_components(matrix, directed=False)[0]


@FEW
@given(
    num_nodes=st.integers(10, 40),
    density=st.floats(0.05, 0.5),
    seed=st.integers(0, 10**6),
    ratio=st.sampled_from([*RATIOS, RATIO]),
)
def test_spanning_forest_keeps_every_component_together(num_nodes, density, seed, ratio):
    pairs = random_pairs(num_nodes, density, seed)
    edge_index = edge_tensor(pairs)
    whole = component_count(edge_index, num_nodes)
    held_out, outside = sum(sizes(ratio, len(pairs))), len(pairs) - (num_nodes - whole)
    assume(min(sizes(ratio, len(pairs))) > 0)
    assume(num_nodes * (num_nodes - 1) // 2 - len(pairs) >= held_out)
    if outside < held_out:
        message = f"only {outside} of {len(pairs)} pairs .* holds out {held_out}"
        with pytest.raises(DataError, match=message):
            split_links(edge_index, num_nodes, ratio, seed, spanning_forest=True)
        return
    split = split_links(edge_index, num_nodes, ratio, seed, spanning_forest=True)
    check(split, pairs, num_nodes, ratio)
    assert component_count(split.edge_index, num_nodes) == whole


def test_without_spanning_forest_components_fall_apart():
    """Otherwise the property above would say nothing about the option."""
    pairs = random_pairs(40, 0.08, 1)
    edge_index = edge_tensor(pairs)
    apart = [component_count(split_links(edge_index, 40, RATIO, s).edge_index, 40) for s in (0, 1)]
    assert min(apart) > component_count(edge_index, 40)


def test_spanning_forest_is_drawn_with_the_seed():
    # A ring with few chords: most forests differ in the edges of the ring that they lack.
    ring = {(a, a + 1) for a in range(29)} | {(0, 29)}
    edge_index = edge_tensor(ring | {(a, a + 10) for a in range(20)})
    splits = [split_links(edge_index, 30, RATIOS[0], s, spanning_forest=True) for s in (0, 0, 1, 2)]
    assert_same_split(splits[0], splits[1])
    assert len({frozenset(as_set(split.test)) for split in splits}) == 3


def test_held_out_pairs_need_not_avoid_any_edge_of_a_cycle():
    """Every edge of a cycle can be the one that a forest leaves out."""
    edge_index = edge_tensor(random_pairs(7, 2.0, 0) | {(7, 8), (8, 9), (9, 10), (7, 10)})
    seen = set()
    for seed in range(200):
        split = split_links(edge_index, 20, RATIO, seed, spanning_forest=True)
        seen |= as_set(split.test) | as_set(split.val)
    assert len(seen) == edge_index.size(1)


@pytest.mark.parametrize("ratio", RATIOS)
def test_tree_has_no_pair_outside_its_spanning_forest(ratio):
    tree = {((child - 1) // 2, child) for child in range(1, 41)}
    split_links(edge_tensor(tree), 41, ratio, 0)
    with pytest.raises(DataError, match="only 0 of 40 pairs are outside a spanning forest"):
        split_links(edge_tensor(tree), 41, ratio, 0, spanning_forest=True)


# -- refused --------------------------------------------------------------------------------------


def test_ratio_is_read_as_shares():
    assert parse_ratio("85/5/10") == pytest.approx((0.85, 0.05, 0.1))
    assert parse_ratio(" 72.5/2.5/25 ") == pytest.approx((0.725, 0.025, 0.25))


@pytest.mark.parametrize(
    "ratio",
    ["", "85", "85/15", "85/5/5/5", "85:5:10", "0.85/0.05/0.10", "85/5/11", "85/5/9.9", "95/5/0"]
    + ["0/50/50", "100/0/0", "-5/5/100", "a/b/c", "nan/5/10", "1e1/80/10", "85//10", "inf/5/5"],
)
def test_bad_ratio_is_refused(ratio):
    with pytest.raises(ConfigError, match="--ratio must"):
        parse_ratio(ratio)
    with pytest.raises(ConfigError, match="--ratio must"):
        split_links(edge_tensor(random_pairs(12, 0.5, 0)), 12, ratio, 0)


@pytest.mark.parametrize(("ratio", "smallest"), [("85/5/10", 20), ("80/5/15", 20), ("60/20/20", 5)])
def test_too_few_pairs_are_refused(ratio, smallest):
    path = [(a, a + 1) for a in range(smallest)]
    split = split_links(edge_tensor(path), smallest + 1, ratio, 0)
    assert split.val.size(1) == 1
    message = f"{smallest - 1} pairs are too few for a split at {ratio}"
    with pytest.raises(DataError, match=message):
        split_links(edge_tensor(path[:-1]), smallest + 1, ratio, 0)


def test_graph_without_edges_is_refused():
    loops = torch.arange(5).expand(2, 5)
    for edge_index in (torch.empty(2, 0, dtype=torch.int64), loops):
        with pytest.raises(DataError, match="0 pairs are too few"):
            split_links(edge_index, 5, RATIOS[0], 0)


def test_share_of_a_round_number_is_exact():
    pairs = set(sorted(random_pairs(40, 2.0, 0))[:100])
    assert split_links(edge_tensor(pairs), 40, "61/10/29", 0).test.size(1) == 29


# -- real graphs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_benchmark_graphs_at_both_ratios(name, benchmark_root):
    graph = load(name, root=benchmark_root)
    nodes, edge_index = graph.num_nodes, graph.edge_index
    pairs = as_set(edge_index[:, edge_index[0] < edge_index[1]])
    whole = component_count(edge_index, nodes)
    for ratio in RATIOS:
        split = split_links(edge_index, nodes, ratio, 0)
        check(split, pairs, nodes, ratio)
        assert component_count(split.edge_index, nodes) > whole
        kept = split_links(edge_index, nodes, ratio, 0, spanning_forest=True)
        check(kept, pairs, nodes, ratio)
        assert component_count(kept.edge_index, nodes) == whole


@pytest.mark.parametrize("shape", [(2, 5000), (5000, 2)])
def test_graph_of_the_same_seed_shares_nothing_with_its_split(shape):
    """Else non-edges would be drawn with the numbers of the ends of edges: 0.38 by degree."""
    scores, nodes = [], 1000
    for seed in range(5):
        ends = np.random.default_rng(seed).integers(0, nodes, shape)
        edges = torch.from_numpy(ends if shape[0] == 2 else np.ascontiguousarray(ends.T))
        split = split_links(edges, nodes, "85/5/10", seed)
        degree = torch.bincount(split.edge_index[1], minlength=nodes).double()
        found = [degree[pairs].log1p().sum(0) for pairs in (split.test, split.test_negatives)]
        is_link = [1] * len(found[0]) + [0] * len(found[1])
        scores.append(roc_auc_score(is_link, torch.cat(found)))
    # 2,500 pairs of each kind: the standard error of the mean is 0.008.
    assert abs(np.mean(scores) - 0.5) < 0.032
