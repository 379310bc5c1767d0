"""Turn an exported program into an ONNX model.

Some operators of torch have no counterpart in ONNX. The functions here compute the same by others,
and take their place before the conversion.
"""

import logging
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from argnn.errors import ConfigError, package_needed
from argnn.outputs.plain_ops import OperatorTable
from argnn.wording import shortened

_NEEDED = ("onnx", "onnxscript", "onnxruntime")
_ADVICE = "install it with pip install 'argnn[onnx]'"
#: Steps of a search by halves: enough for any list that fits into memory.
_HALVES = 40
#: Largest difference of probabilities that rounding explains.
_TOLERANCE = 1e-4


def onnx_bytes(program: ExportedProgram, name: str, facts: Mapping[str, str]) -> bytes:
    """An ONNX model of a program, for any number of nodes, edges and pairs.

    It is run once and compared with the program, on a graph that the program was not traced with.
    """
    for package in _NEEDED:
        with package_needed(f"ONNX needs the package {package}; {_ADVICE}"):
            import_module(package)
    try:
        with warnings.catch_warnings(), torch.no_grad(), _Quiet():
            warnings.simplefilter("ignore")
            known = program.run_decompositions(_table())
            _drop_assertions(known)
            # The optimizer takes a small number that is added to a divisor for zero.
            model = torch.onnx.export(known, dynamo=True, verbose=False, optimize=False)
            assert model is not None
            content = _content(model.model_proto, facts)
            gap = _gap(program, content)
    except Exception as error:  # the conversion may fail in any way
        reason = f"{type(error).__name__}: {shortened(error)}"
        raise ConfigError(f"{name} cannot become an ONNX model: {reason}") from error
    if not gap < _TOLERANCE:
        raise ConfigError(f"{name} cannot become an ONNX model: its results differ by {gap:.2g}")
    return content


def _content(proto: Any, facts: Mapping[str, str]) -> bytes:
    for node in proto.graph.node:
        node.ClearField("metadata_props")  # where in our source a step comes from
    for key, value in facts.items():
        proto.metadata_props.add(key=key, value=value)
    content: bytes = proto.SerializeToString()
    return content


def _gap(program: ExportedProgram, content: bytes) -> float:
    """Largest difference between a model and its program, on another graph than the traced one."""
    from onnxruntime import InferenceSession, SessionOptions

    x, *others = program.example_inputs[0]
    nodes = x.size(0) - 3
    smaller = [part if part.is_floating_point() else part % nodes for part in others]
    inputs = [x[:nodes], *(part[..., :-1] for part in smaller)]
    options = SessionOptions()
    options.log_severity_level = 4  # errors are raised, too
    session = InferenceSession(content, options)
    names = [argument.name for argument in session.get_inputs()]
    arrays = (part.contiguous().numpy() for part in inputs)
    (found,) = session.run(None, dict(zip(names, arrays, strict=True)))
    return float((torch.from_numpy(found) - program.module()(*inputs)).abs().max())


class _Quiet:
    """Keep the conversion from logging what a user need not know."""

    def __enter__(self) -> None:
        self._before = logging.root.manager.disable
        logging.disable(logging.WARNING)

    def __exit__(self, *_: Any) -> None:
        logging.disable(self._before)


def _drop_assertions(program: ExportedProgram) -> None:
    """Remove what only raises errors: ONNX does not know errors, nor the largest sizes of torch."""
    graph = program.graph_module.graph
    for node in reversed(graph.nodes):
        if str(node.target).startswith("aten._assert_"):
            graph.erase_node(node)
    graph.eliminate_dead_code()


def _table() -> OperatorTable:
    """The function for each operator that ONNX does not know."""
    aten = torch.ops.aten
    return {
        aten.embedding_bag.padding_idx: _bags,
        aten._embedding_bag_per_sample_weights_backward.default: _products,
        aten.searchsorted.Tensor: _searchsorted,
        aten.remainder.Scalar: _remainder,
        aten.index_add.default: _index_add,
        aten.argsort.stable: _argsort,
        aten.repeat_interleave.Tensor: _repeat_interleave,
        aten.sum.dim_IntList: _sum,
    }


def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: int = 1) -> Tensor:
    assert (dim, alpha) == (0, 1)
    places = index if source.dim() == 1 else index.unsqueeze(-1).expand_as(source)
    return x.scatter_add(0, places, source)


def _bags(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    assert mode == 0
    starts = offsets[:-1] if include_last_offset else offsets
    bag = _last_begun(starts, indices.size(0))
    rows = weight.index_select(0, indices) * per_sample_weights.unsqueeze(-1)
    total = _index_add(weight.new_zeros(starts.size(0), weight.size(1)), 0, bag, rows)
    return total, offsets, offsets, offsets  # the others are needed for gradients only


def _last_begun(starts: Tensor, size: int) -> Tensor:
    """For each of ``size`` places, the number of the last part that has begun, ``[size]``.

    An empty part begins where the next one does; empty parts at the end begin behind all places.
    """
    begun = starts.new_zeros(size + 1)
    return _index_add(begun, 0, starts, torch.ones_like(starts)).cumsum(0)[:-1] - 1


def _repeat_interleave(repeats: Tensor, **_: Any) -> Tensor:
    """The conversion's own way compares every number with every place."""
    size: Any = repeats.sum().item()
    torch._check(size >= 0)
    torch._check(size < 2**62)
    return _last_begun(repeats.cumsum(0) - repeats, size)


def _products(
    grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, bag: Tensor, *_: Any
) -> Tensor:
    products: Tensor = _sum(grad.index_select(0, bag) * weight.index_select(0, indices), [-1])
    return products


def _searchsorted(known: Tensor, wanted: Tensor, **_: Any) -> Tensor:
    """How many entries of a sorted list are smaller, found by halves."""
    smaller = torch.zeros_like(wanted)
    for power in reversed(range(_HALVES)):
        tried = smaller + 2**power
        inside = tried <= known.size(0)
        value = known.index_select(0, torch.where(inside, tried - 1, 0))
        smaller = torch.where(inside & (value < wanted), tried, smaller)
    return smaller


def _remainder(x: Tensor, divisor: int) -> Tensor:
    return x - (x // divisor) * divisor


def _argsort(x: Tensor, *, stable: bool, dim: int = -1, descending: bool = False) -> Tensor:
    return torch.sort(x, dim=dim, descending=descending)[1]


def _sum(x: Tensor, dim: list[int], keepdim: bool = False, **options: Any) -> Any:
    """Sums of rows, with one row added: for sums of no rows onnxruntime gives a wrong shape."""
    if x.dim() != 2 or dim != [-1] or keepdim or options:
        return NotImplemented
    more = torch.cat([x, x.new_zeros(1, x.size(1))])
    return torch.ops.aten.sum.dim_IntList(more, [1])[:-1]
