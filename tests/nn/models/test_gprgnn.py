import pytest
import torch

from argnn.errors import ConfigError
from argnn.functional.pagerank import pagerank_coefficients
from argnn.functional.row_normalization import normalized_rows
from argnn.functional.self_loops import closed_aggregate
from argnn.nn.models import GPRGNN

from ..cases import EDGES, NUM_NODES, edge_tensor, features

GRAPH = edge_tensor(EDGES)


def model_of(**options):
    torch.manual_seed(0)
    return GPRGNN(4, 5, 3, **options).double().eval()


def perceptron(model, x):
    first, second = model.lins
    h = (normalized_rows(x) @ first.weight.t() + first.bias).relu()
    return h @ second.weight.t() + second.bias


def test_full_teleport_starts_as_a_perceptron():
    model, x = model_of(teleport=1.0), features(NUM_NODES, 4)
    torch.testing.assert_close(model(x, GRAPH), perceptron(model, x), rtol=1e-12, atol=1e-12)


def test_no_teleport_starts_from_the_last_power():
    model, x = model_of(teleport=0.0), features(NUM_NODES, 4)
    expected = perceptron(model, x)
    for _ in range(10):
        expected = closed_aggregate(expected, GRAPH, "sym")
    torch.testing.assert_close(model(x, GRAPH), expected, rtol=1e-12, atol=1e-12)


def test_polynomial_is_learned_and_single_precision():
    model = GPRGNN(4, 5, 3, teleport=0.2, hops=4)
    assert model.gamma.dtype == torch.float32
    assert model.gamma.requires_grad
    torch.testing.assert_close(model.gamma.detach(), torch.tensor(pagerank_coefficients(0.2, 4)))
    model(features(NUM_NODES, 4, dtype=torch.float32), GRAPH).square().sum().backward()
    assert (model.gamma.grad != 0).all()


def test_reset_starts_the_polynomial_again():
    model = GPRGNN(4, 5, 3, teleport=0.2)
    with torch.no_grad():
        model.gamma.fill_(7.0)
    model.reset_parameters()
    torch.testing.assert_close(model.gamma.detach(), torch.tensor(pagerank_coefficients(0.2, 10)))


def test_dropout_acts_before_the_maps_and_before_the_propagation():
    x = features(NUM_NODES, 4)
    for options in ({"dropout": 0.5}, {"propagation_dropout": 0.5}):
        model = model_of(**{"dropout": 0.0, "propagation_dropout": 0.0, **options}).train()
        assert not torch.equal(model(x, GRAPH), model(x, GRAPH)), options
    model = model_of(dropout=0.0, propagation_dropout=0.0).train()
    assert torch.equal(model(x, GRAPH), model(x, GRAPH))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"hops": -1}, "hops must be at least 0"), ({"teleport": 1.5}, "teleport must be in")],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        GPRGNN(4, 5, 3, **options)
