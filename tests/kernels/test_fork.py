"""A child that was forked after a kernel had run: OpenMP would kill it without a word of ours."""

import os

import pytest

from forked import code, run_forked

PREAMBLE = """
import multiprocessing
import numba
import torch
from argnn import functional as AF, kernels
from argnn.kernels import cpu  # from here on it knows whether it was forked

numba.core.config.reload_config()  # the threading layer of the environment

edges = torch.tensor([[0, 1, 2], [1, 2, 0]])

def kernel():
    with kernels.use("fused"):
        AF.aggregate(torch.ones(3, 4), edges)

def child():
    try:
        kernel()
    except RuntimeError as error:
        print("refused:", error, flush=True)
    else:
        print("done", flush=True)

def run(method):
    process = multiprocessing.get_context(method).Process(target=child)
    process.start()
    process.join()
    print(process.exitcode, flush=True)
"""


def output_of(text, cwd, layer="default"):
    """What a process prints that has imported argnn, but has not run a kernel."""
    done, out, errors = run_forked(code, PREAMBLE + text, cwd=cwd, NUMBA_THREADING_LAYER=layer)
    assert done == 0, errors
    return out.split("\n")


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_a_forked_child_is_told_to_be_spawned(tmp_path):
    text = "kernel(); print(numba.threading_layer()); run('fork')"
    layer, *rest = output_of(text, tmp_path)
    if layer != "omp":
        pytest.skip(f"threads are those of {layer}, which survive a fork")
    assert rest[0].startswith("refused: this process was forked after argnn's kernels had run")
    assert "'spawn' or 'forkserver'" in rest[0]
    assert "DataLoader" in rest[0]
    assert rest[1] == "0", "the child ended by itself"


def test_a_child_that_was_forked_before_any_kernel_works(tmp_path):
    text = "run('fork'); kernel(); print('and here')"
    assert output_of(text, tmp_path) == ["done", "0", "and here", ""]


def test_threads_that_survive_a_fork_are_not_refused(tmp_path):
    text = "kernel(); print(numba.threading_layer()); run('fork')"
    assert output_of(text, tmp_path, "workqueue") == ["workqueue", "done", "0", ""]
