"""A predictor of links that follows the conventions of scikit-learn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import LinkSplit, features_and_edges, with_edges
from argnn.data.links import RATIOS, SPLITS_BY
from argnn.errors import ConfigError
from argnn.estimators.base import (
    PART_NAMES,
    GraphEstimator,
    NamedColumns,
    drawn_seed,
    frame,
    ids_of,
    whole_or_not,
)
from argnn.estimators.node_selection import NodeSelection
from argnn.estimators.suggestions import best_new_pairs
from argnn.nn import AbstractNodeModel, LinkModel
from argnn.runs.problems import divided_links
from argnn.runs.progress import FitProgress, console_for
from argnn.settings.resolve import PRESET, base_settings
from argnn.settings.run_config import check_split_by
from argnn.store.model_folder import Checkpoint
from argnn.train import LinkPrediction, best_threshold, link_scores
from argnn.train.calibration import calibrate, probabilities, two_class_logits
from argnn.train.scores import area_under_roc


class ARGNNLinkPredictor(ClassifierMixin, GraphEstimator):  # type: ignore[misc] # no types there
    """Tell how likely two nodes of a graph are joined by an edge.

    Args:
        model: A name in ``argnn.nn.MODELS`` or of an entry point ``argnn.models``, or a class of
            your own; see :func:`argnn.nn.model_class`.
        preset: ``"default"``, ``"paper"`` or ``"reference"``; only argnn has more than the first.
        decoder: A name in ``argnn.nn.DECODERS``; the usual one of the model where not given.
        ratio: Shares of training, validation and test pairs.
        spanning_forest: Keep a spanning forest of the graph in training.
        split_by: ``"random"``, or ``"time"``: the newest pairs are tested. Edges then need times,
            such as ``load_options={"time": "edge_time"}`` of a ``Data`` with that attribute.
        model_options: Options of the model that differ from its usual ones.
        train_options: Training settings that differ, by the names of ``argnn.train.TrainConfig``.
        epochs: Most epochs to train for.
        scoring: The validation score that chooses the epoch: ``"auroc"``,
            ``"average_precision"`` or ``"loss"``.
        calibrate: Whether a temperature is chosen on the validation pairs.
        row_normalize: Scale the rows of the features to sum one.
        load_options: Further arguments of :func:`argnn.data.load`.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, one GPU such as ``"cuda:1"``, or ``"mps"``.
        random_state: Seed of the split, weights, dropout and non-edges; None for new ones.
        verbose: Whether ``fit`` shows how far it is: bars on a terminal and in a notebook, lines
            elsewhere. None shows bars where somebody is watching, and nothing elsewhere.

    Attributes:
        classes_: 0 for no link and 1 for a link.
        model_: The trained ``torch`` model.
        val_score_: Validation AUROC, or the score of ``scoring``, of the chosen epoch.
        scores_: All scores on validation and, computed once, on test pairs.
        threshold_: Logit from which a pair counts as a link; chosen on validation pairs.
        split_: The division of the pairs; not after :func:`argnn.load`.
        temperature_: What logits are divided by before they become probabilities.
        ece_: Expected calibration error on the validation pairs, None without calibration.
        metric_field_: Learned metric diagonals of each layer; not after :func:`argnn.load`.

    Example:
        >>> from argnn.data import mixed
        >>> lp = ARGNNLinkPredictor("gcn", epochs=5).fit(mixed())
        >>> lp.predict_proba([(0, 1), (0, 500)]).shape
        (2, 2)
    """

    task = "link"
    directed = False  # pairs have no direction
    split_by: str
    calibrate: bool

    def __init__(
        self,
        model: str | type[AbstractNodeModel] = "argnn",
        preset: str = "default",
        *,
        decoder: str | None = None,
        ratio: str = RATIOS[0],
        spanning_forest: bool = False,
        split_by: str = SPLITS_BY[0],
        model_options: Mapping[str, Any] | None = None,
        train_options: Mapping[str, Any] | None = None,
        epochs: int | None = None,
        scoring: str | None = None,
        calibrate: bool = True,
        row_normalize: bool = False,
        load_options: Mapping[str, Any] | None = None,
        device: str = "auto",
        random_state: Any = 0,
        verbose: bool | None = None,
    ) -> None:
        self._keep_parameters(locals())

    @whole_or_not
    def fit(self, graph: Any, y: Any = None) -> "ARGNNLinkPredictor":
        """Hold some pairs out, learn from the others, and choose the epoch by held-out ones.

        Args:
            graph: The graph; its labels are not read.
            y: Ignored; scikit-learn passes it.
        """
        if isinstance(graph, NodeSelection):
            raise ConfigError(
                "a link predictor learns pairs, not nodes: give the graph; cross-validate with "
                "several random_state"
            )
        seed = drawn_seed(self.random_state)
        read = self._reading().graph(graph)
        check_split_by(self.split_by)
        if (self.split_by == "time") != ("edge_time" in read):
            raise ConfigError("split_by='time' and load_options={'time': ...} belong together")
        nodes = read.x.size(0)
        request = self._request(graph, seed)
        config = self._resolved(request, read, {"classes": 0}, base_settings(request) or PRESET)
        assert config.link is not None
        split = divided_links(read, seed, config.link)
        device = config.device
        seen = with_edges(read, split.edge_index)
        observed = features_and_edges(seen).to(device)
        task = LinkPrediction(
            split.train.to(device), split.val.to(device), split.val_negatives.to(device), nodes
        )
        with FitProgress(console_for(self.verbose)) as progress:
            self._train(observed, task, config, progress)
        self._keep_graph_facts(read)
        self.schema_ = seen.get("schema")
        self.classes_ = np.array([0, 1])
        self.split_, self.node_ids_ = split, ids_of(read)
        self.graph_ = seen
        drawn = "drawn" if self.split_by == SPLITS_BY[0] else "non-edges drawn"
        self.split_rule_ = f"{config.link.rule}, {drawn} with seed {seed}"
        self._judge(observed, split)
        return self

    def _judge(self, observed: Data, split: LinkSplit) -> None:
        """Threshold and temperature from validation pairs; then the test pairs, once."""
        self.embedding_, metrics = self._outputs(observed)
        self.metric_field_ = [g.numpy() for g in metrics]
        val, non_val, test, non_test = (
            self._logits(self.embedding_, pairs)
            for pairs in (split.val, split.val_negatives, split.test, split.test_negatives)
        )
        self.threshold_ = best_threshold(val, non_val)
        labels = torch.cat([torch.ones(len(val)), torch.zeros(len(non_val))]).long()
        both = two_class_logits(torch.cat([val, non_val]))
        self._keep_calibration(calibrate(both, labels) if self.calibrate else None)
        self.scores_ = {
            "val": asdict(link_scores(val, non_val, self.threshold_)),
            "test": asdict(link_scores(test, non_test, self.threshold_)),
        }
        parts = {"training": split.train, "validation": split.val, "test": split.test}
        self.counts_ = {f"{name} pairs": pairs.size(1) for name, pairs in parts.items()}

    @torch.no_grad()
    def _logits(self, embedding: Tensor, pairs: Tensor) -> Tensor:
        assert isinstance(self.model_, LinkModel)
        device = next(self.model_.parameters()).device
        scores = self.model_.eval().pair_scores(embedding.to(device), pairs.to(device))
        return scores.float().cpu()

    def decision_function(self, pairs: Any, graph: Any = None) -> NDArray[np.float32]:
        """Logit of each pair, ``[P]``.

        Args:
            pairs: Two node ids per row, ``[P, 2]``; the order within a pair does not matter.
            graph: The graph whose edges are shown to the model; the training edges of ``fit``
                where not given, which never include the edge that is asked about unless it was
                trained on.
        """
        if graph is not None:
            return self.pair_logits(pairs, self.read(graph))
        check_is_fitted(self, "model_")
        if not hasattr(self, "embedding_"):
            raise ConfigError("a loaded link predictor does not know its graph: give graph=")
        return self._logits(self.embedding_, _rows(pairs, self.node_ids_)).numpy()

    def pair_logits(self, pairs: Any, graph: Data) -> NDArray[np.float32]:
        """As :meth:`decision_function`, for a graph that :meth:`read` gave."""
        embedding, _ = self._outputs(graph, metrics=False)
        return self._logits(embedding, _rows(pairs, ids_of(graph))).numpy()

    def predict_proba(self, pairs: Any, graph: Any = None) -> NDArray[np.float64]:
        """Probability of no link and of a link, ``[P, 2]``, where both are equally frequent.

        Args:
            pairs: Two node ids per row, ``[P, 2]``.
            graph: As for :meth:`decision_function`.
        """
        return self.proba(self.decision_function(pairs, graph))

    def proba(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probabilities ``[P, 2]`` of logits ``[P]``."""
        both = two_class_logits(torch.from_numpy(logits))
        return probabilities(both, self.temperature_).numpy()

    def predict(self, pairs: Any, graph: Any = None) -> NDArray[np.int64]:
        """1 for a link and 0 for none, ``[P]``, at the threshold that validation chose.

        Args:
            pairs: Two node ids per row, ``[P, 2]``.
            graph: As for :meth:`decision_function`.
        """
        is_link = self.decision_function(pairs, graph) >= self.threshold_
        return is_link.astype(np.int64)

    def pair_columns(self, pairs: Sequence[Any], logits: NDArray[np.float32]) -> NamedColumns:
        """Pairs of ids with what is predicted of them, by column."""
        source, target = ([pair[end] for pair in pairs] for end in (0, 1))
        links = (logits >= self.threshold_).astype(np.int64)
        chances = self.proba(logits)[:, 1]
        return [("source", source), ("target", target), ("link", links), ("probability", chances)]

    def predict_frame(self, pairs: Any, graph: Any = None) -> Any:
        """Predictions as a pandas table: the columns of ``argnn predict``, and what is known.

        ``known`` is 1 where the pair is an edge, and ``split`` the part of that edge in training:
        ``train``, ``val``, ``test``, or ``none``.

        Args:
            pairs: Two node ids per row, ``[P, 2]``.
            graph: As for :meth:`decision_function`.
        """
        pairs = _listed(pairs)
        columns = self.pair_columns(pairs, self.decision_function(pairs, graph))
        ids, edges = self._ids_and_edges(graph)
        asked = _keys(_rows(pairs, ids), len(ids))
        part = np.full(len(asked), "none", dtype=object)
        for name in PART_NAMES if graph is None else ():
            part[np.isin(asked, _keys(getattr(self.split_, name), len(ids)))] = name
        known = np.isin(asked, _keys(edges, len(ids))).astype(np.int64)
        return frame([*columns, ("known", known), ("split", part)])

    def suggest(self, graph: Any = None, k: int = 10, node: Any = None) -> Any:
        """The most probable new links as a pandas table, the best first.

        Edges of the graph, those that were held out from training among them, are not new, and a
        pair comes once. Memory does not grow with the number of pairs.

        Args:
            graph: As for :meth:`decision_function`.
            k: How many; fewer where there are not so many.
            node: Id of a node: only its links. All nodes where not given.
        """
        read = None if graph is None else self.read(graph)
        return frame(self.suggested(k, node, read))

    def suggested(
        self, k: int, node: Any = None, graph: Data | None = None, edges: Tensor | None = None
    ) -> NamedColumns:
        """As :meth:`suggest`, by column, for a graph that :meth:`read` gave.

        ``edges`` are those that are not new, where these are more than the graph has.
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ConfigError(f"k must be a whole number from 1 (got {k})")
        ids, own = self._ids_and_edges(graph)
        if node is not None and node not in ids:
            raise ConfigError(f"unknown node {node!r}")
        row = None if node is None else list(ids).index(node)
        embedding = self.embedding_ if graph is None else self.outputs(graph)
        assert isinstance(self.model_, LinkModel)
        pairs = best_new_pairs(self.model_, embedding, own if edges is None else edges, k, row)
        named = [(ids[a], ids[b]) for a, b in pairs.t().tolist()]
        return self.pair_columns(named, self._logits(embedding, pairs).numpy())

    def _ids_and_edges(self, graph: Any) -> tuple[Sequence[Any], Tensor]:
        """Node ids, and all known edges of a graph, or of that of ``fit``."""
        if graph is not None:
            read = self.read(graph)
            return ids_of(read), read.edge_index
        self._fitted_graph()
        edges = torch.cat([getattr(self.split_, name) for name in PART_NAMES], dim=1)
        return self.node_ids_, edges

    def score(self, pairs: Any, y: Any, graph: Any = None) -> float:
        """Share of right decisions.

        Args:
            pairs: Two node ids per row, ``[P, 2]``.
            y: 1 for each pair that is a link, 0 for each that is not.
            graph: As for :meth:`decision_function`.
        """
        found, true = self.predict(pairs, graph), np.asarray(y)
        if true.shape != found.shape or true.dtype.kind not in "biuf" or set(true) - {0, 1}:
            raise ConfigError(f"y must hold 0 or 1 for each of the {len(found)} pairs")
        return float((found == true).mean())

    def _judging(self, graph: Any, mask: Any) -> tuple[Data, Callable[[Data], float]]:
        if graph is not None or mask is not None:
            raise ConfigError("links are judged by the validation pairs of fit: no graph, no mask")
        seen, split = self._fitted_graph(), self.split_
        truth = torch.arange(split.val.size(1) + split.val_negatives.size(1)) < split.val.size(1)
        pairs = torch.cat([split.val, split.val_negatives], dim=1)

        def auroc(shown: Data) -> float:
            logits = self._logits(self.outputs(shown), pairs)
            return area_under_roc(logits, truth.float())

        return seen, auroc

    def _embedding(self, graph: Data) -> Tensor:
        # Behind the points stands the metric, which is not part of the embedding.
        return self.outputs(graph)[:, : self.model_.out_channels]

    def _restore(self, checkpoint: Checkpoint, model: AbstractNodeModel) -> None:
        super()._restore(checkpoint, model)
        self.classes_ = np.array([0, 1])
        self.threshold_ = checkpoint.threshold


def _rows(pairs: Any, ids: Sequence[Any]) -> Tensor:
    """Rows of the nodes that pairs of ids mean, ``[2, P]``."""
    values = _listed(pairs)
    place = {name: row for row, name in enumerate(ids)}
    rows = []
    for number, pair in enumerate(values):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ConfigError(f"pairs must have two node ids per row (got {pair!r} in {number})")
        unknown = [node for node in pair if node not in place]
        if unknown:
            raise ConfigError(f"pairs, row {number}: unknown node {unknown[0]!r}")
        rows.append([place[node] for node in pair])
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, 2).t()


def _listed(pairs: Any) -> list[Any]:
    """Pairs as a list, of a pandas table or an array, too."""
    if hasattr(pairs, "to_numpy"):
        pairs = pairs.to_numpy()
    return pairs.tolist() if hasattr(pairs, "tolist") else list(pairs)


def _keys(pairs: Tensor, num_nodes: int) -> NDArray[np.int64]:
    """A number for each pair ``[2, P]``, whose order within the pair does not matter."""
    low, high = pairs.sort(dim=0).values
    found: NDArray[np.int64] = (low * num_nodes + high).numpy()
    return found
