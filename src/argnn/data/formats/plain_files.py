"""Checks that every file passes before it is read, and the text of text files."""

import stat
from pathlib import Path

from argnn.errors import DataError

_BEGINNING = 1 << 16
_LARGEST = 4 << 30
#: Only a file made to do harm expands to so many bytes, and so many times its own size.
_SUSPICIOUS_BYTES, _SUSPICIOUS_RATIO = 256 << 20, 200


def read_text(path: Path) -> str:
    """The text of a regular UTF-8 file; every line ends with a newline character."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            content = file.read(_BEGINNING)
            _check_nul(content, path)  # so that a huge file of zeros is not read to its end
            content += file.read()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    _check_nul(content, path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8 text") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_regular(path: Path) -> None:
    """Raise unless this is a plain file that fits into memory: no folder, pipe or device."""
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    if not stat.S_ISREG(found.st_mode):
        raise DataError(f"{path}: not a file")
    if found.st_size > _LARGEST:
        raise DataError(f"{path}: larger than {_LARGEST >> 30} GiB; save it as .npz or Parquet")


def check_expansion(path: Path, size: int, *, most: int | None = None, advice: str = "") -> None:
    """Raise if a file claims to hold far more bytes than it has, or more than ``most``."""
    held = path.stat().st_size
    suspicious = size > _SUSPICIOUS_BYTES and size > _SUSPICIOUS_RATIO * held
    if suspicious or (most is not None and size > most):
        claim = f"{held} bytes claim to hold {size}"
        raise DataError(f"{path}: {claim}; refused, as it would fill the memory{advice}")


def _check_nul(content: bytes, path: Path) -> None:
    at = content.find(b"\0")
    if at >= 0:
        line = content.count(b"\n", 0, at) + 1
        raise DataError(f"{path}, line {line}: holds a NUL byte, so it is not text")
