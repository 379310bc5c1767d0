"""The memory of steps is kept: asking for the same blocks again faults no pages in."""

import subprocess
import sys

import pytest

# Of the C library itself: how tensors lie in memory beside the interpreter's own objects,
# and with it what is given back, differs from one process to the next.
PROGRAM = """
import contextlib, ctypes, resource, sys
from argnn.runs import machine
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

before_all = machine.resident_mib()
if sys.argv[1] == "little room":
    machine._ROOMY = 0.0
kept = machine.step_memory_kept()
with contextlib.nullcontext(lambda: None) if sys.argv[1] == "usual" else kept as step_done:
    for _ in range(2):
        step()
        step_done()
    before = faults()
    for _ in range(rounds):
        step()
        step_done()
    print(faults() - before)
if sys.argv[1] != "usual":
    held = machine.resident_mib()
    assert held < before_all + blocks * size / 2**20 / 2, (held, before_all)
"""
ROUNDS, BYTES = 10, 80_000_000
PAGES = ROUNDS * BYTES // 4096


def faults(mode, blocks):
    sizes = [str(number) for number in (ROUNDS, blocks, BYTES // blocks)]
    command = [sys.executable, "-c", PROGRAM, mode, *sizes]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
@pytest.mark.parametrize("blocks", [2, 40], ids=["large blocks", "small blocks"])
def test_memory_of_steps_is_not_faulted_in_again(blocks):
    assert faults("kept", blocks) < 0.05 * PAGES
    assert faults("usual", blocks) > 0.5 * PAGES, "the C library keeps it anyhow: shows nothing"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_large_blocks_go_back_where_there_is_little_room():
    assert faults("little room", 2) > 0.5 * PAGES
    assert faults("little room", 40) < 0.05 * PAGES
