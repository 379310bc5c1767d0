"""Bad input is one line, exit code 2, no traceback, and nothing is created or overwritten."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

TINY = ("--preset=reference", "--epochs=2", "--set=hidden_channels=4")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "coar"], "unknown data set 'coar'; did you mean 'cora'"),
        (["train", "mixed", "--model=argn"], "unknown model 'argn'; did you mean 'argnn'"),
        (["train", "mixed", "--preset=papr"], "unknown preset 'papr'; did you mean 'paper'"),
        (["train", "mixed", "--model=gcn", "--preset=paper"], "preset 'paper' belongs to argnn"),
        (["train", "mixed", "--set=dropuot=0.1"], "did you mean 'dropout'"),
        (["train", "mixed", "--set=model.lr=0.1"], "did you mean 'train.lr'"),
        (["train", "mixed", "--set=lr"], "--set must read key=value"),
        (["train", "mixed", "--set=dropout=abc"], "dropout must be a number (got 'abc')"),
        (["train", "mixed", "--set=dropout=1.5"], "dropout must be in [0, 1) (got 1.5)"),
        (
            ["train", "mixed", "--set=train.optimizer=adm"],
            "unknown optimizer 'adm'; did you mean 'adam' or 'adamw'? choices: adam, adamw",
        ),
        (["train", "mixed", "--set=lr=-1"], "lr must be positive (got -1.0)"),
        (
            ["train", "mixed", "--set=hidden_channels=-3"],
            "hidden_channels must be a positive whole number (got -3)",
        ),
        (["train", "mixed", "--set=ricci_weight=-1"], "ricci_weight must be finite and not neg"),
        (["train", "mixed", "--set=metric_layers=9"], "(got 9)"),
        (["train", "mixed", "--epochs=0"], "epochs must be at least 1"),
        (["train", "mixed", "--checkpoint-every=-1"], "checkpoint_every must be finite and not"),
        (["train", "mixed", *TINY, "--split=10"], "split 10 out of range: mixed has splits 0 to 9"),
        (["train", "mixed", *TINY, "--split=-1"], "split -1 out of range"),
        (["train", "mixed", *TINY, "--split=x"], "--split must be a number or all (got 'x')"),
        (["train", "mixed", *TINY, "--workers=0"], "--workers must be at least 1"),
        (["train", "mixed", "--seed=-1"], "--seed must be from 0"),
        (["train", "mixed", "--seed=one"], "Invalid value for '--seed'"),
        (
            ["train", "mixed", "--task=edges"],
            "--task must be one of node, link, regression, multilabel",
        ),
        (["train", "mixed", "--device=tpu"], "--device must be one of auto, cpu, cuda"),
        (["train", "mixed", "--device=cuda:999"], "--device cuda:999: "),
        (["train", "mixed", "--device=mps"], "--device mps: no GPU of Apple is available here"),
        (["predict", "run", "--device=mps"], "--device mps: no GPU of Apple is available here"),
        (["train"], "name a data set"),
        (["train", "cora", "--data-root=nowhere"], "raw file missing: nowhere/Cora"),
        (["train", "cora"], "ARGNN_OFFLINE forbids downloads"),
        (["train", "none.npz"], "none.npz: no such file"),
        (["train", "graph.csv"], "supported graph files are .npz"),
        (["train", "--resume=none"], "none: no such run folder"),
        (["train", "mixed", "--optoin=3"], "No such option: --optoin"),
        (["trian"], "No such command 'trian'"),
        (["train", "mixed", "extra"], "unexpected extra argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments(refused, arguments, message):
    refused(*arguments, message=message)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_gpu_that_is_not_there(refused):
    refused("train", "mixed", "--device=cuda", message="no CUDA device is available here")


def test_nan_features(refused, small_npz):
    x = np.load(small_npz())["x"]
    x[4, 1] = np.nan
    path = small_npz("nan.npz", x=x)
    refused("train", path, message=f"{path}: x[4, 1] is not finite (got nan)")


def test_damaged_npz(refused, small_npz):
    path = small_npz()
    path.write_bytes(path.read_bytes()[:500])
    refused("train", path, message=f"{path}: not a readable npz file")


def test_npz_without_labels(refused, tmp_path):
    path = tmp_path / "bare.npz"
    np.savez(path, x=np.ones((3, 2)), edge_index=np.array([[0], [1]]))
    refused("train", path, message="no labels to train on")


def test_missing_raw_file(refused, copied):
    root = copied("texas")
    (root / "texas/raw/out1_graph_edges.txt").unlink()
    refused("train", "texas", "--data-root", root, message="raw file missing")


def test_damaged_raw_file(refused, copied):
    root = copied("texas")
    path = root / "texas/raw/out1_graph_edges.txt"
    content = path.read_text()
    path.write_text(content.replace("1", "one", 1))
    refused("train", "texas", "--data-root", root, message="out1_graph_edges.txt")
    path.write_text(content[: content.index("\n", len(content) // 2) + 1])
    refused("train", "texas", "--data-root", root, message="out1_graph_edges.txt is damaged")


class Hostile:
    def __reduce__(self):
        return os.system, ("touch hacked",)


def test_hostile_pickle_does_not_run(refused, copied):
    root = copied("Cora")
    path = root / "Cora/geom-gcn/raw/ind.cora.x"
    path.write_bytes(pickle.dumps(Hostile()))
    refused("train", "cora", "--data-root", root, message="ind.cora.x")
    assert not Path("hacked").exists()


@pytest.mark.parametrize("kind", ["file", "other folder", "run"])
def test_out_that_is_taken(refused, argnn, kind):
    out = Path("taken")
    if kind == "file":
        out.write_text("mine")
    elif kind == "run":
        argnn("train", "mixed", *TINY, f"--out={out}")
    else:
        out.mkdir()
        (out / "notes.txt").write_text("mine")
    messages = {"file": "not a folder", "run": "holds a run", "other folder": "the folder is not"}
    refused("train", "mixed", *TINY, f"--out={out}", message=f"taken: {messages[kind]}")


@pytest.fixture
def run(argnn):
    """A finished run whose second split looks as if it had been killed."""
    argnn("train", "mixed", *TINY, "--split=0,1", "--workers=1", "--out=run")
    Path("run/split-1/result.json").unlink()
    return Path("run")


def test_resumed_run_with_a_changed_configuration(refused, run):
    config = json.loads((run / "config.json").read_text())
    config["run"]["train"]["lr"] = 1.0
    (run / "config.json").write_text(json.dumps(config))
    refused("train", "--resume=run", message="config.json: was changed after the run began")


def test_resumed_run_without_its_configuration(refused, run):
    (run / "config.json").unlink()
    refused("train", "--resume=run", message="run/config.json: no such file")


def test_resumed_run_with_a_truncated_configuration(refused, run):
    path = run / "config.json"
    path.write_bytes(path.read_bytes()[:100])
    refused("train", "--resume=run", message="run/config.json: damaged, not JSON")


def test_resumed_run_with_a_damaged_result(refused, run):
    (run / "split-0/result.json").write_text("{}")
    refused("train", "--resume=run", message="run/split-0/result.json: damaged")


def test_resumed_run_with_a_damaged_checkpoint(refused, run):
    (run / "split-1/checkpoint.safetensors").write_bytes(b"nonsense")
    refused("train", "--resume=run", message="checkpoint.safetensors: damaged")


def test_resumed_run_with_a_foreign_checkpoint(refused, run):
    from argnn.store.run_folder import write_checkpoint

    write_checkpoint(run / "split-1/checkpoint.safetensors", {}, {"history": []}, "other")
    refused("train", "--resume=run", message="a run with another configuration")


def test_resumed_run_with_other_settings(refused, run):
    refused("train", "--resume=run", "--set=lr=1", message="leave out --set")
    refused("train", "--resume=run", "--seed=0", message="leave out --seed")
    refused("train", "--resume=run", "--out=new", message="leave out --out")
    refused("train", "digits", "--resume=run", message="is a run on mixed, not on digits")


def test_resumed_run_on_a_changed_graph(refused, argnn, small_npz):
    path = small_npz()
    argnn("train", path, "--model=gcn", "--epochs=2", "--out=run")
    x = np.load(path)["x"]
    small_npz(x=x + 1)
    refused("train", "--resume=run", message="the graph has changed since the run began")
