"""Classify the nodes of your own CSV tables.

    python examples/classify_csv.py [FOLDER]

FOLDER holds edges.csv (source,target) and nodes.csv (an id, features, and a column `label` that is
empty where the class is unknown). Without one, the customers of a shop are made up in shop/.
"""

import csv
import random
import sys
from pathlib import Path

import argnn


def make_up(folder: Path) -> Path:
    """Customers who know each other; those who know each other mostly buy the same."""
    rng = random.Random(0)
    folder.mkdir(exist_ok=True)
    names = [f"c-{number:03d}" for number in range(200)]
    label = {name: rng.choice(["books", "games", "music"]) for name in names}
    age = {name: {"books": 45, "games": 25, "music": 35}[label[name]] for name in names}
    with (folder / "nodes.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "age", "town", "label"])
        for name in names:
            years = "" if rng.random() < 0.1 else round(rng.gauss(age[name], 15))
            known = label[name] if rng.random() < 0.6 else ""
            rows.writerow([name, years, rng.choice(["Bonn", "Jena", "Ulm"]), known])
    with (folder / "edges.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "target"])
        for name in names:
            alike = [other for other in names if label[other] == label[name]]
            known = [rng.choice(alike if rng.random() < 0.6 else names) for _ in range(3)]
            rows.writerows([name, other] for other in known)
    return folder


folder = Path(sys.argv[1]) if len(sys.argv) > 1 else make_up(Path("shop"))
graph = argnn.data.load(folder)
print(graph.num_nodes, "nodes,", int((graph.y >= 0).sum()), "of them labelled:", graph.class_names)
for note in graph.notes:
    print("note:", note)

clf = argnn.ARGNNClassifier(random_state=0).fit(graph)
test = graph.test_mask[:, 0]
print(f"{clf.settings_.source}; accuracy on {int(test.sum())} test nodes:", end=" ")
print(f"{clf.score(graph, mask=test):.2f}")

probability = clf.predict_proba(graph)
for node in (graph.y < 0).nonzero().flatten()[:5].tolist():
    best = probability[node].argmax()
    print(graph.node_ids[node], clf.classes_[best], f"{probability[node, best]:.2f}")
