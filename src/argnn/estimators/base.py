"""What all estimators share: settings, training, embedding."""

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from argnn.analysis.tables import require_pandas
from argnn.data import adjacency_of, features_and_edges
from argnn.data.graph_parts import GraphParts
from argnn.errors import ConfigError
from argnn.estimators.display import summary_html
from argnn.estimators.importances import chosen_groups, column_groups, shuffled_scores
from argnn.estimators.new_nodes import Context, joined_part, prepared
from argnn.estimators.node_selection import NodeSelection, selected_rows
from argnn.estimators.reading import Reading
from argnn.estimators.saving import SavedEstimator, named_weights
from argnn.functional.graph_part import GraphPart, WholeDegrees
from argnn.functional.neighborhood import Edges, edges_of
from argnn.nn import ARGNN, AbstractNodeModel, model_class, model_name
from argnn.nn.models.base import require_weights_taken
from argnn.runs.batch_sources import sees_parts
from argnn.runs.layerwise import is_large, layerwise_outputs, pieces_of
from argnn.runs.progress import CountingBar, FitProgress, console_for
from argnn.runs.train_one import train_one
from argnn.runs.trial import TrialJob
from argnn.settings.options import Overrides
from argnn.settings.resolve import (
    IN_MEMORY,
    PRESET,
    BaseSettings,
    Request,
    base_settings,
    is_directed,
    resolve,
)
from argnn.settings.run_config import RunConfig
from argnn.train import Task, scores_and_metrics
from argnn.train.devices import resolve_device
from argnn.train.selection import selection_of
from argnn.waiting import short_waits

logger = logging.getLogger(__name__)

TaskKind = TypeVar("TaskKind", bound=Task)

#: Names and values of the columns of a table.
NamedColumns = list[tuple[str, Any]]
Fitted = TypeVar("Fitted", bound="GraphEstimator")
Arguments = ParamSpec("Arguments")

_LARGEST_SEED = 2**31 - 1
#: What a table calls the parts of training.
PART_NAMES = ("train", "val", "test")


def whole_or_not(
    fit: Callable[Concatenate[Fitted, Arguments], Fitted],
) -> Callable[Concatenate[Fitted, Arguments], Fitted]:
    """Let the estimator stay as it was where ``fit`` fails or Ctrl-C ends it."""

    @wraps(fit)
    def fitted(self: Fitted, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Fitted:
        before = dict(self.__dict__)
        try:
            with short_waits():
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = before  # in one step: another Ctrl-C may come
            raise

    return fitted


class GraphEstimator(SavedEstimator):
    """Base of the estimators: parameters as scikit-learn wants them, and one way to train.

    A subclass says in :attr:`task` what it predicts.
    """

    task: str

    model: str | type[AbstractNodeModel]
    preset: str
    model_options: Mapping[str, Any] | None
    train_options: Mapping[str, Any] | None
    load_options: Mapping[str, Any] | None
    epochs: int | None
    scoring: str | None
    trial: bool
    directed: bool
    row_normalize: bool
    device: str
    random_state: Any
    verbose: bool | None

    def _keep_parameters(self, given: Mapping[str, Any]) -> None:
        """Keep what ``__init__`` was given, each under its own name, as scikit-learn wants it."""
        self.__dict__.update({name: value for name, value in given.items() if name != "self"})

    # ---- settings ------------------------------------------------------------------------------

    def _reading(
        self, schema: dict[str, Any] | None = None, task: str = "node", **more: Any
    ) -> Reading:
        options = {**dict(self.load_options or {}), **more}
        return Reading(self.directed, self.row_normalize, options, schema, task)

    def _request(self, source: Any, seed: int) -> Request:
        """The request with which ``argnn train`` would train the same model."""
        return Request(
            data=source if isinstance(source, str) else IN_MEMORY,
            model=model_name(self.model),
            preset=self.preset,
            seed=seed,
            directed=self.directed,
            row_normalize=self.row_normalize,
            task=self.task,
            ratio=getattr(self, "ratio", None),
            decoder=getattr(self, "decoder", None),
            spanning_forest=getattr(self, "spanning_forest", False),
            split_by=getattr(self, "split_by", None),
        )

    def _resolved(
        self, request: Request, graph: Data, sizes: Mapping[str, int], base: BaseSettings
    ) -> RunConfig:
        """The complete configuration: a base with the user's changes on top.

        ``sizes`` are the numbers of ``classes``, and of ``targets`` where these are no classes.
        """
        if graph.get("edge_weight") is not None:
            require_weights_taken(model_class(self.model))
        return resolve(
            request,
            self._changes(),
            [base],
            splits=(0,),
            graph={**graph_facts(graph), **sizes},
            device=resolve_device(self.device),
            threads=torch.get_num_threads(),
        )

    def _changes(self) -> Overrides:
        """Single settings of the user."""
        selection_of(self.task, self.scoring, "scoring")
        changes = Overrides(dict(self.model_options or {}), dict(self.train_options or {}))
        if "seed" in changes.train:
            raise ConfigError("the seed is set with random_state")
        own = {
            "epochs": self.epochs,
            "select": self.scoring,
            "class_weight": named_weights(getattr(self, "class_weight", None)),
            "threshold": getattr(self, "threshold", None),
        }
        changes.train.update({name: value for name, value in own.items() if value is not None})
        return changes

    # ---- training ------------------------------------------------------------------------------

    def _fit_nodes(
        self,
        request: Request,
        graph: Data,
        sizes: Mapping[str, int],
        make_task: Callable[[str], TaskKind],
    ) -> tuple[TaskKind, Tensor]:
        """Settle the settings, with a trial where one is needed, and train.

        Gives the task and the raw outputs of the trained model. ``sizes`` are those of
        :meth:`_resolved`, and ``make_task`` gives the task on a device.
        """
        base = base_settings(request)
        # Settings are checked once before the trial: it must not end in a typing mistake.
        config = self._resolved(request, graph, sizes, base or PRESET)
        visible = features_and_edges(graph)
        if not sees_parts(config.train):
            visible = visible.to(config.device)
        task = make_task(config.device)
        with FitProgress(console_for(self.verbose)) as progress:
            if base is None and self.trial:
                size, directed = task.validation_size, is_directed(request)
                job = TrialJob(config, 0, directed, self._changes(), validation_size=size)
                chosen = job.settings(visible, task, progress.trying(job))
                progress.tried(chosen)
                config = self._resolved(request, graph, sizes, chosen)
            self._train(visible, task, config, progress)
        self._keep_graph_facts(graph)
        outputs, metrics = self._outputs(visible)
        self.metric_field_ = [g.numpy() for g in metrics]
        return task, outputs

    def _train(self, visible: Data, task: Task, config: RunConfig, progress: FitProgress) -> None:
        """Train, and keep what can be said without labels."""
        trained = train_one(config, visible, task, on_epoch=progress.training(config))
        progress.trained(config, trained)
        self.model_, self.settings_ = trained.model, config
        self.n_features_in_ = visible.x.size(1)
        self.history_ = [asdict(record) for record in trained.result.history]
        self.best_epoch_ = trained.result.best_epoch
        self.n_iter_ = trained.result.epochs_run
        self.val_score_ = trained.result.val_score
        self.fit_seconds_ = trained.result.seconds

    def _keep_graph_facts(self, graph: Data) -> None:
        self.schema_ = graph.get("schema")
        names = graph.get("feature_names")
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.graph_facts_ = graph_facts(graph)
        self.notes_ = [str(note) for note in graph.get("notes") or []]

    # ---- using ---------------------------------------------------------------------------------

    def read(self, source: Any, **options: Any) -> Data:
        """Load a graph to predict on, encoded as the training graph was.

        Args:
            source: Whatever ``fit`` takes; labels are not needed.
            **options: Further arguments of :func:`argnn.data.load`.
        """
        check_is_fitted(self, "model_")
        source = source.graph if isinstance(source, NodeSelection) else source
        graph = self._reading(self.schema_, **options).graph(source)
        if graph.x.size(1) != self.n_features_in_:
            raise ConfigError(
                f"the graph has {graph.x.size(1)} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input"
            )
        return graph

    def _fitted_graph(self) -> Data:
        check_is_fitted(self, "model_")
        if not hasattr(self, "graph_"):
            raise ConfigError("a model from disk does not know its graph: give graph=")
        graph: Data = self.graph_
        return graph

    def context(self, graph: Any) -> Context:
        """Prepare a graph that new nodes will be joined to, once for many requests.

        Args:
            graph: Whatever ``fit`` takes; labels are not needed.
        """
        return prepared(graph, self.read(graph), self.schema_)

    def read_new(self, new_nodes: Any, new_edges: Any, context: Any) -> Data:
        """New nodes with the part of a graph that their scores depend on.

        Args:
            new_nodes: As for :meth:`ARGNNClassifier.predict_proba`.
            new_edges: As there.
            context: A graph, or what :meth:`context` made of it.
        """
        check_is_fitted(self, "model_")
        if not isinstance(context, Context):
            context = self.context(context)
        if context.model_schema != self.schema_:
            raise ConfigError("the context was prepared for another model")
        node_id = (self.load_options or {}).get("node_id")
        return joined_part(self.model_, new_nodes, new_edges, context, self.read, node_id)

    def _asked_about(self, graph: Any, new_edges: Any, context: Any) -> Data:
        """The graph to predict on, or new nodes of the context."""
        if context is not None:
            return self.read_new(graph, new_edges, context)
        if new_edges is not None:
            raise ConfigError("new_edges needs a context, the graph that new nodes belong to")
        return self.read(graph)

    def told(self, graph: Any = None) -> Data:
        """A graph as the model reads it, with its known labels and parts.

        Args:
            graph: Whatever ``fit`` takes; the graph of ``fit`` where not given.
        """
        return self._fitted_graph() if graph is None else self.read(graph)

    def outputs(self, graph: Data) -> Tensor:
        """The raw outputs of the model on a graph that :meth:`read` gave, ``[N, C]``."""
        return self._outputs(graph, metrics=False)[0]

    @torch.no_grad()
    def _outputs(self, graph: Data, *, metrics: bool = True) -> tuple[Tensor, list[Tensor]]:
        """Raw outputs of the model and its metrics, on the CPU; for a part, of its new nodes.

        A large graph is computed layer by layer, and without its metrics unless they are needed.
        """
        device = next(self.model_.parameters()).device
        precision = self.settings_.train.precision
        if graph.get("wanted") is None and is_large(self.model_, graph.x.size(0)):
            parts = GraphParts(graph.x, adjacency_of(graph), device)
            pieces = pieces_of(parts.num_nodes)
            return layerwise_outputs(self.model_.eval(), parts, pieces, precision, metrics=metrics)
        seen = features_and_edges(graph).to(device)
        try:
            edges = self._edges(graph, seen)
            outputs, found = scores_and_metrics(self.model_.eval(), seen.x, edges, precision)
        except ValueError as error:  # a model that only works on the graph it was made for
            raise ConfigError(str(error)) from error
        if graph.get("wanted") is not None:
            outputs, *found = (part[graph.wanted] for part in (outputs, *found))
        return outputs.float().cpu(), [g.float().cpu() for g in found]

    def _edges(self, graph: Data, seen: Data) -> Edges:
        """The edges of a graph, in the form that the model computes with."""
        if graph.get("wanted") is None or self.model_.reach_with_degrees() is None:
            return edges_of(seen)
        device = seen.edge_index.device
        counts = (graph.degree, graph.out_degree, graph.neighbors)
        degrees = WholeDegrees(*(count.to(device) for count in counts))
        return GraphPart(seen.edge_index, degrees, seen.get("edge_weight"))

    def embed(self, graph: Any) -> NDArray[np.float32]:
        """A vector for each node, ``[N, D]``: what scores are read out from.

        That is the last hidden layer of argnn, or the embedding that a link predictor scores
        pairs by. The other methods have no layer that is comparable; they give their raw scores.

        Args:
            graph: Whatever ``fit`` takes; labels are not needed.
        """
        return selected_rows(graph, self._embedding(self.read(graph)).numpy())

    @torch.no_grad()
    def _embedding(self, graph: Data) -> Tensor:
        if isinstance(self.model_, ARGNN):
            device = next(self.model_.parameters()).device
            seen = features_and_edges(graph).to(device)
            states = self.model_.eval().hidden_states(seen.x, edges_of(seen))[0]
            return states[-1].float().cpu()
        return self._outputs(graph, metrics=False)[0]

    def metric_field(self, graph: Any) -> list[NDArray[np.float32]]:
        """Learned metric diagonals ``[N, D]`` of each layer; none for a fixed geometry.

        Args:
            graph: Whatever ``fit`` takes; labels are not needed.
        """
        return [selected_rows(graph, g.numpy()) for g in self._outputs(self.read(graph))[1]]

    def importances(
        self,
        graph: Any = None,
        *,
        mask: Any = None,
        columns: Sequence[str] | None = None,
        repeats: int = 5,
        most: int = 200,
        random_state: Any = 0,
    ) -> Any:
        """How much the score falls when a column of the input is shuffled, as a pandas table.

        All features of one column of a table are shuffled together, among all nodes. The score is
        that of :meth:`score`, for links the AUROC. It is computed on the validation nodes or pairs
        of ``fit``, from which no weight was learned. Test labels are not read, so that a column may
        be left out because of this table.

        Args:
            graph: Whatever ``fit`` takes, with labels; the graph of ``fit`` where not given.
            mask: Nodes to score, as a mask or as indices; those of validation where not given, and
                all labelled ones of a graph whose validation nodes are not known.
            columns: Names of columns; all where not given.
            repeats: How often each column is shuffled.
            most: More columns are refused: each costs as many predictions as there are repeats.
            random_state: Seed of the shuffling.

        Returns:
            For each ``column`` the mean fall of the score, ``importance``, its ``deviation`` over
            the repeats, and its number of ``features``; the most important first.
        """
        read, score = self._judging(graph, mask)
        groups = chosen_groups(column_groups(read), columns, most)

        def scored(x: Tensor) -> float:
            shuffled = copy.copy(read)
            shuffled.x = x
            return score(shuffled)

        seed = drawn_seed(random_state)
        with CountingBar(console_for(self.verbose), "shuffled columns") as tell, short_waits():
            falls = shuffled_scores(self, read.x, groups, scored, repeats, seed, tell)
        table = frame(
            [
                ("column", list(groups)),
                ("importance", falls.mean(1)),
                ("deviation", falls.std(1)),
                ("features", [len(group) for group in groups.values()]),
            ]
        )
        return table.sort_values("importance", ascending=False, kind="stable", ignore_index=True)

    def _judging(self, graph: Any, mask: Any) -> tuple[Data, Callable[[Data], float]]:
        """A graph with its known labels, and a function that scores the model on it."""
        raise NotImplementedError

    def report(
        self, out: str | Path = "report.html", graph: Any = None, *, force: bool = False
    ) -> Path:
        """Write the page of ``argnn analyze`` about the fitted model: see :func:`argnn.report`.

        Args:
            out: The page to write.
            graph: Whatever ``fit`` takes; the graph of ``fit`` where not given.
            force: Whether an existing file may be replaced.
        """
        import argnn  # the page is made above the estimators

        return argnn.report(self, out, graph, force=force)

    def _html_repr(self) -> str:
        """scikit-learn's box for notebooks; below it, what was learned."""
        box = str(super()._html_repr())
        try:
            return box + (summary_html(self) if hasattr(self, "model_") else "")
        except Exception:  # a display must not fail: the box alone is what others show
            logger.debug("no summary of the estimator", exc_info=True)
            return box


def ids_of(graph: Data) -> Sequence[Any]:
    """The ids of the nodes, or their numbers."""
    ids: Sequence[Any] | None = graph.get("node_ids")
    return range(graph.x.size(0)) if ids is None else ids


def frame(columns: NamedColumns) -> Any:
    """A pandas table of named columns."""
    pandas = require_pandas()
    table = pandas.DataFrame(dict(enumerate(values for _, values in columns)))
    table.columns = [name for name, _ in columns]
    return table


def drawn_seed(random_state: Any) -> int:
    """A seed from what scikit-learn calls a random state; None draws a new one each time."""
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
