"""Files and folders that are written whole or not at all: JSON, safetensors, kept results.

Nothing here pickles: opening a file of somebody else's run cannot run code.
"""

import errno
import hashlib
import json
import logging
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from argnn.errors import RunError
from argnn.folders import cache_root, scratch_folder
from argnn.interrupts import interrupts_put_off
from argnn.wording import shortened

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: How deep JSON may be nested; no file of ours comes near.
_MAX_DEPTH = 64
# safetensors writes several metadata entries in random order; one entry keeps equal runs equal
# byte for byte.
_METADATA_KEY = "argnn"


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never a part."""
    _write(path, content, Path.replace)


def write_output(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file that a user asked for, where :func:`require_writable` allows it.

    The path is checked again at the moment of writing: of two commands that write to one free path
    at the same time, one is refused. ``force`` lets it replace a file.
    """

    def place(finished: Path, path: Path) -> None:
        require_writable(path, force)
        if force:
            finished.replace(path)
            return
        try:
            _place_at_free_path(finished, path)
        except FileExistsError:
            require_writable(path, force)  # says what has come since
            raise

    _write(path, content, place)


def _write(path: Path, content: bytes, place: Callable[[Path, Path], object]) -> None:
    """Write a temporary file beside ``path``, then let ``place`` move it there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(path.parent) as folder:
            unfinished = folder / path.name
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            place(unfinished, path)
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror})") from error


def _place_at_free_path(finished: Path, path: Path) -> None:
    """Raise where something has this name already; a plain rename would replace it."""
    try:
        os.link(finished, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        with interrupts_put_off():
            path.open("x").close()
            try:
                finished.replace(path)
            except BaseException:
                path.unlink()
                raise


def place_folder(finished: Path, path: Path, aside: Path) -> None:
    """Give a finished folder its name; an older one waits at ``aside`` until it is there."""
    with interrupts_put_off():
        shutil.rmtree(aside, ignore_errors=True)
        try:
            if path.exists():
                path.replace(aside)
            finished.replace(path)
        except BaseException:
            if aside.exists() and not path.exists():
                aside.replace(path)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, where they are not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # there is a file of this name
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from error


def require_place(folder: Path) -> None:
    """Raise unless files can be made in a folder, or it in those above; nothing is made."""
    folder = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        error.filename = str(folder)
        raise


def refuse_link(out: Path) -> None:
    """Raise for a symbolic link: writing through it would change a file elsewhere."""
    if out.is_symlink():
        raise RunError(f"{out}: is a symbolic link, which is not written through")


def require_folder(out: Path) -> None:
    """Raise unless files can be put into a folder ``out``, which may be a new one."""
    refuse_link(out)
    if out.exists() and not out.is_dir():
        raise RunError(f"{out}: not a folder; choose another")
    require_place(out)


def require_writable(out: Path, force: bool) -> None:
    """Raise unless a file can be put at ``out`` without destroying anything unasked.

    Call it before long work, which would be lost otherwise; :func:`write_output` checks again.
    """
    refuse_link(out)
    if out.is_dir():
        raise RunError(f"{out}: is a folder, not a file")
    if out.exists() and not out.is_file():
        raise RunError(f"{out}: is not a plain file")
    if out.exists() and not force:
        raise RunError(f"{out}: is there already; --force replaces it")
    require_place(out.parent)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write strict JSON: NaN and infinity are refused, as other programs could not read them."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """The content of a file of strict JSON, for people to read."""
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def parse_json(text: str | bytes, *, finite: bool = False) -> Any:
    """Parse JSON that may be damaged or made to do harm.

    Args:
        text: The document.
        finite: Whether to refuse NaN, infinity and numbers that are too large for a float.

    Raises:
        ValueError: It is not JSON, or nested too deeply, or holds a number of thousands of digits.
    """
    hooks: dict[str, Any] = {"parse_constant": _finite, "parse_float": _finite} if finite else {}
    try:
        value = json.loads(text, **hooks)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    level: list[Any] = [[value]]
    for _ in range(_MAX_DEPTH):
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
    if level:
        raise ValueError("nested too deeply")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def read_json(path: Path, required: Iterable[str] = (), *, finite: bool = False) -> dict[str, Any]:
    """Read a JSON object that holds at least the ``required`` keys; see :func:`parse_json`."""
    try:
        value = parse_json(path.read_bytes(), finite=finite)
    except ValueError as error:
        raise RunError(f"{path}: damaged, not JSON ({shortened(error)})") from error
    if not isinstance(value, dict):
        raise RunError(f"{path}: damaged, must hold an object (got {type(value).__name__})")
    missing = [key for key in required if key not in value]
    if missing:
        raise RunError(f"{path}: damaged, has no '{missing[0]}'")
    return value


def with_digest(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object as JSON gives it back, and a checksum of it under ``digest``.

    Example:
        >>> digest_matches(with_digest({"scores": (0.5, 0.25)}))
        True
        >>> digest_matches({**with_digest({"score": 0.5}), "score": 0.6})
        False
    """
    plain = json.loads(json.dumps(value))
    return {**plain, "digest": _json_digest(plain)}


def digest_matches(value: Mapping[str, Any]) -> bool | None:
    """Whether an object is as :func:`with_digest` made it; None where it has no checksum."""
    if "digest" not in value:
        return None
    content = {key: held for key, held in value.items() if key != "digest"}
    try:
        return bool(value["digest"] == _json_digest(content))
    except RecursionError:
        return False


def write_checked(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object with a checksum, for :func:`read_checked`."""
    write_json(path, with_digest(value))


def read_checked(path: Path, required: Iterable[str] = ()) -> dict[str, Any]:
    """Read what :func:`write_checked` wrote; earlier versions of argnn wrote no checksum."""
    value = read_json(path, required)
    intact = digest_matches(value)
    if intact is False:
        raise RunError(f"{path}: damaged, its content does not match its checksum")
    if intact is None:
        logger.warning(
            "%s: has no checksum, as earlier versions of argnn wrote it; damage would go unnoticed",
            path,
        )
    value.pop("digest", None)
    return value


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and some facts about them; equal content gives equal bytes."""
    held = {name: _plain(tensor) for name, tensor in tensors.items()}
    plain = json.loads(json.dumps(facts))
    text = json.dumps({**plain, "digest": _digest(held, plain)}, sort_keys=True)
    write_bytes(path, save(held, metadata={_METADATA_KEY: text}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote, and check it."""
    if not path.is_file():
        raise RunError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
            facts = dict(parse_json((file.metadata() or {})[_METADATA_KEY]))
        digest = facts.pop("digest")
        # Earlier versions of argnn left the facts out of the checksum.
        intact = digest in (_digest(tensors, facts), _digest(tensors))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: damaged, not a tensor file of argnn") from error
    if not intact:
        raise RunError(f"{path}: damaged, its content does not match its checksum")
    return tensors, facts


def cache_file(kind: str, content: Mapping[str, Any]) -> Path:
    """Where a result is kept; the name is a checksum of all that the result depends on."""
    return cache_root() / kind / f"{fingerprint(content)[:32]}.safetensors"


def from_cache(path: Path, use: Callable[[dict[str, Tensor], dict[str, Any]], T]) -> T | None:
    """What ``use`` makes of the tensors and facts of a kept result; None if there is no good one.

    ``use`` raises a ValueError for what does not fit.
    """
    try:
        return use(*read_tensors(path)) if path.is_file() else None
    except (OSError, RunError, KeyError, ValueError) as error:
        logger.warning("%s is made anew (%s)", path, error)
        return None


def to_cache(
    path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], name: str
) -> None:
    """Keep a result; where that fails, it has to be computed again the next time."""
    try:
        write_tensors(path, tensors, facts)
    except RunError as error:
        logger.warning("%s not kept: %s", name, error)


def _plain(tensor: Tensor) -> Tensor:
    # A copy of its own: safetensors refuses tensors that share memory.
    return tensor.detach().cpu().contiguous().clone()


def _digest(tensors: Mapping[str, Tensor], facts: Mapping[str, Any] | None = None) -> str:
    parts = {
        name: (tensor.dtype, tensor.shape, _bytes_of(tensor)) for name, tensor in tensors.items()
    }
    return pieces_digest(parts, b"" if facts is None else _json_digest(facts).encode())


def _bytes_of(tensor: Tensor) -> list[Any]:
    """The content of a tensor; an empty one may have no stride to view it by."""
    return [tensor.contiguous().view(-1).view(torch.uint8).numpy()] if tensor.numel() else []


def pieces_digest(
    tensors: Mapping[str, tuple[torch.dtype, Sequence[int], Iterable[Any]]], first: bytes = b""
) -> str:
    """:func:`tensors_digest` of tensors that come piece by piece: type, shape and content by name.

    The checksum begins with ``first``.
    """
    digest = hashlib.sha256(first)
    for name in sorted(tensors):
        dtype, shape, pieces = tensors[name]
        digest.update(f"{name} {dtype} {list(shape)}".encode())
        for piece in pieces:
            digest.update(piece.data)
    return digest.hexdigest()


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    """One number for the exact content of some tensors."""
    return _digest({name: _plain(tensor) for name, tensor in tensors.items()})


def fingerprint(config: Mapping[str, Any]) -> str:
    """One number for a configuration; any change of a value changes it.

    Example:
        >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
        True
    """
    return _json_digest(config, allow_nan=False)


def _json_digest(value: Mapping[str, Any], *, allow_nan: bool = True) -> str:
    text = json.dumps(value, sort_keys=True, allow_nan=allow_nan)
    return hashlib.sha256(text.encode()).hexdigest()


def lock(file: BinaryIO | int, path: Path) -> None:
    """Lock a file against other processes until it is closed or this process ends.

    Some network file systems have no locks. There the work goes on with a warning.

    Raises:
        RunError: Another process holds the lock.
    """
    import fcntl  # not on Windows, where the rest of this module works

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunError(f"{path}: another process is using it; wait until it ends") from error
    except OSError as error:
        logger.warning("%s: cannot be locked (%s); use it only once at a time", path, error)
