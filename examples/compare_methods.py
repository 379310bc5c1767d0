"""Compare methods on your graph, by cross-validation over its labelled nodes.

    python examples/compare_methods.py [GRAPH]

GRAPH is anything that argnn.data.load reads. Without one, a graph of buyers and sellers is made
up, in which edges join unlike nodes. Every method gets its usual settings; for equal tuning and
more statistics see `argnn tune`, `argnn bench` and `argnn table`.
"""

import random
import statistics
import sys

import networkx as nx
from scipy.stats import ttest_rel
from sklearn.model_selection import StratifiedKFold, cross_val_score

import argnn

METHODS = ("mlp", "gcn", "graphsage", "argnn")
FOLDS = 3


def made_up() -> nx.Graph:
    """Two classes; four of five edges join different ones, and the features are noisy."""
    rng = random.Random(0)
    market = nx.planted_partition_graph(2, 80, 0.015, 0.06, seed=0)
    for _, values in market.nodes(data=True):
        values["label"] = "buyer" if values.pop("block") == 0 else "seller"
        values["spent"] = rng.gauss(1.0 if values["label"] == "buyer" else -1.0, 2.0)
        values["noise"] = rng.gauss(0.0, 1.0)
    return market


rows = argnn.nodes(sys.argv[1] if len(sys.argv) > 1 else made_up()).labelled()
folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)

scores: dict[str, list[float]] = {}
for method in METHODS:
    # A fifth of the training nodes is set aside to choose the epoch; test labels are not read.
    clf = argnn.ARGNNClassifier(method, epochs=60, trial=False, random_state=0)
    scores[method] = cross_val_score(clf, rows, rows.labels, cv=folds).tolist()
    mean, spread = statistics.fmean(scores[method]), statistics.stdev(scores[method])
    print(f"{method:10} accuracy {mean:.3f}, standard deviation {spread:.3f} over {FOLDS} folds")

best = max(METHODS, key=lambda method: statistics.fmean(scores[method]))
for rival in (method for method in METHODS if method != best):
    # Folds share training nodes, so that these values are too small: read them as a ranking.
    p = ttest_rel(scores[best], scores[rival]).pvalue
    print(f"{best} against {rival}: paired t over the same folds, p = {p:.3f}")
