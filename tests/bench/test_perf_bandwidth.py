"""Useful bytes, counted by hand."""

from argnn.bench.perf.bandwidth import EdgeTraffic

# Three nodes, four listed edges, two channels of four bytes: a row has eight bytes.
TRAFFIC = EdgeTraffic(nodes=3, edges=4, channels=2, element=4)


def test_forward_bytes():
    edges = 4 * (8 + 4 + 4)  # h_j, its index, its norm
    nodes = 3 * (8 + 8 + 8 + 8)  # h_i, g_i, the sum, the offset
    norms = 3 * (8 + 8 + 4)  # h_i, g_i, the norm
    assert TRAFFIC.propagate_forward(saved=False) == edges + nodes + norms == 220
    assert TRAFFIC.propagate_forward(saved=True) == 220 + 4 * 16


def test_backward_bytes():
    # h_j, index, saved, five numbers left; own h, g, gradient, offset
    targets = 4 * (8 + 4 + 16 + 20) + 3 * (8 + 8 + 8 + 8)
    # gradient, h_i, g_i, index, five numbers and where they are; own h, offset
    sources = 4 * (3 * 8 + 4 + 20 + 8) + 3 * (8 + 8)
    written = 3 * (8 + 8)
    assert TRAFFIC.propagate_backward() == targets + sources + written == 608


def test_aggregate_bytes():
    assert TRAFFIC.aggregate_forward() == 4 * (8 + 4) + 3 * (8 + 8)


def test_half_precision_halves_the_rows_only():
    half = EdgeTraffic(nodes=3, edges=4, channels=2, element=2)
    assert half.propagate_forward(saved=False) == 4 * (4 + 8) + 3 * (5 * 4 + 12)
