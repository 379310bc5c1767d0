"""Adaptive Riemannian Graph Neural Networks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, cast, get_type_hints

from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge, Linear

from argnn import functional as AF
from argnn.functional.dropout import dropout
from argnn.functional.features import input_linear
from argnn.functional.graph_part import computed_rows, with_halo_metrics
from argnn.functional.neighborhood import Edges
from argnn.functional.precision import in_autocast_dtype
from argnn.functional.structure import NUM_DESCRIPTORS
from argnn.nn.adjacency_linear import AdjacencyLinear
from argnn.nn.conv.ar_conv import ARConv, prepared_edges
from argnn.nn.conv.message_forms import MESSAGE_FORMS
from argnn.nn.metric import Metric
from argnn.nn.models.formulation import Formulation, formulation
from argnn.nn.models.stack import AbstractStack
from argnn.nn.part_norm import activated, normalized
from argnn.nn.structure_features import StructureFeatures


class ARGNN(AbstractStack):
    """A stack of :class:`~argnn.nn.ARConv` layers, each with its own learned metric.

    Args:
        in_channels: Size of the node features.
        hidden_channels: Width of the layers.
        out_channels: Number of scores per node.
        num_layers: Number of convolutions.
        preset: ``"default"``, ``"paper"`` or ``"reference"``.
        **overrides: Single switches, by the names of
            :class:`~argnn.nn.models.formulation.Formulation`.

    Example:
        >>> import torch
        >>> model = ARGNN(4, 8, 3, num_layers=2)
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> scores, metrics = model.forward_with_metric(torch.randn(2, 4), pair)
        >>> scores.shape, [g.shape for g in metrics]
        (torch.Size([2, 3]), [torch.Size([2, 8]), torch.Size([2, 8])])
    """

    citation = "Wang, Ding, Li, Fan: Adaptive Riemannian GNNs, AAAI 2026"
    takes_edge_weight = True
    space = "learned diagonal metric per node"
    search_space = {
        "self_path": [True, False],
        "normalization": ["sym", "rw", "sum"],
        "metric": ["fixed", "structure", "both"],
        "modulation": ["operator", "scalar"],
        "num_layers": [1, 2, 3, 4, 5],
        "hidden_channels": [64, 128],
        "dropout": [0.0, 0.3, 0.5, 0.7],
        "input_dropout": [0.0, 0.5],
        "lr": [0.005, 0.01],
        "weight_decay": [0.0, 1e-3, 3e-3],
    }
    link_decoder = "metric"
    preset_sizes = {
        "paper": {"hidden_channels": 128, "num_layers": 3},
        "reference": {"hidden_channels": 128, "num_layers": 3},
        "default": {"hidden_channels": 128, "num_layers": 2},
    }
    usual_train = {}
    has_trial = True
    learns_metric = True
    encoder_head = ("encoder", "encoder_norm", "jump", "head", "structure", "rows")
    recordable = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        *,
        preset: str = "default",
        **overrides: Any,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.formulation = form = formulation(preset, overrides)
        self.encoder = Linear(in_channels, hidden_channels) if form.encoder else None
        self.encoder_norm = _norm(form.norm if form.encoder else "none", hidden_channels)
        sizes = self._layer_sizes()
        self.stack_convs(partial(ARConv, **form.conv_options()), sizes)
        if not MESSAGE_FORMS[form.modulation].has_weights:
            first, *others = (cast(ARConv, conv) for conv in self.convs)
            for number, conv in enumerate(others, start=2):
                conv.share_metric(first, float(number))
        self.norms = nn.ModuleList(_norm(form.norm, size) for size in sizes[1:])
        states = num_layers + int(self.reads_input())
        of_all = form.jump != "last"
        self.jump = JumpingKnowledge(form.jump, hidden_channels, states) if of_all else None
        seen = states * hidden_channels if form.jump == "cat" else hidden_channels
        self.head = Linear(seen, out_channels) if form.head == "linear" else None
        # Built last, so that the random weights of the other parts do not depend on it.
        encoded = hidden_channels if form.encoder else None
        joined = form.structure_features
        self.structure = StructureFeatures(encoded, out_channels) if joined else None
        self.rows = AdjacencyLinear(hidden_channels) if form.adjacency_rows else None
        # Inverses of matrices are not known to work in a CUDA graph.
        self.recordable = all(len(net.metric_size) == 1 for net in self.metric_nets())

    @classmethod
    def option_types(cls) -> dict[str, Any]:
        """Type of each option, by name: the sizes, and all switches."""
        return {**super().option_types(), **get_type_hints(Formulation)}

    @classmethod
    def completed_options(cls, preset: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Sizes, and all switches of the preset with those that are given."""
        usual = cls.preset_sizes[preset]
        sizes = {name: options.get(name, size) for name, size in usual.items()}
        switches = {name: value for name, value in options.items() if name not in usual}
        return {**sizes, **asdict(formulation(preset, switches))}

    def _layer_sizes(self) -> list[int]:
        form = self.formulation
        plain = self.in_channels + (NUM_DESCRIPTORS if form.structure_features else 0)
        first = self.hidden_channels if form.encoder else plain
        last = self.out_channels if form.head == "conv" else self.hidden_channels
        return [first, *self.sizes_to(last)[1:]]

    def reads_input(self) -> bool:
        """Whether the read-out sees the encoded input as one more hidden state."""
        return self.formulation.encoder and self.formulation.self_path

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Let the metric networks store the statistics of the training graph."""
        for net in self.metric_nets():
            net.fit_to_graph(edge_index, num_nodes)
        if self.structure is not None:
            self.structure.fit_to_graph(edge_index, num_nodes)
        if self.rows is not None:
            self.rows.fit_to_graph(num_nodes)

    def metric_nets(self) -> list[Metric]:
        """The metrics of all layers, one that several share only once; sending ones first."""
        convs = [cast(ARConv, conv) for conv in self.convs]
        sending = [conv.sending_net for conv in convs if conv.sending_net is not None]
        return list(dict.fromkeys([*sending, *(conv.metric_net for conv in convs)]))

    def node_parameters(self) -> list[nn.Parameter]:
        """The weight of the adjacency matrix, if there is one, and free metrics."""
        rows = [] if self.rows is None else [self.rows.weight]
        return [*rows, *(weight for net in self.metric_nets() for weight in net.node_parameters())]

    @property
    def metric_size(self) -> tuple[int, ...]:
        """Shape of the metric of one node in the last layer."""
        return self.metric_nets()[-1].metric_size

    def positive_parameters(self) -> list[nn.Parameter]:
        """The positive numbers of free metrics."""
        return [weight for net in self.metric_nets() for weight in net.positive_parameters()]

    def constrain(self) -> None:
        """Keep free metrics between floor and ceiling."""
        for net in self.metric_nets():
            net.constrain()

    def reach(self) -> int:
        """How many hops around a node its scores depend on."""
        form = self.formulation
        # Attention may read the metric of a neighbour, which depends on that node's neighbours.
        message_form = MESSAGE_FORMS[form.modulation]
        far = message_form.reads_neighbor_metric(form.attention, form.neighbor_norm)
        far_hops = form.hops + 1 if form.sending_metric else max(form.hops, 2 if far else 1)
        # The structural descriptor of a node depends on two hops around it.
        ends = 2 if form.structure_features else 1
        # The rows of the adjacency matrix are the first hop.
        ends += int(form.adjacency_rows)
        return self.num_layers * far_hops + ends

    def reach_with_degrees(self) -> int:
        """One hop less: degrees are all that is read from the last one."""
        return self.reach() - 1

    @property
    def metric_on_edges(self) -> bool:
        """Whether metrics act on single edges, so that neighbours' metrics may be read."""
        return MESSAGE_FORMS[self.formulation.modulation].on_edges

    def metric_parameters(self) -> list[nn.Parameter]:
        """The parameters of all metric networks."""
        return [parameter for net in self.metric_nets() for parameter in net.parameters()]

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]``, and each layer's metric, diagonal or factored.

        Where layers have a sending metric, these of all layers come first.
        """
        hood = prepared_edges(edge_index, x.size(0))
        states, metrics, sending = self._layers(x, hood)
        return self.read_out(states, hood), [*sending, *metrics]

    def read_out(self, states: list[Tensor], edge_index: Edges) -> Tensor:
        """Raw scores ``[N, out_channels]`` from all hidden states."""
        scores: Tensor
        if self.formulation.jump == "cat" and self.head is not None:
            weights = self.head.weight.split(self.hidden_channels, dim=1)
            scores = AF.joint_linear(states, weights, self.head.bias)
        else:
            scores = states[-1] if self.jump is None else self.jump(states)
            scores = scores if self.head is None else self.head(scores)
        return self.scores_with_structure(scores, edge_index)

    def scores_with_structure(self, scores: Tensor, edge_index: Edges) -> Tensor:
        """Raw scores of the head, plus what the descriptor adds to them, if anything."""
        return scores if self.structure is None else self.structure.added_to(scores, edge_index)

    def hidden_states(self, x: Tensor, edge_index: Edges) -> tuple[list[Tensor], list[Tensor]]:
        """The hidden states for the read-out, one ``[N, D]`` per layer, and each layer's metric."""
        states, metrics, _ = self._layers(x, edge_index)
        return states, metrics

    def _layers(
        self, x: Tensor, edge_index: Edges
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Hidden states, and the metrics of what nodes receive and of what they send."""
        hood = prepared_edges(edge_index, x.size(0))
        h = self.encoded(x, hood)
        states, metrics, sending = ([h] if self.reads_input() else []), [], []
        for depth in range(self.num_layers):
            h = hood.complete(h)
            sums = self.layer_sums(depth, h, hood)
            g = self.layer_metric(depth, h, hood, sums)
            g = with_halo_metrics(g, hood, self.metric_on_edges)
            s = self.layer_sending(depth, h, hood)
            if s is not None:
                s = hood.complete(s)
                sending.append(s)
            h = self.layer_state(depth, h, g, hood, s, sums)
            states.append(h)
            metrics.append(g)
        return states, metrics, sending

    def layer_sums(self, depth: int, h: Tensor, edge_index: Edges) -> list[Tensor]:
        """Sums that the metric and the messages of a layer share, see ``ARConv.read_sums``."""
        return cast(ARConv, self.convs[depth]).read_sums(h, edge_index)

    def layer_metric(
        self, depth: int, h: Tensor, edge_index: Edges, sums: Sequence[Tensor] = ()
    ) -> Tensor:
        """Metric of a layer from the state before it; layers count from 0."""
        conv = cast(ARConv, self.convs[depth])
        return conv.metric_from_sums(h, edge_index, sums) if sums else conv.metric(h, edge_index)

    def layer_sending(self, depth: int, h: Tensor, edge_index: Edges) -> Tensor | None:
        """Metric of what nodes send in a layer, as :meth:`layer_metric`; None without one."""
        return cast(ARConv, self.convs[depth]).sending(h, edge_index)

    def layer_state(
        self,
        depth: int,
        h: Tensor,
        g: Tensor,
        edge_index: Edges,
        s: Tensor | None = None,
        sums: Sequence[Tensor] = (),
    ) -> Tensor:
        """State after a layer, ``[N, D]``, from the state before it and the layer's metrics."""
        form, norm = self.formulation, self.norms[depth]
        h = self.convs[depth](h, edge_index, g=g, s=s, sums=sums)
        if self.head is None and depth == self.num_layers - 1:
            return normalized(norm, h, edge_index)
        if MESSAGE_FORMS[form.modulation].has_weights:
            return activated(norm, h, edge_index, form.dropout, self.training)
        return dropout(normalized(norm, h, edge_index), form.dropout, self.training)

    def encoded(self, x: Tensor, edge_index: Edges) -> Tensor:
        """The state before the first layer, ``[N, D]``."""
        form, encoder = self.formulation, self.encoder
        hood = prepared_edges(edge_index, x.size(0))
        x = computed_rows(x, hood)
        if encoder is None:
            h = in_autocast_dtype(dropout(x, form.input_dropout, self.training))
        else:
            h = input_linear(x, encoder.weight, encoder.bias, form.input_dropout, self.training)
        if self.structure is not None:
            h = self.structure.joined(h, hood)
        if self.rows is not None:
            h = h + computed_rows(self.rows(hood, x.size(0)), hood)
        if encoder is None:
            return h
        return activated(self.encoder_norm, h, hood, form.dropout, self.training)


def _norm(kind: str, channels: int) -> nn.Module:
    if kind == "layer":
        return nn.LayerNorm(channels)
    return nn.BatchNorm1d(channels) if kind == "batch" else nn.Identity()
