"""`torch.compile` sees one graph, and gives what eager mode gives."""

import pytest
import torch
from torch import nn
from torch_geometric import EdgeIndex

from argnn.functional import structure
from argnn.kernels import current_mode, fused, use
from argnn.kernels import neighborhood as edges_module
from argnn.kernels.neighborhood import neighborhood
from argnn.nn import ARGNN, ARConv, RicciRegularizer, SmoothnessRegularizer, total_penalty

NUM_NODES = 30


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def raw_edges():
    """Directed, with self-loops and duplicates; the last two nodes are isolated."""
    edges = torch.randint(NUM_NODES - 2, (2, 90), generator=torch.Generator().manual_seed(0))
    loops = torch.arange(4).expand(2, -1)
    return torch.cat([edges, edges[:, :9], loops], 1)


def weights():
    """From 0 to 4 and not symmetric; some edges have no weight."""
    generator = torch.Generator().manual_seed(7)
    drawn = 5 * torch.rand(raw_edges().size(1), generator=generator) - 1
    return drawn.clamp_min(0)


class Penalized(nn.Module):
    """Scores and both penalties, as a training step wants them."""

    def __init__(self, model, reduction="mean"):
        super().__init__()
        self.model = model
        self.penalties = nn.ModuleList(
            [
                RicciRegularizer(0.1, reduction=reduction),
                SmoothnessRegularizer(0.2, reduction=reduction),
            ]
        )

    def forward(self, x, edges, weight=None):
        edges = edges if weight is None else neighborhood(edges, x.size(0), weight)
        scores, metrics = self.model.forward_with_metric(x, edges)
        return scores, total_penalty(self.penalties, metrics, edges)


def penalized(preset, num_layers=2):
    torch.manual_seed(1)
    model = ARGNN(7, 8, 3, num_layers=num_layers, preset=preset, dropout=0.0, input_dropout=0.0)
    with torch.no_grad():  # away from a start at which some gradients are zero
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    return Penalized(model)


def step(function, module, inputs):
    """Outputs, and the gradient of every parameter that gets one."""
    module.zero_grad()
    outputs = function(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    sum(x.square().mean() for x in outputs).backward()
    gradients = {
        name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None
    }
    return [x.detach() for x in outputs], gradients


def assert_compiled_is_eager(module, inputs, backend="aot_eager"):
    tolerance = 100 * torch.finfo(torch.float32).eps
    # In eager mode so small a graph would do without kernels, and round otherwise.
    with use("fused" if current_mode() == "auto" else current_mode()):
        expected, expected_gradients = step(module, module, inputs)
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    actual, gradients = step(compiled, module, inputs)
    assert gradients.keys() == expected_gradients.keys()
    for a, b in zip(actual, expected, strict=True):
        assert (a - b).norm() <= tolerance * b.norm()
    for name, b in expected_gradients.items():
        # Gradients that are zero but for rounding are compared with the size of the others.
        assert (gradients[name] - b).norm() <= tolerance * max(b.norm(), 1e-2), name


@pytest.mark.parametrize(
    ("preset", "prepared"),
    [
        ("default", False),
        ("default", True),
        ("paper", False),
        ("reference", True),
        pytest.param("paper", True, marks=pytest.mark.torture),
        pytest.param("reference", False, marks=pytest.mark.torture),
    ],
)
def test_compiled_preset_is_one_graph_with_equal_results(preset, prepared):
    edges = raw_edges()
    edges = neighborhood(edges, NUM_NODES) if prepared else edges
    x = torch.randn(NUM_NODES, 7, generator=torch.Generator().manual_seed(2))
    assert_compiled_is_eager(penalized(preset), (x, edges))


@pytest.mark.parametrize(
    "prepared",
    [pytest.param(False, marks=pytest.mark.torture), True],
    ids=["edge_weight", "neighborhood"],
)
@pytest.mark.parametrize("preset", ["default", pytest.param("paper", marks=pytest.mark.torture)])
def test_compiled_preset_does_not_forget_weights(preset, prepared):
    edges, module = raw_edges(), penalized(preset)
    x = torch.randn(NUM_NODES, 7, generator=torch.Generator().manual_seed(2))
    inputs = (x, edges, weights())
    inputs = (x, neighborhood(edges, NUM_NODES, weights())) if prepared else inputs
    assert_compiled_is_eager(module, inputs)
    assert not torch.allclose(module(*inputs)[0], module(x, edges)[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("num_layers", [1, pytest.param(2, marks=pytest.mark.torture)])
def test_compiled_model_with_inductor_gives_equal_results(num_layers, monkeypatch):
    """Twenty kernels, each of which takes the compiler of C++ a second."""
    # Else torch starts processes that compile, and each of them imports torch.
    monkeypatch.setattr("torch._inductor.config.compile_threads", 1)
    x = torch.randn(NUM_NODES, 7, generator=torch.Generator().manual_seed(2))
    assert_compiled_is_eager(penalized("default", num_layers), (x, raw_edges()), "inductor")


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch's own access
def test_compiled_dropout_drops_what_eager_mode_drops():
    torch.manual_seed(1)
    model = ARGNN(7, 8, 3, num_layers=2, dropout=0.4)
    inputs = torch.randn(NUM_NODES, 7), raw_edges()
    found = []
    for function in (model, torch.compile(model, backend="aot_eager")):
        torch.manual_seed(2)
        found.append(step(function, model, inputs)[0][0])
    torch.testing.assert_close(*found)


CONVS = {
    "scalar, both directions": {"direction": "both", "normalization": "sym", "eps0": 0.1},
    "scalar, outward": {"direction": "out", "neighbor_norm": "target"},
    "operator, two hops": {"modulation": "operator", "direction": "both", "hops": 2},
    "operator, all inputs": {"modulation": "operator", "metric": "both"},
    "degree start": {"metric_options": {"init": "degree", "spread": 1.0}},
}


@pytest.mark.parametrize("options", CONVS.values(), ids=CONVS.keys())
def test_compiled_conv_is_one_graph_with_equal_results(options):
    torch.manual_seed(3)
    conv = ARConv(5, 6, **({"metric_options": {"spread": 1.0}} | options))
    assert_compiled_is_eager(conv, (torch.randn(NUM_NODES, 5), raw_edges()))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch's own access
@pytest.mark.parametrize("modulation", ["scalar", "operator"])
@pytest.mark.parametrize(
    ("mode", "dtype"),
    [("auto", torch.float64), ("plain", torch.float32), ("fused", torch.float64)],
    ids=str,
)
def test_compiled_conv_works_in_every_mode(mode, dtype, modulation):
    torch.manual_seed(3)
    conv = ARConv(5, 6, modulation=modulation, metric_options={"spread": 1.0}).to(dtype)
    x, edges = torch.randn(NUM_NODES, 5, dtype=dtype), raw_edges()
    compiled = torch.compile(conv, backend="aot_eager")
    with use(mode):
        torch.testing.assert_close(compiled(x, edges), conv(x, edges))


@pytest.mark.parametrize("modulation", ["scalar", "operator"])
def test_compiled_conv_is_near_eager_under_autocast(modulation):
    torch.manual_seed(3)
    conv = ARConv(5, 6, modulation=modulation, metric_options={"spread": 1.0})
    x, edges = torch.randn(NUM_NODES, 5), raw_edges()
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual, expected = compiled(x, edges).float(), conv(x, edges).float()
    assert (actual - expected).norm() < 1e-2 * expected.norm()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_compiled_conv_works_without_gradients(mode):
    conv, x, edges = ARConv(5, 6), torch.randn(NUM_NODES, 5), raw_edges()
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    with mode():
        torch.testing.assert_close(compiled(x, edges), conv(x, edges))


WEIGHTED = {
    name: options
    if name in ("scalar, both directions", "operator, all inputs")
    else pytest.param(options, marks=pytest.mark.torture)
    for name, options in CONVS.items()
}


@pytest.mark.parametrize("options", WEIGHTED.values(), ids=WEIGHTED.keys())
def test_compiled_conv_uses_weights(options):
    torch.manual_seed(3)
    conv = ARConv(5, 6, **({"metric_options": {"spread": 1.0}} | options))
    assert_compiled_is_eager(conv, (torch.randn(NUM_NODES, 5), raw_edges(), weights()))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch's own access
def test_compiled_conv_gives_gradients_of_weights():
    conv, x, edges = ARConv(5, 6, metric="both"), torch.randn(NUM_NODES, 5), raw_edges()
    compiled, found = torch.compile(conv, backend="aot_eager"), []
    for function in (conv, compiled):
        weight = (weights() + 0.1).requires_grad_()
        found += torch.autograd.grad(function(x, edges, weight).square().sum(), weight)
    torch.testing.assert_close(*found)
    assert found[0].abs().max() > 0


def test_compiled_conv_takes_an_edge_index_of_pyg():
    conv, x = ARConv(5, 6), torch.randn(NUM_NODES, 5)
    edges = EdgeIndex(raw_edges(), sparse_size=(NUM_NODES, NUM_NODES))
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, edges), conv(x, raw_edges()))


def test_compiled_model_sees_other_edges_of_the_same_shape():
    module = penalized("default")
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    x = torch.randn(NUM_NODES, 7)
    first = raw_edges()
    for edges in (first, first.flip(0), (first + 1) % NUM_NODES):
        torch.testing.assert_close(compiled(x, edges), module(x, edges))


def test_compiled_model_notices_edges_changed_in_place():
    module = penalized("default")
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    x, edges = torch.randn(NUM_NODES, 7), raw_edges()
    before = compiled(x, edges)[0]
    edges.add_(1).remainder_(NUM_NODES)
    torch.testing.assert_close(compiled(x, edges), module(x, edges.clone()))
    assert not torch.allclose(compiled(x, edges)[0], before)


# -- the operators --------------------------------------------------------------------------------


def tensors():
    """Features, metric, messages and baseline to be differentiated."""
    generator = torch.Generator().manual_seed(4)
    h, g = torch.randn(2, NUM_NODES, 5, generator=generator)
    m = torch.randn(NUM_NODES, 3, generator=generator)
    return [x.requires_grad_() for x in (h, g.exp(), m, torch.tensor([0.3]))]


def propagate_arguments(attention, separate, direction):
    h, g, m, eps0 = tensors()
    rest = (attention, False, "sym", 1e-8)
    return h, g, m if separate else None, eps0, *edges_in(direction), *rest


def edges_in(direction, weighted=False):
    """What an operator takes as its edges."""
    return raw_edges(), direction, weights() if weighted else None


OPERATORS = {
    "degree": (edges_module._degree_op, lambda: (*edges_in("undirected"), NUM_NODES)),
    "weighted degree": (edges_module._degree_op, lambda: (*edges_in("out", True), NUM_NODES)),
    "pairs": (edges_module._pair_total_op, lambda: (*edges_in("undirected"), NUM_NODES)),
    "weight of pairs": (edges_module._pair_total_op, lambda: (*edges_in("in", True), NUM_NODES)),
    "aggregate": (
        fused._aggregate_op,
        lambda: (tensors()[0], *edges_in("in"), "sym", False),
    ),
    "aggregate transposed": (
        fused._aggregate_op,
        lambda: (tensors()[0], *edges_in("out"), "rw", True),
    ),
    "aggregate with weights": (
        fused._aggregate_op,
        lambda: (tensors()[0], *edges_in("undirected", True), "sym", False),
    ),
    "moments": (fused._moments_op, lambda: (tensors()[0], *edges_in("undirected"))),
    "moments with weights": (fused._moments_op, lambda: (tensors()[0], *edges_in("in", True))),
    "ricci": (fused._ricci_op, lambda: (tensors()[1], *edges_in("in"))),
    "ricci with weights": (fused._ricci_op, lambda: (tensors()[1], *edges_in("out", True))),
    "energies": (fused._energies_op, lambda: (tensors()[1], raw_edges(), None)),
    "energies with weights": (fused._energies_op, lambda: (tensors()[1], raw_edges(), weights())),
    "propagate": (fused._propagate_op, lambda: propagate_arguments(True, True, "in")),
    "propagate features": (
        fused._propagate_op,
        lambda: propagate_arguments(True, False, "undirected"),
    ),
    "propagate without attention": (
        fused._propagate_op,
        lambda: propagate_arguments(False, True, "out"),
    ),
    "propagate with weights": (
        fused._propagate_op,
        lambda: (*tensors(), *edges_in("undirected", True), True, True, "rw", 1e-8),
    ),
    "descriptor with weights": (
        structure._descriptor_op,
        lambda: (raw_edges(), weights(), NUM_NODES),
    ),
}
CHECKS = ("test_schema", "test_faketensor", "test_autograd_registration")


@pytest.mark.parametrize(("operator", "arguments"), OPERATORS.values(), ids=OPERATORS.keys())
def test_operator_passes_the_checks_of_torch(operator, arguments):
    torch.library.opcheck(operator, arguments(), test_utils=CHECKS)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_operators_name_the_right_dtypes(dtype):
    h, g, m, eps0 = (x.detach().to(dtype).requires_grad_() for x in tensors())
    eps0 = eps0.detach().to(torch.float64 if dtype == torch.float64 else torch.float32)
    rest = (*edges_in("in"), True, True, "rw", 1e-8)
    torch.library.opcheck(fused._propagate_op, (h, g, m, eps0, *rest), test_utils=CHECKS)
    torch.library.opcheck(fused._energies_op, (g, raw_edges(), None), test_utils=CHECKS)
    torch.library.opcheck(fused._moments_op, (h, *edges_in("in")), test_utils=CHECKS)
