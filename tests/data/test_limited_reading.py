"""Files of strangers are read in a child process: what it gives, and what it may not take."""

import faulthandler
import gc
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from adversarial.crafted import CRAFTED
from argnn.data import limited_reading, load
from argnn.data.import_graph import ImportedGraph
from argnn.data.import_options import NoFeaturesError
from argnn.data.limited_reading import allowed_memory, read_limited
from argnn.errors import ConfigError, DataError
from forked import code, run_forked

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs the limits of Linux"
)
FILES = [
    name for name, case in CRAFTED.items() if name.split(":")[0] in "npz parquet graphml csv edges"
]

INSPECT = """
import json, resource, sys
from pathlib import Path
from argnn.data import load
from argnn.errors import ArgnnError

held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 2**30 + 2**28,) * 2)
for path in json.loads(sys.argv[1]):
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 61
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    try:
        load(path)
        print(json.dumps("read"), flush=True)
    except ArgnnError as error:
        print(json.dumps(str(error)), flush=True)
"""


#: Takes a third of the time of all; other columns of Parquet that fill the memory stay.
LONGEST = "parquet: many words"


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        [name for name in FILES if name != LONGEST],
        pytest.param([LONGEST], marks=pytest.mark.torture),
    ],
    ids=["most", "longest"],
)
def test_crafted_files_are_refused_in_little_memory_and_time(tmp_path, monkeypatch, names):
    """The operating system gives 1.25 GiB more than the imports took, and a minute for each."""
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # CUDA reserves all addresses that it may use
    paths = []
    for number, name in enumerate(names):
        folder = tmp_path / str(number)
        folder.mkdir()
        paths.append(CRAFTED[name](folder)[1])
    done, out, errors = run_forked(code, INSPECT, json.dumps(paths), cwd=tmp_path)
    answers = [json.loads(line) for line in out.splitlines()]
    assert len(answers) == len(paths), (names[len(answers)], done, errors[-1000:])
    for path, answer in zip(paths, answers, strict=True):
        assert answer.startswith(path), answer
        assert len(answer) < 3000
        assert "\n" not in answer


def read(size: int = 1, *, seconds: float = 0) -> ImportedGraph:
    """A reader that takes memory and time."""
    held = bytearray(size)
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return ImportedGraph(limited_reading.Data(x=torch.ones(1, 1)), [len(held)], ["a"], {"a": [1.5]})


def test_what_a_child_gives(tmp_path):
    imported = read_limited(tmp_path, lambda: read(7))
    assert (imported.node_ids, imported.schema, imported.notes) == ([7], {"a": [1.5]}, [])
    assert torch.equal(imported.data.x, torch.ones(1, 1))


def test_memory_of_a_child_is_limited(tmp_path):
    with pytest.raises(DataError, match="takes more memory than a file of its size may; set ARGNN"):
        read_limited(tmp_path, lambda: read(5 << 30))


def test_more_memory_can_be_allowed(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGNN_READ_GIB", "0.1")
    with pytest.raises(DataError, match="more memory"):
        read_limited(tmp_path, lambda: read(8 << 30))  # more than this process has set free
    monkeypatch.setenv("ARGNN_READ_GIB", "0.5")
    assert read_limited(tmp_path, lambda: read(300 << 20)).node_ids == [300 << 20]
    for wrong in ("many", "inf", "nan", "-1"):
        monkeypatch.setenv("ARGNN_READ_GIB", wrong)
        with pytest.raises(ConfigError, match="ARGNN_READ_GIB must be a number of GiB"):
            read_limited(tmp_path, read)


def test_time_of_a_child_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(limited_reading, "_SECONDS_PER_GIB", 0)
    with pytest.raises(DataError, match="takes more than 1 seconds to read"):
        read_limited(tmp_path, lambda: read(seconds=60))


def test_allowed_memory_grows_with_what_is_on_the_disk(tmp_path):
    (tmp_path / "a").write_bytes(bytes(1_000_000))
    with (tmp_path / "b").open("wb") as file:
        file.truncate(1 << 40)  # takes no space
    assert 2**30 + 5e7 <= allowed_memory(tmp_path) < 2**30 + 6e7
    assert allowed_memory(tmp_path / "nowhere") == 2**30


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGKILL])
def test_child_that_dies_is_one_line(tmp_path, number, capfd):
    with pytest.raises(DataError, match=f"could not be read .exit code -{number}.") as refused:
        read_limited(tmp_path, lambda: os.kill(os.getpid(), number))
    assert "\n" not in str(refused.value)
    assert capfd.readouterr() == ("", "")


def test_stacks_of_a_child_that_dies_are_not_printed(tmp_path):
    """pytest gives its fault handler a stream of its own, which ``capfd`` does not see."""
    assert faulthandler.is_enabled()
    assert read_limited(tmp_path, lambda: read(faulthandler.is_enabled())).node_ids == [0]


def test_child_leaves_the_garbage_of_its_parent(tmp_path):
    """Locks of other threads, which are not copied, would never be given back to it."""
    parent = os.getpid()

    class Locked:
        def __init__(self):
            self.itself = self

        def __del__(self):
            if os.getpid() != parent:
                os.abort()

    def collecting():
        gc.collect()
        return read()

    gc.disable()
    try:
        Locked()
        assert read_limited(tmp_path, collecting).node_ids == read().node_ids
    finally:
        gc.enable()


def test_mistake_of_ours_is_shown_whole(tmp_path):
    def fail():
        raise KeyError("a mistake")

    with pytest.raises(RuntimeError, match="Traceback(.|\n)*KeyError: 'a mistake'"):
        read_limited(tmp_path, fail)


@pytest.mark.parametrize("kind", [DataError, ConfigError, NoFeaturesError])
def test_errors_keep_their_kind_and_words(tmp_path, kind):
    def fail():
        raise kind("words")

    with pytest.raises(kind) as refused:
        read_limited(tmp_path, fail)
    assert type(refused.value) is kind
    assert str(refused.value) == str(kind("words"))


def test_no_child_is_left(tmp_path, monkeypatch):
    children = []

    def interrupted(kind, child, options):
        monkeypatch.undo()
        children.append(child)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "waitid", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_limited(tmp_path, lambda: read(seconds=600))
    with pytest.raises(ChildProcessError):
        os.waitpid(children[0], os.WNOHANG)


def test_limits_of_this_process_stay(small_npz):
    before = [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]
    load(small_npz())
    assert before == [
        resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)
    ]


def test_words_that_would_become_too_much_are_refused(tmp_path, monkeypatch):
    """30,000 nodes with 5 times 100 words: 60 MB as features, but only little in the child."""
    rows = [",".join([str(row), *[f"w{row % 100}"] * 5]) for row in range(30_000)]
    Path(tmp_path / "nodes.csv").write_text("id,a,b,c,d,e\n" + "\n".join(rows))
    Path(tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    assert load(tmp_path).x.sum() == 5 * 30_000
    monkeypatch.setattr(limited_reading, "allowed_memory", lambda path: 59_000_000)
    monkeypatch.setattr(limited_reading, "_lower", lambda kind, limit: None)
    with pytest.raises(DataError, match="takes more memory"):
        load(tmp_path)


def test_small_integers_are_features_without_a_detour(tmp_path):
    path = tmp_path / "graph.npz"
    x = np.arange(6, dtype=np.int8).reshape(3, 2)
    np.savez(path, x=x, edge_index=np.array([[0], [1]]))
    assert torch.equal(load(path).x, torch.from_numpy(x).float())
