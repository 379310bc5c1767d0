"""Run jobs on a Ray cluster, or on a Ray that is started on this machine."""

import logging
import math
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

import argnn
from argnn.errors import ConfigError, RunError, package_needed
from argnn.folders import scratch_folder
from argnn.runs.machine import core_count, handlers_kept
from argnn.runs.pool import Pool, PoolJob, TellEpoch, result_of
from argnn.train.devices import on_cuda

#: What a job on Ray must find in its environment as a local one does.
_PASSED_ON = ("OMP_WAIT_POLICY", "ARGNN_CACHE")


class RayPool(Pool):
    """Tasks of the Ray session of this process; each graph is stored there once for all.

    A task asks for as many CPUs as its configuration has threads, and computes the same bits as
    a local worker with so many.
    """

    def __init__(
        self, graphs: Mapping[str, Data], workers: int, attempts: int, tell: TellEpoch
    ) -> None:
        import ray

        super().__init__(workers, attempts, tell)
        self.stored = {digest: ray.put(graph) for digest, graph in graphs.items()}
        self.task = ray.remote(_result_on_ray)

    def _start(self, job: PoolJob) -> Any:
        config = job.config
        if ":" in config.device:
            raise ConfigError("on Ray each job takes a GPU of its own: --device cuda")
        task = self.task.options(
            num_cpus=config.threads,
            num_gpus=int(on_cuda(config.device)),
            max_retries=0,  # the pool begins it again
        )
        self.tell(job, 0, math.nan, math.nan)  # it has begun
        return task.remote(job, self.stored[config.graph["digest"]])

    def _wait(self) -> tuple[Any, Any]:
        import ray
        from ray.exceptions import RayError

        [task], _ = ray.wait(list(self.running))
        try:
            return task, ray.get(task)
        except RayError as error:
            why = str(error).strip().partition("\n")[0]
            return task, RunError(f"Ray lost the job ({why})")

    def close(self) -> None:
        """Cancel the tasks that are running."""
        import ray

        for task in self.running:
            ray.cancel(task, force=True)


def _result_on_ray(job: PoolJob, graph: Data) -> Any:
    return result_of(job, {job.config.graph["digest"]: graph}, lambda record: None)


@contextmanager
def ray_session(workers: int | None, address: str | None) -> Iterator[int]:
    """Connect to a cluster or start one here; gives its number of CPUs.

    A session that this process has already is used, and stays.
    """
    with package_needed("--executor ray needs Ray: pip install 'argnn[bench]'"):
        import ray
    with ExitStack() as stack:
        if not ray.is_initialized():
            # Paths of sockets must be short.
            place = Path("/tmp" if Path("/tmp").is_dir() else tempfile.gettempdir())
            folder = stack.enter_context(scratch_folder(place, "argnn-ray-"))
            _start_ray(workers, address, str(folder))
            stack.callback(ray.shutdown)
        yield max(1, int(ray.cluster_resources().get("CPU", 1)))


def _start_ray(workers: int | None, address: str | None, folder: str) -> None:
    import ray

    where: dict[str, Any] = {"address": address}
    if address is None:
        cpus = max(core_count(), workers or 1)
        where = {"num_cpus": cpus, "include_dashboard": False, "_temp_dir": folder}
        # Without these, Ray reports its use, and writes to the user's home.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if "RAY_AUTH_TOKEN_PATH" not in os.environ:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    # The same argnn as here, where the workers can see its folder.
    package = str(Path(argnn.__file__).resolve().parents[1])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment = {"env_vars": {"PYTHONPATH": path, **passed}}
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        with handlers_kept():
            ray.init(**where, **quiet, runtime_env=environment)
    except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise RunError(f"cannot reach a Ray cluster at {address}: {why}") from error
