"""The planted graph with a rare class, which the pages measure on."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "rare_classes.py"))


@pytest.fixture(scope="module")
def planted():
    torch.set_num_threads(1)
    return SCRIPT["rare_graph"](3000, seed=0)


def test_labels_are_drawn_with_the_stated_probability(planted):
    graph, truth = planted
    assert truth.mean().item() == pytest.approx(0.03, abs=1e-6)
    # 3000 draws: five standard deviations are 0.016.
    assert graph.y.double().mean().item() == pytest.approx(0.03, abs=0.016)
    likely = truth > 0.3
    deviation = float((truth[likely] * (1 - truth[likely])).sum().sqrt()) / int(likely.sum())
    share = graph.y[likely].double().mean().item()
    assert share == pytest.approx(truth[likely].mean().item(), abs=4 * deviation)


def test_weighted_scores_hide_what_the_rare_class_shows(planted):
    """A ranking by chance has 3 % average precision, and 94 % weighted by class size."""
    graph, truth = planted
    chance = np.random.default_rng(0).random(3000)
    nobody = np.zeros(3000, dtype=int)
    blind, best = (SCRIPT["scores"](graph, p, nobody) for p in (chance, truth.numpy()))
    assert blind[0] < 0.1
    assert blind[3] > 0.9
    assert best[0] > 0.4


def test_settings_for_rare_classes_find_them(planted):
    graph, truth = planted
    best = SCRIPT["scores"](graph, truth.numpy(), (truth > 0.5).long().numpy())
    found = SCRIPT["fitted"](graph, "graphsage", SCRIPT["DECIDED"], 0)
    trees = SCRIPT["trees"](graph, 0)
    assert 0.25 < found[0] < best[0] + 0.1
    assert found[2] > 0.25  # F1 of a class that 3 % of the nodes are of
    assert trees[0] > 0.25
