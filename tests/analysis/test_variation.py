"""How much a metric varies, what it goes along with, and the sentence about it."""

import math

import numpy as np
import pytest
import torch

from argnn.analysis import Layer, metric_statistics
from argnn.analysis.explorer.headline import Findings, Relation, Worth, findings, headline
from argnn.analysis.variation import (
    Peak,
    axis_variation,
    class_share,
    farthest_nodes,
    metric_variation,
    middle_range,
    peak,
    spearman,
)

from .cases import edge_tensor, points

RING = edge_tensor([(n, (n + 1) % 100) for n in range(100)])


def described(log_g):
    """Statistics of a field on a ring of 100 nodes, and by how much each varies."""
    layer = Layer(points(100, log_g.size(1)), log_g.exp())
    found = vars(metric_statistics(layer.g, RING))
    statistics = {name: values.numpy() for name, values in found.items()}
    return statistics, metric_variation(statistics, layer)


def test_range_cuts_far_values_but_not_rare_ones():
    values = np.arange(101.0)
    assert middle_range(values) == (2.0, 98.0)
    assert middle_range(np.array([0.0] * 99 + [1.0])) == (0.0, 1.0)
    assert middle_range(np.array([np.nan])) == (0.0, 0.0)


@pytest.mark.parametrize("axes", [1, 5])
def test_variation_is_the_relative_change_of_the_metric(axes):
    """On a field that all axes share, every mean over the axes says by how much g changes."""
    step = torch.linspace(0, 1, 101, dtype=torch.float64)[:100]
    log_g = (0.1 + 0.3 * step).unsqueeze(1).expand(100, axes)
    statistics, variation = described(log_g)
    low, high = middle_range(log_g[:, 0].numpy())
    expected = math.expm1(high - low)
    for name in ("kappa", "log_volume", "main_variation"):
        assert variation[name] == pytest.approx(expected)
    assert variation["inverse_metric"] == pytest.approx(expected, rel=1e-6)
    assert variation["anisotropy"] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(axis_variation(log_g.numpy()), expected)


def test_constant_metric_does_not_vary():
    assert set(described(torch.zeros(100, 4, dtype=torch.float64))[1].values()) == {0.0}


def test_peak_is_the_largest_of_the_main_statistics():
    flat = {"log_volume": 0.0, "kappa": 0.1, "main_variation": 0.2, "anisotropy": 9.0}
    assert peak([flat, {**flat, "kappa": 0.5}]) == Peak(1, "kappa", 0.5)
    assert peak([]) is None


def test_spearman_needs_three_pairs_that_differ():
    values = np.array([1.0, 2.0, 3.0, np.nan])
    assert spearman(values, -(values**3)) == (pytest.approx(-1), 3)
    assert math.isnan(spearman(values, np.ones(4))[0])
    assert math.isnan(spearman(values[2:], values[2:])[0])


def test_share_between_classes():
    labels = np.repeat([0, 1], 50)
    assert class_share(labels.astype(float), labels) == 1
    noise = np.random.default_rng(0).normal(size=100)
    assert class_share(noise, labels) < 0.05
    assert class_share(noise, np.zeros(100, int)) is None
    assert class_share(noise, np.full(100, -1)) is None
    # The correction: many small classes explain nothing of noise.
    shares = [
        class_share(np.random.default_rng(k).normal(size=60), np.arange(60) // 2) for k in range(40)
    ]
    assert np.median(shares) < 0.2


def test_farthest_nodes_come_first():
    log_g = torch.zeros(10, 2)
    log_g[3], log_g[7] = 1.0, -4.0
    (first, far), (second, _) = farthest_nodes(log_g, 2)
    assert (first, second) == (7, 3)
    assert far == pytest.approx(3.7)


# ---- the sentence -------------------------------------------------------------------------------

TOP = Peak(0, "log_volume", 0.4)
HUBS = Relation(0, "log_volume", "degree", -0.9, 2708)
WEAK = Relation(1, "kappa", "clustering", 0.21, 900)
TRIAL = Worth("accuracy", 0.882, 0.881, chance=0.006)
SENTENCES = {
    "no metric": (Findings("gcn", "none"), "gcn learns no metric: the map shows"),
    "fixed": (Findings("argnn", "fixed", Peak(0, "kappa", 0.0)), "is fixed: all nodes have the"),
    "nearly constant": (
        Findings("argnn", "learned", Peak(1, "kappa", 0.0312), HUBS),
        "nearly the same at all nodes: no layer varies by more than 3.12 %.",
    ),
    "contracts": (
        Findings("argnn", "learned", TOP, HUBS, 0.02),
        "Layer 1 contracts hubs relative to others: its log volume falls with degree (Spearman's "
        "rho -0.90, 2,708 nodes); classes hardly differ in it (2.0 % of its variance).",
    ),
    "stretches": (
        Findings("argnn", "learned", TOP, HUBS._replace(rho=0.6), 0.31),
        "stretches hubs relative to others: its log volume rises with degree (Spearman's rho 0.60, "
        "2,708 nodes); classes make up 31 % of its variance.",
    ),
    "other statistic": (
        Findings("argnn", "learned", TOP, HUBS._replace(statistic="kappa", layer=2)),
        "In layer 3, the curvature κ of the metric falls with degree (Spearman's rho -0.90, 2,708 "
        "nodes).",
    ),
    "weak relation": (
        Findings("argnn", "learned", Peak(0, "kappa", 2.5), WEAK),
        "Layer 1 varies most, by a factor of 3.5 (curvature κ), but follows no "
        "property of the graph closely (strongest: curvature κ of layer 2 with clustering, "
        "Spearman's rho 0.21, 900 nodes).",
    ),
    "no relation": (
        Findings("argnn", "learned", TOP, None, 0.44),
        "Layer 1 varies most, by 40 % (log volume); classes make up 44 % of the variance of its "
        "log volume.",
    ),
    "same in the trial": (
        Findings("argnn", "learned", TOP, HUBS, worth=TRIAL),
        "A fixed metric scored the same in the trial (validation accuracy 88.2 % learned, 88.1 % "
        "fixed).",
    ),
    "less in the trial": (
        Findings("argnn", "learned", TOP, HUBS, worth=Worth("accuracy", 0.9, 0.8, chance=0.01)),
        "A fixed metric scored less in the trial (validation accuracy 90.0 % learned, 80.0 %",
    ),
    "more in the trial": (
        Findings("argnn", "fixed", TOP, worth=Worth("accuracy", 0.8, 0.9, chance=0.01)),
        "none was learned. A fixed metric scored more in the trial",
    ),
    "numbers in the trial": (
        Findings("argnn", "learned", TOP, worth=Worth("R²", 0.8123, 0.8, is_share=False)),
        "In the trial: validation R² 0.812 learned, 0.8 fixed.",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_sentence_of_each_case(case):
    found, expected = SENTENCES[case]
    assert expected in headline(found)


def test_findings_name_the_relation_that_was_planted():
    """Volumes fall with a planted degree; classes are unrelated."""
    hubs = np.arange(100)[::-1].astype(float)
    log_g = torch.linspace(0, 1, 100, dtype=torch.float64).unsqueeze(1).expand(100, 3)
    statistics, variation = described(log_g)
    noise = np.random.default_rng(0).permutation(100).astype(float)
    properties = {"degree": hubs, "homophily": noise, "clustering": np.full(100, np.nan)}
    labels = np.arange(100) % 2
    rest = (properties, labels, None)
    found = findings("argnn", "learned", [statistics], [variation], *rest)
    assert found.relation == Relation(0, "log_volume", "degree", pytest.approx(-1), 100)
    assert found.class_share < 0.05
    assert headline(found).startswith("Layer 1 contracts hubs relative to others")
    # What hardly varies has no relation, however strong, and neither have few nodes.
    flat, hardly = described(log_g * 0.01)
    assert findings("argnn", "learned", [flat], [hardly], *rest).relation is None
    few = {name: np.where(np.arange(100) < 29, v, np.nan) for name, v in properties.items()}
    rest = (few, labels, None)
    assert findings("argnn", "learned", [statistics], [variation], *rest).relation is None
