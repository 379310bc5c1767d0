"""Outputs of all nodes of a large graph, exactly, in bounded memory."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argnn.data.graph_parts import GraphParts
from argnn.errors import ConfigError
from argnn.functional.graph_part import GraphPart
from argnn.nn import ARGNN, AbstractNodeModel, LinkModel
from argnn.nn.conv.message_forms import MESSAGE_FORMS
from argnn.nn.decoders import joined

_Numbers = NDArray[np.int64]


#: Numbers in a state of all nodes from which on they are computed piece by piece, and nodes of a
#: piece.
LARGE_STATE, _PIECE = 2**26, 2**16


def is_large(model: AbstractNodeModel, num_nodes: int) -> bool:
    """Whether a graph is computed layer by layer where the user did not ask for it."""
    encoder = model.encoder if isinstance(model, LinkModel) else model
    return isinstance(encoder, ARGNN) and num_nodes * model.hidden_channels >= LARGE_STATE


def pieces_of(num_nodes: int) -> list[_Numbers]:
    """All nodes, in runs."""
    return np.array_split(np.arange(num_nodes), max(1, num_nodes // _PIECE))


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
    encoder = model.encoder if isinstance(model, LinkModel) else model
    if not isinstance(encoder, ARGNN):
        raise ConfigError(f"{type(encoder).__name__} cannot be computed layer by layer")
    reduced = precision != "float32"
    with torch.autocast(parts.device.type, torch.bfloat16, enabled=reduced):
        outputs, found = _Layers(encoder, parts, pieces, metrics).outputs()
    if isinstance(model, LinkModel):
        outputs = joined(outputs, found[-1])
    return outputs, found if metrics else []


class _Layers:
    def __init__(
        self, model: ARGNN, parts: GraphParts, pieces: Sequence[_Numbers], keep: bool
    ) -> None:
        self.model, self.parts, self.pieces, self.keep = model, parts, pieces, keep
        form = model.formulation
        self.hops = form.hops
        attends = MESSAGE_FORMS[form.modulation].reads_neighbor_metric(
            form.attention, form.neighbor_norm
        )
        self.reads_neighbor_metric = attends or form.sending_metric

    def outputs(self) -> tuple[Tensor, list[Tensor]]:
        """Scores, and the metrics of all layers or of the last one; sending ones first."""
        model = self.model
        state = self._encoded()
        states, metrics = ([state] if model.reads_input() else []), list[Tensor]()
        sending: list[Tensor] = []
        for depth in range(model.num_layers):
            state, metric, sent = self._layer(depth, state)
            states = [*states, state] if model.jump is not None else [state]
            metrics = [*metrics, metric] if self.keep else [metric]
            sending += [] if sent is None or not self.keep else [sent]
        return self._read_out(states), [*sending, *metrics]

    def _encoded(self) -> Tensor:
        # Rows of the adjacency matrix are read from neighbours; all else is the node's own.
        hops = 1 if self.model.rows is not None else 0
        out = _FilledRows(self.parts.num_nodes)
        for own in self.pieces:
            part = self.parts.around(own, hops)
            out.put(own, self.model.encoded(self.parts.features(part), part))
        return out.rows

    def _layer(self, depth: int, state: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """State after a layer and its metrics, from the state of all nodes before it."""
        metrics, sending, states = (_FilledRows(self.parts.num_nodes) for _ in range(3))
        for own in self.pieces:
            h, part = self._part(state, own)
            g = self.model.layer_metric(depth, h, part)
            metrics.put(own, g)
            s = self.model.layer_sending(depth, h, part)
            if s is not None:
                sending.put(own, s)
            if not self.reads_neighbor_metric:
                states.put(own, self.model.layer_state(depth, h, g, part))
        if self.reads_neighbor_metric:
            for own in self.pieces:
                h, part = self._part(state, own)
                nodes = _nodes(part).cpu()
                g, s = metrics.rows[nodes].to(h.device), sending.at(nodes, h.device)
                states.put(own, self.model.layer_state(depth, h, g, part, s))
        return states.rows, metrics.rows, getattr(sending, "rows", None)

    def _part(self, state: Tensor, own: _Numbers) -> tuple[Tensor, GraphPart]:
        part = self.parts.around(own, self.hops)
        return state[_nodes(part).cpu()].to(self.parts.device), part

    def _read_out(self, states: list[Tensor]) -> Tensor:
        out = _FilledRows(self.parts.num_nodes)
        for own in self.pieces:
            part = self.parts.around(own, 0)
            rows = torch.from_numpy(own)
            out.put(own, self.model.read_out([s[rows].to(self.parts.device) for s in states], part))
        return out.rows


class _FilledRows:
    """Rows of all nodes, filled piece by piece."""

    rows: Tensor

    def __init__(self, num_nodes: int) -> None:
        self.num_nodes = num_nodes

    def at(self, nodes: Tensor, device: torch.device) -> Tensor | None:
        """The rows of some nodes; None where nothing was filled in."""
        return self.rows[nodes].to(device) if hasattr(self, "rows") else None

    def put(self, own: _Numbers, values: Tensor) -> None:
        """Keep the first rows, which are those of own nodes."""
        if not hasattr(self, "rows"):
            self.rows = torch.empty(self.num_nodes, *values.shape[1:])
        self.rows[torch.from_numpy(own)] = values[: len(own)].float().cpu()


def _nodes(part: GraphPart) -> Tensor:
    assert part.place is not None
    return part.place.nodes
