"""The kernels on a real GPU at full size, inside models; skipped where there is none."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from argnn import functional as AF
from argnn import kernels
from argnn import nn as ann
from argnn.functional.neighborhood import neighborhood

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

DEVICE = "cuda"
PRESETS = ("default", "paper", "reference")
PENALTIES = [
    kind(0.1, reduction="mean") for kind in (ann.RicciRegularizer, ann.SmoothnessRegularizer)
]


def random_graph(num_nodes, num_edges, hub=0):
    """Both directions of random pairs; node 0 is joined to ``hub`` others."""
    torch.manual_seed(0)
    pairs = torch.randint(num_nodes, (2, num_edges // 2), device=DEVICE)
    pairs[0, :hub] = 0
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def relative_error(actual, expected):
    return float((actual.double() - expected.double()).norm() / expected.double().norm())


def build(preset, in_channels=64):
    torch.manual_seed(1)
    options = {"dropout": 0.0, "input_dropout": 0.0, "metric_start": 0.5}
    return ann.ARGNN(in_channels, 128, 7, num_layers=2, preset=preset, **options).to(DEVICE)


def loss_of(model, x, edge_index, y):
    scores, metrics = model.forward_with_metric(x, edge_index)
    scores = scores if scores.dtype == torch.float64 else scores.float()
    return cross_entropy(scores, y) + ann.total_penalty(PENALTIES, metrics, edge_index)


def gradients(model, *inputs):
    loss = loss_of(model, *inputs)
    return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)]


@pytest.fixture(scope="module")
def inputs():
    num_nodes = 20_000
    edge_index = random_graph(num_nodes, 400_000, hub=15_000)
    x = torch.randn(num_nodes, 64, device=DEVICE)
    return x, edge_index, torch.randint(7, (num_nodes,), device=DEVICE)


@pytest.mark.parametrize("preset", PRESETS)
def test_gradients_of_a_model_are_as_near_to_float64_as_the_plain_path(inputs, preset):
    model = build(preset)
    with kernels.use("fused"):
        fused = gradients(model, *inputs)
    x, edge_index, y = inputs
    with kernels.use("plain"):
        exact = gradients(model.double(), x.double(), edge_index, y)
    largest = max(float(b.norm()) for b in exact if b is not None)
    for a, b in zip(fused, exact, strict=True):
        if b is not None:  # a unit near its kink is on in one precision and off in the other
            assert float((a.double() - b).norm()) < 1e-3 * max(float(b.norm()), 1e-3 * largest)


@pytest.mark.parametrize("preset", PRESETS)
def test_gradients_with_weights_are_as_near_to_float64_as_the_plain_path(inputs, preset):
    x, edge_index, y = inputs
    torch.manual_seed(2)
    weight = 0.1 + 2 * torch.rand(edge_index.size(1), device=DEVICE)
    edges, model = neighborhood(edge_index, x.size(0), weight), build(preset)
    with kernels.use("fused"):
        fused = gradients(model, x, edges, y)
    with kernels.use("plain"):
        exact = gradients(model.double(), x.double(), edges, y)
    largest = max(float(b.norm()) for b in exact if b is not None)
    for a, b in zip(fused, exact, strict=True):
        if b is not None:
            assert float((a.double() - b).norm()) < 1e-3 * max(float(b.norm()), 1e-3 * largest)


@pytest.mark.parametrize("normalization", ["sum", "sym", "rw"])
def test_weights_on_a_gpu_are_those_on_a_cpu(normalization):
    edge_index = random_graph(5_000, 60_000, hub=3_000)
    weight = 2 * torch.rand(edge_index.size(1), device=DEVICE)
    weight[::7] = 0
    h = torch.randn(5_000, 32, device=DEVICE)
    expected = AF.aggregate(
        h.double().cpu(), neighborhood(edge_index.cpu(), 5_000, weight.cpu()), normalization
    )
    with kernels.use("fused"):
        found = AF.aggregate(h, neighborhood(edge_index, 5_000, weight), normalization)
    assert relative_error(found.cpu(), expected) < 1e-5
    learned = weight.clone().requires_grad_()
    again = AF.aggregate(h, neighborhood(edge_index, 5_000, learned), normalization)
    assert relative_error(again.detach().cpu(), expected) < 1e-5
    again.square().sum().backward()
    assert learned.grad.isfinite().all()


@pytest.mark.parametrize("attention", [True, False])
def test_a_large_sum_equals_the_plain_path_in_float64(attention):
    num_nodes, num_channels = 30_000, 128
    edge_index = random_graph(num_nodes, 600_000, hub=25_000)
    h = torch.randn(num_nodes, num_channels, device=DEVICE)
    g = torch.rand(num_nodes, num_channels, device=DEVICE) + 0.5
    grad = torch.randn_like(h)
    results = []
    for mode, dtype in (("fused", torch.float32), ("plain", torch.float64)):
        leaves = [t.to(dtype).requires_grad_() for t in (h, g)]
        with kernels.use(mode):
            out = AF.propagate(*leaves, leaves[0], edge_index, 0.3, attention=attention)
            results.append([out.detach(), *torch.autograd.grad(out, leaves, grad.to(dtype))])
    assert all(relative_error(a, b) < 1e-5 for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("preset", PRESETS)
def test_two_runs_give_the_same_bits(inputs, preset):
    model = build(preset)
    first, second = gradients(model, *inputs), gradients(model, *inputs)
    for a, b in zip(first, second, strict=True):
        assert (a is None and b is None) or torch.equal(a, b)


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")
@pytest.mark.parametrize("preset", PRESETS)
def test_training_step_in_a_cuda_graph(inputs, preset):
    model = build(preset)
    expected = float(loss_of(model, *inputs).detach())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            loss_of(model, *inputs).backward()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    model.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = loss_of(model, *inputs)
        loss.backward()
    graph.replay()
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-6)
    captured = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad(set_to_none=True)
    loss_of(model, *inputs).backward()
    eager = [p.grad for p in model.parameters() if p.grad is not None]
    largest = max(float(b.norm()) for b in eager)
    for a, b in zip(captured, eager, strict=True):  # libraries choose other algorithms inside
        assert float((a - b).norm()) < 1e-5 * max(float(b.norm()), 1e-3 * largest)


@pytest.mark.parametrize("preset", PRESETS)
def test_what_was_written_past_torch_is_seen(inputs, preset):
    x, edge_index = inputs[0].clone(), inputs[1].clone()
    model = build(preset).eval()
    with torch.no_grad():
        for rows in (x, edge_index[1]):
            before = model(x, edge_index)
            rows.data.copy_(rows.roll(1, 0))
            after = model(x, edge_index)
            assert torch.equal(after, model(x.clone(), edge_index.clone()))
            assert not torch.allclose(after, before)


@pytest.mark.parametrize("preset", PRESETS)
def test_bfloat16_autocast_is_near_float32(inputs, preset):
    model = build(preset)
    with torch.no_grad():
        expected = model(*inputs[:2])
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            actual = model(*inputs[:2])
    assert torch.isfinite(actual).all()
    assert relative_error(actual.float(), expected) < 5e-2


@pytest.mark.filterwarnings("ignore")  # torch's own, about itself and about tf32
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_compiled_model_equals_the_eager_one(inputs, preset):
    model = build(preset)
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        assert relative_error(compiled(*inputs[:2]), model(*inputs[:2])) < 1e-5


def test_offsets_beyond_two_to_the_31():
    num_nodes, num_channels = 17_000_000, 128  # 2.2e9 elements
    x = torch.ones(num_nodes, num_channels, device=DEVICE)
    x[-1] = 3.0
    last = num_nodes - 1
    edges = [[last, 0, last - 1], [0, last, last]]
    out = AF.aggregate(x, torch.tensor(edges, device=DEVICE))
    assert out[0].eq(3).all()
    assert out[last].eq(2).all()
    assert out[1 : last - 1].count_nonzero() == 0
    curvature = AF.discrete_ricci(x, torch.tensor(edges, device=DEVICE))
    assert curvature[last].eq(1).all()
    assert curvature[0].eq(-1).all()


def test_offsets_beyond_two_to_the_31_in_the_gradient_of_moments():
    num_nodes, num_channels = 17_000_000, 128
    last = num_nodes - 1
    x = torch.ones(num_nodes, num_channels, device=DEVICE)
    x[last] = 3.0
    x.requires_grad_()
    edges = torch.tensor([[last, 0, last - 1], [0, last, last]], device=DEVICE)
    mean, dispersion = AF.neighbor_moments(x, edges)
    assert mean[0].eq(3).all()
    assert dispersion[0].eq(4).all()
    assert dispersion[last].eq(4).all()
    ones = torch.ones_like(mean)
    (grad,) = torch.autograd.grad((mean, dispersion), x, (ones, ones))
    assert grad[0].eq(-5.5).all()
    assert grad[last - 1].eq(-1.5).all()
    assert grad[last].eq(9).all()
    assert grad[1 : last - 1].count_nonzero() == 0
