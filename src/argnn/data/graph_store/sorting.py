"""Sort edges that do not fit into memory, and merge duplicates as ``load`` does.

Edges are spread over files by ranges of their key ``source * N + target``. A file that is still
too large is spread again. What fits into memory is sorted there; the ranges follow each other, so
that the results do, too. The mean of the weights of three or more equal edges is computed with
more digits than ``load`` has, so that it does not depend on their order.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from argnn.errors import naming

Records = NDArray[Any]
Keys = NDArray[np.int64]

_PARTS = 64
#: Copies of a part that are in memory while it is sorted.
_COPIES = 4
#: Edges as they are given, and the same edges in the other direction: of equal edges at the same
#: time the first one counts, and they are counted apart.
_SIDES = ("given", "turned")


class EdgeSorter:
    """Takes edges in any order, and gives them sorted by source and target, each once.

    Its files in the folder are removed when their edges were given. ``memory`` counts bytes.
    """

    def __init__(
        self, folder: Path, num_nodes: int, *, weighted: bool, timed: bool, memory: int
    ) -> None:
        self.folder, self.num_nodes = folder, num_nodes
        self.weighted, self.timed, self.memory = weighted, timed, memory
        fields = [("key", "<i8")] + [("weight", "<f4")] * weighted + [("time", "<f8")] * timed
        self.dtype = np.dtype(fields)
        #: How many edges were given, without those that were turned and without self-loops.
        self.given = 0
        #: How many different ones are among them; known when all were sorted.
        self.distinct = 0
        self._open: list[_Spread] = []
        self._spread = self._new("edges", 0, max(1, num_nodes**2))

    def _new(self, name: str, low: int, high: int) -> "_Spread":
        self._open.append(_Spread(self.folder / name, self.dtype, low, high))
        return self._open[-1]

    def close(self) -> None:
        """Close the files of edges that nobody asked for."""
        for spread in self._open:
            spread.close()

    def add(
        self,
        source: Keys,
        target: Keys,
        weight: NDArray[np.float32] | None = None,
        time: NDArray[np.float64] | None = None,
        *,
        both: bool,
    ) -> None:
        """Take edges without self-loops; if ``both``, in both directions."""
        for side, (begin, end) in enumerate([(source, target), (target, source)][: 1 + both]):
            records = np.empty(len(begin), self.dtype)
            records["key"] = begin * self.num_nodes + end
            if weight is not None:
                records["weight"] = weight
            if time is not None:
                records["time"] = time
            self._spread.add(_SIDES[side], records)
        self.given += len(source)

    def sorted(self) -> Iterator[Records]:
        """The edges, part by part."""
        yield from self._sorted(self._spread)

    def _sorted(self, spread: "_Spread") -> Iterator[Records]:
        limit = self.memory // (_COPIES * self.dtype.itemsize)
        for part in range(_PARTS):
            low, high = spread.bounds(part)
            if spread.count(part) <= max(1, limit) or high - low <= 1:
                given, turned = (spread.take(side, part) for side in _SIDES)
                yield self._merged(given, turned)
                continue
            inner = self._new(f"{spread.path.name}-{part}", low, high)
            for side in _SIDES:
                for records in spread.pieces(side, part, max(1, limit)):
                    inner.add(side, records)
            yield from self._sorted(inner)

    def _merged(self, given: Records, turned: Records) -> Records:
        if self.dtype.names == ("key",):
            first = distinct(given["key"])
            self.distinct += len(first)
            keys = first if not len(turned) else distinct(np.concatenate([first, turned["key"]]))
            return keys.view(self.dtype)
        self.distinct += len(distinct(given["key"]))
        records = np.concatenate([given, turned])
        if self.timed:  # by ends, and of equal ones by time
            records = records[np.argsort(records["time"], kind="stable")]
        records = records[np.argsort(records["key"], kind="stable")]
        begins = np.flatnonzero(np.diff(records["key"], prepend=-1))
        found = records[begins]
        if not self.timed and len(begins):
            sums = np.add.reduceat(records["weight"].astype(np.float64), begins)
            found["weight"] = sums / np.diff(begins, append=len(records))
        return found


def distinct(keys: Keys) -> Keys:
    """Keys sorted, each once; numpy's own function is several times slower."""
    keys = np.sort(keys)
    kept = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=kept[1:])
    return keys[kept]


class _Spread:
    """Files of records by ranges of their keys, from ``low`` to below ``high``."""

    def __init__(self, path: Path, dtype: np.dtype[Any], low: int, high: int) -> None:
        self.path, self.dtype = path, dtype
        self._width = -(-(high - low) // _PARTS)
        self._bounds = [min(high, low + part * self._width) for part in range(_PARTS + 1)]
        self._files: dict[tuple[str, int], BinaryIO] = {}
        self._counts: dict[tuple[str, int], int] = {}

    def bounds(self, part: int) -> tuple[int, int]:
        return self._bounds[part], self._bounds[part + 1]

    def count(self, part: int) -> int:
        return sum(self._counts.get((side, part), 0) for side in _SIDES)

    def add(self, side: str, records: Records) -> None:
        part = ((records["key"] - self._bounds[0]) // self._width).astype(np.uint8)
        records = records[np.argsort(part, kind="stable")]  # a stable sort of bytes is fast
        places = np.bincount(part, minlength=_PARTS).cumsum()[:-1]
        for number, piece in enumerate(np.split(records, places)):
            if len(piece):
                self._write((side, number), piece)

    def _write(self, key: tuple[str, int], records: Records) -> None:
        path = self._path(*key)
        with naming(path):
            if key not in self._files:
                self._files[key] = path.open("xb")
            self._files[key].write(records.data)
        self._counts[key] = self._counts.get(key, 0) + len(records)

    def _path(self, side: str, part: int) -> Path:
        return self.path.with_name(f"{self.path.name}-{part}.{side}")

    def take(self, side: str, part: int) -> Records:
        """All records of a part, whose file is removed."""
        pieces = list(self.pieces(side, part, max(1, self._counts.get((side, part), 0))))
        return pieces[0] if pieces else np.empty(0, self.dtype)

    def pieces(self, side: str, part: int, count: int) -> Iterator[Records]:
        """The records of a part, so many at once; their file is removed."""
        file = self._files.pop((side, part), None)
        if file is None:
            return
        path = self._path(side, part)
        with naming(path):
            file.close()
            with path.open("rb") as opened:
                while block := opened.read(count * self.dtype.itemsize):
                    yield np.frombuffer(block, self.dtype)
            path.unlink()

    def close(self) -> None:
        for file in self._files.values():
            with suppress(OSError):
                file.close()
        self._files.clear()
