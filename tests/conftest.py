"""Where the benchmark files are, a cache of its own for a test, and small graphs in files."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import packaged
from argnn.folders import cache_root
from forked import forked_workers  # noqa: F401 - a fixture

# A test with an empty cache of its own need not compile the kernels anew.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_root()))
# Without a GPU the Triton kernels run in Triton's interpreter, which has to be said before
# anything imports triton, as torch's compiler does.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

REPOSITORY = Path(__file__).resolve().parents[1]


#: Compiles most of the kernels, which the other process then finds.
FIRST = "test_fused.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first: a process that gets one last would leave the other waiting."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path.name != FIRST, item.path not in slow))


@pytest.fixture(scope="session")
def benchmark_root() -> Path:
    """The raw files of the benchmark graphs; tests that need them are skipped without."""
    chosen = os.environ.get("ARGNN_DATA")
    root = Path(chosen) if chosen else REPOSITORY.parent / "shared" / "data"
    if not (root / "Cora").is_dir():
        pytest.skip(f"the benchmark graphs are not in {root}; set ARGNN_DATA to their folder")
    return root


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache, no data root from outside, and no network."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARGNN_CACHE", str(folder))
    monkeypatch.delenv("ARGNN_DATA", raising=False)
    monkeypatch.setenv("ARGNN_OFFLINE", "1")
    return folder


@pytest.fixture
def copied(benchmark_root, tmp_path):
    """Copy one data set to a root that a test may damage; returns that root."""

    def copy(folder: str) -> Path:
        root = tmp_path / "copy"
        shutil.copytree(benchmark_root / folder, root / folder)
        for path in root.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        return root

    return copy


@pytest.fixture
def small_npz(tmp_path):
    """Write a graph of 90 nodes, 3 classes and 3 splits; changes replace single fields."""

    def write(name: str = "small.npz", **changes: np.ndarray) -> Path:
        rng = np.random.default_rng(0)
        y = np.arange(90) % 3
        x = np.eye(3)[y] + rng.normal(size=(90, 3))
        order = np.stack([rng.permutation(90) for _ in range(3)], axis=1)
        fields = {
            "x": x,
            "edge_index": rng.integers(0, 90, size=(2, 300)),
            "y": y,
            "train_mask": order < 40,
            "val_mask": (order >= 40) & (order < 65),
            "test_mask": order >= 65,
        }
        path = tmp_path / name
        np.savez(path, **{**fields, **changes})
        return path

    return write


@pytest.fixture
def packaged_once(monkeypatch) -> None:
    """The package's own experiments are read once for all tests, not by every table."""
    monkeypatch.setattr("argnn.bench.experiments.files.packaged_experiments", packaged.experiments)
    monkeypatch.setattr("argnn.bench.leaderboard.board.packaged_experiments", packaged.experiments)


@pytest.fixture
def perf_in_process(monkeypatch) -> None:
    """``argnn perf`` without child processes: time is measured here, memory is made up."""
    from argnn.bench.perf.worker import measure

    def child(config, memory_of, environment, tell):
        if memory_of is None:
            return measure(config, tell)
        return {"extra_peak_mib": 5.0 if memory_of == "gat" else 2.0, "method": "made up"}

    monkeypatch.setattr("argnn.bench.perf.run._child", child)
    monkeypatch.setattr("argnn.bench.perf.bandwidth._COPY_BYTES", {"cpu": 2**16})


@pytest.fixture
def one_thread(monkeypatch) -> None:
    """Threads that wait for a busy core make small runs many times slower."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def brief_trial(monkeypatch) -> None:
    """Trials of a few recipes and two epochs."""
    from argnn.runs import trial

    monkeypatch.setattr(trial, "ROUNDS", ((1, 2), (2, 1)))
    monkeypatch.setattr(trial, "_FIRST_ROUND", 1)
    monkeypatch.setattr(trial, "NODES_PER_RECIPE", 1)
    recipes = {recipe.name: recipe for recipe in trial.RECIPES}
    names = ("self path, rw", "self path, sum", "self path, less dropout")
    monkeypatch.setattr(trial, "RECIPES", tuple(recipes[name] for name in names))


@pytest.fixture
def brief_maps(monkeypatch) -> None:
    """Maps and drawings with a tenth of the steps, for tests that do not look at places."""
    tsne, igraph = pytest.importorskip("openTSNE"), pytest.importorskip("igraph")
    usual, draw = tsne.TSNE, igraph.Graph.layout_fruchterman_reingold
    steps = {"early_exaggeration_iter": 15, "n_iter": 50}
    monkeypatch.setattr(tsne, "TSNE", lambda **options: usual(**{**options, **steps}))
    monkeypatch.setattr(
        igraph.Graph,
        "layout_fruchterman_reingold",
        lambda graph, **options: draw(graph, **{**options, "niter": 100}),
    )
