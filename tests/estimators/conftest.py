"""A small graph whose classes can be learned in a few epochs."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

NAMES = np.array(["ant", "bee", "cat"], dtype=object)


@pytest.fixture(autouse=True)
def _one_thread():
    """Threads that wait for a busy core make small runs many times slower."""
    torch.set_num_threads(1)


def planted(num_nodes: int = 90, seed: int = 0) -> Data:
    """Three classes; edges mostly within a class, features around its own corner."""
    rng = np.random.default_rng(seed)
    y = np.arange(num_nodes) % 3
    x = np.eye(3)[y] + 0.7 * rng.normal(size=(num_nodes, 3))
    source = rng.integers(0, num_nodes, size=6 * num_nodes)
    target = rng.integers(0, num_nodes, size=6 * num_nodes)
    kept = (y[source] == y[target]) | (rng.random(len(source)) < 0.1)
    edges = np.stack([source[kept], target[kept]])
    return Data(
        x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(edges), y=torch.from_numpy(y)
    )


@pytest.fixture
def graph() -> Data:
    return planted()
