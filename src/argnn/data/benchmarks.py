"""The benchmark graphs: raw files in, PyG's own processing, our store out."""

import contextlib
import hashlib
import io
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.datasets import Actor, Planetoid, WebKB, WikipediaNetwork

from argnn.data.cache import cache_root, store_graph, stored_graph, writable_folder
from argnn.data.raw_checks import RawFiles, vetted_files
from argnn.data.specs import DatasetSpec, check_counts
from argnn.errors import DataError

logger = logging.getLogger(__name__)


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
    path = cache_root() / "processed" / f"{spec.name}-{_fingerprint(files)}.safetensors"
    graph = stored_graph(path)
    if graph is None:
        graph = _processed(spec, vetted_files(spec, files, folder))
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
    files: RawFiles = {}
    for name in spec.raw_files:
        try:
            files[name] = (folder / name).read_bytes()
        except FileNotFoundError as error:
            raise DataError(
                f"{spec.name}: raw file missing: {folder / name}; check the data root "
                f"(--data-root or ARGNN_DATA): it must hold all {len(spec.raw_files)} files there"
            ) from error
        except OSError as error:
            raise DataError(
                f"{spec.name}: cannot read {folder / name}: {error.strerror}"
            ) from error
    return files


def _fingerprint(files: RawFiles) -> str:
    digest = hashlib.sha256()
    for content in files.values():
        digest.update(content)
    return digest.hexdigest()[:16]


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


def _pyg_dataset(spec: DatasetSpec, root: Path, *, only_download: bool = False) -> InMemoryDataset:
    kinds = {"planetoid": Planetoid, "actor": Actor, "wikipedia": WikipediaNetwork, "webkb": WebKB}
    kind = kinds[spec.loader]
    if only_download:
        # PyG would go on to unpickle what it has just fetched; these two steps are taken out.
        unread = {"_process": lambda self: None, "load": lambda self, path: None}
        kind = type(kind.__name__, (kind,), unread)
    if spec.loader == "planetoid":
        return kind(str(root), spec.title, split="geom-gcn")
    if spec.loader == "actor":
        return kind(str(root / "Actor"))
    if spec.loader == "wikipedia":
        return kind(str(root), spec.prefix, geom_gcn_preprocess=True)
    return kind(str(root / Path(spec.folder).parents[1]), spec.prefix)


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
    hint = f"put the files in {folder}, or set ARGNN_DATA"
    if not spec.downloadable:
        raise DataError(f"{spec.name}: this version cannot be downloaded any more; {hint}")
    if os.environ.get("ARGNN_OFFLINE", "0") not in ("", "0"):
        raise DataError(
            f"{spec.name}: not in the cache, and ARGNN_OFFLINE forbids downloads; {hint}"
        )
    writable_folder(folder.parent)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".download-") as root:
        logger.info("downloading %s to %s", spec.title, folder)
        try:
            with _quiet():
                _pyg_dataset(spec, Path(root), only_download=True)
        except Exception as error:  # every network library has its own errors
            raise DataError(
                f"{spec.name}: download failed ({_first_line(error)}); {hint}"
            ) from error
        fetched = Path(root) / spec.folder
        vetted_files(spec, _read(spec, fetched), fetched)
        _put_in_place(fetched, folder)


def _put_in_place(fetched: Path, folder: Path) -> None:
    try:
        fetched.replace(folder)
    except OSError:
        # Another process was faster; its files passed the same checks.
        if not folder.is_dir():
            raise
