"""A regressor of nodes that follows the conventions of scikit-learn."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from torch_geometric.data import Data

from argnn.estimators.base import NamedColumns, ids_of, whole_or_not
from argnn.estimators.node_estimator import NodeEstimator
from argnn.estimators.node_selection import selected_fit, selected_rows
from argnn.nn import AbstractNodeModel


class ARGNNRegressor(RegressorMixin, NodeEstimator):  # type: ignore[misc] # no types there
    """Predict one number, or several, for each node of a graph.

    The training nodes standardise the targets; predictions have the targets' own units.

    Args:
        model: As of :class:`ARGNNClassifier`, like all that is not explained here.
        preset: ``"default"``, ``"paper"`` or ``"reference"``; only argnn has more than the first.
        model_options: Options of the model that differ from its usual ones.
        train_options: Training settings that differ, by the names of ``argnn.train.TrainConfig``.
        epochs: Most epochs to train for.
        trial: Let short runs on validation choose the switches of argnn.
        val_fraction: Share of the training nodes that is set aside where there is no ``val_mask``.
        scoring: The validation score that chooses the epoch: ``"r2"`` or ``"loss"``, the squared
            error of the standardised targets.
        directed: Keep the directions of edges.
        row_normalize: Scale the rows of the features to sum one.
        load_options: Further arguments of :func:`argnn.data.load`.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, one GPU such as ``"cuda:1"``, or ``"mps"``.
        random_state: Seed of weights, dropout and drawn splits; None for new ones each time.
        verbose: Whether ``fit`` shows how far it is.

    Attributes:
        target_: Names, mean and standard deviation of the targets.
        model_: The trained ``torch`` model.
        best_epoch_: The epoch with the best validation score.
        val_score_: That score; minus the loss where that is the score.
        scores_: R², MAE and RMSE on the validation nodes.

    Example:
        >>> from argnn.data import mixed
        >>> graph = mixed()
        >>> reg = ARGNNRegressor("gcn", epochs=5).fit(graph, y=graph.x[:, 0])
        >>> reg.predict(graph).shape == (graph.num_nodes,)
        True
    """

    task = "regression"

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
    ) -> "ARGNNRegressor":
        """Learn from the training nodes, and choose the epoch by the validation nodes.

        Targets outside the two masks are not read.

        Args:
            graph: The graph.
            y: Numbers of each node, ``[N]`` or ``[N, T]``; NaN means that they are not known. Those
                of the graph where not given.
            train_mask: Nodes to learn from: a mask, also as a pandas column or a dictionary by id,
                or row numbers, also where ids are other numbers; else the masks of the graph, else
                all nodes with targets.
            val_mask: Nodes to choose the epoch by; else a share of the training nodes.
            sample_weight: Weight of each node in the training loss, ``[N]`` or by id; all alike if
                not given.
        """
        self._fit_labelled(*selected_fit(graph, y, train_mask, val_mask, sample_weight))
        return self

    def predict(
        self, graph: Any, new_edges: Any = None, *, context: Any = None
    ) -> NDArray[np.float64]:
        """The numbers of each node, ``[N]``, or ``[N, T]`` where there are several.

        Args:
            graph: The training graph, or another one with the same features; with a ``context``,
                new nodes, as for :meth:`ARGNNClassifier.predict_proba`.
            new_edges: As there.
            context: As there.
        """
        found = selected_rows(graph, self.values(self._asked_about(graph, new_edges, context)))
        return found[:, 0] if found.shape[1] == 1 else found

    def values(self, graph: Data) -> NDArray[np.float64]:
        """As :meth:`predict`, always ``[N, T]``, for a graph that :meth:`read` gave."""
        outputs, _ = self._outputs(graph, metrics=False)
        assert self.target_ is not None
        found: NDArray[np.float64] = self.target_.finished(outputs.double()).numpy()
        return found

    def columns(self, graph: Data) -> NamedColumns:
        """The numbers of each node, by column."""
        assert self.target_ is not None
        found = zip(self.target_.names, self.values(graph).T, strict=True)
        return [("id", list(ids_of(graph))), *found]

    def _known_columns(self, graph: Data) -> NamedColumns:
        columns = zip(graph.target_names, graph.targets.double().numpy().T, strict=True)
        return [(f"known_{name}", values) for name, values in columns]

    def _score_of(self, graph: Data, nodes: NDArray[np.bool_]) -> float:
        return float(r2_score(graph.targets.numpy()[nodes], self.values(graph)[nodes]))

    def score(self, graph: Any, y: Any = None, mask: Any = None) -> float:
        """R² on held-out nodes, the mean over targets.

        Args:
            graph: The graph.
            y: Numbers of each node; those of the graph where not given.
            mask: Nodes to score, as a mask or as indices; held-out ones where not given, as of
                :meth:`ARGNNClassifier.score`.
        """
        return self._held_out_score(graph, y, mask)
