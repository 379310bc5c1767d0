"""Compute equal steps of an exported program once.

Every layer sums over the same edges. What the sums prepare, such as the order of the edges and
their weights, is in the program once for each sum; all copies but the first are removed here.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node


def share_steps(program: ExportedProgram) -> None:
    """Let equal steps of a program share one result; programs of inference draw no numbers."""
    graph = program.graph_module.graph
    returned = set(graph.output_node().all_input_nodes)
    first: dict[Any, Node] = {}
    for node in graph.nodes:
        if node.op != "call_function" or node in returned:  # the signature names what is returned
            continue
        # Sizes that are known only from the data have a name of their own each time they are met.
        sizes = tuple(map(str, _sizes(node.meta.get("val"))))
        key = (node.target, _frozen(node.args), _frozen(node.kwargs), sizes)
        earlier = first.setdefault(key, node)
        if earlier is not node:
            node.replace_all_uses_with(earlier)
    graph.eliminate_dead_code()
    program.graph_module.recompile()


def _sizes(value: Any) -> Iterator[Any]:
    """Sizes and types of all tensors in a value, or the value."""
    if isinstance(value, torch.Tensor):
        yield from (*value.shape, value.dtype)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _sizes(part)
    else:
        yield value


def _frozen(value: Any) -> Any:
    """The same as something that can be a key; 1, 1.0 and True stay different."""
    if isinstance(value, tuple | list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in sorted(value.items()))
    return value if isinstance(value, Node) else (type(value), value)
