"""Geometric modulation, metric attention, and sums of messages with these weights."""

from functools import lru_cache

import torch
from torch import Tensor

from argnn.errors import require
from argnn.functional.factored import (
    Operator,
    apply_operator,
    is_factored,
    metric_operator,
    quadratic_at,
    times,
)
from argnn.functional.metric import norm
from argnn.functional.neighborhood import Edges, Neighborhood, neighbor_sum, neighborhood
from argnn.functional.precision import (
    accumulation_dtype,
    default_eps,
    in_autocast_dtype,
    safe_sqrt,
)
from argnn.kernels import fused
from argnn.kernels.choice import is_fused, plain_path

NEIGHBOR_NORMS = ("own", "target")


def channel_modulation(g: Tensor, eps0: float | Tensor = 0.0) -> Tensor:
    r"""The modulation of each metric axis, ``[N, D]`` (:eq:`operator`).

    .. math:: t_{ik} = \epsilon_0 + (1-\epsilon_0)\tanh(-\log g_{ik})

    :math:`\mathbf{T}_i = \mathrm{diag}(\mathbf{t}_i)` is the operator whose Rayleigh quotient
    along an edge is :func:`edge_modulation`.

    Args:
        g: Metric diagonals, ``[N, D]``.
        eps0: Baseline, so that messages do not vanish at ``g = 1``.

    Example:
        >>> channel_modulation(torch.tensor([2.0, 0.5])).round(decimals=4).tolist()
        [-0.6000000238418579, 0.6000000238418579]
    """
    dtype = accumulation_dtype(g.dtype)
    # In place where autograd allows it, since most of the time goes into allocation.
    t = g.to(dtype).clamp_min(torch.finfo(dtype).tiny).log().neg_().tanh_()
    if isinstance(eps0, Tensor) or eps0 != 0:
        t = eps0 + (1 - eps0) * t
    return t.to(g.dtype)


def edge_modulation(
    h: Tensor,
    g: Tensor,
    edge_index: Tensor,
    eps0: float | Tensor = 0.0,
    *,
    eps: float | None = None,
) -> Tensor:
    r"""Geometric modulation of every edge, ``[E]`` (:eq:`modulation`, :eq:`baseline`).

    .. math::
        \tau_{ij} = \sum_k d_{ij,k}^2 \tanh(-\log g_{ik}), \qquad
        \mathbf{d}_{ij} =
        \frac{\mathbf{h}_j - \mathbf{h}_i}{\|\mathbf{h}_j - \mathbf{h}_i\| + \epsilon}, \qquad
        \tau'_{ij} = \epsilon_0 + (1 - \epsilon_0)\,\tau_{ij}

    In [-1, 1] for :math:`\epsilon_0 = 0`. Where the two ends have equal features, as in a
    self-loop, there is no direction and :math:`\tau_{ij} = 0`. Under a factored metric
    :math:`\tau_{ij} = \mathbf{d}_{ij}^\top \mathbf{T}_i \mathbf{d}_{ij}` (:eq:`operator_factored`).

    Args:
        h: Node features, ``[N, D]``.
        g: Metrics, ``[N, D]`` or factored, ``[N, 1 + R, D]``.
        edge_index: Source :math:`j` and target :math:`i` of each edge, ``[2, E]``.
        eps0: Baseline :math:`\epsilon_0`; 0 is the literal formula.
        eps: Floor of the denominator; by dtype where not given.

    Example:
        >>> h = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
        >>> g = torch.tensor([[0.5, 9.0], [2.0, 9.0]])
        >>> edge_modulation(h, g, torch.tensor([[1, 0], [0, 1]])).round(decimals=4).tolist()
        [0.6000000238418579, -0.6000000238418579]
    """
    source, target = edge_index
    dtype = accumulation_dtype(h.dtype)
    h_ = h.to(dtype)
    difference = h_.index_select(0, source) - h_.index_select(0, target)
    length = safe_sqrt(difference.square().sum(-1, keepdim=True))
    direction = difference / (length + (default_eps(h.dtype) if eps is None else eps))
    if is_factored(g):
        tau = quadratic_at(metric_operator(g), direction, target)
    else:
        t = channel_modulation(g.to(dtype)).index_select(0, target)
        tau = (direction.square() * t).sum(-1)
    return (eps0 + (1 - eps0) * tau).to(h.dtype)


def edge_attention(
    h: Tensor,
    g: Tensor,
    edge_index: Tensor,
    *,
    neighbor_norm: str = "own",
    eps: float | None = None,
) -> Tensor:
    r"""Cosine similarity of every edge under the local metrics, ``[E]`` (:eq:`attention`).

    .. math::
        \alpha_{ij} = \frac{\langle\mathbf{h}_i,\mathbf{h}_j\rangle_{\mathbf{G}_i}}
        {\|\mathbf{h}_i\|_{\mathbf{G}_i}\,\|\mathbf{h}_j\|_{\mathbf{G}_j} + \epsilon}

    This is the value before the sigmoid. In [-1, 1] when both ends share a metric; under
    different metrics it is not a cosine and has no bound.

    Args:
        h: Node features, ``[N, D]``.
        g: Metrics, ``[N, D]`` or factored, ``[N, 1 + R, D]``.
        edge_index: Source :math:`j` and target :math:`i` of each edge, ``[2, E]``.
        neighbor_norm: ``"own"`` measures :math:`\mathbf{h}_j` in its own metric, as the paper
            says; ``"target"`` in the metric of node :math:`i`, as its public code does.
        eps: Floor of the denominator; by dtype where not given.

    Example:
        >>> h = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
        >>> g = torch.tensor([[4.0, 1.0], [1.0, 1.0]])
        >>> edge_attention(h, g, torch.tensor([[1], [0]])).item()
        2.0
    """
    _check_neighbor_norm(neighbor_norm)
    source, target = edge_index
    dtype = accumulation_dtype(h.dtype)
    h_, g_ = h.to(dtype), g.to(dtype)
    h_source = h_.index_select(0, source)
    lowered = times(g_, h_) if is_factored(g) else g_ * h_
    product = (lowered.index_select(0, target) * h_source).sum(-1)
    own = safe_sqrt((lowered * h_).sum(-1)) if is_factored(g) else norm(h_, g_)
    if neighbor_norm == "own":
        source_norm = own.index_select(0, source)
    elif is_factored(g):
        source_norm = safe_sqrt(quadratic_at(Operator(g_[:, 0], g_[:, 1:], None), h_source, target))
    else:
        source_norm = norm(h_source, g_.index_select(0, target))
    floor = default_eps(h.dtype) if eps is None else eps
    return (product / (own.index_select(0, target) * source_norm + floor)).to(h.dtype)


def _check_neighbor_norm(name: str) -> None:
    require(name in NEIGHBOR_NORMS, "neighbor_norm", f"one of {NEIGHBOR_NORMS}", repr(name))


def propagate(
    h: Tensor,
    g: Tensor,
    messages: Tensor,
    edge_index: Edges,
    eps0: float | Tensor = 0.0,
    *,
    attention: bool = True,
    normalization: str = "sum",
    neighbor_norm: str = "own",
) -> Tensor:
    r"""Sum of modulated and attended messages at every node, ``[N, D']`` (:eq:`message`).

    .. math::
        \mathbf{o}_i = \sum_{j \in \mathcal{N}(i)} w_{ij}\,\tau'_{ij}\,
        \sigma(\alpha_{ij})\,\mathbf{m}_j

    with :math:`w_{ij} = 1` in the paper; weights of edges are a part of it. Self-loops are ignored.

    Args:
        h: Node features, ``[N, D]``.
        g: Metrics, ``[N, D]`` or factored, ``[N, 1 + R, D]``; these by plain operations.
        messages: The message of each node, :math:`\mathbf{W}_m\mathbf{h}_j`, ``[N, D']``. It is
            faster to pass ``h`` itself and to apply :math:`\mathbf{W}_m` to the sum, which is
            the same.
        edge_index: Source :math:`j` and target :math:`i` of each edge, ``[2, E]``.
        eps0: Baseline of the modulation.
        attention: Whether to multiply by :math:`\sigma(\alpha_{ij})`.
        normalization: Constant edge weights: ``"sum"``, ``"sym"`` or ``"rw"``.
        neighbor_norm: See :func:`edge_attention`.
    """
    _check_neighbor_norm(neighbor_norm)
    hood = neighborhood(edge_index, h.size(0))
    dtype, of_result = accumulation_dtype(h.dtype), messages.dtype
    if messages.dim() != 2 or messages.size(0) != h.size(0):
        raise ValueError(f"messages must have shape [{h.size(0)}, D] (got {list(messages.shape)})")
    g = g if is_factored(g) else g.expand_as(h)
    same = messages is h  # which the kernels gather once
    h, g, messages = (in_autocast_dtype(t) for t in (h, g, messages))
    messages = h if same else messages
    if not is_factored(g) and is_fused(
        h, g, messages, num_edges=hood.num_edges, learns_weight=hood.learns_weight
    ):
        target_norm = attention and neighbor_norm == "target"
        weighing = fused.EdgeWeighting(attention, target_norm, normalization, default_eps(dtype))
        out = fused.propagate(h, g, messages, _one_number(eps0, h), hood, weighing)
    else:
        options = eps0, attention, normalization, neighbor_norm
        out = _plain_propagate(h, g, messages, hood, *options)
    return out.to(of_result)


@plain_path
def _plain_propagate(
    h: Tensor,
    g: Tensor,
    messages: Tensor,
    edge_index: Edges,
    eps0: float | Tensor,
    attention: bool,
    normalization: str,
    neighbor_norm: str,
) -> Tensor:
    hood = neighborhood(edge_index, h.size(0))
    weight = message_weights(h, g, hood, eps0, attention, normalization, neighbor_norm)
    return weighted_sum(messages, weight, hood)


def message_weights(
    h: Tensor,
    g: Tensor,
    hood: Neighborhood,
    eps0: float | Tensor = 0.0,
    attention: bool = True,
    normalization: str = "sum",
    neighbor_norm: str = "own",
) -> Tensor:
    r"""Final weight :math:`w_{ij}\,\tau'_{ij}\,\sigma(\alpha_{ij})` of every message, ``[E']``.

    One weight for each edge that is no self-loop; arguments as for :func:`propagate`.
    """
    dtype = accumulation_dtype(h.dtype)
    h, g = h.to(dtype), g.to(dtype)
    weight = edge_modulation(h, g, hood.edge_index, eps0)
    if attention:
        alpha = edge_attention(h, g, hood.edge_index, neighbor_norm=neighbor_norm)
        weight = weight * alpha.sigmoid()
    if normalization != "sum" or hood.weight is not None:
        weight = weight * hood.edge_weight(normalization, weight.dtype)
    return weight


def _one_number(eps0: float | Tensor, like: Tensor) -> Tensor:
    """The baseline as a tensor ``[1]`` on the device, made without waiting for it."""
    dtype = accumulation_dtype(like.dtype)
    if isinstance(eps0, Tensor):
        return eps0.to(like.device, dtype).reshape(1)
    if torch.compiler.is_compiling():
        return torch.full((1,), eps0, dtype=dtype, device=like.device)
    return _constant(eps0, dtype, like.device)


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _constant(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.full((1,), value, dtype=dtype, device=device)


def modulate(
    z: Tensor, g: Tensor, eps0: float | Tensor = 0.0, *, added: Tensor | None = None
) -> Tensor:
    r"""Each channel times its modulation, :math:`\mathbf{T}_i\mathbf{z}_i`, ``[N, D]``.

    Args:
        z: What the modulation acts on, ``[N, D]``.
        g: Metrics, ``[N, D]``, or factored (:eq:`operator_factored`), ``[N, 1 + R, D]``.
        eps0: Baseline of the modulation, see :func:`channel_modulation`.
        added: What to add to the product, ``[N, D]``.
    """
    if is_factored(g):
        z_ = z.to(accumulation_dtype(z.dtype))
        product = eps0 * z_ + (1 - eps0) * apply_operator(metric_operator(g), z_)
        return product.to(z.dtype) if added is None else (product + added).to(z.dtype)
    alike = z.shape == g.shape and (added is None or added.shape == z.shape)
    # A compiler fuses it by itself.
    if alike and is_fused(z, g) and not torch.compiler.is_compiling():
        return fused.modulate(z, g, _one_number(eps0, z), added)
    product = channel_modulation(g, eps0) * z
    return product if added is None else product + added


def weighted_sum(messages: Tensor, weight: Tensor, hood: Neighborhood) -> Tensor:
    """Sum at every node of its neighbours' messages times the weights of the edges, ``[N, D]``."""
    dtype = accumulation_dtype(messages.dtype)
    sent = messages.to(dtype).index_select(0, hood.source) * weight.to(dtype).unsqueeze(-1)
    return neighbor_sum(sent, hood).to(messages.dtype)
