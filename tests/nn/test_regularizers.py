import math

import pytest
import torch

import reference
from argnn.kernels import use
from argnn.nn import (
    MagnitudeRegularizer,
    RicciRegularizer,
    SmoothnessRegularizer,
    total_penalty,
)

from .cases import EDGES, NUM_NODES, edge_tensor, metrics, relation

EDGE_INDEX = edge_tensor(EDGES)
FIELDS = [metrics(NUM_NODES, channels, seed) for channels, seed in ((4, 1), (6, 2), (6, 3))]
KINDS = (RicciRegularizer, SmoothnessRegularizer, MagnitudeRegularizer)
every_kind = pytest.mark.parametrize("kind", KINDS)


def slow_energy(kind, g, reduction):
    """The energy of one layer, from the loops; directions and duplicates do not count."""
    both = relation(EDGES, "undirected")
    if kind is RicciRegularizer:
        return reference.ricci_energy(g.tolist(), both, reduction)
    if kind is SmoothnessRegularizer:
        return reference.smoothness_energy(g.tolist(), both, reduction)
    terms = [value**2 for row in g.tolist() for value in row]
    return sum(terms) if reduction == "sum" else sum(terms) / len(terms)


@every_kind
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_penalty_is_weight_times_energies_summed_over_layers(
    kind, reduction, learnable, num_layers
):
    penalty = kind(0.7, reduction=reduction, learnable=learnable)
    expected = 0.7 * sum(slow_energy(kind, g, reduction) for g in FIELDS[:num_layers])
    value = penalty(FIELDS[:num_layers], EDGE_INDEX)
    assert value.shape == ()
    assert value.item() == pytest.approx(expected, rel=1e-6 if learnable else 1e-12)


@every_kind
def test_penalty_reduction_defaults_to_the_sum_of_the_paper(kind):
    assert torch.equal(
        kind(0.5)(FIELDS, EDGE_INDEX), kind(0.5, reduction="sum")(FIELDS, EDGE_INDEX)
    )


@every_kind
def test_penalty_does_not_depend_on_directions_duplicates_or_self_loops(kind):
    penalty = kind(1.0)
    expected = penalty(FIELDS, EDGE_INDEX)
    once = edge_tensor(reference.unordered_pairs(EDGES))
    for edge_index in (EDGE_INDEX.flip(0), once, once.flip(0), torch.cat([once, once], dim=1)):
        torch.testing.assert_close(penalty(FIELDS, edge_index), expected)


@pytest.mark.parametrize("kind", [RicciRegularizer, SmoothnessRegularizer])
@pytest.mark.parametrize("value", [0.1, 1.0, 7.3])
def test_penalty_of_a_constant_metric_is_zero(kind, value):
    constant = [torch.full((NUM_NODES, 4), value)]
    assert kind(3.0)(constant, EDGE_INDEX).item() == 0
    assert kind(3.0)(FIELDS, edge_tensor([])).item() == 0


@every_kind
def test_learnable_weight_has_the_energy_as_its_gradient(kind):
    penalty = kind(0.3, learnable=True)
    value = penalty(FIELDS, EDGE_INDEX)
    value.backward()
    energy = sum(slow_energy(kind, g, "sum") for g in FIELDS)
    # dL/dw = energy, and w = exp(theta): dL/dtheta = w * energy.
    assert penalty.log_weight.grad.item() == pytest.approx(0.3 * energy, rel=1e-5)
    assert penalty.log_weight.grad.item() >= 0


@every_kind
def test_learnable_weight_stays_positive_and_only_shrinks_under_descent(kind):
    penalty = kind(0.5, learnable=True, reduction="mean")
    optimizer = torch.optim.Adam(penalty.parameters(), lr=0.5)
    weights = [penalty.effective_weight()]
    for _ in range(40):
        optimizer.zero_grad()
        penalty(FIELDS, EDGE_INDEX).backward()
        optimizer.step()
        weights.append(penalty.effective_weight())
    assert all(0 < later < earlier for earlier, later in zip(weights, weights[1:], strict=False))
    penalty.reset_parameters()
    assert penalty.effective_weight() == pytest.approx(0.5)


@every_kind
def test_looking_at_a_learnable_weight_gives_no_warning(kind):
    penalty = kind(0.5, learnable=True)
    torch.set_warn_always(True)  # torch gives this warning only once otherwise
    try:
        assert penalty.effective_weight() == pytest.approx(0.5)
        assert "0.5" in repr(penalty)
    finally:
        torch.set_warn_always(False)


@every_kind
def test_fixed_weight_is_no_parameter(kind):
    penalty = kind(0.25)
    assert list(penalty.parameters()) == []
    assert penalty.effective_weight() == 0.25
    penalty.reset_parameters()
    assert penalty.effective_weight() == 0.25
    assert [name for name, _ in kind(0.25, learnable=True).named_parameters()] == ["log_weight"]


@every_kind
def test_penalty_gradient_reaches_the_metrics(kind):
    fields = [g.clone().requires_grad_() for g in FIELDS]
    kind(1.0)(fields, EDGE_INDEX).backward()
    assert all(g.grad.isfinite().all() for g in fields)
    assert all(g.grad.abs().max() > 0 for g in fields)


@every_kind
@pytest.mark.parametrize("weight", [-1.0, -1e-9, math.nan, math.inf])
def test_penalty_refuses_an_impossible_weight(kind, weight):
    with pytest.raises(ValueError, match="weight must be finite and not negative"):
        kind(weight)


@every_kind
def test_penalty_refuses_a_learnable_zero_and_an_unknown_reduction(kind):
    with pytest.raises(ValueError, match="learnable weight must start above 0"):
        kind(0.0, learnable=True)
    with pytest.raises(ValueError, match="reduction must be one of .*got 'max'"):
        kind(1.0, reduction="max")


@every_kind
@pytest.mark.parametrize("learnable", [False, True])
def test_penalty_of_no_metric_is_zero(kind, learnable):
    value = kind(1.0, learnable=learnable)([], EDGE_INDEX)
    assert value.shape == ()
    assert value.item() == 0


@every_kind
def test_penalty_of_weight_zero_is_zero(kind):
    assert kind(0.0)(FIELDS, EDGE_INDEX).item() == 0


@every_kind
def test_penalty_repr_shows_weight_and_reduction(kind):
    assert repr(kind(0.25, reduction="mean")) == f"{kind.__name__}(0.25, reduction='mean')"


# -- several penalties at once --------------------------------------------------------------------

COMBINATIONS = {
    "both": [(RicciRegularizer, {}), (SmoothnessRegularizer, {})],
    "all, in another order": [
        (MagnitudeRegularizer, {}),
        (SmoothnessRegularizer, {}),
        (RicciRegularizer, {}),
    ],
    "means": [
        (RicciRegularizer, {"reduction": "mean"}),
        (SmoothnessRegularizer, {"reduction": "mean"}),
    ],
    "different reductions": [
        (RicciRegularizer, {"reduction": "mean"}),
        (SmoothnessRegularizer, {"reduction": "sum"}),
    ],
    "learnable": [
        (RicciRegularizer, {"learnable": True}),
        (SmoothnessRegularizer, {"learnable": True, "reduction": "sum"}),
    ],
    "one learnable": [
        (RicciRegularizer, {"reduction": "mean"}),
        (SmoothnessRegularizer, {"reduction": "mean", "learnable": True}),
        (MagnitudeRegularizer, {"learnable": True}),
    ],
    "ricci only": [(RicciRegularizer, {})],
    "smoothness only": [(SmoothnessRegularizer, {})],
    "magnitude only": [(MagnitudeRegularizer, {})],
    "two of a kind": [
        (RicciRegularizer, {}),
        (RicciRegularizer, {"reduction": "mean"}),
        (SmoothnessRegularizer, {}),
        (SmoothnessRegularizer, {"reduction": "mean"}),
    ],
    "none": [],
}
every_combination = pytest.mark.parametrize(
    "combination", COMBINATIONS.values(), ids=COMBINATIONS.keys()
)


def built(combination):
    return [kind(0.3 + 0.2 * i, **options) for i, (kind, options) in enumerate(combination)]


def value_and_gradients(function, penalties, dtype):
    """The penalty, and the gradient of every metric and every learnable weight."""
    fields = [g.clone().to(dtype).requires_grad_() for g in FIELDS]
    value = function(penalties, fields)
    weights = [weight for penalty in penalties for weight in penalty.parameters()]
    if not value.requires_grad:
        return [value]
    return [value.detach(), *torch.autograd.grad(value, [*fields, *weights])]


@every_combination
@pytest.mark.parametrize(
    ("mode", "dtype", "tolerance"),
    [
        ("plain", torch.float64, 1e-12),
        ("fused", torch.float64, 1e-12),
        ("auto", torch.float32, 1e-5),
    ],
)
def test_total_penalty_is_the_sum_of_the_penalties(combination, mode, dtype, tolerance):
    penalties = built(combination)
    with use(mode):
        actual = value_and_gradients(
            lambda all_, fields: total_penalty(all_, fields, EDGE_INDEX), penalties, dtype
        )
    with use("plain"):
        expected = value_and_gradients(
            lambda all_, fields: sum((r(fields, EDGE_INDEX) for r in all_), torch.zeros(())),
            penalties,
            torch.float64,
        )
    assert actual[0].shape == ()
    for a, b in zip(actual, expected, strict=True):
        assert (a - b).norm() <= tolerance * b.norm()


@every_combination
def test_total_penalty_of_no_metric_is_zero(combination):
    value = total_penalty(built(combination), [], EDGE_INDEX)
    assert value.shape == ()
    assert value.item() == 0


@every_combination
def test_total_penalty_does_not_depend_on_directions_duplicates_or_self_loops(combination):
    expected = total_penalty(built(combination), FIELDS, EDGE_INDEX)
    once = edge_tensor(reference.unordered_pairs(EDGES))
    for edge_index in (EDGE_INDEX.flip(0), once, torch.cat([once, once], dim=1)):
        torch.testing.assert_close(total_penalty(built(combination), FIELDS, edge_index), expected)


def test_total_penalty_takes_a_generator_once():
    penalties = built(COMBINATIONS["all, in another order"])
    assert torch.equal(
        total_penalty(iter(penalties), FIELDS, EDGE_INDEX),
        total_penalty(penalties, FIELDS, EDGE_INDEX),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_total_penalty_in_less_precision_is_near_double(dtype):
    penalties = built(COMBINATIONS["means"])
    fields = [g.to(dtype) for g in FIELDS]
    expected = total_penalty(penalties, [g.double() for g in fields], EDGE_INDEX)
    actual = total_penalty(penalties, fields, EDGE_INDEX)
    assert actual.item() == pytest.approx(expected.item(), rel=2 * torch.finfo(dtype).eps)
