import math

import pytest
import torch

import reference
from argnn import functional as AF
from argnn.analysis import Layer, axis_statistics, metric_statistics
from argnn.analysis import geometry as G

from .cases import GRAPHS, edge_tensor, field, layer, neighbor_sets, slow_statistics

PATH = edge_tensor([(0, 1), (1, 2)])
every_graph = pytest.mark.parametrize(("num_nodes", "edges"), GRAPHS.values(), ids=GRAPHS)


class TestReference:
    @every_graph
    def test_statistics_are_those_of_the_loops(self, num_nodes, edges):
        g = field(num_nodes)
        found = vars(metric_statistics(g, edge_tensor(edges)))
        expected = slow_statistics(g.tolist(), edges)
        assert {*found} == {*expected, "main_variation"} == {*G.STATISTICS}
        for name, values in expected.items():
            assert found[name].dtype == torch.float64
            assert found[name].tolist() == pytest.approx(values, rel=1e-10, nan_ok=True), name

    @every_graph
    def test_nrmd_is_that_of_the_paper_or_missing(self, num_nodes, edges):
        g, edge_index = field(num_nodes), edge_tensor(edges)
        found = G.field_nrmd(g, edge_index)
        if not any(neighbor_sets(num_nodes, edges)):
            assert math.isnan(found)
        else:
            assert found == pytest.approx(reference.nrmd(g.tolist(), edges), rel=1e-10)

    def test_learned_curvature_is_the_mean_of_the_edges_under_the_own_metric(self):
        pytest.importorskip("ot", reason="exact optimal transport needs POT")
        num_nodes, edges = GRAPHS["star and an isolated node"]
        own = layer(num_nodes)
        found = G.learned_curvature(own, edge_tensor(edges), alpha=0.3)
        both = [edge for a, b in edges for edge in ((a, b), (b, a))]
        curvature = AF.learned_ollivier_ricci(own.h, own.g, edge_tensor(both), 0.3).tolist()
        for node in range(num_nodes):
            into = [k for (_, i), k in zip(both, curvature, strict=True) if i == node]
            expected = sum(into) / len(into) if into else math.nan
            assert found[node].item() == pytest.approx(expected, rel=1e-10, nan_ok=True)

    def test_axes_are_those_of_the_loops(self):
        g = field(7, channels=5)
        found = axis_statistics(g, top=2)
        for axis in range(5):
            logs = [math.log(row[axis]) for row in g.tolist()]
            mean = sum(logs) / 7
            spread = math.sqrt(sum((value - mean) ** 2 for value in logs) / 7)
            chosen = sum(row[axis] in sorted(row)[-2:] for row in g.tolist())
            assert found.mean_log_g[axis].item() == pytest.approx(mean, rel=1e-10)
            assert found.std_log_g[axis].item() == pytest.approx(spread, rel=1e-10)
            assert found.top_share[axis].item() == pytest.approx(chosen / 7, rel=1e-10)


class TestKnownCases:
    def test_the_euclidean_metric_is_flat(self):
        found = metric_statistics(torch.ones(3, 4), PATH)
        for name in ("kappa", "anisotropy", "log_volume", "ricci_norm", "dispersion"):
            assert getattr(found, name).abs().max() == 0, name
        assert found.effective_rank.tolist() == pytest.approx([4.0] * 3)
        assert found.inverse_metric.tolist() == [1.0] * 3
        assert found.main_variation.abs().max() < 1e-12

    def test_the_hyperbolic_and_the_spherical_metric_are_equally_curved(self):
        hyperbolic, spherical = (G.mean_curvature(torch.full((1, 3), c)) for c in (0.5, 2.0))
        assert hyperbolic.item() == pytest.approx(math.log(2))
        assert spherical.item() == pytest.approx(hyperbolic.item())

    def test_opposite_axes_do_not_cancel_in_kappa_but_in_the_volume(self):
        g = torch.tensor([[0.5, 2.0]])
        assert G.mean_curvature(g).item() == pytest.approx(math.log(2))
        assert G.log_volume(g).item() == pytest.approx(0, abs=1e-6)

    def test_one_large_axis_carries_the_metric(self):
        assert G.effective_rank(torch.tensor([[1e6, 1e-6, 1e-6]])).item() == pytest.approx(1.0)

    def test_dispersion_weighted_by_degree_is_nrmd(self):
        num_nodes, edges = GRAPHS["random"]
        g, edge_index = field(num_nodes), edge_tensor(edges)
        degree = torch.tensor([len(near) for near in neighbor_sets(num_nodes, edges)])
        weighted = (G.dispersion(g, edge_index) * degree).sum() / degree.sum()
        assert weighted.item() == pytest.approx(G.field_nrmd(g, edge_index))

    def test_main_variation_follows_a_planted_direction(self):
        position = torch.tensor([-2.0, 0.0, 1.0, 1.0])
        log_g = position.unsqueeze(1) * torch.tensor([[3.0, 4.0]]) / 5
        assert G.main_variation(log_g.exp()).tolist() == pytest.approx(position.tolist(), abs=1e-5)

    def test_edges_between_equal_points_have_no_learned_curvature(self):
        pytest.importorskip("ot", reason="exact optimal transport needs POT")
        h = torch.tensor([[0.0], [0.0], [1.0]])
        found = G.learned_curvature(Layer(h, torch.ones(3, 1)), edge_tensor([(0, 1), (1, 2)]))
        assert found.isnan().tolist() == [True, False, False]

    def test_equal_axes_are_all_among_the_most_stretched(self):
        found = axis_statistics(torch.tensor([[2.0, 2.0, 1.0], [1.0, 1.0, 3.0]]), top=1)
        assert found.top_share.tolist() == [0.5, 0.5, 0.5]
        assert axis_statistics(torch.ones(2, 3), top=9).top_share.tolist() == [1.0] * 3

    def test_extreme_metrics_have_finite_statistics(self):
        g = torch.tensor([[1e-30, 1e30], [1.0, 1e-6], [1e30, 1e30]])
        for name, values in vars(metric_statistics(g, PATH)).items():
            assert values.isfinite().all(), name

    def test_top_must_be_positive(self):
        with pytest.raises(ValueError, match=r"top must be positive \(got 0\)"):
            axis_statistics(torch.ones(1, 1), top=0)
