"""Outputs of all nodes of a large graph, exactly, in bounded memory."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from argnn.data.graph_parts import GraphParts
from argnn.data.partition import Partition
from argnn.errors import ConfigError
from argnn.functional.graph_part import GraphPart
from argnn.nn import ARGNN, AbstractNodeModel, LinkModel
from argnn.nn.decoders import encoder_of, joined
from argnn.train.devices import products_in

_Numbers = NDArray[np.int64]


#: Numbers in a state of all nodes from which on they are computed piece by piece, and nodes of a
#: piece.
LARGE_STATE, _PIECE = 2**26, 2**15


def is_large(model: AbstractNodeModel, num_nodes: int) -> bool:
    """Whether a graph is so large that outputs are computed layer by layer without being asked."""
    return isinstance(encoder_of(model), ARGNN) and num_nodes * model.hidden_channels >= LARGE_STATE


def pieces_of(num_nodes: int) -> list[_Numbers]:
    """All nodes, in pieces of consecutive nodes."""
    return np.array_split(np.arange(num_nodes), max(1, num_nodes // _PIECE))


def pieces_of_partition(found: Partition) -> list[_Numbers]:
    """All nodes, some whole parts in each piece, one after the other."""
    count = min(found.num_parts, max(1, len(found.part) // _PIECE))
    runs = np.array_split(np.arange(found.num_parts), count)
    return [np.sort(np.concatenate([found.nodes(part) for part in run])) for run in runs]


@torch.no_grad()
def layerwise_outputs(
    model: AbstractNodeModel,
    parts: GraphParts,
    pieces: Sequence[_Numbers],
    precision: str = "float32",
    *,
    metrics: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """Outputs ``[N, C]`` of a model in evaluation mode on the whole graph, on the CPU.

    One layer after the other is computed for all nodes, one piece of the graph after the other. So
    each node is computed once per layer, and only the states of one piece and its neighbours are
    on the device at a time.

    Args:
        model: An :class:`~argnn.nn.ARGNN`, perhaps with a decoder of links.
        parts: The graph.
        pieces: All nodes, each in one piece, sorted in every piece.
        precision: As of :func:`argnn.train.scores_and_metrics`.
        metrics: Whether the metrics of all layers are kept.

    Returns:
        The outputs, and the metrics that are kept.
    """
    encoder = encoder_of(model)
    if not isinstance(encoder, ARGNN):
        raise ConfigError(f"{type(encoder).__name__} cannot be computed layer by layer")
    reduced = precision == "bfloat16"
    with products_in(precision), torch.autocast(parts.device.type, torch.bfloat16, enabled=reduced):
        last = isinstance(model, LinkModel)
        outputs, found = _Layers(encoder, parts, pieces, metrics, last).outputs()
    if last:
        outputs = joined(outputs, found[-1])
    return outputs, found if metrics else []


class _Layers:
    """A model on all nodes; it keeps the metrics of all layers, of the last one, or none."""

    def __init__(
        self,
        model: ARGNN,
        parts: GraphParts,
        pieces: Sequence[_Numbers],
        keep_all: bool,
        keep_last: bool,
    ) -> None:
        self.model, self.parts, self.pieces = model, parts, pieces
        self.kept = range(0 if keep_all else model.num_layers - keep_last, model.num_layers)
        self.keep_all = keep_all
        self.two_passes = model.metric_on_edges or model.formulation.sending_metric

    def outputs(self) -> tuple[Tensor, list[Tensor]]:
        """Scores, and the metrics that are kept; sending ones come first."""
        model = self.model
        state, metrics, sending = self._encoded(), list[Tensor](), list[Tensor]()
        states = _States(model, state) if model.reads_input() else _States(model)
        for depth in range(model.num_layers):
            state, metric, sent = self._layer(depth, state)
            states.add(state)
            metrics += [metric] if depth in self.kept else []
            sending += [] if sent is None or not self.keep_all else [sent]
        return self._read_out(states), [*sending, *metrics]

    def _encoded(self) -> Tensor:
        # Rows of the adjacency matrix are read from neighbours; all else is the node's own.
        out = _FilledRows(self.parts.num_nodes)
        for own in self.pieces:
            alone = self.model.rows is None
            part = self.parts.around(own, 0) if alone else self._part(own)
            out.put(own, self.model.encoded(self.parts.features(part), part))
        return out.rows

    def _layer(self, depth: int, state: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """State after a layer and its metrics, from the state of all nodes before it."""
        metrics, sending, states = (_FilledRows(self.parts.num_nodes) for _ in range(3))
        keep = self.two_passes or depth in self.kept
        for own in self.pieces:
            part = self._part(own)
            h = self._rows(state, part)
            sums = self.model.layer_sums(depth, h, part)
            g = self.model.layer_metric(depth, h, part, sums)
            s = self.model.layer_sending(depth, h, part)
            if keep:
                metrics.put(own, g)
            if s is not None:
                sending.put(own, s)
            if not self.two_passes:
                states.put(own, self.model.layer_state(depth, h, g, part, sums=sums))
        sends = self.model.formulation.sending_metric
        for own in self.pieces if self.two_passes else ():
            part = self._part(own)
            h, g = self._rows(state, part), self._rows(metrics.rows, part)
            s = self._rows(sending.rows, part) if sends else None
            states.put(own, self.model.layer_state(depth, h, g, part, s))
        return states.rows, metrics.rows, sending.rows if sends else None

    def _part(self, own: _Numbers) -> GraphPart:
        """Some nodes and what a layer reads around them."""
        hops = self.model.formulation.hops
        if hops > 1:  # sums of the first hop are computed here, too
            return self.parts.around(own, hops)
        return self.parts.with_halo(own, self.parts.halo_of(own), _NoExchange())

    def _rows(self, values: Tensor, part: GraphPart) -> Tensor:
        """Rows of the nodes of a part from those of all nodes."""
        assert part.place is not None
        return values[part.place.nodes.cpu()].to(self.parts.device)

    def _read_out(self, states: "_States") -> Tensor:
        out, device = _FilledRows(self.parts.num_nodes), self.parts.device
        for own in self.pieces:
            part, rows = self.parts.around(own, 0), torch.from_numpy(own)
            if states.scores is None:
                found = self.model.read_out([s[rows].to(device) for s in states.all], part)
            else:
                found = self.model.scores_with_structure(states.scores[rows].to(device), part)
            out.put(own, found)
        return out.rows


class _States:
    """What the read-out needs of the states of all layers.

    A linear read-out of all states side by side is a sum of linear maps, one of each state. They
    are added up when a state is computed, so that no state is kept.

    Args:
        model: The model.
        first: The state before the first layer, if the read-out reads it.
    """

    def __init__(self, model: ARGNN, first: Tensor | None = None) -> None:
        self.model = model
        self.adds_up = model.jump is not None and model.jump.mode == "cat"
        self.all: list[Tensor] = []
        self.scores: Tensor | None = None
        self.column = 0
        if first is not None:
            self.add(first)

    def add(self, state: Tensor) -> None:
        """Take the state after the next layer."""
        head = self.model.head
        if not self.adds_up or head is None:
            self.all = [*self.all, state] if self.model.jump is not None else [state]
            return
        first, self.column = self.column, self.column + state.size(1)
        weight = head.weight[:, first : self.column].cpu()
        if self.scores is None:
            self.scores = F.linear(state, weight, None if head.bias is None else head.bias.cpu())
        else:
            self.scores += F.linear(state, weight)


class _FilledRows:
    """Rows of all nodes, filled piece by piece."""

    rows: Tensor = torch.empty(0)

    def __init__(self, num_nodes: int) -> None:
        self.num_nodes = num_nodes

    def put(self, own: _Numbers, values: Tensor) -> None:
        """Keep the first rows, which are those of own nodes."""
        if self.rows.size(0) != self.num_nodes:
            self.rows = torch.empty(self.num_nodes, *values.shape[1:])
        self.rows[torch.from_numpy(own)] = values[: len(own)].float().cpu()


class _NoExchange:
    """An exchange without a halo: a layer begins when the rows of all nodes are there."""

    def halo(self, own: Tensor) -> Tensor:
        """See :class:`~argnn.functional.graph_part.Exchange`."""
        raise AssertionError("a layer asked for rows that it has got already")

    def total(self, value: Tensor) -> Tensor:
        """The value: there is one process."""
        return value
