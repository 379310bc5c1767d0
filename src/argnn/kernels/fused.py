"""The kernels with their gradients, in eager mode and as operators that a compiler can see.

In eager mode a sum is a :class:`torch.autograd.Function` that holds the prepared neighbourhood
itself. ``torch.compile`` traces tensors only: there the same sums are custom operators that
take ``edge_index`` and the weights and find what was prepared for them. Both call the same two
functions, one for the values and one for the gradients.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from argnn.kernels.choice import backend
from argnn.kernels.edge_weights import EdgeWeights, num_saved
from argnn.kernels.neighborhood import Neighborhood, TracedNeighborhood, related

Prepared = Neighborhood | TracedNeighborhood


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype of sums and of everything that is one number per node or edge."""
    return torch.float64 if dtype == torch.float64 else torch.float32


class _OnceDifferentiable(torch.autograd.Function):
    """A gradient that has none itself, and says so instead of leaving terms out."""

    @staticmethod
    def forward(ctx, compute, *inputs):  # type: ignore[no-untyped-def]
        return compute()

    @staticmethod
    def backward(ctx, *_):  # type: ignore[no-untyped-def]
        raise RuntimeError(
            "trying to differentiate a fused kernel twice; it is only once differentiable: "
            "argnn.kernels.use('plain') is differentiable any number of times"
        )


def _like_first(x, *_):  # type: ignore[no-untyped-def]
    """What a compiler has to know of a result with the type and shape of the first argument."""
    return x.new_empty(x.shape)


def _only_once(compute: Callable[[], Any], *inputs: Tensor | None) -> Any:
    """What ``compute`` returns, as a function of ``inputs`` that cannot be differentiated."""
    return _OnceDifferentiable.apply(compute, *inputs) if torch.is_grad_enabled() else compute()


# --- constant weights ---------------------------------------------------------------------


def aggregate(x: Tensor, hood: Prepared, normalization: str, transposed: bool = False) -> Tensor:
    """Weighted sum over neighbours; ``transposed`` sends along reversed edges instead.

    The normalisations ``"closed-sym"`` and ``"closed-rw"`` count the node itself, too.
    """
    if isinstance(hood, TracedNeighborhood):
        return _aggregate_op(x, *hood.edges, normalization, transposed)
    return _Aggregate.apply(x, hood, normalization, transposed)


def _aggregate(x: Tensor, hood: Neighborhood, normalization: str, transposed: bool) -> Tensor:
    left, right = hood.scales(normalization, _wide(x.dtype))
    if transposed:
        left, right = right, left
    matrix = hood.transpose if transposed else hood.csr
    own = hood.own_scale(normalization, _wide(x.dtype))
    return backend(x).gather_sum(matrix, x.contiguous(), left, right, own)


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, hood, normalization, transposed):  # type: ignore[no-untyped-def]
        ctx.rest = hood, normalization, transposed
        return _aggregate(x, hood, normalization, transposed)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        hood, normalization, transposed = ctx.rest
        return _Aggregate.apply(grad, hood, normalization, not transposed), None, None, None


@torch.library.custom_op("argnn::aggregate", mutates_args=())
def _aggregate_op(
    x: Tensor,
    edge_index: Tensor,
    direction: str,
    edge_weight: Tensor | None,
    normalization: str,
    transposed: bool,
) -> Tensor:
    hood = related(edge_index, direction, edge_weight, x.size(0))
    return _aggregate(x.detach(), hood, normalization, transposed)


_aggregate_op.register_fake(_like_first)


def _keep_aggregate(ctx, inputs, output):  # type: ignore[no-untyped-def]
    _, edge_index, ctx.direction, edge_weight, ctx.normalization, ctx.transposed = inputs
    ctx.save_for_backward(edge_index, edge_weight)


def _aggregate_gradient(ctx, grad):  # type: ignore[no-untyped-def]
    edge_index, edge_weight = ctx.saved_tensors
    edges = edge_index, ctx.direction, edge_weight
    back = _aggregate_op(grad, *edges, ctx.normalization, not ctx.transposed)
    return back, None, None, None, None, None


_aggregate_op.register_autograd(_aggregate_gradient, setup_context=_keep_aggregate)


# --- mean and dispersion of the neighbours ------------------------------------------------


def moments(h: Tensor, hood: Prepared) -> tuple[Tensor, Tensor]:
    """Mean of the neighbours and their mean squared difference to the node, ``[N, D]`` each."""
    if isinstance(hood, TracedNeighborhood):
        return _moments_op(h, *hood.edges)
    return _Moments.apply(h, hood)


def _moments(h: Tensor, hood: Neighborhood) -> tuple[Tensor, Tensor]:
    # Without weights the kernel counts by itself.
    share = None if hood.weight is None else hood.inverse_degree(_wide(h.dtype))
    return backend(h).moments(hood.csr, h.contiguous(), share)


def _moments_backward(
    h: Tensor, mean: Tensor, grad_mean: Tensor, grad_dispersion: Tensor, hood: Neighborhood
) -> Tensor:
    return backend(h).moments_backward(
        hood.transpose,
        hood.inverse_degree(_wide(h.dtype)),
        h.contiguous(),
        mean,
        grad_mean.contiguous(),
        grad_dispersion.contiguous(),
    )


class _Moments(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, hood):  # type: ignore[no-untyped-def]
        mean, dispersion = _moments(h, hood)
        ctx.hood = hood
        ctx.save_for_backward(h, mean)
        return mean, dispersion

    @staticmethod
    def backward(ctx, grad_mean, grad_dispersion):  # type: ignore[no-untyped-def]
        h, mean = ctx.saved_tensors
        grad = _only_once(
            lambda: _moments_backward(h, mean, grad_mean, grad_dispersion, ctx.hood),
            *(h, grad_mean, grad_dispersion),
        )
        return grad, None


@torch.library.custom_op("argnn::moments", mutates_args=())
def _moments_op(
    h: Tensor, edge_index: Tensor, direction: str, edge_weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    return _moments(h.detach(), related(edge_index, direction, edge_weight, h.size(0)))


@_moments_op.register_fake
def _(h, edge_index, direction, edge_weight):  # type: ignore[no-untyped-def]
    return h.new_empty(h.shape), h.new_empty(h.shape)


@torch.library.custom_op("argnn::moments_backward", mutates_args=())
def _moments_backward_op(
    h: Tensor,
    mean: Tensor,
    grad_mean: Tensor,
    grad_dispersion: Tensor,
    edge_index: Tensor,
    direction: str,
    edge_weight: Tensor | None,
) -> Tensor:
    hood = related(edge_index, direction, edge_weight, h.size(0))
    return _moments_backward(h, mean, grad_mean, grad_dispersion, hood)


_moments_backward_op.register_fake(_like_first)


def _keep_moments(ctx, inputs, output):  # type: ignore[no-untyped-def]
    h, edge_index, ctx.direction, edge_weight = inputs
    ctx.save_for_backward(h, output[0], edge_index, edge_weight)


def _moments_gradient(ctx, grad_mean, grad_dispersion):  # type: ignore[no-untyped-def]
    h, mean, edge_index, edge_weight = ctx.saved_tensors
    edges = edge_index, ctx.direction, edge_weight
    return _moments_backward_op(h, mean, grad_mean, grad_dispersion, *edges), None, None, None


_moments_op.register_autograd(_moments_gradient, setup_context=_keep_moments)


# --- curvature and energies of the metric -------------------------------------------------


def discrete_ricci(g: Tensor, hood: Prepared) -> Tensor:
    """Half the mean difference to the neighbours, ``[N, D]``."""
    if isinstance(hood, TracedNeighborhood):
        return _ricci_op(g, *hood.edges)
    return _Ricci.apply(g, hood)


def _ricci(
    g: Tensor, hood: Neighborhood, factors: tuple[float, float] = (1.0, 1.0)
) -> tuple[Tensor, Tensor]:
    """Curvature, and two energies of each node, see the kernel."""
    dtype = _wide(g.dtype)
    half = hood.kept(("half inverse degree", dtype), lambda: 0.5 * hood.inverse_degree(dtype))
    return backend(g).laplacian(hood.csr, g.contiguous(), half, factors)


def _ricci_backward(grad: Tensor, hood: Neighborhood) -> Tensor:
    dtype = _wide(grad.dtype)
    share = hood.inverse_degree(dtype)
    minus_half = hood.kept(("minus half", dtype), lambda: torch.full_like(share, -0.5))
    own = hood.kept(("half where neighbors", dtype), lambda: 0.5 * (share > 0).to(dtype))
    return backend(grad).gather_sum(hood.transpose, grad.contiguous(), minus_half, share, own)


class _Ricci(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, hood):  # type: ignore[no-untyped-def]
        ctx.hood = hood
        return _ricci(g, hood)[0]

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        return _only_once(lambda: _ricci_backward(grad, ctx.hood), grad), None


@torch.library.custom_op("argnn::discrete_ricci", mutates_args=())
def _ricci_op(g: Tensor, edge_index: Tensor, direction: str, edge_weight: Tensor | None) -> Tensor:
    return _ricci(g.detach(), related(edge_index, direction, edge_weight, g.size(0)))[0]


_ricci_op.register_fake(_like_first)


@torch.library.custom_op("argnn::discrete_ricci_backward", mutates_args=())
def _ricci_backward_op(
    grad: Tensor, edge_index: Tensor, direction: str, edge_weight: Tensor | None
) -> Tensor:
    return _ricci_backward(grad, related(edge_index, direction, edge_weight, grad.size(0)))


_ricci_backward_op.register_fake(_like_first)


def _keep_ricci(ctx, inputs, output):  # type: ignore[no-untyped-def]
    _, edge_index, ctx.direction, edge_weight = inputs
    ctx.save_for_backward(edge_index, edge_weight)


def _ricci_gradient(ctx, grad):  # type: ignore[no-untyped-def]
    edge_index, edge_weight = ctx.saved_tensors
    return _ricci_backward_op(grad, edge_index, ctx.direction, edge_weight), None, None, None


_ricci_op.register_autograd(_ricci_gradient, setup_context=_keep_ricci)


#: Factors on the Ricci energy and on twice the smoothness energy of one layer.
Factors = tuple[float, float]


def energies(metrics: Sequence[Tensor], hood: Prepared, factors: Sequence[Factors]) -> Tensor:
    """Ricci energy and twice the smoothness energy, times factors, over all layers, ``[2]``.

    Both come from one pass over the edges, which must list each pair in both directions.
    """
    if not isinstance(hood, TracedNeighborhood):
        return _Energies.apply(hood, factors, *metrics)
    layers = [
        _energies_op(g, hood.edge_index, hood.weight)[0]
        * torch.stack([g.new_tensor(f) for f in pair])
        for g, pair in zip(metrics, factors, strict=True)
    ]
    return torch.stack(layers).sum(0)


def _energies_backward(
    curvature: Tensor, grad: Tensor, hood: Neighborhood, factors: Factors
) -> Tensor:
    dtype = _wide(curvature.dtype)
    return backend(curvature).energy_gradient(
        hood.transpose,
        curvature,
        hood.float_degree(dtype),
        hood.inverse_degree(dtype),
        grad.to(dtype),
        factors,
    )


class _Energies(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hood, factors, *metrics):  # type: ignore[no-untyped-def]
        layers = [_ricci(g, hood, pair) for g, pair in zip(metrics, factors, strict=True)]
        ctx.rest = hood, factors
        # The metrics only as a witness that the gradient depends on them: they are kept anyway.
        ctx.save_for_backward(*(curvature for curvature, _ in layers), *metrics)
        return torch.stack([energy for _, energy in layers]).sum((0, 1))

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        hood, factors = ctx.rest
        curvatures, metrics = ctx.saved_tensors[: len(factors)], ctx.saved_tensors[len(factors) :]
        grads = _only_once(
            lambda: tuple(
                _energies_backward(curvature, grad, hood, pair)
                for curvature, pair in zip(curvatures, factors, strict=True)
            ),
            *(grad, *metrics),
        )
        return None, None, *grads


@torch.library.custom_op("argnn::energies", mutates_args=())
def _energies_op(
    g: Tensor, edge_index: Tensor, edge_weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    hood = related(edge_index, "undirected", edge_weight, g.size(0))
    curvature, energy = _ricci(g.detach(), hood)
    return energy.sum(0), curvature


@_energies_op.register_fake
def _(g, edge_index, edge_weight):  # type: ignore[no-untyped-def]
    return g.new_empty(2, dtype=_wide(g.dtype)), g.new_empty(g.shape)


@torch.library.custom_op("argnn::energies_backward", mutates_args=())
def _energies_backward_op(
    curvature: Tensor, grad: Tensor, edge_index: Tensor, edge_weight: Tensor | None
) -> Tensor:
    hood = related(edge_index, "undirected", edge_weight, curvature.size(0))
    return _energies_backward(curvature, grad, hood, (1.0, 1.0))


_energies_backward_op.register_fake(_like_first)


def _keep_energies(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(output[1], *inputs[1:])


def _energies_gradient(ctx, grad, _):  # type: ignore[no-untyped-def]
    curvature, *edges = ctx.saved_tensors
    return _energies_backward_op(curvature, grad, *edges), None, None


_energies_op.register_autograd(_energies_gradient, setup_context=_keep_energies)


# --- modulated and attended messages ------------------------------------------------------


class EdgeWeighting(NamedTuple):
    """How the edges of :func:`propagate` are weighed; see :func:`argnn.functional.propagate`."""

    attention: bool
    target_norm: bool
    normalization: str
    eps: float


def propagate(
    h: Tensor, g: Tensor, messages: Tensor, eps0: Tensor, hood: Prepared, weighing: EdgeWeighting
) -> Tensor:
    """Sum of modulated and attended messages, ``[N, D']``."""
    # Messages that are the features themselves are gathered once instead of twice.
    separate = None if messages is h else messages
    if not isinstance(hood, TracedNeighborhood):
        return _Propagate.apply(h, g, separate, eps0, hood, weighing)
    return _propagate_op(h, g, separate, eps0, *hood.edges, *weighing)[0]


def _propagate(
    h: Tensor,
    g: Tensor,
    messages: Tensor | None,
    eps0: Tensor,
    hood: Neighborhood,
    weighing: EdgeWeighting,
    save: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The sum, the norms of the nodes, and the scalars of the edges."""
    norm = backend(h).metric_norm(h, g) if weighing.attention else None
    weights = _edge_weights(h, norm, eps0, hood, weighing)
    out, saved = backend(h).propagate(hood.csr, h, g, messages, weights, save)
    return out, norm, saved


def _edge_weights(
    h: Tensor, norm: Tensor | None, eps0: Tensor, hood: Neighborhood, weighing: EdgeWeighting
) -> EdgeWeights:
    attention, target_norm, normalization, eps = weighing
    left, right = hood.scales(normalization, _wide(h.dtype))
    return EdgeWeights(norm, left, right, eps0, attention, target_norm, eps)


def _propagate_backward(
    grad: Tensor,
    h: Tensor,
    g: Tensor,
    messages: Tensor | None,
    eps0: Tensor,
    norm: Tensor | None,
    saved: Tensor,
    hood: Neighborhood,
    weighing: EdgeWeighting,
    need_h: bool,
    need_eps0: bool,
) -> tuple[Tensor | None, Tensor, Tensor | None, Tensor | None]:
    weights = _edge_weights(h, norm, eps0, hood, weighing)
    matrices, rest = (hood.csr, hood.transpose), (saved, grad.contiguous(), need_h, need_eps0)
    grad_h, grad_g, grad_messages, grad_eps0 = backend(h).propagate_backward(
        *matrices, h, g, messages, weights, *rest
    )
    return grad_h, grad_g, grad_messages, _total(grad_eps0)


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, g, messages, eps0, hood, weighing):  # type: ignore[no-untyped-def]
        h, g = h.contiguous(), g.contiguous()
        messages = None if messages is None else messages.contiguous()
        save = any(ctx.needs_input_grad)
        out, norm, saved = _propagate(h, g, messages, eps0, hood, weighing, save)
        if save:
            ctx.rest = hood, weighing
            ctx.save_for_backward(h, g, messages, eps0, norm, saved)
        return out

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        h, g, messages, eps0, norm, saved = ctx.saved_tensors
        hood, weighing = ctx.rest
        need_h, _, _, need_eps0, *_ = ctx.needs_input_grad
        grads = _only_once(
            lambda: _propagate_backward(
                grad, h, g, messages, eps0, norm, saved, hood, weighing, need_h, need_eps0
            ),
            *(grad, h, g, messages, eps0),
        )
        return *grads, None, None


@torch.library.custom_op("argnn::propagate", mutates_args=())
def _propagate_op(
    h: Tensor,
    g: Tensor,
    messages: Tensor | None,
    eps0: Tensor,
    edge_index: Tensor,
    direction: str,
    edge_weight: Tensor | None,
    attention: bool,
    target_norm: bool,
    normalization: str,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    hood = related(edge_index, direction, edge_weight, h.size(0))
    weighing = EdgeWeighting(attention, target_norm, normalization, eps)
    out, norm, saved = _propagate(
        h.contiguous(),
        g.contiguous(),
        None if messages is None else messages.contiguous(),
        eps0,
        hood,
        weighing,
        save=True,
    )
    assert saved is not None
    # The trace knows how many edges there are, not how many are left without self-loops.
    padded = saved.new_zeros(_room(edge_index, direction), saved.size(1))
    padded[: saved.size(0)] = saved
    return out, h.new_empty(0) if norm is None else norm, padded


def _room(edge_index: Tensor, direction: str) -> int:
    """Most edges a relation can have."""
    return edge_index.size(1) * (2 if direction == "undirected" else 1)


@_propagate_op.register_fake
def _(h, g, messages, eps0, edge_index, direction, edge_weight, attention, *_):  # type: ignore[no-untyped-def]
    sent = h if messages is None else messages
    dtype = _wide(h.dtype)
    return (
        sent.new_empty(sent.shape),
        h.new_empty(h.size(0) if attention else 0, dtype=dtype),
        h.new_empty(_room(edge_index, direction), num_saved(attention), dtype=dtype),
    )


@torch.library.custom_op("argnn::propagate_backward", mutates_args=())
def _propagate_backward_op(
    grad: Tensor,
    h: Tensor,
    g: Tensor,
    messages: Tensor | None,
    eps0: Tensor,
    norm: Tensor,
    saved: Tensor,
    edge_index: Tensor,
    direction: str,
    edge_weight: Tensor | None,
    attention: bool,
    target_norm: bool,
    normalization: str,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    hood = related(edge_index, direction, edge_weight, h.size(0))
    grad_h, grad_g, grad_messages, grad_eps0 = _propagate_backward(
        grad,
        h.contiguous(),
        g.contiguous(),
        None if messages is None else messages.contiguous(),
        eps0,
        norm if attention else None,
        saved[: hood.source.numel()],
        hood,
        EdgeWeighting(attention, target_norm, normalization, eps),
        need_h=True,
        need_eps0=True,
    )
    assert grad_h is not None
    assert grad_eps0 is not None
    none = h.new_empty(0)
    return grad_h, grad_g, none if grad_messages is None else grad_messages, grad_eps0


@_propagate_backward_op.register_fake
def _(grad, h, g, messages, eps0, *_):  # type: ignore[no-untyped-def]
    sent = h.new_empty(0) if messages is None else messages.new_empty(messages.shape)
    return h.new_empty(h.shape), g.new_empty(g.shape), sent, torch.empty_like(eps0)


def _keep_propagate(ctx, inputs, output):  # type: ignore[no-untyped-def]
    h, g, messages, eps0, edge_index, ctx.direction, edge_weight, *ctx.rest = inputs
    ctx.save_for_backward(h, g, messages, eps0, *output[1:], edge_index, edge_weight)


def _propagate_gradient(ctx, grad, *_: Any):  # type: ignore[no-untyped-def]
    *saved, edge_weight = ctx.saved_tensors
    grad_h, grad_g, grad_messages, grad_eps0 = _propagate_backward_op(
        grad, *saved, ctx.direction, edge_weight, *ctx.rest
    )
    sent = None if saved[2] is None else grad_messages
    return grad_h, grad_g, sent, grad_eps0, *[None] * 7


_propagate_op.register_autograd(_propagate_gradient, setup_context=_keep_propagate)


# --- the operator form --------------------------------------------------------------------


class _Modulate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, g, eps0, added):  # type: ignore[no-untyped-def]
        z, g = z.contiguous(), g.contiguous()
        ctx.save_for_backward(z, g, eps0)
        return backend(z).modulate(z, g, eps0, None if added is None else added.contiguous())

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        z, g, eps0 = ctx.saved_tensors
        grads = _only_once(
            lambda: _modulate_backward(z, g, eps0, grad, ctx.needs_input_grad[2]),
            *(z, g, eps0, grad),
        )
        return *grads, grad if ctx.needs_input_grad[3] else None


def _modulate_backward(
    z: Tensor, g: Tensor, eps0: Tensor, grad: Tensor, need_eps0: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    grad_z, grad_g, grad_eps0 = backend(z).modulate_backward(
        z, g, eps0, grad.contiguous(), need_eps0
    )
    return grad_z, grad_g, _total(grad_eps0)


def _total(parts: Tensor | None) -> Tensor | None:
    """The sum of each node's part, ``[1]``; in float64, so that its order does not matter."""
    return None if parts is None else parts.double().sum().to(parts.dtype).reshape(1)


def modulate(z: Tensor, g: Tensor, eps0: Tensor, added: Tensor | None = None) -> Tensor:
    """Each channel times its modulation, ``[N, D]``, plus what is to be added to it."""
    return _Modulate.apply(z, g, eps0, added)


class _SoftplusDiagonal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, raw, *bounds):  # type: ignore[no-untyped-def]
        g = backend(raw).softplus_diagonal(raw.contiguous(), *bounds)
        ctx.bounds = bounds
        ctx.save_for_backward(g)
        return g

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (g,) = ctx.saved_tensors
        back = _only_once(
            lambda: backend(g).softplus_diagonal_backward(g, grad.contiguous(), *ctx.bounds),
            *(g, grad),
        )
        return back, *[None] * len(ctx.bounds)


def softplus_diagonal(
    raw: Tensor, floor: float, ceiling: float | None, sharpness: float, clamp: bool
) -> Tensor:
    """Metric from raw values; its gradient is computed from the metric alone."""
    return _SoftplusDiagonal.apply(raw, floor, ceiling, sharpness, clamp)


class _NormReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps, drawn, limit):  # type: ignore[no-untyped-def]
        x = x.contiguous()
        out, statistics = backend(x).norm_relu_dropout(x, weight, bias, eps, drawn, limit)
        out = out.to(x.dtype)
        ctx.scale = 256 / limit
        ctx.save_for_backward(x, weight, statistics, out)
        return out

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, weight, statistics, out = ctx.saved_tensors
        grads = _only_once(
            lambda: _norm_relu_dropout_backward(x, weight, statistics, out, grad, ctx.scale),
            *(x, weight, grad),
        )
        return *grads, *[None] * 3


def _norm_relu_dropout_backward(
    x: Tensor, weight: Tensor, statistics: Tensor, out: Tensor, grad: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    to_x, to_weight, to_bias = backend(x).norm_relu_dropout_backward(
        x, weight, statistics, out, grad.contiguous(), scale
    )
    return to_x.to(x.dtype), to_weight.to(weight.dtype), to_bias.to(weight.dtype)


def norm_relu_dropout(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, drawn: Tensor | None, limit: int
) -> Tensor:
    """Positive parts of normalised rows, ``[N, D]``; kept where a random byte is below a limit."""
    return _NormReluDropout.apply(x, weight, bias, eps, drawn, limit)
