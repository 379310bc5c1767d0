"""What the measuring processes do: all rows of one graph, taking turns."""

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from argnn.bench.perf.bandwidth import copy_bandwidth, edge_parts
from argnn.bench.perf.config import ROWS, PerfConfig
from argnn.bench.perf.graphs import Workload, workload
from argnn.bench.perf.memory import cuda_peak_mib, free_memory
from argnn.bench.perf.rows import PerfRow
from argnn.bench.perf.timing import repeats_for, seconds_of, spread, turns
from argnn.runs.machine import device_name, using_threads

# Of libraries below torch's own allocator, and of the host's.
_NO_MEMORY = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "can't allocate memory")

#: Is told how many of how many turns are over, and what comes next.
Tell = Callable[[int, int, str], None]


@dataclass
class _Measured:
    """What is known of a row so far; ``row`` is None once it has failed."""

    name: str
    row: PerfRow | None = None
    repeats: int = 0
    first_step_seconds: float | None = None
    num_parameters: int | None = None
    memory: dict[str, Any] | None = None
    error: dict[str, Any] = field(default_factory=dict)
    steps: list[float] = field(default_factory=list)
    forwards: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        spec = ROWS[self.name]
        whole = not self.error and self.steps
        return {
            "name": self.name,
            "label": spec.label,
            "preset": spec.preset,
            "kernels": spec.mode,
            "parameters": self.num_parameters,
            "first_step_seconds": self.first_step_seconds,
            "forward": spread(self.forwards) if whole else None,
            "step": spread(self.steps) if whole else None,
            "memory": self.memory,
            **self.error,
        }


def measure(config: PerfConfig, tell: Tell) -> dict[str, Any]:
    """Measure all rows on one graph.

    A row that runs out of memory, or fails otherwise, is a row with its error.

    Args:
        config: One size, that is, without ``scaling``.
        tell: Is told how far it is.
    """
    device = torch.device(config.device)
    load_before = os.getloadavg()
    with using_threads(config.threads):
        _load_libraries(device)
        tell(0, 0, "copy bandwidth")
        copy = copy_bandwidth(device)
        tell(0, 0, "graph")
        work = workload(config).to(device)
        rows = _rows(config, work, tell)
        parts = _edge_part(config, work, copy["gb_per_s"], tell)
    return {
        "graph": _facts(config, work),
        "device": device_name(config.device),
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "default"),
        "load_average": [load_before[0], os.getloadavg()[0]],
        "copy": copy,
        "edge_part": parts,
        "rows": rows,
    }


def _load_libraries(device: torch.device) -> None:
    """One step of nothing in particular: the first row shall not pay for what all of them use."""
    lin = nn.Linear(8, 8).to(device)
    optimizer = torch.optim.Adam(lin.parameters())
    lin(torch.ones(8, 8, device=device)).sum().backward()
    optimizer.step()


def _rows(config: PerfConfig, work: Workload, tell: Tell) -> list[dict[str, Any]]:
    measured = []
    for place, name in enumerate(config.models):
        tell(place, len(config.models), f"warm-up: {ROWS[name].label}")
        measured.append(_warmed_up(name, config, work))
    order = turns([state.repeats for state in measured])
    for done, place in enumerate(order):
        state = measured[place]
        tell(done, len(order), ROWS[state.name].label)
        if state.row is not None:
            _guarded(state, _visit, work.x.device)
    for state in measured:
        state.row = None
    free_memory(work.x.device)
    return [state.to_json() for state in measured]


def _warmed_up(name: str, config: PerfConfig, work: Workload) -> _Measured:
    state = _Measured(name)
    device = work.x.device

    def warm_up(state: _Measured, device: torch.device) -> None:
        # An edge_index of its own: whatever is prepared for a graph is prepared per row.
        own = Workload(work.x, work.edge_index.clone(), work.y)
        before = _allocated(device)
        row = state.row = PerfRow(name, config, own)
        state.num_parameters = row.num_parameters
        peaks, seconds = _two_steps(row, before)
        forward = [seconds_of(row.forward, device) for _ in range(2)][-1]
        state.first_step_seconds = seconds[0]
        if config.memory and peaks:
            state.memory = {
                "extra_peak_mib": peaks[1],
                "first_step_mib": peaks[0],
                "step_mib": peaks[1],
                "before_mib": before / 2**20,
                "method": "torch.cuda.max_memory_allocated of the second step",
            }
        state.repeats = repeats_for(seconds[1], seconds[1] + forward, config)

    _guarded(state, warm_up, device)
    return state


def _allocated(device: torch.device) -> int:
    """Bytes that are in use on a GPU; memory of the host is measured in processes of its own."""
    if device.type == "cpu":
        return 0
    free_memory(device)
    return torch.cuda.memory_allocated(device)


def _two_steps(row: PerfRow, before: int) -> tuple[list[float], list[float]]:
    """Peak memory on the GPU, and seconds, of the first two steps."""
    device, peaks, seconds = row.work.x.device, [], []

    def timed() -> None:
        seconds.append(seconds_of(row.step, device))

    for _ in range(2):
        if device.type == "cuda":
            peaks.append(cuda_peak_mib(timed, before))
        else:
            timed()
    return peaks, seconds


def _visit(state: _Measured, device: torch.device) -> None:
    assert state.row is not None
    state.steps.append(seconds_of(state.row.step, device))
    state.forwards.append(seconds_of(state.row.forward, device))


def _guarded(
    state: _Measured,
    action: Callable[[_Measured, torch.device], None],
    device: torch.device,
) -> None:
    """Do something with a row; a failure is noted, and the row dropped with all it holds."""
    try:
        action(state, device)
    except Exception as error:
        state.error = error_fields(error)
        state.row, state.repeats, state.memory = None, 0, None
        error.__traceback__ = None  # its frames hold the tensors of the failed step
    if state.row is None:
        free_memory(device)


def error_fields(error: Exception) -> dict[str, Any]:
    """What a row says about its failure; running out of memory is a result, not a bug."""
    text = " ".join(str(error).split())
    if is_out_of_memory(error):
        return {"error": f"out of memory: {text}", "out_of_memory": True}
    lines = traceback.format_exception(error)
    return {
        "error": f"{type(error).__name__}: {text}",
        "out_of_memory": False,
        "traceback": "".join(lines),
    }


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that there is no memory left, on the GPU or on the host."""
    if isinstance(error, torch.cuda.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _NO_MEMORY)


def _edge_part(
    config: PerfConfig, work: Workload, copy_gb_per_s: float, tell: Tell
) -> dict[str, Any] | None:
    """The fused edge part, where a fused row was asked for."""
    if not any(ROWS[name].mode == "fused" for name in config.models):
        return None
    try:
        parts: Sequence[dict[str, Any]] = edge_parts(
            config, work, copy_gb_per_s, lambda name: tell(0, 0, name)
        )
    except Exception as error:
        return {"parts": [], **error_fields(error)}
    return {"parts": parts}


def _facts(config: PerfConfig, work: Workload) -> dict[str, Any]:
    return {
        "kind": config.graph,
        "nodes": config.nodes,
        "edges": work.edge_index.size(1),
        "max_degree": int(torch.bincount(work.edge_index[1]).max()),
    }
