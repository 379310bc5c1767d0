"""A small planted graph, its tasks, and a task whose validation results are scripted."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn import data
from argnn.nn import ARGNN, AbstractNodeModel
from argnn.train import NodeClassification, Validation

NUM_CLASSES = 2


def two_blocks(size: int = 30, seed: int = 0) -> Data:
    """Two blocks with dense inner and thin outer edges; features show the block through noise."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(2 * size) // size
    same = y.unsqueeze(0) == y.unsqueeze(1)
    chance = torch.where(same, 0.2, 0.02)
    joined = torch.rand(2 * size, 2 * size, generator=generator) < chance
    low, high = joined.triu(1).nonzero(as_tuple=True)
    edge_index = torch.cat([torch.stack([low, high]), torch.stack([high, low])], dim=1)
    x = torch.randn(2 * size, 6, generator=generator)
    x[:, 0] += 2.0 * y - 1
    part = torch.randperm(2 * size, generator=generator) % 5
    return Data(
        x=x,
        edge_index=edge_index,
        y=y,
        train_mask=part < 2,
        val_mask=(part == 2) | (part == 3),
        test_mask=part == 4,
    )


def task_of(graph: Data) -> NodeClassification:
    return NodeClassification(graph.y, graph.train_mask, graph.val_mask)


def model_of(graph: Data, seed: int = 0, **options) -> ARGNN:
    torch.manual_seed(seed)
    return ARGNN(
        graph.x.size(1), 8, NUM_CLASSES, **{"num_layers": 2, "metric_hidden": 8, **options}
    )


class ScriptedTask:
    """The loss of a real task, and one validation result after another from a list."""

    def __init__(self, graph: Data, results: list[tuple[float, float]]) -> None:
        self.real = task_of(graph)
        self.results = iter(results)

    def loss(self, model: AbstractNodeModel, outputs: Tensor) -> Tensor:
        return self.real.loss(model, outputs)

    def validate(self, model: AbstractNodeModel, outputs: Tensor) -> Validation:
        return Validation(*next(self.results))

    def homophily(self, edge_index: Tensor) -> float:
        return self.real.homophily(edge_index)


def weights(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def assert_same_weights(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    """Bit for bit."""
    assert first.keys() == second.keys()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


def planted_geometry(copies: int = 6, seed: int = 0) -> Data:
    """Trees, cliques, rings and grids of 16 nodes; the label is the kind, features are noise."""
    motifs = (data.tree(16), data.clique(16), data.cycle(16), data.grid(4, 4))
    pairs = torch.cat(
        [
            motif + 16 * (kind * copies + copy)
            for kind, motif in enumerate(motifs)
            for copy in range(copies)
        ],
        dim=1,
    )
    y = torch.arange(len(motifs)).repeat_interleave(16 * copies)
    generator = torch.Generator().manual_seed(seed)
    part = torch.randperm(y.numel(), generator=generator) % 5
    return Data(
        x=torch.randn(y.numel(), 8, generator=generator),
        edge_index=torch.cat([pairs, pairs.flip(0)], dim=1),
        y=y,
        train_mask=part < 2,
        val_mask=(part == 2) | (part == 3),
        test_mask=part == 4,
    )
