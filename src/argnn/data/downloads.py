"""Raw files from the network: fetched by PyG, compared with known checksums, then put in place.

Files that arrived whole are kept when a download fails, and a second call fetches the others only.
``ARGNN_OFFLINE=1`` forbids all of it. Proxies are taken from ``HTTPS_PROXY`` and its kin.
"""

import contextlib
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from argnn.data.cache import writable_folder
from argnn.data.checksums import SHA256
from argnn.data.specs import DatasetSpec
from argnn.errors import DataError
from argnn.folders import cache_root

logger = logging.getLogger(__name__)

#: Called with a data root and the names of files that are there already; leaves the others there.
Fetch = Callable[[Path, frozenset[str]], None]


def download(spec: DatasetSpec, folder: Path, fetch: Fetch) -> None:
    """Make ``folder`` with the raw files of a data set, all of them or none.

    Args:
        spec: The data set.
        folder: Where the files belong; it does not exist yet.
        fetch: Gets files from the network.
    """
    _require_permission(spec, folder)
    writable_folder(folder.parent)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".download-") as root:
        fetched = Path(root) / spec.folder
        fetched.mkdir(parents=True)
        have = _take_kept(spec, fetched)
        logger.info("downloading %s to %s", spec.title, folder)
        with _keeping_what_is_whole(spec, fetched):
            _fetch(spec, folder, fetch, Path(root), have)
            _check_sums(spec, fetched, folder)
        _put_in_place(fetched, folder)
    shutil.rmtree(_kept(spec), ignore_errors=True)


def is_offline() -> bool:
    """Whether the user forbids downloads."""
    return os.environ.get("ARGNN_OFFLINE", "0") not in ("", "0")


def _require_permission(spec: DatasetSpec, folder: Path) -> None:
    if not spec.downloadable:
        raise DataError(
            f"{spec.name}: this version cannot be downloaded any more; {_remedy(folder)}"
        )
    if is_offline():
        raise DataError(
            f"{spec.name}: not in the cache, and ARGNN_OFFLINE forbids downloads; {_remedy(folder)}"
        )


def _remedy(folder: Path) -> str:
    return f"put the files in {folder}, or set ARGNN_DATA"


def _fetch(spec: DatasetSpec, folder: Path, fetch: Fetch, root: Path, have: frozenset[str]) -> None:
    try:
        with _proxies_for_fsspec():
            fetch(root, have)
    except Exception as error:  # every network library has its own errors
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{spec.name}: download failed ({reason}); try again, which fetches the rest only, "
            f"or {_remedy(folder)}"
        ) from error


@contextlib.contextmanager
def _proxies_for_fsspec() -> Iterator[None]:
    """Half of PyG's downloads go through aiohttp, which ignores proxies unless it is told."""
    from fsspec.config import conf

    before = {protocol: conf.get(protocol) for protocol in ("http", "https")}
    for protocol, options in before.items():
        conf[protocol] = {"client_kwargs": {"trust_env": True}, **(options or {})}
    try:
        yield
    finally:
        for protocol, options in before.items():
            conf.pop(protocol)
            if options is not None:
                conf[protocol] = options


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_whole(spec: DatasetSpec, path: Path) -> bool:
    return path.is_file() and _sum(path) == SHA256[spec.name].get(path.name)


def _check_sums(spec: DatasetSpec, fetched: Path, folder: Path) -> None:
    for name, expected in SHA256[spec.name].items():
        path = fetched / name
        if not path.is_file():
            raise DataError(f"{spec.name}: download failed ({name} is missing); try again")
        found = _sum(path)
        if found != expected:
            raise DataError(
                f"{spec.name}: {name} as downloaded is not the file it should be (SHA-256 "
                f"{found[:16]}..., expected {expected[:16]}...); try again, or {_remedy(folder)}"
            )


def _kept(spec: DatasetSpec) -> Path:
    """Where files wait that arrived whole in an attempt that failed."""
    return cache_root() / "raw" / ".partial" / spec.name


def _take_kept(spec: DatasetSpec, fetched: Path) -> frozenset[str]:
    """Move what an earlier attempt left, if it is whole; gives the names."""
    taken = set()
    for name in spec.raw_files:
        waiting = _kept(spec) / name
        if _is_whole(spec, waiting):
            with contextlib.suppress(OSError):  # another process was faster
                waiting.replace(fetched / name)
                taken.add(name)
    return frozenset(taken)


@contextlib.contextmanager
def _keeping_what_is_whole(spec: DatasetSpec, fetched: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:  # an interrupted download is continued as well
        for name in spec.raw_files:
            if _is_whole(spec, fetched / name):
                with contextlib.suppress(OSError, DataError):  # then it is fetched again
                    (fetched / name).replace(writable_folder(_kept(spec)) / name)
        raise


def _put_in_place(fetched: Path, folder: Path) -> None:
    try:
        fetched.replace(folder)
    except OSError:
        # Another process was faster; its files passed the same checks.
        if not folder.is_dir():
            raise
