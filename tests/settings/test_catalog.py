"""What `argnn models` and `argnn datasets` know is what the classes and the graphs say."""

import runpy
from pathlib import Path

import pytest

from argnn.data import DATASETS, load
from argnn.functional import edge_homophily
from argnn.settings.catalog import dataset_rows

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "write_catalog.py"))


def test_stored_facts_are_those_of_the_classes():
    stored = SCRIPT["CATALOG"].read_text("utf-8")
    assert stored == SCRIPT["catalog"](), "run scripts/write_catalog.py"
    assert SCRIPT["CHOICES"].read_text("utf-8") == SCRIPT["choices"](), "run the same script"


@pytest.mark.parametrize("name", ["digits", "mixed"])
def test_homophily_is_that_of_the_graph(name):
    graph = load(name)
    [row] = [row for row in dataset_rows() if row["name"] == name]
    assert row["homophily"] == edge_homophily(graph.edge_index, graph.y)


def test_counted_edges_within_classes_are_fewer_than_edges():
    assert all(0 < spec.same_class_edges < spec.edges for spec in DATASETS.values())
