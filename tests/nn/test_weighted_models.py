"""Weights of edges in every model of the registry, and their gradients in ARConv."""

import copy

import pytest
import torch
from torch_geometric import nn as gnn
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from argnn.errors import ConfigError
from argnn.functional.neighborhood import neighborhood
from argnn.nn import ARGNN, MODELS, ARConv, LinkModel
from argnn.train import NodeClassification, TrainConfig, fit

NODES, IN = 12, 5
#: Methods without a sum over neighbours.
WITHOUT_EDGES = ("mlp",)
every_model = pytest.mark.parametrize("name", MODELS)

#: Further forms of models, by name and options.
FORMS = {
    "argnn paper": ("argnn", {"preset": "paper", "metric_start": 0.5}),
    "argnn scalar": ("argnn", {"modulation": "scalar", "metric": "both", "direction": "both"}),
    "argnn rows": ("argnn", {"adjacency_rows": True, "metric": "structure"}),
    "argnn degree": ("argnn", {"metric_init": "degree", "metric_closed": True, "hops": 2}),
    "hgcn attention": ("hgcn", {"attention": True}),
    "hgat learned": ("hgat", {"attention": "learned"}),
    "curvdrop all": ("curvdrop", {"edge_dropout": 0.0}),
}
CASES = {name: (name, {}) for name in MODELS} | FORMS
every_case = pytest.mark.parametrize("case", CASES)


def graph(seed=0):
    """Features, directed edges with duplicates and self-loops, and weights."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(NODES - 1, (2, 40), generator=generator)
    weight = 0.3 + 2 * torch.rand(40, generator=generator, dtype=torch.float64)
    return torch.rand(NODES, IN, generator=generator, dtype=torch.float64), edges, weight


def build(case, **further):
    name, options = CASES[case]
    torch.manual_seed(1)
    model = MODELS[name](IN, 16, 3, **options, **further).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    x, edges, weight = graph()
    model.fit_to_graph(neighborhood(edges, NODES, weight), NODES)
    return model.eval()


@every_case
def test_weights_of_one_change_no_bit(case):
    x, edges, weight = graph()
    model = build(case)
    assert torch.equal(model(x, edges, torch.ones(40)), model(x, edges))


@every_case
def test_a_weight_of_zero_is_no_edge(case):
    x, edges, weight = graph()
    weight[::3] = 0
    model = build(case)
    kept = weight > 0
    assert torch.equal(model(x, edges, weight), model(x, edges[:, kept], weight[kept]))


@every_case
def test_every_method_hears_the_weights(case):
    x, edges, weight = graph()
    model = build(case)
    changed = not torch.allclose(model(x, edges, weight), model(x, edges), rtol=1e-6)
    assert changed == (CASES[case][0] not in WITHOUT_EDGES)


@every_case
def test_weights_reach_every_parameter_in_training(case):
    x, edges, weight = graph()
    model = build(case, dropout=0.0).train()
    model(x, edges, weight).square().mean().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())


@every_case
def test_prepared_weights_are_those_of_the_call(case):
    x, edges, weight = graph()
    model = build(case)
    scores = model.forward_with_metric(x, neighborhood(edges, NODES, weight))[0]
    assert torch.equal(scores, model(x, edges, weight))


@every_case
def test_order_of_edges_does_not_matter(case):
    x, edges, weight = graph()
    model, order = build(case), torch.randperm(40, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(model(x, edges[:, order], weight[order]), model(x, edges, weight))


def test_all_methods_take_weights():
    assert all(model.takes_edge_weight for model in MODELS.values())


class Own(MODELS["gcn"]):
    takes_edge_weight = False


def test_a_model_that_does_not_take_weights_says_so():
    x, edges, weight = graph()
    model, y = Own(IN, 8, 2).double(), torch.arange(NODES) % 2
    with pytest.raises(ConfigError, match="Own takes no edge weights"):
        model(x, edges, weight)
    with pytest.raises(ConfigError, match="LinkModel takes no edge weights"):
        LinkModel(model, "dot")(x, edges, weight)
    task = NodeClassification(y, torch.arange(NODES) < 6, torch.arange(NODES) >= 6)
    data = Data(x=x, edge_index=edges, edge_weight=weight)
    with pytest.raises(ConfigError, match="Own takes no edge weights"):
        fit(model, data, task, TrainConfig(epochs=1))


def test_fit_uses_weights():
    x, edges, weight = graph()
    y, states = torch.arange(NODES) % 2, []
    task = NodeClassification(y, torch.arange(NODES) < 6, torch.arange(NODES) >= 6)
    for given in ({}, {"edge_weight": weight}, {"edge_weight": torch.ones(40)}):
        torch.manual_seed(0)
        model = MODELS["gcn"](IN, 8, 2).double()
        fit(model, Data(x=x, edge_index=edges, **given), task, TrainConfig(epochs=3))
        states.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(states[0], states[2])
    assert not torch.allclose(states[0], states[1])


def test_embeddings_for_links_use_weights():
    x, edges, weight = graph()
    model = LinkModel(build("gcn"), "dot")
    assert not torch.allclose(model(x, edges, weight), model(x, edges))


# -- against PyG ----------------------------------------------------------------------------------


def test_gcn_is_that_of_pyg():
    x, edges, weight = graph()
    edges, weight = edges[:, edges[0] != edges[1]], weight[edges[0] != edges[1]]
    both = torch.cat([edges, edges.flip(0)], 1)  # PyG takes the in-degree for both ends
    weights = weight.repeat(2)
    ours = build("gcn").convs[0]
    theirs = gnn.GCNConv(IN, 16).double()
    theirs.load_state_dict(ours.state_dict())
    hood = neighborhood(both, NODES, weights)
    torch.testing.assert_close(ours(x, hood), theirs(x, both, weights))


def test_sym_is_the_norm_of_pyg():
    x, edges, weight = graph()
    edges, weight = edges[:, edges[0] != edges[1]], weight[edges[0] != edges[1]]
    both, weights = torch.cat([edges, edges.flip(0)], 1), weight.repeat(2)
    expected = gcn_norm(both, weights, NODES, add_self_loops=False, dtype=torch.float64)[1]
    found = neighborhood(both, NODES, weights).edge_weight("sym", torch.float64)
    torch.testing.assert_close(found, expected)


# -- gradients of weights -------------------------------------------------------------------------

CONVS = {
    "scalar": {},
    "target norm": {"neighbor_norm": "target", "normalization": "rw"},
    "operator": {"modulation": "operator", "normalization": "sym", "metric": "both"},
    "both ways": {"modulation": "operator", "direction": "both", "hops": 2},
    "undirected": {"direction": "undirected", "metric": "structure"},
    "degrees": {"metric_options": {"init": "degree", "closed": True}},
}


@pytest.mark.parametrize("options", CONVS.values(), ids=CONVS.keys())
def test_gradients_of_weights_are_right(options):
    x, edges, weight = graph()
    torch.manual_seed(2)
    options = {**options, "metric_options": {"spread": 1.0} | options.get("metric_options", {})}
    conv = ARConv(IN, 4, **options).double()
    conv.metric_net.fit_to_graph(edges, NODES)
    few = slice(0, 12)
    edges = edges[:, few]

    def function(weight, x):
        return conv(x, edges, weight)

    inputs = weight[few].clone().requires_grad_(), x.requires_grad_()
    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("options", CONVS.values(), ids=CONVS.keys())
def test_weights_with_and_without_gradient_give_the_same(options):
    x, edges, weight = graph()
    conv = copy.deepcopy(ARConv(IN, 4, **options)).double().eval()
    expected = conv(x, edges, weight)
    torch.testing.assert_close(conv(x, edges, weight.requires_grad_()), expected)


def test_learned_weights_can_be_trained():
    """Only the weights learn to move the result to that of other weights."""
    x, edges, wanted = graph()
    conv = ARConv(IN, 4, modulation="operator").double().requires_grad_(False)
    target, raw = conv(x, edges, wanted), torch.zeros(40, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([raw], lr=0.1)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (conv(x, edges, torch.nn.functional.softplus(raw)) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]


def test_a_metric_as_third_argument_is_named():
    x, edges, _ = graph()
    conv = ARConv(IN, 4).double()
    with pytest.raises(ValueError, match="edge_weight must have one number per edge"):
        conv(x, edges, conv.metric(x, edges))


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta state")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
def test_a_sparse_adjacency_has_its_weights():
    x, edges, weight = graph()
    keys = torch.unique(edges[1] * NODES + edges[0])
    edges, weight = torch.stack([keys % NODES, keys // NODES]), weight[: keys.numel()]
    adjacency = to_torch_coo_tensor(edges.flip(0), weight, NODES)
    model = ARGNN(IN, 8, 3).double().eval()
    expected = model(x, edges, weight)
    torch.testing.assert_close(model(x, adjacency), expected)
    torch.testing.assert_close(
        model(x, to_torch_csr_tensor(edges.flip(0), weight, NODES)), expected
    )
    with pytest.raises(ValueError, match="are its weights"):
        ARConv(IN, 4).double()(x, adjacency, weight)
