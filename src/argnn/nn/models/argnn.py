"""Adaptive Riemannian Graph Neural Networks."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, cast, get_type_hints

from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge, Linear

from argnn.functional.dropout import dropout
from argnn.functional.features import input_linear
from argnn.functional.neighborhood import Edges
from argnn.functional.structure import NUM_DESCRIPTORS
from argnn.nn.conv.ar_conv import ARConv, prepared_edges
from argnn.nn.conv.message_forms import MESSAGE_FORMS
from argnn.nn.models.formulation import Formulation, formulation
from argnn.nn.models.stack import AbstractStack
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

    encoder_head = ("encoder", "encoder_norm", "jump", "head", "structure")

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
        self.stack_convs(self._conv, sizes)
        self.norms = nn.ModuleList(_norm(form.norm, size) for size in sizes[1:])
        self.jump = self._jump()
        self.head = Linear(self._read_out_size(), out_channels) if form.head == "linear" else None
        # Last, so that the weights before it do not depend on it.
        self.structure = self._structure()

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

    def _conv(self, in_channels: int, out_channels: int) -> ARConv:
        form = self.formulation
        return ARConv(
            in_channels,
            out_channels,
            modulation=form.modulation,
            attention=form.attention,
            self_path=form.self_path,
            direction=form.direction,
            normalization=form.normalization,
            hops=form.hops,
            eps0=form.eps0,
            neighbor_norm=form.neighbor_norm,
            metric=form.metric,
            metric_options=form.metric_options(),
        )

    def _layer_sizes(self) -> list[int]:
        form = self.formulation
        plain = self.in_channels + (NUM_DESCRIPTORS if form.structure_features else 0)
        first = self.hidden_channels if form.encoder else plain
        last = self.out_channels if form.head == "conv" else self.hidden_channels
        return [first, *self.sizes_to(last)[1:]]

    def _structure(self) -> StructureFeatures | None:
        form = self.formulation
        encoded = self.hidden_channels if form.encoder else None
        return StructureFeatures(encoded, self.out_channels) if form.structure_features else None

    def _num_states(self) -> int:
        """How many hidden states the read-out sees where it sees all."""
        return self.num_layers + int(self._reads_input())

    def _reads_input(self) -> bool:
        return self.formulation.encoder and self.formulation.self_path

    def _jump(self) -> JumpingKnowledge | None:
        mode = self.formulation.jump
        return (
            None
            if mode == "last"
            else JumpingKnowledge(mode, self.hidden_channels, self._num_states())
        )

    def _read_out_size(self) -> int:
        parts = self._num_states() if self.formulation.jump == "cat" else 1
        return parts * self.hidden_channels

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Let the metric networks keep the statistics of the training graph."""
        for conv in self.convs:
            cast(ARConv, conv).metric_net.fit_to_graph(edge_index, num_nodes)
        if self.structure is not None:
            self.structure.fit_to_graph(edge_index, num_nodes)

    def reach(self) -> int:
        """Hops that scores depend on."""
        form = self.formulation
        # Attention reads the metric of the neighbour, which is made from its own neighbours.
        message_form = MESSAGE_FORMS[form.modulation]
        far = message_form.reads_neighbor_metric(form.attention, form.neighbor_norm)
        # A descriptor that travels as a feature counts neighbours of neighbours where it starts.
        ends = 2 if form.structure_features else 1
        return self.num_layers * max(form.hops, 2 if far else 1) + ends

    def metric_parameters(self) -> list[nn.Parameter]:
        """The parameters of all metric networks."""
        names = self.named_parameters()
        return [parameter for name, parameter in names if ".metric_net." in name]

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]``, and each layer's metric ``[N, D]``."""
        hood = prepared_edges(edge_index, x)
        states, metrics = self.hidden_states(x, hood)
        return self.read_out(states, hood), metrics

    def read_out(self, states: list[Tensor], edge_index: Edges) -> Tensor:
        """Raw scores ``[N, out_channels]`` from all hidden states."""
        scores: Tensor = states[-1] if self.jump is None else self.jump(states)
        scores = scores if self.head is None else self.head(scores)
        return scores if self.structure is None else self.structure.added_to(scores, edge_index)

    def hidden_states(self, x: Tensor, edge_index: Edges) -> tuple[list[Tensor], list[Tensor]]:
        """What the read-out sees, one ``[N, D]`` per layer, and each layer's metric."""
        hood = prepared_edges(edge_index, x)
        h = self._encode(x, hood)
        states, metrics = ([h] if self._reads_input() else []), []
        layers: Iterable[tuple[Any, Any]] = zip(self.convs, self.norms, strict=True)
        for depth, (conv, norm) in enumerate(layers, start=1):
            g = conv.metric(h, hood)
            h = norm(conv(h, hood, g))
            if self.head is not None or depth < self.num_layers:
                h = dropout(h.relu_(), self.formulation.dropout, self.training)
            states.append(h)
            metrics.append(g)
        return states, metrics

    def _encode(self, x: Tensor, edge_index: Edges) -> Tensor:
        form, encoder = self.formulation, self.encoder
        if encoder is None:
            h = dropout(x, form.input_dropout, self.training)
        else:
            h = input_linear(x, encoder.weight, encoder.bias, form.input_dropout, self.training)
        if self.structure is not None:
            h = self.structure.joined(h, edge_index)
        if encoder is None:
            return h
        return dropout(self.encoder_norm(h).relu_(), form.dropout, self.training)


def _norm(kind: str, channels: int) -> nn.Module:
    if kind == "layer":
        return nn.LayerNorm(channels)
    return nn.BatchNorm1d(channels) if kind == "batch" else nn.Identity()
