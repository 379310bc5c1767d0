"""What a process of ``torchrun`` does that is not the first one."""

from contextlib import suppress

from torch_geometric.data import Data

from argnn.errors import DivergenceError
from argnn.runs.machine import using_threads
from argnn.runs.prepare import reopen
from argnn.runs.problems import pose_problem
from argnn.runs.ranks import next_order
from argnn.runs.train_one import train_one
from argnn.settings.run_config import RunConfig
from argnn.train import Snapshot


def follow() -> None:
    """Train what the leader trains until there is nothing left; its graph is loaded here, too."""
    graphs: dict[str, Data] = {}
    while (order := next_order()) is not None:
        config = RunConfig.from_json(order.config, "the order of the first process")
        digest = config.graph["digest"]
        if digest not in graphs:
            graphs = {digest: reopen(config, None, 1).graph}
        problem = pose_problem(
            graphs[digest], order.split, config.device, config.link, in_parts=True
        )
        resume_from = None if order.snapshot is None else Snapshot(*order.snapshot)
        with suppress(DivergenceError), using_threads(config.threads):
            train_one(
                config,
                problem.visible,
                problem.task,
                split=order.split,
                resume_from=resume_from,
            )
