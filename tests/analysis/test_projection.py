"""Positions for drawing."""

import importlib.util

import numpy as np
import pytest

from argnn.analysis.projection import principal_components, project


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize(("count", "channels"), [(1, 4), (2, 1), (5, 3), (40, 6), (40, 1)])
def test_positions_are_finite_and_repeatable(count, channels, dimensions):
    points = np.random.default_rng(0).normal(size=(count, channels))
    found, again = (project(points, dimensions, seed=3) for _ in range(2))
    assert found.points.shape == (count, dimensions)
    assert np.isfinite(found.points).all()
    np.testing.assert_array_equal(found.points, again.points)


def test_equal_points_stay_together():
    assert not project(np.ones((30, 4)), 2).points.any()


@pytest.mark.skipif(importlib.util.find_spec("openTSNE") is None, reason="needs openTSNE")
def test_clusters_stay_apart():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(40, 8)), rng.normal(size=(40, 8)) + 12])
    found = project(points, 2)
    assert "t-SNE" in found.method
    first, second = found.points[:40], found.points[40:]
    gap = np.linalg.norm(first.mean(0) - second.mean(0))
    assert gap > 2 * max(first.std(), second.std())


def test_without_the_package(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = project(np.random.default_rng(0).normal(size=(40, 6)), 3)
    assert found.method == "principal components"


def test_principal_components_keep_distances():
    points = np.random.default_rng(0).normal(size=(9, 5))
    found = principal_components(points, 5)
    expected = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found[None], axis=-1), expected)
