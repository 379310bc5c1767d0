"""Against geoopt where it is right, and where it is not, against the formulas themselves."""

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from argnn.functional import stereographic as st
from argnn.functional.self_loops import closed_aggregate

CURVATURES = (-2.0, -1.0, -0.3, -1e-4, -1e-8, 0.0, 1e-8, 1e-4, 0.3, 1.0, 2.0)
every_curvature = pytest.mark.parametrize("kappa", CURVATURES)
RING = torch.tensor([[0, 1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 2], [1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 2, 0]])


def k_of(kappa, dtype=torch.float64):
    return torch.tensor(kappa, dtype=dtype)


def vectors(count, channels=4, length=0.5, seed=0, dtype=torch.float64) -> Tensor:
    """Random directions; lengths up to the one given."""
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(count, channels, generator=generator, dtype=torch.float64)
    sizes = length * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    return (u / u.norm(dim=-1, keepdim=True) * sizes).to(dtype)


def geoopt_math():
    return pytest.importorskip("geoopt.manifolds.stereographic.math")


# -- the maps at the origin -----------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [-1.0, -1e-8, 0.0, 1e-8, 1.0])
def test_round_trip(kappa):
    u, k = vectors(50, length=0.999), k_of(kappa)
    assert (st.logmap0(st.expmap0(u, k), k) - u).abs().max() < 1e-13


@every_curvature
def test_maps_are_those_of_geoopt(kappa):
    reference, k = geoopt_math(), k_of(kappa)
    u, v = vectors(30), vectors(30, seed=1)
    x, y = st.expmap0(u, k), st.expmap0(v, k)
    tight = {"rtol": 1e-8, "atol": 1e-10}
    torch.testing.assert_close(x, reference.expmap0(u, k=k), **tight)
    torch.testing.assert_close(st.logmap0(x, k), reference.logmap0(x, k=k), **tight)
    torch.testing.assert_close(st.mobius_add(x, y, k), reference.mobius_add(x, y, k=k), **tight)
    torch.testing.assert_close(
        st.squared_distance(x, y, k), reference.dist(x, y, k=k) ** 2, rtol=1e-7, atol=1e-10
    )
    torch.testing.assert_close(
        st.conformal_factor(x, k), reference.lambda_x(x, k=k, keepdim=True), **tight
    )
    torch.testing.assert_close(
        st.half(x, k),
        reference.mobius_scalar_mul(torch.tensor(0.5, dtype=torch.float64), x, k=k),
        **tight,
    )


@every_curvature
def test_linear_map_without_bias_is_euclidean(kappa):
    k, weight = k_of(kappa), vectors(3, seed=2)
    u = vectors(20, length=0.4)
    moved = st.logmap0(st.expmap0(st.logmap0(st.expmap0(u, k), k) @ weight.t(), k), k)
    torch.testing.assert_close(moved, u @ weight.t(), rtol=1e-12, atol=1e-13)


@every_curvature
def test_distance_to_the_origin_is_twice_the_length(kappa):
    u, k = vectors(20), k_of(kappa)
    found = st.squared_distance(st.expmap0(u, k), torch.zeros_like(u), k)
    torch.testing.assert_close(found, 4 * u.square().sum(-1))


@every_curvature
def test_gyrogroup_identities(kappa):
    k = k_of(kappa)
    x, y, z = (st.expmap0(vectors(20, length=0.3, seed=seed), k) for seed in range(3))
    torch.testing.assert_close(st.mobius_add(-x, st.mobius_add(x, y, k), k), y)
    moved = st.squared_distance(st.mobius_add(z, x, k), st.mobius_add(z, y, k), k)
    torch.testing.assert_close(moved, st.squared_distance(x, y, k))


@pytest.mark.parametrize("sign", [-1, 1])
def test_flat_space_is_the_limit_from_both_sides(sign):
    x, y = vectors(20), vectors(20, seed=1)
    errors = []
    for size in (1e-2, 1e-4, 1e-6):
        k = k_of(sign * size)
        found = torch.cat([st.expmap0(x, k), st.logmap0(x, k), st.mobius_add(x, y, k)], dim=-1)
        errors.append((found - torch.cat([x, x, x + y], dim=-1)).abs().max().item())
    assert errors[0] > 1e-5  # curvature does matter
    for coarse, fine in zip(errors, errors[1:], strict=False):
        assert fine == pytest.approx(coarse / 100, rel=0.05)  # linear in the curvature


# -- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [-1.0, -1e-9, 0.0, 1e-9, 1.0])
@pytest.mark.parametrize("name", ["expmap0", "logmap0", "project", "conformal_factor", "half"])
def test_gradients_of_maps(name, kappa):
    u = vectors(4)
    u[0] = 0
    function = getattr(st, name)
    assert gradcheck(function, (u.requires_grad_(), k_of(kappa).requires_grad_()))


@pytest.mark.parametrize("kappa", [-1.0, -1e-9, 0.0, 1e-9, 1.0])
@pytest.mark.parametrize("name", ["mobius_add", "squared_distance"])
def test_gradients_of_pairs(name, kappa):
    x, y = vectors(4), vectors(4, seed=1)
    x[0] = y[1] = 0
    x[2] = y[2]
    inputs = (x.requires_grad_(), y.requires_grad_(), k_of(kappa).requires_grad_())
    assert gradcheck(getattr(st, name), inputs)


@pytest.mark.parametrize(
    "kappa", [-1e-2, -1e-4, -1e-6, -2e-8, -5e-9, -1e-12, 0.0, 1e-12, 5e-9, 2e-8, 1e-6, 1e-4, 1e-2]
)
def test_gradient_of_the_curvature_near_zero_in_float32(kappa):
    """u = (0.3, 0.3, 0.3, 0.3): the derivative of a coordinate by kappa is 0.036 at kappa = 0."""
    u = torch.full((4,), 0.3)
    for function, expected in ((st.expmap0, 0.036), (st.logmap0, -0.036)):
        k = k_of(kappa, torch.float32).requires_grad_()
        function(u, k)[0].backward()
        assert k.grad.item() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kappa", [-100.0, -1.0, 0.0, 1.0, 100.0])
@pytest.mark.parametrize("length", [0.0, 1e-30, 1.0, 50.0, 1e6])
def test_anything_has_finite_points_distances_and_gradients(dtype, kappa, length):
    k = k_of(kappa, dtype).requires_grad_()
    u = vectors(12, length=length, dtype=dtype).requires_grad_()
    x = st.expmap0(u, k)
    moved = st.mobius_add(x, x.flip(0), k)
    parts = [
        st.logmap0(x, k),
        st.logmap0(moved, k),
        st.squared_distance(x, x.flip(0), k),
        st.squared_distance(x, -x, k),
        st.squared_distance(x, x, k),
    ]
    total = sum(part.sum() for part in parts)
    total.backward()
    for value in (x, moved, *parts, u.grad, k.grad):
        assert value.isfinite().all()


@pytest.mark.parametrize("kappa", [-2.0, -1.0, -1e-6, -1e-12])
def test_distance_in_a_ball_from_lengths(kappa):
    k = k_of(kappa).requires_grad_()
    x, y = st.expmap0(vectors(20), k.detach()), st.expmap0(vectors(20, seed=1), k.detach())
    lengths = [(x - y).square().sum(-1), x.square().sum(-1), y.square().sum(-1)]
    found = st.ball_distance(*lengths, k)
    torch.testing.assert_close(found.square(), st.squared_distance(x, y, k))
    inputs = [length[:4].requires_grad_() for length in lengths]
    if kappa < -1e-3:  # finite differences of smaller ones leave the ball
        assert gradcheck(st.ball_distance, (*inputs, k))


def test_distance_in_a_ball_of_no_length_has_a_finite_gradient():
    gap = torch.zeros(3, requires_grad=True)
    inside = torch.tensor([0.0, 0.5, 0.9])
    distance = st.ball_distance(gap, inside, inside, k_of(-1.0, torch.float32))
    distance.sum().backward()
    assert torch.equal(distance, torch.zeros(3))
    assert gap.grad.isfinite().all()


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "longest"), [(torch.float32, 3.106), (torch.float64, 6.103)])
def test_points_keep_off_the_rim(dtype, longest):
    k = k_of(-1.0, dtype)
    u = torch.tensor([[100.0, 0.0], [2.5, 0.0]], dtype=dtype)
    x = st.expmap0(u, k)
    lengths = st.logmap0(x, k)[:, 0].tolist()
    assert lengths == pytest.approx([longest, 2.5], abs=1e-3)
    assert st.clip_tangent(u, k)[:, 0].tolist() == pytest.approx([longest, 2.5], abs=1e-3)
    torch.testing.assert_close(st.project(x * 10, k)[0], x[0])
    assert torch.equal(st.project(x[1], k), x[1])


def test_shortening_is_the_projection_of_geoopt():
    reference, k = geoopt_math(), k_of(-0.7)
    u = vectors(20, length=40.0)
    projected = reference.project(reference.expmap0(u, k=k), k=k)
    torch.testing.assert_close(st.expmap0(u, k), projected)


@pytest.mark.parametrize("angle", [st.MAX_ANGLE, st.HEMISPHERE])
def test_tangent_vectors_keep_off_the_pole(angle):
    k = k_of(4.0)
    u = vectors(50, length=10.0)
    clipped = st.clip_tangent(u, k, angle)
    sizes = 2 * clipped.norm(dim=-1)
    assert sizes.max() <= angle * (1 + 1e-12)
    short = 2 * u.norm(dim=-1) < angle
    assert torch.equal(clipped[short], u[short])
    cosine = torch.nn.functional.cosine_similarity(clipped, u)
    torch.testing.assert_close(cosine, torch.ones_like(cosine))


def test_hemisphere_has_conformal_factors_above_one():
    k = k_of(1.0)
    x = st.expmap0(st.clip_tangent(vectors(50, length=10.0), k, st.HEMISPHERE), k)
    assert st.conformal_factor(x, k).min() > 1


# -- midpoints ------------------------------------------------------------------------------------


def dense_weights() -> Tensor:
    return closed_aggregate(torch.eye(5, dtype=torch.float64), RING)


@pytest.mark.parametrize("kappa", [-2.0, -1.0, -0.1])
def test_midpoint_is_that_of_geoopt(kappa):
    """For negative curvature only: geoopt's dense midpoint takes the antipode for small others."""
    reference, k = geoopt_math(), k_of(kappa)
    x = st.expmap0(vectors(5), k)
    weights = dense_weights()
    expected = reference.weighted_midpoint(
        x.unsqueeze(0), k=k, weights=weights, reducedim=[1], lincomb=False
    )
    found = st.gyromidpoint(x, RING, k)
    assert (found - expected).abs().max() < 1e-10
    scaled = reference.weighted_midpoint(
        x.unsqueeze(0), k=k, weights=weights, reducedim=[1], lincomb=True
    )
    times = weights.sum(1, keepdim=True)
    assert (st.expmap0(times * st.logmap0(found, k), k) - scaled).abs().max() < 1e-10


@every_curvature
def test_midpoint_of_two_points_is_half_way(kappa):
    k = k_of(kappa)
    pair = torch.tensor([[0, 1], [1, 0]])
    x = st.expmap0(vectors(2), k)
    middle = st.gyromidpoint(x, pair, k)
    torch.testing.assert_close(middle[0], middle[1])
    distance = st.squared_distance(x[0], x[1], k).sqrt()
    torch.testing.assert_close(st.squared_distance(x, middle, k).sqrt(), (distance / 2).expand(2))


@every_curvature
def test_midpoint_of_equal_points_or_of_one_is_the_point(kappa):
    k = k_of(kappa)
    x = st.expmap0(vectors(5), k)
    none = torch.empty(2, 0, dtype=torch.int64)
    torch.testing.assert_close(st.gyromidpoint(x, none, k), x)
    equal = x[:1].expand(5, -1)
    torch.testing.assert_close(st.gyromidpoint(equal, RING, k), equal)


def test_midpoint_of_flat_space_is_the_mean_and_curvature_changes_it_linearly():
    x = vectors(5)
    weights = dense_weights()
    mean = weights @ x / weights.sum(1, keepdim=True)
    assert (st.gyromidpoint(x, RING, k_of(0.0)) - mean).abs().max() < 1e-13
    for sign in (-1, 1):
        errors = [
            (st.gyromidpoint(x, RING, k_of(sign * size)) - mean).abs().max().item()
            for size in (1e-4, 1e-6)
        ]
        assert 1e-9 < errors[1] < 1e-6
        assert errors[0] == pytest.approx(100 * errors[1], rel=0.01)


@pytest.mark.parametrize("kappa", [-1.0, -1e-9, 0.0, 1e-9, 1.0])
def test_midpoint_gradients(kappa):
    x = vectors(5)
    x[0] = 0
    inputs = (x.requires_grad_(), k_of(kappa).requires_grad_())
    assert gradcheck(lambda x, k: st.gyromidpoint(x, RING, k), inputs)


def test_midpoints_of_a_product_are_those_of_its_factors():
    k = torch.tensor([[-1.0], [0.0], [0.8]], dtype=torch.float64)
    x = st.expmap0(vectors(15).view(5, 3, 4), k)
    found = st.gyromidpoint(x, RING, k)
    for factor in range(3):
        alone = st.gyromidpoint(x[:, factor], RING, k[factor])
        torch.testing.assert_close(found[:, factor], alone)


# -- hyperplanes ----------------------------------------------------------------------------------


def hyperplanes(count=3):
    return vectors(count, length=0.3, seed=5), vectors(count, length=2.0, seed=6)


@every_curvature
def test_hyperplane_scores_are_the_formula(kappa):
    k, (points, normals) = k_of(kappa), hyperplanes()
    x = st.expmap0(vectors(10), k)
    found = st.hyperplane_scores(x, points, normals, k)
    for c, (p, a) in enumerate(zip(points, normals, strict=True)):
        z = st.mobius_add(-p.expand_as(x), x, k)
        length = a.norm()
        v = 2 * (z @ a) / ((1 + k * z.square().sum(-1)) * length)
        root = math.sqrt(abs(kappa))
        if kappa == 0:
            angle = v
        else:
            angle = (v * root).asin() / root if kappa > 0 else (v * root).asinh() / root
        expected = st.conformal_factor(p, k) * length * angle
        torch.testing.assert_close(found[:, c], expected, rtol=1e-8, atol=1e-10)


def test_hyperplane_scores_of_flat_space_are_four_times_the_euclidean_ones():
    points, normals = hyperplanes()
    x = vectors(10)
    expected = 4 * (x @ normals.t() - (points * normals).sum(-1))
    assert (st.hyperplane_scores(x, points, normals, k_of(0.0)) - expected).abs().max() < 1e-13


@pytest.mark.parametrize("kappa", [-1.0, 0.7])
def test_hyperplane_scores_are_distances_of_geoopt(kappa):
    reference, k = geoopt_math(), k_of(kappa)
    points, normals = hyperplanes()
    x = st.expmap0(vectors(10), k)
    distance = reference.dist2plane(x.unsqueeze(1), points, normals, k=k, signed=True, scaled=True)
    expected = st.conformal_factor(points, k).squeeze(-1) * distance
    torch.testing.assert_close(st.hyperplane_scores(x, points, normals, k), expected)


@pytest.mark.parametrize("kappa", [-1.0, -1e-9, 0.0, 1e-9, 1.0])
def test_hyperplane_gradients(kappa):
    x, (points, normals) = vectors(4), hyperplanes()
    x[0] = 0
    points[0] = 0
    inputs = [t.requires_grad_() for t in (x, points, normals, k_of(kappa))]
    assert gradcheck(st.hyperplane_scores, inputs)


def test_hyperplane_scores_are_finite_at_the_far_end_of_the_hemisphere():
    """Where geoopt's arcsine of one has an infinite gradient."""
    k = k_of(1.0, torch.float32).requires_grad_()
    x = torch.nn.functional.normalize(vectors(20, dtype=torch.float32), dim=-1).requires_grad_()
    scores = st.hyperplane_scores(x, torch.zeros(3, 4), x.detach()[:3], k)
    scores.sum().backward()
    assert scores.isfinite().all()
    assert x.grad.isfinite().all()
    assert k.grad.isfinite()
    normals = torch.zeros(3, 4, requires_grad=True)
    st.hyperplane_scores(x.detach(), torch.zeros(3, 4), normals, k.detach()).sum().backward()
    assert normals.grad.isfinite().all()
