"""Where argnn keeps what can be made again, unfinished files, and code that it alone may write."""

import logging
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from argnn.errors import DataError
from argnn.interrupts import interrupts_put_off

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


@contextmanager
def scratch_folder(parent: Path, prefix: str = ".writing-") -> Iterator[Path]:
    """A folder for unfinished files, which goes away however the block ends.

    Unlike of ``tempfile.TemporaryDirectory``, nothing stays of it where Ctrl-C comes right after it
    was made, or while it is removed. Nor can an error of its removal hide the interrupt:
    ``shutil.rmtree`` raises one if Ctrl-C comes right after it has closed a folder.
    """
    folder = parent / f"{prefix}{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        try:
            with interrupts_put_off():
                shutil.rmtree(folder, ignore_errors=True)
        except BaseException:
            with interrupts_put_off():
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if os.path.lexists(folder):
            logger.warning("%s: cannot be removed, and is not needed any more", folder)


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
