"""Training on a GPU of Apple, as far as it can be tried without one; see ``pretended_mps.py``."""

import json

import pytest

from argnn.nn.metric import METRICS
from argnn.nn.metric.shapes import METRIC_SHAPES
from argnn.nn.models import MODELS, PRESETS
from forked import run_forked
from pretended_mps import print_differences

#: Sums of a hundred numbers in another order, in a few layers and three steps, in float32.
TOLERANCE = 1e3 * 1.2e-7


def differences(tmp_path, kind, cases):
    """How far each case is from the same on the CPU, or what was refused."""
    code, out, errors = run_forked(
        print_differences, kind, json.dumps(cases), str(tmp_path), cwd=tmp_path
    )
    assert code == 0, errors
    return dict(zip(map(str, cases), json.loads(out), strict=True))


def comparable(case):
    """A case without dropout, which a CPU draws in its own way, and with small steps.

    Adam divides by the size of the gradient: large steps would make rounding errors large.
    """
    known = MODELS[case.get("model", "argnn")].option_types()
    none = {name: 0.0 for name in known if name.endswith("dropout")}
    return {
        **case,
        "model_options": {**none, **case.get("model_options", {})},
        "train_options": {"lr": 1e-6, **case.get("train_options", {})},
    }


def require_equal(found):
    """All cases ran, with the numbers of the CPU."""
    refused = {case: value for case, value in found.items() if isinstance(value, str)}
    assert not refused
    assert {case: value for case, value in found.items() if value > TOLERANCE} == {}


ARGNN_CASES = [
    *({"preset": preset} for preset in PRESETS),
    *({"model_options": {"metric": metric}} for metric in METRICS),
    *(
        {"model_options": {"metric_shape": shape, "hidden_channels": 16}}
        for shape in METRIC_SHAPES
        if shape != "diagonal"
    ),
    {"model_options": {"sending_metric": True}},
    {"train_options": {"select": "auroc"}},
    {"model_options": {"metric": "free"}, "train_options": {"optimizer": "riemannian-adam"}},
    {"train_options": {"batching": "clusters", "parts": 4}},
]


@pytest.mark.slow
def test_argnn_trains(tmp_path):
    cases = [comparable({"trial": False, **case}) for case in ARGNN_CASES]
    require_equal(differences(tmp_path, "ARGNNClassifier", cases))


@pytest.mark.slow
def test_rivals_train(tmp_path):
    cases = [comparable({"model": name}) for name in MODELS if name != "argnn"]
    require_equal(differences(tmp_path, "ARGNNClassifier", cases))


@pytest.mark.slow
def test_links_train(tmp_path):
    cases = [comparable({"model": name}) for name in ("argnn", "gcn", "hgcn")]
    require_equal(differences(tmp_path, "ARGNNLinkPredictor", cases))


@pytest.mark.slow
def test_weights_of_edges_and_numbers(tmp_path):
    weighted = [{"weighted": True, "trial": False, "model": name} for name in ("argnn", "gat")]
    require_equal(differences(tmp_path, "ARGNNClassifier", [*map(comparable, weighted)]))
    require_equal(differences(tmp_path, "ARGNNRegressor", [comparable({"model": "gcn"})]))


def test_dropout_is_drawn_there(tmp_path):
    (found,) = differences(tmp_path, "ARGNNClassifier", [{"model": "gcn"}]).values()
    assert isinstance(found, float)
