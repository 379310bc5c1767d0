"""``argnn train --task link``: what a person sees, what a machine reads, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from argnn.nn import DECODERS, MODELS

TINY = ("--task=link", "--epochs=3", "--set=hidden_channels=4", "--set=num_layers=1", "--workers=1")


def table_numbers(text):
    """The first number of each row of the closing table."""
    rows = [line.strip("│ \n").split("│") for line in text.splitlines() if line.startswith("│")]
    return {cells[0].strip(): cells[1].split("±")[0].strip() for cells in rows}


def bare_npz(tmp_path, pairs, num_nodes):
    """A graph without labels."""
    path = tmp_path / "bare.npz"
    x = np.random.default_rng(0).normal(size=(num_nodes, 3))
    np.savez(path, x=x, edge_index=np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
    return path


def test_one_split_of_an_embedded_graph(argnn):
    done = argnn("train", "mixed", *TINY)
    assert (done.code, done.err) == (0, "")
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("mixed-argnn-default-2")
    assert f"Run folder: {folder}" in done.out
    assert "test pairs scored once, after training; the model sees training edges only" in done.out
    summary = json.loads((folder / "scores.json").read_text())["summary"]
    shown = table_numbers(done.out)
    names = {
        "test AUROC": "auroc",
        "test AUPRC": "auprc",
        "test accuracy": "accuracy",
        "test hits@10": "hits@10",
        "test hits@50": "hits@50",
        "test MRR": "mrr",
    }
    for label, name in names.items():
        assert shown[label] == f"{100 * summary['test'][name]['mean']:.2f}", label
    assert shown["validation AUROC"] == f"{100 * summary['val']['auroc']['mean']:.2f}"
    assert len(shown) == 7


def test_best_new_links(argnn, small_npz):
    path = small_npz()
    assert argnn("train", path, *TINY, "--split=0", "--out=run").code == 0
    done = argnn("predict", "run", "--top=9999", "--out=top.csv")
    assert (done.code, done.err) == (0, "")
    header, *rows = Path("top.csv").read_text().splitlines()
    assert header == "source,target,link,probability"
    edges = {
        frozenset(edge) for edge in np.load(path)["edge_index"].T.tolist() if len(set(edge)) > 1
    }
    found = [frozenset(map(int, row.split(",")[:2])) for row in rows]
    # Those that were held out from training are no news.
    assert not edges & set(found)
    assert len(set(found)) == len(found) == 90 * 89 // 2 - len(edges)
    assert f"{len(found)} pairs with argnn" in done.out
    assert argnn("predict", "run", "--top=2", "--node=7", "--out=node.csv").code == 0
    assert [line.split(",")[0] for line in Path("node.csv").read_text().splitlines()[1:]] == [
        "7"
    ] * 2
    for words, message in {
        (): "needs --pairs FILE, with columns source and target, or --top K",
        ("--top=2", "--node=x"): "--node: unknown node 'x'",
        ("--pairs=p.csv", "--node=7"): "--node needs --top K",
    }.items():
        refused = argnn("predict", "run", *words, "--out=no.csv")
        assert (refused.code, message in refused.err) == (2, True), refused.err


def test_json_is_one_document(argnn, small_npz):
    done = argnn("train", small_npz(), *TINY, "--split=0,1", "--out=run", "--json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    stored = json.loads(Path("run/scores.json").read_text())
    assert (document["summary"], document["splits"]) == (stored["summary"], stored["splits"])
    assert document["summary"]["task"] == "link"
    assert [row["task"] for row in document["splits"]] == ["link", "link"]
    auroc = np.array([row["test"]["auroc"] for row in document["splits"]])
    assert document["summary"]["test"]["auroc"]["mean"] == pytest.approx(auroc.mean())
    link = document["config"]["link"]
    assert (link["ratio"], link["spanning_forest"]) == ("85/5/10", False)
    assert link["decoder"] in DECODERS


def test_options_of_the_task(argnn, small_npz):
    options = ("--ratio=80/5/15", "--decoder=MLP", "--spanning-forest")
    done = argnn("train", small_npz(), *TINY, *options, "--json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    expected = {"ratio": "80/5/15", "spanning_forest": True, "decoder": "mlp"}
    assert document["config"]["link"] == expected
    pairs = len({tuple(sorted(e)) for e in np.load(small_npz())["edge_index"].T if e[0] != e[1]})
    assert document["splits"][0]["test"]["count"] == 2 * (15 * pairs // 100)


@pytest.mark.parametrize("model", MODELS)
def test_every_model(argnn, small_npz, model):
    done = argnn("train", small_npz(), "--task=link", f"--model={model}", "--epochs=2", "--json")
    assert (done.code, done.err) == (0, "")
    (row,) = json.loads(done.out)["splits"]
    assert (row["model"], row["task"]) == (model, "link")
    assert 0 <= row["test"]["auroc"] <= 1


@pytest.mark.parametrize("preset", ["paper", "reference"])
@pytest.mark.parametrize("decoder", DECODERS)
def test_every_preset_with_every_decoder(argnn, small_npz, preset, decoder):
    options = (f"--preset={preset}", f"--decoder={decoder}", "--set=num_layers=2")
    done = argnn("train", small_npz(), *TINY, *options, "--json")
    assert (done.code, done.err) == (0, "")
    config = json.loads(done.out)["config"]
    assert (config["preset"], config["link"]["decoder"]) == (preset, decoder)


def test_graph_without_labels(argnn, tmp_path):
    rng = np.random.default_rng(0)
    path = bare_npz(tmp_path, rng.integers(0, 60, size=(200, 2)), 60)
    done = argnn("train", path, *TINY)
    assert (done.code, done.err) == (0, "")
    assert table_numbers(done.out)["test hits@50"] == "-"  # there are fewer test pairs


def test_finished_run_is_not_repeated(argnn, small_npz):
    argnn("train", small_npz(), *TINY, "--ratio=80/5/15", "--out=run")
    before = {path: path.read_bytes() for path in Path("run/split-0").rglob("*.*")}
    done = argnn("train", "--resume=run")
    assert (done.code, done.err) == (0, "")
    assert {path: path.read_bytes() for path in Path("run/split-0").rglob("*.*")} == before
    assert "validation AUROC" in done.out


def test_interrupted_run_continues(argnn, small_npz, monkeypatch):
    from argnn.runs import parallel

    def interrupted(config, graph, split, folder, on_epoch):
        if split == 1:
            raise KeyboardInterrupt
        return whole(config, graph, split, folder, on_epoch)

    whole, path = parallel.run_split, small_npz()
    with monkeypatch.context() as patch:
        patch.setattr(parallel, "run_split", interrupted)
        done = argnn("train", path, *TINY, "--split=0,1", "--out=run")
    assert done.code == 130
    again = argnn("train", "--resume=run", "--workers=1", "--json")
    assert (again.code, again.err) == (0, "")
    assert [row["split"] for row in json.loads(again.out)["splits"]] == [0, 1]
    assert [row["task"] for row in json.loads(again.out)["splits"]] == ["link", "link"]


# -- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ratio=85/5/10"], "--ratio belongs to --task link"),
        (["--decoder=dot"], "--decoder belongs to --task link"),
        (["--spanning-forest"], "--spanning-forest belongs to --task link"),
        (["--task=node", "--ratio=85/5/10"], "--ratio belongs to --task link"),
        (
            ["--task=links"],
            "--task must be one of node, link, regression, multilabel",
        ),
        (["--task=link", "--ratio=85/15"], "--ratio must read like 85/5/10 (got '85/15')"),
        (["--task=link", "--ratio=90/5/10"], "three positive shares that sum to 100"),
        (["--task=link", "--decoder=dto"], "unknown decoder 'dto'; did you mean 'dot'"),
        (["--task=link", "--decoder=metric", "--model=gcn"], "needs a model that learns a metric"),
        (
            ["--task=link", "--decoder=metric", "--preset=paper", "--set=num_layers=1"],
            "the decoder 'metric' needs embeddings as wide as the metric",
        ),
        (["--task=link", "--directed"], "--directed belongs to --task node"),
        (["--task=link", "--split=-1"], "--split must not be negative (got -1)"),
        (["--task=link", "--split=x"], "--split must be a number or all (got 'x')"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments(refused, options, message):
    refused("train", "mixed", *options, message=message)


def test_resumed_run_with_other_settings(refused, argnn, small_npz):
    argnn("train", small_npz(), *TINY, "--out=run")
    for option in ("--task=link", "--ratio=85/5/10", "--decoder=dot", "--spanning-forest"):
        name = option.partition("=")[0]
        refused("train", "--resume=run", option, message=f"leave out {name}")


PATH = [(a, a + 1) for a in range(40)]


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        (PATH[:3], [], "3 pairs are too few for a split at 85/5/10"),
        ([], [], "0 pairs are too few for a split at 85/5/10"),
        (PATH, ["--spanning-forest"], "only 0 of 40 pairs are outside a spanning forest"),
    ],
)
def test_graph_that_is_not_enough(refused, tmp_path, pairs, options, message):
    refused("train", bare_npz(tmp_path, pairs, 41), *TINY, *options, message=message)


@pytest.mark.parametrize("option", ["--set=penalty_weights=theory", "--preset=paper"])
def test_penalties_from_theory_without_labels(refused, tmp_path, option):
    path = bare_npz(tmp_path, PATH, 41)
    message = "need labels, and the graph has none"
    refused("train", path, *TINY, "--decoder=dot", option, message=message)


def test_graph_with_too_few_non_edges(refused, tmp_path):
    complete = [(a, b) for a in range(12) for b in range(a)]
    path = bare_npz(tmp_path, complete, 12)
    refused("train", path, *TINY, message="9 non-edges are needed, but the graph has only 0")


def test_diverging_split_ends_with_one_and_a_clear_line(argnn, small_npz):
    done = argnn("train", small_npz(), *TINY, "--model=gcn", "--set=lr=1e30", "--out=run")
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.startswith("argnn: error: split 0 failed: DivergenceError: the ")
