"""How threads wait for each other: asleep, unless the user has set another policy."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

#: As the user had set it: ``argnn perf`` measures with the user's own policy.
USER_WAIT_POLICY = os.environ.get("OMP_WAIT_POLICY")
_TORCH_WAS_FIRST = "torch" in sys.modules
#: So many numbers are added by several threads.
_SHARED_WORK = 2**20


def let_waiting_threads_sleep() -> None:
    """Let threads that wait for others sleep, not spin, unless the user has set a policy.

    Beside another busy process two spinning threads are twenty times slower than one thread alone.
    OpenMP reads the policy when torch is imported, so this comes before; else there is
    :func:`short_waits`.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def let_threads_wait_as_usual() -> None:
    """Take that back, for a measurement; torch must not have been imported."""
    if USER_WAIT_POLICY is None:
        os.environ.pop("OMP_WAIT_POLICY", None)


@contextmanager
def short_waits() -> Iterator[None]:
    """Cut the spinning short where torch was imported before this package, without a policy.

    GNU's OpenMP does so while it has more threads than there are cores. A thread that has once
    shared work keeps the threads that helped, asleep; one more such thread is therefore enough.
    Neither the results nor the number of threads that compute them change.
    """
    import torch

    if not _TORCH_WAS_FIRST or USER_WAIT_POLICY is not None or torch.get_num_threads() == 1:
        yield
        return
    helped, over = Event(), Event()

    def hold() -> None:
        try:
            torch.ones(_SHARED_WORK).sum()
        finally:
            helped.set()
        over.wait()

    holder = Thread(target=hold, name="argnn short waits", daemon=True)
    try:
        holder.start()
        helped.wait()
        yield
    finally:
        over.set()
        if holder.is_alive():
            holder.join()
