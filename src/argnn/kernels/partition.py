# mypy: disable-error-code="no-untyped-def"
"""Loops over all nodes that divide a graph into parts, in memory for a few numbers per node."""

from functools import partial
from typing import Any

import numpy as np

from argnn.kernels.kept import kept_jit

_kept_jit: Any = partial(kept_jit, nogil=True)


@_kept_jit
def breadth_first(start, other):
    """All nodes in an order in which neighbours are near: breadth first."""
    nodes = len(start) - 1
    order, seen = np.empty(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.bool_)
    found = 0
    for root in range(nodes):
        if seen[root]:
            continue
        seen[root] = True
        order[found] = root
        at, found = found, found + 1
        while at < found:
            for place in range(start[order[at]], start[order[at] + 1]):
                if not seen[other[place]]:
                    seen[other[place]] = True
                    order[found] = other[place]
                    found += 1
            at += 1
    return order


@_kept_jit
def improve(start, other, num_parts, most, part):
    """Put each node into the part of most of its neighbours, times the part's free share."""
    size = np.zeros(num_parts, dtype=np.int64)
    for node in range(len(part)):
        size[part[node]] += 1
    near = np.zeros(num_parts, dtype=np.int64)
    for node in range(len(part)):
        size[part[node]] -= 1
        for place in range(start[node], start[node + 1]):
            near[part[other[place]]] += 1
        best, best_score = part[node], near[part[node]] * (1 - size[part[node]] / most)
        for place in range(start[node], start[node + 1]):
            candidate = part[other[place]]
            score = near[candidate] * (1 - size[candidate] / most)
            near[candidate] = 0
            if score > best_score:
                best, best_score = candidate, score
        part[node] = best
        size[best] += 1
