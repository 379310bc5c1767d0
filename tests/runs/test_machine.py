"""Freed memory is kept: asking for the same blocks again faults no pages in."""

import subprocess
import sys

import pytest

# Of the C library itself: how tensors lie in memory beside the interpreter's own objects,
# and with it what is given back, differs from one process to the next.
PROGRAM = """
import ctypes, resource, sys
from argnn.runs.machine import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
rounds, blocks, size = map(int, sys.argv[2:])
libc = ctypes.CDLL(None)
libc.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: one fault of a huge page stands for many
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

def step():
    pointers = [libc.malloc(size) for _ in range(blocks)]
    for pointer in pointers:
        libc.memset(pointer, 1, size)
    for pointer in pointers:
        libc.free(pointer)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

step(); step()
before = faults()
for _ in range(rounds):
    step()
print(faults() - before)
"""
ROUNDS, BLOCKS, BLOCK_BYTES = 10, 20, 2_000_000
PAGES = ROUNDS * BLOCKS * BLOCK_BYTES // 4096


def faults(mode):
    sizes = [str(number) for number in (ROUNDS, BLOCKS, BLOCK_BYTES)]
    command = [sys.executable, "-c", PROGRAM, mode, *sizes]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_kept_memory_is_not_faulted_in_again():
    assert faults("keep") < 0.05 * PAGES
    assert faults("default") > 0.5 * PAGES, "the C library keeps it anyhow: this shows nothing"
