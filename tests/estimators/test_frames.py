"""Predictions as pandas tables, pages from memory, and what a notebook shows of an estimator."""

import base64
import copy
import json
import re

import numpy as np
import pandas
import pytest
import torch

import argnn
from argnn import ARGNNClassifier, ARGNNLinkPredictor, ARGNNRegressor
from argnn.errors import ConfigError, RunError
from argnn.outputs.predict import predict
from estimators.conftest import NAMES, planted


def tables(graph):
    """The planted graph as pandas tables with ids; a third has no label."""
    ids = [f"n-{node}" for node in range(graph.num_nodes)]
    labels = [name if node % 3 else None for node, name in enumerate(NAMES[graph.y])]
    nodes = pandas.DataFrame(graph.x.numpy(), columns=["a", "b", "c"])
    nodes.insert(0, "id", ids)
    nodes["label"] = np.roll(labels, 1)
    edges = pandas.DataFrame(
        np.array(ids)[graph.edge_index.T.numpy()], columns=["source", "target"]
    )
    return edges, nodes


@pytest.fixture
def fitted(graph):
    return ARGNNClassifier("gcn", epochs=5).fit(tables(graph))


def test_frame_has_ids_probabilities_known_labels_and_parts(graph, fitted):
    edges, nodes = tables(graph)
    frame = fitted.predict_frame()
    chances = [f"p_{label}" for label in fitted.classes_]
    assert list(frame) == ["id", "class", *chances, "known", "split"]
    assert frame["id"].tolist() == nodes["id"].tolist()
    assert frame["class"].tolist() == fitted.predict((edges, nodes)).tolist()
    assert np.array_equal(frame[chances], fitted.predict_proba((edges, nodes)))
    assert frame["known"].fillna("").tolist() == nodes["label"].fillna("").tolist()
    counts = frame["split"].value_counts()
    assert counts["train"] == fitted.counts_["training nodes"]
    assert counts["val"] == fitted.counts_["validation nodes"]
    assert (frame["split"] == "none").tolist() == nodes["label"].isna().tolist()
    # The same graph again is known; of another one no part is.
    assert fitted.predict_frame((edges, nodes)).equals(frame)
    assert set(fitted.predict_frame(tables(planted(seed=1)))["split"]) == {"none"}


def test_given_masks_are_the_parts_and_other_labelled_nodes_are_tested(graph):
    train, val = np.arange(0, 40), np.arange(40, 60)
    clf = ARGNNClassifier("gcn", epochs=2).fit(graph, train_mask=train, val_mask=val)
    assert clf.predict_frame()["split"].tolist() == ["train"] * 40 + ["val"] * 20 + ["test"] * 30


def test_frame_is_the_table_of_the_command(graph, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edges, nodes = tables(graph)
    fitted.save("model")
    edges.to_csv("edges.csv", index=False)
    nodes.to_csv("nodes.csv", index=False)
    predict(tmp_path / "model", tmp_path / "p.csv", data=str(tmp_path))
    written = pandas.read_csv("p.csv")
    frame = fitted.predict_frame()
    assert list(written) == list(frame)[: len(written.columns)]
    assert written["class"].tolist() == frame["class"].tolist()
    chances = list(written)[2:]
    # Six digits are written; features were rounded to float32 before or after they were text.
    limit = 5e-7 + 8 * np.finfo(np.float32).eps
    assert np.abs(written[chances] - frame[chances]).to_numpy().max() <= limit


def test_model_from_disk_needs_the_graph_and_knows_its_splits(graph, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = argnn.load(tmp_path / "model")
    with pytest.raises(ConfigError, match="does not know its graph: give graph="):
        again.predict_frame()
    pandas.testing.assert_frame_equal(again.predict_frame(tables(graph)), fitted.predict_frame())
    named = ARGNNClassifier("gcn", epochs=1).fit("mixed")
    named.save(tmp_path / "named")
    found = argnn.load(tmp_path / "named").predict_frame("mixed")
    assert found["split"].tolist() == named.predict_frame()["split"].tolist()
    assert {"train", "val", "test"} <= set(found["split"])


def test_frames_of_numbers_labels_and_pairs(graph):
    numbers = np.where(np.arange(90) % 4, graph.x[:, 0].numpy(), np.nan)
    frame = ARGNNRegressor("gcn", epochs=2).fit(graph, y=numbers).predict_frame()
    assert list(frame) == ["id", "target 0", "known_target 0", "split"]
    assert np.array_equal(frame["known_target 0"], numbers, equal_nan=True)
    several = (graph.x > 0.5).int()
    frame = ARGNNClassifier("gcn", epochs=2).fit(graph, y=several).predict_frame()
    assert list(frame) == ["id", "labels", "p_0", "p_1", "p_2", "known", "split"]
    assert frame["known"][0] == ";".join(str(k) for k in range(3) if several[0, k])
    links = ARGNNLinkPredictor("gcn", epochs=2).fit(graph)
    held = links.split_.test[:, 0].tolist()
    pairs = pandas.DataFrame([held, links.split_.test_negatives[:, 0].tolist()])
    frame = links.predict_frame(pairs)
    assert list(frame) == ["source", "target", "link", "probability", "known", "split"]
    assert frame["known"].tolist() == [1, 0]
    assert frame["split"].tolist() == ["test", "none"]
    assert np.array_equal(frame["probability"], links.predict_proba(pairs)[:, 1])


def test_labels_are_found_by_id(graph):
    edges, nodes = tables(graph)
    labels = nodes.set_index("id")["label"].dropna()
    plain = nodes.drop(columns="label")
    here = ARGNNClassifier("gcn", epochs=2).fit((edges, plain), y=labels.sample(frac=1))
    there = ARGNNClassifier("gcn", epochs=2).fit((edges, nodes))
    assert here.predict_frame().equals(there.predict_frame())
    with pytest.raises(ConfigError, match="y has a row for 'nobody', which is no node"):
        here.fit((edges, plain), y=pandas.concat([labels, pandas.Series({"nobody": "ant"})]))
    with pytest.raises(ConfigError, match="two rows for node 'n-"):
        here.fit((edges, plain), y=pandas.concat([labels, labels[:1]]))


@pytest.mark.usefixtures("brief_maps")
class TestReport:
    """The page of ``argnn analyze`` without a run."""

    @pytest.fixture
    def shown(self, monkeypatch):
        """The scores that were put on the page, by name."""
        from argnn.outputs import report

        whole, scores = report.document, {}

        def watched(subject):
            scores.update({line["name"]: line["here"] for line in subject.overview["scores"]})
            json.dumps(subject.overview, allow_nan=False)
            return whole(subject)

        monkeypatch.setattr(report, "document", watched)
        return scores

    def test_page_of_a_fit(self, graph, tmp_path, shown):
        train, val = np.arange(0, 40), np.arange(40, 60)
        clf = ARGNNClassifier(epochs=3, trial=False).fit(graph, train_mask=train, val_mask=val)
        path = clf.report(tmp_path / "page.html")
        assert path == tmp_path / "page.html"
        assert b"<html" in path.read_bytes()
        assert 'href="' in path._repr_html_()
        with pytest.raises(RunError, match="is there already"):
            clf.report(tmp_path / "page.html")
        assert shown["test accuracy"] == clf.score(graph, mask=np.arange(60, 90))
        assert shown["validation accuracy"] == clf.val_score_

    def test_page_of_a_model_from_disk(self, graph, tmp_path, shown):
        clf = ARGNNClassifier("gcn", epochs=2).fit(graph)
        clf.save(tmp_path / "model")
        argnn.load(tmp_path / "model").report(tmp_path / "page.html", graph)
        assert shown["validation accuracy"] == clf.val_score_
        assert shown["test accuracy"] is None

    @pytest.mark.parametrize("kind", ["numbers", "labels", "links"])
    def test_pages_of_other_tasks(self, graph, tmp_path, kind, shown):
        if kind == "numbers":
            model = ARGNNRegressor("gcn", epochs=2).fit(graph, y=graph.x[:, 0])
        elif kind == "labels":
            model = ARGNNClassifier("gcn", epochs=2).fit(graph, y=(graph.x > 0.5).int())
        else:
            model = ARGNNLinkPredictor("gcn", epochs=2).fit(graph)
        argnn.report(model, tmp_path / "page.html")
        chosen = [value for name, value in shown.items() if name.startswith("validation")]
        assert chosen == pytest.approx([model.val_score_], abs=1e-6)  # 32 bits in training


class TestDisplay:
    """The box in a notebook."""

    def test_box_of_scikit_learn_with_facts_and_picture(self, graph):
        clf = ARGNNClassifier(epochs=2, trial=False)
        plain = clf._repr_mimebundle_()
        assert "<img" not in plain["text/html"]
        clf.fit(graph)
        shown = clf._repr_mimebundle_()
        assert shown["text/plain"] == plain["text/plain"]
        assert "sk-estimator" in shown["text/html"]
        assert "90 nodes" in shown["text/html"]
        assert "learned: every node has its own" in shown["text/html"]
        assert "data:image/png;base64," in shown["text/html"]
        picture = re.search(r"'data:image/png;base64,([^']+)'", shown["text/html"])[1]
        assert len(base64.b64decode(picture)) < 100_000

    def test_nothing_is_computed_and_nothing_is_raised(self, graph, monkeypatch):
        clf = ARGNNClassifier("gcn", epochs=2).fit(graph)
        assert "none: the method has no metric" in clf._repr_html_()
        monkeypatch.setattr(type(clf.model_), "forward", lambda *_: pytest.fail("computed"))
        assert "90 nodes" in clf._repr_html_()
        del clf.graph_facts_
        assert "sk-estimator" in clf._repr_html_()
        assert "90 nodes" not in clf._repr_html_()

    def test_model_from_disk(self, graph, tmp_path):
        ARGNNLinkPredictor(epochs=1).fit(graph).save(tmp_path / "model")
        assert "90 nodes" in argnn.load(tmp_path / "model")._repr_html_()


def test_estimator_can_be_copied_with_its_graph(fitted):
    assert copy.deepcopy(fitted).predict_frame().equals(fitted.predict_frame())
    assert torch.equal(fitted.graph_.train_mask, fitted.told().train_mask)
