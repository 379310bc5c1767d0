"""Kernels share out rows among threads, and say so when a part of them fails."""

import numpy as np
import pytest
import torch

from argnn.kernels.cpu.compiling import over_rows
from argnn.kernels.cpu.launch import launch_rows


def squares(first, last, x, out):
    for row in range(first, last):
        out[row] = x[row] * x[row]


def greedy(first, last, x, out):
    if first == 0:  # one part alone asks for more than there is
        out[0] = np.empty(int(x[0])).sum()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("ARGNN_CACHE", str(tmp_path))


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 1000])
def test_every_row_is_computed_once(rows):
    x, out = torch.arange(rows, dtype=torch.float64), torch.full((rows,), -1.0).double()
    launch_rows(over_rows(squares), x, out)
    assert torch.equal(out, x * x)


def test_a_part_without_memory_is_told():
    x, out = torch.full((100,), 2.0**50, dtype=torch.float64), torch.zeros(100).double()
    kernel = over_rows(greedy)
    with pytest.raises(MemoryError, match="not enough memory for the sums"):
        launch_rows(kernel, x, out)
    launch_rows(kernel, torch.ones(100).double(), out)  # the next call is not affected


def test_a_kept_kernel_shares_out_rows_too():
    x, out = torch.arange(50, dtype=torch.float64), torch.zeros(50).double()
    launch_rows(over_rows(squares), x, out.clone())
    again = over_rows(squares)
    launch_rows(again, x, out)
    assert sum(again.stats.cache_hits.values()) == 1
    assert torch.equal(out, x * x)
