"""Saved models come back as they were, and folders are written whole or not at all."""

import json
import os
import shutil
from collections import Counter
from contextlib import suppress
from itertools import count

import numpy as np
import pytest
import torch

import argnn
from argnn import ARGNNClassifier, ARGNNLinkPredictor
from argnn.errors import ConfigError, RunError
from argnn.files import write_checked
from argnn.nn import MODELS
from argnn.store import model_folder as checkpoint
from argnn.store.model_folder import CARD, DOCUMENT, WEIGHTS

from .conftest import NAMES, planted


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    graph = planted()
    clf = ARGNNClassifier("gcn", epochs=5, device="cpu").fit(graph, NAMES[graph.y.numpy()])
    path = tmp_path_factory.mktemp("model") / "saved"
    clf.save(path)
    return clf, path


def test_classifier_comes_back(saved, graph):
    clf, path = saved
    loaded = argnn.load(path)
    assert isinstance(loaded, ARGNNClassifier)
    np.testing.assert_array_equal(loaded.predict_proba(graph), clf.predict_proba(graph))
    np.testing.assert_array_equal(loaded.predict(graph), clf.predict(graph))
    np.testing.assert_array_equal(loaded.embed(graph), clf.embed(graph))
    assert loaded.classes_.tolist() == ["ant", "bee", "cat"]
    assert loaded.get_params() == clf.get_params()
    for name in ("best_epoch_", "val_score_", "temperature_", "ece_", "n_features_in_", "scores_"):
        assert getattr(loaded, name) == getattr(clf, name), name


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_model_comes_back(graph, tmp_path, model):
    pytest.importorskip("geoopt")
    pytest.importorskip("ot")
    clf = ARGNNClassifier(model, epochs=2, trial=False, device="cpu").fit(graph)
    clf.save(tmp_path / "m")
    loaded = argnn.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(graph), clf.predict_proba(graph))
    loaded.save(tmp_path / "again")
    for name in (WEIGHTS, DOCUMENT, CARD):
        assert (tmp_path / "m" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_folder_from_before_an_option_has_it_at_the_value_that_changes_nothing(graph, tmp_path):
    """A default may differ one day; what an older model computes must not."""
    clf = ARGNNClassifier("gat", epochs=2, device="cpu").fit(graph)
    clf.save(tmp_path / "m")
    path = tmp_path / "m" / DOCUMENT
    document = json.loads(path.read_text())
    del document["digest"], document["options"]["input_dropout"]
    write_checked(path, document)
    assert argnn.load(tmp_path / "m").settings_.options == clf.settings_.options


def test_link_predictor_comes_back(graph, tmp_path):
    lp = ARGNNLinkPredictor("gcn", decoder="mlp", epochs=3, device="cpu").fit(graph)
    lp.save(tmp_path / "m")
    loaded = argnn.load(tmp_path / "m")
    assert isinstance(loaded, ARGNNLinkPredictor)
    pairs = [(0, 1), (5, 9)]
    np.testing.assert_array_equal(
        loaded.predict_proba(pairs, graph=graph), lp.predict_proba(pairs, graph=graph)
    )
    assert loaded.threshold_ == lp.threshold_
    with pytest.raises(ConfigError, match="give graph="):
        loaded.predict(pairs)


def test_run_of_train_is_opened(graph, tmp_path):
    from argnn.runs.parallel import run_splits
    from argnn.runs.prepare import Request, prepare
    from argnn.runs.run import trained_model
    from argnn.store.run_folder import create_run

    asked = {"model": "gcn", "split": "1,3", "device": "cpu", "workers": 1}
    plan = prepare(Request("mixed", overrides=("epochs=2",), **asked))
    folder = create_run(tmp_path / "run", plan.config.to_json())
    run_splits(plan, folder)
    for split, chosen in ((1, None), (3, 3)):
        clf = argnn.load(folder.root, split=chosen)
        with torch.no_grad():
            logits = trained_model(folder, split)(plan.graph.x, plan.graph.edge_index)
        expected = torch.softmax(logits.double() / clf.temperature_, -1).numpy()
        np.testing.assert_allclose(clf.predict_proba("mixed"), expected, atol=1e-5)
        scores = json.loads(folder.result(split).read_text())
        assert clf.val_score_ == scores["val"]["accuracy"]
        test = plan.graph.test_mask[:, split]
        assert clf.score("mixed", mask=test) == pytest.approx(scores["test"]["accuracy"])
    with pytest.raises(RunError, match="has no split 2"):
        argnn.load(folder.root, split=2)


def test_card_tells_what_matters(saved):
    clf, path = saved
    card = (path / CARD).read_text()
    for part in ("Data", "Protocol", "Scores", "Calibration", "Limits", "Settings"):
        assert f"## {part}" in card
    assert "3 classes: ant, bee, cat" in card
    assert f"epoch {clf.best_epoch_} of 5, by validation accuracy" in card
    assert "95 % Wilson interval" in card
    assert "72 training nodes, 18 validation nodes" in card


def test_card_escapes_names(graph, tmp_path):
    labels = np.array(["# x\n# y", "[a](http://b)", "`c`"], dtype=object)[graph.y.numpy()]
    clf = ARGNNClassifier("gcn", epochs=1, device="cpu").fit(graph, labels)
    clf.save(tmp_path / "m")
    card = (tmp_path / "m" / CARD).read_text()
    assert "\\# x \\# y, \\[a\\](http://b), \\`c\\`" in card
    assert set(argnn.load(tmp_path / "m").predict(graph)) <= set(labels)


def test_existing_folder_is_kept(saved, tmp_path):
    clf, _ = saved
    clf.save(tmp_path / "m")
    before = (tmp_path / "m" / DOCUMENT).read_bytes()
    with pytest.raises(RunError, match="is there already"):
        clf.save(tmp_path / "m")
    assert (tmp_path / "m" / DOCUMENT).read_bytes() == before
    clf.save(tmp_path / "m", overwrite=True)
    (tmp_path / "m" / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match="no part of a model"):
        clf.save(tmp_path / "m", overwrite=True)
    assert (tmp_path / "m" / "thesis.tex").read_text() == "years of work"


def test_links_and_files_are_not_written_through(saved, tmp_path):
    clf, _ = saved
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(RunError, match="symbolic link"):
        clf.save(tmp_path / "link", overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="not a folder"):
        clf.save(tmp_path / "file", overwrite=True)
    assert list((tmp_path / "real").iterdir()) == []


def test_failure_leaves_nothing(saved, tmp_path, monkeypatch):
    clf, _ = saved
    monkeypatch.setattr("argnn.store.model_folder.write_checked", _full_disk)
    with pytest.raises(RunError, match="No space left"):
        clf.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def _full_disk(*_):
    raise OSError(28, "No space left on device")


class _DeadError(BaseException):
    """The process is gone: nothing that it does afterwards has an effect."""


#: What changes names in a folder; the names of an unfinished model do not matter.
STEPS = ("mkdir", "replace", "rename", "unlink", "rmdir", "fsync")


@pytest.fixture
def dying(monkeypatch):
    """Do something that dies at the given system step; says whether it got that far."""

    def run(action, step, *, forever):
        left = [step]

        def guarded(usual):
            def call(*arguments, **options):
                left[0] -= 1
                if left[0] == 0 or (forever and left[0] < 0):
                    raise _DeadError
                return usual(*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            for name in STEPS:
                patch.setattr(os, name, guarded(getattr(os, name)))
            with suppress(_DeadError):
                action()
        return left[0] <= 0

    return run


@pytest.mark.parametrize("forever", [True, False], ids=["killed", "failed once"])
def test_overwriting_keeps_a_whole_model_at_every_step(graph, tmp_path, dying, forever):
    old, new = (
        ARGNNClassifier("gcn", epochs=2, random_state=seed, device="cpu").fit(graph)
        for seed in (0, 1)
    )
    known = {model.predict_proba(graph).tobytes() for model in (old, new)}
    assert len(known) == 2
    path, aside = tmp_path / "m", tmp_path / ".m-old"
    seen = Counter()
    for step in count(1):
        shutil.rmtree(tmp_path)
        old.save(path)
        died = dying(lambda: new.save(path, overwrite=True), step, forever=forever)
        if path.exists():
            where = path
        else:
            with pytest.raises(RunError) as caught:
                argnn.load(path)
            assert f"the model before it is in {aside}: rename that to m" in str(caught.value)
            where = aside
        assert argnn.load(where).predict_proba(graph).tobytes() in known
        seen[where.name] += 1
        # Whatever was left does not stand in the way of the next one.
        new.save(path, overwrite=True)
        assert argnn.load(path).predict_proba(graph).tobytes() == new.predict_proba(graph).tobytes()
        if not died:
            break
    assert step > 8
    # Between its two renames, a killed process leaves the older model aside; a failure does not.
    assert (seen[".m-old"] > 0) == forever
    assert not aside.exists()


def test_what_is_aside_is_not_removed_if_it_is_no_model(saved, tmp_path):
    clf, _ = saved
    clf.save(tmp_path / "m")
    (tmp_path / ".m-old").mkdir()
    (tmp_path / ".m-old" / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match="no part of a model"):
        clf.save(tmp_path / "m", overwrite=True)
    assert (tmp_path / ".m-old" / "thesis.tex").read_text() == "years of work"
    argnn.load(tmp_path / "m")


def test_model_that_came_meanwhile_is_kept(graph, tmp_path, monkeypatch):
    models = [
        ARGNNClassifier("gcn", epochs=1, random_state=seed, device="cpu").fit(graph)
        for seed in (0, 1)
    ]
    usual, path = checkpoint._write_files, tmp_path / "m"

    def write_files(*arguments):
        usual(*arguments)
        monkeypatch.setattr(checkpoint, "_write_files", usual)
        models[1].save(path)

    monkeypatch.setattr(checkpoint, "_write_files", write_files)
    with pytest.raises(RunError, match="is there already"):
        models[0].save(path)
    expected = models[1].predict_proba(graph)
    np.testing.assert_array_equal(argnn.load(path).predict_proba(graph), expected)


def test_generator_is_stored_as_its_seed(graph, tmp_path):
    clf = ARGNNClassifier("gcn", epochs=1, random_state=np.random.RandomState(0), device="cpu")
    clf.fit(graph).save(tmp_path / "m")
    assert argnn.load(tmp_path / "m").random_state == clf.settings_.seed


def test_what_json_cannot_hold_is_refused(graph, tmp_path):
    clf = ARGNNClassifier("gcn", epochs=1, load_options={"drop": set()}, device="cpu").fit(graph)
    with pytest.raises(RunError, match=r"model\.json: cannot hold"):
        clf.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
