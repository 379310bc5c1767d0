"""Freed memory is kept: a second round of the same allocations faults no pages in."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys, torch
from argnn.bench.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()

def step():
    kept = [torch.ones(500_000) for _ in range(20)]

step(); step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode):
    command = [sys.executable, "-c", PROGRAM, mode]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_kept_memory_is_not_faulted_in_again():
    pages = 20 * 500_000 * 4 // 4096
    assert faults("keep") < 0.05 * pages
