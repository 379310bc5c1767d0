"""The contract of every model in the registry."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, get_type_hints

from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from argnn.errors import ConfigError
from argnn.functional.neighborhood import Edges
from argnn.nn.graph_statistics import MADE_BEFORE, lacks_statistics


def check_sizes(in_channels: int, hidden_channels: int, out_channels: int, num_layers: int) -> None:
    """Raise unless all sizes of a model are positive."""
    sizes = {
        "in_channels": in_channels,
        "hidden_channels": hidden_channels,
        "out_channels": out_channels,
        "num_layers": num_layers,
    }
    for name, size in sizes.items():
        if size < 1:
            raise ConfigError(f"{name} must be positive (got {size})")


#: For links: products of embeddings of scaled rows are so small that they say nothing for long.
ROWS_AS_THEY_ARE: dict[str, Any] = {"normalize_input": False}

_NOT_OPTIONS = ("self", "in_channels", "out_channels", "preset")

#: What the usual Euclidean networks are tuned over, with all widths and penalties of ARGNN's.
EUCLIDEAN_SEARCH_SPACE: dict[str, list[Any]] = {
    "hidden_channels": [32, 64, 128],
    "dropout": [0.0, 0.2, 0.5, 0.7],
    "input_dropout": [0.0, 0.5],
    "lr": [0.002, 0.01, 0.05],
    "weight_decay": [0.0, 5e-5, 5e-4, 1e-3, 3e-3],
}


class AbstractNodeModel(nn.Module, ABC):
    """A network from node features and edges to one vector of raw scores per node.

    Class attributes:
        citation: Where the method was published.
        space: The geometry it computes in.
        search_space: Settings worth tuning, by name.
        link_decoder: Decoder that scores pairs where the user names none.
        link_options: Options that differ where the model gives embeddings instead of scores.
        recordable: Whether forward and backward never wait for the device, once the graph has
            been seen, so that a CUDA graph can hold them.
        preset_sizes: By the name of each preset, the sizes where no settings are stored. Most
            models have one preset only.
        usual_train: Training settings that differ from the preset's where none are stored.
        has_trial: Whether a short trial on validation chooses options where none are stored.
        learns_metric: Whether :meth:`forward_with_metric` gives metrics, which penalties act on.
        encoder_head: Names of the parts of the model that are its encoder or its head.
    """

    citation: ClassVar[str]
    space: ClassVar[str]
    search_space: ClassVar[dict[str, list[Any]]]
    link_decoder: ClassVar[str] = "dot"
    link_options: ClassVar[dict[str, Any]] = {}

    preset_sizes: ClassVar[Mapping[str, dict[str, int]]] = {
        "default": {"hidden_channels": 64, "num_layers": 2}
    }
    usual_train: ClassVar[Mapping[str, Any]] = {"lr": 0.01, "weight_decay": 5e-4, "epochs": 200}
    has_trial: ClassVar[bool] = False
    learns_metric: ClassVar[bool] = False
    encoder_head: ClassVar[tuple[str, ...]] = ("encoder", "head")

    recordable: bool = False
    in_channels: int
    hidden_channels: int
    out_channels: int
    num_layers: int

    @classmethod
    def option_types(cls) -> dict[str, Any]:
        """Type of each option, by name: the arguments that the graph does not decide."""
        hints = get_type_hints(cls.__init__)
        return {name: hints[name] for name in _option_parameters(cls)}

    @classmethod
    def completed_options(cls, preset: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options with nothing left to a default, so that they can be stored.

        Args:
            preset: A name in ``preset_sizes``.
            options: The options that are given; they win over sizes of the preset and defaults.
        """
        defaults = {name: option.default for name, option in _option_parameters(cls).items()}
        return {**defaults, **cls.preset_sizes[preset], **options}

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Raw scores, ``[N, out_channels]``."""
        return self.forward_with_metric(x, edge_index)[0]

    @abstractmethod
    def forward_with_metric(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Raw scores, and the metric diagonals of each layer; none for fixed geometries."""

    def set_sizes(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int
    ) -> None:
        """Check the sizes and keep them; the first thing that a model's constructor does."""
        check_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.hidden_channels, self.num_layers = hidden_channels, num_layers

    def reset_parameters(self) -> None:
        """Draw all weights anew, in the order in which the model's parts were made."""
        for part in self.children():
            reset(part)

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Keep what the model has to know of its training graph as a whole; mostly nothing.

        Whatever is a mean or maximum over all nodes belongs here and into buffers: a node's scores
        must not depend on what else is in the graph. Called once, before the first step.
        """

    def reach(self) -> int | None:
        """How many hops around a node its scores depend on; None where that is not known.

        The graph that the nodes within so many hops induce, directions left aside, gives the node
        the scores that it has in the whole graph.
        """
        return None

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Take over a state; one without the statistics of a training graph is refused."""
        if strict and lacks_statistics(self.state_dict(), state_dict):
            raise ValueError(f"the state {MADE_BEFORE}")
        return super().load_state_dict(state_dict, strict, assign)

    def metric_parameters(self) -> list[nn.Parameter]:
        """The parameters that only shape the metric, for a learning rate of their own."""
        return []

    def parameter_groups(self) -> dict[str, str]:
        """The group of each parameter, by its name; each group may have its own weight decay.

        ``"metric"``: :meth:`metric_parameters`. ``"encoder_head"``: the parts that the class names
        as such. ``"layers"``: all others.
        """
        metric = {id(parameter) for parameter in self.metric_parameters()}
        groups = {}
        for name, parameter in self.named_parameters():
            outer = name.partition(".")[0] in self.encoder_head
            weights = "encoder_head" if outer else "layers"
            groups[name] = "metric" if id(parameter) in metric else weights
        return groups

    def node_parameters(self) -> list[nn.Parameter]:
        """The parameters with a row for every node; a model that has some knows no other graph."""
        return []

    def squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance of embeddings, ``[P, out_channels]`` each, in the model's space."""
        return (a - b).square().sum(-1)


def _option_parameters(model: type[AbstractNodeModel]) -> dict[str, inspect.Parameter]:
    return {
        name: parameter
        for name, parameter in inspect.signature(model.__init__).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name not in _NOT_OPTIONS
    }
