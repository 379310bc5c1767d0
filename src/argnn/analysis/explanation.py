r"""Explain the prediction for one node by the messages it receives and the axes of its metric.

All numbers come from the forward pass; nothing is fitted or perturbed. A large message need not be
the reason for a prediction. To find that, use the masks of ``torch_geometric.explain``, which
work with :class:`~argnn.nn.ARGNN`.

The message of node :math:`j` in a layer is a vector, and both forms have a weight with
:math:`\text{message} = |\text{weight}| \cdot \|\mathbf{W}\mathbf{h}_j\|`:

* scalar form: :math:`w_{ij}\,\tau'_{ij}\,\sigma(\alpha_{ij})`, with its sign;
* operator form: there is neither :math:`\tau_{ij}` nor :math:`\alpha_{ij}`, since the metric acts
  on each channel. The weight is the change of the message's length,
  :math:`w_{ij}\,\|\mathbf{T}_i\mathbf{W}\mathbf{h}_j\| / \|\mathbf{W}\mathbf{h}_j\|`, not negative.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis.layers import observed
from argnn.analysis.messages import message_gain
from argnn.analysis.properties import feature_names, node_names
from argnn.analysis.tables import require_pandas
from argnn.errors import DataError
from argnn.functional.neighborhood import Neighborhood, edges_of, neighborhood
from argnn.functional.structure import DESCRIPTOR_NAMES
from argnn.nn import ARGNN, AbstractNodeModel, ARConv

if TYPE_CHECKING:
    from pandas import DataFrame

#: Columns of :attr:`NodeExplanation.neighbors` after the layer.
NEIGHBOR_COLUMNS = (
    "direction", "hop", "neighbor", "tau", "attention", "constant", "weight", "message", "share",
)  # fmt: skip


@dataclass(frozen=True)
class NodeExplanation:
    """What led to the scores of one node.

    Attributes:
        node: Number of the node.
        name: Its id.
        prediction: Name of the class with the highest score.
        probabilities: Softmax of the scores, not calibrated, by class.
        form: ``"scalar"`` or ``"operator"``.
        neighbors: One row per layer and message, largest first: ``direction`` of the edge and
            ``hop``; ``tau`` and ``attention`` (after the sigmoid), missing in the
            operator form; the ``constant`` weight; the final ``weight``; the length of the
            ``message`` and its ``share`` of all messages in the layer.
        axes: One row per layer and metric axis, most stretched first: ``axis``, its ``name``
            where the metric lives on the input features, ``g`` (of a factored metric, the entry of
            its matrix on the diagonal), ``log_g``, and ``above_mean``, by how much ``log_g``
            exceeds its mean over all nodes.
    """

    node: int
    name: str
    prediction: str
    probabilities: dict[str, float]
    form: str
    neighbors: "DataFrame"
    axes: "DataFrame"

    def text(self, top: int = 3) -> str:
        """The explanation in a few lines, with ``top`` neighbours and axes of each layer."""
        chance = self.probabilities[self.prediction]
        lines = [f"Node {self.name}: {self.prediction} ({100 * chance:.1f} %), {self.form} form."]
        for layer in sorted(set(self.axes["layer"])):
            heard = self.neighbors[self.neighbors["layer"] == layer].head(top)
            axes = self.axes[self.axes["layer"] == layer].head(top)
            lines.append(f"Layer {layer}: {_heard(heard)}; most stretched: {_stretched(axes)}.")
        return "\n".join(lines)


@torch.no_grad()
def explain_node(model: AbstractNodeModel, graph: Data, node: int) -> NodeExplanation:
    """Explain the scores that an :class:`~argnn.nn.ARGNN`, which is left as it was, gives one node.

    The graph is on the device of the model.

    Raises:
        DataError: The model has no metric, or the graph has no such node.
    """
    if not isinstance(model, ARGNN):
        raise DataError(f"{type(model).__name__} learns no metric: there is nothing to explain by")
    if not 0 <= node < graph.num_nodes:
        raise DataError(f"no node {node} in a graph of {graph.num_nodes}")
    entered, states, metrics = observed(model, graph)
    hood = neighborhood(edges_of(graph), graph.num_nodes)
    scores = model.read_out(states, hood)
    names, chances = _class_names(graph, model), scores[node].softmax(-1).tolist()
    rows: list[dict[str, Any]] = []
    axes: list[dict[str, Any]] = []
    layers = zip(model.convs, entered, metrics, strict=True)
    features = [*feature_names(graph), *DESCRIPTOR_NAMES]  # the latter with structure_features
    for number, (conv, h, g) in enumerate(layers, start=1):
        assert isinstance(conv, ARConv)
        rows += [{"layer": number, **row} for row in _messages(conv, h, g, hood, node)]
        on_features = number == 1 and conv.message_form.on_inputs and model.encoder is None
        axes += _axes(number, g, node, features if on_features else None)
    return NodeExplanation(
        node=node,
        name=node_names(graph, [node])[0],
        prediction=names[max(range(len(chances)), key=chances.__getitem__)],
        probabilities=dict(zip(names, chances, strict=True)),
        form=model.formulation.modulation,
        neighbors=_named(rows, graph),
        axes=require_pandas().DataFrame(axes),
    )


# --- messages ---------------------------------------------------------------------------------


def _messages(
    conv: ARConv, h: Tensor, g: Tensor, hood: Neighborhood, node: int
) -> list[dict[str, Any]]:
    """One row per message that the node receives in a layer, largest first."""
    rows: list[dict[str, Any]] = []
    numbers, s = iter(range(len(conv.message_maps()))), conv.sending(h, hood)
    for direction in conv.directions():
        relation = hood.relation(direction)
        constant = torch.zeros_like(h[:, 0])
        constant[node] = 1
        for hop in range(1, conv.hops + 1):
            # The row of the next power of the normalised adjacency, [N].
            weight = relation.edge_weight(conv.normalization, constant.dtype)
            passed = constant[relation.target] * weight
            constant = torch.zeros_like(constant).index_add_(0, relation.source, passed)
            number = next(numbers)
            sent = conv.sent(number, h, None), conv.sent(number, h, s)
            found = _heard_from(conv, h, g, constant, node, sent)
            rows += [{"direction": direction, "hop": hop, **row} for row in found]
    total = sum(row["message"] for row in rows)
    for row in rows:
        row["share"] = row["message"] / total if total > 0 else float("nan")
    return sorted(rows, key=lambda row: -row["message"])


def _heard_from(
    conv: ARConv,
    h: Tensor,
    g: Tensor,
    constant: Tensor,
    node: int,
    messages: tuple[Tensor, Tensor],
) -> list[dict[str, Any]]:
    """Rows of the neighbours; their messages are given before and after the sending metric."""
    source = constant.nonzero().flatten()
    mapped, sent = (message[source] for message in messages)
    length = mapped.norm(dim=-1)
    tau = attention = torch.full_like(length, torch.nan)
    if not conv.message_form.on_edges:
        factor = message_gain(mapped, sent, g[node].expand(len(sent), *g.shape[1:]), conv.eps0)
    else:
        edges = torch.stack([source, torch.full_like(source, node)])
        factor = tau = AF.edge_modulation(h, g, edges, conv.eps0)
        if conv.attention:
            alpha = AF.edge_attention(h, g, edges, neighbor_norm=conv.neighbor_norm)
            attention = alpha.sigmoid()
            factor = tau * attention
    weight = constant[source] * factor
    columns = (source, tau, attention, constant[source], weight, weight.abs() * length)
    names = ("neighbor", "tau", "attention", "constant", "weight", "message")
    values = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in values]


# --- axes, names and words --------------------------------------------------------------------


def _axes(layer: int, g: Tensor, node: int, names: list[str] | None) -> list[dict[str, Any]]:
    lengths = AF.metric_diagonal(g.double())
    log_g = lengths.log()
    own, mean = log_g[node], log_g.mean(0)
    return [
        {
            "layer": layer,
            "axis": axis,
            "name": None if names is None else names[axis],
            "g": float(lengths[node, axis]),
            "log_g": float(own[axis]),
            "above_mean": float(own[axis] - mean[axis]),
        }
        for axis in own.argsort(descending=True, stable=True).tolist()
    ]


def _class_names(graph: Data, model: ARGNN) -> list[str]:
    given = [str(name) for name in graph.get("class_names") or []]
    if len(given) == model.out_channels == len(set(given)):
        return given
    return [f"class {number}" for number in range(model.out_channels)]


def _named(rows: list[dict[str, Any]], graph: Data) -> "DataFrame":
    """The rows as a table that also has the id of each neighbour."""
    table = require_pandas().DataFrame(rows, columns=["layer", *NEIGHBOR_COLUMNS])
    names = node_names(graph, map(int, table["neighbor"]))
    table.insert(table.columns.get_loc("neighbor") + 1, "name", names)
    return table


def _heard(rows: "DataFrame") -> str:
    if not len(rows):
        return "heard no neighbour"
    if rows["share"].isna().all():
        return "every message is zero"
    parts = [
        f"node {row.name} {100 * row.share:.0f} % (weight {row.weight:+.3g})"
        for row in rows.drop(columns="layer").itertuples(index=False, name="Row")
    ]
    return "heard " + ", ".join(parts)


def _stretched(rows: "DataFrame") -> str:
    return ", ".join(
        f"{name if isinstance(name, str) else f'axis {axis}'} g = {g:.3g}"
        for name, axis, g in zip(rows["name"], rows["axis"], rows["g"], strict=True)
    )
