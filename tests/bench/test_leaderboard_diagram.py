import numpy as np
import pytest
from PIL import Image

from argnn.bench.leaderboard import leaderboard
from argnn.bench.leaderboard.diagram import draw_ranks, write_diagram
from argnn.errors import ConfigError, RunError
from result_rows import several

TABLE = {
    "cora": {"argnn": [0.9] * 2, "gcn": [0.8] * 2, "mlp": [0.7] * 2, "ga$t_1$": [0.6] * 2},
    "texas": {"argnn": [0.6] * 2, "gcn": [0.5] * 2, "mlp": [0.6] * 2, "ga$t_1$": [0.1] * 2},
}


def boards(table=TABLE, **options):
    return leaderboard(several(table), **options)["boards"]


@pytest.mark.parametrize(
    ("name", "start"), [("a.pdf", b"%PDF"), ("a.svg", b"<?xml"), ("a.PNG", b"\x89PNG")]
)
def test_diagram_is_written_in_the_format_of_its_name(tmp_path, name, start):
    path = tmp_path / "new" / name
    write_diagram(boards(), path)
    content = path.read_bytes()
    assert content.startswith(start)
    assert len(content) > 2000
    assert [child.name for child in path.parent.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.pdf", "a.svg", "a.png"])
def test_equal_boards_give_equal_files(tmp_path, name):
    for folder in ("x", "y"):
        write_diagram(boards(scores=["f1"]), tmp_path / folder / name)
    assert (tmp_path / "x" / name).read_bytes() == (tmp_path / "y" / name).read_bytes()


def test_a_panel_for_every_score(tmp_path):
    heights = []
    for scores in (["f1"], ["f1", "accuracy"]):
        write_diagram(boards(scores=scores), tmp_path / "a.png", force=True)
        pixels = np.asarray(Image.open(tmp_path / "a.png").convert("L"))
        assert pixels.std() > 10
        heights.append(pixels.shape[0])
    assert heights[1] == pytest.approx(2 * heights[0], rel=0.01)


def test_drawing_shows_every_method_with_its_rank_and_joins_those_alike():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    ranks = {"argnn": 1.0, "gcn": 2.5, "mlp": 2.75, "gat": 3.75}
    assert draw_ranks(ranks, 1.3, ax, "argnn") is ax
    texts = {text.get_text(): text for text in ax.texts}
    for name, rank in ranks.items():
        assert any(name in text and f"{rank:.2f}" in text for text in texts), name
    assert "critical difference 1.30" in texts
    assert texts["argnn  1.00"].get_fontweight() == "bold"
    bars = [line.get_xdata() for line in ax.lines if line.get_linewidth() > 3]
    assert [tuple(np.round(bar, 1)) for bar in bars] == [(2.5, 3.8)]
    low, high = ax.get_xlim()
    assert low < 1
    assert high > 4


def test_names_stay_inside_the_picture(tmp_path):
    long = {"cora": {}, "texas": {}}
    for place, name in enumerate(["argnn", "a very long name of a method (with a remark)", "gcn"]):
        for data in long:
            long[data][name] = [0.9 - 0.1 * place] * 2
    write_diagram(boards(long, scores=["f1"]), tmp_path / "a.png")
    pixels = np.asarray(Image.open(tmp_path / "a.png").convert("L"))
    # Nothing touches the border: a name that is cut off would.
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    assert (border == 255).all()


def test_too_little_to_rank_is_said_and_nothing_written(tmp_path):
    with pytest.raises(ConfigError, match="--diagram: average ranks need 3 methods"):
        write_diagram(boards({"cora": TABLE["cora"]}), tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_unknown_format_and_folder_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"--diagram must end with .pdf, .svg, .png \(got"):
        write_diagram(boards(), tmp_path / "a.jpg")
    (tmp_path / "b.png").mkdir()
    with pytest.raises(RunError, match="is a folder, not a file"):
        write_diagram(boards(), tmp_path / "b.png")


def test_missing_matplotlib_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs matplotlib: pip install 'argnn\[plot\]'"):
        write_diagram(boards(), tmp_path / "a.png")
