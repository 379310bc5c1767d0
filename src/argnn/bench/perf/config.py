"""What to measure: sizes, rows, and how often."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from argnn.errors import require
from argnn.registry import canonical_name
from argnn.train.devices import PRECISIONS, on_cuda

#: Classes of the random labels.
CLASSES = 10
#: Degree of node 0 of a power-law graph, where there are that many nodes.
HUB_DEGREE = 100_000
GRAPHS = ("random", "power-law")
#: Factors on nodes and edges that ``--scaling`` goes through.
SCALES = (1, 2, 4, 8)

_TOO_MANY = 2**31


@dataclass(frozen=True)
class RowSpec:
    """One line of the table.

    Attributes:
        label: What the table calls it.
        preset: Preset of ARGNN; None for a rival.
        mode: Which kernels ARGNN uses, ``"fused"`` or ``"plain"``; None for a rival.
        metric: Where the metric of ARGNN comes from; None as the preset has it.
        recordable: Whether its step never waits for the device, so that a CUDA graph can hold it.
    """

    label: str
    preset: str | None = None
    mode: str | None = None
    metric: str | None = None
    recordable: bool = True


ROWS: Mapping[str, RowSpec] = {
    "paper": RowSpec("argnn paper, fused", "paper", "fused"),
    "paper-plain": RowSpec("argnn paper, plain", "paper", "plain", recordable=False),
    "default": RowSpec("argnn default, fused", "default", "fused"),
    "default-plain": RowSpec("argnn default, plain", "default", "plain", recordable=False),
    "message": RowSpec("argnn metric=message, fused", "default", "fused", "message"),
    "structure": RowSpec("argnn metric=structure, fused", "default", "fused", "structure"),
    "gcn-best": RowSpec("argnn gcn, fused"),
    "gcn-pyg": RowSpec("PyG GCN"),
    "gat": RowSpec("PyG GAT", recordable=False),
}
#: The rows of ``--scaling``.
SCALING_ROWS = ("paper", "default", "gcn-best", "gcn-pyg")
#: The rows that every other is compared with: PyG's GCN on an edge list, and the fastest one that
#: we know, our own.
YARDSTICKS = ("gcn-pyg", "gcn-best")


@dataclass(frozen=True)
class PerfConfig:
    """All settings of a measurement; no default is added elsewhere.

    Attributes:
        nodes: Number of nodes.
        edges: Number of listed edges, both directions counted; an odd one is rounded down.
        channels: Width of every layer.
        layers: Number of layers.
        input_channels: Size of the random features.
        graph: ``"random"`` or ``"power-law"``.
        models: Names of the rows, in their order.
        device: ``"cpu"``, ``"cuda"``, one GPU such as ``"cuda:1"``, or ``"mps"``.
        dtype: ``"float32"``, ``"tf32"``, or ``"bfloat16"`` for autocast, as in training.
        dropout: Dropout of every model.
        penalties: Whether the steps of ARGNN have both penalties.
        repeats: Most measured steps of a row.
        budget: Seconds for a row; a slow row gets the smallest number of steps all the same.
        threads: CPU threads.
        seed: Seed of graph, features and weights.
        memory: Whether peak memory is measured.
        record: Whether steps are also measured as recorded CUDA graphs, as training replays them.
        scaling: Whether to go through several sizes instead of one.
    """

    nodes: int
    edges: int
    channels: int
    layers: int
    input_channels: int
    graph: str
    models: tuple[str, ...]
    device: str
    dtype: str
    dropout: float
    penalties: bool
    repeats: int
    budget: float
    threads: int
    seed: int
    memory: bool
    record: bool
    scaling: bool

    def __post_init__(self) -> None:
        sizes = {"edges": 2, "nodes": 2, "channels": 1, "layers": 1, "input_channels": 1}
        for name, least in {**sizes, "repeats": 1, "threads": 1}.items():
            value, option = getattr(self, name), f"--{name.replace('_', '-')}"
            require(value >= least, option, f"at least {least}", value)
            require(value < _TOO_MANY, option, f"below {_TOO_MANY}", value)
        require(0 < self.budget < math.inf, "--budget", "positive and finite", self.budget)
        require(0 <= self.dropout < 1, "--dropout", "in [0, 1)", self.dropout)
        require(0 <= self.seed < 2**63, "--seed", f"from 0 to {2**63 - 1}", self.seed)
        for name, choices in (("graph", GRAPHS), ("dtype", PRECISIONS)):
            value = getattr(self, name)
            require(value in choices, f"--{name}", f"one of {', '.join(choices)}", f"'{value}'")
        require(bool(self.models), "--models", f"some of {', '.join(ROWS)}", "none")
        if self.record:
            fits = on_cuda(self.device) and not self.scaling
            expected = "left out with --scaling and without a GPU of CUDA, which replays the steps"
            require(fits, "--record", expected, f"--device {self.device}")
        if self.scaling:
            self._check_scaling()
        for size in self.sizes():
            _check_edges(size.graph, size.nodes, size.edges)

    def _check_scaling(self) -> None:
        others = [name for name in self.models if name not in SCALING_ROWS]
        allowed = f"some of {', '.join(SCALING_ROWS)} with --scaling"
        require(not others, "--models", allowed, ", ".join(others))
        expected = "left out with --scaling, which draws both kinds"
        require(self.graph == "random", "--graph", expected, f"'{self.graph}'")

    def sizes(self) -> "list[PerfConfig]":
        """One configuration per size: this one, or those that ``--scaling`` goes through."""
        if not self.scaling:
            return [self]
        one = {
            factor: replace(
                self, nodes=factor * self.nodes, edges=factor * self.edges, scaling=False
            )
            for factor in SCALES
        }
        return [*one.values(), replace(one[SCALES[-1]], graph="power-law")]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {**asdict(self), "models": list(self.models)}


def chosen_rows(text: str | None, scaling: bool) -> tuple[str, ...]:
    """The rows that a list with commas names; all that are allowed where there is none.

    Example:
        >>> chosen_rows("GCN-PyG, paper-plain", scaling=False)
        ('gcn-pyg', 'paper-plain')
    """
    if text is None:
        return SCALING_ROWS if scaling else tuple(ROWS)
    names = [name.strip() for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys(canonical_name(name, ROWS, "row of --models") for name in names))


def hub_degree(nodes: int) -> int:
    """Degree of node 0 of a power-law graph.

    Example:
        >>> hub_degree(60), hub_degree(1_000_000)
        (59, 100000)
    """
    return min(HUB_DEGREE, nodes - 1)


def _check_edges(graph: str, nodes: int, edges: int) -> None:
    """Raise for a dense graph: drawing random edges until enough differ would take too long."""
    if graph == "random":
        most = nodes * (nodes - 1) // 2
        require(edges <= most, "--edges", f"at most {most} for {nodes} nodes", edges)
        return
    hub = hub_degree(nodes)
    least, most = 2 * hub, 2 * hub + (nodes - 1) * (nodes - 2) // 2
    expected = f"from {least} to {most} for a power-law graph of {nodes} nodes"
    require(least <= edges // 2 * 2 <= most, "--edges", expected, edges)
