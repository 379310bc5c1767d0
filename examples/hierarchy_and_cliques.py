"""Find hierarchy and cliques in a graph, first by curvature, then in a learned metric.

    python examples/hierarchy_and_cliques.py

No labels are used. The graph is planted: teams where everybody knows everybody, trees of command,
a ring and a grid, joined by single edges. So it can be said how well each number finds the parts.
"""

import random

import networkx as nx
import torch
from sklearn.metrics import roc_auc_score

import argnn
from argnn import functional as AF
from argnn.analysis import metric_statistics

PARTS = {
    "tree a": nx.balanced_tree(3, 3),
    "tree b": nx.balanced_tree(2, 5),
    "clique a": nx.complete_graph(8),
    "clique b": nx.complete_graph(10),
    "clique c": nx.complete_graph(12),
    "cycle": nx.cycle_graph(20),
    "grid": nx.grid_2d_graph(5, 6),
}

rng, network, bridges = random.Random(0), nx.Graph(), []
for name, part in PARTS.items():
    members = {node: f"{name}, {index}" for index, node in enumerate(part)}
    network.update(nx.relabel_nodes(part, members))
    bridges.append(list(members.values()))
for one, other in zip(bridges, bridges[1:], strict=False):
    network.add_edge(rng.choice(one), rng.choice(other))

graph = argnn.data.load(network, features="degree")
kind = [name.split(",")[0].split(" ")[0] for name in graph.node_ids]

# Curvature of the graph itself: needs no training.
curvature = AF.ollivier_ricci(graph.edge_index, graph.num_nodes)
at_node = AF.node_curvature(graph.edge_index, graph.num_nodes)
lowest = graph.edge_index[:, curvature.argmin()].tolist()
print("edge of lowest curvature:", " -- ".join(graph.node_ids[node] for node in lowest))

# A metric that was learned by predicting links, and so without labels either.
predictor = argnn.ARGNNLinkPredictor(epochs=100, random_state=0).fit(graph)
learned = metric_statistics(torch.from_numpy(predictor.metric_field(graph)[-1]), graph.edge_index)

print("kind    curvature  metric (main direction)")
for name in ("tree", "cycle", "grid", "clique"):
    chosen = torch.tensor([one == name for one in kind])
    means = at_node[chosen].mean(), learned.main_variation[chosen].mean()
    print(f"{name:7} {means[0]:9.2f} {means[1]:10.2f}")
for name, value in (("curvature", at_node), ("learned metric", learned.main_variation)):
    score = roc_auc_score([one == "clique" for one in kind], value)
    print(f"{name}: AUROC {score:.2f} for telling cliques from the rest")
