# mypy: disable-error-code="no-untyped-def"
"""Count the triangles of a graph in memory that grows with its edges only.

Each edge is kept at its end of lower degree. Of a triangle's nodes, the lowest one then has the
two others in its list, and the middle one has the highest: each triangle is found once, and lists
are short even at nodes of very high degree.
"""

from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from argnn.kernels.kept import kept_jit

_kept_jit: Any = partial(kept_jit, nogil=True)
_jit: Any = njit(nogil=True)


def count_triangles(start: NDArray[np.int64], other: NDArray[Any]) -> NDArray[np.int64]:
    """Number of triangles at each node, ``[N]``.

    Args:
        start: Place of the first neighbour of each node, and the number of all, ``[N + 1]``.
        other: The neighbours of each node, each once, without the node itself, ``[E]``.
    """
    upward_start, upward = _upward(start, other)
    return _count(upward_start, upward)


@_jit
def _is_higher(start, a, b):
    """Whether node ``a`` comes after node ``b``, by degree, then by number."""
    degree_a, degree_b = start[a + 1] - start[a], start[b + 1] - start[b]
    return degree_a > degree_b or (degree_a == degree_b and a > b)


@_kept_jit
def _upward(start, other):
    """For each node its neighbours that come after it."""
    size = len(start) - 1
    upward_start = np.zeros(size + 1, dtype=np.int64)
    for node in range(size):
        count = 0
        for place in range(start[node], start[node + 1]):
            count += _is_higher(start, other[place], node)
        upward_start[node + 1] = upward_start[node] + count
    upward = np.empty(upward_start[size], dtype=other.dtype)
    at = 0
    for node in range(size):
        for place in range(start[node], start[node + 1]):
            if _is_higher(start, other[place], node):
                upward[at] = other[place]
                at += 1
    return upward_start, upward


@_kept_jit
def _count(start, upward):
    size = len(start) - 1
    found = np.zeros(size, dtype=np.int64)
    marked_by = np.full(size, -1, dtype=np.int64)
    for low in range(size):
        for place in range(start[low], start[low + 1]):
            marked_by[upward[place]] = low
        for place in range(start[low], start[low + 1]):
            middle = upward[place]
            for further in range(start[middle], start[middle + 1]):
                high = upward[further]
                if marked_by[high] == low:
                    found[low] += 1
                    found[middle] += 1
                    found[high] += 1
    return found
