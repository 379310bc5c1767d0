"""Raw files of the benchmark graphs from the network, fetched and checked by pooch.

A file is put in place only after its SHA-256 sum was found right, so that a second call fetches
what the first one could not. Proxies are taken from ``HTTPS_PROXY`` and similar variables.
"""

import logging
import os
from pathlib import Path

from torch_geometric.datasets import Planetoid, WebKB, WikipediaNetwork

from argnn.data.cache import writable_folder
from argnn.data.specs import SHA256, DatasetSpec
from argnn.errors import DataError

logger = logging.getLogger(__name__)


def download(spec: DatasetSpec, folder: Path) -> None:
    """Fetch the raw files of a data set that are not in ``folder`` yet.

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
    words.setLevel(logging.WARNING)  # else it prints a line for every file
    try:
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
