"""Start the measuring processes, and put together what they found."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from argnn.bench.perf.config import ROWS, YARDSTICKS, PerfConfig
from argnn.errors import RunError
from argnn.runs.machine import git_state, versions
from argnn.telling import Tell, be_silent

_KERNEL_PACKAGES = ("numba", "llvmlite", "triton")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def run_perf(
    config: PerfConfig, tell: Tell = be_silent, wait_policy: str | None = None
) -> dict[str, Any]:
    """Measure, and return the whole result as plain JSON values.

    Time is measured in one child process per graph, in which all rows take turns; peak memory
    of the host in one child per row.

    Args:
        config: What to measure.
        tell: Is told how far it is.
        wait_policy: ``OMP_WAIT_POLICY`` as the user had set it. The package sets a policy
            of its own that suits training beside other processes, under which PyG's layers are
            up to twice as slow on small graphs: it must not decide this comparison.
    """
    started = datetime.now().astimezone()
    environment = child_environment(os.environ, config.threads, wait_policy)
    measurements = [_measurement(size, environment, tell) for size in config.sizes()]
    finished = datetime.now().astimezone()
    return {
        "config": config.to_json(),
        "seed": config.seed,
        "device": measurements[0]["device"],
        "cpu": cpu_model(),
        "threads": config.threads,
        "versions": {**versions(), **_kernel_versions()},
        **git_state(),
        "started": started.isoformat(timespec="seconds"),
        "finished": finished.isoformat(timespec="seconds"),
        "seconds": (finished - started).total_seconds(),
        "measurements": measurements,
    }


def child_environment(
    environment: Mapping[str, str], threads: int, wait_policy: str | None
) -> dict[str, str]:
    """The environment of a measuring process: OpenMP's own policy, and so many threads."""
    child = {name: value for name, value in environment.items() if name != "OMP_WAIT_POLICY"}
    if wait_policy is not None:
        child["OMP_WAIT_POLICY"] = wait_policy
    return {**child, **dict.fromkeys(_THREAD_VARIABLES, str(threads))}


def _measurement(config: PerfConfig, environment: Mapping[str, str], tell: Tell) -> dict[str, Any]:
    """All that is known about one graph."""
    found = _child(config, None, environment, tell)
    rows = found["rows"]
    if config.memory and config.device == "cpu":
        for place, row in enumerate(rows):
            tell(place, len(rows), f"memory: {row['label']}")
            if "error" not in row:
                row["memory"] = _host_memory(config, row["name"], environment)
    add_ratios(rows, found["graph"]["edges"])
    return found


def _host_memory(config: PerfConfig, name: str, environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        return _child(config, name, environment, be_silent)
    except RunError as error:  # killed, most likely for want of memory
        return {"extra_peak_mib": None, "error": str(error)}


def add_ratios(rows: list[dict[str, Any]], edges: int) -> None:
    """Compare every row with both GCNs, and with the plain kernels of the same formulation."""
    by_name = {row["name"]: row for row in rows}
    gcn, best = (by_name.get(name) for name in YARDSTICKS)
    for row in rows:
        plain = by_name.get(f"{row['name']}-plain")
        step = _median(row, "step")
        row["ns_per_edge"] = None if step is None else 1e6 * step / edges
        row["step_vs_gcn"] = _ratio(step, _median(gcn, "step"))
        row["step_vs_best_gcn"] = _ratio(step, _median(best, "step"))
        replay = _median(row, "recorded")
        row["recorded_vs_gcn"] = _ratio(replay, _median(gcn, "recorded"))
        row["recorded_vs_best_gcn"] = _ratio(replay, _median(best, "recorded"))
        row["forward_vs_gcn"] = _ratio(_median(row, "forward"), _median(gcn, "forward"))
        row["memory_vs_gcn"] = _ratio(_memory(row), _memory(gcn))
        row["speedup_over_plain"] = _ratio(_median(plain, "step"), step)


def _median(row: Mapping[str, Any] | None, part: str) -> float | None:
    return row[part].get("median_ms") if row and row[part] else None


def _memory(row: Mapping[str, Any] | None) -> float | None:
    return row["memory"]["extra_peak_mib"] if row and row["memory"] else None


def _ratio(value: float | None, unit: float | None) -> float | None:
    return None if value is None or not unit else value / unit


def _child(
    config: PerfConfig, memory_of: str | None, environment: Mapping[str, str], tell: Tell
) -> dict[str, Any]:
    """Run a measuring process to its end, and return its result."""
    spec = json.dumps({"config": config.to_json(), "memory_of": memory_of})
    command = [sys.executable, "-m", "argnn.bench.perf", "--spec", spec]
    result: dict[str, Any] | None = None
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as complaints,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=complaints, text=True, env=dict(environment)
        ) as child,
    ):
        assert child.stdout is not None
        try:
            for line in child.stdout:
                message = json.loads(line)
                if "progress" in message:
                    tell(*message["progress"])
                else:
                    result = message["result"]
        except BaseException:
            child.kill()
            raise
        code = child.wait()
        complaints.seek(0)
        text = complaints.read()
    if code == 0 and result is not None:
        return result
    what = "all rows" if memory_of is None else ROWS[memory_of].label
    if code < 0:
        raise RunError(
            f"the process that measured {what} was killed by signal {-code}; "
            "signal 9 mostly means that the machine ran out of memory"
        )
    raise RuntimeError(f"the process that measured {what} failed:\n{text}")


def _kernel_versions() -> dict[str, str]:
    """Of the packages that make the fused kernels, where they are installed."""
    found = {}
    for name in _KERNEL_PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def cpu_model() -> str | None:
    """Name of the processor, where Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else None
