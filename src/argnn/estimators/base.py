"""What the two estimators share: settings, training, embedding, saving."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from argnn.errors import ConfigError
from argnn.estimators.reading import Reading
from argnn.nn import ARGNN, MODELS, PRESETS, AbstractNodeModel
from argnn.nn.models.formulation import formulation
from argnn.registry import canonical_name
from argnn.runs.provenance import versions
from argnn.settings.model_spec import ModelSpec, seeded
from argnn.settings.usual import Usual, usual_settings
from argnn.store.model_card import model_card
from argnn.store.model_folder import Checkpoint, write_folder
from argnn.train import FitResult, Task, TrainConfig, fit, scores_and_metrics, train_config
from argnn.train.calibration import Calibration
from argnn.train.devices import resolve_device

_LARGEST_SEED = 2**31 - 1
_SIZES = ("hidden_channels", "num_layers")


@dataclass(frozen=True)
class Settings:
    """Everything that decides a training, settled.

    Attributes:
        spec: What is built.
        train: How it is trained.
        source: Where the settings come from, in words.
        seed: Seed of weights, dropout and drawn splits.
        device: ``"cpu"`` or ``"cuda"``.
    """

    spec: ModelSpec
    train: TrainConfig
    source: str
    seed: int
    device: str


class GraphEstimator(BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn has no types
    """Base of the estimators: parameters as scikit-learn wants them, and one way to train.

    A subclass says in :attr:`task` what it predicts.
    """

    task: str

    model: str
    preset: str
    model_options: Mapping[str, Any] | None
    train_options: Mapping[str, Any] | None
    load_options: Mapping[str, Any] | None
    epochs: int | None
    directed: bool
    row_normalize: bool
    device: str
    random_state: Any

    # ---- settings ------------------------------------------------------------------------------

    def _reading(self, schema: dict[str, Any] | None = None, **more: Any) -> Reading:
        options = {**dict(self.load_options or {}), **more}
        return Reading(self.directed, self.row_normalize, options, schema)

    def _names(self) -> tuple[str, str]:
        """The model's and the preset's own names."""
        model = canonical_name(self.model, MODELS, "model")
        preset = canonical_name(self.preset, PRESETS, "preset")
        if model != "argnn" and preset != "default":
            raise ConfigError(f"preset '{preset}' belongs to argnn; {model} has none")
        return model, preset

    def _settings(
        self,
        usual: Usual,
        sizes: tuple[int, int],
        seed: int,
        decoder: str | None = None,
    ) -> Settings:
        """Usual settings with the user's on top, checked on a toy graph.

        Args:
            usual: What to start from.
            sizes: Numbers of features and of classes.
            seed: Seed of the training.
            decoder: For links, what scores the pairs.
        """
        model, preset = self._names()
        options = {**usual.options, **dict(self.model_options or {})}
        spec = ModelSpec(model, complete_options(model, preset, options), decoder, *sizes)
        spec.try_out()
        changes = {**usual.train, **dict(self.train_options or {}), "seed": seed}
        if self.epochs is not None:
            changes["epochs"] = self.epochs
        given = [*(self.model_options or ()), *(self.train_options or ())]
        note = f"; set by the user: {', '.join(given)}" if given else ""
        train = train_config(preset, changes)
        return Settings(spec, train, usual.source + note, seed, resolve_device(self.device))

    def _usual(self) -> Usual:
        model, preset = self._names()
        return usual_settings(model, self.task, preset, directed=self.directed)

    # ---- training ------------------------------------------------------------------------------

    def _train(self, visible: Data, task: Task, settings: Settings) -> FitResult:
        """Train, and keep what can be said without labels."""
        with seeded(settings.seed):
            model = settings.spec.build().to(settings.device)
            result = fit(model, visible, task, settings.train)
        self.model_ = model
        self.settings_ = settings
        self.n_features_in_ = visible.x.size(1)
        self.history_ = [asdict(record) for record in result.history]
        self.best_epoch_ = result.best_epoch
        self.n_iter_ = result.epochs_run
        self.val_score_ = result.val_score
        return result

    def _keep_graph_facts(self, graph: Data) -> None:
        self.schema_ = graph.get("schema")
        names = graph.get("feature_names")
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.graph_facts_ = graph_facts(graph)
        self.notes_ = [str(note) for note in graph.get("notes") or []]

    def _keep_calibration(self, found: Calibration | None) -> None:
        self.calibration_ = found
        self.temperature_ = 1.0 if found is None else found.temperature
        self.ece_ = None if found is None else found.ece

    # ---- using ---------------------------------------------------------------------------------

    def read(self, source: Any, **options: Any) -> Data:
        """Load a graph to predict on, encoded as the training graph was.

        Args:
            source: Whatever ``fit`` takes; labels are not needed.
            **options: Further arguments of :func:`argnn.data.load`.
        """
        check_is_fitted(self, "model_")
        graph = self._reading(self.schema_, **options).graph(source)
        if graph.x.size(1) != self.n_features_in_:
            raise ConfigError(
                f"the graph has {graph.x.size(1)} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input"
            )
        return graph

    @torch.no_grad()
    def _outputs(self, graph: Data) -> tuple[Tensor, list[Tensor]]:
        """Raw outputs of the model and its metrics, on the CPU."""
        device = next(self.model_.parameters()).device
        x, edges = graph.x.to(device), graph.edge_index.to(device)
        precision = self.settings_.train.precision
        try:
            outputs, metrics = scores_and_metrics(self.model_.eval(), x, edges, precision)
        except ValueError as error:  # a model that only works on the graph it was made for
            raise ConfigError(str(error)) from error
        return outputs.float().cpu(), [g.float().cpu() for g in metrics]

    def embed(self, graph: Any) -> NDArray[np.float32]:
        """A vector for each node, ``[N, D]``: what scores are read out from.

        That is the last hidden layer of argnn, or the embedding that a link predictor scores
        pairs by. The other methods have no layer that is comparable; they give their raw scores.

        Args:
            graph: Whatever ``fit`` takes; labels are not needed.
        """
        return self._embedding(self.read(graph)).numpy()

    @torch.no_grad()
    def _embedding(self, graph: Data) -> Tensor:
        if isinstance(self.model_, ARGNN):
            device = next(self.model_.parameters()).device
            x, edges = graph.x.to(device), graph.edge_index.to(device)
            return self.model_.eval().hidden_states(x, edges)[0][-1].float().cpu()
        return self._outputs(graph)[0]

    def metric_field(self, graph: Any) -> list[NDArray[np.float32]]:
        """Learned metric diagonals ``[N, D]`` of each layer; none for a fixed geometry.

        Args:
            graph: Whatever ``fit`` takes; labels are not needed.
        """
        return [g.numpy() for g in self._outputs(self.read(graph))[1]]

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted model to a folder that :func:`argnn.load` reads.

        Args:
            path: A new folder.
            overwrite: Whether a model that is there already may be replaced.
        """
        check_is_fitted(self, "model_")
        checkpoint = self._checkpoint()
        state = self.model_.state_dict()
        write_folder(Path(path), checkpoint, state, model_card(checkpoint), overwrite=overwrite)

    @abstractmethod
    def _checkpoint(self) -> Checkpoint:
        """Everything about the fitted model except its weights."""

    def _stored_params(self) -> dict[str, Any]:
        params = dict(self.get_params(deep=False))
        plain = params["random_state"] is None or isinstance(params["random_state"], int)
        if not plain:
            params["random_state"] = self.settings_.seed
        for name in ("model_options", "train_options", "load_options"):
            params[name] = None if params[name] is None else dict(params[name])
        return params

    def _facts(self) -> dict[str, Any]:
        """What the card tells besides the model itself."""
        settings = self.settings_
        return {
            "graph": self.graph_facts_,
            "split_rule": self.split_rule_,
            "counts": self.counts_,
            "best_epoch": self.best_epoch_,
            "epochs_run": self.n_iter_,
            "val_score": self.val_score_,
            "scores": self.scores_,
            "calibration": None if self.calibration_ is None else asdict(self.calibration_),
            "source": settings.source,
            "train": asdict(settings.train),
            "versions": versions(),
        }

    def _restore(self, checkpoint: Checkpoint, model: AbstractNodeModel) -> None:
        """Take over what :meth:`_checkpoint` gave; ``history_`` is not stored."""
        facts = checkpoint.facts
        train = TrainConfig(**facts["train"])
        self.model_ = model
        self.settings_ = Settings(checkpoint.spec, train, facts["source"], train.seed, "cpu")
        self.n_features_in_ = checkpoint.spec.in_channels
        self.schema_ = checkpoint.schema
        self.graph_facts_, self.split_rule_ = dict(facts["graph"]), str(facts["split_rule"])
        self.counts_, self.scores_ = dict(facts["counts"]), dict(facts["scores"])
        self.best_epoch_, self.n_iter_ = int(facts["best_epoch"]), int(facts["epochs_run"])
        self.val_score_ = float(facts["val_score"])
        self._keep_calibration(_stored_calibration(facts["calibration"]))
        self.temperature_ = checkpoint.temperature


def _stored_calibration(values: Mapping[str, Any] | None) -> Calibration | None:
    if values is None:
        return None
    numbers = {name: float(value) for name, value in values.items()}
    return Calibration(count=int(numbers.pop("count")), **numbers)


def complete_options(model: str, preset: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a model with nothing left to a default, so that they can be stored."""
    if model != "argnn":
        return dict(options)
    sizes = {name: options[name] for name in _SIZES if name in options}
    switches = {name: value for name, value in options.items() if name not in _SIZES}
    return {**sizes, **asdict(formulation(preset, switches))}


def drawn_seed(random_state: Any) -> int:
    """A seed from what scikit-learn calls a random state; None draws a new one each time.

    Nobody's generator is touched but one that is handed in.
    """
    if random_state is None:
        return int(np.random.default_rng().integers(_LARGEST_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_LARGEST_SEED))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_LARGEST_SEED))
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not whole or random_state < 0:
        raise ConfigError(f"random_state must be a seed, a generator or None (got {random_state})")
    return int(random_state)


def graph_facts(graph: Data) -> dict[str, Any]:
    """Name, sizes and rules of a graph, for the record."""
    return {
        "name": str(graph.name),
        "nodes": graph.x.size(0),
        "edges": graph.edge_index.size(1),
        "features": graph.x.size(1),
        "edge_rule": graph.get("edge_rule"),
        "feature_rule": graph.get("feature_rule"),
    }
