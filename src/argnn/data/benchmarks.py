"""The benchmark graphs: raw files in, PyG's own processing, our store out."""

import contextlib
import hashlib
import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.datasets import Actor, Planetoid, WebKB, WikipediaNetwork

from argnn.data.cache import store_graph, stored_graph, writable_folder
from argnn.data.checksums import SHA256
from argnn.data.downloads import download
from argnn.data.specs import DatasetSpec, check_counts
from argnn.errors import DataError
from argnn.folders import cache_root

RawFiles = dict[str, bytes]

#: No known file is larger, and no more of any file is read.
_LARGEST = 64 << 20


def load_benchmark(spec: DatasetSpec, root: str | Path | None = None) -> Data:
    """The graph as PyG reads it: edges as stored, features as stored, ten splits.

    Nothing is ever written beside the raw files.

    Args:
        spec: One of the benchmark data sets.
        root: Data root; else ``$ARGNN_DATA``, else a folder of the cache, which is filled from the
            network if the data set is not there.
    """
    folder = _raw_folder(spec, root)
    files = _read(spec, folder)
    path = cache_root() / "processed" / f"{spec.name}-{_fingerprint(spec)}.safetensors"
    graph = stored_graph(path)
    if graph is None:
        graph = _processed(spec, files)
        check_counts(spec, graph)
        store_graph(path, graph)
    return graph


def _raw_folder(spec: DatasetSpec, root: str | Path | None) -> Path:
    chosen = root or os.environ.get("ARGNN_DATA")
    if chosen:
        return Path(chosen).expanduser() / spec.folder
    folder = cache_root() / "raw" / spec.folder
    if not folder.is_dir():
        _download(spec, folder)
    return folder


def _read(spec: DatasetSpec, folder: Path) -> RawFiles:
    """The content of every raw file, which must be the one that is known, bit by bit.

    PyG unpickles some of them, which is why no other file may come so far.
    """
    files: RawFiles = {}
    for name in spec.raw_files:
        path = folder / name
        try:
            if not path.is_file():  # a pipe would never end
                raise FileNotFoundError
            with path.open("rb") as file:
                files[name] = file.read(_LARGEST)
        except FileNotFoundError as error:
            raise DataError(
                f"{spec.name}: raw file missing: {path}; check the data root "
                f"(--data-root or ARGNN_DATA): it must hold all {len(spec.raw_files)} files there"
            ) from error
        except OSError as error:
            raise DataError(f"{spec.name}: cannot read {path}: {error.strerror}") from error
        found, expected = hashlib.sha256(files[name]).hexdigest(), SHA256[spec.name][name]
        if found != expected:
            raise DataError(
                f"{spec.name}: {path} is damaged or another file (SHA-256 {found[:16]}..., "
                f"expected {expected[:16]}...); fetch it again, or load your own graph by its path"
            )
    return files


def _fingerprint(spec: DatasetSpec) -> str:
    return hashlib.sha256("".join(SHA256[spec.name].values()).encode()).hexdigest()[:16]


def _processed(spec: DatasetSpec, files: RawFiles) -> Data:
    with tempfile.TemporaryDirectory(dir=writable_folder(cache_root())) as root:
        try:
            folder = Path(root) / spec.folder
            folder.mkdir(parents=True)
            for name, content in files.items():
                (folder / name).write_bytes(content)
            with _quiet():
                graph: Data = _pyg_dataset(spec, Path(root))[0]
        except OSError as error:
            raise DataError(f"{spec.name}: cannot write to {root}: {error.strerror}") from error
        except Exception as error:  # the files were checked one by one; together they may not fit
            raise DataError(
                f"{spec.name}: PyG cannot process the raw files ({_first_line(error)})"
            ) from error
    return graph


def _pyg_dataset(
    spec: DatasetSpec, root: Path, *, download_without: frozenset[str] | None = None
) -> InMemoryDataset:
    """The data set as PyG has it.

    Args:
        spec: One of the benchmark data sets.
        root: The data root.
        download_without: Only download, and not the files of these names.
    """
    kinds = {"planetoid": Planetoid, "actor": Actor, "wikipedia": WikipediaNetwork, "webkb": WebKB}
    kind = kinds[spec.loader]
    if download_without is not None:
        kind = _only_downloading(kind, spec, download_without)
    if spec.loader == "planetoid":
        return kind(str(root), spec.title, split="geom-gcn")
    if spec.loader == "actor":
        return kind(str(root / "Actor"))
    if spec.loader == "wikipedia":
        return kind(str(root), spec.prefix, geom_gcn_preprocess=True)
    return kind(str(root / Path(spec.folder).parents[1]), spec.prefix)


def _only_downloading(kind: type, spec: DatasetSpec, have: frozenset[str]) -> type:
    # PyG would go on to unpickle what it has just fetched; these two steps are taken out.
    changes: dict[str, Any] = {"_process": lambda self: None, "load": lambda self, path: None}
    if spec.loader == "planetoid":
        # The other classes leave files alone that are there already; this one does not.
        wanted = [name for name in spec.raw_files if name not in have and name.startswith("ind.")]
        changes["raw_file_names"] = property(lambda self: wanted)
    return type(kind.__name__, (kind,), changes)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyG's progress lines and the warnings about its old file formats to ourselves."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _download(spec: DatasetSpec, folder: Path) -> None:
    """Fetch the raw files with PyG's own class, check them, and only then put them in place."""

    def fetch(root: Path, have: frozenset[str]) -> None:
        with _quiet():
            _pyg_dataset(spec, root, download_without=have)

    download(spec, folder, fetch)
