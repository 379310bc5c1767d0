"""The processes that ``torchrun`` starts: the first one runs the command, the others follow it.

All of them train together, each on its part of the graph. Everything else, such as files, trials
and what is printed, belongs to the first one, the leader. It tells the others what to train.
"""

import atexit
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple, NoReturn

from argnn.errors import DivergenceError, RunError

logger = logging.getLogger(__name__)

#: For the leader, which reads the graph first, or for a machine that has vanished; torchrun itself
#: notices a process that has died.
_LONGEST_WAIT = timedelta(hours=2)


class TrainOrder(NamedTuple):
    """What the leader tells the others to train.

    The configuration is plain JSON; the snapshot has tensors and values of a training to continue.
    """

    config: dict[str, Any]
    split: int
    snapshot: tuple[dict[str, Any], dict[str, Any]] | None


def rank_count() -> int:
    """Number of processes that train together; 1 without ``torchrun``."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "TORCHELASTIC_RUN_ID" in os.environ else 1


def was_restarted() -> bool:
    """Whether ``torchrun`` has started this command again after a process had died."""
    return rank_count() > 1 and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


def is_leader() -> bool:
    """Whether this process runs the command."""
    return rank_count() == 1 or os.environ["RANK"] == "0"


@contextmanager
def meeting() -> Iterator[None]:
    """Meet the other processes, and at the end tell them to leave."""
    if rank_count() == 1:
        yield
        return
    import torch
    from torch import distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    # Where another process has died, this one waits for it inside of torch and could not answer.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    store, rank, count = next(rendezvous("env://"))
    # After a restart the store still has the addresses of processes that are dead.
    attempt = PrefixStore(f"attempt {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
    backend = "nccl" if on_gpu else "gloo"
    dist.init_process_group(
        backend, store=attempt, rank=rank, world_size=count, timeout=_LONGEST_WAIT
    )
    yield
    if is_leader():
        _share(None)
    dist.destroy_process_group()


def leave_process(code: int) -> NoReturn:
    """End this process. One of ``torchrun`` ends without taking Python apart.

    Once a process aborted at its end, and a finished run counted as failed. The likely cause: a
    thread of gloo gives back a tensor of an exchange while Python is taken apart
    (pytorch/pytorch#179291). Without that step this cannot happen.
    """
    if rank_count() > 1:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)


def next_order() -> TrainOrder | None:
    """What the leader wants to be trained next; None where nothing is left to do."""
    return _share(None)


def _share(order: TrainOrder | None) -> TrainOrder | None:
    """Send the order of the leader to all processes."""
    from torch import distributed as dist

    box = [order]
    dist.broadcast_object_list(box, src=0)
    return box[0]


@contextmanager
def leading(order: TrainOrder | None) -> Iterator[None]:
    """Let all processes train what this one is about to train.

    After an error that the others do not have they would wait for ever. So it ends the command, and
    ``torchrun`` ends the others.
    """
    if rank_count() == 1 or not is_leader():
        yield
        return
    if order is None:
        raise RunError("several processes train by argnn train, argnn bench and argnn tune only")
    _share(order)
    try:
        yield
    except (DivergenceError, KeyboardInterrupt):  # all see the same losses; Ctrl-C reaches all
        raise
    except BaseException as error:
        logger.error("the training of all processes ends: %s", error)
        raise SystemExit(1) from error
