"""Small graphs whose targets follow from features and neighbours, so that they can be learned."""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter, to_undirected


def planted_values(num_nodes: int = 200, seed: int = 0) -> tuple[Data, Tensor]:
    """Features and edges, and two numbers of each node ``[N, 2]``.

    The first follows from the node's own first feature and that of its neighbours, the second
    from its second feature.
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_nodes, 4, generator=generator)
    pairs = torch.randint(num_nodes, (2, 3 * num_nodes), generator=generator)
    edges = to_undirected(pairs, num_nodes=num_nodes)
    around = scatter(x[edges[0], 0], edges[1], dim_size=num_nodes, reduce="mean")
    noise = 0.1 * torch.randn(num_nodes, generator=generator)
    return Data(x=x, edge_index=edges), torch.stack([x[:, 0] + 2 * around + noise, x[:, 1]], dim=1)


def parts(num_nodes: int, seed: int = 1) -> dict[str, Tensor]:
    """Training, validation and test mask: half, a quarter, a quarter."""
    order = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(seed))
    place = torch.empty(num_nodes, dtype=torch.int64)
    place[order] = torch.arange(num_nodes)
    shares = 4 * place // num_nodes
    return {"train_mask": shares < 2, "val_mask": shares == 2, "test_mask": shares == 3}


def rare_classes(num_nodes: int = 400, share: float = 0.1, seed: int = 0) -> Data:
    """Two classes: the nodes with the largest first value are of class 1."""
    graph, values = planted_values(num_nodes, seed)
    graph.y = (values[:, 0] > values[:, 0].quantile(1 - share)).long()
    return Data(**graph.to_dict(), **parts(num_nodes))
