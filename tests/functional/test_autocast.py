"""Sums over edges under ``torch.autocast``: what they gather is rounded, the sums are not."""

import pytest
import torch

from argnn import functional as AF
from argnn.functional.neighborhood import neighborhood
from argnn.functional.self_loops import closed_aggregate, closed_row_sum
from argnn.kernels import use
from argnn.nn.conv.pyg import GATConv, GCNConv, SAGEConv
from argnn.nn.part_norm import normalized

NODES, CHANNELS = 40, 12


def drawn():
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, 300), generator=generator)
    h, g = torch.randn(2, NODES, CHANNELS, generator=generator)
    return h, g.exp(), edges


SUMS = {
    "aggregate": lambda h, g, edges: [AF.aggregate(h, edges, "sym")],
    "closed aggregate": lambda h, g, edges: [closed_aggregate(h, edges)],
    "moments": lambda h, g, edges: list(AF.neighbor_moments(h, edges)),
    "propagate": lambda h, g, edges: [AF.propagate(h, g, h, edges, 0.3)],
    "propagate messages": lambda h, g, edges: [AF.propagate(h, g, h.roll(1, 0), edges, 0.3)],
}
every_sum = pytest.mark.parametrize("summed", SUMS.values(), ids=SUMS.keys())
every_mode = pytest.mark.parametrize("mode", ["fused", "plain"])


def run(summed, mode, *, autocast, dtype=torch.float32):
    """Sums, and the gradients of features and metric."""
    h, g, edges = drawn()
    h, g = (t.to(dtype).requires_grad_() for t in (h, g))
    with use(mode):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            found = summed(h, g, edges)
        total = sum(part.float().square().sum() for part in found)
        grads = torch.autograd.grad(total, (h, g), allow_unused=True)
    return [part.detach() for part in found], [grad for grad in grads if grad is not None]


@every_mode
@every_sum
def test_rows_are_gathered_in_the_type_of_autocast(summed, mode):
    found, grads = run(summed, mode, autocast=True)
    rounded, _ = run(summed, mode, autocast=False, dtype=torch.bfloat16)
    assert {t.dtype for t in (*found, *grads)} == {torch.float32}
    for actual, expected in zip(found, rounded, strict=True):
        assert torch.equal(actual.bfloat16(), expected)
    exact = run(summed, mode, autocast=False)
    assert not all(torch.equal(a, b) for a, b in zip(found, exact[0], strict=True))
    for actual, expected in zip((*found, *grads), (*exact[0], *exact[1]), strict=True):
        assert (actual - expected).norm() < 2**-6 * expected.norm()


@every_mode
@every_sum
def test_the_same_bits_twice(summed, mode):
    first, second = (run(summed, mode, autocast=True) for _ in range(2))
    for part, again in zip((*first[0], *first[1]), (*second[0], *second[1]), strict=True):
        assert torch.equal(part, again)


@every_sum
def test_fused_sums_are_the_plain_ones(summed):
    fused, plain = (run(summed, mode, autocast=True) for mode in ("fused", "plain"))
    for part, other in zip((*fused[0], *fused[1]), (*plain[0], *plain[1]), strict=True):
        assert (part - other).norm() < 2**-7 * other.norm()


def test_sums_of_large_values_lose_no_small_terms():
    edges = torch.stack([torch.arange(1, 2049), torch.zeros(2048, dtype=torch.int64)])
    ones = torch.ones(2049, 1)
    for mode in ("fused", "plain"):
        with use(mode), torch.autocast("cpu", torch.bfloat16):
            assert AF.aggregate(ones, edges)[0].item() == 2048  # bfloat16 would stop at 256


def test_double_precision_stays():
    h, _, edges = drawn()
    with torch.autocast("cpu", torch.bfloat16):
        found = AF.aggregate(h.double(), edges)
    assert torch.equal(found, AF.aggregate(h.double(), edges))


def test_what_is_kept_of_a_graph_does_not_depend_on_autocast():
    _, _, edges = drawn()
    with torch.autocast("cpu", torch.bfloat16):
        kept = closed_row_sum(neighborhood(edges, NODES), NODES, torch.float32)
    assert torch.equal(kept, closed_row_sum(edges.clone(), NODES, torch.float32))


def test_a_normalised_state_has_the_type_of_products():
    class Wide(torch.nn.Module):
        """What autocast does to a layer normalisation on a GPU."""

        def forward(self, h):
            return h.float()

    h, _, edges = drawn()
    assert normalized(Wide(), h.bfloat16(), edges).dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert normalized(Wide(), h.bfloat16(), edges).dtype == torch.bfloat16


@pytest.mark.parametrize("conv", [GCNConv, SAGEConv, GATConv])
def test_states_of_other_methods_are_not_widened_by_their_bias(conv):
    h, _, edges = drawn()
    with torch.autocast("cpu", torch.bfloat16):
        assert conv(CHANNELS, 5)(h, edges).dtype == torch.bfloat16
