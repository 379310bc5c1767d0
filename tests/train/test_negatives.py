"""Fresh non-edges: which pairs are drawn, how often, and what is marked."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from argnn.train import NegativeSampler

FEW = settings(max_examples=30)


def all_pairs(num_nodes):
    return list(itertools.combinations(range(num_nodes), 2))


def sampler_of(pairs, num_nodes):
    return NegativeSampler(torch.tensor(sorted(pairs)).t(), num_nodes)


def drawn(sampler, count, seed=0):
    torch.manual_seed(seed)
    pairs, is_non_edge = sampler.draw(count)
    assert pairs.shape == (2, count)
    assert is_non_edge.shape == (count,)
    assert is_non_edge.dtype == torch.bool
    return pairs.t().tolist(), is_non_edge.tolist()


@FEW
@given(num_nodes=st.integers(2, 9), data=st.data())
def test_every_pair_is_marked_for_what_it_is(num_nodes, data):
    """So many draws that every ordered pair comes up, edges included."""
    pairs = data.draw(st.sets(st.sampled_from(all_pairs(num_nodes)), min_size=1))
    turned = {pair[::-1] if data.draw(st.booleans()) else pair for pair in pairs}
    sampler = sampler_of(turned, num_nodes)
    sampler.CANDIDATES = 1  # else non-edges hide the edges that were drawn
    seen = set()
    for (a, b), is_non_edge in zip(*drawn(sampler, 4000), strict=True):
        assert a != b
        assert is_non_edge == ((min(a, b), max(a, b)) not in pairs)
        seen.add((a, b))
    assert seen == set(itertools.permutations(range(num_nodes), 2))


@FEW
@given(num_nodes=st.integers(4, 30), share=st.floats(0.05, 0.95), seed=st.integers(0, 10**6))
def test_usual_draws_are_marked_for_what_they_are(num_nodes, share, seed):
    generator = torch.Generator().manual_seed(seed)
    everything = all_pairs(num_nodes)
    order = torch.randperm(len(everything), generator=generator).tolist()
    pairs = {everything[i] for i in order[: max(1, int(share * len(everything)))]}
    for (a, b), is_non_edge in zip(*drawn(sampler_of(pairs, num_nodes), 200, seed), strict=True):
        assert 0 <= min(a, b) < max(a, b) < num_nodes
        assert is_non_edge == ((min(a, b), max(a, b)) not in pairs)


def test_non_edges_are_drawn_evenly():
    everything = all_pairs(9)
    pairs = set(everything[::3])
    counts = dict.fromkeys(itertools.permutations(range(9), 2), 0)
    ends, is_non_edge = drawn(sampler_of(pairs, 9), 20_000)
    for (a, b), counted in zip(ends, is_non_edge, strict=True):
        counts[a, b] += counted
    free = [count for (a, b), count in counts.items() if (min(a, b), max(a, b)) not in pairs]
    assert sum(counts.values()) == sum(free) > 15_000
    assert chisquare(free).pvalue > 0.001


def test_draws_are_fresh_and_follow_the_seed():
    sampler = sampler_of(all_pairs(40)[::9], 40)
    torch.manual_seed(3)
    first, second = sampler.draw(100)[0], sampler.draw(100)[0]
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(sampler.draw(100)[0], first)


def test_non_edges_come_first_so_that_marks_are_rare():
    everything = all_pairs(40)
    thin, half = sampler_of(everything[::20], 40), sampler_of(everything[::2], 40)
    assert all(drawn(thin, 500)[1])
    # Of a thousand candidates about half are edges: about all of 500 places are filled.
    is_non_edge = drawn(half, 500)[1]
    assert sum(is_non_edge) > 450
    assert is_non_edge == sorted(is_non_edge, reverse=True)


def test_complete_graph_has_edges_only():
    sampler = sampler_of(all_pairs(6), 6)
    assert not any(drawn(sampler, 300)[1])


def test_graph_with_one_non_edge_left_finds_it():
    sampler = sampler_of(all_pairs(5)[:-1], 5)
    ends, is_non_edge = drawn(sampler, 50)
    found = {tuple(sorted(pair)) for pair, free in zip(ends, is_non_edge, strict=True) if free}
    assert found == {(3, 4)}


@pytest.mark.parametrize("count", [0, 1])
def test_small_counts(count):
    assert len(drawn(sampler_of([(0, 1)], 3), count)[0]) == count
