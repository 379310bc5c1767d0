"""Batch normalisation of a part of a graph."""

import numpy as np
import pytest
import torch

from argnn.data.adjacency import Adjacency
from argnn.data.graph_parts import GraphParts
from argnn.nn.part_norm import normalized

NODES, OWN = 700, 601  # a number of nodes that bfloat16 does not have


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mean_and_variance_are_those_of_the_own_nodes(dtype):
    torch.manual_seed(0)
    ring = torch.stack([torch.arange(NODES), torch.arange(NODES).roll(1)])
    edges = torch.cat([ring, ring.flip(0)], dim=1)
    parts = GraphParts(torch.zeros(NODES, 1), Adjacency.from_edges(edges, NODES))
    part = parts.around(np.arange(OWN), hops=1)
    h = (3 + torch.randn(part.num_nodes, 4)).to(dtype)
    norm, exact = torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4).double()
    out = normalized(norm, h, part)[:OWN]
    expected = exact(h[:OWN].double())
    assert out.dtype == dtype
    # Values are at most 5 in size. Each is rounded once, sums of 601 terms are those of float32.
    close = {torch.float32: 1e-5, torch.bfloat16: 5 * 2**-8}[dtype]
    assert (out.double() - expected).abs().max() < close
    for name in ("running_mean", "running_var"):
        kept, wanted = (getattr(n, name).double() for n in (norm, exact))
        assert (kept - wanted).abs().max() < 1e-5, name
