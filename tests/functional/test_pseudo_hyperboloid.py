import math

import pytest
import torch
from torch.autograd import gradcheck

from argnn.functional import pseudo_hyperboloid as ph

WIDTH = 6
BETAS = (-2.5, -1.0, -0.3)
TIMES = (1, 2, 4, 6)
every_beta = pytest.mark.parametrize("beta", BETAS)
every_time = pytest.mark.parametrize("time", TIMES)


def b_of(beta, dtype=torch.float64):
    return torch.tensor(beta, dtype=dtype)


def tangents(count, time, beta=-1.0, angle=3.0, seed=0, dtype=torch.float64):
    """Tangent vectors at the origin whose time-like part is shorter than angle times b."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(count, WIDTH, generator=generator, dtype=torch.float64)
    z[:, 0] = 0
    if time > 1:
        length = z[:, 1:time].norm(dim=-1, keepdim=True)
        size = angle * torch.rand(count, 1, generator=generator, dtype=torch.float64)
        z[:, 1:time] *= size * math.sqrt(-beta) / length
    return z.to(dtype)


def form(x, y, time):
    sign = torch.ones(WIDTH, dtype=x.dtype)
    sign[:time] = -1
    return (sign * x * y).sum(-1)


@every_beta
@every_time
def test_points_lie_on_the_manifold_and_come_back(beta, time):
    z, b = tangents(40, time, beta), b_of(beta)
    x = ph.expmap0(z, b, time)
    scale = x.square().sum(-1)
    assert ((form(x, x, time) - beta) / scale).abs().max() < 1e-14
    assert (ph.logmap0(x, b, time) - z).abs().max() < 1e-13


def test_round_trip_is_exact_to_the_last_digits():
    z, b = tangents(40, 3), b_of(-1.0)
    assert (ph.logmap0(ph.expmap0(z, b, 3), b, 3) - z).abs().max() < 1e-13


def test_one_time_like_coordinate_keeps_the_space_like_ones():
    """The map goes through a product, so there is no hyperbolic sine in it."""
    z = tangents(20, 1)
    x = ph.expmap0(z, b_of(-1.0), 1)
    assert torch.equal(x[:, 1:], z[:, 1:])
    torch.testing.assert_close(x[:, 0], (1 + z[:, 1:].square().sum(-1)).sqrt())


def test_no_space_like_coordinate_is_the_sphere():
    z, b = tangents(20, WIDTH, beta=-4.0), b_of(-4.0)
    x = ph.expmap0(z, b, WIDTH)
    length = z.norm(dim=-1)
    torch.testing.assert_close(x.norm(dim=-1), torch.full_like(length, 2.0))
    torch.testing.assert_close(x[:, 0], 2 * (length / 2).cos())


@every_beta
@every_time
def test_the_first_coordinate_of_a_tangent_vector_is_ignored(beta, time):
    z, b = tangents(10, time, beta), b_of(beta)
    other = z.clone()
    other[:, 0] = 7
    assert torch.equal(ph.expmap0(other, b, time), ph.expmap0(z, b, time))
    x = ph.expmap0(z * 0.1, b, time)
    expected = ph.transport0(x, z, b, time)
    assert torch.equal(ph.transport0(x, other, b, time), expected)


@every_beta
@every_time
def test_transport_keeps_products_and_ends_in_the_tangent_space(beta, time):
    b = b_of(beta)
    x = ph.expmap0(tangents(20, time, beta, angle=1.4), b, time)
    u, v = tangents(20, time, seed=1), tangents(20, time, seed=2)
    moved_u, moved_v = (ph.transport0(x, w, b, time) for w in (u, v))
    assert form(x, moved_u, time).abs().max() < 1e-12
    torch.testing.assert_close(form(moved_u, moved_v, time), form(u, v, time))


@every_beta
@every_time
def test_geodesics_stay_on_the_manifold_and_have_their_length(beta, time):
    b = b_of(beta)
    x = ph.expmap0(tangents(20, time, beta, angle=1.4), b, time)
    w = ph.transport0(x, 0.3 * tangents(20, time, seed=1), b, time)
    y = ph.expmap(x, w, b, time)
    torch.testing.assert_close(form(y, y, time), torch.full((20,), beta, dtype=torch.float64))
    length = form(w, w, time).abs()
    torch.testing.assert_close(ph.squared_distance(x, y, b, time), length, rtol=1e-7, atol=1e-10)


@every_beta
@every_time
def test_distance_has_its_three_cases(beta, time):
    b, root = b_of(beta), math.sqrt(-beta)
    x = ph.expmap0(tangents(200, time, beta), b, time)
    y = ph.expmap0(tangents(200, time, beta, seed=1), b, time)
    found = ph.squared_distance(x, y, b, time)
    seen = set()
    for value, k in zip(found.tolist(), (form(x, y, time) / -beta).tolist(), strict=True):
        if k < -1:
            case, distance = "space", math.acosh(-k)
        elif k <= 1:
            case, distance = "time", math.acos(-k)
        else:
            case, distance = "broken", math.pi + math.acosh(k)
        seen.add(case)
        assert value == pytest.approx((root * distance) ** 2, rel=1e-6)
    expected = {1: {"space"}, WIDTH: {"time"}}
    assert seen == expected.get(time, {"space", "time", "broken"})
    torch.testing.assert_close(ph.squared_distance(y, x, b, time), found)


def test_one_time_like_coordinate_is_the_hyperboloid_of_geoopt():
    geoopt = pytest.importorskip("geoopt")
    lorentz, b = geoopt.Lorentz(k=torch.tensor(2.0, dtype=torch.float64)), b_of(-2.0)
    x, y = (ph.expmap0(tangents(20, 1, seed=seed), b, 1) for seed in range(2))
    u = tangents(20, 1, seed=2)
    w = ph.transport0(x, u, b, 1)
    torch.testing.assert_close(w, lorentz.transp0(x, u))
    torch.testing.assert_close(ph.expmap(x, w, b, 1), lorentz.expmap(x, w))
    distance = lorentz.dist(x, y)
    torch.testing.assert_close(ph.squared_distance(x, y, b, 1), distance.square())


def test_clipping_stops_short_of_the_antipode():
    b, time = b_of(-0.25), 3
    z = tangents(40, time, beta=-0.25, angle=12.0)
    clipped = ph.clip_tangent(z, b, time)
    angle = clipped[:, 1:time].norm(dim=-1) / 0.5
    assert angle.max() <= ph.MAX_ANGLE * (1 + 1e-12)
    short = z[:, 1:time].norm(dim=-1) < ph.MAX_ANGLE * 0.5
    assert 0 < short.sum() < 40
    assert torch.equal(clipped[short], z[short])
    assert torch.equal(clipped[:, time:], z[:, time:])
    first = ph.clip_tangent(torch.ones(1, WIDTH, dtype=torch.float64), b, time)[0, 0]
    assert first == 0


@pytest.mark.parametrize("beta", [-2.0, -1.0])
@every_time
def test_gradients(beta, time):
    z = tangents(4, time, angle=1.2)
    z[0] = 0
    b = b_of(beta).requires_grad_()
    x = ph.expmap0(z, b.detach(), time).requires_grad_()
    z.requires_grad_()
    u = (0.5 * tangents(4, time, seed=3)).requires_grad_()
    assert gradcheck(lambda z, b: ph.expmap0(z, b, time), (z, b))
    assert gradcheck(lambda x, b: ph.logmap0(x, b, time), (x, b))
    assert gradcheck(lambda x, u, b: ph.transport0(x, u, b, time), (x, u, b))
    assert gradcheck(lambda x, u, b: ph.expmap(x, u, b, time), (x, u, b))
    y = ph.expmap0(tangents(4, time, angle=1.2, seed=4), b.detach(), time).requires_grad_()
    assert gradcheck(lambda x, y, b: ph.squared_distance(x, y, b, time), (x, y, b))


@every_time
@pytest.mark.parametrize("scale", [0.0, 1e-20, 1.0, 30.0])
def test_anything_is_finite_in_float32(time, scale):
    b = b_of(-1.0, torch.float32).requires_grad_()
    z = (scale * tangents(30, time, dtype=torch.float32)).requires_grad_()
    x = ph.expmap0(ph.clip_tangent(z, b, time), b, time)
    antipode = torch.zeros(1, WIDTH)
    antipode[0, 0] = -1
    parts = [
        ph.logmap0(x, b, time),
        ph.logmap0(antipode, b, time),
        ph.squared_distance(x, x.flip(0), b, time),
        ph.squared_distance(x, x, b, time),
        ph.squared_distance(x, -x, b, time),
    ]
    sum(part.sum() for part in parts).backward()
    for value in (x, *parts, z.grad, b.grad):
        assert value.isfinite().all()


def test_equal_points_have_distance_zero_and_no_pull():
    x = ph.expmap0(tangents(5, 2), b_of(-1.0), 2).requires_grad_()
    distance = ph.squared_distance(x, x.detach(), b_of(-1.0), 2)
    distance.sum().backward()
    assert torch.equal(distance, torch.zeros(5, dtype=torch.float64))
    assert torch.equal(x.grad, torch.zeros_like(x))
