import pytest
import torch

from argnn.errors import ConfigError
from argnn.functional import stereographic
from argnn.nn.manifolds import Curvature, StereographicProduct

SIGNATURE = [-1.0, 0.0, 0.7]


def vectors(count, channels, length=0.4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return length * torch.rand(count, channels, generator=generator, dtype=torch.float64)


def test_curvatures_start_where_they_were_put():
    for free in (False, True):
        values = [-0.5, -1e-3, 0.0, 0.9]
        curvature = Curvature(values, free=free)
        assert curvature().tolist() == pytest.approx(values, abs=1e-7)
        with torch.no_grad():
            curvature.raw.add_(1)
        assert curvature().tolist() != pytest.approx(values, abs=1e-7)
        curvature.reset_parameters()
        assert curvature().tolist() == pytest.approx(values, abs=1e-7)


def test_curvature_keeps_its_sign_unless_it_is_free():
    kept, free = Curvature([-0.5, 0.0, 0.5]), Curvature([-0.5, 0.0, 0.5], free=True)
    with torch.no_grad():
        for raw in (-30.0, -1.0, 0.0, 1.0, 30.0):
            kept.raw.fill_(raw)
            assert kept().sign().tolist() == [-1.0, 0.0, 1.0]
            free.raw.fill_(raw)
            assert free().abs().max() <= 1
            assert free().sign().tolist() == [torch.tensor(raw).sign().item()] * 3


def test_free_curvature_is_trained_through_zero():
    """Two points whose distance asks for a curvature of the other sign."""
    space = StereographicProduct([-0.3], free=True)
    u = torch.tensor([[0.5, 0.0], [0.0, 0.5]])
    wanted = StereographicProduct([0.3], learnable=False)
    target = wanted.squared_distance(*wanted.expmap0(u)).detach()
    optimizer = torch.optim.Adam(space.parameters(), lr=0.02)
    seen = []
    for _ in range(200):
        optimizer.zero_grad()
        (space.squared_distance(*space.expmap0(u)) - target).square().backward()
        optimizer.step()
        seen.append(space.curvatures().item())
    assert seen[0] < -0.2
    assert seen[-1] == pytest.approx(0.3, abs=0.01)


def test_curvature_that_is_not_learned_is_no_parameter():
    curvature = Curvature([-1.0], learnable=False)
    assert list(curvature.parameters()) == []
    assert "raw" in curvature.state_dict()
    assert [p.shape for p in Curvature([-1.0, 1.0]).parameters()] == [(2,)]
    assert "free=False" in repr(curvature)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([float("nan")], {}, "must be finite"),
        ([1.0], {"free": True}, "between -1 and 1"),
    ],
)
def test_impossible_curvatures_are_refused(values, options, message):
    with pytest.raises(ConfigError, match=message):
        Curvature(values, **options)


def test_product_is_that_of_geoopt():
    geoopt = pytest.importorskip("geoopt")
    factors = (
        (geoopt.PoincareBall(c=1.0), 2),
        (geoopt.Stereographic(0.0), 2),
        (geoopt.SphereProjection(k=0.7), 2),
    )
    reference = geoopt.StereographicProductManifold(*factors).double()
    space = StereographicProduct(SIGNATURE).double()
    u, v = vectors(10, 6), vectors(10, 6, seed=1)
    close = {"rtol": 1e-6, "atol": 1e-7}  # its curvatures are float32
    x, y = space.expmap0(u), space.expmap0(v)
    torch.testing.assert_close(x, reference.expmap0(u), **close)
    torch.testing.assert_close(space.logmap0(x), u)
    torch.testing.assert_close(space.squared_distance(x, y), reference.dist2(x, y), **close)


def test_product_acts_on_every_factor_by_itself():
    space = StereographicProduct(SIGNATURE).double()
    x = space.expmap0(vectors(5, 12))
    parts = space.split(x)
    assert parts.shape == (5, 3, 4)
    assert torch.equal(space.join(parts), x)
    assert space.num_factors == 3
    ring = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    middle = space.split(space.gyromidpoint(x, ring))
    distances = []
    for q, k in enumerate(space.curvatures()):
        alone = stereographic.gyromidpoint(parts[:, q], ring, k)
        torch.testing.assert_close(middle[:, q], alone)
        other = parts.flip(0)[:, q]
        distances.append(stereographic.squared_distance(parts[:, q], other, k))
    torch.testing.assert_close(space.squared_distance(x, x.flip(0)), torch.stack(distances).sum(0))


def test_tangent_vectors_are_clipped_by_factor():
    space = StereographicProduct(SIGNATURE, learnable=False).double()
    u = 100 * vectors(4, 6) + 10
    clipped = space.split(space.clip_tangent(u, stereographic.HEMISPHERE))
    assert torch.equal(clipped[:, 1], space.split(u)[:, 1])
    lengths = clipped.norm(dim=-1)
    assert (lengths[:, 0] < 6.2).all()
    assert (lengths[:, 2] * 0.7**0.5 < 0.8).all()


def test_width_that_does_not_fit_and_empty_products_are_refused():
    with pytest.raises(ConfigError, match="multiple of the 3 factors .got 7"):
        StereographicProduct(SIGNATURE).expmap0(torch.zeros(2, 7))
    with pytest.raises(ConfigError, match="at least one factor"):
        StereographicProduct([])
