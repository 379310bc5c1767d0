"""``torchrun -m argnn train``: several processes, one result, and none lost by a kill."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from forked import Forked, command, run_forked

COMMAND = ["train", "mixed", "--set", "num_layers=2", "--set", "hidden_channels=16", "--json"]


def started(
    tmp_path: Path, name: str, ranks: int, *arguments: str, restarts: int = 0
) -> subprocess.Popen:
    """A command under torchrun, in a group of its own."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    launcher += ["--max-restarts", str(restarts), "--monitor-interval", "0.2"]
    environment = {**os.environ, "ARGNN_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    words = ["-m", "argnn", *COMMAND, *arguments, "--out", str(tmp_path / name)]
    with (tmp_path / f"{name}.json").open("w") as out, (tmp_path / f"{name}.err").open("w") as err:
        return subprocess.Popen([*launcher, *words], stdout=out, stderr=err, env=environment)


def ended(process: subprocess.Popen, tmp_path: Path, name: str) -> dict:
    code = process.wait()
    assert code == 0, (tmp_path / f"{name}.err").read_text()[-3000:]
    (row,) = json.loads((tmp_path / f"{name}.json").read_text())["splits"]
    return row


def weights(tmp_path: Path, name: str) -> dict:
    return load_file(tmp_path / name / "split-0" / "model" / "model.safetensors")


def test_two_processes_give_the_scores_of_one(tmp_path):
    options = ("--epochs", "6", "--set", "dropout=0", "--set", "input_dropout=0")
    row = ended(started(tmp_path, "two", 2, *options), tmp_path, "two")
    code, out, errors = run_forked(command, *COMMAND, *options, "--out", "one", cwd=tmp_path)
    assert code == 0, errors
    (alone,) = json.loads(out)["splits"]
    assert row["val"]["accuracy"] == alone["val"]["accuracy"]
    assert row["test"]["accuracy"] == alone["test"]["accuracy"]
    assert row["chosen_epoch"] == alone["chosen_epoch"]


@contextmanager
def as_torchrun_starts_them(tmp_path: Path, *words: str, restart: int = 0):
    """Two processes of a command; torchrun itself would end the second with the first."""
    with socket.create_server(("localhost", 0)) as free:
        port = str(free.getsockname()[1])
    told = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    told |= {"TORCHELASTIC_RUN_ID": "test", "TORCHELASTIC_RESTART_COUNT": str(restart)}
    ranks = [
        Forked(command, *words, cwd=tmp_path, RANK=rank, LOCAL_RANK=rank, **told) for rank in "01"
    ]
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.end()


def refused_in_one_line(tmp_path: Path, *words: str, restart: int = 0) -> str:
    with as_torchrun_starts_them(tmp_path, *words, restart=restart) as (leader, _):
        _, errors = leader.communicate()
        assert leader.returncode == 2
        (line,) = errors.splitlines()
        return line


def test_what_is_wrong_is_said_in_one_line(tmp_path):
    words = (*COMMAND, "--set", "batching=clusters", "--epochs", "2", "--out", "bad")
    line = refused_in_one_line(tmp_path, *words)
    assert "several processes train on the whole graph" in line


def test_ctrl_c_and_after_it_a_restart_and_a_continued_run(tmp_path):
    options = ("--checkpoint-every", "1", "--set", "patience=0", "--out", "run")
    words = (*COMMAND, "--epochs", "120", *options)
    checkpoint = tmp_path / "run" / "split-0" / "checkpoint.safetensors"
    with as_torchrun_starts_them(tmp_path, *words) as ranks:
        while not checkpoint.exists():
            assert ranks[0].poll() is None, ranks[0].communicate()
            time.sleep(0.01)
        for rank in ranks:
            os.kill(rank.pid, signal.SIGINT)
        assert [rank.communicate()[1].splitlines()[-1:] for rank in ranks] == [
            ["argnn: error: interrupted; continue with: argnn train --resume run"],
            [],
        ]
        assert [rank.returncode for rank in ranks] == [130, 130]
    # torchrun starts a command that has failed again: it must not go on with another one's run.
    other = (*COMMAND, "--epochs", "130", *options)
    for restart in (0, 1):
        line = refused_in_one_line(tmp_path, *other, restart=restart)
        assert line == "argnn: error: run: holds a run already; continue it with --resume run"
    assert checkpoint.exists()
    with as_torchrun_starts_them(tmp_path, *words, restart=1) as (leader, follower):
        out, errors = leader.communicate()
        assert leader.returncode == 0, errors
        assert follower.communicate()[1] == ""
    with as_torchrun_starts_them(tmp_path, "train", "--resume", "run", "--json") as (leader, _):
        assert leader.communicate() == (out, "")  # it is finished
    (row,) = json.loads(out)["splits"]
    assert row["epochs_run"] == 120
    assert row["resumed_from_epoch"] >= 1


@pytest.mark.torture
@pytest.mark.parametrize("seed", [0, 1])
def test_killed_processes_lose_nothing(tmp_path, seed):
    options = ("--epochs", "150", "--set", "patience=0", "--checkpoint-every", "5")
    expected = ended(started(tmp_path, "quiet", 2, *options), tmp_path, "quiet")
    process = started(tmp_path, "killed", 2, *options, restarts=3)
    checkpoint = tmp_path / "killed" / "split-0" / "checkpoint.safetensors"
    chance, seen = random.Random(seed), 0.0
    for _ in range(2):
        while not checkpoint.exists() or checkpoint.stat().st_mtime <= seen:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(chance.random() * 0.2)
        seen = checkpoint.stat().st_mtime if checkpoint.exists() else seen
        os.kill(chance.choice(ranks_of(process)), signal.SIGKILL)
    row = ended(process, tmp_path, "killed")
    assert row["resumed_from_epoch"] >= 5
    assert row["test"] == expected["test"]
    found, quiet = weights(tmp_path, "killed"), weights(tmp_path, "quiet")
    assert all(torch.equal(found[name], quiet[name]) for name in quiet)


def ranks_of(process: subprocess.Popen) -> list[int]:
    """The processes that torchrun has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(child) for child in children.split()]
