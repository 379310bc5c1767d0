"""The results file: one JSON line per finished or failed cell.

Lines are only added, each with its checksum. A last line that was cut off, by a kill in the middle
of a write, is moved to another file; any other damage is an error, and so is another version.
"""

import errno
import json
import logging
import os
from collections.abc import Mapping
from io import RawIOBase
from pathlib import Path
from typing import Any, NotRequired

from typing_extensions import TypedDict

from argnn.checked import checked
from argnn.errors import ConfigError, RunError, naming
from argnn.files import digest_matches, lock, make_folder, parse_json, with_digest

Row = dict[str, Any]

logger = logging.getLogger(__name__)

FORMAT = 1


class _ScoresEntry(TypedDict):
    absent_classes: NotRequired[list[int] | None]


class _OracleEntry(TypedDict):
    test: dict[str, Any] | None


class _TwinsEntry(TypedDict):
    test: int
    with_twin: int


class _GraphEntry(TypedDict):
    nodes: NotRequired[int]


class _LinkEntry(TypedDict):
    ratio: NotRequired[str | None]


class _ConfigEntry(TypedDict):
    graph: NotRequired[_GraphEntry]
    link: NotRequired[_LinkEntry | None]


class _VersionsEntry(TypedDict):
    argnn: NotRequired[str]


class _AnyRow(TypedDict):
    """What every row holds; not all versions wrote the last ones."""

    cell: str
    experiment: str
    task: str
    data: str
    directed: bool
    method: str
    model: str
    preset: str
    split: int
    seed: int
    config: _ConfigEntry
    settings: str
    num_parameters: NotRequired[int | None]
    peak_memory_mib: NotRequired[float | None]
    peak_device_memory_mib: NotRequired[float | None]
    device: NotRequired[str | None]
    versions: NotRequired[_VersionsEntry | None]
    git_commit: NotRequired[str | None]
    git_changed: NotRequired[bool | None]
    twins: NotRequired[_TwinsEntry]
    test_without_twins: NotRequired[dict[str, Any] | None]


class _FailedRow(_AnyRow):
    error: str


class _FinishedRow(_AnyRow):
    test: _ScoresEntry | None
    val: dict[str, Any] | None
    oracle: _OracleEntry | None
    chosen_epoch: int
    epochs_run: int
    seconds: float


#: How every row begins: tells a row that was cut off from a line of another program.
_START = b'{"format": '


def read_rows(path: Path) -> list[Row]:
    """The last row of every cell; a failure does not replace scores.

    Nothing is changed. A last line that was cut off in the middle of a write is left out.

    Raises:
        OSError: The file cannot be read.
        RunError: It is damaged, or of another version.
    """
    content = path.read_bytes()
    rows, size = _parsed(content, path)
    if size < len(content):
        logger.warning("%s: its last line was cut off and is left out", path)
    return latest_rows(_without_digests(rows, path))


def check_results(path: Path) -> None:
    """Raise as :func:`read_rows` does, and say nothing about a line that was cut off."""
    _parsed(path.read_bytes(), path)


def latest_rows(rows: list[Row]) -> list[Row]:
    """One row per cell, in the order in which the cells first appear."""
    latest: dict[str, Row] = {}
    for row in rows:
        if "error" not in row or "error" in latest.get(row["cell"], row):
            latest[row["cell"]] = row
    return list(latest.values())


class ResultsFile:
    """A results file that one process writes to; others may read it meanwhile.

    Opening it moves a last line that was cut off to a file beside it, and puts the last row of
    every cell into ``rows``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        self._file: RawIOBase | None = None

    def __enter__(self) -> "ResultsFile":
        # A number would stay open where Ctrl-C comes before it has a name; a file is closed.
        self._file = _opened(self.path)
        try:
            lock(self._file.fileno(), self.path)
            content = self.path.read_bytes()
            rows, size = _parsed(content, self.path)
            self.rows = latest_rows(_without_digests(rows, self.path))
            if size < len(content):
                self._set_aside(content, size)
            elif content and not content.endswith(b"\n"):
                self._write(b"\n")
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        assert self._file is not None  # it was opened
        self._file.close()

    def _set_aside(self, content: bytes, size: int) -> None:
        """Move what follows the last whole line to another file, and only then cut it off."""
        aside = self.path.with_name(f"{self.path.name}.damaged-tail")
        with _opened(aside) as other:
            _write_whole(other, content[size:].rstrip(b"\n") + b"\n", aside)
        assert self._file is not None  # it was opened
        self._file.truncate(size)
        os.fsync(self._file.fileno())
        logger.warning("%s: its last line was cut off and is now in %s", self.path, aside)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row: afterwards it is on the disk, or the file is as it was."""
        self._write(encoded(row))

    def _write(self, content: bytes) -> None:
        assert self._file is not None  # it was opened
        _write_whole(self._file, content, self.path)


def encoded(row: Mapping[str, Any]) -> bytes:
    """The line of a row.

    Raises:
        RunError: It holds NaN or infinity, which other programs could not read.
    """
    try:
        text = json.dumps(with_digest({"format": FORMAT, **row}), allow_nan=False)
    except ValueError as error:
        raise RunError(f"a result is not a finite number ({error})") from error
    return f"{text}\n".encode()


def _opened(path: Path) -> RawIOBase:
    make_folder(path.parent)
    return path.open("ab+", buffering=0)


def _write_whole(file: RawIOBase, content: bytes, path: Path) -> None:
    """Write all or nothing: what a full disk took only in part, or not for sure, is removed."""
    size = os.fstat(file.fileno()).st_size
    with naming(path):
        try:
            if os.write(file.fileno(), content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise


def _parsed(content: bytes, path: Path) -> tuple[list[Row], int]:
    """All rows, and the number of bytes up to the end of the last whole line."""
    rows: list[Row] = []
    end = 0
    lines = content.split(b"\n")
    last = max((n for n, line in enumerate(lines) if line.strip()), default=-1)
    for number, line in enumerate(lines):
        where = f"{path}, line {number + 1}"
        if line.strip():
            try:
                row = parse_json(line, finite=True)
            except ValueError as error:
                if number == last and _is_cut(line, whole=number + 1 < len(lines)):
                    return rows, end
                raise RunError(f"{where}: damaged, not JSON; nothing was changed") from error
            rows.append(_checked(row, where))
        end = min(end + len(line) + 1, len(content))
    return rows, len(content)


def _is_cut(line: bytes, whole: bool) -> bool:
    """Whether a line is the beginning of a row, or the zeros that a crash may leave."""
    if whole and line.endswith(b"}"):
        return False
    return line.startswith(_START) or _START.startswith(line) or not line.strip(b"\0")


def _without_digests(rows: list[Row], path: Path) -> list[Row]:
    """The rows without their checksums; warns where there are none."""
    bare = sum("digest" not in row for row in rows)
    if bare:
        logger.warning(
            "%s: %d of %d rows have no checksum, as earlier versions of argnn wrote them; damage "
            "would go unnoticed",
            path,
            bare,
            len(rows),
        )
    return [{key: value for key, value in row.items() if key != "digest"} for row in rows]


def _checked(row: Any, where: str) -> Row:
    if not isinstance(row, dict) or "format" not in row:
        raise RunError(f"{where}: not a row of argnn bench; nothing was changed")
    if row["format"] != FORMAT:
        raise RunError(
            f"{where}: has format {row['format']!r:.40}, {_writer(row)}; this version reads format "
            f"{FORMAT}; nothing was changed"
        )
    try:
        if digest_matches(row) is False:
            raise ConfigError("its content does not match its checksum")
        checked(row, _FailedRow if "error" in row else _FinishedRow)
        if row.get("twins", {}).get("with_twin") and "test_without_twins" not in row:
            raise ConfigError("has no 'test_without_twins'")
    except ConfigError as error:
        raise RunError(f"{where}: damaged, {error}; nothing was changed") from error
    return row


def _writer(row: Row) -> str:
    """Which version wrote a row, in words."""
    versions = row.get("versions")
    version = versions.get("argnn") if isinstance(versions, dict) else None
    return "of an unknown version" if version is None else f"written by argnn {version!s:.40}"
