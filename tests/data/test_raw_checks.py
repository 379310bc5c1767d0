"""Damage to single raw files, most of it on a graph small enough to be written here."""

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from argnn.data.raw_checks import vetted_files
from argnn.data.specs import DATASETS, EDGE_FILE, NODE_FILE, DatasetSpec
from argnn.errors import DataError

SPLIT = "tiny_split_0.6_0.2_0.npz"
NODES = "node_id\tfeature\tlabel\n0\t0,1\t1\n1\t1,0.5\t0\n2\t0,0\t1\n"
EDGES = "node_id\tnode_id\n0\t1\n2\t0\n"


def spec(loader: str = "webkb") -> DatasetSpec:
    return DatasetSpec(
        name="tiny",
        title="Tiny",
        source="made here",
        loader=loader,
        nodes=3,
        edges=2,
        stored_edges=2,
        features=2,
        classes=2,
        citation="none",
        splits=1,
        folder="tiny/raw",
        prefix="tiny",
    )


def masks(**changes) -> bytes:
    buffer = io.BytesIO()
    one = np.eye(3, dtype=np.uint8)
    fields = {"train_mask": one[0], "val_mask": one[1], "test_mask": one[2]} | changes
    np.savez(buffer, **{name: mask for name, mask in fields.items() if mask is not None})
    return buffer.getvalue()


def check(nodes: str = NODES, edges: str = EDGES, split: bytes | None = None, loader="webkb"):
    files = {NODE_FILE: nodes.encode(), EDGE_FILE: edges.encode(), SPLIT: split or masks()}
    return files, vetted_files(spec(loader), files, Path("raw"))


def test_good_files_are_handed_on_unchanged():
    files, vetted = check()
    assert vetted == files


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("node_id\tfeature", "id\tfeature", f"raw/{NODE_FILE}, line 1: expected the header"),
        ("0\t0,1\t1", "0\t0,1", "line 2: expected 3 fields between tabs .got 2."),
        ("0\t0,1\t1", "0\t0\t1", "line 2: expected 2 features .got 1."),
        ("1,0.5", "1,x", "line 3: 'x' is not a feature"),
        ("1,0.5", "1,nan", "line 3: a feature is not finite .got nan."),
        ("1\t1,0.5", "7\t1,0.5", "line 3: node id 7 is out of place"),
        ("1\t1,0.5", "q\t1,0.5", "line 3: 'q' is not a node id"),
        ("0,0\t1", "0,0\t2", "line 4: labels go from 0 to 1 .got 2."),
        ("2\t0,0\t1\n", "", "expected 3 lines of nodes .got 2."),
        ("0,0\t1\n", "0,0\t1", "line 4: the last line is not finished"),
        ("0,0", "0,ä", "line 4: not plain text"),
        (NODES, "", "the file is empty"),
    ],
)
def test_bad_node_file_is_named_with_its_line(old, new, message):
    assert old in NODES
    with pytest.raises(DataError, match=message):
        check(nodes=NODES.replace(old, new))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (EDGES.replace("0\t1", "0 1"), f"raw/{EDGE_FILE}, line 2: expected 2 fields"),
        (EDGES.replace("2\t0", "3\t0"), "line 3: node ids go from 0 to 2 .got 3."),
        (EDGES.replace("2\t0", "2\t-1"), "line 3: node ids go from 0 to 2 .got -1."),
        (EDGES.replace("2\t0", "2\tb"), "line 3: 'b' is not a node id"),
        (EDGES[:-1], "line 3: the last line is not finished"),
        ("1\t2\n", "line 1: expected the header"),
    ],
)
def test_bad_edge_file_is_named_with_its_line(edges, message):
    with pytest.raises(DataError, match=message):
        check(edges=edges)


ACTOR_NODES = "node_id\tfeature(feature_amount:1)\tlabel\n2\t0,1\t1\n0\t1\t0\n1\t0\t1\n"


def test_actor_lists_feature_ids_in_any_order_of_nodes():
    check(nodes=ACTOR_NODES, loader="actor")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1\t0\t1", "1\t2\t1", "line 4: feature ids go from 0 to 1 .got 2."),
        ("1\t0\t1", "0\t0\t1", "line 4: node id 0 is out of place"),
    ],
)
def test_bad_actor_file_is_named_with_its_line(old, new, message):
    with pytest.raises(DataError, match=message):
        check(nodes=ACTOR_NODES.replace(old, new), loader="actor")


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (b"garbage", f"raw/{SPLIT}: not a readable npz file"),
        (masks()[:100], "not a readable npz file"),
        (masks()[:-1], "not a readable npz file"),
        (masks(val_mask=None), "val_mask is missing"),
        (masks(val_mask=np.ones(2, dtype=bool)), "val_mask must hold 3 yes-or-no values"),
        (masks(val_mask=np.ones(3)), "val_mask must hold 3 yes-or-no values"),
        (masks(val_mask=np.array([0, 2, 0])), "val_mask holds values other than 0 and 1"),
        (masks(val_mask=np.array([1, 0, 0])), "node 0 is in two masks"),
        (masks(val_mask=np.array([{}] * 3)), "not a readable npz file"),
    ],
)
def test_bad_split_file_is_named(split, message):
    with pytest.raises(DataError, match=message):
        check(split=split)


def planetoid_files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "Cora/geom-gcn/raw").iterdir()}


def test_pickles_are_written_anew(benchmark_root):
    files = planetoid_files(benchmark_root)
    vetted = vetted_files(DATASETS["cora"], files, Path("raw"))
    assert vetted.keys() == files.keys()
    old = pickle.loads(files["ind.cora.y"], encoding="latin1")  # the known, harmless file
    np.testing.assert_array_equal(old, pickle.loads(vetted["ind.cora.y"]))
    assert vetted["ind.cora.y"] != files["ind.cora.y"]


ARRAY = pickle.dumps(np.eye(3), protocol=4)
NOT_FINITE = pickle.dumps(csr_matrix(([np.inf], ([5], [7])), shape=(140, 1433)), protocol=4)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ind.cora.x", NOT_FINITE, "ind.cora.x: a feature of row 5 is not finite .got inf."),
        ("ind.cora.x", b"\x80\x02garbage", "raw/ind.cora.x: not a readable pickle"),
        ("ind.cora.x", ARRAY, "expected a sparse matrix of 1433 columns"),
        ("ind.cora.ty", ARRAY, r"expected labels of shape \[1000, 7\]"),
        ("ind.cora.graph", ARRAY, "expected adjacency lists"),
        ("ind.cora.graph", pickle.dumps({0: [2708]}), "node 0: 2708 is not a node id"),
        ("ind.cora.test.index", b"2692\nabc\n", "line 2: 'abc' is not a node id"),
        ("ind.cora.test.index", b"2692\n5\n", "line 2: test ids go from 1708 to 2707 .got 5."),
        ("ind.cora.test.index", b"2692\n2692\n", "line 2: 2692 is also on line 1"),
        ("ind.cora.test.index", b"2692\n", "expected 1000 test ids .got 1."),
    ],
)
def test_bad_planetoid_file_is_named(benchmark_root, name, content, message):
    files = planetoid_files(benchmark_root) | {name: content}
    with pytest.raises(DataError, match=message):
        vetted_files(DATASETS["cora"], files, Path("raw"))
