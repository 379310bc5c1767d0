import pickle
import struct
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from argnn.data.safe_pickle import decode_pickle
from argnn.errors import DataError


class Hostile:
    """Its pickle creates a file when it is opened without care."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_array_comes_back():
    array = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(decode_pickle(pickle.dumps(array, protocol=4), "f"), array)


def test_sparse_matrix_comes_back():
    matrix = csr_matrix(np.eye(3))
    decoded = decode_pickle(pickle.dumps(matrix, protocol=4), "f")
    np.testing.assert_array_equal(decoded.toarray(), np.eye(3))


def test_adjacency_lists_come_back():
    graph = defaultdict(list, {0: [1], 1: [0]})
    assert decode_pickle(pickle.dumps(graph, protocol=2), "f") == {0: [1], 1: [0]}


def test_hostile_pickle_is_refused_before_it_runs(tmp_path):
    target = tmp_path / "created"
    content = pickle.dumps(Hostile(target))
    with pytest.raises(DataError, match=r"f: refused: the pickle asks for '.*"):
        decode_pickle(content, "f")
    assert not target.exists()
    pickle.loads(content)
    assert target.exists(), "the pickle was harmless: the test proves nothing"


@pytest.mark.parametrize("protocol", range(6))
def test_unknown_name_is_refused_in_every_protocol(protocol):
    content = pickle.dumps(OrderedDict(a=1), protocol=protocol)
    with pytest.raises(DataError, match=r"refused: the pickle asks for 'collections\.OrderedDict'"):
        decode_pickle(content, "f")


def test_dotted_name_does_not_reach_inside_a_known_one():
    content = b"\x80\x04\x8c\x0bcollections\x8c\x14defaultdict.__init__\x93."
    with pytest.raises(DataError, match="refused"):
        decode_pickle(content, "f")


def test_pickle_cannot_change_a_class():
    # GLOBAL csr_matrix, then BUILD with slot state {"todense": None} on the class itself.
    content = b"cscipy.sparse.csr\ncsr_matrix\n(N}S'todense'\nNstb."
    before = csr_matrix.todense
    with pytest.raises(DataError, match="todense"):
        decode_pickle(content, "f")
    assert csr_matrix.todense is before


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x80\x02.", b"\x80\x02N."])
def test_damaged_pickle_names_the_file(content):
    with pytest.raises(DataError, match="^some/file: not a readable pickle"):
        decode_pickle(content, "some/file")


def test_every_truncation_of_a_pickle_is_an_error():
    content = pickle.dumps(csr_matrix(np.eye(2)), protocol=4)
    for length in range(len(content)):
        with pytest.raises(DataError):
            decode_pickle(content[:length], "f")


def test_object_array_is_refused():
    content = pickle.dumps(np.array([{}, {}], dtype=object), protocol=4)
    with pytest.raises(DataError, match="'O8'"):
        decode_pickle(content, "f")


def test_matrix_with_foreign_index_is_refused():
    matrix = csr_matrix(np.eye(3))
    matrix.indices[1] = 10**6
    with pytest.raises(DataError, match="not a readable pickle"):
        decode_pickle(pickle.dumps(matrix, protocol=4), "f")


def test_size_of_an_array_is_not_taken_from_the_file():
    content = pickle.dumps(np.arange(3), protocol=4)
    huge = content.replace(b"K\x03\x85", b"J" + struct.pack("<i", 2**31 - 1) + b"\x85")
    assert huge != content
    with pytest.raises(DataError, match="not a readable pickle"):
        decode_pickle(huge, "f")


@pytest.mark.parametrize("graph", [{"0": [1]}, {0: (1,)}, {0: ["1"]}])
def test_adjacency_of_other_types_is_refused(graph):
    with pytest.raises(DataError, match="not a readable pickle"):
        decode_pickle(pickle.dumps(graph, protocol=2), "f")
