"""Step time and peak memory of ARGNN beside the layers people use today, in one run."""

from argnn.bench.perf.config import ROWS, PerfConfig, chosen_rows
from argnn.bench.perf.run import run_perf

__all__ = ["ROWS", "PerfConfig", "chosen_rows", "run_perf"]
