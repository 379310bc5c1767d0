import math

import pytest
import torch

import reference
from argnn.functional import metric as M

from .cases import DTYPES, GRAPHS, assert_matches, fields

ROWS = GRAPHS[0]


def points(dtype=torch.float64):
    x, g = fields(ROWS, dtype, channels=4)
    y, _ = fields(ROWS, dtype, channels=4, seed=1)
    return x, y, g


class TestReference:
    def test_inner_product_matches_loops(self):
        x, y, g = points()
        rows = zip(x.tolist(), y.tolist(), g.tolist(), strict=True)
        assert_matches(M.inner_product(x, y, g), [reference.inner_product(*row) for row in rows])

    def test_norm_matches_loops(self):
        x, _, g = points()
        rows = zip(x.tolist(), g.tolist(), strict=True)
        assert_matches(M.norm(x, g), [reference.norm(*row) for row in rows])

    def test_geodesic_matches_loops(self):
        x, y, g = points()
        rows = zip(x.tolist(), y.tolist(), g.tolist(), strict=True)
        expected = [reference.geodesic_distance(*row) for row in rows]
        assert_matches(M.geodesic_distance(x, y, g), expected)

    def test_geodesic_broadcasts_over_leading_axes(self):
        x, y, g = points()
        table = M.geodesic_distance(x.unsqueeze(1), y.unsqueeze(0), g[0])
        assert table.shape == (9, 9)
        assert table[2, 5].item() == M.geodesic_distance(x[2], y[5], g[0]).item()


class TestGeodesic:
    def test_geodesic_of_the_unit_metric_is_euclidean(self):
        x, y, g = points()
        expected = torch.linalg.vector_norm(x - y, dim=-1)
        torch.testing.assert_close(M.geodesic_distance(x, y, torch.ones_like(g)), expected)

    def test_geodesic_is_a_distance(self):
        x, y, g = points()
        z, metric = x.roll(1, 0), g[0]
        assert (M.geodesic_distance(x, x, metric) == 0).all()
        forth, back = M.geodesic_distance(x, y, metric), M.geodesic_distance(y, x, metric)
        assert torch.equal(forth, back)
        detour = M.geodesic_distance(x, z, metric) + M.geodesic_distance(z, y, metric)
        assert (forth <= detour + 1e-12).all()

    def test_geodesic_scales_with_the_root_of_the_metric(self):
        x, y, g = points()
        torch.testing.assert_close(
            M.geodesic_distance(x, y, 9 * g), 3 * M.geodesic_distance(x, y, g)
        )

    def test_geodesic_is_the_norm_of_the_logarithm(self):
        x, y, g = points()
        torch.testing.assert_close(M.geodesic_distance(x, y, g), M.norm(M.logmap(x, y), g))

    def test_geodesic_gradcheck(self):
        x, y, g = (tensor[:3].requires_grad_() for tensor in points())
        assert torch.autograd.gradcheck(M.geodesic_distance, (x, y, g))

    def test_inner_product_and_norm_gradcheck(self):
        x, y, g = (tensor[:3].requires_grad_() for tensor in points())
        assert torch.autograd.gradcheck(M.inner_product, (x, y, g))
        assert torch.autograd.gradcheck(M.norm, (x, g))

    def test_geodesic_gradient_of_equal_points_is_zero(self):
        x, _, g = points()
        x, g = x.requires_grad_(), g.requires_grad_()
        M.geodesic_distance(x, x.detach().clone(), g).sum().backward()
        assert not x.grad.any()
        assert not g.grad.any()

    @pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6, 1e30])
    @pytest.mark.parametrize("dtype", DTYPES[:3])
    def test_geodesic_is_finite_under_extreme_metrics(self, scale, dtype):
        x, y, g = points(dtype)
        g = torch.full_like(g, scale).requires_grad_()
        x = x.requires_grad_()
        distance = M.geodesic_distance(x, y, g)
        assert distance.isfinite().all()
        assert (distance > 0).all()
        distance.sum().backward()
        assert x.grad.isfinite().all()
        assert g.grad.isfinite().all()


class TestPrecision:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_geodesic_keeps_the_dtype(self, dtype):
        x, y, g = points(dtype)
        distance = M.geodesic_distance(x, y, g)
        assert distance.dtype == dtype
        single = M.geodesic_distance(x.float(), y.float(), g.float())
        torch.testing.assert_close(
            distance.float(), single, rtol=4 * torch.finfo(dtype).eps, atol=1e-6
        )

    def test_norm_of_half_values_does_not_overflow_on_the_way(self):
        u = torch.full((4,), 1000.0, dtype=torch.float16)
        assert M.norm(u, torch.ones_like(u)).item() == 2000.0

    def test_geodesic_of_half_values_does_not_overflow_on_the_way(self):
        x = torch.tensor([60000.0], dtype=torch.float16)
        g = torch.tensor([1e-4], dtype=torch.float16)
        assert M.geodesic_distance(x, -x, g).item() == pytest.approx(1200, rel=2e-3)

    def test_inner_product_of_half_values_does_not_overflow_on_the_way(self):
        u = torch.tensor([300.0, 300.0], dtype=torch.float16)
        v = torch.tensor([300.0, -300.0], dtype=torch.float16)
        assert M.inner_product(u, v, torch.ones_like(u)).item() == 0.0

    def test_integer_points_are_refused(self):
        with pytest.raises(ValueError, match=r"floating point tensor \(got torch.int64\)"):
            M.norm(torch.tensor([1, 2]), torch.tensor([1, 2]))


class TestClosedForms:
    def test_expmap_and_logmap_are_inverse(self):
        x, y, _ = points()
        torch.testing.assert_close(M.expmap(x, M.logmap(x, y)), y)
        torch.testing.assert_close(M.logmap(x, M.expmap(x, y)), y)

    def test_expmap_adds_and_logmap_subtracts(self):
        h, v = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -4.0])
        assert M.expmap(h, v).tolist() == [1.5, -2.0]
        assert M.logmap(h, v).tolist() == [-0.5, -6.0]

    def test_inverse_is_that_of_the_matrix(self):
        g = points()[2]
        expected = torch.linalg.inv(torch.diag_embed(g))
        torch.testing.assert_close(torch.diag_embed(M.inverse(g)), expected)

    def test_determinant_is_that_of_the_matrix(self):
        g = points()[2]
        matrix = torch.diag_embed(g)
        torch.testing.assert_close(M.determinant(g), torch.linalg.det(matrix))
        torch.testing.assert_close(M.log_determinant(g), torch.linalg.slogdet(matrix).logabsdet)

    def test_log_determinant_outlives_the_determinant(self):
        g = torch.full((200,), 10.0)
        assert M.determinant(g).isinf()
        assert M.log_determinant(g).item() == pytest.approx(200 * math.log(10), rel=1e-5)

    def test_eigenpairs_are_those_of_the_matrix(self):
        g = points()[2][0]
        values, vectors = M.eigenpairs(g)
        torch.testing.assert_close(vectors @ torch.diag(values) @ vectors.T, torch.diag(g))
        torch.testing.assert_close(values.sort().values, torch.linalg.eigvalsh(torch.diag(g)))
        assert vectors.dtype == g.dtype
        assert M.eigenpairs(points()[2])[0].shape == (9, 4)

    def test_closed_forms_gradcheck(self):
        g = points()[2][:2].requires_grad_()
        for function in (M.inverse, M.determinant, M.log_determinant):
            assert torch.autograd.gradcheck(function, (g,))


class TestPositiveDiagonal:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_metric_is_positive_everywhere(self, dtype):
        raw = torch.tensor([-200.0, -20.0, -1.0, 0.0, 1.0, 20.0, 200.0], dtype=dtype)
        g = M.positive_diagonal(raw)
        assert g.dtype == dtype
        assert (g > 0).all()
        assert g.isfinite().all()

    def test_metric_is_softplus_plus_floor(self):
        raw = torch.linspace(-5, 5, 7, dtype=torch.float64)
        for floor, sharpness in ((1e-6, 1.0), (0.25, 1.0), (1e-3, 2.0)):
            expected = [
                math.log1p(math.exp(sharpness * value)) / sharpness + floor
                for value in raw.tolist()
            ]
            assert_matches(M.positive_diagonal(raw, floor=floor, sharpness=sharpness), expected)

    def test_metric_stays_between_floor_and_ceiling(self):
        g = M.positive_diagonal(torch.linspace(-50, 50, 101), floor=0.5, ceiling=3.0)
        assert g.min() >= 0.5
        assert g.max() == 3.0

    def test_metric_gradcheck(self):
        raw = torch.linspace(-3, 3, 5, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(
            lambda r: M.positive_diagonal(r, sharpness=2.0, ceiling=2.2), (raw,)
        )

    @pytest.mark.parametrize("sharpness", [0.5, 1.0, 2.0])
    @pytest.mark.parametrize("floor", [1e-6, 1e-3])
    def test_raw_values_give_the_metric_back(self, floor, sharpness):
        g = torch.tensor([2e-3, 0.1, 1.0, 7.0, 100.0, 1e4], dtype=torch.float64)
        raw = M.raw_from_diagonal(g, floor=floor, sharpness=sharpness)
        back = M.positive_diagonal(raw, floor=floor, sharpness=sharpness)
        torch.testing.assert_close(back, g, rtol=1e-12, atol=0)

    def test_raw_gradcheck(self):
        g = torch.tensor([0.1, 1.0, 4.0], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(M.raw_from_diagonal, (g,))

    @pytest.mark.parametrize("channels", [1, 2, 3, 4, 64, 128])
    def test_xavier_start_is_positive(self, channels):
        width = M.xavier_half_width(channels)
        assert 0 < width < 1
        if channels > 3:
            assert width == math.sqrt(3 / channels)


@pytest.mark.parametrize("clamp", [False, True])
def test_floor_is_added_or_cuts_off_and_the_inverse_knows_which(clamp):
    raw = torch.linspace(-30, 5, 50, dtype=torch.float64)
    g = M.positive_diagonal(raw, floor=1e-3, sharpness=2.0, clamp=clamp)
    plain = torch.nn.functional.softplus(raw, beta=2.0)
    torch.testing.assert_close(g, plain.clamp(min=1e-3) if clamp else plain + 1e-3)
    again = M.raw_from_diagonal(g, floor=1e-3, sharpness=2.0, clamp=clamp)
    inside = plain > 1e-2
    torch.testing.assert_close(again[inside], raw[inside])
