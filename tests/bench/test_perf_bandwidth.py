"""Useful bytes, counted by hand."""

from argnn.bench.perf.bandwidth import (
    aggregate_forward_bytes,
    propagate_backward_bytes,
    propagate_forward_bytes,
)

# Three nodes, four listed edges, two channels of four bytes: a row has eight bytes.
SIZES = (3, 4, 2, 4)


def test_forward_bytes():
    edges = 4 * (8 + 4)  # h_j, its index
    nodes = 3 * (8 + 8 + 8 + 8)  # h_i, g_i, the sum, the offset
    assert propagate_forward_bytes(*SIZES, saved=False) == edges + nodes == 144
    assert propagate_forward_bytes(*SIZES, saved=True) == 144 + 4 * 12


def test_backward_bytes():
    targets = 4 * (8 + 4 + 12) + 3 * (8 + 8 + 8 + 8)  # h_j; own h, g, gradient, offset
    sources = 4 * (3 * 8 + 4 + 12) + 3 * (8 + 8)  # gradient, h_i, g_i; own h, offset
    written = 3 * (8 + 8)
    assert propagate_backward_bytes(*SIZES) == targets + sources + written == 448


def test_aggregate_bytes():
    assert aggregate_forward_bytes(*SIZES) == 4 * (8 + 4) + 3 * (8 + 8)


def test_half_precision_halves_the_rows_only():
    assert propagate_forward_bytes(3, 4, 2, 2, saved=False) == 4 * (4 + 4) + 3 * (3 * 4 + 8)
