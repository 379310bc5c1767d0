"""How many threads a process may use, and using that many."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def core_count() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_for(workers: int) -> int:
    """Threads of each of several workers; never more than ``$OMP_NUM_THREADS`` allows."""
    share = max(1, core_count() // workers)
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(limit)) if limit.isdigit() and int(limit) > 0 else share


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let torch use that many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
