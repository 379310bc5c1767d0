"""Runs on links: what is written, what is repeated bit for bit, and that nothing leaks."""

import dataclasses
import math
import signal

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

from argnn.data import LinkSplit, load, split_links
from argnn.errors import ConfigError, DataError
from argnn.files import read_checked, read_json
from argnn.nn import DECODERS, MODELS, LinkModel
from argnn.runs import problems
from argnn.runs.parallel import SilentWatcher, run_splits
from argnn.runs.prepare import Request, prepare, reopen
from argnn.runs.run import run_cell, trained_model
from argnn.settings.run_config import RunConfig
from argnn.store.run_folder import RunFolder, create_run
from argnn.train import LinkPrediction, fit
from forked import code, run_forked

TINY = ("hidden_channels=8", "num_layers=1", "epochs=6", "checkpoint_every=2", "evaluate_every=1")
SCORES = {"auroc", "auprc", "accuracy", "threshold", "hits@10", "hits@50", "mrr", "count"}


@pytest.fixture(autouse=True)
def _one_thread():
    """Two threads on networks this small spend their time waiting for each other."""
    torch.set_num_threads(1)


def plan_of(data="mixed", *more, graph=None, **changes):
    usual = {"task": "link", "decoder": "dot", "workers": 1, "device": "cpu"}
    fields = {**usual, "overrides": (*TINY, *more), **changes}
    return prepare(Request(str(data), **fields), graph=graph)


def run(out, data="mixed", *more, watcher=None, **changes):
    plan = plan_of(data, *more, **changes)
    folder = create_run(out, plan.config.to_json())
    return folder, run_splits(plan, folder, watcher)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        return run(tmp_path_factory.mktemp("finished") / "run", split="0,3")


# -- what is written ------------------------------------------------------------------------------


def test_folder_holds_what_it_should(finished):
    folder, rows = finished
    names = {str(path.relative_to(folder.root)) for path in folder.root.rglob("*.*")}
    held = ["result.json"]
    held += [f"model/{name}" for name in ("model.safetensors", "model.json", "README.md")]
    parts = {f"split-{i}/{name}" for i in (0, 3) for name in held}
    assert names == {"config.json", "code.json", "scores.json", "log.txt", *parts}
    assert [row["split"] for row in rows] == [0, 3]
    assert [read_checked(folder.result(i)) for i in (0, 3)] == rows


def test_row_says_what_was_asked(finished):
    for row in finished[1]:
        assert (row["task"], row["model"], row["oracle"]) == ("link", "argnn", None)
        assert row["config"]["link"] == {
            "ratio": "85/5/10",
            "spanning_forest": False,
            "decoder": "dot",
        }
        assert row["test"].keys() == row["val"].keys() == SCORES
        pairs = load("mixed").edge_index.size(1) // 2
        assert row["test"]["count"] == 2 * (pairs // 10)
        assert row["val"]["count"] == 2 * (pairs // 20)
        model = trained_model(finished[0], row["split"])
        assert row["num_parameters"] == sum(p.numel() for p in model.parameters())


def test_chosen_epoch_has_the_best_validation_auroc(finished):
    for row in finished[1]:
        best = max(row["history"], key=lambda record: (record["val_score"], -record["val_loss"]))
        assert row["chosen_epoch"] == best["epoch"]
        assert row["val"]["auroc"] == pytest.approx(best["val_score"])


def test_summary_is_about_links(finished):
    folder, rows = finished
    summary = read_checked(folder.scores)["summary"]
    assert summary["task"] == "link"
    assert summary["test"].keys() == SCORES - {"threshold", "count"}
    for name, found in summary["test"].items():
        values = [row["test"][name] for row in rows]
        assert found["mean"] == pytest.approx(np.mean(values)), name
        assert found["sd"] == pytest.approx(np.std(values, ddof=1)), name
    assert summary["val"]["auroc"]["mean"] == pytest.approx(
        np.mean([row["val"]["auroc"] for row in rows])
    )
    assert "validation pairs" in summary["protocol"]


def test_stored_weights_give_the_stored_scores(finished):
    folder, rows = finished
    graph, model = load("mixed"), trained_model(folder, 3)
    assert isinstance(model, LinkModel)
    assert not model.training
    split = split_links(graph.edge_index, graph.num_nodes, "85/5/10", 3)
    with torch.no_grad():
        outputs = model(graph.x, split.edge_index)
        logits = [model.pair_scores(outputs, p) for p in (split.test, split.test_negatives)]
    label = [1] * split.test.size(1) + [0] * split.test_negatives.size(1)
    assert rows[1]["test"]["auroc"] == pytest.approx(roc_auc_score(label, torch.cat(logits)))


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_decoder_is_rebuilt(small_npz, tmp_path, decoder):
    folder, rows = run(tmp_path / "run", small_npz(), "epochs=2", decoder=decoder)
    assert "error" not in rows[0]
    model = trained_model(folder, 0)
    assert type(model.decoder) is DECODERS[decoder]
    assert rows[0]["config"]["link"]["decoder"] == decoder


@pytest.mark.parametrize("model", MODELS)
def test_every_model_predicts_links_with_its_usual_settings(small_npz, model):
    wanted = {"task": "link", "model": model, "overrides": ("epochs=2",)}
    plan = prepare(Request(str(small_npz()), device="cpu", **wanted))
    row = run_cell(plan.config, plan.graph, 0)
    assert row["config"]["link"]["decoder"] in DECODERS
    assert 0 <= row["test"]["auroc"] <= 1
    assert "history" not in row


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_validation_score_is_that_of_training_in_either_precision(small_npz, precision):
    plan = plan_of(small_npz(), f"precision={precision}")
    best = []
    row = run_cell(plan.config, plan.graph, 0, on_epoch=lambda record: best.append(record))
    scores = {record.epoch: record.val_score for record in best}
    assert row["val"]["auroc"] == pytest.approx(scores[row["chosen_epoch"]])


def test_graph_without_labels_is_enough(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "bare.npz"
    np.savez(path, x=rng.normal(size=(90, 3)), edge_index=rng.integers(0, 90, size=(2, 300)))
    folder, rows = run(tmp_path / "run", path)
    assert "error" not in rows[0]
    assert isinstance(trained_model(folder, 0), LinkModel)


def test_settings_of_the_split_reach_the_row(small_npz):
    changes = {"ratio": "80/5/15", "spanning_forest": True, "decoder": None}
    plan = plan_of(small_npz(), model="gcn", **changes)
    row = run_cell(plan.config, plan.graph, 1)
    pairs = plan.graph.edge_index.size(1) // 2
    assert row["test"]["count"] == 2 * (15 * pairs // 100)
    assert row["config"]["link"] == {
        "ratio": "80/5/15",
        "spanning_forest": True,
        "decoder": MODELS["gcn"].link_decoder,
    }


# -- the same bits --------------------------------------------------------------------------------


def test_same_seed_same_bytes_other_seed_other_bytes(finished, tmp_path):
    weights = finished[0].weights(0).read_bytes()
    same, _ = run(tmp_path / "same", split="0", seed=0)
    other, rows = run(tmp_path / "other", split="0", seed=1)
    assert same.weights(0).read_bytes() == weights
    assert other.weights(0).read_bytes() != weights
    assert rows[0]["test"]["count"] == finished[1][0]["test"]["count"]


def test_seed_does_not_change_the_pairs(small_npz, monkeypatch):
    """Weights and split have seeds of their own."""
    path = small_npz()
    plans = [
        plan_of(path, "epochs=1", seed=seed, split=split, model="gcn")
        for seed, split in ((0, "2"), (1, "2"), (0, "3"))
    ]
    seen = []
    real = problems.split_links
    monkeypatch.setattr(
        problems, "split_links", lambda *a, **k: seen.append(real(*a, **k)) or seen[-1]
    )
    for plan in plans:
        run_cell(plan.config, plan.graph, plan.config.splits[0])
    assert len(seen) == 3
    assert torch.equal(seen[0].test, seen[1].test)
    assert torch.equal(seen[0].test_negatives, seen[1].test_negatives)
    assert not torch.equal(seen[0].test, seen[2].test)


def without_surroundings(row):
    """Without what the clock, the machine and the state of the sources say."""
    keys = ("seconds", "peak_memory_mib", "resumed_from_epoch", "git_commit", "git_changed")
    return {key: value for key, value in row.items() if key not in keys}


KILLED_RUN = """
import os, signal, sys
from pathlib import Path
from argnn.runs.parallel import SilentWatcher, run_splits
from argnn.runs.prepare import Request, prepare
from argnn.store.run_folder import create_run

class Killer(SilentWatcher):
    def epoch(self, job, epoch, loss, val_score):
        if (job.split, epoch) == (1, 13):
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    sizes = ("hidden_channels=8", "num_layers=1")
    overrides = (*sizes, "epochs=17", "checkpoint_every=5", "evaluate_every=1")
    wanted = {"task": "link", "decoder": "dot", "split": "0,1", "overrides": overrides}
    plan = prepare(Request(sys.argv[1], workers=1, device="cpu", **wanted))
    run_splits(plan, create_run(Path(sys.argv[2]), plan.config.to_json()), Killer())
"""


@pytest.mark.slow
@pytest.mark.usefixtures("plain_seeds")
def test_killed_run_continues_bit_for_bit(small_npz, tmp_path):
    path, killed = small_npz(), RunFolder(tmp_path / "killed")
    done, _, errors = run_forked(code, KILLED_RUN, path, killed.root, cwd=tmp_path)
    assert done == -signal.SIGKILL, errors
    assert killed.result(0).exists()
    assert killed.checkpoint(1).exists()
    assert not killed.result(1).exists()

    config = RunConfig.from_json(read_json(killed.config)["run"], "config.json")
    resumed = run_splits(reopen(config, None, 1), killed)
    assert resumed[1]["resumed_from_epoch"] == 10
    settings = ("epochs=17", "checkpoint_every=5")
    whole, rows = run(tmp_path / "whole", path, *settings, split="0,1")
    for split in (0, 1):
        assert killed.weights(split).read_bytes() == whole.weights(split).read_bytes()
        assert without_surroundings(resumed[split]) == without_surroundings(rows[split])


@pytest.mark.slow
@pytest.mark.usefixtures("plain_seeds", "forked_workers")
def test_workers_give_the_same_bits(small_npz, tmp_path):
    path = small_npz()
    alone, rows = run(tmp_path / "alone", path, split="0,1")
    config = RunConfig.from_json(read_json(alone.config)["run"], "config.json")
    folder = create_run(tmp_path / "together", config.to_json())
    again = run_splits(reopen(config, None, 2), folder, SilentWatcher())
    for split in (0, 1):
        assert folder.weights(split).read_bytes() == alone.weights(split).read_bytes()
        for key in ("test", "val", "history"):
            assert again[split][key] == rows[split][key]


# -- no leak --------------------------------------------------------------------------------------


@pytest.fixture
def models(monkeypatch):
    """The weights of every model that is trained, as `fit` leaves them."""
    kept = []

    def kept_fit(model, *arguments, **options):
        result = fit(model, *arguments, **options)
        kept.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        return result

    monkeypatch.setattr("argnn.runs.train_one.fit", kept_fit)
    return kept


def assert_same_weights(first, second):
    assert first.keys() == second.keys()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


LEAKS = {
    "default": (),
    "theory": ("penalty_weights=theory", "metric_spread=1.0"),
    "structure": ("metric=structure", "metric_spread=1.0"),
}


@pytest.mark.parametrize("settings", LEAKS.values(), ids=LEAKS)
def test_test_edges_moved_elsewhere_change_no_weight(small_npz, monkeypatch, models, settings):
    """The graph with its test edges elsewhere: the same weights and epoch, another test score."""
    plan = plan_of(small_npz(), *settings)
    graph, nodes = plan.graph, plan.graph.num_nodes
    split = split_links(graph.edge_index, nodes, "85/5/10", 0)
    known = torch.cat([split.train, split.val, split.val_negatives], dim=1)
    free = np.setdiff1d(
        np.ravel_multi_index(np.triu_indices(nodes, k=1), (nodes, nodes)),
        torch.cat([known, split.test], dim=1).t().numpy() @ [nodes, 1],
    )
    drawn = np.random.default_rng(0).permutation(free)[: 2 * split.test.size(1)]
    moved = torch.from_numpy(np.stack(np.unravel_index(drawn, (nodes, nodes))))
    test, negatives = moved.chunk(2, dim=1)
    changed = dataclasses.replace(split, test=test, test_negatives=negatives)
    elsewhere = graph.clone()
    elsewhere.edge_index = torch.cat([split.edge_index, split.val, test, test.flip(0)], dim=1)

    first = run_cell(plan.config, graph, 0)
    monkeypatch.setattr(problems, "split_links", lambda *_, **__: changed)
    second = run_cell(plan.config, elsewhere, 0)
    assert_same_weights(*models)
    for key in ("val", "chosen_epoch", "epochs_run", "penalty_weights"):
        assert second[key] == first[key], key
    assert second["test"]["auroc"] != first["test"]["auroc"]
    assert second["test"]["threshold"] == first["test"]["threshold"]


@pytest.mark.parametrize("settings", LEAKS.values(), ids=LEAKS)
def test_training_by_hand_without_any_test_pair_gives_the_same_weights(small_npz, models, settings):
    """Here training cannot know a test pair: they were thrown away before it began."""
    plan = plan_of(small_npz(), *settings)
    config, graph = plan.config, plan.graph
    row = run_cell(config, graph, 4)

    split = split_links(graph.edge_index, graph.num_nodes, "85/5/10", 4)
    observed = Data(x=graph.x.clone(), edge_index=split.edge_index.clone())
    pairs = [part.clone() for part in (split.train, split.val, split.val_negatives)]
    task = LinkPrediction(*pairs, graph.num_nodes, graph.y.clone())
    del split
    torch.manual_seed(config.seed)
    model = config.spec.build()
    result = fit(model, observed, task, config.train)
    assert_same_weights(model.state_dict(), models[0])
    assert result.best_epoch == row["chosen_epoch"]
    assert result.penalty_weights == row["penalty_weights"]


# Under the null hypothesis, edges and non-edges of the test set are exchangeable whatever the
# model has learned: the AUROC of n of each has mean 1/2 and variance (2 n + 1) / (12 n^2).


def null_deviation(counts):
    """Standard deviation of the mean AUROC of independent test sets with so many of each kind."""
    variances = [(2 * n + 1) / (12 * n**2) for n in counts]
    return math.sqrt(sum(variances)) / len(variances)


def random_graph(seed, num_nodes=300, chance=0.1):
    """Every pair is an edge with the same chance, and features are noise."""
    rng = np.random.default_rng(seed)
    low, high = np.triu_indices(num_nodes, k=1)
    chosen = rng.random(len(low)) < chance
    edge_index = torch.from_numpy(np.stack([low[chosen], high[chosen]]))
    return load(Data(x=torch.from_numpy(rng.normal(size=(num_nodes, 64))), edge_index=edge_index))


def auroc_of_random_graphs(count, **changes):
    rows = []
    for seed in range(count):
        settings = ("hidden_channels=32", "epochs=25", "evaluate_every=5", "lr=0.01")
        graph = random_graph(seed)
        plan = plan_of("random", *settings, graph=graph, ratio="80/5/15", **changes)
        rows.append(run_cell(plan.config, graph, seed))
    deviation = null_deviation([row["test"]["count"] // 2 for row in rows])
    return np.mean([row["test"]["auroc"] for row in rows]), deviation


@pytest.mark.parametrize("model", ["argnn", "gcn"])
def test_links_of_random_graphs_cannot_be_predicted(model):
    auroc, deviation = auroc_of_random_graphs(5, model=model)
    assert 4 * deviation < 0.03
    assert abs(auroc - 0.5) < 0.03


def test_leak_would_be_seen_in_random_graphs(monkeypatch):
    """With test edges in the observed graph, the same graphs can be predicted."""

    def leaking(*arguments, **options):
        split = split_links(*arguments, **options)
        leaked = torch.cat([split.edge_index, split.test, split.test.flip(0)], dim=1)
        return dataclasses.replace(split, edge_index=leaked)

    monkeypatch.setattr(problems, "split_links", leaking)
    assert auroc_of_random_graphs(2, model="gcn")[0] > 0.6


def planted(seed, size=150):
    """Two blocks with dense inner and thin outer edges."""
    rng = np.random.default_rng(seed)
    y = np.arange(2 * size) // size
    chance = np.where(y[:, None] == y, 0.17, 0.02)
    joined = np.triu(rng.random((2 * size, 2 * size)) < chance, k=1)
    x = rng.normal(size=(2 * size, 8)) + 2 * y[:, None] - 1
    edge_index = torch.from_numpy(np.stack(joined.nonzero()))
    return load(Data(x=torch.from_numpy(x), edge_index=edge_index))


def shuffled_links(edge_index, num_nodes, ratio, seed, *, spanning_forest):
    """A split in which chance says which pairs of edges and as many non-edges are the edges."""
    split = split_links(edge_index, num_nodes, ratio, seed, spanning_forest=spanning_forest)
    edges = torch.cat([split.train, split.val, split.test], dim=1)
    everything = torch.combinations(torch.arange(num_nodes)).t()
    keys = edges[0] * num_nodes + edges[1]
    free = everything[:, ~torch.isin(everything[0] * num_nodes + everything[1], keys)]
    generator = torch.Generator().manual_seed(seed)
    free = free[:, torch.randperm(free.size(1), generator=generator)[: edges.size(1)]]
    pool = torch.cat([edges, free], dim=1)
    pool = pool[:, torch.randperm(pool.size(1), generator=generator)]
    positive, negative = pool.chunk(2, dim=1)
    sizes = [split.train.size(1), split.val.size(1), split.test.size(1)]
    train, val, test = positive.split(sizes, dim=1)
    _, val_negatives, test_negatives = negative.split(sizes, dim=1)
    both_ways = torch.cat([train, train.flip(0)], dim=1)
    return LinkSplit(both_ways, train, val, val_negatives, test, test_negatives)


def test_shuffled_labels_of_pairs_cannot_be_predicted(monkeypatch):
    def auroc(shuffled, count):
        rows = []
        for seed in range(count):
            settings = ("hidden_channels=16", "epochs=25", "evaluate_every=5", "lr=0.01")
            graph = planted(seed)
            plan = plan_of("planted", *settings, graph=graph, ratio="80/5/15", model="gcn")
            with monkeypatch.context() as patch:
                if shuffled:
                    patch.setattr(problems, "split_links", shuffled_links)
                rows.append(run_cell(plan.config, graph, seed))
        deviation = null_deviation([row["test"]["count"] // 2 for row in rows])
        return np.mean([row["test"]["auroc"] for row in rows]), deviation

    true, _ = auroc(shuffled=False, count=1)
    assert true > 0.65  # whoever knows the blocks reaches about 0.72
    found, deviation = auroc(shuffled=True, count=5)
    assert 4 * deviation < 0.03
    assert abs(found - 0.5) < 0.03


# -- refused before anything begins ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "edges"}, "--task must be one of node, link, regression"),
        ({"task": "node", "decoder": None, "ratio": "85/5/10"}, "--ratio belongs to --task link"),
        ({"task": "node", "decoder": "dot"}, "--decoder belongs to --task link"),
        (
            {"task": "node", "decoder": None, "spanning_forest": True},
            "--spanning-forest belongs to --task link",
        ),
        ({"directed": True}, "--directed belongs to --task node"),
        ({"ratio": "85/5"}, "--ratio must read like 85/5/10 (got '85/5')"),
        ({"ratio": "80/5/10"}, "--ratio must be three positive shares that sum to 100"),
        ({"decoder": "dto"}, "unknown decoder 'dto'; did you mean 'dot'"),
        ({"decoder": "metric", "model": "gcn"}, "gcn: the decoder 'metric' needs a model that"),
        ({"split": "-1"}, "--split must not be negative (got -1)"),
        ({"split": "x"}, "--split must be a number or all (got 'x')"),
    ],
)
def test_bad_requests(small_npz, changes, message):
    with pytest.raises(ConfigError) as caught:
        plan_of(small_npz(), **changes)
    assert message in str(caught.value)


def test_all_splits_are_ten(small_npz):
    assert plan_of(small_npz(), split="all", model="gcn").config.splits == tuple(range(10))
    assert plan_of(small_npz(), split="99,7", model="gcn").config.splits == (7, 99)


def test_metric_of_another_width_is_refused(small_npz):
    overrides = ("num_layers=1", "hidden_channels=8")  # the metric is as wide as the features
    with pytest.raises(ConfigError, match="embeddings as wide as the metric"):
        plan_of(small_npz(), *overrides, preset="paper", decoder="metric")


def test_metric_of_another_width_is_refused_at_every_width(small_npz):
    overrides = ("num_layers=1", "hidden_channels=2")
    with pytest.raises(ConfigError, match=r"embeddings as wide as the metric, 3 \(got 2\)"):
        plan_of(small_npz(), *overrides, preset="paper", decoder="metric")


def test_metric_as_wide_as_the_features_is_fine(small_npz):
    overrides = ("num_layers=1", "hidden_channels=3")
    plan = plan_of(small_npz(), *overrides, preset="paper", decoder="metric")
    assert run_cell(plan.config, plan.graph, 0)["test"]["auroc"] >= 0


def path_npz(tmp_path, num_nodes):
    path = tmp_path / "path.npz"
    edges = np.stack([np.arange(num_nodes - 1), np.arange(1, num_nodes)])
    np.savez(path, x=np.eye(num_nodes, 3), edge_index=edges)
    return path


@pytest.mark.parametrize(
    ("num_nodes", "changes", "message"),
    [
        (4, {}, "3 pairs are too few for a split at 85/5/10"),
        (40, {"spanning_forest": True}, "only 0 of 39 pairs are outside a spanning forest"),
    ],
)
def test_graph_that_cannot_be_divided_is_refused(tmp_path, num_nodes, changes, message):
    with pytest.raises(DataError, match=message):
        plan_of(path_npz(tmp_path, num_nodes), **changes)


def test_theory_without_labels_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="need labels, and the graph has none"):
        plan_of(path_npz(tmp_path, 40), "penalty_weights=theory")
