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


def without_dropout(case):
    """A case in which nothing is drawn in another way than on a CPU."""
    known = MODELS[case.get("model", "argnn")].option_types()
    none = {
        name: 0.0 for name in ("dropout", "input_dropout", "attention_dropout") if name in known
    }
    return {**case, "model_options": {**none, **case.get("model_options", {})}}


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
    {"train_options": {"batching": "clusters", "parts": 4}},
]


@pytest.mark.slow
def test_argnn_trains(tmp_path):
    cases = [without_dropout({"trial": False, **case}) for case in ARGNN_CASES]
    require_equal(differences(tmp_path, "ARGNNClassifier", cases))


@pytest.mark.slow
def test_rivals_train(tmp_path):
    cases = [without_dropout({"model": name}) for name in MODELS if name != "argnn"]
    require_equal(differences(tmp_path, "ARGNNClassifier", cases))


@pytest.mark.slow
def test_links_train(tmp_path):
    cases = [without_dropout({"model": name}) for name in ("argnn", "gcn", "hgcn")]
    require_equal(differences(tmp_path, "ARGNNLinkPredictor", cases))


def test_dropout_is_drawn_there(tmp_path):
    (found,) = differences(tmp_path, "ARGNNClassifier", [{"model": "gcn"}]).values()
    assert isinstance(found, float)
