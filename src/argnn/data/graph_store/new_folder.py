"""A folder that is written whole or not at all."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argnn.data.graph_store.header import is_store
from argnn.errors import RunError
from argnn.files import lock, make_folder, place_folder, refuse_link, require_place
from argnn.interrupts import interrupts_put_off


def require_free(path: Path, force: bool) -> None:
    """Raise unless a store can be put at ``path``; ``force`` lets it replace another store."""
    refuse_link(path)
    if path.exists() and not path.is_dir():
        raise RunError(f"{path}: is there already, and is no folder")
    if path.exists() and not force:
        raise RunError(f"{path}: is there already; --force replaces it")
    if path.exists() and not is_store(path) and any(path.iterdir()):
        raise RunError(f"{path}: is no graph store, so --force does not replace it")
    require_place(path.parent)


@contextmanager
def new_folder(path: Path, *, force: bool = False) -> Iterator[Path]:
    """A folder to write into, which becomes ``path`` when all went well, and else is removed.

    Only one process can write a folder at a time. What a killed one left is removed by the next.
    """
    require_free(path, force)
    make_folder(path.parent)
    working = path.parent / f".{path.name}.writing"
    with _locked(working):
        _put_back(path)
        require_free(path, force)
        _empty(working)
        yield working
        for file in [*working.iterdir(), working]:
            _sync(file)
        _place(working, path, force)
        _sync(path.parent)


@contextmanager
def _locked(working: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if it is not there.

    It is removed if it still has this name in the end.
    """
    refuse_link(working)
    # Between any two of these lines another process may finish and move the folder.
    moved = RunError(f"{working}: another process was using it; try again")
    handles: list[int] = []
    try:
        with interrupts_put_off():
            _lock(working, handles, moved)
        if not _is_at(working, handles):
            raise moved
        yield
    finally:
        try:
            _release(working, handles)
        except BaseException:
            _release(working, handles)
            raise


def _lock(working: Path, handles: list[int], moved: RunError) -> None:
    try:
        working.mkdir(exist_ok=True)
        handle = os.open(working, os.O_RDONLY | os.O_DIRECTORY)
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise moved from error
    try:
        lock(handle, working)
    except BaseException:
        os.close(handle)
        raise
    handles.append(handle)


def _release(working: Path, handles: list[int]) -> None:
    """Remove a folder that is locked, if it was not moved, and unlock it; once."""
    with interrupts_put_off():
        if _is_at(working, handles):
            shutil.rmtree(working, ignore_errors=True)
        while handles:
            os.close(handles.pop())


def _is_at(working: Path, handles: list[int]) -> bool:
    """Whether the folder that is locked has this name."""
    try:
        return any(os.path.samestat(os.fstat(handle), working.stat()) for handle in handles)
    except FileNotFoundError:
        return False


def _empty(folder: Path) -> None:
    for inside in folder.iterdir():
        if inside.is_dir() and not inside.is_symlink():
            shutil.rmtree(inside)
        else:
            inside.unlink()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _place(working: Path, path: Path, force: bool) -> None:
    """Give the finished folder its name; the store that has it comes back if that fails."""
    require_free(path, force)
    refuse_link(_replaced(path))
    try:
        place_folder(working, path, _replaced(path))
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise RunError(f"{path}: is there already; --force replaces it") from error
        raise


def _replaced(path: Path) -> Path:
    """Where a store is for the moment in which a new one takes its name."""
    return path.parent / f".{path.name}.replaced"


def _put_back(path: Path) -> None:
    """Give a store its name again that a killed command lost in that moment."""
    old = _replaced(path)
    if not os.path.lexists(path) and old.is_dir() and not old.is_symlink():
        old.rename(path)
