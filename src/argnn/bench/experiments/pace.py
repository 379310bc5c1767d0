"""How long a bench will still take, estimated from its finished cells."""

from collections import defaultdict
from collections.abc import Sequence

from argnn.bench.experiments.cells import Cell


class Pace:
    """Estimates the time left from seconds per unit of cost, by method where a cell is finished.

    Args:
        cells: What is to do.
        workers: How many cells run at the same time.
    """

    def __init__(self, cells: Sequence[Cell], workers: int) -> None:
        self.workers = workers
        self._left = {id(cell): cell for cell in cells}
        self._shares: dict[int, float] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._cost: defaultdict[str, float] = defaultdict(float)

    def moved(self, cell: Cell, share: float) -> None:
        """A running cell has done a share of its epochs."""
        self._shares[id(cell)] = share

    def finished(self, cell: Cell, seconds: float | None) -> None:
        """A cell is over; a failed one has no seconds and is not counted."""
        self._left.pop(id(cell), None)
        if seconds is not None:
            self._seconds[cell.method] += seconds
            self._cost[cell.method] += cell.cost

    def seconds_left(self) -> float | None:
        """The estimate, or None as long as nothing is known."""
        cost = sum(self._cost.values())
        if not self._left or not cost:
            return None if self._left else 0.0
        usual = sum(self._seconds.values()) / cost
        rests = []
        for key, cell in self._left.items():
            known = self._cost.get(cell.method)
            rate = self._seconds[cell.method] / known if known else usual
            rests.append(rate * cell.cost * (1 - self._shares.get(key, 0.0)))
        # With any number of workers, the longest cell has to finish.
        return max(sum(rests) / self.workers, max(rests))
