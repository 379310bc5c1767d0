"""Compressed rows of a graph, cut into pieces of similar work for CPU threads and GPU programs."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

#: Longest run of edges that one GPU program walks; longer rows are split and added up after.
MAX_SEGMENT = 512
#: Work of a row besides its edges, in edges: reading its own features, writing its result.
_ROW_COST = 4


@dataclass(frozen=True)
class Segments:
    """Pieces of rows, each for one GPU program.

    Attributes:
        row: Row of each segment, ``[S]`` int32.
        start: First entry of each segment, ``[S]`` int64.
        stop: One past its last entry, ``[S]`` int64.
        slot: Where a piece of a split row leaves its partial sum, ``[S]`` int32; -1 where the
            segment is the whole row and writes the result itself.
        split_row: The rows that were split, ``[R]`` int32.
        split_slot: First slot of each of them, and one past the last of all, ``[R + 1]`` int32.
        num_slots: Number of partial sums.
    """

    row: Tensor
    start: Tensor
    stop: Tensor
    slot: Tensor
    split_row: Tensor
    split_slot: Tensor
    num_slots: int


@dataclass(frozen=True, eq=False)
class Csr:
    """For every row the columns it gathers from, in a fixed order.

    Attributes:
        rowptr: First entry of each row, ``[N + 1]`` int64.
        column: Column of each entry, ``[E]`` int32.
        edge: Position of each entry among the entries of the matrix this one is the transpose
            of, ``[E]`` int64; None in that matrix itself.
        weight: Weight of each entry, ``[E]`` float64; None where all are one.
    """

    rowptr: Tensor
    column: Tensor
    edge: Tensor | None = None
    weight: Tensor | None = None
    #: What a backend made of it and wants to keep.
    arrays: dict[Any, Any] = field(default_factory=dict, repr=False)

    @staticmethod
    def pair(
        source: Tensor, target: Tensor, num_nodes: int, weight: Tensor | None = None
    ) -> tuple["Csr", "Csr"]:
        """The matrix that gathers sources at targets, and its transpose.

        Duplicate edges stay; entries of a row are sorted by column.
        """
        order = _sorted_by(target, source, num_nodes)
        source, target = source[order], target[order]
        weight = None if weight is None else weight.detach()[order]
        forward = Csr(row_starts(target, num_nodes), source.int(), weight=weight)
        back = _sorted_by(source, target, num_nodes)
        turned = None if weight is None else weight[back]
        return forward, Csr(row_starts(source, num_nodes), target[back].int(), back, turned)

    def weight_as(self, dtype: torch.dtype) -> Tensor | None:
        """:attr:`weight` in the precision of a kernel, made once."""
        if self.weight is None:
            return None
        key = ("weight", dtype)
        if key not in self.arrays:
            self.arrays[key] = self.weight.to(dtype)
        return self.arrays[key]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.rowptr.numel() - 1

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self.column.numel()

    @cached_property
    def segments(self) -> Segments:
        """The rows, the long ones in pieces of at most :data:`MAX_SEGMENT` entries."""
        degree = self.rowptr.diff()
        pieces = ((degree + MAX_SEGMENT - 1) // MAX_SEGMENT).clamp_min(1)
        row = torch.repeat_interleave(pieces)
        first = pieces.cumsum(0) - pieces
        place = torch.arange(row.numel(), device=row.device) - first[row]
        start = self.rowptr[:-1][row] + place * MAX_SEGMENT
        stop = torch.minimum(start + MAX_SEGMENT, self.rowptr[1:][row])
        is_split = pieces[row] > 1
        slot = torch.where(is_split, is_split.cumsum(0) - 1, -1)
        split_row = (pieces > 1).nonzero().squeeze(-1)
        ends = pieces[split_row].cumsum(0)
        return Segments(
            row=row.int(),
            start=start,
            stop=stop,
            slot=slot.int(),
            split_row=split_row.int(),
            split_slot=torch.cat([ends.new_zeros(1), ends]).int(),
            num_slots=int(is_split.sum()),
        )

    def parts(self, count: int) -> Tensor:
        """Boundaries of ``count`` runs of rows with about equal work, ``[count + 1]`` int64."""
        work = self.rowptr + _ROW_COST * torch.arange(self.rowptr.numel())
        total = self.num_entries + _ROW_COST * self.num_rows
        wanted = torch.linspace(0, total, count + 1, dtype=torch.float64).long()
        bounds = torch.searchsorted(work, wanted)
        bounds[0], bounds[-1] = 0, self.num_rows
        return bounds


def _sorted_by(major: Tensor, minor: Tensor, num_nodes: int) -> Tensor:
    return torch.argsort(major * num_nodes + minor, stable=True)


def row_starts(row: Tensor, num_rows: int) -> Tensor:
    """Where each row begins if entries are sorted by row, and their number, ``[num_rows + 1]``."""
    counts = torch.bincount(row, minlength=num_rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
