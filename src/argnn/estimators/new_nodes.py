"""Predict for new nodes of a graph; what is the same for every request is prepared once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch_geometric.data import Data

from argnn.data.known_graph import KnownGraph
from argnn.data.new_nodes import read_new_nodes
from argnn.data.schema import Schema
from argnn.errors import ConfigError
from argnn.nn import AbstractNodeModel


@dataclass(frozen=True)
class Context:
    """A graph that new nodes are joined to; :meth:`GraphEstimator.context` makes one.

    Attributes:
        known: The graph, as the model reads it.
        schema: How tables of new nodes become features.
        model_schema: How the model encodes a graph.
    """

    known: KnownGraph
    schema: Schema
    model_schema: Schema | None


def prepared(source: Any, graph: Data, model_schema: Schema | None) -> Context:
    """A context from what the user gave, and the graph that the model reads in it."""
    own = source.get("schema") if isinstance(source, Data) else None
    return Context(KnownGraph(graph), own or graph.schema, model_schema)


def joined_part(
    model: AbstractNodeModel,
    nodes: Any,
    edges: Any,
    context: Context,
    read: Callable[[Data], Data],
    node_id: str | None,
) -> Data:
    """New nodes with the part of the context that their scores depend on.

    Args:
        model: The trained model, which knows how far it reaches.
        nodes: See :func:`argnn.data.new_nodes.read_new_nodes`.
        edges: See there.
        context: The graph that they are joined to.
        read: Encodes a graph as the model's training graph was.
        node_id: Column of the ids.
    """
    if model.node_parameters():
        raise ConfigError(
            "the model has a weight for each node of its training graph, and none for new nodes; "
            "argnn has none of these with adjacency_rows=false and a metric that is not free"
        )
    known = context.known
    sizes, schema = (known.rows, known.num_nodes), context.schema
    new = read_new_nodes(nodes, edges, *sizes, schema, node_id=node_id, weighted=known.weighted)
    own = new.graph.get("schema")
    is_read = own is not None and own == context.model_schema
    x = new.graph.x if is_read else read(new.graph).x
    hops = model.reach_with_degrees()
    reach = model.reach() if hops is None else hops
    part = known.part(x, new.edge_index, reach, new.edge_weight)
    part.name, part.node_ids = known.graph.name, new.graph.node_ids
    part.notes = list(new.graph.get("notes") or [])
    return part
