"""A classifier of nodes that follows the conventions of scikit-learn."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from torch import Tensor
from torch_geometric.data import Data

from argnn.errors import ConfigError
from argnn.estimators.base import GraphEstimator, drawn_seed
from argnn.estimators.labels import as_mask, as_objects, class_table, encode
from argnn.estimators.reading import chosen_masks, read_labelled, read_labels
from argnn.nn import AbstractNodeModel
from argnn.runs import trial
from argnn.runs.problems import node_score_values
from argnn.runs.trial import TrialJob
from argnn.settings.resolve import PRESET, Request, base_settings, is_directed
from argnn.store.model_folder import Checkpoint
from argnn.train import NodeClassification
from argnn.train.calibration import calibrate, probabilities


class ARGNNClassifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc] # no types there
    """Classify the nodes of a graph.

    A graph is anything that :func:`argnn.data.load` takes: a PyG ``Data``, ``(X, edge_index)``, a
    networkx graph, pandas tables, a scipy adjacency with features, a path, a name.

    Args:
        model: A name in ``argnn.nn.MODELS`` or of an entry point ``argnn.models``, or a class of
            your own; see :func:`argnn.nn.model_class`.
        preset: ``"default"``, ``"paper"`` or ``"reference"``; only argnn has more than the first.
        model_options: Options of the model that differ from its usual ones.
        train_options: Training settings that differ, by the names of ``argnn.train.TrainConfig``.
        epochs: Most epochs to train for.
        trial: Let short runs on validation choose the switches of argnn, as ``argnn train`` does
            for a graph without stored settings; takes some seconds on a small graph.
        val_fraction: Share of the training nodes that is set aside where there is no ``val_mask``.
        calibrate: Whether a temperature is chosen on the validation nodes.
        directed: Keep the directions of edges.
        row_normalize: Scale the rows of the features to sum one.
        load_options: Further arguments of :func:`argnn.data.load`.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        random_state: Seed of weights, dropout and drawn splits; None for new ones each time.

    Attributes:
        classes_: The labels, in the order of the columns of :meth:`predict_proba`.
        model_: The trained ``torch`` model.
        best_epoch_: The epoch with the best validation accuracy.
        val_score_: That accuracy.
        history_: One record per epoch; not after :func:`argnn.load`.
        metric_field_: Learned metric diagonals of each layer on the training graph; not after
            :func:`argnn.load`, see :meth:`metric_field`.
        temperature_: What raw scores are divided by before they become probabilities.
        ece_: Expected calibration error on the validation nodes, None without calibration.
        settings_: All settings, and where they come from.
        n_features_in_: Number of features.
        notes_: What was understood or changed while the graph was read; not after
            :func:`argnn.load`.

    Example:
        >>> from argnn.data import mixed
        >>> graph = mixed()
        >>> clf = ARGNNClassifier("gcn", epochs=5).fit(graph)
        >>> clf.predict(graph).shape == (graph.num_nodes,)
        True
    """

    task = "node"

    def __init__(
        self,
        model: str | type[AbstractNodeModel] = "argnn",
        preset: str = "default",
        *,
        model_options: Mapping[str, Any] | None = None,
        train_options: Mapping[str, Any] | None = None,
        epochs: int | None = None,
        trial: bool = True,
        val_fraction: float = 0.2,
        calibrate: bool = True,
        directed: bool = False,
        row_normalize: bool = False,
        load_options: Mapping[str, Any] | None = None,
        device: str = "auto",
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.preset = preset
        self.model_options = model_options
        self.train_options = train_options
        self.epochs = epochs
        self.trial = trial
        self.val_fraction = val_fraction
        self.calibrate = calibrate
        self.directed = directed
        self.row_normalize = row_normalize
        self.load_options = load_options
        self.device = device
        self.random_state = random_state

    def fit(
        self, graph: Any, y: Any = None, train_mask: Any = None, val_mask: Any = None
    ) -> "ARGNNClassifier":
        """Learn from the training nodes, and choose the epoch by the validation nodes.

        Labels outside the two masks are not read.

        Args:
            graph: The graph.
            y: Label of each node, texts or numbers; None, NaN and -1 mean that there is none.
                Those of the graph where not given.
            train_mask: Nodes to learn from, as a mask or as indices; else the masks of the graph,
                else all labelled nodes.
            val_mask: Nodes to choose the epoch by; else a share of the training nodes.
        """
        seed = drawn_seed(self.random_state)
        seen = read_labelled(graph, y, self._reading())
        train, val, rule = chosen_masks(seen, train_mask, val_mask, self.val_fraction, seed)
        visible_nodes = train | val
        hidden_away = seen.labels.copy()
        hidden_away[~visible_nodes.numpy()] = None
        classes = class_table(hidden_away)
        if len(classes) < 2:
            raise ConfigError(f"a classifier needs at least two classes (got {classes.tolist()})")
        codes = encode(hidden_away, classes, visible_nodes)
        self._fit(self._request(graph, seed), seen.graph, classes, codes, train, val)
        self.split_rule_ = rule
        return self

    def _fit(
        self,
        request: Request,
        graph: Data,
        classes: NDArray[Any],
        codes: Tensor,
        train: Tensor,
        val: Tensor,
    ) -> None:
        base = base_settings(request)
        # Settings are checked once before the trial: it must not end in a typing mistake.
        config = self._resolved(request, graph, len(classes), base or PRESET)
        device = config.device
        visible = Data(x=graph.x, edge_index=graph.edge_index).to(device)
        task = NodeClassification(codes.to(device), train.to(device), val.to(device))
        if base is None and self.trial:
            job = TrialJob(config, 0, is_directed(request), trial.TRIAL_EPOCHS)
            base = job.settings(visible, task)
            config = self._resolved(request, graph, len(classes), base)
        self._train(visible, task, config)
        self.classes_ = classes
        self.counts_ = {"training nodes": int(train.sum()), "validation nodes": int(val.sum())}
        self._keep_graph_facts(graph)
        logits, metrics = self._outputs(visible)
        self.metric_field_ = [g.numpy() for g in metrics]
        self._keep_calibration(calibrate(logits[val], codes[val]) if self.calibrate else None)
        self.scores_ = {"val": node_score_values(logits[val], codes[val])}

    def predict_proba(
        self, graph: Any, new_edges: Any = None, *, context: Any = None
    ) -> NDArray[np.float64]:
        """Probability of each class at each node, ``[N, C]``, in the order of ``classes_``.

        With a ``context``, the nodes are new ones of that graph. Their probabilities are those that
        the whole joined graph would give; only the part that they depend on is computed.

        Args:
            graph: The training graph, or another one with the same features. With a ``context``,
                the new nodes: a pandas table or a list of dictionaries with an id and the columns
                of the training table; or features ``[M, F]``, whose rows come after those of the
                context.
            new_edges: With a ``context``, edges among new nodes and nodes of the context. For
                tables, a table with columns ``source`` and ``target``, or a list of pairs of ids;
                for features, row numbers ``[2, E]``.
            context: The graph that the new nodes belong to. :meth:`context` prepares it once for
                many calls.
        """
        return self.proba(self._asked_about(graph, new_edges, context))

    def proba(self, graph: Data) -> NDArray[np.float64]:
        """As :meth:`predict_proba`, for a graph that :meth:`read` gave."""
        logits, _ = self._outputs(graph)
        return probabilities(logits, self.temperature_).numpy()

    def predict(self, graph: Any, new_edges: Any = None, *, context: Any = None) -> NDArray[Any]:
        """The most probable class of each node, ``[N]``.

        Args:
            graph: As for :meth:`predict_proba`.
            new_edges: As there.
            context: As there.
        """
        chosen = self.predict_proba(graph, new_edges, context=context).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[chosen]
        return classes

    def score(self, graph: Any, y: Any = None, mask: Any = None) -> float:
        """Share of right predictions among the labelled nodes.

        Args:
            graph: The graph.
            y: Label of each node; those of the graph where not given.
            mask: Nodes to score, as a mask or as indices; all labelled ones where not given.
        """
        read = self.read(graph)
        nodes = read.x.size(0)
        labels = read_labels(graph, read) if y is None else as_objects(y, nodes)
        known = np.array([label is not None for label in labels])
        chosen = known if mask is None else known & as_mask(mask, nodes, "mask").numpy()
        if not chosen.any():
            raise ConfigError("no labelled node to score")
        logits, _ = self._outputs(read)
        predicted = self.classes_[logits.argmax(-1).numpy()].tolist()
        right = [predicted[node] == labels[node] for node in np.flatnonzero(chosen)]
        return float(np.mean(right))

    def _restore(self, checkpoint: Checkpoint, model: AbstractNodeModel) -> None:
        super()._restore(checkpoint, model)
        self.classes_ = np.array(checkpoint.classes)
