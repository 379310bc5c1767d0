"""A metric of what nodes send beside that of what they receive."""

import pytest
import torch
from tests.train.cases import task_of, two_blocks

from argnn import functional as AF
from argnn.errors import ConfigError
from argnn.nn import ARGNN, ARConv
from argnn.settings.options import recorded_options, resolve_options
from argnn.train import TrainConfig, fit

from .cases import (
    EDGES,
    NUM_NODES,
    dense_adjacency,
    edge_tensor,
    features,
    metrics,
    perturbed,
    relations,
    renamed,
)

IN, HIDDEN, OUT = 5, 6, 3
X = features(NUM_NODES, IN)
GRAPH = edge_tensor(EDGES)


def conv_of(**options):
    torch.manual_seed(0)
    options = {"modulation": "operator", "sending_metric": True, **options}
    return ARConv(IN, HIDDEN, **options).double()


def model_of(layers=2, **options):
    torch.manual_seed(0)
    options = {"sending_metric": True, "metric_spread": 1.0, **options}
    model = ARGNN(IN, HIDDEN, OUT, layers, **options).double()
    model.fit_to_graph(GRAPH, NUM_NODES)
    return perturbed(model, scale=0.1)


@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("direction", ["in", "both", "undirected"])
def test_layer_by_dense_matrices(direction, hops):
    """h' = W_s h + T sum_k A^k S W_k h, with the operators as diagonal matrices."""
    conv = conv_of(direction=direction, hops=hops, normalization="sym", eps0=0.1)
    g, s = metrics(NUM_NODES, HIDDEN), metrics(NUM_NODES, HIDDEN, seed=2)

    def operator(g):
        return 0.1 + 0.9 * (1 - g**2) / (1 + g**2)

    lins, total = iter(conv.lins_neighbor), torch.zeros(NUM_NODES, HIDDEN, dtype=torch.float64)
    for along in relations(EDGES, direction):
        matrix = dense_adjacency(along, NUM_NODES, "sym")
        for hop in range(1, hops + 1):
            sent = operator(s) * (X @ next(lins).weight.t())
            total += torch.linalg.matrix_power(matrix, hop) @ sent
    expected = operator(g) * total + X @ conv.lin_self.weight.t() + conv.bias
    torch.testing.assert_close(conv(X, GRAPH, g=g, s=s), expected, rtol=1e-10, atol=1e-10)


def test_without_it_nothing_changes():
    states = []
    for switch in (True, False):
        torch.manual_seed(0)
        states.append(ARConv(IN, HIDDEN, modulation="operator", sending_metric=switch))
    on, off = (conv.state_dict() for conv in states)
    assert {name.split(".")[0] for name in on.keys() - off.keys()} == {"sending_net"}
    assert states[1].sending(X.float(), GRAPH) is None


def test_a_sending_metric_near_zero_changes_nothing():
    """At a metric of zero the operator is the unit matrix."""
    conv, g = conv_of(), metrics(NUM_NODES, HIDDEN)
    torch.manual_seed(0)
    plain = ARConv(IN, HIDDEN, modulation="operator").double()
    plain.load_state_dict({k: v for k, v in conv.state_dict().items() if "sending" not in k})
    found = conv(X, GRAPH, g=g, s=torch.full_like(g, 1e-9))
    torch.testing.assert_close(found, plain(X, GRAPH, g=g), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", ["diagonal", "lowrank"])
@pytest.mark.parametrize("source", ["both", "shared", "free"])
def test_both_metrics_are_learned_and_penalised(source, shape):
    model = model_of(metric=source, metric_shape=shape)
    found = model.forward_with_metric(X, GRAPH)[1]
    assert len(found) == 4
    names = [name for name, group in model.parameter_groups().items() if group == "metric"]
    assert {name.split(".")[2] for name in names} == {"metric_net", "sending_net"}
    AF.metric_energies(found, GRAPH)[1].backward()
    if source != "shared":  # groups of a small graph may be alike
        assert all(model.get_parameter(name).grad is not None for name in names)
    assert len(model.node_parameters()) == (4 * (1 + (shape == "lowrank"))) * (source == "free")


def test_gradients_and_equivariance():
    model = model_of(dropout=0.0, input_dropout=0.0).eval()
    assert torch.autograd.gradcheck(lambda x: model(x, GRAPH), X.clone().requires_grad_())
    x, edges, order = renamed(X, GRAPH, seed=4)
    torch.testing.assert_close(model(x, edges), model(X, GRAPH)[order], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("hops", [1, 2])
def test_reach_counts_the_neighbours_that_a_sender_reads(hops):
    """On a path, the far end of the reach matters and the node behind it does not."""
    count = 12
    path = torch.stack([torch.arange(count - 1), torch.arange(1, count)])
    path = torch.cat([path, path.flip(0)], dim=1)
    torch.manual_seed(0)
    options = {"sending_metric": True, "metric": "features", "metric_spread": 1.0, "hops": hops}
    model = ARGNN(IN, HIDDEN, OUT, 2, **options).double().eval()
    x = features(count, IN).requires_grad_()
    model(x, path)[0].sum().backward()
    read = (x.grad.abs().amax(-1) > 0).nonzero().max().item()
    assert read == 2 * (hops + 1) <= model.reach()


def test_training_can_be_continued():
    graph = two_blocks()
    config = TrainConfig(epochs=6, checkpoint_every=3, smoothness_weight=0.1)
    models, snapshots = [], []
    for resume in (False, True):
        torch.manual_seed(int(resume))
        models.append(ARGNN(6, 8, 2, 2, sending_metric=True))
        again = {"resume_from": snapshots[0]} if resume else {"save": snapshots.append}
        fit(models[-1], graph, task_of(graph), config, **again)
    first, second = (model.state_dict() for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_other_forms_have_none():
    with pytest.raises(ConfigError, match="sending_metric needs modulation='operator'"):
        resolve_options("argnn", "default", {"sending_metric": True, "modulation": "scalar"})
    with pytest.raises(ConfigError, match="sending_metric must be False, or the modulation"):
        ARConv(4, 4, sending_metric=True)
    usual = resolve_options("argnn", "default")
    assert "sending_metric" not in recorded_options("argnn", usual)


def test_explainers_say_that_they_cannot_mask_it():
    conv = conv_of()
    conv.explain = True
    with pytest.raises(ValueError, match="layers without a sending metric"):
        conv(X, GRAPH)
