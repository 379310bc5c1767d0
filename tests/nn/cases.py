"""Small graphs, and slow dense forms of what a layer computes, for the tests of `nn`."""

import random

import torch
from hypothesis import settings
from torch import Tensor, nn

import reference

EdgeList = list[tuple[int, int]]

#: For property tests of many cases.
FEW = settings(max_examples=4)

DIRECTIONS = ("undirected", "out", "in", "both")
NORMALIZATIONS = ("sum", "sym", "rw")


def edge_tensor(edges: EdgeList) -> Tensor:
    return torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t().contiguous()


def directed_edges() -> EdgeList:
    """Nine nodes: duplicates, self-loops, one-way edges; node 8 is isolated."""
    draw = random.Random(5)
    edges = [(draw.randrange(8), draw.randrange(8)) for _ in range(20)]
    return [*edges, edges[0], edges[3], (2, 2), (8, 8), (0, 1), (1, 0)]


NUM_NODES = 9
EDGES = directed_edges()

#: Name, number of nodes, edges, and what is done to random features.
DEGENERATE = {
    "isolated nodes": (5, [(0, 1), (1, 0)], lambda x: x),
    "only self-loops": (3, [(0, 0), (1, 1)], lambda x: x),
    "no edges": (4, [], lambda x: x),
    "one node": (1, [], lambda x: x),
    "equal features": (4, [(0, 1), (1, 0), (1, 2), (2, 3)], lambda x: x[:1].repeat(len(x), 1)),
    "zero features": (4, [(0, 1), (1, 0), (1, 2), (2, 3)], torch.zeros_like),
}


def features(num_nodes: int, channels: int, seed: int = 0, dtype=torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_nodes, channels, generator=generator, dtype=torch.float64).to(dtype)


def metrics(num_nodes: int, channels: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 0.2 + 2 * torch.rand(num_nodes, channels, generator=generator, dtype=torch.float64)


def perturbed(module: nn.Module, seed: int = 0, scale: float = 0.3) -> nn.Module:
    """The module with every parameter moved: nothing is left at a special starting value."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(scale * noise.to(parameter))
    return module


def renamed(x: Tensor, edge_index: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features and shuffled edges under new node names, and the order the rows were put in."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(x.size(0), generator=generator)
    shuffle = torch.randperm(edge_index.size(1), generator=generator)
    return x[order], torch.argsort(order)[edge_index][:, shuffle], order


# -- slow forms -----------------------------------------------------------------------------------


def relation(edges: EdgeList, direction: str) -> EdgeList:
    """The edges messages travel along, as (source, target), without self-loops."""
    proper = [(j, i) for j, i in edges if j != i]
    if direction == "in":
        return proper
    if direction == "out":
        return [(i, j) for j, i in proper]
    return [pair for a, b in reference.unordered_pairs(edges) for pair in ((a, b), (b, a))]


def relations(edges: EdgeList, direction: str) -> list[EdgeList]:
    names = ("in", "out") if direction == "both" else (direction,)
    return [relation(edges, name) for name in names]


def dense_adjacency(edges: EdgeList, num_nodes: int, normalization: str) -> Tensor:
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    weights = reference.edge_weight(edges, num_nodes, normalization)
    for (j, i), weight in zip(edges, weights, strict=True):
        matrix[i, j] += weight
    return matrix


def slow_conv(conv, x: Tensor, edges: EdgeList, g: Tensor) -> Tensor:
    """What an ARConv should give under a metric: loops for scalar, dense matrices for operator."""
    lins = list(conv.lins_neighbor)
    out = torch.zeros(x.size(0), conv.out_channels, dtype=torch.float64)
    if conv.modulation == "scalar":
        for lin, along in zip(lins, relations(edges, conv.direction), strict=True):
            sent = (x @ lin.weight.t()).tolist()
            out += torch.tensor(
                reference.propagate(
                    x.tolist(),
                    g.tolist(),
                    sent,
                    along,
                    conv.eps0,
                    attention=conv.attention,
                    normalization=conv.normalization,
                    neighbor_norm=conv.neighbor_norm,
                ),
                dtype=torch.float64,
            )
    else:
        for along in relations(edges, conv.direction):
            matrix = dense_adjacency(along, x.size(0), conv.normalization)
            for hop in range(1, conv.hops + 1):
                out += torch.linalg.matrix_power(matrix, hop) @ x @ lins.pop(0).weight.t()
        assert not lins
        t = (1 - g**2) / (1 + g**2)
        out = (conv.eps0 + (1 - conv.eps0) * t) * out
    if conv.lin_self is not None:
        out = out + x @ conv.lin_self.weight.t()
    return out if conv.bias is None else out + conv.bias


def slow_metric_inputs(net, h: Tensor, edges: EdgeList) -> Tensor:
    """What a metric network sees, concatenated."""
    both = relation(edges, "undirected")
    rows = h.tolist()
    mean = torch.tensor(reference.neighbor_mean(rows, both), dtype=torch.float64)
    if net.closed:
        degree = [len(near) for near in reference.neighbors(both, len(rows))]
        count = torch.tensor(degree, dtype=torch.float64).unsqueeze(-1)
        mean = (mean * count + h) / (count + 1)
    structure = torch.tensor(reference.structural_descriptor(edges, len(rows)), dtype=torch.float64)
    if net.inputs == "structure":
        return structure
    if net.inputs == "features":
        return torch.cat([h, mean], dim=-1)
    spread = torch.tensor(reference.neighbor_dispersion(rows, both), dtype=torch.float64)
    return torch.cat([h, mean, spread, structure], dim=-1)


def slow_metric(net, h: Tensor, edges: EdgeList) -> Tensor:
    """A metric network without a degree start, on its concatenated inputs."""
    raw = slow_metric_inputs(net, h, edges)
    for depth, lin in enumerate(net.lins):
        if depth:
            norm = net.norms[depth - 1]
            if isinstance(norm, nn.LayerNorm):
                centred = raw - raw.mean(-1, keepdim=True)
                scale = (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt()
                raw = centred / scale * norm.weight + norm.bias
            raw = raw.clamp_min(0)
        raw = raw @ lin.weight.t() + lin.bias
    beta = net.sharpness
    g = torch.log1p(torch.exp(beta * raw)) / beta
    g = g.clamp(min=net.floor) if net.clamp else g + net.floor
    return g if net.ceiling is None else g.clamp_max(net.ceiling)
