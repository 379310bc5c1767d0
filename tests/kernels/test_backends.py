"""The kernels of each device against float64 and autograd.

Without a GPU the Triton kernels run in Triton's interpreter.
"""

import inspect
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
import torch
from torch.nn.functional import softplus

pytest.importorskip("triton")
from triton import language  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

from argnn.kernels import cpu, gpu  # noqa: E402
from argnn.kernels import csr as csr_module  # noqa: E402
from argnn.kernels.edge_weights import EdgeWeights  # noqa: E402

GPU = "cuda" if torch.cuda.is_available() else "cpu"
EPS = 1e-8
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 1e-2}


class Backend(NamedTuple):
    """A device's kernels, and the device its tensors are on."""

    kernels: Any
    device: str


@pytest.fixture(params=["cpu", "gpu"])
def backend(request):
    return Backend(cpu, "cpu") if request.param == "cpu" else Backend(gpu, GPU)


@pytest.fixture(autouse=True, scope="module")
def quick_interpreter():
    """Triton's interpreter searches all names of its language at every call of a function.

    Half of the time of this file was spent there. Here it searches once.
    """
    found: dict[Any, list[str]] = {}

    def patch_builtins(place, builder, scope):
        if place not in found:
            members = inspect.getmembers(place)
            found[place] = [name for name, value in members if language.core.is_builtin(value)]
        for name in found[place]:
            value = getattr(place, name)
            if not language.core.is_builtin(value):
                return  # the kernel that calls this function has replaced all of them
            interpreter._patch_attr(place, name, value, builder, scope)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_patch_builtin", patch_builtins)
        yield


@pytest.fixture(autouse=True)
def short_segments(monkeypatch):
    monkeypatch.setattr(csr_module, "MAX_SEGMENT", 8)


def edges(name):
    """Source, target and number of nodes."""
    torch.manual_seed(1)
    empty = torch.empty(0, dtype=torch.int64)
    if name == "none":
        return empty, empty, 0
    if name == "single":
        return empty, empty, 1
    if name == "whole rows":
        return torch.tensor([0, 1, 1, 2, 4]), torch.tensor([1, 0, 2, 1, 2]), 5
    source, target = torch.randint(9, (2, 40))  # nodes 9 and 10 are isolated, duplicates occur
    target[:20], source[20:32] = 3, 4  # longer than a segment, both ways
    return source, target, 11


@dataclass(frozen=True)
class Case:
    """One propagation; ``C`` is None where the features are the messages."""

    graph: str = "random"
    D: int = 20
    C: int | None = None
    dtype: torch.dtype = torch.float32
    attention: bool = True
    target_norm: bool = False
    left: bool = True
    right: bool = True
    eps0: float = 0.5
    features: str = "random"
    weights: bool = False

    def __str__(self):
        changed = [v for k, v in vars(self).items() if v != getattr(Case, k)]
        return "-".join(str(v) for v in changed) or "default"


CASES = [
    Case(),
    Case(attention=False),
    Case(target_norm=True, eps0=0.0),
    Case(C=7, left=False),
    Case(C=33, right=False, target_norm=True, D=3),
    Case(C=16, attention=False, left=False, right=False, eps0=0.0, D=16),
    Case(D=1),
    Case(D=33),
    Case(D=128),
    Case(D=128, C=160, target_norm=True),
    Case(graph="whole rows", D=16),
    Case(graph="single", C=3),
    Case(graph="none"),
    Case(features="equal", D=3),
    Case(features="equal", eps0=0.0, target_norm=True, D=3),
    Case(features="zero", D=3),
    Case(features="zero", C=5, target_norm=True, D=3),
    Case(features="far metric", D=16),
    Case(dtype=torch.bfloat16, C=3),
    Case(dtype=torch.bfloat16, target_norm=True, D=16),
    Case(dtype=torch.float16, D=33),
    Case(weights=True),
    Case(weights=True, attention=False, left=False, right=False, C=7),
    Case(weights=True, target_norm=True, D=128, C=160),
    Case(weights=True, graph="none"),
    Case(weights=True, dtype=torch.bfloat16, D=16),
]


def build(case, device):
    """Both matrices, the edges in float64's order, and the named inputs as stored."""
    source, target, count = edges(case.graph)
    weight = torch.rand(source.numel(), dtype=torch.float64) + 0.5 if case.weights else None
    weight = None if weight is None else weight.to(device)
    forward, back = csr_module.Csr.pair(source.to(device), target.to(device), count, weight)
    torch.manual_seed(2)
    h, g = torch.randn(count, case.D), torch.randn(count, case.D).exp()
    if case.features == "equal":
        h = torch.ones_like(h)
    if case.features == "zero":
        h[:5] = 0
    if case.features == "far metric":
        g[1::2], g[::2] = 3e20, 1e-12
    m = None if case.C is None else torch.randn(count, case.C)
    scales = torch.rand(2, count) + 0.5
    stored = [None if x is None else x.to(device, case.dtype) for x in (h, g, m)]
    left = scales[0].to(device) if case.left else None
    right = scales[1].to(device) if case.right else None
    return forward, back, *stored, left, right, torch.tensor([case.eps0], device=device)


def ends(forward):
    """Source and target of every entry, in the order of the entries."""
    target = torch.repeat_interleave(forward.rowptr.diff())
    return forward.column.long(), target


def double(*tensors):
    """Leaves in float64, of equal values."""
    return [None if x is None else x.double().detach().requires_grad_() for x in tensors]


def root(x):
    return torch.where(x > 0, torch.where(x > 0, x, 1).sqrt(), 0)


def reference(case, forward, h, g, m, left, right, eps0, whole=True):
    """The contract, word by word, on ``E x D`` tensors.

    Not ``whole``: its gradients lack the lengths under direction and cosine, which take away what
    the products above them add: all of it where there is one channel.
    """
    source, target = ends(forward)
    t = torch.tanh(-g.log())[target]
    delta = h[source] - h[target]
    length = (root(delta.square().sum(-1)) + EPS).square()
    tau = (delta.square() * t).sum(-1) / (length if whole else length.detach())
    weight = eps0 + (1 - eps0) * tau
    if case.attention:
        norm = root((g * h.square()).sum(-1))
        other = norm[source]
        if case.target_norm:
            other = root((g[target] * h[source].square()).sum(-1))
        product, norms = (g[target] * h[target] * h[source]).sum(-1), norm[target] * other + EPS
        weight = weight * torch.sigmoid(product / (norms if whole else norms.detach()))
    weight = weight if left is None else weight * left.double()[target]
    weight = weight if right is None else weight * right.double()[source]
    weight = weight if forward.weight is None else weight * forward.weight
    messages = h if m is None else m
    out = torch.zeros_like(messages)
    return out.index_add(0, target, weight.unsqueeze(-1) * messages[source])


def assert_close(actual, expected, dtype=torch.float32, scale=0.0):
    """Equal but for rounding, which ``scale`` bounds where terms of either sign cancel."""
    assert actual.shape == expected.shape
    assert torch.isfinite(actual).all()
    error = (actual.double() - expected).norm()
    assert error <= TOLERANCE[dtype] * max(float(expected.norm()), scale)


def run(kernels, case, built, save=True, need_h=True):
    forward, back, h, g, m, left, right, eps0 = built
    norm = kernels.metric_norm(h, g) if case.attention else None
    weights = EdgeWeights(norm, left, right, eps0, case.attention, case.target_norm, EPS)
    out, saved = kernels.propagate(forward, h, g, m, weights, save)
    if not save:
        return out, saved
    grad_out = torch.sin(torch.arange(out.numel(), device=out.device)).view_as(out).to(out.dtype)
    grads = kernels.propagate_backward(
        forward, back, h, g, m, weights, saved, grad_out, need_h, True
    )
    written = 2 + case.attention + (case.attention and case.target_norm)
    return out, saved[:, :written], grad_out, *grads


@pytest.mark.parametrize("case", CASES, ids=str)
def test_propagate_matches_float64_and_autograd(backend, case):
    built = build(case, backend.device)
    forward, _, h, g, m, left, right, eps0 = built
    out, saved, grad_out, grad_h, grad_g, grad_m, grad_eps0 = run(backend.kernels, case, built)
    leaves, parts = double(h, g, m, eps0), double(h, g, m, eps0)
    expected = reference(case, forward, *leaves[:3], left, right, leaves[3])
    reference(case, forward, *parts[:3], left, right, parts[3], whole=False).backward(
        grad_out.double()
    )
    assert out.dtype == case.dtype
    assert saved.size(0) == forward.num_entries
    assert_close(out, expected.detach(), case.dtype)
    expected.backward(grad_out.double())
    actual = (grad_h, grad_g, grad_m, grad_eps0.sum().view(1))
    for leaf, part, grad in zip(leaves, parts, actual, strict=True):
        if leaf is not None:
            # That of the baseline is one sum over all nodes.
            terms = grad_eps0 if leaf is leaves[3] else part.grad
            assert_close(grad, leaf.grad, case.dtype, float(terms.double().norm()))


@pytest.mark.parametrize("case", [Case(), Case(D=128, C=3, target_norm=True)], ids=str)
def test_propagate_repeats_its_bits_and_can_save_nothing(backend, case):
    built = build(case, backend.device)
    first, second = run(backend.kernels, case, built), run(backend.kernels, case, built)
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(first, second, strict=True))
    out, saved = run(backend.kernels, case, built, save=False)
    assert saved is None
    assert_close(out, first[0].double(), case.dtype)


@pytest.mark.parametrize(
    "case",
    [
        Case(),
        Case(attention=False),
        Case(target_norm=True),
        Case(C=7),
        Case(weights=True, dtype=torch.bfloat16, D=16),
    ],
    ids=str,
)
def test_without_the_gradient_of_features_the_others_keep_their_bits(backend, case):
    built = build(case, backend.device)
    whole, part = (run(backend.kernels, case, built, need_h=need) for need in (True, False))
    messages = 5
    for place, (a, b) in enumerate(zip(whole, part, strict=True)):
        if place == 3 and case.C is None:
            assert b is None
        elif a is None:
            assert place == messages
            assert b is None
        else:
            assert torch.equal(a, b)


@pytest.mark.parametrize("shape", [(1, 1, 1), (8, 4, 1)])
def test_propagate_with_other_tiles(shape, monkeypatch):
    case = Case(C=7)
    built = build(case, GPU)
    expected = run(gpu, case, built)
    for kernel in ("propagate", "propagate_target", "propagate_source"):
        monkeypatch.setitem(gpu.LAUNCH, (kernel, 32), shape)
    for actual, wanted in zip(run(gpu, case, built), expected, strict=True):
        assert_close(actual, wanted.double())


@pytest.mark.skipif(GPU == "cpu", reason="CUDA graphs need a GPU")
def test_propagate_in_a_cuda_graph():
    case = Case(C=7)
    built = build(case, GPU)
    expected = run(gpu, case, built)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = run(gpu, case, built)
    graph.replay()
    assert all(torch.equal(a, b) for a, b in zip(captured, expected, strict=True))


SUM_CASES = [
    *(Case(D=d) for d in (1, 3, 16, 20, 33, 128)),
    Case(left=False),
    Case(right=False),
    Case(graph="whole rows", D=3, left=False, right=False),
    Case(graph="single"),
    Case(graph="none"),
    Case(dtype=torch.bfloat16),
    Case(dtype=torch.bfloat16, D=128),
    Case(weights=True),
    Case(weights=True, D=128, left=False),
    Case(weights=True, graph="whole rows", D=3, right=False),
    Case(weights=True, graph="single"),
    Case(weights=True, dtype=torch.bfloat16),
]


@pytest.mark.parametrize("case", SUM_CASES, ids=str)
def test_sums_over_neighbours_match_float64_and_autograd(backend, case):
    kernels = backend.kernels
    forward, back, h, g, _, left, right, _ = build(case, backend.device)
    source, target = ends(forward)
    x, y = double(h, g)
    ones = torch.ones(h.size(0), device=backend.device, dtype=torch.float64)
    rows, columns = (ones if s is None else s.double() for s in (left, right))
    zero = torch.zeros_like(x)
    entries = [x.new_ones(m.num_entries) if m.weight is None else m.weight for m in (forward, back)]
    w, w_back = (weight.unsqueeze(-1) for weight in entries)

    summed = rows[:, None] * zero.index_add(0, target, w * columns[source, None] * x[source])
    assert_close(kernels.gather_sum(forward, h, left, right), summed.detach(), case.dtype)
    own = torch.rand_like(ones).float()
    with_own = (own.double()[:, None] * x + summed).detach()
    assert_close(kernels.gather_sum(forward, h, left, right, own), with_own, case.dtype)
    difference = y[target] - y[source]
    curvature = rows[:, None] * zero.index_add(0, target, w * difference)
    energy = torch.zeros_like(ones).index_add(0, target, (w * difference.square()).sum(-1))
    actual = kernels.laplacian(forward, g, left)
    assert_close(actual[0], curvature.detach(), case.dtype)
    assert_close(actual[1][:, 0], curvature.detach().square().sum(-1))
    assert_close(actual[1][:, 1], energy.detach())
    scaled = kernels.laplacian(forward, g, left, (3.0, 0.25))[1]
    factors = torch.tensor([3.0, 0.25], device=backend.device)
    assert_close(scaled, (factors * actual[1]).double())
    assert_close(kernels.metric_norm(h, g), (y * x * x).sum(-1).sqrt().detach())

    degree = torch.zeros_like(ones).index_add(0, target, entries[0]).float()
    inverse = torch.where(degree > 0, 1 / degree, 0.0)
    back_source, back_target = ends(back)
    shared = w_back * inverse[back_source, None] * x[back_source]
    spread = zero.index_add(0, back_target, shared)
    own = 2.0 * 3 + 8 * 0.5 * 0.25 * degree[:, None]
    grad = torch.tensor([2.0, 0.5], device=backend.device)
    actual = kernels.energy_gradient(back, h, degree, inverse, grad, (3.0, 0.25))
    assert_close(actual, (own * x - 2.0 * 3 * spread).detach(), case.dtype)

    share = inverse.double().unsqueeze(-1)
    mean = share * zero.index_add(0, target, w * x[source])
    dispersion = share * zero.index_add(0, target, w * (x[source] - x[target]).square())
    actual = kernels.moments(forward, h, inverse if case.weights else None)
    assert_close(actual[0], mean.detach(), case.dtype)
    assert_close(actual[1], dispersion.detach(), case.dtype)
    torch.autograd.backward([mean, dispersion], [y.detach(), x.detach()])
    grad_h = kernels.moments_backward(back, inverse, h, actual[0], g, h)
    assert_close(grad_h, x.grad, case.dtype)
    assert torch.equal(grad_h, kernels.moments_backward(back, inverse, h, actual[0], g, h))


def test_laplacian_of_a_constant_is_exactly_zero(backend):
    kernels = backend.kernels
    forward, _, h, *_ = build(Case(), backend.device)
    assert not any(part.any() for part in kernels.laplacian(forward, torch.full_like(h, 0.1), None))


@pytest.mark.parametrize("need_eps0", [True, False])
@pytest.mark.parametrize("case", [Case(), Case(D=1), Case(dtype=torch.bfloat16)], ids=str)
def test_modulate_matches_float64_and_autograd(backend, case, need_eps0):
    kernels = backend.kernels
    _, _, h, g, *_, eps0 = build(case, backend.device)
    x, y, base = double(h, g, eps0)
    expected = (base + (1 - base) * torch.tanh(-y.log())) * x
    assert_close(kernels.modulate(h, g, eps0), expected.detach(), case.dtype)
    assert_close(kernels.modulate(h, g, eps0, g), (expected + y).detach(), case.dtype)
    expected.backward(x.detach())
    grad_z, grad_g, grad_eps0 = kernels.modulate_backward(h, g, eps0, h, need_eps0)
    assert_close(grad_z, x.grad, case.dtype)
    assert_close(grad_g, y.grad, case.dtype)
    if need_eps0:
        assert_close(grad_eps0.sum().view(1), base.grad, case.dtype)
    else:
        assert grad_eps0 is None


@pytest.mark.parametrize("drops", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norm_relu_dropout_matches_float64_and_autograd(backend, dtype, drops):
    torch.manual_seed(5)
    if backend.kernels is cpu and not drops:
        pytest.skip("torch's own operations are as fast on a CPU")
    many, width, limit = 150, 24, 100  # more than two blocks of rows on a CPU
    x, grad = (torch.randn(many, width).to(backend.device, dtype) for _ in range(2))
    weight, bias = (torch.randn(width).to(backend.device) for _ in range(2))
    drawn = torch.randint(256, (many, width), dtype=torch.uint8, device=backend.device)
    given = (drawn, limit) if drops else (None, 256)
    out, statistics = backend.kernels.norm_relu_dropout(x, weight, bias, 1e-5, *given)
    wide = double(x, weight, bias)
    normal = torch.nn.functional.layer_norm(wide[0], (width,), *wide[1:], eps=1e-5)
    kept = (drawn < limit) * 256 / limit if drops else 1
    expected = normal.relu() * kept
    assert_close(out, expected.detach(), out.dtype)
    assert torch.equal(out == 0, expected == 0)
    expected.backward(grad.double())
    scale = 256 / limit if drops else 1.0
    found = backend.kernels.norm_relu_dropout_backward(x, weight, statistics, out, grad, scale)
    for one, other in zip(found, wide, strict=True):
        assert_close(one, other.grad, dtype)


def test_norm_relu_dropout_keeps_what_is_not_a_number(backend):
    """So that the training loop notices it."""
    x = torch.randn(3, 8, device=backend.device)
    x[1, 2] = torch.nan
    ones = torch.ones(8, device=backend.device)
    drawn = torch.zeros(3, 8, dtype=torch.uint8, device=backend.device)
    out, _ = backend.kernels.norm_relu_dropout(x, ones, ones, 1e-5, drawn, 128)
    assert out.isnan().any(1).tolist() == [False, True, False]


@pytest.mark.parametrize("clamp", [True, False])
@pytest.mark.parametrize("ceiling", [None, 2.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_softplus_diagonal_matches_float64_and_autograd(dtype, ceiling, clamp):
    raw = torch.cat([torch.linspace(-30, 30, 2999), torch.tensor([-1e4, 1e4])])
    raw = raw.to(GPU, dtype)
    floor, sharpness = 0.1 if clamp else 1e-6, 2.0
    g = gpu.softplus_diagonal(raw, floor, ceiling, sharpness, clamp)
    (x,) = double(raw)
    expected = softplus(x, beta=sharpness)
    expected = expected.clamp(min=floor) if clamp else expected + floor
    expected = expected if ceiling is None else expected.clamp(max=ceiling)
    assert_close(g, expected.detach(), dtype)
    if dtype == torch.float32:  # small values too, not only in the norm
        assert ((g - expected).abs() <= 2e-6 * expected).all()
    expected.sum().backward()
    grad = gpu.softplus_diagonal_backward(g, torch.ones_like(g), floor, ceiling, sharpness, clamp)
    assert_close(grad, x.grad, dtype)


def test_other_storage_is_refused():
    _, _, h, g, *_ = build(replace(Case(), D=3), GPU)
    with pytest.raises(ValueError, match="float64"):
        gpu.metric_norm(h.double(), g.double())
