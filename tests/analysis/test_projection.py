"""Positions for drawing."""

import importlib.util

import numpy as np
import pytest

from argnn.analysis.projection import principal_components, project, upright


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize(("count", "channels"), [(1, 4), (2, 1), (5, 3), (40, 6), (40, 1)])
def test_positions_are_finite_and_repeatable(count, channels, dimensions):
    points = np.random.default_rng(0).normal(size=(count, channels))
    found, again = (project(points, dimensions, seed=3) for _ in range(2))
    assert found[0].shape == (count, dimensions)
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(found[0], again[0])


@pytest.mark.parametrize("dimensions", [2, 3])
def test_few_or_equal_points_get_their_principal_components(dimensions):
    two = project(np.array([[0.0, 0.0], [3.0, 4.0]] * 20), dimensions)
    assert two[1] == "principal components"
    assert np.linalg.norm(two[0][0] - two[0][1]) == pytest.approx(5)
    assert not project(np.ones((30, 4)), dimensions)[0].any()


def test_upright_turns_without_changing_distances():
    placed = np.array([[0.0, 0], [1, 3], [0.5, 9], [0, 12]])
    turned = upright(placed)
    assert np.ptp(turned[:, 0]) > np.ptp(turned[:, 1])
    before = np.linalg.norm(placed[:, None] - placed, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(turned[:, None] - turned, axis=-1), before)


@pytest.mark.skipif(importlib.util.find_spec("openTSNE") is None, reason="needs openTSNE")
def test_clusters_stay_apart():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(40, 8)), rng.normal(size=(40, 8)) + 12])
    found = project(points, 2)
    assert found[1] == "t-SNE"
    first, second = found[0][:40], found[0][40:]
    gap = np.linalg.norm(first.mean(0) - second.mean(0))
    assert gap > 2 * max(first.std(), second.std())


def test_without_the_package(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = project(np.random.default_rng(0).normal(size=(40, 6)), 3)
    assert found[1] == "principal components"


def test_principal_components_keep_distances():
    points = np.random.default_rng(0).normal(size=(9, 5))
    found = principal_components(points, 5)
    expected = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found[None], axis=-1), expected)
