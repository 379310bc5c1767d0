"""The metric that reads the sums which carry the messages."""

from functools import partial

import pytest
import torch

from argnn.errors import ConfigError
from argnn.functional import aggregate
from argnn.functional.neighborhood import neighborhood
from argnn.kernels import cpu, use
from argnn.nn import ARGNN, ARConv


def graph(num_nodes=12, num_edges=40):
    edges = torch.randint(num_nodes, (2, num_edges))
    return torch.randn(num_nodes, 6, dtype=torch.float64), edges


def metric_layer(*sizes, **options):
    """A layer whose metric differs between nodes from the start, in double precision."""
    conv = ARConv(*sizes, metric="message", metric_options={"spread": 1.0}, **options)
    return conv.double()


OPTIONS = [
    {"modulation": "operator"},
    {"modulation": "operator", "direction": "both", "normalization": "sym"},
    {"modulation": "operator", "direction": "undirected", "normalization": "rw", "hops": 2},
    {"modulation": "operator", "direction": "out", "sending_metric": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_metric_is_that_of_features_sums_and_structure(options):
    x, edges = graph()
    conv = metric_layer(6, 5, **options)
    hood = neighborhood(edges, 12)
    ways = {"both": ["in", "out"]}.get(conv.direction, [conv.direction])
    summed = [aggregate(x, hood.relation(way), conv.normalization) for way in ways]
    net = conv.metric_net
    net.fit_to_graph(edges, 12)
    structure = net._descriptor(x, hood)
    hidden = net.lins[0](torch.cat([x, *summed, structure], dim=1)).relu()
    expected = torch.nn.functional.softplus(net.lins[1](hidden)) + net.floor
    torch.testing.assert_close(conv.metric(x, edges), expected)


@pytest.mark.parametrize("options", [*OPTIONS, {"modulation": "interpolation"}], ids=str)
def test_sums_that_are_handed_over_change_nothing(options):
    x, edges = graph()
    conv = metric_layer(6, 6, **options)
    sums = conv.read_sums(x, edges)
    g = conv.metric_from_sums(x, edges, sums)
    torch.testing.assert_close(conv(x, edges, g=g, sums=sums), conv(x, edges, g=g))
    torch.testing.assert_close(conv(x, edges, g=g, sums=sums), conv(x, edges))


@pytest.mark.parametrize("options", [*OPTIONS, {"modulation": "interpolation"}], ids=str)
def test_gradients(options):
    x, edges = graph(6, 14)
    conv = metric_layer(6, 6, **options)
    conv.metric_net.fit_to_graph(edges, 6)
    assert torch.autograd.gradcheck(lambda x: conv(x, edges), x.requires_grad_())


def counted(kernel, calls, *arguments, **options):
    calls.append(kernel)
    return kernel(*arguments, **options)


def test_neighbours_are_gathered_once(monkeypatch):
    """Two sums over edges a layer: one forward, one back. With ``both`` there are four."""
    counts = {}
    for metric in ("message", "both"):
        calls = []
        for name in ("gather_sum", "moments", "moments_backward"):
            kernel = getattr(cpu, name)
            monkeypatch.setattr(cpu, name, partial(counted, kernel, calls))
        x, edges = graph(50, 200)
        model = ARGNN(6, 8, 3, num_layers=2, metric=metric)
        with use("fused"):
            model(x.float(), edges).sum().backward()
        counts[metric] = len(calls)
        monkeypatch.undo()
    assert counts == {"message": 4, "both": 8}


def test_scalar_form_is_refused():
    with pytest.raises(ValueError, match="metric must be another one in the scalar form"):
        ARConv(4, 4, metric="message")
    with pytest.raises(ConfigError, match="needs modulation=operator or interpolation"):
        ARGNN(4, 4, 2, modulation="scalar", metric="message")


def test_missing_sums_are_an_error():
    x, edges = graph()
    net = metric_layer(6, 5, modulation="operator").metric_net
    with pytest.raises(ValueError, match="sums must be as many as messages, 1"):
        net(x, edges)
