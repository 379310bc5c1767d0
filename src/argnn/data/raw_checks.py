"""Check the raw files of the benchmark graphs before PyG reads them.

PyG's readers trust their files: they unpickle them, skip an unfinished last line in silence, and
ignore the node ids of most graphs. Every error here names the file and, in text, the line.
"""

import io
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from argnn.data.safe_pickle import decode_pickle
from argnn.data.specs import EDGE_FILE, NODE_FILE, DatasetSpec
from argnn.data.splits import MASK_NAMES
from argnn.errors import DataError

RawFiles = dict[str, bytes]
T = TypeVar("T")


def vetted_files(spec: DatasetSpec, files: RawFiles, folder: Path) -> RawFiles:
    """Check all raw files of a data set and return those that PyG may read.

    Pickles are replaced by fresh ones of what was decoded from them: PyG opens them with the plain
    unpickler, and so meets nothing that a stranger wrote.

    Args:
        spec: The data set.
        files: Content of each raw file.
        folder: Where the files are, for error messages.
    """
    vetted = dict(files)
    if spec.loader == "planetoid":
        vetted |= _vetted_planetoid(spec, files, folder)
    else:
        _check_node_file(spec, files[NODE_FILE], folder / NODE_FILE)
        _check_edge_file(spec, files[EDGE_FILE], folder / EDGE_FILE)
    for name, content in files.items():
        if name.endswith(".npz"):
            _check_split_file(content, spec.nodes, folder / name)
    return vetted


def _vetted_planetoid(spec: DatasetSpec, files: RawFiles, folder: Path) -> RawFiles:
    def path(part: str) -> Path:
        return folder / f"ind.{spec.prefix}.{part}"

    def content(part: str) -> bytes:
        return files[path(part).name]

    decoded: dict[str, Any] = {}
    for x, y in (("x", "y"), ("tx", "ty"), ("allx", "ally")):
        decoded[x] = _matrix(content(x), spec.features, path(x))
        decoded[y] = _one_hot(content(y), (decoded[x].shape[0], spec.classes), path(y))
    decoded["graph"] = _neighbors(content("graph"), spec.nodes, path("graph"))
    first, count = decoded["allx"].shape[0], decoded["tx"].shape[0]
    _check_test_index(content("test.index"), range(first, spec.nodes), count, path("test.index"))
    return {path(part).name: pickle.dumps(value, protocol=4) for part, value in decoded.items()}


def _matrix(content: bytes, columns: int, path: Path) -> csr_matrix:
    matrix = decode_pickle(content, str(path))
    if not isinstance(matrix, csr_matrix) or matrix.shape[1] != columns:
        raise DataError(f"{path}: expected a sparse matrix of {columns} columns")
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise DataError(f"{path}: a feature of row {row} is not finite (got {matrix.data[bad[0]]})")
    return matrix


def _one_hot(content: bytes, shape: tuple[int, int], path: Path) -> NDArray[Any]:
    labels = decode_pickle(content, str(path))
    if not isinstance(labels, np.ndarray) or labels.shape != shape:
        raise DataError(f"{path}: expected labels of shape {list(shape)}")
    return labels


def _neighbors(content: bytes, num_nodes: int, path: Path) -> dict[int, list[int]]:
    graph = decode_pickle(content, str(path))
    if not isinstance(graph, dict):
        raise DataError(f"{path}: expected adjacency lists")
    for node, neighbors in graph.items():
        for other in (node, *neighbors):
            if not 0 <= other < num_nodes:
                raise DataError(
                    f"{path}: node {node}: {other} is not a node id "
                    f"(they go from 0 to {num_nodes - 1})"
                )
    return graph


def _check_test_index(content: bytes, allowed: range, count: int, path: Path) -> None:
    seen: dict[int, int] = {}
    for number, line in enumerate(_lines(content, path), start=1):
        node = _parsed(int, line, path, number, "a node id")
        if node not in allowed:
            raise DataError(
                f"{path}, line {number}: test ids go from {allowed.start} to {allowed.stop - 1} "
                f"(got {node})"
            )
        if node in seen:
            raise DataError(f"{path}, line {number}: {node} is also on line {seen[node]}")
        seen[node] = number
    if len(seen) != count:
        raise DataError(f"{path}: expected {count} test ids (got {len(seen)})")


def _check_node_file(spec: DatasetSpec, content: bytes, path: Path) -> None:
    header, *lines = _lines(content, path)
    if not (header.startswith("node_id\tfeature") and header.endswith("\tlabel")):
        raise DataError(f"{path}, line 1: expected the header 'node_id, feature, label'")
    if len(lines) != spec.nodes:
        raise DataError(f"{path}: expected {spec.nodes} lines of nodes (got {len(lines)})")
    expected = range(spec.nodes)
    seen: set[int] = set()
    for number, line in enumerate(lines, start=2):
        node, features, label = _fields(line, 3, path, number)
        identity = _parsed(int, node, path, number, "a node id")
        # PyG takes the line number for the node id, except for Actor, which is not sorted.
        allowed = expected if spec.loader == "actor" else expected[number - 2 : number - 1]
        if identity in seen or identity not in allowed:
            raise DataError(f"{path}, line {number}: node id {identity} is out of place")
        seen.add(identity)
        if _parsed(int, label, path, number, "a label") not in range(spec.classes):
            raise DataError(
                f"{path}, line {number}: labels go from 0 to {spec.classes - 1} (got {label})"
            )
        _check_features(spec, features, path, number)


def _check_features(spec: DatasetSpec, text: str, path: Path, number: int) -> None:
    if spec.loader == "actor":
        _check_feature_ids(text, spec.features, path, number)
        return
    # Nearly every line is zeros and ones; comparing whole strings spares ten million conversions.
    if text.replace("0", "1") == ",".join("1" * spec.features):
        return
    fields = text.split(",")
    if len(fields) != spec.features:
        raise DataError(
            f"{path}, line {number}: expected {spec.features} features (got {len(fields)})"
        )
    for field in fields:
        if not math.isfinite(_parsed(float, field, path, number, "a feature")):
            raise DataError(f"{path}, line {number}: a feature is not finite (got {field})")


def _check_feature_ids(text: str, count: int, path: Path, number: int) -> None:
    for field in text.split(","):
        if _parsed(int, field, path, number, "a feature id") not in range(count):
            raise DataError(
                f"{path}, line {number}: feature ids go from 0 to {count - 1} (got {field})"
            )


def _check_edge_file(spec: DatasetSpec, content: bytes, path: Path) -> None:
    header, *lines = _lines(content, path)
    if header != "node_id\tnode_id":
        raise DataError(f"{path}, line 1: expected the header 'node_id, node_id'")
    for number, line in enumerate(lines, start=2):
        for field in _fields(line, 2, path, number):
            node = _parsed(int, field, path, number, "a node id")
            if not 0 <= node < spec.nodes:
                raise DataError(
                    f"{path}, line {number}: node ids go from 0 to {spec.nodes - 1} (got {node})"
                )


def _lines(content: bytes, path: Path) -> list[str]:
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not plain text") from error
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1]:
        raise DataError(f"{path}, line {len(lines)}: the last line is not finished; is it cut off?")
    if len(lines) < 2:
        raise DataError(f"{path}: the file is empty")
    return lines[:-1]


def _fields(line: str, count: int, path: Path, number: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) != count:
        raise DataError(
            f"{path}, line {number}: expected {count} fields between tabs (got {len(fields)})"
        )
    return fields


def _parsed(kind: Callable[[str], T], text: str, path: Path, number: int, what: str) -> T:
    try:
        return kind(text)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: '{text[:20]}' is not {what}") from error


def _check_split_file(content: bytes, num_nodes: int, path: Path) -> None:
    used = np.zeros(num_nodes, dtype=int)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            masks = {name: archive[name] for name in MASK_NAMES if name in archive}
    except Exception as error:  # zip, zlib and numpy each have their own way to fail
        raise DataError(f"{path}: not a readable npz file") from error
    for name in MASK_NAMES:
        if name not in masks:
            raise DataError(f"{path}: {name} is missing")
        mask = masks[name]
        if mask.shape != (num_nodes,) or mask.dtype.kind not in "biu":
            raise DataError(
                f"{path}: {name} must hold {num_nodes} yes-or-no values "
                f"(got shape {list(mask.shape)}, type {mask.dtype})"
            )
        if not np.isin(mask, (0, 1)).all():
            raise DataError(f"{path}: {name} holds values other than 0 and 1")
        used += mask
    if used.max() > 1:
        raise DataError(f"{path}: node {int(used.argmax())} is in two masks")
