import math

import pytest
import torch

import reference
from argnn.nn import (
    ARGNN,
    GCN,
    MagnitudeRegularizer,
    RicciRegularizer,
    SmoothnessRegularizer,
)
from argnn.train import TrainConfig
from argnn.train.penalties import build_penalties

from .cases import task_of, two_blocks

GRAPH = two_blocks()
TASK = task_of(GRAPH)


def penalties_of(config, model=None, graph=GRAPH):
    torch.manual_seed(0)
    model = model or ARGNN(6, 8, 2, num_layers=3)
    metrics = model.forward_with_metric(graph.x, graph.edge_index)[1]
    nodes = graph.x.size(0)
    return build_penalties(config, graph.edge_index, nodes, metrics, model.hidden_channels, TASK)


def as_dict(penalties):
    return {type(penalty): penalty.effective_weight() for penalty in penalties}


def training_homophily():
    known = torch.where(GRAPH.train_mask, GRAPH.y, -1).tolist()
    return reference.edge_homophily(list(map(tuple, GRAPH.edge_index.t().tolist())), known)


@pytest.mark.parametrize(("name", "form"), [("theory", "main"), ("theorem", "theorem")])
def test_weights_from_theory_use_undirected_edges_and_training_homophily(name, form):
    penalties = penalties_of(TrainConfig(penalty_weights=name, penalty_reduction="sum"))
    num_pairs = GRAPH.edge_index.size(1) // 2
    assert num_pairs > 8, "otherwise the number of edges does not matter"
    alpha, beta = reference.theory_weights(training_homophily(), 60, num_pairs, 3, 8, form)
    assert as_dict(penalties) == pytest.approx(
        {RicciRegularizer: alpha, SmoothnessRegularizer: beta}
    )
    assert {penalty.reduction for penalty in penalties} == {"sum"}


@pytest.mark.parametrize("name", ["theory", "theorem"])
def test_weights_from_theory_count_an_edge_once_however_it_is_listed(name):
    config = TrainConfig(penalty_weights=name)
    low, high = GRAPH.edge_index
    once = GRAPH.clone()
    once.edge_index = GRAPH.edge_index[:, low < high].contiguous()
    loops = GRAPH.clone()
    nodes = torch.arange(60)
    loops.edge_index = torch.cat([GRAPH.edge_index, torch.stack([nodes, nodes])], dim=1)
    expected = as_dict(penalties_of(config))
    assert as_dict(penalties_of(config, graph=once)) == pytest.approx(expected)
    assert as_dict(penalties_of(config, graph=loops)) == pytest.approx(expected)


@pytest.mark.parametrize("hidden", [4, 16])
def test_weights_from_theory_take_the_hidden_width_for_every_preset(hidden):
    config = TrainConfig(penalty_weights="theory")
    num_pairs = GRAPH.edge_index.size(1) // 2
    expected = reference.theory_weights(training_homophily(), 60, num_pairs, 2, hidden, "main")
    for preset in ("default", "paper", "reference"):
        model = ARGNN(6, hidden, 2, num_layers=2, preset=preset)
        assert tuple(as_dict(penalties_of(config, model)).values()) == pytest.approx(expected)


def test_weights_from_theory_take_the_hidden_width_where_the_last_metric_is_on_the_classes():
    model = ARGNN(6, 16, 2, num_layers=2, head="conv", jump="last")  # operator form
    num_pairs = GRAPH.edge_index.size(1) // 2
    expected = reference.theory_weights(training_homophily(), 60, num_pairs, 2, 16, "main")
    found = as_dict(penalties_of(TrainConfig(penalty_weights="theory"), model))
    assert tuple(found.values()) == pytest.approx(expected)


def test_fixed_weights_are_those_of_the_config_and_zero_means_none():
    config = TrainConfig(ricci_weight=0.3, smoothness_weight=0.2, magnitude_weight=0.1)
    assert as_dict(penalties_of(config)) == {
        RicciRegularizer: 0.3,
        SmoothnessRegularizer: 0.2,
        MagnitudeRegularizer: 0.1,
    }
    assert {penalty.reduction for penalty in penalties_of(config)} == {"mean"}
    assert as_dict(penalties_of(TrainConfig(smoothness_weight=0.2))) == {SmoothnessRegularizer: 0.2}
    assert len(penalties_of(TrainConfig())) == 0


def test_theory_weights_replace_fixed_ones_but_not_the_magnitude():
    config = TrainConfig(penalty_weights="theory", ricci_weight=9.0, magnitude_weight=0.1)
    found = as_dict(penalties_of(config))
    assert found[MagnitudeRegularizer] == 0.1
    assert found[RicciRegularizer] < 1


def test_adaptive_weights_are_parameters_that_start_at_the_stated_weight():
    config = TrainConfig(ricci_weight=0.3, smoothness_weight=0.2, penalty_adaptive=True)
    penalties = penalties_of(config)
    assert as_dict(penalties) == pytest.approx(
        {RicciRegularizer: 0.3, SmoothnessRegularizer: 0.2}, rel=1e-6
    )
    assert [p.item() for p in penalties.parameters()] == pytest.approx(
        [math.log(0.3), math.log(0.2)], rel=1e-5
    )
    assert list(penalties_of(TrainConfig(ricci_weight=0.3)).parameters()) == []


def test_adaptive_weights_may_start_from_theory():
    penalties = penalties_of(TrainConfig(penalty_weights="theory", penalty_adaptive=True))
    fixed = penalties_of(TrainConfig(penalty_weights="theory"))
    assert as_dict(penalties) == pytest.approx(as_dict(fixed), rel=1e-5)
    assert len(list(penalties.parameters())) == 2


@pytest.mark.parametrize("name", ["fixed", "theory", "theorem"])
def test_model_without_a_metric_has_no_penalty(name):
    config = TrainConfig(
        penalty_weights=name, ricci_weight=1.0, smoothness_weight=1.0, magnitude_weight=1.0
    )
    assert len(penalties_of(config, GCN(6, 8, 2))) == 0
