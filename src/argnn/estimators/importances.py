"""How much a model depends on each column of its input: scores when a column is shuffled."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.inspection import permutation_importance
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.columns import column_places
from argnn.data.structural_features import made_width
from argnn.errors import ConfigError
from argnn.registry import suggestion
from argnn.telling import TellCount


def column_groups(graph: Data) -> dict[str, range]:
    """The features of each column of the node table, by its name; each alone where there is none.

    Features that were made from the edges are one group.
    """
    # Of a graph that was loaded before, the table that it came from.
    schema = graph.get("column_schema") or graph.get("schema") or {}
    if schema.get("num_features") != graph.x.size(1):
        schema = {}
    made = made_width(schema.get("structure"))
    own = graph.x.size(1) - made
    rules = schema.get("columns")
    groups: dict[str, range] = {}
    if rules is not None:
        for rule, place in column_places(rules):
            groups[rule["name"]] = range(place.start, place.stop)
    else:
        names = graph.get("feature_names") or [f"feature {place}" for place in range(own)]
        groups = {str(names[place]): range(place, place + 1) for place in range(own)}
    if made:
        groups[f"{schema['structure']['kind']} (from the edges)"] = range(own, own + made)
    return groups


def chosen_groups(
    groups: dict[str, range], columns: Sequence[str] | None, most: int
) -> dict[str, range]:
    """The groups that were asked for, of which there may be so many."""
    for name in columns or ():
        if name not in groups:
            raise ConfigError(f"no column '{name}'; {suggestion(name, groups)}")
    chosen = groups if columns is None else {name: groups[name] for name in columns}
    if len(chosen) > most:
        raise ConfigError(
            f"{len(chosen)} columns to shuffle, more than {most}: name some with columns=, or say "
            f"most={len(chosen)}"
        )
    return chosen


def shuffled_scores(
    estimator: BaseEstimator,
    x: Tensor,
    groups: dict[str, range],
    score: Callable[[Tensor], float],
    repeats: int,
    seed: int,
    tell: TellCount,
) -> NDArray[np.float64]:
    """By how much the score falls when a group of features is shuffled among the nodes, ``[G, R]``.

    Args:
        estimator: The model, as scikit-learn wants one.
        x: Features, ``[N, F]``.
        groups: Columns of the features that are shuffled together.
        score: The score with other features.
        repeats: How often each group is shuffled.
        seed: Of the shuffling.
        tell: Is told how far it is.
    """
    total, done = 1 + repeats * len(groups), 0

    def scorer(_: BaseEstimator, rows: NDArray[np.int64], __: Any) -> float:
        """Rows say for each group which node a node gets its features from."""
        nonlocal done
        shuffled = x.clone()
        for group, source in zip(groups.values(), torch.from_numpy(rows.T), strict=True):
            shuffled[:, group.start : group.stop] = x[source, group.start : group.stop]
        done += 1
        found = score(shuffled)
        tell(done, total)
        return found

    nodes = np.tile(np.arange(x.size(0))[:, None], len(groups))
    found = permutation_importance(
        estimator, nodes, None, scoring=scorer, n_repeats=repeats, random_state=seed
    )
    importances: NDArray[np.float64] = found.importances
    return importances
