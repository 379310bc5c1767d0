"""The control for a learned metric: what a metric network reads, as plain features."""

import pytest
import torch

from argnn import functional as AF
from argnn.functional.structure import column_statistics, standardized
from argnn.nn import ARGNN
from argnn.nn.structure_features import StructureFeatures

from .cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

IN, HIDDEN, OUT = 5, 6, 3
X = features(NUM_NODES, IN)
EDGE_INDEX = edge_tensor(EDGES)
SHAPES = {
    "default": {},
    "no self path": {"self_path": False},
    "no encoder": {"encoder": False, "norm": "none"},
    "conv head": {"head": "conv", "jump": "last"},
    "paper": {"preset": "paper"},
    "reference": {"preset": "reference"},
}
every_shape = pytest.mark.parametrize("options", SHAPES.values(), ids=SHAPES)


def control(num_layers=2, **options):
    torch.manual_seed(0)
    switches = {"metric": "fixed", "structure_features": True, **options}
    return perturbed(ARGNN(IN, HIDDEN, OUT, num_layers, **switches).double()).eval()


@every_shape
def test_switched_off_there_is_no_trace_of_it(options):
    models = []
    for switch in ({}, {"structure_features": False}):
        torch.manual_seed(0)
        models.append((ARGNN(IN, HIDDEN, OUT, 2, **options, **switch), torch.rand(1)))
    (usual, drawn), (off, drawn_too) = models
    assert torch.equal(drawn, drawn_too)
    states = usual.state_dict(), off.state_dict()
    assert [*states[0]] == [*states[1]]
    assert not any("structure" in name for name in states[0])
    assert all(torch.equal(*pair) for pair in zip(*(s.values() for s in states), strict=True))


def test_switched_on_the_other_weights_start_as_without_it():
    models = []
    for switch in (True, False):
        torch.manual_seed(0)
        models.append(ARGNN(IN, HIDDEN, OUT, 2, metric="fixed", structure_features=switch))
    on, off = (model.state_dict() for model in models)
    weights = {"lin_hidden.weight", "lin_scores.weight"}
    statistics = {f"statistics.{name}" for name in ("mean", "deviation", "fitted")}
    assert on.keys() - off.keys() == {f"structure.{name}" for name in weights | statistics}
    assert all(torch.equal(on[name], value) for name, value in off.items())


@every_shape
def test_scores_of_every_node_depend_on_its_own_descriptor(options, monkeypatch):
    """Also where a node's own features do not reach them, and where it has no neighbours."""
    model = control(1, **options)
    s = AF.structural_descriptor(EDGE_INDEX, NUM_NODES).requires_grad_()
    expected = model(X, EDGE_INDEX).detach()
    monkeypatch.setattr(StructureFeatures, "descriptor", lambda *_: s)
    scores = model(X, EDGE_INDEX)
    assert torch.equal(scores, expected)
    for node in range(NUM_NODES):
        [gradient] = torch.autograd.grad(scores[node].square().sum(), s, retain_graph=True)
        assert (gradient[node].abs() > 1e-6).all()


def test_descriptor_travels_along_edges_as_features_do(monkeypatch):
    model = control(1, self_path=False)
    s = AF.structural_descriptor(EDGE_INDEX, NUM_NODES).requires_grad_()
    monkeypatch.setattr(StructureFeatures, "descriptor", lambda *_: s)
    [gradient] = torch.autograd.grad(model(X, EDGE_INDEX)[0].square().sum(), s)
    heard = gradient.abs().amax(-1) > 1e-9
    joined = {a for pair in EDGES for a in pair if 0 in pair}
    assert set(heard.nonzero().squeeze(-1).tolist()) == joined


def test_without_encoder_the_descriptor_is_five_further_columns():
    model = control(2, encoder=False, norm="none")
    wide = ARGNN(IN + 5, HIDDEN, OUT, 2, metric="fixed", encoder=False, norm="none").double().eval()
    state = {n: t for n, t in model.state_dict().items() if not n.startswith("structure.")}
    wide.load_state_dict(state)
    s = AF.structural_descriptor(EDGE_INDEX, NUM_NODES).double()
    expected = wide(torch.cat([X, s], dim=-1), EDGE_INDEX)
    expected = expected + s @ model.structure.lin_scores.weight.t()
    torch.testing.assert_close(model(X, EDGE_INDEX), expected, rtol=1e-12, atol=1e-12)


def test_control_tells_nodes_apart_that_a_fixed_metric_does_not():
    """A star with a tail, where all features are equal and messages are means."""
    edges = edge_tensor([(0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0), (3, 4), (4, 3)])
    x = torch.ones(5, IN, dtype=torch.float64)
    plain = control(2, normalization="rw", structure_features=False)(x, edges)
    assert (plain - plain[0]).abs().max() < 1e-12
    scores = control(2, normalization="rw")(x, edges)
    assert (scores[0] - scores[1]).abs().max() > 1e-3
    torch.testing.assert_close(scores[1], scores[2], rtol=1e-9, atol=1e-9)  # by symmetry


def test_no_dropout_acts_on_the_descriptor():
    model = control(1, encoder=False, norm="none", input_dropout=0.9, dropout=0.0).train()
    torch.manual_seed(1)
    entered = model.encoded(X, EDGE_INDEX)
    s = AF.structural_descriptor(EDGE_INDEX, NUM_NODES)
    assert torch.equal(entered[:, IN:], standardized(s, *column_statistics(s)))
    assert not torch.equal(entered[:, :IN], X)
