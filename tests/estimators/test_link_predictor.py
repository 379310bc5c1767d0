"""The link predictor: what it sees, and how pairs are asked for."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from argnn import ARGNNLinkPredictor, load
from argnn.data import split_links
from argnn.errors import ConfigError, DataError

from .conftest import planted


@pytest.fixture(scope="module")
def fitted() -> ARGNNLinkPredictor:
    return fast(epochs=60).fit(planted())


def fast(**changes) -> ARGNNLinkPredictor:
    return ARGNNLinkPredictor(**{"model": "gcn", "epochs": 10, "device": "cpu", **changes})


def test_learns_a_planted_graph(fitted):
    assert fitted.val_score_ > 0.6
    assert fitted.scores_["val"]["auroc"] == pytest.approx(fitted.val_score_)
    assert fitted.scores_["test"]["count"] == 2 * fitted.counts_["test pairs"]


def test_probabilities_and_decisions(fitted):
    pairs = fitted.split_.val.t().tolist() + fitted.split_.val_negatives.t().tolist()
    proba = fitted.predict_proba(pairs)
    assert proba.shape == (len(pairs), 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    labels = np.repeat([1, 0], len(pairs) // 2)
    assert fitted.score(pairs, labels) == pytest.approx(fitted.scores_["val"]["accuracy"])
    assert set(fitted.predict(pairs)) <= {0, 1}
    np.testing.assert_allclose(proba[:, 1], fitted.predict_proba([p[::-1] for p in pairs])[:, 1])


def test_held_out_pairs_are_not_seen():
    graph = planted()
    fitted = fast().fit(graph)
    split = split_links(graph.edge_index, 90, "85/5/10", 0)
    held_out = {tuple(pair) for pair in torch.cat([split.val, split.test], 1).t().tolist()}
    seen = {tuple(sorted(pair)) for pair in fitted.split_.edge_index.t().tolist()}
    assert not held_out & seen
    # What is predicted comes from the observed edges alone.
    observed = graph.clone()
    observed.edge_index = split.edge_index
    pairs = split.test.t().tolist()
    np.testing.assert_allclose(
        fitted.predict_proba(pairs), fitted.predict_proba(pairs, graph=observed), atol=1e-5
    )
    assert not np.allclose(fitted.predict_proba(pairs), fitted.predict_proba(pairs, graph=graph))


@pytest.mark.parametrize("decoder", ["dot", "cosine", "distance", "metric", "mlp"])
def test_decoders(decoder):
    model = ARGNNLinkPredictor(
        decoder=decoder, epochs=2, model_options={"hidden_channels": 8}, device="cpu"
    ).fit(planted())
    assert model.settings_.spec.decoder == decoder
    assert model.embed(planted()).shape == (90, 8)
    assert len(model.metric_field_) == 1


def test_labels_are_not_read():
    graph, other = planted(), planted()
    other.y = torch.full((3,), 0.5)
    a, b = (fast(epochs=3).fit(g).decision_function([(0, 1)]) for g in (graph, other))
    np.testing.assert_array_equal(a, b)


def test_pairs_in_several_forms(fitted):
    pandas = pytest.importorskip("pandas")
    pairs = [(0, 1), (2, 3)]
    expected = fitted.predict_proba(pairs)
    for form in (np.array(pairs), torch.tensor(pairs), pandas.DataFrame(pairs)):
        np.testing.assert_array_equal(fitted.predict_proba(form), expected)
    assert fitted.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 99)], "row 0: unknown node 99"),
        ([(0, 1), (0,)], "two node ids per row"),
        ([0, 1], "two node ids per row"),
        (["ab"], "two node ids per row"),
    ],
)
def test_bad_pairs(fitted, pairs, message):
    with pytest.raises(ConfigError, match=message):
        fitted.predict(pairs)


def test_bad_parameters():
    with pytest.raises(ConfigError, match="unknown decoder 'dott'"):
        fast(decoder="dott").fit(planted())
    with pytest.raises(ConfigError, match="the decoder 'metric' needs a model"):
        fast(decoder="metric").fit(planted())
    with pytest.raises(ConfigError, match="three positive shares"):
        fast(ratio="50/0/50").fit(planted())
    graph = planted()
    graph.edge_index = graph.edge_index[:, :3]
    with pytest.raises(DataError, match="too few"):
        fast().fit(graph)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        ARGNNLinkPredictor().predict([(0, 1)])


def test_the_newest_links_are_tested(graph, tmp_path):
    graph.edge_time = torch.arange(graph.edge_index.size(1)) * 1.0
    options = {"epochs": 2, "device": "cpu", "load_options": {"time": "edge_time"}}
    lp = ARGNNLinkPredictor("gcn", split_by="time", **options).fit(graph)
    assert lp.split_rule_ == (
        "unordered pairs at 85/5/10, the newest for test, non-edges drawn with seed 0"
    )
    time = {}
    for number, pair in enumerate(graph.edge_index.t().tolist()):
        time.setdefault(tuple(sorted(pair)), number)
    parts = lp.split_.train, lp.split_.val
    ages = [[time[tuple(pair)] for pair in part.t().tolist()] for part in parts]
    assert max(ages[0]) < min(ages[1])
    assert lp.split_.edge_index.size(1) == 2 * len(ages[0])
    lp.save(tmp_path / "links")
    again = load(tmp_path / "links")
    del graph.edge_time  # not needed for a prediction
    pairs = [[0, 1], [2, 5]]
    expected = lp.predict_proba(pairs, graph=graph)
    assert np.array_equal(again.predict_proba(pairs, graph=graph), expected)


def test_times_and_a_split_by_time_belong_together(graph):
    with pytest.raises(ConfigError, match="belong together"):
        ARGNNLinkPredictor("gcn", split_by="time", epochs=1).fit(graph)
    graph.edge_time = torch.arange(graph.edge_index.size(1)) * 1.0
    with pytest.raises(ConfigError, match="belong together"):
        ARGNNLinkPredictor("gcn", epochs=1, load_options={"time": "edge_time"}).fit(graph)
    with pytest.raises(ConfigError, match="split_by must be one of random, time"):
        ARGNNLinkPredictor("gcn", split_by="age", epochs=1).fit(graph)
