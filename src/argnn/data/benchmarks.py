"""The benchmark graphs: checked raw files, processed by PyG, kept in a store of our own."""

import hashlib
import io
import logging
import os
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.datasets import Actor, Planetoid, WebKB, WikipediaNetwork
from torch_geometric.utils import remove_self_loops, to_undirected

from argnn.data.cache import store_graph, stored_graph, writable_folder
from argnn.data.raw_files import RawFiles, chosen_root, raw_folder, read_raw_files
from argnn.data.specs import SHA256, DatasetSpec
from argnn.errors import DataError
from argnn.folders import cache_root, scratch_folder

logger = logging.getLogger(__name__)


def load_benchmark(spec: DatasetSpec, root: str | Path | None = None) -> Data:
    """The graph as PyG reads it: edges as stored, features as stored, ten splits.

    The raw files are below ``root``, else ``$ARGNN_DATA``, else a folder of the cache, which is
    filled from the network if the data set is not there. Nothing is ever written beside them.
    """
    folder = raw_folder(spec, root)
    if not chosen_root(root) and not all((folder / name).is_file() for name in spec.raw_files):
        download(spec, folder)
    files = read_raw_files(spec, folder)
    fingerprint = hashlib.sha256("".join(SHA256[spec.name].values()).encode()).hexdigest()[:16]
    path = cache_root() / "processed" / f"{spec.name}-{fingerprint}.safetensors"
    graph = stored_graph(path)
    if graph is None:
        graph = _processed(spec, files)
        check_counts(spec, graph)
        store_graph(path, graph)
    return graph


def download(spec: DatasetSpec, folder: Path) -> None:
    """Fetch the raw files of a data set that are not in ``folder`` yet.

    A file is put in place only after its SHA-256 sum was found right, so that a second call
    fetches what the first one could not. Proxies are those of ``HTTPS_PROXY`` and the like.

    Raises:
        DataError: Downloads are forbidden or fail, or a file is not the one that is known.
    """
    import pooch

    remedy = f"put the files in {folder}, or set ARGNN_DATA"
    if not spec.downloadable:
        raise DataError(f"{spec.name}: this version cannot be downloaded any more; {remedy}")
    if os.environ.get("ARGNN_OFFLINE", "0") not in ("", "0"):
        raise DataError(
            f"{spec.name}: not in the cache, and ARGNN_OFFLINE forbids downloads; {remedy}"
        )
    logger.info("downloading %s to %s", spec.title, folder)
    urls = {name: _url(spec, name) for name in spec.raw_files}
    store = pooch.create(writable_folder(folder), "", registry=SHA256[spec.name], urls=urls)
    words, level = pooch.get_logger(), pooch.get_logger().level
    try:
        words.setLevel(logging.WARNING)  # else it prints a line for every file
        for name in spec.raw_files:
            Path(store.fetch(name)).chmod(0o644)  # pooch lets only its own user read a file
    except Exception as error:  # every network library has its own errors
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        # A wrong sum is a ValueError. Some network errors are, too, but they are also OSErrors.
        if isinstance(error, ValueError) and not isinstance(error, OSError):
            raise DataError(
                f"{spec.name}: {name} as downloaded is not the file it should be "
                f"({reason.split('. ')[0]}); try again, or {remedy}"
            ) from error
        raise DataError(
            f"{spec.name}: download failed ({reason}); try again, which fetches the rest only, "
            f"or {remedy}"
        ) from error
    finally:
        words.setLevel(level)


def _url(spec: DatasetSpec, name: str) -> str:
    """The address of a file, the same that PyG uses."""
    if name.startswith("ind."):
        return f"{Planetoid.url}/{name}"
    base = WikipediaNetwork.processed_url if spec.loader == "wikipedia" else WebKB.url
    return f"{base}/splits/{name}" if "_split_" in name else f"{base}/new_data/{spec.prefix}/{name}"


def check_counts(spec: DatasetSpec, graph: Data) -> None:
    """Raise ``DataError`` if a graph, as stored, is not the one that ``spec`` describes."""
    simple = to_undirected(remove_self_loops(graph.edge_index)[0], num_nodes=graph.num_nodes)
    source, target = simple
    counts = {
        "nodes": (spec.nodes, graph.num_nodes),
        "stored edges": (spec.stored_edges, graph.edge_index.size(1)),
        "undirected edges": (spec.edges, simple.size(1) // 2),
        "undirected edges within a class": (
            spec.same_class_edges,
            int((graph.y[source] == graph.y[target]).sum()) // 2,
        ),
        "features": (spec.features, graph.x.size(1)),
        "classes": (spec.classes, int(graph.y.max()) + 1),
        "splits": (spec.splits, graph.train_mask.size(1)),
    }
    for what, (expected, found) in counts.items():
        if expected != found:
            raise DataError(f"{spec.name}: expected {expected} {what} (got {found})")


def _processed(spec: DatasetSpec, files: RawFiles) -> Data:
    with scratch_folder(writable_folder(cache_root())) as root:
        try:
            folder = root / spec.folder
            folder.mkdir(parents=True)
            for name, content in files.items():
                (folder / name).write_bytes(content)
            # Neither PyG's progress lines nor warnings about its old file formats.
            nowhere = io.StringIO()
            with redirect_stdout(nowhere), redirect_stderr(nowhere), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                graph: Data = _pyg_dataset(spec, root)[0]
        except OSError as error:
            raise DataError(f"{spec.name}: cannot write to {root}: {error.strerror}") from error
        except Exception as error:  # PyG may fail in any way
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(f"{spec.name}: PyG cannot process the raw files ({reason})") from error
    return graph


def _pyg_dataset(spec: DatasetSpec, root: Path) -> InMemoryDataset:
    if spec.loader == "planetoid":
        return Planetoid(str(root), spec.title, split="geom-gcn")
    if spec.loader == "actor":
        return Actor(str(root / "Actor"))
    if spec.loader == "wikipedia":
        return WikipediaNetwork(str(root), spec.prefix, geom_gcn_preprocess=True)
    return WebKB(str(root / Path(spec.folder).parents[1]), spec.prefix)
