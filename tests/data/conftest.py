"""Where the benchmark files are, and a cache of its own for every test."""

import os
import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def benchmark_root() -> Path:
    """The raw files of the benchmark graphs; tests that need them are skipped without."""
    chosen = os.environ.get("ARGNN_DATA")
    root = Path(chosen) if chosen else REPOSITORY.parent / "shared" / "data"
    if not (root / "Cora").is_dir():
        pytest.skip(f"the benchmark graphs are not in {root}; set ARGNN_DATA to their folder")
    return root


@pytest.fixture(autouse=True)
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
