"""The interface of all models."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, get_type_hints

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from argnn.errors import ConfigError, require
from argnn.functional.neighborhood import Edges, needs_gradient, neighborhood, plain_path
from argnn.nn.graph_statistics import MADE_BEFORE, lacks_statistics

#: For links: products of embeddings of scaled rows are so small that they hardly learn at first.
UNSCALED_ROWS: dict[str, Any] = {"normalize_input": False}

_NOT_OPTIONS = ("self", "in_channels", "out_channels", "preset")

#: The search space of Euclidean networks. It has all widths and weight decays of ARGNN's.
EUCLIDEAN_SEARCH_SPACE: dict[str, list[Any]] = {
    "hidden_channels": [32, 64, 128],
    "dropout": [0.0, 0.2, 0.5, 0.7],
    "input_dropout": [0.0, 0.5],
    "lr": [0.002, 0.01, 0.05],
    "weight_decay": [0.0, 5e-5, 5e-4, 1e-3, 3e-3],
}


class AbstractNodeModel(nn.Module, ABC):
    """A network from node features and edges to one vector of raw scores per node.

    Most models share these arguments, and describe only what is different:

    - ``in_channels``: Size of the node features.
    - ``hidden_channels``: Width of the layers.
    - ``out_channels``: Number of scores per node.
    - ``num_layers``: Number of convolutions.
    - ``dropout``: Dropout on the hidden features.
    - ``input_dropout``: Dropout on the node features; None means the same as ``dropout``.
    - ``normalize_input``: Whether each row of the features is scaled to sum 1.

    Class attributes:
        citation: Where the method was published.
        space: The geometry it computes in.
        search_space: Settings worth tuning, by name.
        link_decoder: Decoder that scores pairs if the user names none.
        link_options: Options that are different when the model gives embeddings for links.
        recordable: Whether forward and backward never wait for the device after the first call,
            so that a CUDA graph can hold them.
        preset_sizes: The sizes of each preset, for graphs without stored settings. Most models have
            one preset only.
        usual_train: Training settings that replace the preset's, for graphs without stored
            settings.
        has_trial: Whether a short trial on validation chooses options if none are stored.
        learns_metric: Whether :meth:`forward_with_metric` gives metrics, which penalties act on.
        encoder_head: Names of the parts of the model that are its encoder or its head.
        takes_edge_weight: Whether :meth:`forward_with_metric` takes prepared edges with weights.
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

    takes_edge_weight: bool = False
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

        Given options win over the sizes of the preset, and these over defaults.
        """
        defaults = {name: option.default for name, option in _option_parameters(cls).items()}
        return {**defaults, **cls.preset_sizes[preset], **options}

    def forward(self, x: Tensor, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        """Raw scores, ``[N, out_channels]``.

        Args:
            x: Node features, ``[N, in_channels]``.
            edge_index: Source and target of each edge, ``[2, E]``.
            edge_weight: Weight of each edge, finite and not negative, ``[E]``.
        """
        if torch.compiler.is_compiling() and needs_gradient(edge_weight):
            return self._uncompiled(x, edge_index, edge_weight)
        if edge_weight is not None:
            require_weights_taken(self)
            edge_index = neighborhood(edge_index, x.size(0), edge_weight)
        return self.forward_with_metric(x, edge_index)[0]

    @plain_path
    def _uncompiled(self, *arguments: Any) -> Tensor:
        return self.forward(*arguments)

    @abstractmethod
    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores, and the metrics of each layer; an empty list without metrics.

        A metric is diagonal, ``[N, D]``, or factored, ``[N, 1 + R, D]``.

        Edges are a tensor, or where they have weights, what
        ``argnn.functional.neighborhood.neighborhood`` prepares.
        """

    def set_sizes(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int
    ) -> None:
        """Check and keep the sizes; constructors call this first."""
        self.in_channels, self.out_channels = in_channels, out_channels
        self.hidden_channels, self.num_layers = hidden_channels, num_layers
        for name in ("in_channels", "hidden_channels", "out_channels", "num_layers"):
            require(getattr(self, name) >= 1, name, "positive", getattr(self, name))

    def reset_parameters(self) -> None:
        """Draw all weights anew, in the order in which the model's parts were made."""
        for part in self.children():
            reset(part)

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Store what the model needs to know about its whole training graph; mostly nothing.

        Means and maxima over all nodes belong here, in buffers: the scores of a node must not
        depend on far nodes of the graph. Called once, before the first step.
        """

    def reach(self) -> int | None:
        """How many hops around a node its scores depend on; None if that is not known.

        The sub-graph of all nodes within this many hops, in any direction, gives the node the same
        scores as the whole graph.
        """
        return None

    def reach_with_degrees(self) -> int | None:
        """As :meth:`reach`, for a sub-graph whose nodes know their degrees in the whole graph.

        None if the model counts degrees itself, so that it cannot use those of
        ``argnn.functional.graph_part.GraphPart``.
        """
        return None

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Load a state; one without the statistics of the training graph is refused."""
        if strict and lacks_statistics(self.state_dict(), state_dict):
            raise ValueError(f"the state {MADE_BEFORE}")
        return super().load_state_dict(state_dict, strict, assign)

    def metric_parameters(self) -> list[nn.Parameter]:
        """The parameters of the metric alone, which may have their own learning rate."""
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
        """The parameters with one row per node; a model that has some fits one graph only."""
        return []

    @property
    def metric_size(self) -> tuple[int, ...] | None:
        """Shape of the metric of one node in the last layer; None without a metric."""
        return None

    def positive_parameters(self) -> list[nn.Parameter]:
        """The parameters that must stay positive, on which a Riemannian optimiser may act."""
        return []

    def constrain(self) -> None:
        """Bring parameters back into their bounds; called after every step of an optimiser."""

    def squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance of embeddings, ``[P, out_channels]`` each, in the model's space."""
        return (a - b).square().sum(-1)


def require_weights_taken(model: AbstractNodeModel | type[AbstractNodeModel]) -> None:
    """Raise where a model would leave out the weights of edges."""
    if not model.takes_edge_weight:
        kind = model if isinstance(model, type) else type(model)
        raise ConfigError(
            f"{kind.__name__} takes no edge weights (takes_edge_weight is False); "
            "train on a graph without weights"
        )


def _option_parameters(model: type[AbstractNodeModel]) -> dict[str, inspect.Parameter]:
    return {
        name: parameter
        for name, parameter in inspect.signature(model.__init__).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name not in _NOT_OPTIONS
    }
