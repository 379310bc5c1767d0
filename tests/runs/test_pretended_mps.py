"""Training on a GPU of Apple, as far as it can be tried without one; see ``pretended_mps.py``."""

import json

import pytest

from argnn.nn.metric import METRICS
from argnn.nn.metric.shapes import METRIC_SHAPES
from argnn.nn.models import MODELS, PRESETS
from forked import run_forked
from pretended_mps import operations_of_mps, print_differences, print_exit_codes

#: Sums of a hundred numbers in another order, in a few layers and three steps, in float32.
TOLERANCE = 1e3 * 1.2e-7


@pytest.fixture(scope="module")
def operations(tmp_path_factory):
    """A file with the operations that torch has for such a GPU."""
    path = tmp_path_factory.mktemp("mps") / "operations.json"
    path.write_text(json.dumps(operations_of_mps()))
    return path


@pytest.fixture
def differences(operations, tmp_path):
    """How far each case is from the same on the CPU, or what was refused."""

    def measured(kind, cases):
        given = operations, kind, json.dumps(cases), str(tmp_path)
        code, out, errors = run_forked(print_differences, *given, cwd=tmp_path)
        assert code == 0, errors
        return dict(zip(map(str, cases), json.loads(out), strict=True))

    return measured


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


def trained_alike(differences, cases):
    """Train argnn or others here and there."""
    cases = [comparable({"trial": False, **case}) for case in cases]
    require_equal(differences("ARGNNClassifier", cases))


@pytest.mark.slow
def test_some_methods_train(differences):
    rivals = [{"model": name} for name in ("gat", "hgcn")]
    trained_alike(differences, [*ARGNN_CASES[: len(PRESETS)], ARGNN_CASES[-1], *rivals])


@pytest.mark.torture
def test_argnn_trains_with_every_metric_and_shape(differences):
    trained_alike(differences, ARGNN_CASES)


@pytest.mark.torture
def test_all_rivals_train(differences):
    trained_alike(differences, [{"model": name} for name in MODELS if name != "argnn"])


@pytest.mark.slow
def test_links_train(differences):
    cases = [comparable({"model": name}) for name in ("argnn", "gcn")]
    require_equal(differences("ARGNNLinkPredictor", cases))


@pytest.mark.slow
def test_weights_of_edges_and_numbers(differences):
    weighted = [{"weighted": True, "trial": False, "model": name} for name in ("argnn", "gat")]
    require_equal(differences("ARGNNClassifier", [*map(comparable, weighted)]))
    require_equal(differences("ARGNNRegressor", [comparable({"model": "gcn"})]))


def test_dropout_is_drawn_there(differences):
    (found,) = differences("ARGNNClassifier", [{"model": "gcn"}]).values()
    assert isinstance(found, float)


def run_commands(operations, folder, *commands):
    """Exit codes and last words of commands in a process of their own."""
    words = json.dumps([command.split() for command in commands])
    code, out, errors = run_forked(print_exit_codes, operations, words, str(folder), cwd=folder)
    assert code == 0, errors
    return json.loads(out)


@pytest.mark.slow
def test_commands_train_predict_and_draw(operations, tmp_path):
    few = "--epochs 6 --no-trial --device mps --checkpoint-every 3"
    commands = (
        f"train mixed --out run {few}",
        "predict run --device mps --out answers.csv",
        "analyze run --out page.html",
        f"train mixed --task link --model gcn --out links {few}",
    )
    ended = run_commands(operations, tmp_path, *commands)
    for command, (code, words) in zip(commands, ended, strict=True):
        assert code == 0, f"{command}: {words}"
    assert (tmp_path / "answers.csv").exists()
    assert (tmp_path / "page.html").exists()
