"""The stack that models are built on; what each of them makes of it is tested with the model."""

from typing import Any

import pytest
import torch
from torch import nn

from argnn.nn.models.stack import AbstractStack


class Linears(AbstractStack):
    """Linear layers in place of convolutions."""

    farther = 3

    def __init__(self, num_layers: int, init_last: Any = None) -> None:
        super().__init__()
        self.set_sizes(4, 5, 2, num_layers)
        self.dropout = 0.5
        self.stack_convs(nn.Linear, self.sizes_to(2), init_last)

    def activation(self, h):
        return h.tanh()

    def forward_with_metric(self, x, edge_index):
        return self.through(self.convs, x), []


@pytest.mark.parametrize(
    ("num_layers", "sizes"),
    [(1, [(4, 2)]), (2, [(4, 5), (5, 2)]), (4, [(4, 5), (5, 5), (5, 5), (5, 2)])],
)
def test_layers_lead_from_each_size_to_the_next(num_layers, sizes):
    model = Linears(num_layers)
    assert [(lin.in_features, lin.out_features) for lin in model.convs] == sizes
    assert model.reach() == num_layers + 3


@pytest.mark.parametrize("num_layers", [1, 3])
def test_last_layer_may_be_made_differently(num_layers):
    model = Linears(num_layers, lambda a, b: nn.Linear(a, b, bias=False))
    assert [lin.bias is None for lin in model.convs] == [False] * (num_layers - 1) + [True]


def test_activation_is_between_layers_and_dropout_only_in_training():
    model, x = Linears(3), torch.randn(6, 4)
    first, second, third = model.convs
    expected = third(second(first(x).tanh()).tanh())
    assert torch.equal(model.eval()(x, None), expected)
    assert not torch.equal(model.train()(x, None), expected)


def test_reset_draws_parts_in_the_order_in_which_they_were_made():
    torch.manual_seed(1)
    model = Linears(3)
    drawn = [parameter.clone() for parameter in model.parameters()]
    model.reset_parameters()
    assert not any(torch.equal(a, b) for a, b in zip(drawn, model.parameters(), strict=True))
    torch.manual_seed(1)
    model.reset_parameters()
    assert all(torch.equal(a, b) for a, b in zip(drawn, model.parameters(), strict=True))
