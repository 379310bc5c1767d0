"""``argnn convert``, and what other commands do with a store."""

import json
import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from argnn.data import load, open_store
from argnn.data.graph_store.converting import convert
from argnn.errors import RunError
from forked import Forked, code, command, run_forked


def test_train_predict_and_inspect_take_a_store_like_its_source(argnn, small_npz, tmp_path):
    source = small_npz()
    done = argnn("convert", source, "store")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].startswith("small: 90 nodes, ")
    hashes = {}
    for data in (source, "store"):
        run = tmp_path / f"run of {data.stem if data == source else data}"
        training = ("--model=gcn", "--epochs=3", "--split=all", "--workers=1", "--json")
        assert argnn("train", data, *training, f"--out={run}").code == 0
        graph = json.loads((run / "config.json").read_text())["run"]["graph"]
        model = (run / "split-0" / "model" / "model.safetensors").read_bytes()
        done = argnn("predict", run, "--out=p.csv", "--force")
        assert done.code == 0, done.err
        hashes[data] = [graph, model, (tmp_path / "here" / "p.csv").read_text()]
    assert hashes[source] == hashes["store"]
    reports = [json.loads(argnn("inspect", data, "--json").out) for data in (source, "store")]
    for report in reports:
        del report["data"]
    assert reports[0] == reports[1]


def test_report_for_a_machine(argnn):
    report = json.loads(argnn("convert", "mixed", "store", "--json").out)
    assert (report["nodes"], report["edges"], report["directed"]) == (1648, 11990, False)
    assert report["content"] == open_store("store").header.content


def test_damaged_store_is_one_line(argnn, refused, tmp_path):
    argnn("convert", "mixed", "store")
    path = tmp_path / "here" / "store" / "x.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"?")
    refused("inspect", "store", message="store/x.npy: damaged, its content does not match")
    path.write_bytes(content[:-1])
    for work in ("inspect", "train"):
        refused(work, "store", message="store/x.npy: damaged, has 105599 bytes, but must")
    refused("convert", "mixed", "store", message="store: is there already; --force replaces it")
    refused("convert", "nothing.txt", "new", message="nothing.txt: no such file")
    refused("convert", "mixed", "store/x.npy", message="x.npy: is there already, and is no folder")


def test_store_with_directions_says_how_to_read_it(argnn, refused):
    argnn("convert", "mixed", "store", "--directed")
    refused("train", "store", message="was converted with --directed, so say --directed here")
    assert argnn("inspect", "store", "--directed").code == 0


#: A process that may write only files of 50 kB, and reads all tables in parts.
FULL = """
import resource
from argnn.__main__ import main
from argnn.data.graph_store import converting
converting.STREAMED_FROM = 0
import sys
sys.dont_write_bytecode = True  # Python would keep what was cut off of a module, for later runs
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
sys.argv = ["argnn", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("convert mixed store", "x.npy"),
        ("convert edges.txt store --features=degree", "edges.raw"),
        ("generate store --nodes=2e4 --edges=3e4 --features=2", "into_other.npy"),
        ("generate store --nodes=1e5 --edges=1e6", "round-0/edges-0.given"),
    ],
)
def test_no_space_is_one_line_and_leaves_nothing(tmp_path, cache, words, file):
    (tmp_path / "edges.txt").write_text("1\t2\n" * 5000)
    status, out, errors = run_forked(code, FULL, *words.split(), cwd=tmp_path)
    assert (status, out) == (2, "")
    assert errors == f"argnn: error: .store.writing/{file}: file too large\n"
    assert {path.name for path in tmp_path.iterdir() if path != cache} == {"edges.txt"}


def test_of_two_conversions_into_one_folder_one_is_refused(tmp_path, cache):
    """The second begins while the first writes, and after it."""
    seen = []

    def second(done, total, text):
        if text == "checksums" and not seen:
            seen.append(run_forked(command, "convert", "digits", "store", cwd=tmp_path))

    convert("mixed", tmp_path / "store", tell=second)
    ((status, _, errors),) = seen
    assert status == 2
    assert errors == (
        "argnn: error: .store.writing: another process is using it; wait until it ends\n"
    )
    status, _, errors = run_forked(command, "convert", "digits", "store", cwd=tmp_path)
    assert (status, errors) == (2, "argnn: error: store: is there already; --force replaces it\n")
    assert load(tmp_path / "store").name == "mixed"


def test_conversions_at_the_same_moment(tmp_path, cache):
    errors = []

    def work(name):
        try:
            convert(name, tmp_path / "store")
        except RunError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("mixed", "digits") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 5
    assert load(tmp_path / "store").name in ("mixed", "digits")
    assert [path.name for path in tmp_path.iterdir() if path != cache] == ["store"]


@pytest.mark.torture
def test_kill_at_any_time_leaves_the_old_store_or_the_new_one(tmp_path, cache):
    store = tmp_path / "store"
    convert("digits", store)
    for step in range(30):
        process = Forked(command, "convert", "mixed", "store", "--force", cwd=tmp_path)
        time.sleep(0.01 * step)
        with suppress(ProcessLookupError):  # it was faster
            os.kill(process.pid, signal.SIGKILL)
        process.end()
        if store.exists():
            assert load(store).name in ("mixed", "digits")
    convert("digits", store, force=True)
    assert [path.name for path in tmp_path.iterdir() if path != cache] == ["store"]


def test_generated_graph_is_trained_on(argnn, refused, tmp_path):
    asked = ("--nodes=1e3", "--edges", "5e3", "--features=8", "--classes=3")
    done = argnn("generate", "store", *asked)
    assert done.code == 0, done.err
    assert done.out.startswith("store: 1000 nodes, 5000 edges, 8 features, 3 classes\n")
    done = argnn("train", "store", "--model=gcn", "--epochs=30", "--json", "--out=run")
    assert json.loads(done.out)["splits"][0]["test"]["accuracy"] > 0.8  # chance is 0.33
    refused("generate", "store", *asked, message="store: is there already; --force replaces it")
    refused("generate", "s", "--nodes=many", "--edges=1", message="--nodes must be a whole number")
    refused("generate", "s", "--nodes=1e3", "--edges=1e9", message="edges must be from 0 to 124875")
