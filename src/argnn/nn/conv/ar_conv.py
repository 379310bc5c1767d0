"""Message passing under a learned metric."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parameter import UninitializedParameter
from torch_geometric.nn import Linear, MessagePassing
from torch_geometric.nn.inits import reset, zeros
from torch_geometric.utils import is_sparse, to_edge_index

from argnn import functional as AF
from argnn.errors import require
from argnn.functional.edge_weights import NEIGHBOR_NORMS, weighted_sum
from argnn.functional.factored import scaled_metric
from argnn.functional.graph_part import computed_rows
from argnn.functional.neighborhood import (
    DIRECTIONS,
    NORMALIZATIONS,
    Edges,
    Neighborhood,
    bipartite_neighborhood,
    needs_gradient,
    neighborhood,
    plain_path,
)
from argnn.nn.conv.edge_masks import message_mask
from argnn.nn.conv.message_forms import MESSAGE_FORMS, MessageForm, OperatorForm
from argnn.nn.metric import METRICS, Metric, MetricNet

#: A number of channels that the first input decides.
LAZY = -1
#: Parts of which a weight has the size of sources, if they have their own, and of targets.
_WIDTHS = ("lin_source", "lins_neighbor.0")


class ARConv(MessagePassing):
    r"""Adaptive Riemannian convolution (:eq:`update`).

    .. math::
        \mathbf{h}'_i = \mathbf{W}_s\mathbf{h}_i + \sum_r \sum_{j \in \mathcal{N}_r(i)}
        w^r_{ij}\,\tau'_{ij}\,\sigma(\alpha_{ij})\,\mathbf{W}_r\mathbf{h}_j

    with the modulation :math:`\tau'` and attention :math:`\alpha` of the paper
    (``modulation="scalar"``). The modulation is a Rayleigh quotient of an operator
    :math:`\mathbf{T}_i`, and ``modulation="operator"`` applies this operator (:eq:`operator`):

    .. math::
        \mathbf{h}'_i = \mathbf{W}_s\mathbf{h}_i + \sum_r \mathbf{T}_i
        \sum_{j \in \mathcal{N}_r(i)} w^r_{ij}\,\mathbf{W}_r\mathbf{h}_j

    There is no activation, as in PyG. The metric has the size of the input channels in the scalar
    form and of the output channels in the operator form. By default it starts at :math:`g = 0.5`:
    the paper starts near 1, where :math:`\tau = 0` and no message passes.

    A metric that reads degrees standardises them by the training graph: that of
    ``metric_net.fit_to_graph(edge_index, num_nodes)``, or else the first one in training mode.

    PyG's explainers work: an edge mask multiplies the messages of its edge. Constant weights, and
    what the metric network reads from neighbours, are not masked.

    Weights of edges are a part of :math:`w^r_{ij}`, and degrees are sums of weights; a weight of
    zero is no edge. Where weights need a gradient, plain operations compute it.

    Args:
        in_channels: Size of the node features; -1 takes it from the first input. For a bipartite
            graph whose sources and targets have features of different sizes, both of them: then
            the features of sources are mapped to the size of the targets' first.
        out_channels: Size of the result.
        modulation: ``"scalar"``, ``"operator"``, or ``"interpolation"``, which has no weights but
            those of the metric (:eq:`interpolation`) and keeps the size of the features.
        attention: Whether messages are multiplied by :math:`\sigma(\alpha_{ij})` (scalar form).
        self_path: Whether the node's own features are added, mapped by :math:`\mathbf{W}_s`.
        direction: Along which edges messages travel: ``"in"`` as listed, as in PyG,
            ``"out"`` reversed, ``"both"`` with separate weights, or ``"undirected"``.
        normalization: Constant weights :math:`w_{ij}`: ``"sum"``, ``"sym"`` or ``"rw"``.
        hops: Number of powers of the normalised adjacency that send messages, each with its own
            weights (operator form).
        eps0: Baseline of the modulation.
        neighbor_norm: See :func:`argnn.functional.edge_attention`.
        metric: Where the metric comes from: ``"features"``, ``"structure"``, ``"both"`` or
            ``"message"`` (not in the scalar form) learn it from these inputs, see
            :class:`~argnn.nn.MetricNet`; ``"shared"`` and ``"free"`` have parameters for groups of
            nodes or for each node; ``"fixed"`` keeps it at ``metric_options["value"]``.
        metric_options: Further arguments of the metric module, such as its ``shape``.
        sending_metric: Whether a second metric of the same kind acts on the messages that a node
            sends, before they are summed (:eq:`sending`; operator form).
        bias: Whether to add a bias.

    Shapes:
        - **input:** features ``[N, in_channels]``, or a pair of those of sources and targets; edges
          ``[2, E]``; optionally weights ``[E]``
        - **output:** ``[N, out_channels]``, in a bipartite graph one row per target
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        *,
        modulation: str = "scalar",
        attention: bool = True,
        self_path: bool = True,
        direction: str = "in",
        normalization: str = "sum",
        hops: int = 1,
        eps0: float = 0.0,
        neighbor_norm: str = "own",
        metric: str = "features",
        metric_options: dict[str, Any] | None = None,
        sending_metric: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__(aggr="add")
        sizes = in_channels if isinstance(in_channels, tuple) else (in_channels,)
        fit = out_channels >= 1 and all(size >= 1 or size == LAZY for size in sizes)
        shown = f"{', '.join(map(str, sizes))}, {out_channels}"
        require(fit, "in_channels and out_channels", "positive", shown)
        choices: dict[str, tuple[str, Iterable[str]]] = {
            "modulation": (modulation, MESSAGE_FORMS),
            "direction": (direction, DIRECTIONS),
            "normalization": (normalization, NORMALIZATIONS),
            "neighbor_norm": (neighbor_norm, NEIGHBOR_NORMS),
            "metric": (metric, METRICS),
        }
        for name, (value, known) in choices.items():
            require(value in known, name, f"one of {tuple(known)}", repr(value))
        form = MESSAGE_FORMS[modulation]
        if not form.has_weights:
            kept = in_channels == out_channels and direction != "both" and eps0 == 0
            need = "in_channels as out_channels, a direction other than 'both' and eps0 0"
            require(kept, "a layer without weights", f"given {need}", f"{shown}, {direction!r}")
            eps0, bias, self_path = form.eps0, False, False
        hops_fit = hops == 1 or (hops > 1 and MESSAGE_FORMS[modulation].many_hops)
        require(hops_fit, "hops", "1, or more in the operator form", hops)
        require(0 <= eps0 <= 1, "eps0", "in [0, 1]", eps0)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.modulation, self.attention = modulation, attention
        self.direction, self.normalization, self.hops = direction, normalization, hops
        self.eps0, self.neighbor_norm, self.growth = eps0, neighbor_norm, 1.0
        self._metric_name, self._metric_options = metric, dict(metric_options or {})
        need = "False, or the modulation 'operator'"
        require(not sending_metric or form.may_send, "sending_metric", need, sending_metric)
        self._has_self_path, self._has_sending_metric = self_path, sending_metric
        self._build(*(max(size, 1) for size in sizes))
        if LAZY in sizes:
            _uninitialize(self)
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _build(self, *sizes: int) -> None:
        """Make all parts that depend on the sizes of the features, that of targets last."""
        self.width = width = sizes[-1]
        self.lin_source = Linear(*sizes, bias=False) if len(sizes) == 2 else None
        measured = width if self.message_form.on_inputs else self.out_channels
        self.metric_net = self._built_metric(measured)
        need = "another one in the scalar form, whose sums need the metric"
        fits = self.metric_net.num_sums == 0 or not self.message_form.on_edges
        require(fits, "metric", need, repr(self._metric_name))
        self.metric_channels = self.metric_net.metric_channels
        count = len(self.directions()) * self.hops if self.message_form.has_weights else 0
        own = Linear(width, self.out_channels, bias=False) if self._has_self_path else None
        self.lin_self = own
        self.lins_neighbor = nn.ModuleList(
            Linear(width, self.out_channels, bias=False) for _ in range(count)
        )
        self.sending_net: Metric | None = None
        if self._has_sending_metric:
            self.sending_net = self._built_metric(measured)

    def _built_metric(self, channels: int) -> Metric:
        name, options = self._metric_name, self._metric_options
        if METRICS[name] is MetricNet:
            options = {"num_sums": len(self.directions())} | options
        return METRICS[name].build(name, self.width, channels, **options)

    def message_maps(self) -> list[nn.Module]:
        """The linear map of the messages of each direction and hop."""
        return list(self.lins_neighbor) or [nn.Identity()]

    def share_metric(self, owner: "ARConv", growth: float) -> None:
        """Use the metric of another layer, times a number, in place of an own one."""
        del self.metric_net
        # Not registered: the owner has the parameters, and a state has them once.
        object.__setattr__(self, "metric_net", owner.metric_net)
        self.growth = growth

    @property
    def is_lazy(self) -> bool:
        """Whether the sizes of the features are not known yet."""
        return any(isinstance(p, UninitializedParameter) for p in self.lins_neighbor.parameters())

    def initialize_parameters(self, *sizes: int) -> None:
        """Set the sizes of the features and draw all weights; the first input does this.

        The parameters stay the same objects, so that an optimizer may know them already.
        """
        waiting = dict(self.named_parameters())
        self._build(*sizes)
        self.in_channels = sizes if len(sizes) == 2 else sizes[0]
        for name, drawn in list(self.named_parameters()):
            parameter = waiting[name]
            if isinstance(parameter, UninitializedParameter):
                parameter.materialize(drawn.shape)
                with torch.no_grad():
                    parameter.copy_(drawn)
            owner, _, last = name.rpartition(".")
            self.get_submodule(owner)._parameters[last] = parameter
        self.to(next(iter(waiting.values())).device)

    def _load_from_state_dict(self, state_dict, prefix, *rest):  # type: ignore[no-untyped-def]
        stored = [state_dict.get(f"{prefix}{name}.weight") for name in _WIDTHS]
        if self.is_lazy and stored[-1] is not None:
            self.initialize_parameters(*(w.size(1) for w in stored if w is not None))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def reset_parameters(self) -> None:
        """Draw all weights anew, those of the metric network included."""
        super().reset_parameters()
        zeros(self.bias)
        if self.is_lazy:
            return
        reset(self.lin_source)
        self.metric_net.reset_parameters()
        reset(self.lin_self)
        reset(self.lins_neighbor)
        reset(self.sending_net)

    @property
    def message_form(self) -> MessageForm:
        """How the metric acts on messages."""
        return MESSAGE_FORMS[self.modulation]

    def directions(self) -> tuple[str, ...]:
        """The relations whose messages are summed, in the order of ``lins_neighbor``."""
        return ("in", "out") if self.direction == "both" else (self.direction,)

    def metric(self, x: Tensor, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        """Metric of every node, ``[N, metric_channels]``, or factored, ``[N, 1 + R, D]``."""
        hood = prepared_edges(edge_index, x.size(0), edge_weight)
        return self.metric_from_sums(x, hood, self.read_sums(x, hood))

    def read_sums(self, x: Tensor, edge_index: Edges) -> list[Tensor]:
        """The sums of neighbours, one per direction, that the metric reads; mostly none.

        Messages of the first hop are linear maps of these sums: with ``forward(..., sums=...)``
        the rows of neighbours are gathered once for both.
        """
        hood = prepared_edges(edge_index, x.size(0))
        directions = self.directions() if self.metric_net.num_sums else ()
        return [AF.aggregate(x, hood.relation(way), self.normalization) for way in directions]

    def metric_from_sums(self, x: Tensor, edge_index: Edges, sums: Sequence[Tensor]) -> Tensor:
        """As :meth:`metric`, from sums that :meth:`read_sums` has given."""
        hood = prepared_edges(edge_index, x.size(0))
        g = _metric_of(self.metric_net, x, hood, sums)
        return g if self.growth == 1 else scaled_metric(g, self.growth)

    def sending(
        self, x: Tensor, edge_index: Edges, edge_weight: Tensor | None = None
    ) -> Tensor | None:
        """Metric of what every node sends, as :meth:`metric`; None where there is none."""
        if self.sending_net is None:
            return None
        hood = prepared_edges(edge_index, x.size(0), edge_weight)
        return _metric_of(self.sending_net, x, hood, self.read_sums(x, hood))

    def sent(self, number: int, x: Tensor, s: Tensor | None) -> Tensor:
        """What nodes send by one linear map, after their sending metric, ``[N, out_channels]``."""
        message: Tensor = self.message_maps()[number](x)
        if s is None or self.sending_net is None:
            return message
        return self.sending_net.modulate(message, s, self.eps0, None)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Edges,
        edge_weight: Tensor | None = None,
        size: tuple[int, int] | None = None,
        *,
        g: Tensor | None = None,
        s: Tensor | None = None,
        sums: Sequence[Tensor] = (),
    ) -> Tensor:
        """The result under the metric ``g``, or under the learned metric if it is None.

        In a bipartite graph the metric of a target is that of its own features and of the sources
        that it hears from: the convolution is that of the one graph of sources and targets.

        Args:
            x: Node features, ``[N, in_channels]``; for a bipartite graph, those of the sources and
                those of the targets.
            edge_index: Source and target of each edge, ``[2, E]``, or a transposed sparse
                adjacency of PyG, whose values are the weights.
            edge_weight: Weight of each edge, finite and not negative, ``[E]``.
            size: The numbers of sources and targets, which are checked.
            g: A metric to use instead of the learned one, as :meth:`metric` gives it.
            s: The same for the metric of :meth:`sending`.
            sums: What :meth:`read_sums` has given, beside ``g``, so that it need not be summed
                again.
        """
        if torch.compiler.is_compiling() and needs_gradient(edge_weight):
            return self._uncompiled(x, edge_index, edge_weight, size, g=g, s=s, sums=sums)
        mapped = isinstance(self.in_channels, tuple)
        if isinstance(x, Tensor):
            x = (x, x)
        sources, targets = x
        if targets is None:
            raise ValueError("ARConv needs the features of targets, too: (x_src, x_dst)")
        if self.is_lazy:
            widths = [sources.size(-1), targets.size(-1)]
            self.initialize_parameters(*(widths if mapped else widths[-1:]))
        counts = sources.size(0), targets.size(0)
        if size is not None and tuple(size) != counts:
            raise ValueError(f"the features are of {counts} nodes, but size is {tuple(size)}")
        if sources is targets and not mapped:
            hood = prepared_edges(edge_index, counts[0], edge_weight)
            return self._convolved(targets, hood, g, s, sums)
        self._check_bipartite(sources, targets, g)
        edges, weight = _listed(edge_index, edge_weight)
        hood = bipartite_neighborhood(edges, *counts, weight)
        sources = sources if self.lin_source is None else self.lin_source(sources)
        return self._convolved(torch.cat([sources, targets]), hood, None, None, ())[counts[0] :]

    def _check_bipartite(self, sources: Tensor, targets: Tensor, g: Tensor | None) -> None:
        widths = sources.size(-1), targets.size(-1)
        if self.lin_source is None and widths[0] != widths[1]:
            raise ValueError(
                f"sources have {widths[0]} features and targets {widths[1]}: "
                f"make ARConv({widths}, ...), or ARConv((-1, -1), ...)"
            )
        if g is not None or self.hops > 1 or self.direction not in ("in", "undirected"):
            raise ValueError(
                "in a bipartite graph messages go one hop, from sources to targets: "
                "direction must be 'in' or 'undirected', hops 1, and g None"
            )

    def _convolved(
        self,
        x: Tensor,
        hood: Neighborhood,
        g: Tensor | None,
        s: Tensor | None,
        sums: Sequence[Tensor],
    ) -> Tensor:
        if g is None:
            sums = self.read_sums(x, hood)
            g = self.metric_from_sums(x, hood, sums)
        elif g.shape != (self._metric_rows(x, g, hood), *self.metric_net.metric_size):
            expected = [x.size(0), *self.metric_net.metric_size]
            raise ValueError(f"the metric must have shape {expected} (got {list(g.shape)})")
        s = self.sending(x, hood) if s is None else s
        if self.explain:
            if s is not None:
                raise ValueError("explainers mask the messages of layers without a sending metric")
            return self._masked(x, g, hood)
        if s is None and not sums:
            return self.message_form.convolved(self, x, g, hood)
        # Forms that act on sums; those of sent messages are not the ones that a metric reads.
        known: dict[str, Any] = {"sums": sums} if s is None else {"s": s}
        return cast(OperatorForm, self.message_form).convolved(self, x, g, hood, **known)

    def _metric_rows(self, x: Tensor, g: Tensor, hood: Neighborhood) -> int:
        """Nodes whose metric is needed: only the computed ones, if it does not act on edges."""
        computed = computed_rows(x, hood).size(0)
        return x.size(0) if self.message_form.on_edges or g.size(0) != computed else computed

    @plain_path
    def _uncompiled(self, *arguments: Any, **options: Any) -> Tensor:
        return self.forward(*arguments, **options)

    def _self_part(self, x: Tensor) -> Tensor | None:
        """The part that does not depend on neighbours."""
        if self.lin_self is not None:
            return F.linear(x, self.lin_self.weight, self.bias)
        return None if self.bias is None else self.bias.expand(x.size(0), -1)

    def _masked(self, x: Tensor, g: Tensor, hood: Neighborhood) -> Tensor:
        """The result by plain operations, with every message times the mask of its edge."""
        sums: list[Tensor] = []
        form = self.message_form
        for direction in self.directions():
            relation = hood.relation(direction)
            weight = form.edge_weights(self, x, g, relation)
            weight = weight * message_mask(self, hood, direction).to(weight)
            h = x
            for _ in range(self.hops):
                h = weighted_sum(h, weight, relation)
                sums.append(h)
        return form.from_sums(self, x, g, sums)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, "
            f"modulation={self.modulation!r}, direction={self.direction!r}, "
            f"normalization={self.normalization!r})"
        )


def _metric_of(net: Metric, x: Tensor, hood: Neighborhood, sums: Sequence[Tensor]) -> Tensor:
    """Metric of the computed rows; only a family that reads sums is given some."""
    return computed_rows(net(x, hood, sums) if sums else net(x, hood), hood)


def _uninitialize(module: nn.Module) -> None:
    """Replace all parameters by ones without a size."""
    for part in module.modules():
        for name, parameter in list(part._parameters.items()):
            if parameter is not None:
                setattr(part, name, UninitializedParameter())


def prepared_edges(
    edge_index: Edges, num_nodes: int, edge_weight: Tensor | None = None
) -> Neighborhood:
    """Edges in the form that layers share, from a list or a transposed sparse adjacency of PyG."""
    if isinstance(edge_index, Tensor):
        edge_index, edge_weight = _listed(edge_index, edge_weight)
    return neighborhood(edge_index, num_nodes, edge_weight)


def _listed(edge_index: Edges, edge_weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Edges as a list, and their weights."""
    if not isinstance(edge_index, Tensor):
        raise ValueError("a bipartite graph is given by a list of edges or a sparse adjacency")
    if not is_sparse(edge_index):
        return edge_index, edge_weight
    if edge_weight is not None:
        raise ValueError("the values of a sparse adjacency are its weights: give no others")
    target_source, values = to_edge_index(edge_index)
    return target_source.flip(0), values
