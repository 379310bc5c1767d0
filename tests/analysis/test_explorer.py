"""The interactive page: what is packed into it, and how it behaves in a browser."""

import base64
import csv
import functools
import json
import re
import select
import socket
import time
from importlib.resources import files

import numpy as np
import pytest

from argnn.analysis.explorer import document, page
from argnn.analysis.explorer.html_page import SCRIPTS
from argnn.analysis.explorer.packing import pack_columns, pack_floats, pack_integers
from argnn.nn import ARGNN, GCN
from browser import needs_chromium

from .conftest import PAINTER_SCRIPTS
from .pages import EVIL, planted, subject, unpacked

# ---- packing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "kind"), [(254, "u8"), (255, "u16"), (65534, "u16"), (65535, "u32")]
)
def test_integers_come_back(most, kind):
    values = np.array([-1, 0, 3, most])
    packed = pack_integers(values)
    assert packed["type"] == kind
    np.testing.assert_array_equal(unpacked(packed), values)


@pytest.mark.parametrize(("kind", "steps"), [("u8", 254), ("u16", 65534)])
def test_floats_come_back_within_half_a_step(kind, steps):
    values = np.random.default_rng(0).normal(size=200)
    values[7] = np.nan
    packed = pack_floats(values, kind)
    found = unpacked(packed)
    assert np.isnan(found[7])
    width = np.nanmax(values) - np.nanmin(values)
    assert np.nanmax(np.abs(found - values)) <= 0.51 * width / steps


@pytest.mark.parametrize("values", [[], [2.5], [2.5, 2.5], [np.nan], [np.inf, 1.0]])
def test_odd_floats(values):
    found = unpacked(pack_floats(np.array(values)))
    expected = np.where(np.isfinite(values), values, np.nan)
    np.testing.assert_allclose(found, expected)


def test_columns_have_steps_of_their_own():
    values = np.random.default_rng(0).normal(size=(50, 3)) * [1e-4, 0, 1e3]
    packed = pack_columns(values)
    codes = np.frombuffer(base64.b64decode(packed["bytes"]), np.uint8).reshape(50, 3)
    found = codes * np.array(packed["step"]) + np.array(packed["low"])
    width = values.max(0) - values.min(0)
    assert (np.abs(found - values) <= 0.51 * width / 254).all()


def test_integers_below_are_refused():
    with pytest.raises(ValueError, match="at least -1"):
        pack_integers(np.array([-2]))


# ---- the document and the page ------------------------------------------------------------------


def test_document_holds_the_graph():
    graph = planted()
    found = document(subject(graph))
    assert found["ids"][:2] == ["n0", "n1"]
    np.testing.assert_array_equal(unpacked(found["nodes"]["label"]), graph.y)
    np.testing.assert_array_equal(unpacked(found["nodes"]["degree"]), 4)
    assert unpacked(found["neighbors"]["source"])[:4].tolist() == [1, 5, 43, 47]
    assert [layer["axes"] for layer in found["layers"]] == [8, 8]
    low, high = (unpacked(found["rewired"][name]) for name in ("low", "high"))
    assert (np.bincount(np.concatenate([low, high])) == 4).all()


def test_only_the_last_metric_where_there_is_no_room(monkeypatch):
    monkeypatch.setattr("argnn.analysis.explorer.contents._MOST_METRIC_ENTRIES", 1)
    found = document(subject(planted()))
    assert [layer["log_metric"] is None for layer in found["layers"]] == [True, False]


@pytest.mark.parametrize("model", ["argnn", "gcn"])
@pytest.mark.parametrize("num_nodes", [1, 4])
def test_small_graphs_without_edges(num_nodes, model):
    made = GCN(3, 4, 3) if model == "gcn" else None
    graph = planted(num_nodes, pairs=False)
    found = document(subject(graph, made))
    assert found["count"] == num_nodes
    assert found["rewired"] is None
    assert bool(found["layers"]) == (model == "argnn")
    json.dumps(found, allow_nan=False)


def test_page_holds_names_as_data_only():
    text = page(document(subject(planted()))).decode()
    assert "<img" not in text
    assert text.count("</script>") == 2
    held = re.search(r'id="data">(.*?)</script>', text, re.S).group(1)
    assert json.loads(held)["classes"][1] == EVIL
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)
    assert "default-src 'none'" in text


def test_every_file_of_the_script_is_joined_once():
    folder = files("argnn.analysis.explorer").joinpath("js")
    assert sorted(f"{name}.js" for name in SCRIPTS) == sorted(p.name for p in folder.iterdir())


@functools.cache
def usual_page():
    return page(document(subject(planted())))


# ---- in a browser -------------------------------------------------------------------------------


@needs_chromium
def test_clicking_a_node(opened):
    seen = opened(subject(planted(), ARGNN(3, 8, 3, num_layers=2, preset="paper")))
    assert "Most confident mistakes" in seen.text("#detail")
    seen.click_node(17)
    text = seen.text("#detail")
    assert seen.js("argnnExplorer.state().chosen") == 17
    for part in ("Node n17", EVIL, "test", "Prob", "layer 2", "attention", "Neighbors (4)"):
        assert part in text
    assert seen.js("document.querySelectorAll('#detail svg rect').length") == 16
    assert "Node n17 chosen" in seen.js("document.getElementById('announce').textContent")
    seen.js("document.querySelector('#detail .link').click()")
    assert seen.js("argnnExplorer.state().chosen") in (12, 16, 18, 22)
    assert seen.js("document.querySelectorAll('img').length") == 0


@needs_chromium
def test_colors_filters_and_edges(opened):
    seen = opened(usual_page())
    for color in ("prediction", "error", "curvature κ", "anisotropy", "metric axis", "degree"):
        seen.select("color", color)
        assert color in seen.text("#status")
    assert seen.js("document.getElementById('axis-field').hidden")
    seen.select("class-filter", "red")
    assert "16 of 48 nodes" in seen.text("#status")
    seen.select("part-filter", "test")
    assert seen.js("argnnExplorer.state().shown") == 5
    seen.select("result-filter", "wrong")
    assert seen.js("argnnExplorer.state().shown") <= 5
    for edges in ("original", "rewired"):
        seen.select("edges", edges)
        seen.js("argnnExplorer.paint()")
    assert "every degree kept" in seen.text("#rewiring")
    seen.select("layer", "1")
    seen.select("view", "3-D")
    seen.js("argnnExplorer.paint()")


# ---- what is painted, by both painters ----------------------------------------------------------

both_painters = pytest.mark.parametrize("painter", ["webgl", "canvas"])
CLASS_COLORS = np.array([[0x00, 0x72, 0xB2], [0xE6, 0x9F, 0x00], [0x00, 0x9E, 0x73]])
FAINT = {False: [0xD4, 0xD8, 0xDA], True: [0x38, 0x41, 0x47]}
REACH = 8  # pixels around a node that are looked at; its dot has a radius of 5


def pixels(seen, *box):
    """The map, or a part of it, as ``[height, width, 3]``."""
    width = box[2] if box else seen.js("document.getElementById('map').width")
    return np.array(seen.map_pixels(*box)).reshape(-1, width, 4)[..., :3]


def lonely_nodes(seen, num_nodes=48):
    """Nodes whose dot nothing else touches, with their places."""
    places = np.array([seen.js(f"argnnExplorer.place({node})") for node in range(num_nodes)])
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    np.fill_diagonal(apart, np.inf)
    found = [(n, places[n]) for n in np.flatnonzero(apart.min(0) > 2 * REACH)]
    assert len(found) >= 5
    return found


def around(seen, place):
    """The pixels around a place, which is the middle of the picture up to half a pixel."""
    x, y = np.floor(place).astype(int) - REACH
    return pixels(seen, x, y, 2 * REACH + 1, 2 * REACH + 1)


def dot(seen, place, color, within=2):
    """Number and center of the pixels around a place that have a color."""
    ys, xs = np.nonzero(np.abs(around(seen, place) - color).max(-1) <= within)
    corner = np.floor(place) - REACH
    return len(xs), corner + [xs.mean() + 0.5, ys.mean() + 0.5] if len(xs) else None


@needs_chromium
@both_painters
def test_nodes_have_the_color_of_their_class(opened, painter):
    seen = opened(usual_page(), painter=painter)
    labels = planted().y
    for node, place in lonely_nodes(seen):
        size, center = dot(seen, place, CLASS_COLORS[labels[node]])
        assert 40 <= size <= 86  # a circle of radius 5 with a rim that may be soft
        np.testing.assert_allclose(center, place, atol=0.5)


@needs_chromium
@both_painters
def test_in_space_far_nodes_are_smaller_and_paler(opened, painter):
    seen = opened(usual_page(), painter=painter)
    seen.select("view", "3-D")
    labels, found = planted().y, []
    for node, place in lonely_nodes(seen):
        far = seen.js(f"argnnExplorer.depth({node})")
        mist = 0.6 * np.clip((far + 1) / 2, 0, 1)
        # A canvas draws 16 shades: 0.6 / 16 / 2 of the way to white is less than 5 of 255.
        size, _ = dot(seen, place, CLASS_COLORS[labels[node]] * (1 - mist) + 255 * mist, within=6)
        found.append((far, size))
    assert min(size for _, size in found) > 15
    assert np.corrcoef(*np.transpose(found))[0, 1] < -0.9


@needs_chromium
@both_painters
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_filtered_nodes_are_faint_and_small(opened, painter, dark):
    seen = opened(usual_page(), dark=dark, painter=painter)
    seen.select("class-filter", "red")
    for node, place in lonely_nodes(seen):
        is_shown = node < 16
        size, _ = dot(seen, place, CLASS_COLORS[0] if is_shown else FAINT[dark])
        assert 40 <= size <= 86 if is_shown else 10 <= size <= 33


@needs_chromium
@both_painters
def test_zoom_moves_what_is_painted(opened, painter):
    seen = opened(usual_page(), painter=painter)
    seen.js("document.getElementById('map').focus()")
    seen.key("+")
    for key in ("ArrowLeft", "ArrowUp"):
        seen.key(key)
    width, height = seen.js(
        "(({width, height}) => [width, height])(document.getElementById('map'))"
    )
    labels = planted().y
    inside = [
        (node, place)
        for node, place in lonely_nodes(seen)
        if (place > REACH).all() and (place < [width - REACH, height - REACH]).all()
    ]
    assert inside
    for node, place in inside:
        np.testing.assert_allclose(dot(seen, place, CLASS_COLORS[labels[node]])[1], place, atol=0.5)


@needs_chromium
@both_painters
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_only_new_edges_are_orange(opened, painter, dark):
    seen = opened(usual_page(), dark=dark, painter=painter)
    seen.select("color", "degree")  # all have the same: no node is orange
    orange, drawn = {}, {}
    for edges in ("none", "original", "rewired"):
        seen.select("edges", edges)
        image = pixels(seen)
        orange[edges] = int((image[..., 0] > image[..., 2] + 15).sum())
        drawn[edges] = int((image != image[0, 0]).any(-1).sum())
    assert orange["none"] == orange["original"] == 0
    assert orange["rewired"] > 100
    assert drawn["original"] > drawn["none"] + 1000


@needs_chromium
@both_painters
def test_fine_screens_get_fine_pictures(opened, painter):
    seen = opened(usual_page(), ratio=2, painter=painter)
    labels = planted().y
    for node, place in lonely_nodes(seen):
        x, y = np.floor(2 * place).astype(int)
        found = pixels(seen, x, y, 1, 1)[0, 0]
        np.testing.assert_allclose(found, CLASS_COLORS[labels[node]], atol=2)
    width, inside = seen.js(
        "(({width, clientWidth}) => [width, clientWidth])(document.getElementById('map'))"
    )
    assert width == pytest.approx(2 * inside, abs=2)


@needs_chromium
@both_painters
def test_map_follows_the_color_scheme(opened, painter):
    seen = opened(usual_page(), painter=painter)
    assert pixels(seen, 0, 0, 1, 1).tolist() == [[[0xFF, 0xFF, 0xFF]]]
    seen.select("class-filter", "red")
    seen.js(
        "matchMedia('(prefers-color-scheme: dark)')"
        ".addEventListener('change', () => { window.isTold = true; })"
    )
    seen.size(1280, dark=True)
    wait_until(seen, "window.isTold")
    assert pixels(seen, 0, 0, 1, 1).tolist() == [[[0x1C, 0x22, 0x26]]]
    node, place = next(found for found in lonely_nodes(seen) if found[0] >= 16)
    assert dot(seen, place, FAINT[True])[0] >= 10


@needs_chromium
@pytest.mark.parametrize("painter", PAINTER_SCRIPTS)
def test_page_without_webgl_says_so(opened, painter):
    seen = opened(usual_page(), painter=painter)
    assert "Drawn without WebGL." in seen.text("#status")
    seen.click_node(17)
    assert "Node n17" in seen.text("#detail")
    assert seen.js("document.getElementById('map').getContext('webgl2')") is None


@needs_chromium
def test_page_with_webgl_uses_it(opened):
    seen = opened(usual_page())
    assert "Drawn without WebGL" not in seen.text("#status")
    assert seen.js("document.getElementById('map').getContext('2d')") is None


@needs_chromium
def test_map_is_drawn_again_for_the_printer(opened):
    seen = opened(usual_page())
    wait_until(seen, "requestAnimationFrame(() => { window.isSeen = true; }), window.isSeen")
    used = (
        "(() => { const c = document.createElement('canvas'), p = c.getContext('2d');"
        "c.width = 800; c.height = 500; p.drawImage(document.getElementById('map'), 0, 0);"
        "return new Set(p.getImageData(0, 0, 800, 500).data).size; })()"
    )
    assert seen.js(f"window.dispatchEvent(new Event('beforeprint')), {used}") > 4


@needs_chromium
def test_lost_graphics_come_back(opened):
    seen = opened(usual_page())
    before = pixels(seen)
    seen.js(
        "window.card = document.getElementById('map').getContext('webgl2')"
        ".getExtension('WEBGL_lose_context'); card.loseContext()"
    )
    wait_until(seen, "document.getElementById('status').textContent.includes('the map waits')")
    seen.select("edges", "original")
    seen.js("card.restoreContext()")
    wait_until(seen, "!document.getElementById('status').textContent.includes('the map waits')")
    assert (pixels(seen) != before).any()
    seen.select("edges", "none")
    np.testing.assert_array_equal(pixels(seen), before)


def wait_until(seen, condition):
    for _ in range(30_000):
        if seen.js(condition):
            return
        time.sleep(0.02)
    raise AssertionError(condition)


@needs_chromium
def test_choosing_marks_the_node_and_leaves_the_map(opened):
    seen = opened(usual_page())
    before = pixels(seen)
    marks = "document.getElementById('marks').toDataURL()"
    empty = seen.js(marks)
    seen.click_node(17)
    assert seen.js(marks) != empty
    np.testing.assert_array_equal(pixels(seen), before)
    seen.js("document.getElementById('map').focus()")
    seen.key("Escape")
    assert seen.js(marks) == empty


@needs_chromium
def test_keyboard_and_search(opened):
    seen = opened(usual_page())
    seen.js("document.getElementById('map').focus()")
    for key, chosen in (("n", 0), ("n", 1), ("p", 0), ("Escape", -1)):
        seen.key(key)
        assert seen.js("argnnExplorer.state().chosen") == chosen
    seen.key("+")
    assert seen.js("argnnExplorer.state().scale") > 1
    seen.js("const s = document.getElementById('search'); s.focus(); s.value = 'N31';")
    seen.key("Enter")
    assert seen.js("argnnExplorer.state().chosen") == 31
    assert "n31" in seen.text("#matches")


@needs_chromium
def test_every_control_has_a_name(opened):
    seen = opened(usual_page())
    nameless = seen.js(
        "[...document.querySelectorAll('select, input, button, canvas, svg, [tabindex]')].filter("
        "(e) => !e.ariaHidden).filter((e) => !(e.getAttribute('aria-label')"
        " || (e.labels && e.labels.length) || e.textContent.trim())).map((e) => e.outerHTML)"
    )
    assert nameless == []


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window(opened, width, dark):
    seen = opened(usual_page(), width, dark=dark)
    seen.click_node(3)
    assert seen.js("document.documentElement.scrollWidth") <= width
    assert seen.js("document.getElementById('map').width") > 0.5 * min(width, 700)


@needs_chromium
def test_downloads_are_made_in_the_page(opened):
    seen = opened(usual_page())
    seen.js(
        "window.made = []; URL.createObjectURL = (blob) => { blob.text().then((t) => made.push(t));"
        "return 'about:blank#x'; }; HTMLAnchorElement.prototype.click = () => {};"
        "document.querySelectorAll('#downloads button').forEach((b) => b.click())"
    )
    wait_until(seen, "made.length >= 6")
    made = seen.js("made")
    assert sorted(text.count("\n") for text in made) == [4, 49, 49, 97, 97, 193]
    nodes = next(text for text in made if text.startswith("id,class"))
    assert nodes.startswith("id,class,predicted,p_red,")
    assert list(csv.DictReader(nodes.splitlines()))[20]["class"] == EVIL
    header = next(text for text in made if "weight" in text).splitlines()[0]
    assert header == "source,target,tau,weight"


@needs_chromium
@pytest.mark.parametrize("case", ["one node", "no edges", "no metric", "no labels"])
def test_odd_subjects_open(opened, case):
    size = {"one node": 1, "no edges": 4}.get(case, 48)
    graph = planted(size, pairs=size == 48)
    model = GCN(3, 4, 3) if case == "no metric" else None
    about = subject(graph, model)
    if case == "no labels":
        del graph.y
        about = subject(graph, probabilities=None, class_names=(), masks=None)
    seen = opened(about)
    seen.js("document.getElementById('map').focus()")
    seen.key("n")
    assert "Node n0" in seen.text("#detail")
    if case == "no metric":
        assert seen.js("document.getElementById('geometry-section').hidden")
        assert "no metric" in seen.text("#lead")


@needs_chromium
def test_the_policy_stops_what_is_smuggled_in(browser, tmp_path):
    """The browser does reach a listener, and hears of errors; from the page nobody gets out."""
    path, plain = tmp_path / "page.html", tmp_path / "plain.html"
    path.write_bytes(usual_page())
    plain.write_text("<!doctype html><body><script>window.argnnExplorer={paint(){}}</script>")
    assert smuggled(browser, plain) == (1, True)
    browser.problems.clear()
    assert smuggled(browser, path) == (None, False)
    assert browser.problems


def smuggled(browser, path):
    """What became of a script, and whether a picture was asked for, that were put into a page."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        browser.open(path)
        ran = browser.js(
            "window.refused = false; const i = new Image(); i.onerror = () => { refused = true; };"
            f"i.src = 'http://127.0.0.1:{listener.getsockname()[1]}/x.png';"
            "document.body.append(i); const s = document.createElement('script');"
            "s.textContent = 'window.ran = 1'; document.body.append(s); window.ran"
        )
        asked = False
        while not browser.js("refused"):  # by the policy, or by a listener that hangs up
            if select.select([listener], [], [], 0.02)[0]:
                listener.accept()[0].close()
                asked = True
        return ran, asked


# ---- graphs that are too large for a page -------------------------------------------------------


def test_a_large_graph_is_thinned_and_says_so(monkeypatch):
    whole = document(subject(planted()))
    assert not [note for note in whole["notes"] if "too large" in note]
    monkeypatch.setattr("argnn.analysis.explorer.contents._MOST_NODES", 20)
    monkeypatch.setattr("argnn.analysis.explorer.contents._MOST_EDGES", 10)
    thinned = document(subject(planted()))
    assert "shows 20 of 48 nodes, drawn at random, and 10 of 192 edges" in thinned["notes"][-1]
    kept = [whole["ids"].index(name) for name in thinned["ids"]]
    assert thinned["count"] == len(kept) == 20
    for name, packed in thinned["nodes"].items():
        values = unpacked(whole["nodes"][name]).reshape(48, -1)[kept].flatten()
        # The steps of packed fractions are those of other extremes.
        np.testing.assert_allclose(unpacked(packed), values, atol=2e-4)
    count, source = (unpacked(thinned["neighbors"][name]) for name in ("count", "source"))
    assert count.sum() == len(source) == 10
    edges = planted().edge_index.t().tolist()
    target = np.repeat(np.arange(20), count)
    assert all([kept[s], kept[t]] in edges for s, t in zip(source, target, strict=True))
    for layer in thinned["layers"]:
        assert len(unpacked(layer["tau"])) == len(unpacked(layer["weight"])) == 10
        assert all(len(unpacked(found)) == 20 for found in layer["statistics"].values())
        for name in ("tau", "weight"):  # those of the same pairs of the whole graph
            all_pairs = dict(
                zip(pair_names(whole), unpacked(whole_layer(whole, layer)[name]), strict=True)
            )
            for pair, value in zip(pair_names(thinned), unpacked(layer[name]), strict=True):
                assert value == pytest.approx(all_pairs[pair], abs=1e-3)
    low, high = (unpacked(thinned["rewired"][name]) for name in ("low", "high"))
    pairs = {frozenset(pair) for pair in zip(source.tolist(), target.tolist(), strict=True)}
    before = np.bincount([node for pair in pairs for node in pair], minlength=20)
    np.testing.assert_array_equal(np.bincount([*low, *high], minlength=20), before)


def pair_names(shown):
    """Names of source and target of each ordered pair of a page."""
    source = unpacked(shown["neighbors"]["source"])
    target = np.repeat(np.arange(shown["count"]), unpacked(shown["neighbors"]["count"]))
    return [(shown["ids"][s], shown["ids"][t]) for s, t in zip(source, target, strict=True)]


def whole_layer(shown, layer):
    return shown["layers"][layer["number"] - 1]
