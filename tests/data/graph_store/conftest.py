"""Graphs of every kind in files, and what two graphs have in common."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

#: Text ids, words, missing numbers, labels, weights, dates; duplicates, self-loops, a lone node.
NODES = """name,height,color,label,split
ann,1.5,red,x,train
bob,2.5,blue,y,train
cid,3.5,red,x,val
dee,4,green,y,test
"eve, the last",,blue,x,
"""
EDGES = """source,target,strength,day
ann,bob,0.5,2024-01-03
bob,ann,0.25,2024-01-02
bob,bob,1,2024-01-01
cid,dee,2,2024-01-05
cid,dee,4,2024-01-04
dee,ann,0,2024-01-06
ann,cid,0.1,2024-01-07
"""


@pytest.fixture
def table_folder(tmp_path) -> Path:
    """A folder with both tables."""
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "nodes.csv").write_text(NODES)
    (folder / "edges.csv").write_text(EDGES)
    return folder


@pytest.fixture
def edge_list(tmp_path) -> Path:
    """Edges of integer ids that do not begin at 0, with comments, duplicates and self-loops."""
    rng = np.random.default_rng(1)
    ids = rng.choice(10**6, size=70, replace=False)
    pairs = ids[rng.integers(0, 70, size=(400, 2))]
    path = tmp_path / "edges.txt"
    path.write_text("# from to\n" + "".join(f"{a}\t{b}\n" for a, b in pairs))
    return path


@pytest.fixture
def same_graph() -> Callable[[Data, Data], None]:
    """Assert that all fields of two graphs are the same, bit for bit."""

    def check(first: Data, second: Data) -> None:
        one, two = first.to_dict(), second.to_dict()
        assert set(one) == set(two)
        for name, value in one.items():
            if isinstance(value, torch.Tensor):
                assert value.dtype == two[name].dtype, name
                assert value.numpy().tobytes() == two[name].numpy().tobytes(), name
            else:
                assert value == two[name], name

    return check
