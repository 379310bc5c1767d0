"""``torch_geometric.explain`` on ARGNN: the masks reach the messages, and nothing else changes."""

import pytest
import torch
from torch_geometric.explain import CaptumExplainer, Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from argnn.nn import ARGNN, ARConv

FORMS = {
    "operator": {},
    "scalar": {"modulation": "scalar", "attention": True, "metric": "features"},
    "out": {"direction": "out"},
    "both": {"direction": "both", "normalization": "rw"},
    "hops": {"hops": 2},
    "paper": {"preset": "paper", "metric_start": 0.5},
    "reference": {"preset": "reference"},
}
SIMPLE = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
DIRECTED = torch.tensor([[0, 1, 1, 2, 2, 4, 4, 0], [1, 2, 0, 0, 3, 3, 4, 1]])


def build(**options):
    torch.manual_seed(0)
    return ARGNN(6, 8, 3, num_layers=2, **options).eval()


def features():
    return torch.randn(5, 6, generator=torch.Generator().manual_seed(1))


def masked(model, x, edges, mask):
    set_masks(model, mask, edges, apply_sigmoid=False)
    try:
        return model(x, edges)
    finally:
        clear_masks(model)


@pytest.mark.parametrize("edges", [SIMPLE, DIRECTED], ids=["simple", "directed"])
@pytest.mark.parametrize("form", FORMS)
def test_a_mask_of_ones_changes_nothing(form, edges):
    model, x = build(**FORMS[form]), features()
    expected = model(x, edges)
    torch.testing.assert_close(masked(model, x, edges, torch.ones(8)), expected)
    assert torch.equal(model(x, edges), expected)  # no mask stays behind


@pytest.mark.parametrize("form", FORMS)
def test_the_mask_of_an_edge_changes_what_its_ends_hear(form):
    model, x = build(**FORMS[form]).double(), features().double()
    mask = torch.ones(8, dtype=torch.float64)
    whole = masked(model, x, SIMPLE, mask)
    mask[2] = 0
    part = masked(model, x, SIMPLE, mask)
    assert not torch.allclose(part[:4], whole[:4])
    torch.testing.assert_close(part[4], whole[4])  # has no edges


def test_a_mask_of_zeros_leaves_the_node_alone():
    conv, x = ARConv(6, 4, modulation="operator"), features()
    set_masks(conv, torch.zeros(8), SIMPLE, apply_sigmoid=False)
    torch.testing.assert_close(conv(x, SIMPLE), conv.lin_self(x) + conv.bias)


@pytest.mark.parametrize("direction", ["in", "out", "undirected"])
def test_the_mask_follows_the_edge_that_a_message_travels_along(direction):
    """Half the message along the masked edge arrives, and the whole message along the other."""
    conv = ARConv(6, 4, modulation="operator", direction=direction).double()
    x, edges = features().double(), torch.tensor([[0, 2], [1, 3]])
    heard_at = {"in": [1], "out": [0], "undirected": [0, 1]}[direction]
    expected = conv(x, edges)
    silent = conv(x, edges[:, :0])
    expected[heard_at] = 0.5 * (expected + silent)[heard_at]
    set_masks(conv, torch.tensor([0.5, 1.0]).double(), edges, apply_sigmoid=False)
    torch.testing.assert_close(conv(x, edges), expected)


def test_a_mask_of_another_graph_is_refused():
    model = build()
    with pytest.raises(ValueError, match="mask has 3 entries, but the graph 8 edges"):
        masked(model, features(), SIMPLE, torch.ones(3))


def explained(algorithm, model, **masks):
    explainer = Explainer(
        model,
        algorithm=algorithm,
        explanation_type="model",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
        edge_mask_type="object",
        **masks,
    )
    return explainer(features(), SIMPLE, index=0)


@pytest.mark.parametrize("form", ["operator", "scalar", "paper"])
def test_gnn_explainer_finds_edges_and_features(form):
    torch.manual_seed(0)
    found = explained(GNNExplainer(epochs=20), build(**FORMS[form]), node_mask_type="attributes")
    assert found.validate()
    assert found.edge_mask.shape == (8,)
    assert found.edge_mask.unique().numel() > 1
    assert found.node_mask.sum() > 0


# Captum switches gradients on, and warns that it does.
@pytest.mark.filterwarnings("ignore:Input Tensor .* did not already require gradients")
@pytest.mark.parametrize("method", ["IntegratedGradients", "Saliency"])
def test_captum_explainer_attributes_to_edges_and_features(method):
    pytest.importorskip("captum")
    found = explained(CaptumExplainer(method), build(), node_mask_type="attributes")
    assert found.edge_mask.abs().sum() > 0
    assert found.node_mask.abs().sum() > 0


def test_integrated_gradients_of_the_edges_add_up_to_what_the_messages_do():
    pytest.importorskip("captum")
    model, x = build(), features()
    found = explained(CaptumExplainer("IntegratedGradients"), model)
    with torch.no_grad():
        scores, silent = model(x, SIMPLE)[0], masked(model, x, SIMPLE, torch.zeros(8))[0]
    best = scores.argmax()
    assert float(found.edge_mask.detach().sum()) == pytest.approx(
        float(scores[best] - silent[best]), abs=0.02
    )
