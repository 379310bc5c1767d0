"""A model of somebody else: a class that is passed, put into the table, or offered by a package."""

import textwrap

import numpy as np
import pytest
import torch
from sklearn.base import clone

import argnn
from argnn.errors import RunError
from argnn.estimators import ARGNNClassifier, ARGNNLinkPredictor
from argnn.nn import MODELS, AbstractNodeModel, models
from forked import code, run_forked

MINE = '''
import torch
from argnn.nn import AbstractNodeModel

class Mine(AbstractNodeModel):
    """Scores from a node's own features."""

    citation, space, search_space = "nobody", "Euclidean", {"lr": [0.01]}

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int,
                 num_layers: int = 1, *, factor: float = 1.0) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.factor = factor
        self.lin = torch.nn.Linear(in_channels, out_channels)

    def forward_with_metric(self, x, edge_index):
        return self.factor * self.lin(x), []
'''
_NAMES: dict[str, type[AbstractNodeModel]] = {"__name__": __name__}
exec(MINE, _NAMES)
Mine = _NAMES["Mine"]


@pytest.fixture(autouse=True)
def nothing_passed_before(monkeypatch):
    monkeypatch.setattr(models, "_PASSED", {})


@pytest.mark.parametrize("kind", [ARGNNClassifier, ARGNNLinkPredictor])
def test_class_is_fitted_saved_and_loaded(graph, kind, tmp_path):
    fitted = clone(kind(Mine, model_options={"factor": 2.0}, epochs=3)).fit(graph)
    assert type(fitted).__name__ == kind.__name__
    assert fitted.settings_.model == f"{__name__}.Mine"
    assert fitted.settings_.options["factor"] == 2.0
    fitted.save(tmp_path / "model")
    again = argnn.load(tmp_path / "model")
    np.testing.assert_array_equal(again.embed(graph), fitted.embed(graph))


def test_another_process_needs_the_class_under_its_name(graph, tmp_path, monkeypatch):
    fitted = ARGNNClassifier(Mine, epochs=1).fit(graph)
    fitted.save(tmp_path / "model")
    models._PASSED.clear()
    with pytest.raises(RunError, match=r"unknown model '.*test_own_model\.Mine'"):
        argnn.load(tmp_path / "model")
    monkeypatch.setitem(MODELS, f"{__name__}.Mine", Mine)
    np.testing.assert_array_equal(argnn.load(tmp_path / "model").embed(graph), fitted.embed(graph))


def test_class_in_the_table_has_its_name_there(graph, monkeypatch):
    monkeypatch.setitem(MODELS, "mine", Mine)
    assert ARGNNClassifier(Mine, epochs=1).fit(graph).settings_.model == "mine"
    assert ARGNNClassifier("Mine", epochs=1).fit(graph).settings_.model == "mine"


def test_package_offers_a_model_to_the_command_and_its_workers(small_npz, tmp_path, monkeypatch):
    package = tmp_path / "package"
    facts = package / "mine-1.0.dist-info"
    facts.mkdir(parents=True)
    (package / "mine.py").write_text(MINE)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[argnn.models]\nmy-model = mine:Mine\n")
    words = ["train", small_npz(), "--model=My_Model", "--split=0,1", "--workers=2"]
    words += ["--epochs=2", "--set", "factor=2", "--device=cpu", "--out", tmp_path / "run"]
    # A fork has its modules already, but not its paths; workers start anew.
    script = f"""
        import os, sys
        sys.path.insert(0, {str(package)!r})
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        from argnn.cli import main
        main({list(map(str, words))!r})
    """
    done, _, errors = run_forked(code, textwrap.dedent(script), cwd=tmp_path)
    assert done == 0, errors
    monkeypatch.syspath_prepend(str(package))
    found = argnn.load(tmp_path / "run", split=1)
    assert type(found.model_).__name__ == "Mine"
    assert (found.settings_.model, found.model_.factor) == ("my-model", 2.0)
    assert isinstance(found.model_.lin.weight, torch.Tensor)
