import copy

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn.models import LINKX as PyGLINKX

from argnn.errors import ConfigError
from argnn.functional.row_normalization import normalized_rows
from argnn.nn import LinkModel
from argnn.nn.models.linkx import LINKX
from argnn.train import NodeClassification, TrainConfig, fit

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed, renamed

GRAPH = edge_tensor([(j, i) for j, i in EDGES if i != j])
NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def model_of(seed=0, **options):
    torch.manual_seed(seed)
    return LINKX(4, 5, 3, **options).eval()


def seen(model, dtype=torch.float32):
    """The model after it has met its graph, with every weight moved."""
    model = model.to(dtype)
    model(features(NUM_NODES, 4, dtype=dtype), GRAPH)
    return perturbed(model).eval()


def as_pyg(model, edge_layers, node_layers, num_layers):
    other = PyGLINKX(NUM_NODES, 4, 5, 3, num_layers, edge_layers, node_layers).double().eval()
    state = {
        name: value for name, value in model.state_dict().items() if not name.startswith("mix.")
    }
    weight, half = model.mix.weight, model.mix.bias / 2
    for place, part in (("cat_lin1", weight[:, :5]), ("cat_lin2", weight[:, 5:])):
        state |= {f"{place}.weight": part, f"{place}.bias": half}
    other.load_state_dict(state)
    return other


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize(("edge_layers", "node_layers"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_network_is_that_of_pyg(edge_layers, node_layers, num_layers):
    options = {"edge_layers": edge_layers, "node_layers": node_layers, "num_layers": num_layers}
    model, x = seen(model_of(**options), torch.float64), features(NUM_NODES, 4)
    expected = as_pyg(model, **options)(x, GRAPH)
    torch.testing.assert_close(model(x, GRAPH), expected, rtol=1e-12, atol=1e-12)


def test_weights_have_the_size_of_the_first_graph():
    model = model_of()
    assert model.edge_lin.num_nodes == 0
    model(features(NUM_NODES, 4, dtype=torch.float32), GRAPH)
    assert model.edge_lin.weight.shape == (NUM_NODES, 5)
    bound = NUM_NODES**-0.5
    assert 0.7 * bound < model.edge_lin.weight.abs().max() <= bound


def test_graph_of_another_size_is_refused():
    model = seen(model_of())
    message = "a weight for each of the 9 nodes .* another size \\(got 4 nodes\\)"
    with pytest.raises(ValueError, match=message):
        model(features(4, 4, dtype=torch.float32), NO_EDGES)
    # Other edges among the same nodes are what link prediction needs.
    assert model(features(NUM_NODES, 4, dtype=torch.float32), GRAPH[:, :3].clone()).shape == (9, 3)


def test_first_graph_does_not_touch_the_random_numbers_of_others():
    model = model_of()
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    model(features(NUM_NODES, 4, dtype=torch.float32), GRAPH)
    assert torch.equal(torch.rand(1), expected)


def test_same_seed_gives_the_same_weights_whenever_the_graph_comes():
    first, second = model_of(), model_of()
    torch.manual_seed(99)
    x = features(NUM_NODES, 4, dtype=torch.float32)
    assert torch.equal(first(x, GRAPH), second(x, GRAPH))
    assert not torch.equal(first(x, GRAPH), model_of(seed=1)(x, GRAPH))


def test_reset_keeps_the_size_and_draws_anew():
    model, x = seen(model_of()), features(NUM_NODES, 4, dtype=torch.float32)
    before = model(x, GRAPH)
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        model.reset_parameters()
        results.append(model(x, GRAPH))
        perturbed(model)
    assert model.edge_lin.num_nodes == NUM_NODES
    assert torch.equal(*results)
    assert not torch.equal(results[0], before)


def test_state_goes_into_a_model_that_has_seen_no_graph():
    first, second = seen(model_of()), model_of(seed=1)
    x = features(NUM_NODES, 4, dtype=torch.float32)
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(x, GRAPH), first(x, GRAPH))
    assert torch.equal(copy.deepcopy(second)(x, GRAPH), first(x, GRAPH))


def test_state_of_another_graph_is_refused():
    other = model_of()
    other(features(4, 4, dtype=torch.float32), NO_EDGES)
    with pytest.raises(RuntimeError, match="size mismatch"):
        seen(model_of()).load_state_dict(other.state_dict())


def test_other_names_of_the_nodes_need_other_rows_of_the_weight():
    """The network is equivariant only if its weight is renamed as well."""
    model, x = seen(model_of(), torch.float64), features(NUM_NODES, 4)
    expected = model(x, GRAPH)
    moved, edges, order = renamed(x, GRAPH, seed=1)
    assert not torch.allclose(model(moved, edges), expected[order])
    with torch.no_grad():
        model.edge_lin.weight.copy_(model.edge_lin.weight[order])
    torch.testing.assert_close(model(moved, edges), expected[order], rtol=1e-10, atol=1e-10)


def test_training_reaches_every_weight_and_lowers_the_loss():
    graph = Data(x=features(NUM_NODES, 4, dtype=torch.float32), edge_index=GRAPH)
    y = torch.arange(NUM_NODES) % 3
    half = torch.arange(NUM_NODES) < 6
    model = model_of(edge_layers=2, node_layers=2)
    task = NodeClassification(y, half, ~half)
    history = fit(model, graph, task, TrainConfig(epochs=30, lr=0.02)).history
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    assert min(record.task_loss for record in history[-5:]) < history[0].task_loss


def test_inference_on_the_first_graph_does_not_spoil_training():
    model, x = model_of(), features(NUM_NODES, 4, dtype=torch.float32)
    with torch.inference_mode():
        model(x, GRAPH)
    model(x, GRAPH).sum().backward()
    assert model.edge_lin.weight.grad.isfinite().all()


@pytest.mark.parametrize("graph", [GRAPH, NO_EDGES], ids=["edges", "no edges"])
@pytest.mark.parametrize("change", [torch.zeros_like, torch.ones_like, lambda x: x])
def test_scores_and_gradients_are_finite(graph, change):
    model, x = seen(model_of()), change(features(NUM_NODES, 4, dtype=torch.float32))
    scores = model(x, graph)
    assert scores.isfinite().all()
    scores.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_pairs_are_scored():
    torch.manual_seed(0)
    model = LinkModel(LINKX(4, 5, 5), LINKX.link_decoder).eval()
    embedding = model(features(NUM_NODES, 4, dtype=torch.float32), GRAPH)
    assert model.pair_scores(embedding, GRAPH).shape == (GRAPH.size(1),)


def test_input_is_normalized_where_asked_for():
    plain, normal = seen(model_of()), model_of(normalize_input=True)
    normal.load_state_dict(plain.state_dict())
    x = features(NUM_NODES, 4, dtype=torch.float32)
    assert torch.equal(normal(x, GRAPH), plain(normalized_rows(x), GRAPH))


@pytest.mark.parametrize("option", ["edge_layers", "node_layers"])
def test_impossible_depths_are_refused(option):
    with pytest.raises(ConfigError, match=f"{option} must be at least 1"):
        LINKX(4, 5, 3, **{option: 0})
