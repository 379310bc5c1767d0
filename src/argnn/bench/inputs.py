"""What training may see of a graph: everything but test labels."""

from torch_geometric.data import Data

from argnn.data import split_masks
from argnn.train import NodeClassification


def training_inputs(graph: Data, split: int, device: str) -> tuple[Data, NodeClassification]:
    """Features and edges, and a task with training and validation labels only."""
    train, val, _ = split_masks(graph, split)
    task = NodeClassification(graph.y.to(device), train.to(device), val.to(device))
    return Data(x=graph.x, edge_index=graph.edge_index).to(device), task
