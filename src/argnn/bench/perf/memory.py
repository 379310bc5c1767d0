"""Peak memory of a row beyond what the process held before its model was built."""

import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch

from argnn.bench.perf.config import PerfConfig
from argnn.bench.perf.graphs import workload
from argnn.bench.perf.rows import PerfRow
from argnn.runs.machine import peak_mib, reset_peak, resident_mib

MIB = 2**20
_TINY_NODES, _TINY_EDGES = 64, 256


def cuda_peak_mib(action: Callable[[], object], before: int) -> float:
    """Most memory that torch's allocator held during an action, less ``before`` bytes."""
    torch.cuda.reset_peak_memory_stats()
    action()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / MIB


def free_memory(device: torch.device) -> None:
    """Return unused memory to the system."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()


def host_memory(
    name: str, config: PerfConfig, step_done: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Peak memory of two training steps of a row in this process, which must be a fresh one.

    Libraries are loaded and kernels compiled by a step on a tiny graph before. The first step
    prepares the graph (normalisation, compressed rows); ``extra_peak_mib`` is over both steps.

    Args:
        name: The row.
        config: Sizes and options.
        step_done: Called after each step.
    """
    tiny = replace(config, nodes=_TINY_NODES, edges=_TINY_EDGES, graph="random")
    PerfRow(name, tiny, workload(tiny)).step()
    work = workload(config)
    free_memory(work.x.device)
    with suppress(AttributeError, OSError):  # not glibc
        # Return freed pages: the row would reuse what the graph left, and seem to need less.
        ctypes.CDLL(None).malloc_trim(0)
    can_reset = reset_peak()
    before = resident_mib() if can_reset else peak_mib()
    row = PerfRow(name, config, work)
    steps = []
    for _ in range(2):
        if can_reset:
            reset_peak()
        row.step()
        step_done()
        steps.append(max(0.0, peak_mib() - before))
    return {
        "extra_peak_mib": max(steps),
        # Without a reset the mark of the second step is that of both.
        "first_step_mib": steps[0],
        "step_mib": steps[1] if can_reset else None,
        "before_mib": before,
        "method": "VmHWM, reset before each step" if can_reset else "process peak, never reset",
    }
