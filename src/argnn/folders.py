"""Where argnn keeps what can be made again, and code that nobody else may have written."""

import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from argnn.errors import DataError

logger = logging.getLogger(__name__)

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_root() -> Path:
    """``$ARGNN_CACHE``, else ``~/.cache/argnn``; it need not exist.

    Raises:
        DataError: The user has no home folder, as in some containers, and names no other.
    """
    chosen = os.environ.get("ARGNN_CACHE")
    try:
        return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "argnn"
    except RuntimeError as error:
        raise DataError(f"{error} Set ARGNN_CACHE to a folder that can be written.") from error


def private_folders(kind: str, *first: Path, make: bool = False) -> Iterator[Path]:
    """Folders for compiled code that only this user can write, best first; they may be full.

    Args:
        kind: What is kept there, a part of their names.
        *first: Where to look before the cache and the temporary folder.
        make: Create a folder that is not there.
    """
    for root in _roots(*first):
        # Others who share a cache or the temporary folder have a folder of their own.
        folder = root / f"argnn-{kind}-{_user()}"
        if make:
            with suppress(OSError):
                root.mkdir(parents=True, exist_ok=True)
                folder.mkdir(mode=0o700, exist_ok=True)
        if is_private(folder):
            yield folder
        elif os.path.lexists(folder):
            warn_once(f"{folder} is not used for {kind}: another user could write to it")


def _roots(*first: Path) -> Iterator[Path]:
    yield from first
    with suppress(DataError):  # no home folder
        yield cache_root()
    with suppress(OSError):  # no temporary folder
        yield Path(tempfile.gettempdir())


def is_private(folder: Path) -> bool:
    """Whether this is a folder of this user which nobody else can write."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and is_own(found)


def is_own(found: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user, and nobody else can write it."""
    if os.name != "posix":  # Windows keeps its own lists of who may write
        return True
    return found.st_uid == _user() and not found.st_mode & _WRITABLE_BY_OTHERS


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


@cache
def warn_once(message: str) -> None:
    """Log a line, however often it would be due."""
    logger.warning("%s", message)
