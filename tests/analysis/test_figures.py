import io

import numpy as np
import pytest
import torch
from PIL import Image
from torch_geometric.data import Data

from argnn.analysis import Layer, rewire
from argnn.analysis.figures import (
    Bar,
    DataPoint,
    ablation_figure,
    homophily_figure,
    hull_figure,
    map_figure,
    metric_figure,
    save_figure,
    training_figure,
)
from argnn.analysis.figures.embedding import hull_triangles
from argnn.analysis.figures.style import color_limits, figure_bytes, plain
from argnn.errors import ConfigError, DataError
from argnn.runs.summary import INTERVAL

from .cases import edge_tensor, field, points
from .figure_files import has_something_on_it, words

HTML = "<b>&$x$</b>"


def ring(count=24, classes=3) -> tuple[Data, Layer]:
    edges = [(i, (i + step) % count) for i in range(count) for step in (1, 2)]
    y = torch.arange(count) * classes // count
    graph = Data(
        edge_index=edge_tensor(edges),
        y=y,
        num_nodes=count,
        class_names=[HTML, *(f"class {k}" for k in range(1, classes))],
    )
    h = points(count, 5) + 4 * y.unsqueeze(-1)
    return graph, Layer(h, field(count, 5))


def poor(kind: str) -> tuple[Data, Layer]:
    """Graphs that have hardly anything to draw."""
    count = {"one node": 1, "two nodes": 2}.get(kind, 9)
    edges = [] if kind in ("one node", "no edges") else [(0, 1)]
    graph = Data(edge_index=edge_tensor(edges), num_nodes=count)
    if kind != "no labels":
        graph.y = torch.full((count,), -1 if kind == "all unlabelled" else 0)
    h = torch.ones(count, 4) if kind == "equal points" else points(count, 4)
    g = torch.full((count, 4), 0.5) if kind == "equal points" else field(count, 4)
    return graph, Layer(h, g)


POOR = [
    "one node",
    "two nodes",
    "no edges",
    "no labels",
    "all unlabelled",
    "one class",
    "equal points",
]


class TestMap:
    def test_shows_classes_and_homophily_before_and_after(self):
        graph, layer = ring()
        figure = map_figure(graph, layer, trained=torch.arange(24) < 6)
        assert has_something_on_it(figure)
        found = words(figure)
        after = rewire(layer.h, layer.g, graph.edge_index, y=graph.y).homophily_after
        assert f"Rewired: homophily {after:.2f}, held out" in found
        assert "Original edges: homophily 0.81" in found
        assert plain(HTML) in found

    @pytest.mark.parametrize("kind", POOR)
    def test_draws_poor_graphs(self, kind):
        graph, layer = poor(kind)
        figure = map_figure(graph, layer)
        assert figure_bytes(figure, "png")
        undefined = kind in ("one node", "no edges", "no labels", "all unlabelled")
        assert ("homophily not defined" in words(figure)) == undefined


class TestHull:
    def test_has_a_hull_and_says_what_its_colours_mean(self):
        figure = hull_figure(*ring())
        assert has_something_on_it(figure)
        assert "violet flat, yellow curved" in words(figure)
        assert "too few" not in words(figure)

    @pytest.mark.parametrize("kind", POOR)
    def test_draws_poor_graphs(self, kind):
        figure = hull_figure(*poor(kind))
        assert figure_bytes(figure, "png")
        flat = kind in ("one node", "two nodes", "equal points")
        assert ("too few for a hull" in words(figure)) == flat

    def test_pieces_cover_the_hull(self):
        corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])

        def area(pieces):
            a, b, c = pieces.transpose(1, 0, 2)
            return np.linalg.norm(np.cross(b - a, c - a), axis=-1).sum() / 2

        whole, pieces = hull_triangles(corners, 0), hull_triangles(corners, 2)
        assert len(pieces) == 16 * len(whole) == 64
        assert area(pieces) == pytest.approx(area(whole))
        assert hull_triangles(corners[:3]) is None

    def test_a_field_that_hardly_varies_does_not_look_as_if_it_did(self):
        low, high, hardly_varies = color_limits(np.array([0.4, 0.4 + 1e-6]), 2, 0.05)
        assert hardly_varies
        assert high - low == pytest.approx(0.05)
        low, high, hardly_varies = color_limits(np.linspace(1, 3, 101), 2, 0.05)
        assert not hardly_varies
        assert (low, high) == pytest.approx((1.04, 2.96))

    @pytest.mark.parametrize("spread", [1e-4, 1.0])
    def test_hull_and_metric_say_whether_anything_varies(self, spread):
        graph, layer = ring()
        flat = Layer(layer.h, 0.5 + spread * layer.g)
        assert ("hardly varies" in words(hull_figure(graph, flat))) == (spread < 0.01)
        assert ("hardly varies" in words(metric_figure(graph, [flat.g]))) == (spread < 0.01)


class TestMetric:
    def test_one_panel_per_layer(self):
        graph, layer = ring()
        figure = metric_figure(graph, [layer.g] * 6)
        assert "Layer 6: log g" in words(figure)
        assert "Layer 2: log g" not in words(figure)
        assert has_something_on_it(figure)

    def test_rows_are_sorted_by_class(self):
        graph, _ = ring()
        graph.y = graph.y.flip(0)
        g = (1.0 + graph.y.double()).unsqueeze(-1).expand(-1, 4)
        figure = metric_figure(graph, [g])
        rows = figure.axes[1].images[0].get_array()[:, 0]
        np.testing.assert_allclose(rows, np.repeat(np.log([1, 2, 3]), 8))

    @pytest.mark.parametrize("kind", POOR)
    def test_draws_poor_graphs(self, kind):
        graph, layer = poor(kind)
        assert figure_bytes(metric_figure(graph, [layer.g]), "png")

    def test_without_a_metric_there_is_nothing_to_draw(self):
        with pytest.raises(DataError, match="no metric to draw"):
            metric_figure(ring()[0], [])


class TestHomophily:
    def test_marks_every_data_set(self):
        graph, layer = ring()
        first = DataPoint.of("ring", graph, layer)
        assert first.kappa == pytest.approx(float(layer.g.log().abs().mean()))
        figure = homophily_figure([first, DataPoint("other $a$", 0.2, 0.9, 0.1)])
        assert has_something_on_it(figure)
        dots = figure.axes[0].collections[0]
        assert sorted(dots.get_offsets().tolist()) == sorted(
            [[first.homophily, first.kappa], [0.2, 0.9]]
        )
        assert "Not defined" not in words(figure)

    def test_correlation_is_told_of_three_and_more(self):
        points = [
            DataPoint(f"{k}", *place, 0.1) for k, place in enumerate(((0, 1), (1, 3), (2, 2)))
        ]
        assert "correlation 0.50, n = 3" in words(homophily_figure(points))
        assert "correlation" not in words(homophily_figure(points[:2]))

    def test_what_is_not_defined_is_named(self):
        bad = DataPoint.of("lonely", *poor("no edges"))
        assert "Not defined: lonely" in words(
            homophily_figure([bad, DataPoint("other", 0.2, 0.9, 0.1)])
        )
        assert "No run has labels" in words(homophily_figure([bad]))

    def test_names_do_not_cover_each_other(self):
        near = [DataPoint(f"data set {k}", 0.3 + k / 100, 0.5 + k / 500, k / 9) for k in range(4)]
        figure = homophily_figure(near)
        figure.canvas.draw()
        boxes = [text.get_window_extent() for text in figure.axes[0].texts]
        assert len(boxes) == 4
        assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


class TestAblation:
    BARS = (
        Bar("cora", "full", 0.8, 0.02, 10),
        Bar("cora", "no metric", 0.7, None, 1),
        Bar("texas", "full", 0.6, 0.1, 10),
    )

    def test_bars_have_their_means_and_intervals(self):
        figure = ablation_figure(self.BARS, "Test F1", "95 % interval")
        first = figure.axes[0]
        assert [patch.get_width() for patch in first.patches] == pytest.approx([80, 70])
        ends = first.lines
        assert any(np.allclose(line.get_xdata(), 80) for line in ends)  # the dotted line
        assert "n = 1 to 10" in words(figure)
        assert has_something_on_it(figure)

    @pytest.mark.parametrize("graphs", [1, 2, 3])
    def test_the_line_below_fits_into_the_figure(self, graphs):
        names = ("cora", "actor", "wisconsin")[:graphs]
        bars = [Bar(name, "interpolation, one shared metric", 0.8, 0.1, 10) for name in names]
        figure = ablation_figure(bars, "Test F1 (weighted)", INTERVAL)
        figure.draw_without_rendering()
        line = figure._supxlabel.get_window_extent()
        assert 0 <= line.x0 <= line.x1 <= figure.bbox.width
        assert "interpolation, one shared metric" in words(figure)

    def test_nothing_to_draw_is_an_error(self):
        with pytest.raises(DataError, match="no scores"):
            ablation_figure([], "F1", "")


def history(count=5, penalty=0.0):
    return [
        {
            "epoch": n,
            "loss": 2 / n + penalty,
            "task_loss": 2 / n,
            "penalty": penalty,
            "gradient_norm": 1 / n,
            "val_score": n / 9 if n % 2 else None,
            "val_loss": 3 / n if n % 2 else None,
        }
        for n in range(1, count + 1)
    ]


def geometry(count=5):
    names = ("ricci_energy", "smoothness_energy", "lyapunov")
    return [
        {"epoch": n, **dict.fromkeys(names, 1 / n), "metric_change": 1 / n if n > 1 else None}
        for n in range(1, count + 1)
    ]


class TestTraining:
    def test_draws_what_is_stored(self):
        figure = training_figure(history(penalty=0.1), geometry(), best_epoch=3)
        found = words(figure)
        assert "Not stored" not in found
        assert "chosen by validation" in found
        score = figure.axes[1].lines[0]
        assert score.get_xdata().tolist() == [1, 3, 5]  # only where validation was looked at
        assert "weighted penalties" in found

    def test_says_what_is_not_stored(self):
        assert words(training_figure(history())).count("Not stored in this run") == 3
        assert "weighted penalties" not in words(training_figure(history()))

    def test_one_epoch_and_none(self):
        assert has_something_on_it(training_figure(history(1), geometry(1)))
        with pytest.raises(DataError, match="no epochs"):
            training_figure([])


class TestFiles:
    def test_every_format_is_written_the_same_again(self, tmp_path):
        def written(folder):
            paths = save_figure(homophily_figure([DataPoint("a", 0.1, 0.2, 0.3)]), folder, "x")
            return {path.name: path.read_bytes() for path in paths}

        first = written(tmp_path / "one")
        assert first == written(tmp_path / "two")
        assert first["x.pdf"].startswith(b"%PDF")
        assert b"<svg" in first["x.svg"]
        assert first["x.png"].startswith(b"\x89PNG")

    def test_dots_per_inch_scale_an_image(self):
        figure = homophily_figure([DataPoint("a", 0.1, 0.2, 0.3)])
        sizes = [
            Image.open(io.BytesIO(figure_bytes(figure, "png", dpi))).width for dpi in (60, 120)
        ]
        assert sizes[1] == 2 * sizes[0]

    def test_an_unknown_format_is_refused(self, tmp_path):
        with pytest.raises(ConfigError, match=r"written as pdf, svg, png \(got 'gif'\)"):
            save_figure(training_figure(history()), tmp_path / "new", "x", ["gif"])
        assert not (tmp_path / "new").exists()

    def test_names_are_shown_letter_for_letter(self):
        assert plain("a$b$\n") == r"a\$b\$?"
        assert len(plain("x" * 90)) == 24
