"""Small subjects of pages, with a class name that must never become HTML."""

import base64

import numpy as np
import torch
from torch_geometric.data import Data

from argnn.analysis.explorer import Subject
from argnn.nn import ARGNN

EVIL = "</script><img src=x onerror=\"console.error('run')\"><b>&amp;"
TYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32}


def unpacked(packed):
    codes = np.frombuffer(base64.b64decode(packed["bytes"]), TYPES[packed["type"]])
    if "shift" in packed:
        return codes.astype(np.int64) + packed["shift"]
    nothing = np.iinfo(codes.dtype).max
    return np.where(codes == nothing, np.nan, packed["low"] + packed["step"] * codes)


def planted(num_nodes=48, pairs=True):
    """A ring of three classes with chords."""
    torch.manual_seed(0)
    y = torch.arange(num_nodes) * 3 // num_nodes
    nodes = torch.arange(num_nodes)
    steps = (1, 5) if pairs else ()
    edges = [torch.stack([nodes, (nodes + step) % num_nodes]) for step in steps]
    edge_index = (
        torch.cat([e for pair in edges for e in (pair, pair.flip(0))], 1) if edges else None
    )
    x = torch.nn.functional.one_hot(y, 3).float() + 0.5 * torch.randn(num_nodes, 3)
    empty = torch.empty(2, 0, dtype=torch.int64)
    graph = Data(x=x, y=y, edge_index=empty if edge_index is None else edge_index)
    graph.node_ids = [f"n{node}" for node in range(num_nodes)]
    return graph


def subject(graph, model=None, names=("red", EVIL, "blue"), **changes):
    model = (model or ARGNN(3, 8, 3, num_layers=2)).eval()
    with torch.no_grad():
        outputs = model(graph.x, graph.edge_index)
    part = torch.arange(graph.num_nodes) % 3
    overview = {
        "notes": ["a note"],
        "facts": [["Data", EVIL]],
        "protocol": "none",
        "interval": "interval",
        "scores": [{"name": "test F1", "here": 0.5, "mean": 0.5, "interval": None, "n": 1}],
        "curves": {"epoch": [1, 2, 3], "loss": [3.0, 2.0, 1.0], "val_score": [None, 0.5, 0.6]},
        "chosen_epoch": 2,
    }
    fields = {
        "title": EVIL,
        "graph": graph,
        "model": model,
        "embedding": outputs.numpy(),
        "probabilities": outputs.softmax(-1).double().numpy(),
        "class_names": names,
        "masks": tuple(part == number for number in range(3)),
        "overview": overview,
    }
    return Subject(**{**fields, **changes})
