"""The header of a graph store: what its files hold, and what is said about the graph."""

import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from argnn.checked import Count, Text, checked
from argnn.data.schema import check_schema
from argnn.errors import DataError, RunError, error_prefix
from argnn.files import digest_matches, json_bytes, read_json, with_digest

#: Increased when the meaning of a file changes; a store of another version is refused.
STORE_VERSION = 1
HEADER = "store.json"
#: Ids of nodes that are not all integers, one JSON value per line.
ID_TEXTS = "node_ids.json"
_LARGEST_HEADER = 64 << 20

#: Types and shape of every array: ``N`` nodes, ``E`` edges, ``N+1``; others are free.
ARRAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "into_start": (("int64",), ("N+1",)),
    "into_other": (("int32", "int64"), ("E",)),
    "into_weight": (("float32",), ("E",)),
    "out_start": (("int64",), ("N+1",)),
    "out_other": (("int32", "int64"), ("E",)),
    "out_weight": (("float32",), ("E",)),
    "edge_time": (("float64",), ("E",)),
    "x": (("float32",), ("N", "F")),
    "y": (("int64",), ("N",)),
    "train_mask": (("bool",), ("N", "S")),
    "val_mask": (("bool",), ("N", "S")),
    "test_mask": (("bool",), ("N", "S")),
    "targets": (("float32",), ("N", "T")),
    "geometry": (("int64",), ("N",)),
    "region": (("int64",), ("N",)),
    "node_ids": (("int64",), ("N",)),
}
REQUIRED = ("into_start", "into_other", "x", "y", "train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class FileFacts:
    """Size and SHA-256 sum of one file; of an array also its type and shape."""

    size: Count
    sha256: Text
    dtype: str | None = None
    shape: tuple[Count, ...] = ()


@dataclass(frozen=True)
class GraphFacts:
    """What is said about a graph; the fields are those that :func:`argnn.data.load` gives."""

    name: str
    class_names: list[str]
    feature_names: list[str]
    edge_rule: str
    feature_rule: str
    split_rule: str
    notes: list[str]
    schema: dict[str, Any]
    target_names: list[str] | None = None
    target_kind: Literal["regression", "multilabel"] | None = None
    geometry_names: list[str] | None = None


@dataclass(frozen=True)
class Header:
    """Everything in the file ``store.json`` besides its own checksum.

    Attributes:
        version: Of the format.
        nodes: Number of nodes.
        edges: Number of edges; those of an undirected graph count in both directions.
        content: SHA-256 sum of all tensors of the graph, as of a graph that was not stored.
        files: By name of the file.
        graph: What is said about the graph.
    """

    version: int
    nodes: Count
    edges: Count
    content: Text
    files: dict[str, FileFacts]
    graph: GraphFacts

    def to_json(self) -> bytes:
        """The content of the file."""
        return json_bytes(with_digest(asdict(self)))


def is_store(path: Path) -> bool:
    """Whether a folder is, or was, a graph store."""
    return any(os.path.lexists(path / name) for name in (HEADER, file_of("into_start")))


def file_of(array: str) -> str:
    """Name of the file of an array."""
    return f"{array}.npy"


def read_header(folder: Path) -> Header:
    """The header of a store, after a check of every field."""
    path = folder / HEADER
    if plain_size(path) > _LARGEST_HEADER:
        raise DataError(f"{path}: larger than {_LARGEST_HEADER >> 20} MiB, so no header of a store")
    try:
        found = read_json(path, ("version",), finite=True)
    except RunError as error:
        raise DataError(str(error)) from error
    if found["version"] != STORE_VERSION:
        raise DataError(
            f"{path}: version must be {STORE_VERSION} (got {str(found['version'])[:20]}); "
            "convert the source again"
        )
    if not digest_matches(found):
        raise DataError(f"{path}: damaged, its content does not match its checksum")
    del found["digest"]
    with error_prefix(f"{path}:", DataError):
        header = checked(found, Header)
        check_schema(header.graph.schema)
        _check_files(header)
    return header


def plain_size(path: Path) -> int:
    """Size of a file that is neither missing nor a link, a folder or a device."""
    try:
        found = path.lstat()
    except FileNotFoundError as error:
        raise DataError(f"{path}: is missing") from error
    if stat.S_ISLNK(found.st_mode):
        raise DataError(f"{path}: is a symbolic link, which a store may not hold")
    if not stat.S_ISREG(found.st_mode):
        raise DataError(f"{path}: is not a plain file")
    return found.st_size


def _check_files(header: Header) -> None:
    """Raise unless all arrays are known, and their types and shapes fit each other."""
    arrays = {file_of(name): name for name in ARRAYS}
    missing = [name for name in REQUIRED if file_of(name) not in header.files]
    if missing:
        raise DataError(f"has no array {missing[0]}")
    sizes = {"N": header.nodes, "E": header.edges, "N+1": header.nodes + 1}
    for file, facts in header.files.items():
        if file == ID_TEXTS:
            continue
        if file not in arrays:
            raise DataError(f"unknown file {file[:40]!r}")
        dtypes, shape = ARRAYS[arrays[file]]
        if facts.dtype not in dtypes:
            raise DataError(f"{file} must be of type {' or '.join(dtypes)} (got {facts.dtype})")
        fits = len(facts.shape) == len(shape) and all(
            sizes.setdefault(letter, size) == size
            for letter, size in zip(shape, facts.shape, strict=True)
        )
        if not fits:
            raise DataError(f"{file} has shape {list(facts.shape)}, which does not fit the others")
    graph, files = header.graph, header.files
    if len(graph.feature_names) != sizes["F"] or graph.schema["num_features"] != sizes["F"]:
        raise DataError("the names of the features do not fit their number")
    if (file_of("targets") in files) != (graph.target_kind is not None):
        raise DataError("targets and target_kind do not belong together")
    if graph.target_names is not None and len(graph.target_names) != sizes.get("T"):
        raise DataError("the names of the targets do not fit their number")
    if (file_of("out_start") in files) != (file_of("out_other") in files):
        raise DataError("out_start and out_other belong together")
