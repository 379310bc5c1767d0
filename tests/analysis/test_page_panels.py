"""What the page shows before any click, and what can be chosen together: legend, lasso, classes."""

import csv
import functools
import json

import numpy as np
import pytest
import torch

from argnn.analysis.explorer import Targets, document, page
from argnn.nn import ARGNN, GCN
from argnn.train.calibration import reliability
from browser import needs_chromium

from .pages import EVIL, planted, subject, unpacked

pytestmark = needs_chromium


def named(graph=None):
    """Features with a name that must stay a text, and a metric that varies."""
    graph = graph or planted()
    graph.feature_names = ["plain", EVIL, "third"]
    model = ARGNN(3, 8, 3, num_layers=2, metric_spread=1.0)
    about = subject(graph, model)
    test = about.masks[2]
    chances = torch.from_numpy(about.probabilities)
    bins = reliability(chances[test], graph.y[test], 10)
    shown = {"bins": bins, "error": 0.1, "count": int(test.sum()), "width": 0.1}
    return subject(graph, model, overview={**about.overview, "reliability": shown})


@functools.cache
def named_page():
    torch.manual_seed(0)
    return page(document(named()))


def shown(seen):
    return seen.js("argnnExplorer.state().shown")


def test_panel_is_filled_before_a_click_and_above_the_fold(opened):
    seen = opened(named_page())
    text = seen.text("#detail")
    for title in (
        "Test nodes by class",
        "Most confident mistakes",
        "Most unusual metric",
        "trusted?",
    ):
        assert title in text
    bottom = "document.getElementById('{}').getBoundingClientRect().bottom"
    assert seen.js(bottom.format("map")) < 800
    assert seen.js(bottom.format("legend")) < 800
    assert seen.js("document.querySelectorAll('#detail .confusion .cell').length") == 9
    assert seen.js("document.querySelectorAll('img').length") == 0
    # Every name in the lists is a button that chooses its node.
    name = seen.js("(() => { const b = document.querySelector('#detail .link'); b.click();"
                   " return b.textContent; })()")  # fmt: skip
    assert f"Node {name}" in seen.text("#detail")
    seen.js("document.querySelector('#detail .back').click()")
    assert "Most confident mistakes" in seen.text("#detail")


def test_matrix_mistakes_and_unusual_nodes_are_right(opened):
    about = named()
    found = document(about)
    labels, test = about.graph.y.numpy(), about.masks[2].numpy()
    predicted = about.probabilities.argmax(1)
    for label in range(3):
        for other in range(3):
            both = test & (labels == label) & (predicted == other)
            assert found["confusion"][label][other] == both.sum()
    wrong = np.flatnonzero(test & (predicted != labels))
    worst = wrong[about.probabilities.max(1)[wrong].argmax()]
    seen = opened(page(found))
    start = "[...document.querySelectorAll('#detail h3')].find((h) => h.textContent.startsWith("
    listed = f"{start}'Most confident')).nextElementSibling.querySelector('.link').textContent"
    assert seen.js(listed) == f"n{worst}"
    layer = found["layers"][found["start"][0]]
    assert seen.js(listed.replace("confident", "unusual")) == f"n{layer['unusual'][0][0]}"


def test_many_classes_have_a_list_in_place_of_a_matrix(opened):
    graph = planted()
    graph.y = torch.arange(48) % 12
    names = [f"kind {number}" for number in range(12)]
    taken = np.where(graph.y == 7, 3, graph.y)
    chances = np.eye(12)[taken] * 0.5 + 0.5 / 12
    everything = (torch.zeros(48, dtype=torch.bool),) * 2 + (torch.ones(48, dtype=torch.bool),)
    about = subject(graph, names=names, probabilities=chances, masks=everything)
    found = document(about)
    assert found["confusion"] is None
    assert found["mistakes"] == [[7, 3, 4]]
    text = opened(page(found)).text("#detail").replace("\n", "").replace("\t", "")
    assert "kind 7kind 34" in text


def test_decisions_by_a_threshold_are_those_of_the_page():
    graph = planted()
    taken = np.zeros(graph.num_nodes, dtype=np.int64)
    found = document(subject(graph, predicted=taken))
    assert not unpacked(found["nodes"]["predicted"]).any()
    assert not np.array(found["confusion"])[:, 1:].any()


def test_page_opens_on_what_varies_most(opened):
    about = document(named())
    layer, statistic = about["start"]
    variations = [each["variation"] for each in about["layers"]]
    names = ("log_volume", "kappa", "main_variation")
    assert variations[layer][statistic] == max(v[name] for v in variations for name in names)
    seen = opened(page(about))
    state = seen.js("argnnExplorer.state()")
    assert (state["layer"], state["color"]) == (layer, statistic)
    seen.select("color", "metric axis")
    axes = about["layers"][layer]["axis_variation"]
    assert seen.js("argnnExplorer.state().axis") == int(np.argmax(axes))
    assert "which varies most" in seen.text("#legend")


def test_what_hardly_varies_is_grey_and_says_so(opened):
    graph = planted()
    torch.manual_seed(0)
    model = ARGNN(3, 8, 3, num_layers=1, metric_spread=0.01)
    found = document(subject(graph, model))
    assert found["start"] is None
    assert "nearly the same at all nodes" in found["headline"]
    assert 0 < found["layers"][0]["variation"]["kappa"] < 0.05
    seen = opened(page(found))
    assert seen.js("argnnExplorer.state().color") == "label"
    seen.select("color", "curvature κ")
    assert "under 5 %" in seen.text("#legend")
    pixels = np.array(seen.map_pixels()).reshape(-1, 4)[:, :3]
    assert np.ptp(pixels, axis=1).max() <= 20, "grey only"
    assert pixels.min() < 200


def test_confidence_and_features_are_colors(opened):
    seen = opened(named_page())
    seen.select("color", "confidence")
    assert "probability of the prediction" in seen.text("#legend")
    seen.select("color", "input feature")
    seen.select("feature", EVIL)
    assert EVIL in seen.text("#legend")
    assert EVIL in seen.text("#status")


def test_at_most_thirty_features_are_in_the_page():
    graph = planted()
    graph.x = torch.cat([graph.x, torch.zeros(48, 1), torch.randn(48, 40) * 3], dim=1)
    found = document(subject(graph, GCN(44, 4, 3)))["features"]
    assert len(found["names"]) == 30
    assert found["of"] == 44
    assert not {"feature 0", "feature 3"} & set(found["names"]), "the others vary more"


def test_legend_hides_isolates_and_works_with_keys(opened):
    seen = opened(named_page())
    seen.select("color", "class")
    item = "document.querySelectorAll('#legend button')[{}]"
    seen.js(f"{item.format(0)}.focus()")
    seen.key("Enter")
    assert shown(seen) == 32
    assert seen.js(f"{item.format(0)}.getAttribute('aria-pressed')") == "false"
    assert seen.js(f"document.activeElement === {item.format(0)}")
    seen.key("Enter")
    assert shown(seen) == 48
    seen.js(f"{item.format(1)}.dispatchEvent(new MouseEvent('click', {{shiftKey: true}}))")
    assert shown(seen) == 16
    seen.select("color", "degree")
    assert shown(seen) == 48, "groups of another coloring hide nothing"


def test_lasso_selects_what_lies_inside_and_compares_it(opened):
    seen = opened(named_page())
    places = np.array([seen.js(f"argnnExplorer.place({node})") for node in range(48)])
    middle = np.median(places[:, 0])
    corners = [[2, 2], [middle, 2], [middle, 480], [2, 480]]
    path = [[float(x), float(y)] for x, y in corners]
    seen.drag(path, shift=True)
    inside = np.flatnonzero(places[:, 0] < middle)
    assert sorted(seen.js("argnnExplorer.state().selected")) == inside.tolist()
    text = seen.text("#detail")
    for part in (f"{len(inside)} nodes selected", "test nodes right", "degree", "Classes"):
        assert part in text
    seen.js(
        "window.made = []; URL.createObjectURL = (blob) => { blob.text().then((t) => made.push(t));"
        "return 'about:blank#x'; }; HTMLAnchorElement.prototype.click = () => {};"
        "[...document.querySelectorAll('#detail button')][0].click()"
    )
    while not seen.js("made.length"):
        pass
    rows = list(csv.DictReader(seen.js("made")[0].splitlines()))
    assert [row["id"] for row in rows] == [f"n{node}" for node in inside]
    seen.js("document.getElementById('map').focus()")
    seen.key("Escape")
    assert shown(seen) == 48
    # The button does the same without Shift, and S takes all that pass the filters.
    seen.js("document.getElementById('lasso').click()")
    seen.drag(path)
    assert shown(seen) == len(inside)
    seen.js("document.getElementById('map').focus()")
    seen.key("Escape")
    seen.select("class-filter", "red")
    seen.key("s")
    assert sorted(seen.js("argnnExplorer.state().selected")) == list(range(16))


@pytest.mark.parametrize(("text", "label"), [("RED", 0), (EVIL, 1)])
def test_searching_a_class_selects_it(opened, text, label):
    seen = opened(named_page())
    seen.js(
        f"const s = document.getElementById('search'); s.focus(); s.value = {json.dumps(text)};"
    )
    seen.key("Enter")
    first = 16 * label
    assert sorted(seen.js("argnnExplorer.state().selected")) == list(range(first, first + 16))


@pytest.mark.parametrize("are_labels", [False, True], ids=["numbers", "labels"])
def test_pages_of_numbers_and_labels(opened, are_labels):
    graph = planted()
    generator = np.random.default_rng(0)
    known = generator.random((48, 2)).round() if are_labels else generator.normal(size=(48, 2))
    known[5, 0] = np.nan
    predicted = np.clip(known, 0.2, 0.8) if are_labels else known * 0.5
    predicted[np.isnan(predicted)] = 0.5
    predicted[8, 0] = 1 - known[8, 0] if are_labels else known[8, 0] + 90  # node 8 is a test node
    targets = Targets([EVIL, "size"], known, predicted, are_labels)
    graph.y = torch.full((48,), -1)
    about = subject(graph, probabilities=None, class_names=(), targets=targets)
    seen = opened(about)
    text = seen.text("#detail")
    assert "Largest errors, test nodes" in text
    assert "Test nodes by class" not in text
    assert "trusted" not in text
    link = "document.querySelector('#detail .link')"
    assert seen.js(f"{link}.textContent") == "n8"
    seen.select("color", f"{EVIL}, known")
    for what in ("probability" if are_labels else "predicted", "error"):
        seen.select("color", f"size, {what}")
        assert f"size, {what}" in seen.text("#legend")
    seen.js(f"{link}.click()")
    assert f"{EVIL}\n" in seen.text("#detail")
    assert seen.js("document.getElementById('class-field').hidden")
