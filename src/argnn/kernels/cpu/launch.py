"""From tensors to arrays, and from a kernel to the threads that run it."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from argnn.kernels.csr import Csr

#: Held from the first to the last of several kernels that share memory kept with the graph.
SCRATCH = threading.Lock()

#: More parts than threads, so that a thread that is held up does not hold up the others.
_PARTS_PER_THREAD = 4
# What numba started with; it cannot take more.
_MAX_THREADS: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
# Numba's simplest thread pool may not be entered by two Python threads at once.
_LAUNCH = threading.Lock()
# Whether this process was forked from one whose threads are GNU OpenMP's, which end such a process.
_is_forked = False


def _note_fork() -> None:
    global _is_forked
    try:
        _is_forked = numba.threading_layer() == "omp"  # type: ignore[attr-defined]
    except ValueError:  # no thread was started yet
        _is_forked = False


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_note_fork)


def launch(kernel: Any, csr: Csr, *arguments: Any) -> None:
    """Run a kernel on the rows of a matrix, in parts of about equal work."""
    count = _set_threads() * _PARTS_PER_THREAD
    _run(kernel, *_structure(csr, count), *arguments)


def _structure(csr: Csr, count: int) -> tuple[Any, ...]:
    """Bounds, row pointers and columns as arrays, made once per matrix and thread count."""
    if count not in csr.arrays:
        csr.arrays[count] = tuple(map(array, (csr.parts(count), csr.rowptr, csr.column)))
    return csr.arrays[count]


def launch_rows(kernel: Any, *tensors: Tensor) -> None:
    """Launch what has no edges: the rows of the first tensor in parts of equal number."""
    count = _set_threads() * _PARTS_PER_THREAD
    bounds = np.linspace(0, tensors[0].size(0), count + 1).astype(np.int64)
    _run(kernel, bounds, *tensors)


def _run(kernel: Any, *arguments: Any) -> None:
    arrays = [array(a) if isinstance(a, Tensor) else a for a in arguments]
    with _LAUNCH, _torch_threads_kept():
        kernel(*arrays)


@contextmanager
def _torch_threads_kept() -> Iterator[None]:
    """Undo what numba does to torch.

    Where the two share one OpenMP library, numba's start sets the number of threads of both,
    and torch's results would depend on whether a kernel had run before.
    """
    threads = torch.get_num_threads()
    yield
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def _set_threads() -> int:
    """Use as many threads as torch does."""
    if _is_forked:
        raise RuntimeError(
            "this process was forked after argnn's kernels had run, and OpenMP's threads do not "
            "survive that: start processes by 'spawn' or 'forkserver' (the argument "
            "multiprocessing_context of torch's DataLoader, which forks otherwise)"
        )
    count = min(torch.get_num_threads(), _MAX_THREADS)
    with _torch_threads_kept():
        numba.set_num_threads(count)
    return count


def scratch(csr: Csr, kind: str, rows: int, width: int, like: Tensor) -> Any:
    """An array for what one pass leaves to the next, kept with the graph for the next step.

    Arrays of different kinds are different, also where they have the same size. New memory is what
    costs here; numpy asks for huge pages, which spare most address look-ups where it is gathered
    from.
    """
    key = ("scratch", kind, width, _wide(like))
    if key not in csr.arrays:
        csr.arrays[key] = np.empty((rows, width), _numpy_type(_wide(like)))
    return csr.arrays[key]


def floats(like: Tensor, *shape: int) -> Tensor:
    """Room for numbers of the dtype that a CPU computes in."""
    return torch.empty(shape, dtype=_wide(like))


def numbers(values: tuple[float, ...], like: Tensor) -> Any:
    """A few numbers as an array of the dtype that a CPU computes in."""
    return np.asarray(values, _numpy_type(_wide(like)))


def scale_or_ones(scale: Tensor | None, csr: Csr, like: Tensor) -> Any:
    """A factor for each row; 1 where None."""
    return _ones(csr.num_rows, _wide(like)) if scale is None else scale


def edge_weight(csr: Csr, like: Tensor) -> Any:
    """The weight of each entry of a matrix; None where all are one."""
    return csr.weight_as(_wide(like))


@lru_cache(maxsize=16)
def _ones(size: int, dtype: torch.dtype) -> Any:
    return np.ones(size, _numpy_type(dtype))


def _wide(x: Tensor) -> torch.dtype:
    """The dtype a CPU computes and stores in: numpy knows no bfloat16."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _numpy_type(dtype: torch.dtype) -> Any:
    return np.float64 if dtype == torch.float64 else np.float32


def array(tensor: Tensor) -> Any:
    """The numbers of a tensor, in the same memory where that is possible."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return tensor.contiguous().numpy()
