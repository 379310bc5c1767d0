"""Bad graph files: one line, exit code 2, in seconds, in little memory, and nothing is touched."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argnn.data.inspect import inspect_graph
from argnn.errors import ArgnnError

from .bad_files import CORPUS, PAIR, SPLIT, graphml, npz


def state(root: Path) -> dict[str, tuple[int, int]]:
    """Sizes and times of everything below a folder; contents may be a TiB of zeros."""
    found = {}
    for path in root.rglob("*"):
        if root / "cache" not in (path, *path.parents):
            info = path.lstat()
            found[str(path)] = (info.st_size, info.st_mtime_ns)
    return found


@pytest.mark.parametrize("name", CORPUS)
def test_bad_file_is_refused(argnn, tmp_path, name):
    build, message = CORPUS[name]
    if name.startswith("parquet"):
        pytest.importorskip("pyarrow")
    path = build(tmp_path)
    before = state(tmp_path)
    for command in (["inspect", path], ["train", path, "--model=gcn", "--out=run"]):
        done = argnn(*command)
        assert (done.code, done.out) == (2, ""), done
        (line,) = done.err.splitlines()
        assert line.startswith("argnn: error: ")
        assert message in line
        assert line.isprintable()
    assert state(tmp_path) == before


def test_corpus_is_large_enough():
    assert len(CORPUS) >= 60


@pytest.mark.slow
def test_refusing_takes_little_time_and_memory(limited, tmp_path):
    paths = []
    for number, (build, _) in enumerate(CORPUS.values()):
        root = tmp_path / str(number)
        root.mkdir()
        paths.append(build(root))
    assert limited([["inspect", path] for path in paths]) == [2] * len(paths)
    assert not Path("hacked").exists()


@pytest.mark.parametrize("target", ["nowhere", "file", "full"])
def test_linked_output_is_refused(argnn, small_npz, tmp_path, target):
    path = small_npz()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("mine")
    Path("out").symlink_to(tmp_path / target)
    before = state(tmp_path)
    done = argnn("train", path, "--model=gcn", "--epochs=1", "--out=out")
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert state(tmp_path) == before


@pytest.mark.parametrize("path", ["/dev/zero", "/", "a\0.npz", "x" * 5000 + ".csv", "nowhere.npz"])
def test_path_that_is_no_graph(argnn, path):
    done = argnn("inspect", path)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1


# Fuzzing: a mutated file is read, or refused in one line; nothing else may happen.

fuzzing = settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
mutations = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 40),
        st.one_of(
            st.binary(max_size=12),
            st.sampled_from([b"\n", b",", b'"', b"\0", b"<", b"&x;", b"-1", b"1e999", b"nan", b""]),
        ),
    ),
    min_size=1,
    max_size=6,
)


def mutated(content: bytes, changes) -> bytes:
    for place, length, inserted in changes:
        start = int(place * len(content))
        content = content[:start] + inserted + content[start + length :]
    return content


def read_or_refused(path: Path) -> None:
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        # Hundreds of child processes would take minutes; the reader is the same.
        patch.setattr("argnn.data.loading.read_limited", lambda path, read: read())
        try:
            json.dumps(inspect_graph(str(path)), allow_nan=False)
        except ArgnnError as error:
            lines = error.lines
    assert not any("\n" in line for line in lines)


@fuzzing
@given(changes=mutations)
def test_mutated_node_table(tmp_path, changes):
    (tmp_path / "edges.csv").write_text("source,target,weight\na,b,1\nb,c,2\n")
    (tmp_path / "nodes.csv").write_bytes(mutated(SPLIT.encode(), changes))
    read_or_refused(tmp_path)


@fuzzing
@given(changes=mutations)
def test_mutated_edge_table(tmp_path, changes):
    (tmp_path / "edges.csv").write_bytes(mutated(b"source,target,weight\na,b,1\nb,c,2\n", changes))
    (tmp_path / "nodes.csv").write_text(SPLIT)
    read_or_refused(tmp_path)


CELLS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["", "a", "b", "1", "-1", "007", "1e400", "nan", "inf", "true", "train", "1_0"]
    ),
    st.integers().map(str),
    st.floats().map(str),
)


@fuzzing
@given(
    header=st.lists(
        st.sampled_from(["id", "label", "y", "split", "train_mask", "val_mask", "test_mask", "x"]),
        min_size=1,
        max_size=8,
        unique=True,
    ),
    rows=st.lists(st.lists(CELLS, min_size=8, max_size=8), max_size=6),
)
def test_table_of_odd_cells(tmp_path, header, rows):
    import csv

    with (tmp_path / "nodes.csv").open("w", newline="", encoding="utf-8", errors="ignore") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(row[: len(header)] for row in rows)
    (tmp_path / "edges.csv").write_text("source,target\n")
    read_or_refused(tmp_path)


@fuzzing
@given(changes=mutations)
def test_mutated_edge_list(tmp_path, changes):
    path = tmp_path / "g.txt"
    path.write_bytes(mutated(b"# comment\n0\t1\n1\t2\n10\t4\n4\t0\n", changes))
    read_or_refused(path)


@fuzzing
@given(changes=mutations)
def test_mutated_npz(tmp_path, changes):
    path = npz(node_ids=np.arange(10), edge_weight=np.ones(3))(tmp_path)
    path.write_bytes(mutated(path.read_bytes(), changes))
    read_or_refused(path)


@fuzzing
@given(flips=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_in_npz(tmp_path, flips):
    path = npz()(tmp_path)
    content = bytearray(path.read_bytes())
    for place, flip in flips:
        content[int(place * (len(content) - 1))] ^= flip
    path.write_bytes(content)
    read_or_refused(path)


@fuzzing
@given(changes=mutations)
def test_mutated_graphml(tmp_path, changes):
    body = PAIR + '<edge source="a" target="b"/>'
    label = '<key id="l" for="node" attr.name="label" attr.type="string"><default>u</default></key>'
    path = graphml(body, keys=label)(tmp_path)
    path.write_bytes(mutated(path.read_bytes(), changes))
    read_or_refused(path)
