"""The transport kernel against POT, on graphs with hundreds of receivers and with hubs."""

import networkx
import pytest
import torch

from argnn.functional import ollivier
from argnn.kernels.neighborhood import neighborhood
from argnn.kernels.transport import transport_costs

pytest.importorskip("ot", reason="exact optimal transport needs POT")


def lollipop():
    """Two hubs with common and own leaves, and a dense part: every kind of mass at once."""
    graph = networkx.gnp_random_graph(80, 0.6, seed=5)
    graph.add_edges_from((0, leaf) for leaf in range(80, 150))
    graph.add_edges_from((1, leaf) for leaf in range(120, 200))
    return graph


GRAPHS = {
    "more than one word of receivers": lambda: networkx.gnp_random_graph(150, 0.5, seed=0),
    # 63 neighbours of each of 80 nodes; drawing those that are none is a hundred times faster.
    "exactly one word of receivers": lambda: networkx.complement(
        networkx.random_regular_graph(16, 80, seed=0)
    ),
    "sparse": lambda: networkx.gnp_random_graph(150, 0.03, seed=1),
    "hubs": lambda: networkx.barabasi_albert_graph(150, 3, seed=2),
    "blocks": lambda: networkx.stochastic_block_model(
        [40, 40, 40], [[0.5, 0.02, 0.02], [0.02, 0.4, 0.02], [0.02, 0.02, 0.3]], seed=3
    ),
    "no triangles": lambda: networkx.bipartite.random_graph(50, 60, 0.3, seed=4),
    "two hubs": lollipop,
    "a grid of long cycles": lambda: networkx.convert_node_labels_to_integers(
        networkx.grid_2d_graph(9, 9, periodic=True)
    ),
}


def hood_of(graph):
    edges = torch.tensor(list(graph.edges)).t().contiguous()
    return neighborhood(edges, graph.number_of_nodes()).relation("undirected")


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5])
def test_costs_are_those_of_pot(name, alpha):
    hood = hood_of(GRAPHS[name]())
    generator = torch.Generator().manual_seed(0)
    some = torch.randperm(hood.num_pairs, generator=generator)[:150]
    pairs = hood.pairs[:, some]
    found = transport_costs(hood.csr, pairs, alpha, threads=2)
    assert found.dtype == torch.float64
    torch.testing.assert_close(
        found, ollivier._plain_costs(hood, pairs, alpha), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("name", ["hubs", "two hubs"])
def test_costs_ignore_the_order_of_pairs_and_of_their_ends_and_the_threads(name):
    hood = hood_of(GRAPHS[name]())
    costs = transport_costs(hood.csr, hood.pairs, 0.5, threads=1)
    order = torch.randperm(hood.num_pairs, generator=torch.Generator().manual_seed(1))
    turned = hood.pairs[:, order].flip(0)
    assert torch.equal(transport_costs(hood.csr, turned, 0.5, threads=3), costs[order])


def test_costs_are_correctly_rounded():
    # On K5 a seventh stays: W1 = |alpha - (1 - alpha) / 4| = 1 / 14.
    hood = hood_of(networkx.complete_graph(5))
    costs = transport_costs(hood.csr, hood.pairs, 1 / 7, threads=1)
    assert costs.tolist() == [1 / 14] * 10


@pytest.mark.parametrize("alpha", [1e-12, 0.123456789012, 1 - 1e-7])
def test_laziness_need_not_be_a_short_fraction(alpha):
    hood = hood_of(networkx.complete_graph(5))
    costs = transport_costs(hood.csr, hood.pairs, alpha, threads=1)
    expected = torch.full_like(costs, abs(alpha - (1 - alpha) / 4))
    torch.testing.assert_close(costs, expected, rtol=0, atol=1e-9)


def test_progress_rises_to_the_number_of_pairs():
    hood, told = hood_of(GRAPHS["hubs"]()), []
    transport_costs(hood.csr, hood.pairs, 0.5, 2, lambda done, total: told.append((done, total)))
    done = [number for number, _ in told]
    assert len(told) > 3
    assert done == sorted(set(done))
    assert told[-1] == (hood.num_pairs, hood.num_pairs)


def test_an_interrupt_ends_the_work():
    hood, told = hood_of(GRAPHS["hubs"]()), []

    def interrupt(done, total):
        told.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        transport_costs(hood.csr, hood.pairs, 0.5, 1, interrupt)
    assert len(told) == 1


def test_no_pairs_cost_nothing():
    hood = hood_of(GRAPHS["hubs"]())
    assert transport_costs(hood.csr, hood.pairs[:, :0], 0.5, threads=1).shape == (0,)
