"""Numbers of the whole training graph that a module stores."""

from collections.abc import Callable, Iterable
from typing import Any, Self

import torch
from torch import Tensor, nn

from argnn import functional as AF
from argnn.functional.graph_part import GraphPart
from argnn.functional.neighborhood import Edges
from argnn.functional.precision import accumulation_dtype, is_wide
from argnn.functional.structure import NUM_DESCRIPTORS, column_statistics, standardized

#: Why a state without these numbers is refused.
MADE_BEFORE = (
    "was made before models stored the statistics of their training graph; train the model again"
)

#: Numbers that standardise the structural descriptor.
OF_DESCRIPTOR: dict[str, tuple[float, tuple[int, ...]]] = {
    "mean": (0.0, (NUM_DESCRIPTORS,)),
    "deviation": (1.0, (NUM_DESCRIPTORS,)),
}


def lacks_statistics(expected: Iterable[str], found: Iterable[str]) -> bool:
    """Whether a state lacks all graph statistics that a model expects, and nothing else."""
    missing = set(expected) - set(found)
    return missing != set() and missing == {name for name in expected if "statistics." in name}


class GraphStatistics(nn.Module):
    """Numbers such as means over all nodes, taken from the training graph and kept in float64.

    They belong to the state of a model, like its weights. So the scores of a node do not change
    with other nodes of the graph that the model is given.

    Args:
        **neutral: By name, the value before any graph was seen, and the shape.
    """

    fitted: Tensor

    def __init__(self, **neutral: tuple[float, tuple[int, ...]]) -> None:
        super().__init__()
        self._neutral = {name: value for name, (value, _) in neutral.items()}
        for name, (value, shape) in neutral.items():
            self.register_buffer(name, torch.full(shape, value, dtype=torch.float64))
        self.register_buffer("fitted", torch.tensor(False))
        #: The same as a Python value: reading it does not wait for the device.
        self.is_fitted = False

    @torch.no_grad()
    def store(self, **values: Tensor) -> None:
        """Store these numbers."""
        for name, value in values.items():
            self.get_buffer(name).copy_(value)
        self._set_fitted(True)

    def reset_parameters(self) -> None:
        """Go back to the neutral numbers."""
        for name, value in self._neutral.items():
            self.get_buffer(name).fill_(value)
        self._set_fitted(False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Go to another device; the numbers stay on the CPU if that one has no float64."""
        return super()._apply(fn, recurse) if is_wide(fn(torch.empty(0)).device) else self

    def _set_fitted(self, fitted: bool) -> None:
        self.fitted.fill_(fitted)
        self.is_fitted = fitted

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self.is_fitted = bool(self.fitted)

    def extra_repr(self) -> str:
        """The names of the numbers."""
        return ", ".join(self._neutral)


def descriptor_statistics(edge_index: Edges, num_nodes: int) -> dict[str, Tensor]:
    """The numbers of :data:`OF_DESCRIPTOR` of a graph."""
    mean, deviation = column_statistics(AF.structural_descriptor(edge_index, num_nodes))
    return {"mean": mean, "deviation": deviation}


def standard_descriptor(statistics: GraphStatistics, h: Tensor, edge_index: Edges) -> Tensor:
    """The descriptor of every row of ``h``, standardised by stored numbers, ``[N, 5]``."""
    mean, deviation = (statistics.get_buffer(name) for name in OF_DESCRIPTOR)
    num_nodes = edge_index.num_nodes if isinstance(edge_index, GraphPart) else h.size(0)
    s = standardized(AF.structural_descriptor(edge_index, num_nodes), mean, deviation)
    return s[: h.size(0)].to(accumulation_dtype(h.dtype)).to(h)
