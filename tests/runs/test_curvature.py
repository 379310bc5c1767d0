"""Curvatures on disk: found again, made anew where damaged, and never those of other edges."""

import logging

import pytest
import torch
from torch_geometric.data import Data

from argnn.files import read_checked
from argnn.functional import ollivier, ollivier_ricci
from argnn.runs import train_one as curvature
from argnn.runs.parallel import run_splits
from argnn.runs.prepare import Request, prepare
from argnn.runs.problems import pose_problem
from argnn.runs.run import run_cell
from argnn.runs.train_one import curvature_file, load_curvature, precompute_curvature
from argnn.store.run_folder import create_run

pytest.importorskip("ot", reason="small graphs use POT")

TINY = ("hidden_channels=8", "num_layers=2", "epochs=2")


def plan_of(data, model="curvdrop", **changes):
    fields = {"workers": 1, "overrides": TINY, **changes}
    return prepare(Request(str(data), model=model, **fields))


def fresh(graph):
    """The same edges in a tensor that nothing is known about."""
    return Data(x=graph.x, edge_index=graph.edge_index.clone())


@pytest.fixture
def plan(small_npz):
    return plan_of(small_npz())


@pytest.fixture
def no_computation(monkeypatch):
    """From here on, all curvatures have to come from files."""

    def forbid():
        monkeypatch.setattr(ollivier, "_pair_curvature", None)

    return forbid


def test_second_call_reads_the_file_and_gives_the_same_bits(plan, cache, no_computation):
    first, again = fresh(plan.graph), fresh(plan.graph)
    facts = load_curvature(plan.config, first)
    path = curvature_file(first.edge_index, 90, "auto")
    assert path.parent == cache / "curvature"
    assert path.is_file()
    no_computation()
    assert load_curvature(plan.config, again) == facts
    pairs = facts["exact"] + facts["estimated"]
    assert (facts["method"], facts["estimated"]) == ("auto", 0)
    found = ollivier.pair_curvature(again.edge_index, 90, method="auto")
    assert found.numel() == pairs
    assert torch.equal(found, ollivier.pair_curvature(first.edge_index, 90, method="auto"))


def test_file_is_that_of_the_set_of_edges(plan):
    edges = plan.graph.edge_index
    path = curvature_file(edges, 90, "auto")
    shuffled = edges[:, torch.randperm(edges.size(1))].flip(0)
    assert curvature_file(torch.cat([shuffled, edges[:, :3]], 1), 90, "auto") == path
    assert curvature_file(edges, 90, "bounds") != path
    low, high = edges[:, :1], edges[:, :1].flip(0)
    gone = ((edges == low) | (edges == high)).all(0)
    assert curvature_file(edges[:, ~gone], 90, "auto") != path


def test_estimates_are_recorded(plan, monkeypatch):
    monkeypatch.setattr(ollivier, "MAX_CELLS", 60)
    facts = load_curvature(plan.config, fresh(plan.graph))
    assert facts["exact"] > 0
    assert facts["estimated"] > 0


@pytest.mark.parametrize("content", [b"", b"no tensors", None])
def test_damaged_file_is_made_anew(plan, caplog, content):
    graph = fresh(plan.graph)
    load_curvature(plan.config, graph)
    path = curvature_file(graph.edge_index, 90, "auto")
    whole = path.read_bytes()
    path.write_bytes(whole[:-8] + bytes(8) if content is None else content)
    with caplog.at_level(logging.WARNING):
        load_curvature(plan.config, fresh(plan.graph))
    assert "is made anew" in caplog.text
    again = fresh(plan.graph)
    assert load_curvature(plan.config, again)["estimated"] == 0
    exact = ollivier_ricci(graph.edge_index, 90)
    torch.testing.assert_close(ollivier_ricci(again.edge_index, 90, method="auto"), exact)


def test_a_cache_that_cannot_be_written_does_not_stop_a_run(plan, cache, caplog):
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "curvature").write_text("a file where a folder should be")
    with caplog.at_level(logging.WARNING):
        assert load_curvature(plan.config, fresh(plan.graph))["exact"] > 0
    assert "curvatures are not kept" in caplog.text


def test_a_cache_that_cannot_be_read_does_not_stop_a_run(plan, monkeypatch, caplog):
    monkeypatch.setenv("ARGNN_CACHE", 5000 * "n")  # the system refuses the name, also to root
    assert load_curvature(plan.config, plan.graph)["exact"] > 0
    assert "File name too long" in caplog.text


def test_models_without_curvature_need_no_file(small_npz, cache):
    plan = plan_of(small_npz(), "gcn")
    assert load_curvature(plan.config, plan.graph) is None
    precompute_curvature(plan.config, plan.graph)
    assert not (cache / "curvature").exists()


@pytest.mark.parametrize("model", ["curvdrop", "cusp"])
def test_row_says_how_curvature_was_found_and_files_change_nothing(model, small_npz, cache):
    plan = plan_of(small_npz(), model)
    first = run_cell(plan.config, plan.graph, 0)
    assert len(list((cache / "curvature").iterdir())) == 1
    again = plan_of(small_npz(), model)
    second = run_cell(again.config, again.graph, 0)
    assert first["curvature"] == second["curvature"]
    assert first["curvature"]["method"] == "auto"
    assert first["val"] == second["val"]
    assert first["test"] == second["test"]


def test_row_of_a_model_without_curvature_says_nothing(small_npz):
    plan = plan_of(small_npz(), "gcn")
    assert "curvature" not in run_cell(plan.config, plan.graph, 0)


def test_links_have_the_curvature_of_their_training_edges(small_npz, cache, no_computation):
    plan = plan_of(small_npz(), task="link", split="0,1")
    precompute_curvature(plan.config, plan.graph)
    assert len(list((cache / "curvature").iterdir())) == 2
    no_computation()
    whole = curvature_file(plan.graph.edge_index, 90, "auto")
    assert not whole.exists()
    for split in (0, 1):
        visible = pose_problem(plan.graph, split, "cpu", plan.config.link).visible
        facts = load_curvature(plan.config, visible)
        assert facts["exact"] == visible.edge_index.size(1) // 2
        assert run_cell(plan.config, plan.graph, split)["curvature"] == facts


def test_nodes_are_computed_once_for_all_splits_and_tell_how_far_they_are(
    small_npz, cache, tmp_path, monkeypatch, no_computation
):
    monkeypatch.setattr(ollivier, "_SMALL", 0)
    plan = plan_of(small_npz(), split="0,1")
    told = []
    precompute_curvature(plan.config, plan.graph, lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] > 0
    assert len(list((cache / "curvature").iterdir())) == 1
    no_computation()
    folder = create_run(tmp_path / "run", plan.config.to_json())
    rows = run_splits(plan, folder)
    assert [row["curvature"]["exact"] for row in rows] == [told[-1][1]] * 2
    assert read_checked(folder.result(1))["curvature"] == rows[1]["curvature"]


@pytest.mark.usefixtures("forked_workers")
def test_worker_processes_find_the_files(small_npz, tmp_path, cache):
    plan = plan_of(small_npz(), split="0,1", workers=2)
    precompute_curvature(plan.config, plan.graph)
    path = next(iter((cache / "curvature").iterdir()))
    written = path.stat().st_mtime_ns
    folder = create_run(tmp_path / "run", plan.config.to_json())
    rows = run_splits(plan, folder)
    assert [row["curvature"]["estimated"] for row in rows] == [0, 0]
    assert path.stat().st_mtime_ns == written
    assert curvature._ALPHA == 0.5
