"""A classifier of nodes that follows the conventions of scikit-learn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from torch import Tensor
from torch_geometric.data import Data

from argnn.errors import ConfigError
from argnn.estimators.base import NamedColumns, ids_of, whole_or_not
from argnn.estimators.node_estimator import NodeEstimator
from argnn.estimators.node_selection import selected_fit, selected_rows
from argnn.estimators.reading import (
    LabelledGraph,
    as_classes,
    as_objects,
    class_table,
    encode,
    is_multilabel,
    read_labels,
)
from argnn.estimators.saving import class_name
from argnn.nn import AbstractNodeModel
from argnn.runs.problems import node_score_values, node_threshold
from argnn.settings.resolve import Request
from argnn.store.model_folder import Checkpoint
from argnn.train import NodeClassification, decided
from argnn.train.calibration import calibrate, probabilities
from argnn.train.scores import decision_rule


class ARGNNClassifier(ClassifierMixin, NodeEstimator):  # type: ignore[misc] # no types there
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
        scoring: The validation score that chooses the epoch: ``"accuracy"``, ``"f1_macro"``,
            ``"auroc"``, ``"average_precision"`` or ``"loss"``. For two classes the third and fourth
            are those of the rarer training class, for more they are means of one class against
            the rest.
        class_weight: Weight of each class in the training loss, ``{label: weight}``, or
            ``"balanced"``, as in scikit-learn.
        threshold: For two classes, the probability from which a node is of the class that is rarer
            in training: a number, or ``"validation"`` to choose it on the validation nodes, for
            the best macro F1, or accuracy if that is the ``scoring``. None takes the more probable
            class.
        calibrate: Whether a temperature is chosen on the validation nodes.
        directed: Keep the directions of edges.
        row_normalize: Scale the rows of the features to sum one.
        load_options: Further arguments of :func:`argnn.data.load`.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, one GPU such as ``"cuda:1"``, or ``"mps"``.
        random_state: Seed of weights, dropout and drawn splits; None for new ones each time.
        verbose: Whether ``fit`` shows how far it is: bars on a terminal and in a notebook, lines
            elsewhere. None shows bars where somebody is watching, and nothing elsewhere.

    Attributes:
        target_: What the outputs mean, where nodes have several labels; else None.
        classes_: The labels, in the order of the columns of :meth:`predict_proba`.
        model_: The trained ``torch`` model.
        best_epoch_: The epoch with the best validation score, accuracy unless ``scoring`` says
            otherwise.
        val_score_: That score; minus the loss where that is the score.
        rare_class_: Number of the class with the fewest training nodes.
        threshold_: What the second raw score must exceed the first by, for two classes.
        history_: One record per epoch; not after :func:`argnn.load`.
        metric_field_: Learned metric diagonals of each layer on the training graph; not after
            :func:`argnn.load`, see :meth:`metric_field`.
        temperature_: What raw scores are divided by before they become probabilities.
        ece_: Expected calibration error on the validation nodes, None without calibration.
        settings_: All settings, and where they come from.
        graph_: The graph of ``fit`` with its labels and split, for tables and pages; not after
            :func:`argnn.load`.
        fit_seconds_: How long the training took, without the trial; not after :func:`argnn.load`.
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
    calibrate: bool

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
        scoring: str | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        threshold: str | float | None = None,
        calibrate: bool = True,
        directed: bool = False,
        row_normalize: bool = False,
        load_options: Mapping[str, Any] | None = None,
        device: str = "auto",
        random_state: Any = 0,
        verbose: bool | None = None,
    ) -> None:
        self._keep_parameters(locals())

    @whole_or_not
    def fit(
        self,
        graph: Any,
        y: Any = None,
        train_mask: Any = None,
        val_mask: Any = None,
        sample_weight: Any = None,
    ) -> "ARGNNClassifier":
        """Learn from the training nodes, and choose the epoch by the validation nodes.

        Labels outside the two masks are not read.

        Args:
            graph: The graph.
            y: Label of each node, texts or numbers; None, NaN and -1 mean that there is none.
                Those of the graph where not given. A dictionary or a pandas column by
                id need not be in order. A matrix ``[N, L]`` of 0 and 1 means that a node may have
                several labels.
            train_mask: Nodes to learn from: a mask, also as a pandas column or a dictionary by id,
                or row numbers, also where ids are other numbers; else the masks of the graph, else
                all labelled nodes.
            val_mask: Nodes to choose the epoch by; else a share of the training nodes.
            sample_weight: Weight of each node in the training loss, ``[N]`` or by id; all alike if
                not given.
        """
        given = selected_fit(graph, y, train_mask, val_mask, sample_weight)
        self.task = "multilabel" if is_multilabel(*given[:2]) else "node"
        self._fit_labelled(*given)
        return self

    def _learn(
        self, read: LabelledGraph, train: Tensor, val: Tensor, request: Request, weights: Any
    ) -> None:
        if self.task == "multilabel":
            super()._learn(read, train, val, request, weights)
            numbered = read.names == [f"target {n}" for n in range(len(read.names))]
            self.classes_ = np.arange(len(read.names)) if numbered else np.array(read.names)
            self.threshold_, self.rare_class_ = 0.0, 1
            return
        shown = read.labels.copy()
        shown[~(train | val).numpy()] = None
        classes = class_table(shown)
        if len(classes) < 2:
            raise ConfigError(f"a classifier needs at least two classes (got {classes.tolist()})")
        codes = encode(shown, classes)

        def make_task(device: str) -> NodeClassification:
            parts = codes.to(device), train.to(device), val.to(device)
            names = [class_name(label) for label in classes.tolist()]
            return NodeClassification(*parts, classes=names, sample_weight=weights)

        task, logits = self._fit_nodes(request, read.graph, {"classes": len(classes)}, make_task)
        self.classes_, self.target_ = classes, None
        judged = logits[val], codes[val]
        self._keep_calibration(calibrate(*judged) if self.calibrate else None)
        self.rare_class_ = task.rare
        self.threshold_ = node_threshold(self.settings_.train, *judged, task.rare)
        self.scores_ = {"val": node_score_values(*judged, self.threshold_)}

    def predict_proba(
        self, graph: Any, new_edges: Any = None, *, context: Any = None
    ) -> NDArray[np.float64]:
        """Probability of each class or label at each node, ``[N, C]``, ordered as ``classes_``.

        With a ``context``, the nodes are new ones of that graph. Their probabilities are those that
        the whole joined graph would give; only the part that they depend on is computed.

        Args:
            graph: The training graph, or another one with the same features. With a ``context``,
                the new nodes: a pandas table or a list of dictionaries with an id and the columns
                of the training table; or features ``[M, F]``, whose rows come after those of the
                context.
            new_edges: With a ``context``, edges among new nodes and nodes of the context. For
                tables, a table with columns ``source`` and ``target``, or a list of pairs of ids;
                for features, row numbers ``[2, E]``. Where edges have weights, also a column of
                these, triples, or ``(edge_index, edge_weight)``.
            context: The graph that the new nodes belong to. :meth:`context` prepares it once for
                many calls.
        """
        return selected_rows(graph, self.proba(self._asked_about(graph, new_edges, context)))

    def proba(self, graph: Data) -> NDArray[np.float64]:
        """As :meth:`predict_proba`, for a graph that :meth:`read` gave."""
        logits, _ = self._outputs(graph, metrics=False)
        if self.target_ is not None:
            return self.target_.finished(logits.double()).numpy()
        return probabilities(logits, self.temperature_).numpy()

    def predict(self, graph: Any, new_edges: Any = None, *, context: Any = None) -> NDArray[Any]:
        """The class of each node, ``[N]``: the most probable one, unless there is a threshold.

        Where nodes have several labels, 0 or 1 for each of them, ``[N, L]``: those from
        probability one half.

        Args:
            graph: As for :meth:`predict_proba`.
            new_edges: As there.
            context: As there.
        """
        return self.decisions(self.predict_proba(graph, new_edges, context=context))

    def decisions(self, proba: NDArray[np.float64]) -> NDArray[Any]:
        """The classes that :meth:`predict` gives for probabilities ``[N, C]``."""
        if self.target_ is not None:
            return (proba >= 0.5).astype(np.int64)
        logits = torch.from_numpy(proba).log()
        chosen = decided(logits, self.threshold_ / self.temperature_).numpy()
        classes: NDArray[Any] = self.classes_[chosen]
        return classes

    def columns(self, graph: Data) -> NamedColumns:
        """The class, or several labels in one text, and all probabilities, by column."""
        proba = self.proba(graph)
        chosen, names = self.decisions(proba), self._class_texts()
        several = self.target_ is not None
        said = ("labels", _joined(names, chosen)) if several else ("class", chosen)
        chances = [(f"p_{name}", column) for name, column in zip(names, proba.T, strict=True)]
        return [("id", list(ids_of(graph))), said, *chances]

    def _known_columns(self, graph: Data) -> NamedColumns:
        if self.target_ is None:
            return [("known", graph.labels)]
        texts = _joined(self._class_texts(), (graph.targets == 1).numpy())
        missing = graph.targets.isnan().any(1).tolist()
        return [("known", [None if gap else t for t, gap in zip(texts, missing, strict=True)])]

    def _answers(self, source: Any, graph: Data) -> dict[str, Any]:
        if self.target_ is not None:
            return super()._answers(source, graph)
        holder = source if isinstance(source, Data) else graph
        nowhere = np.full(graph.x.size(0), None) if holder.get("y") is None else None
        return self._given_answers(source, graph, nowhere)

    def _given_answers(self, source: Any, graph: Data, y: Any) -> dict[str, Any]:
        if self.target_ is not None:
            return super()._given_answers(source, graph, y)
        labels = read_labels(source, graph) if y is None else as_objects(y, graph.x.size(0))
        return self._label_answers(as_classes(labels, self.classes_))

    def _answers_of(self, read: LabelledGraph) -> dict[str, Any]:
        several = self.target_ is not None
        return super()._answers_of(read) if several else self._label_answers(read.labels)

    def _known_nodes(self, graph: Data) -> NDArray[np.bool_]:
        if self.target_ is not None:
            return super()._known_nodes(graph)
        return np.array([label is not None for label in graph.labels])

    def _score_of(self, graph: Data, nodes: NDArray[np.bool_]) -> float:
        found = self.decisions(self.proba(graph))[nodes]
        if self.target_ is not None:
            return float((graph.targets.numpy()[nodes] == found).all(axis=1).mean())
        return float((graph.labels[nodes] == found).mean())

    def _label_answers(self, labels: NDArray[np.object_]) -> dict[str, Any]:
        """Labels as they are, and as numbers of the classes, where it is one of them."""
        return {
            "labels": labels,
            "y": encode(labels, self.classes_),
            "class_count": len(self.classes_),
            "class_names": self._class_texts(),
        }

    def _class_texts(self) -> list[str]:
        return [str(label) for label in self.classes_.tolist()]

    @property
    def decision_rule_(self) -> dict[str, Any] | None:
        """The class whose probability decides and from where; None for the most probable class."""
        classes = self.classes_.tolist()
        return decision_rule(classes, self.threshold_, self.temperature_, self.rare_class_)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "rare_class": self.rare_class_}

    def score(self, graph: Any, y: Any = None, mask: Any = None) -> float:
        """Share of right predictions among held-out nodes; all labels of a node must be right.

        Args:
            graph: The graph.
            y: Label of each node; those of the graph where not given.
            mask: Nodes to score, as a mask or as indices. Where not given, all labelled ones that
                were neither trained nor validated on. In a graph whose features or edges differ
                from those of the training graph, nodes are recognised by their ids if these are
                texts; with numbers as ids, all its nodes count as other ones.
        """
        return self._held_out_score(graph, y, mask)

    def _restore(self, checkpoint: Checkpoint, model: AbstractNodeModel) -> None:
        super()._restore(checkpoint, model)
        self.task = checkpoint.task
        self.classes_ = np.array(checkpoint.classes)
        self.threshold_ = checkpoint.threshold
        self.rare_class_ = int(checkpoint.facts.get("rare_class", 1))
        if not 0 <= self.rare_class_ < max(2, len(self.classes_)):
            raise ConfigError(f"rare_class {self.rare_class_} is no class")


def _joined(names: Sequence[str], chosen: NDArray[Any]) -> list[str]:
    """The names of the labels that each node has, in one text."""
    return [";".join(name for name, has in zip(names, row, strict=True) if has) for row in chosen]
