"""What the measuring processes do: all rows of one graph, taking turns."""

import os
import traceback
from collections.abc import Callable, Sequence
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
from argnn.telling import Tell
from argnn.train.devices import current_device
from argnn.wording import one_line

# Of libraries below torch's own allocator, and of the host's.
_NO_MEMORY = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "can't allocate memory")


class _RowMeasurement:
    """A row while it is measured; ``row`` is None before, and once it has failed."""

    def __init__(self, name: str, config: PerfConfig, work: Workload) -> None:
        self.name, self.config, self.work, self.device = name, config, work, work.x.device
        self.row: PerfRow | None = None
        self.repeats = 0
        self.first_step_seconds: float | None = None
        self.num_parameters: int | None = None
        self.memory: dict[str, Any] | None = None
        self.error: dict[str, Any] = {}
        self.steps: list[float] = []
        self.forwards: list[float] = []
        self.replays: list[float] = []
        self.record_error: dict[str, Any] | None = None

    def guarded(self, action: Callable[[], None]) -> None:
        """Do something with the row; a failure is noted, and the row dropped with all it holds."""
        try:
            action()
        except Exception as error:
            self.error = error_fields(error)
            self.row, self.repeats, self.memory = None, 0, None
            error.__traceback__ = None  # its frames hold the tensors of the failed step
        if self.row is None:
            free_memory(self.device)

    def warm_up(self) -> None:
        """Build the model, and take two steps, the first of which compiles and prepares."""
        work, on_gpu, before = self.work, self.device.type == "cuda", 0
        # An edge_index of its own: whatever is prepared for a graph is prepared per row.
        own = Workload(work.x, work.edge_index.clone(), work.y)
        if on_gpu:
            free_memory(self.device)
            before = torch.cuda.memory_allocated(self.device)
        row = self.row = PerfRow(self.name, self.config, own)
        self.num_parameters = row.num_parameters
        seconds: list[float] = []

        def step() -> None:
            seconds.append(seconds_of(row.step, self.device))

        if on_gpu:  # memory of the host is measured in processes of its own
            peaks = [cuda_peak_mib(step, before) for _ in range(2)]
            self.memory = _device_memory(peaks, before) if self.config.memory else None
        else:
            step()
            step()
        forward = [seconds_of(row.forward, self.device) for _ in range(2)][-1]
        self.first_step_seconds = seconds[0]
        self._record(row)
        visit = seconds[1] * (1 if row.recorded is None else 2) + forward
        self.repeats = repeats_for(seconds[1], visit, self.config)

    def _record(self, row: PerfRow) -> None:
        """Record a step, if that is asked for; without it, the row is measured all the same."""
        if not (self.config.record and row.spec.recordable):
            return
        try:
            row.record()
        except Exception as error:
            self.record_error = error_fields(error)
            error.__traceback__ = None
            free_memory(self.device)

    def visit(self) -> None:
        """Time one step, one forward, and one recorded step if there is one."""
        assert self.row is not None
        self.steps.append(seconds_of(self.row.step, self.device))
        self.forwards.append(seconds_of(self.row.forward, self.device))
        if self.row.recorded is not None:
            self.replays.append(seconds_of(self.row.recorded, self.device))

    def to_json(self) -> dict[str, Any]:
        """What is known of the row."""
        spec, whole = ROWS[self.name], not self.error and self.steps
        return {
            "name": self.name,
            "label": spec.label,
            "preset": spec.preset,
            "kernels": spec.mode,
            "parameters": self.num_parameters,
            "first_step_seconds": self.first_step_seconds,
            "forward": spread(self.forwards) if whole else None,
            "step": spread(self.steps) if whole else None,
            "recorded": spread(self.replays) if whole and self.replays else self.record_error,
            "memory": self.memory,
            **self.error,
        }


def _device_memory(peaks: Sequence[float], before: int) -> dict[str, Any]:
    return {
        "extra_peak_mib": peaks[1],
        "first_step_mib": peaks[0],
        "step_mib": peaks[1],
        "before_mib": before / 2**20,
        "method": "torch.cuda.max_memory_allocated of the second step",
    }


def measure(
    config: PerfConfig, tell: Tell, step_done: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Measure all rows on one graph.

    A row that runs out of memory, or fails otherwise, is a row with its error.

    Args:
        config: One size, that is, without ``scaling``.
        tell: Is told how far it is.
        step_done: Called once all rows have taken their first steps.
    """
    device = torch.device(config.device)
    load_before = os.getloadavg()
    with using_threads(config.threads), current_device(config.device):
        _load_libraries(device)
        tell(0, 0, "copy bandwidth")
        copy = copy_bandwidth(device)
        tell(0, 0, "graph")
        work = workload(config)
        rows = _rows(config, work, tell, step_done)
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
    """Train a small layer once, so that the first row does not pay for loading the libraries."""
    lin = nn.Linear(8, 8).to(device)
    optimizer = torch.optim.Adam(lin.parameters())
    lin(torch.ones(8, 8, device=device)).sum().backward()
    optimizer.step()


def _rows(
    config: PerfConfig, work: Workload, tell: Tell, step_done: Callable[[], None]
) -> list[dict[str, Any]]:
    measured = [_RowMeasurement(name, config, work) for name in config.models]
    for place, state in enumerate(measured):
        tell(place, len(measured), f"warm-up: {ROWS[state.name].label}")
        state.guarded(state.warm_up)
    step_done()
    order = turns([state.repeats for state in measured])
    for done, place in enumerate(order):
        state = measured[place]
        tell(done, len(order), ROWS[state.name].label)
        if state.row is not None:
            state.guarded(state.visit)
    for state in measured:
        state.row = None
    free_memory(work.x.device)
    return [state.to_json() for state in measured]


def error_fields(error: Exception) -> dict[str, Any]:
    """What a row says about its failure; running out of memory is a result, not a bug."""
    text = one_line(error)
    if is_out_of_memory(error):
        return {"error": f"out of memory: {text}", "out_of_memory": True}
    lines = "".join(traceback.format_exception(error))
    return {"error": f"{type(error).__name__}: {text}", "out_of_memory": False, "traceback": lines}


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
        return {"parts": edge_parts(config, work, copy_gb_per_s, lambda name: tell(0, 0, name))}
    except Exception as error:
        return {"parts": [], **error_fields(error)}


def _facts(config: PerfConfig, work: Workload) -> dict[str, Any]:
    return {
        "kind": config.graph,
        "nodes": config.nodes,
        "edges": work.edge_index.size(1),
        "max_degree": int(torch.bincount(work.edge_index[1]).max()),
    }
