"""Time measurements, and the order in which rows are measured."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from argnn.bench.perf.config import PerfConfig

#: A step of so many seconds or more is slow. A slow row is measured at least twice, others thrice.
SLOW_SECONDS = 5.0
_LEAST_SLOW, _LEAST = 2, 3


def seconds_of(action: Callable[[], object], device: torch.device) -> float:
    """How long an action takes, everything it started on the device included."""
    if device.type == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
        start.record()
        action()
        end.record()
        torch.cuda.synchronize(device)
        return float(start.elapsed_time(end)) / 1000
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def spread(seconds: Sequence[float]) -> dict[str, Any]:
    """Median, 10 % and 90 % quantile in milliseconds, and what they come from.

    Example:
        >>> found = spread([0.001, 0.002, 0.006])
        >>> round(found["median_ms"], 3), round(found["q10_ms"], 3), found["repeats"]
        (2.0, 1.2, 3)
    """
    samples = [1000 * value for value in seconds]
    low, median, high = (float(value) for value in np.quantile(samples, [0.1, 0.5, 0.9]))
    return {
        "median_ms": median,
        "q10_ms": low,
        "q90_ms": high,
        "repeats": len(samples),
        "samples_ms": samples,
    }


def repeats_for(step_seconds: float, visit_seconds: float, config: PerfConfig) -> int:
    """How often a row is measured.

    Args:
        step_seconds: What its step takes.
        visit_seconds: What a step and a forward take.
        config: Budget and most repeats.
    """
    least = _LEAST_SLOW if step_seconds >= SLOW_SECONDS else _LEAST
    affordable = int(config.budget / max(visit_seconds, 1e-9))
    return min(config.repeats, max(least, affordable))


def turns(repeats: Sequence[int]) -> list[int]:
    """The order of measurements: round after round, the rows in their order.

    A row with fewer repeats is left out of some rounds, evenly: whatever else the machine does
    meanwhile slows all rows alike.

    Args:
        repeats: How often each row is measured.

    Example:
        >>> turns([4, 2, 4])
        [0, 2, 0, 1, 2, 0, 2, 0, 1, 2]
    """
    rounds = max(repeats, default=0)
    return [
        row
        for now in range(rounds)
        for row, count in enumerate(repeats)
        if (now + 1) * count // rounds > now * count // rounds
    ]
