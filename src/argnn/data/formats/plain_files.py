"""Checks that every file passes before it is read, and the text of text files."""

import stat
from collections.abc import Iterator
from pathlib import Path

from argnn.errors import DataError

_BEGINNING = 1 << 16
_LARGEST = 4 << 30
#: Of a text that is read in parts: most parts that one row may take, and most lines with quoted
#: texts that are tried for the end of a part.
_LONGEST_ROW, _MOST_QUOTED_LINES = 8, 100
#: Only a file made to do harm expands to so many bytes, and so many times its own size.
_SUSPICIOUS_BYTES, _SUSPICIOUS_RATIO = 256 << 20, 200


def read_text(path: Path) -> str:
    """The text of a regular UTF-8 file; every line ends with a newline character."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            content = file.read(_BEGINNING)
            _check_nul(content, path, 0)  # so that a huge file of zeros is not read to its end
            content += file.read()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    return _decoded(content, path, 0)


def read_text_parts(path: Path, size: int) -> Iterator[tuple[int, str]]:
    """:func:`read_text` part by part: the lines before a part, and its text.

    A part has about ``size`` bytes and ends with a line, which is not within quotation marks.
    """
    check_regular(path, any_size=True)
    before, rest = 0, b""
    with path.open("rb") as file:
        while block := file.read(size):
            rest += block
            end = _last_line(rest)
            if not end and len(rest) > _LONGEST_ROW * size:
                raise DataError(f"{path}, line {before + 1}: a row or a text in quotes has no end")
            if end:
                text = _decoded(rest[:end], path, before)
                yield before, text
                before, rest = before + text.count("\n"), rest[end:]
    if rest:
        yield before, _decoded(rest, path, before)


def _last_line(content: bytes) -> int:
    """Where the last line ends that is not within quotation marks; 0 if that is not found."""
    end = content.rfind(b"\n") + 1
    for _ in range(_MOST_QUOTED_LINES):
        if not content.count(b'"', 0, end) % 2:
            return end
        end = content.rfind(b"\n", 0, max(0, content.rfind(b'"', 0, end))) + 1
    return 0


def _decoded(content: bytes, path: Path, before: int) -> str:
    _check_nul(content, path, before)
    try:
        text = content.decode("utf-8" if before else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = before + content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8 text: save it as CSV UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_regular(path: Path, *, any_size: bool = False) -> None:
    """Raise unless this is a plain file that fits into memory: no folder, pipe or device."""
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    if not stat.S_ISREG(found.st_mode):
        raise DataError(f"{path}: not a file")
    if found.st_size > _LARGEST and not any_size:
        raise DataError(f"{path}: larger than {_LARGEST >> 30} GiB; save it as .npz or Parquet")


def check_expansion(path: Path, size: int, *, most: int | None = None, advice: str = "") -> None:
    """Raise if a file claims to hold far more bytes than it has, or more than ``most``."""
    held = path.stat().st_size
    suspicious = size > _SUSPICIOUS_BYTES and size > _SUSPICIOUS_RATIO * held
    if suspicious or (most is not None and size > most):
        claim = f"{held} bytes claim to hold {size}"
        raise DataError(f"{path}: {claim}; refused, as it would fill the memory{advice}")


def _check_nul(content: bytes, path: Path, before: int) -> None:
    at = content.find(b"\0")
    if at >= 0:
        line = before + content.count(b"\n", 0, at) + 1
        problem = "holds a NUL byte, so it is not UTF-8 text: save it as CSV UTF-8"
        raise DataError(f"{path}, line {line}: {problem}")
