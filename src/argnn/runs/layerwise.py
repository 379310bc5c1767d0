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

_Numbers = NDArray[np.int64]


def takes_layers_one_by_one(model: AbstractNodeModel) -> bool:
    """Whether :func:`layerwise_outputs` knows the layers of a model."""
    return isinstance(model.encoder if isinstance(model, LinkModel) else model, ARGNN)


@torch.no_grad()
def layerwise_outputs(
    model: AbstractNodeModel,
    parts: GraphParts,
    pieces: Sequence[_Numbers],
    precision: str = "float32",
) -> Tensor:
    """Outputs of a model in evaluation mode on the whole graph, ``[N, C]``, on the CPU.

    One layer after the other is computed for all nodes, one piece of the graph after the other. So
    each node is computed once per layer, and only the states of one piece and its neighbours are
    on the device at a time.

    Args:
        model: An :class:`~argnn.nn.ARGNN`, perhaps with a decoder of links.
        parts: The graph.
        pieces: All nodes, each in one piece, sorted in every piece.
        precision: As of :func:`argnn.train.scores_and_metrics`.
    """
    encoder = model.encoder if isinstance(model, LinkModel) else model
    if not isinstance(encoder, ARGNN):
        raise ConfigError(f"{type(encoder).__name__} cannot be computed layer by layer")
    reduced = precision != "float32"
    with torch.autocast(parts.device.type, torch.bfloat16, enabled=reduced):
        outputs, metric = _Layers(encoder, parts, pieces).outputs()
    return torch.cat([outputs, metric], dim=-1) if isinstance(model, LinkModel) else outputs


class _Layers:
    def __init__(self, model: ARGNN, parts: GraphParts, pieces: Sequence[_Numbers]) -> None:
        self.model, self.parts, self.pieces = model, parts, pieces
        form = model.formulation
        self.hops = form.hops
        self.reads_neighbor_metric = MESSAGE_FORMS[form.modulation].reads_neighbor_metric(
            form.attention, form.neighbor_norm
        )

    def outputs(self) -> tuple[Tensor, Tensor]:
        """Scores, and the metric of the last layer."""
        model = self.model
        state = self._encoded()
        states = [state] if model.reads_input() else []
        for depth in range(model.num_layers):
            state, metric = self._layer(depth, state)
            states = [*states, state] if model.jump is not None else [state]
        return self._read_out(states), metric

    def _encoded(self) -> Tensor:
        # Rows of the adjacency matrix are read from neighbours; all else is the node's own.
        hops = 1 if self.model.rows is not None else 0
        out = _FilledRows(self.parts.num_nodes)
        for own in self.pieces:
            part = self.parts.around(own, hops)
            out.put(own, self.model.encoded(self.parts.features(part), part))
        return out.rows

    def _layer(self, depth: int, state: Tensor) -> tuple[Tensor, Tensor]:
        """State after a layer and its metric, from the state of all nodes before it."""
        metrics, states = _FilledRows(self.parts.num_nodes), _FilledRows(self.parts.num_nodes)
        for own in self.pieces:
            h, part = self._part(state, own)
            g = self.model.layer_metric(depth, h, part)
            metrics.put(own, g)
            if not self.reads_neighbor_metric:
                states.put(own, self.model.layer_state(depth, h, g, part))
        if self.reads_neighbor_metric:
            for own in self.pieces:
                h, part = self._part(state, own)
                g = metrics.rows[_nodes(part).cpu()].to(h.device)
                states.put(own, self.model.layer_state(depth, h, g, part))
        return states.rows, metrics.rows

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

    def put(self, own: _Numbers, values: Tensor) -> None:
        """Keep the first rows, which are those of own nodes."""
        if not hasattr(self, "rows"):
            self.rows = torch.empty(self.num_nodes, values.size(1))
        self.rows[torch.from_numpy(own)] = values[: len(own)].float().cpu()


def _nodes(part: GraphPart) -> Tensor:
    assert part.place is not None
    return part.place.nodes
