"""Factored metrics against dense matrices in float64, by eigendecomposition and loops."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import reference
from argnn import functional as AF
from argnn.functional import factored as module
from argnn.functional.factored import frobenius_gaps, frobenius_squares, times
from argnn.functional.graph_part import own_rows
from argnn.functional.neighborhood import neighborhood
from argnn.functional.ricci import ricci_squares

from .cases import (
    GRADCHECK_GRAPH,
    GRAPHS,
    assert_permutation_equivariant,
    every_graph,
    fields,
)

D, RANK = 4, 2


def factored_field(num_nodes, rank=RANK, channels=D, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    diagonal = 0.1 + 2 * torch.rand(num_nodes, channels, generator=generator, dtype=torch.float64)
    shape = (num_nodes, rank, channels)
    factor = torch.randn(shape, generator=generator, dtype=torch.float64)
    return AF.factored_metric(diagonal, factor).to(dtype)


def dense(g):
    """The matrices, ``[N, D, D]``."""
    return torch.stack([torch.diag(rows[0]) + rows[1:].t() @ rows[1:] for rows in g])


def dense_operator(g):
    """tanh(-log G) by eigendecomposition."""
    values, vectors = torch.linalg.eigh(dense(g))
    return vectors @ torch.diag_embed(torch.tanh(-values.log())) @ vectors.mT


def close(actual, expected, tolerance=1e-10):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rank", [1, 2, 4, 6])
def test_operator_is_the_matrix_function(rank):
    g, z = factored_field(7, rank), fields(GRAPHS[0])[0][:7, :1].expand(7, D) + torch.eye(7, D)
    added = torch.ones(7, D, dtype=torch.float64)
    matrix = 0.2 * torch.eye(D, dtype=torch.float64) + 0.8 * dense_operator(g)
    close(AF.modulate(z, g, 0.2, added=added), (matrix @ z.unsqueeze(-1)).squeeze(-1) + added)


def test_operator_of_a_diagonal_metric_is_that_of_each_channel():
    g = factored_field(6)
    g[:, 1:] = 0
    z = torch.randn(6, D, dtype=torch.float64)
    close(AF.modulate(z, g, 0.1), AF.modulate(z, g[:, 0], 0.1), 1e-14)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_operator_in_single_precision_stays_near_double(scale):
    """The inverse has norm at most one at every scale, so that errors are of rounding size."""
    g = scale * factored_field(50, 3, 8)
    z = torch.randn(50, 8, dtype=torch.float64)
    near = AF.modulate(z.float(), g.float()).double()
    # Rounding the entries of G alone moves T by eps * cond; 1e-4 is 1000 roundings.
    assert (near - AF.modulate(z, g)).abs().max() < 1e-4
    assert near.norm(dim=-1).le(z.norm(dim=-1) * (1 + 1e-4)).all()


@every_graph
def test_edge_modulation_is_a_quadratic_form(graph):
    h, _ = fields(graph, channels=D)
    g = factored_field(graph.num_nodes)
    tau = AF.edge_modulation(h, g, graph.edge_index, 0.1, eps=1e-12)
    expected = []
    for j, i in graph.edges:
        d = h[j] - h[i]
        d = d / (d.norm() + 1e-12)
        expected.append(0.1 + 0.9 * float(d @ dense_operator(g)[i] @ d))
    close(tau, torch.tensor(expected, dtype=torch.float64))


@every_graph
@pytest.mark.parametrize("neighbor_norm", ["own", "target"])
def test_attention_measures_by_the_matrices(graph, neighbor_norm):
    h, _ = fields(graph, channels=D)
    g = factored_field(graph.num_nodes)
    matrix = dense(g)
    alpha = AF.edge_attention(h, g, graph.edge_index, neighbor_norm=neighbor_norm, eps=1e-12)
    expected = []
    for j, i in graph.edges:
        of_j = matrix[j if neighbor_norm == "own" else i]
        size = (h[i] @ matrix[i] @ h[i]).sqrt() * (h[j] @ of_j @ h[j]).sqrt()
        expected.append(float(h[i] @ matrix[i] @ h[j] / (size + 1e-12)))
    close(alpha, torch.tensor(expected, dtype=torch.float64))


def test_distances_and_products_are_those_of_the_matrices():
    g, x = factored_field(6), torch.randn(6, D, dtype=torch.float64)
    y, matrix = x.flip(0), dense(g)
    gap = (x - y).unsqueeze(-1)
    close(AF.metric_distance(x, y, g), (gap.mT @ matrix @ gap).squeeze().sqrt())
    close(times(g, x), (matrix @ x.unsqueeze(-1)).squeeze(-1))
    close(AF.metric_diagonal(g), matrix.diagonal(dim1=1, dim2=2))
    close(AF.metric_eigenvalues(g), torch.linalg.eigvalsh(matrix))
    close(dense(AF.mean_metric(g, g.flip(0))), (matrix + matrix.flip(0)) / 2)
    diagonal = g[:, 0]
    assert torch.equal(AF.metric_distance(x, y, diagonal), AF.geodesic_distance(x, y, diagonal))


def test_gradient_of_a_distance_at_equal_points_is_zero():
    x = torch.randn(3, D, dtype=torch.float64, requires_grad=True)
    AF.metric_distance(x, x.detach(), factored_field(3)).sum().backward()
    assert torch.equal(x.grad, torch.zeros_like(x))


@every_graph
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_energies_are_those_of_all_entries(graph, reduction):
    g = factored_field(graph.num_nodes)
    entries = dense(g).flatten(1)
    # A mean over channels counts D of them, not the D * D entries.
    factor = 1 if reduction == "sum" else D
    for energy in (AF.ricci_energy, AF.smoothness_energy):
        expected = factor * energy(entries, graph.edge_index, reduction)
        close(energy(g, graph.edge_index, reduction), expected)
    both = AF.metric_energies([g, g], graph.edge_index, reduction)
    undirected = neighborhood(graph.edge_index, graph.num_nodes).relation("undirected")
    expected = 2 * factor * AF.ricci_energy(entries, undirected, reduction)
    close(both[0], expected)
    close(AF.nrmd(g, graph.edge_index), AF.nrmd(entries, graph.edge_index))
    close(frobenius_squares(g), entries.square().sum(-1))


def test_smoothness_by_loops():
    graph = GRAPHS[0]
    g = factored_field(graph.num_nodes)
    matrix = dense(g)
    pairs = reference.unordered_pairs(graph.edges)
    expected = sum((matrix[a] - matrix[b]).square().sum() for a, b in pairs)
    close(AF.smoothness_energy(g, graph.edge_index), expected)


def test_close_metrics_lose_no_digits():
    """The expansion into squares and products would leave no digit of a gap of 1e-10."""
    g = factored_field(1).expand(2, -1, -1).clone()
    g[1] += 1e-10 * factored_field(1, seed=5)[0]
    (gap,) = frobenius_gaps(g, torch.tensor([0]), torch.tensor([1]))
    matrix = dense(g)
    torch.testing.assert_close(gap, (matrix[0] - matrix[1]).square().sum()[None], rtol=1e-4, atol=0)


def test_pieces_give_the_values_and_gradients_of_the_whole(monkeypatch):
    graph = GRAPHS[1]
    h, _ = fields(graph, channels=D)
    found = []
    for piece in (2**24, 40):
        monkeypatch.setattr(module, "PIECE", piece)
        monkeypatch.setattr("argnn.functional.ricci.PIECE", piece)
        g = factored_field(graph.num_nodes).requires_grad_()
        value = AF.propagate(h, g, h, graph.edge_index, neighbor_norm="target").square().sum()
        value = value + sum(AF.metric_energies([g], graph.edge_index))
        value.backward()
        found.append((value.detach(), g.grad))
    close(found[0][0], found[1][0])
    close(found[0][1], found[1][1])


@pytest.mark.parametrize("neighbor_norm", ["own", "target"])
def test_gradients(neighbor_norm):
    graph = GRADCHECK_GRAPH
    h, _ = fields(graph, channels=3)
    g = factored_field(graph.num_nodes, 2, 3)
    edges = graph.edge_index

    def everything(h, g):
        yield AF.propagate(h, g, h, edges, 0.1, neighbor_norm=neighbor_norm)
        yield AF.modulate(h, g, 0.1)
        yield AF.ricci_energy(g, edges)
        yield AF.smoothness_energy(g, edges)
        yield AF.metric_distance(h, h.flip(0), g)

    inputs = (h.requires_grad_(), g.requires_grad_())
    assert torch.autograd.gradcheck(lambda *x: tuple(everything(*x)), inputs)


def test_renamed_nodes_rename_the_rows():
    def operation(h, g, edges):
        field = AF.factored_metric(g, torch.stack([h, h.cos()], dim=1))
        return AF.propagate(h, field, h, edges) + AF.modulate(h, field)

    for seed, graph in enumerate(GRAPHS):
        assert_permutation_equivariant(operation, graph, seed)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_types_are_computed_in_single_precision(dtype):
    graph = GRAPHS[1]
    h, _ = fields(graph, dtype, channels=D)
    g = factored_field(graph.num_nodes, dtype=dtype)
    slack = 8 * torch.finfo(dtype).eps
    for of in (
        lambda h, g: AF.propagate(h, g, h, graph.edge_index),
        lambda h, g: AF.modulate(h, g, added=h),
        lambda h, g: AF.smoothness_energy(g, graph.edge_index, "mean"),
    ):
        half, single = of(h, g), of(h.float(), g.float())
        assert half.dtype == dtype
        torch.testing.assert_close(half.float(), single, rtol=slack, atol=slack * 4)


def test_autocast_does_not_round_the_matrices():
    graph = GRAPHS[1]
    g = factored_field(graph.num_nodes, dtype=torch.float32)
    h = torch.randn(graph.num_nodes, D)
    with torch.autocast("cpu", torch.bfloat16):
        inside = (
            AF.modulate(h, g),
            AF.smoothness_energy(g, graph.edge_index),
            ricci_squares(g, graph.edge_index),
        )
    outside = (
        AF.modulate(h, g),
        AF.smoothness_energy(g, graph.edge_index),
        ricci_squares(g, graph.edge_index),
    )
    for a, b in zip(inside, outside, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


def test_own_rows_of_a_field_are_whole_matrices():
    assert own_rows(factored_field(3), neighborhood(GRAPHS[-1].edge_index, 3)).shape == (3, 3, D)


# -- cost -----------------------------------------------------------------------------------------


class Work(TorchDispatchMode):
    """Counts multiplications of matrix products and entries of results; the largest result."""

    def __init__(self):
        super().__init__()
        self.total = self.largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.total += sum(sizes)
        self.largest = max([self.largest, *sizes])
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.bmm):
            self.total += sizes[0] * args[0].size(-1)
        return out


def of_node(h, g, edges):
    yield AF.modulate(h, g, 0.1)
    yield times(g, h)
    yield AF.metric_distance(h, h.flip(0), g)
    yield AF.metric_diagonal(g)


def of_edges(h, g, edges):
    yield AF.propagate(h, g, h, edges)
    yield AF.propagate(h, g, h, edges, neighbor_norm="target")
    yield AF.smoothness_energy(g, edges)


def ricci(h, g, edges):
    yield AF.ricci_energy(g, edges)


def work_of(functions, channels, rank=2):
    """Work of values and gradients for three nodes and two edges."""
    edges = torch.tensor([[0, 1], [1, 2]])
    g = factored_field(3, rank, channels).requires_grad_()
    h = torch.randn(3, channels, dtype=torch.float64, requires_grad=True)
    with Work() as work:
        sum(value.sum() for value in functions(h, g, edges)).backward()
    return work


@pytest.mark.parametrize("functions", [of_node, of_edges])
def test_low_rank_work_is_linear_in_channels_and_no_matrix_is_made(functions):
    narrow, wide = (work_of(functions, channels) for channels in (256, 1024))
    assert wide.total < 4.01 * narrow.total
    # A few rows for each node, edge and column of the factors, far from a matrix.
    assert wide.largest < 64 * 1024
    # Linear in the rank, but for the products of columns that prepare the operator.
    low, high = (work_of(functions, 1024, rank).total for rank in (2, 8))
    assert high < 5 * low


def test_the_ricci_penalty_makes_rows_of_matrices():
    """Shows that the test above can fail; the pages say so of this penalty."""
    narrow, wide = (work_of(ricci, channels) for channels in (64, 256))
    assert wide.total > 15 * narrow.total
    assert wide.largest >= 3 * 256**2
