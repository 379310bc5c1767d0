"""Nothing remembers features or edges that are no longer there, however they were changed.

What a model, a layer or a function gives after a change must be, to the bit, what it gives for
new tensors with the same contents: the code path is the same.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.functional.edge_values import ordered_edges
from argnn.functional.features import input_linear, sparse_features
from argnn.functional.neighborhood import neighborhood
from argnn.functional.ollivier import node_curvature, ollivier_ricci
from argnn.functional.pagerank import polynomial_aggregate
from argnn.functional.row_normalization import normalized_rows
from argnn.functional.self_loops import closed_aggregate, closed_row_sum
from argnn.functional.two_hop import two_hop
from argnn.kernels.choice import is_fused
from argnn.nn import MODELS, ARConv
from argnn.train import NodeClassification, TrainConfig, fit

# -- two graphs, ways to write, and what is written -----------------------------------------------


@dataclass(frozen=True)
class Size:
    """A graph for the plain path, or one for kernels and sparse features."""

    nodes: int
    columns: int
    edges: int
    density: float


SIZES = {"small": Size(40, 12, 120, 1.0), "large": Size(1200, 100, 4200, 0.1)}
WIDTH = 32


@dataclass
class Example:
    """Features and edges that share their memory with arrays of numpy."""

    x: Tensor
    edge_index: Tensor

    def copy(self) -> "Example":
        """The same contents in new tensors, made by no operation of torch."""
        x, edge_index = (torch.tensor(t.tolist(), dtype=t.dtype) for t in (self.x, self.edge_index))
        return Example(x, edge_index)


def example(size: str, seed: int = 0) -> Example:
    s, draw = SIZES[size], np.random.default_rng(seed)
    x = draw.random((s.nodes, s.columns))
    x[draw.random(x.shape) > s.density] = 0
    edges = draw.integers(0, s.nodes, (2, s.edges))
    return Example(torch.from_numpy(x.astype(np.float32)), torch.from_numpy(edges))


def _through_dlpack(tensor: Tensor, new: Tensor) -> None:
    torch.from_dlpack(torch.utils.dlpack.to_dlpack(tensor)).copy_(new)


def _through_another_tensor(tensor: Tensor, new: Tensor) -> None:
    torch.from_numpy(tensor.numpy()).copy_(new)


def _as_new_data(tensor: Tensor, new: Tensor) -> None:
    tensor.data = new.clone()


WRITES = {
    "numpy": lambda tensor, new: np.copyto(tensor.numpy(), new.numpy()),
    "data": lambda tensor, new: tensor.data.copy_(new),
    "new data": _as_new_data,
    "another tensor": _through_another_tensor,
    "in place": lambda tensor, new: tensor.copy_(new),
    "set": lambda tensor, new: tensor.set_(new.clone()),
    "dlpack": _through_dlpack,
}


def _permuted(tensor: Tensor) -> Tensor:
    """Nodes in another order, or other ends of the edges: the same numbers."""
    order = torch.randperm(max(tensor.shape), generator=torch.Generator().manual_seed(1))
    if tensor.is_floating_point():
        return tensor[order]
    return torch.stack([tensor[0], tensor[1][order]])


def _swapped(tensor: Tensor) -> Tensor:
    """Two numbers exchanged."""
    new = tensor.clone()
    row = new[:, 0] if tensor.is_floating_point() else new[1]
    other = int((row != row[0]).nonzero()[0])
    row[0], row[other] = row[other].clone(), row[0].clone()
    return new


def _other_end(tensor: Tensor) -> Tensor:
    """The very last number is another one."""
    new = tensor.clone()
    new[-1, -1] = 0 if new[-1, -1] else 1
    return new


CHANGES = {"permuted": _permuted, "swapped": _swapped, "last": _other_end}
# Every way to write, and every change by the way that torch knows nothing about.
CASES = [("small", write, "permuted") for write in WRITES]
CASES += [(size, "numpy", change) for size in SIZES for change in CHANGES]
CASES += [("large", write, "permuted") for write in ("data", "set")]
CASES = list(dict.fromkeys(CASES))
every_case = pytest.mark.parametrize(("size", "write", "change"), CASES)
every_size = pytest.mark.parametrize("size", SIZES)
every_part = pytest.mark.parametrize("part", ["x", "edge_index"])


def changed(given: Example, part: str, write: str, change: str) -> None:
    tensor = getattr(given, part)
    new = CHANGES[change](tensor)
    assert not torch.equal(tensor, new)
    WRITES[write](tensor, new)
    assert torch.equal(tensor, new)


def test_the_large_graph_takes_kernels_and_sparse_features_and_the_small_one_does_not():
    for size, expected in (("small", False), ("large", True)):
        given = example(size)
        hidden = torch.zeros(given.x.size(0), WIDTH)
        assert is_fused(hidden, num_edges=given.edge_index.size(1)) == expected
        assert (sparse_features(given.x) is not None) == expected


# -- models and layers ----------------------------------------------------------------------------

MODULES = {name: {} for name in MODELS} | {
    "argnn, paper": {"preset": "paper"},
    "argnn, reference": {"preset": "reference"},
    "gcn, scaled rows": {"normalize_input": True},
    "ARConv": {},
}


def module_of(name: str, columns: int) -> nn.Module:
    torch.manual_seed(0)
    if name == "ARConv":
        return ARConv(columns, WIDTH).eval()
    return MODELS[name.split(",")[0]](columns, WIDTH, 3, **MODULES[name]).eval()


#: In a small and in a large graph.
OF_EACH_MODULE = (("small", "numpy", "permuted"), ("large", "numpy", "last"))


def of_modules():
    """Two cases of each module and part, and the others in turns; all others are torture."""
    for number, (name, part) in enumerate(itertools.product(MODULES, ("x", "edge_index"))):
        for place, case in enumerate(CASES):
            chosen = case in OF_EACH_MODULE or (place - number) % 5 == 0
            yield pytest.param(name, part, *case, marks=() if chosen else pytest.mark.torture)


@torch.no_grad()
@pytest.mark.parametrize(("name", "part", "size", "write", "change"), list(of_modules()))
def test_module_sees_what_was_written(name, size, part, write, change):
    if name == "mlp" and part == "edge_index":
        pytest.skip("a multilayer perceptron reads no edges")
    given = example(size)
    module = module_of(name, SIZES[size].columns)
    before = module(given.x, given.edge_index)
    changed(given, part, write, change)
    after = module(given.x, given.edge_index)
    new = given.copy()
    assert torch.equal(after, module(new.x, new.edge_index))
    assert not torch.equal(after, before)


@pytest.mark.parametrize("name", ["argnn", "gprgnn"])
def test_gradients_see_what_was_written(name):
    given = example("large")
    module = module_of(name, SIZES["large"].columns)

    def gradients(seen: Example) -> list[Tensor]:
        module.zero_grad()
        module(seen.x, seen.edge_index).square().sum().backward()
        return [p.grad.clone() for p in module.parameters() if p.grad is not None]

    gradients(given)
    for part in ("x", "edge_index"):
        changed(given, part, "numpy", "permuted")
    pairs = zip(gradients(given), gradients(given.copy()), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@torch.no_grad()
@pytest.mark.parametrize("name", ["argnn", "gcn", "h2gcn"])
def test_edge_index_of_pyg_is_read_again(name):
    given = example("small")
    wrapped = EdgeIndex(given.edge_index, sparse_size=(40, 40))
    module = module_of(name, SIZES["small"].columns)
    before = module(given.x, wrapped)
    changed(given, "edge_index", "numpy", "permuted")
    after = module(given.x, wrapped)
    assert torch.equal(after, module(given.x, given.copy().edge_index))
    assert not torch.equal(after, before)


@every_part
@pytest.mark.parametrize("name", ["argnn", "gprgnn"])
def test_tensors_made_in_inference_mode_are_read_again(name, part):
    module = module_of(name, SIZES["large"].columns)
    with torch.inference_mode():
        given = example("large").copy()
        assert given.x.is_inference()
        before = module(given.x, given.edge_index)
        changed(given, part, "numpy", "permuted")
        after = module(given.x, given.edge_index)
        new = given.copy()
        assert torch.equal(after, module(new.x, new.edge_index))
        assert not torch.equal(after, before)


@torch.no_grad()
def test_a_change_back_gives_the_first_result_again():
    given = example("large")
    module = module_of("argnn", SIZES["large"].columns)
    first, x = module(given.x, given.edge_index), given.x.clone()
    changed(given, "x", "numpy", "permuted")
    module(given.x, given.edge_index)
    WRITES["numpy"](given.x, x)
    assert torch.equal(module(given.x, given.edge_index), first)


# -- functions ------------------------------------------------------------------------------------


def _coefficients() -> Tensor:
    return torch.tensor([0.5, 0.3, 0.2])


FUNCTIONS = {
    "aggregate": lambda h, e: AF.aggregate(h, e, "sym"),
    "neighbor_mean": lambda h, e: AF.neighbor_mean(h, e),
    "neighbor_dispersion": lambda h, e: AF.neighbor_dispersion(h, e),
    "propagate": lambda h, e: AF.propagate(h, h.exp(), h, e),
    "discrete_ricci": lambda h, e: AF.discrete_ricci(h.exp(), e),
    "ricci_energy": lambda h, e: AF.ricci_energy(h.exp(), e),
    "smoothness_energy": lambda h, e: AF.smoothness_energy(h.exp(), e),
    "nrmd": lambda h, e: AF.nrmd(h.exp(), e),
    "closed_aggregate": lambda h, e: closed_aggregate(h, e),
    "closed_row_sum": lambda h, e: closed_row_sum(e, h.size(0), h.dtype),
    "polynomial_aggregate": lambda h, e: polynomial_aggregate(h, _coefficients(), e),
    "structural_descriptor": lambda h, e: AF.structural_descriptor(e, h.size(0)),
    "edge_homophily": lambda h, e: torch.tensor(AF.edge_homophily(e, (h[:, 0] > 0).long())),
    "ollivier_ricci": lambda h, e: ollivier_ricci(e, h.size(0)).nan_to_num(2.0),
    "node_curvature": lambda h, e: node_curvature(e, h.size(0)),
    "two_hop": lambda h, e: two_hop(e, h.size(0)).degree,
    "ordered_edges": lambda h, e: ordered_edges(e, h.size(0)).source,
    "pairs": lambda h, e: neighborhood(e, h.size(0)).pairs,
    "relation": lambda h, e: neighborhood(e, h.size(0)).relation("undirected").degree,
}


@every_size
@pytest.mark.parametrize("write", ["numpy", "data", "set"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_edges_sees_what_was_written(name, write, size):
    given, function = example(size), FUNCTIONS[name]
    h = torch.randn(given.x.size(0), WIDTH, generator=torch.Generator().manual_seed(2))
    before = function(h, given.edge_index).clone()
    changed(given, "edge_index", write, "permuted")
    after = function(h, given.edge_index)
    assert torch.equal(after, function(h, given.copy().edge_index))
    assert not torch.equal(after, before)


@every_case
@pytest.mark.parametrize("name", ["normalized_rows", "input_linear", "both"])
def test_function_of_features_sees_what_was_written(name, size, write, change):
    given = example(size)
    weight = torch.randn(4, given.x.size(1), generator=torch.Generator().manual_seed(3))
    function = {
        "normalized_rows": normalized_rows,
        "input_linear": lambda x: input_linear(x, weight, None),
        "both": lambda x: input_linear(normalized_rows(x), weight, None),
    }[name]
    before = function(given.x).clone()
    changed(given, "x", write, change)
    after = function(given.x)
    assert torch.equal(after, function(given.copy().x))
    assert not torch.equal(after, before)


def test_features_that_became_sparse_or_dense_are_taken_as_such():
    x = example("large").x
    dense = torch.rand(x.shape, generator=torch.Generator().manual_seed(4))
    sparse = x.clone()
    assert sparse_features(x) is not None
    WRITES["numpy"](x, dense)
    assert sparse_features(x) is None
    WRITES["numpy"](x, sparse)
    assert sparse_features(x) is not None


# -- training -------------------------------------------------------------------------------------


def trained(name: str, graph: Data, y: Tensor) -> list[Tensor]:
    model = module_of(name, graph.x.size(1))
    train = torch.arange(len(y)) % 2 == 0
    fit(model, graph, NodeClassification(y, train, ~train), TrainConfig(epochs=3))
    return list(model.state_dict().values())


@every_part
@every_size
@pytest.mark.parametrize("name", ["argnn", "gcn", "mlp", "gprgnn"])
def test_training_again_sees_what_was_written_in_between(name, size, part):
    if name == "mlp" and part == "edge_index":
        pytest.skip("a multilayer perceptron reads no edges")
    given = example(size)
    y = torch.randint(0, 3, (given.x.size(0),), generator=torch.Generator().manual_seed(5))
    before = trained(name, Data(x=given.x, edge_index=given.edge_index), y)
    changed(given, part, "numpy", "permuted")
    after = trained(name, Data(x=given.x, edge_index=given.edge_index), y)
    new = given.copy()
    expected = trained(name, Data(x=new.x, edge_index=new.edge_index), y)
    assert all(torch.equal(a, b) for a, b in zip(after, expected, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
