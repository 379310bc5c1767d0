"""Read an unknown file in a child process with limited memory and time.

A file of a kilobyte can claim to hold gigabytes in many ways, too many to check one by one. So the
operating system refuses memory above a limit, and ends the child in time. The child answers with
numbers and JSON.
"""

import faulthandler
import gc
import json
import math
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.csv_cells import is_number
from argnn.data.import_graph import ImportedGraph
from argnn.data.import_options import NoFeaturesError
from argnn.data.tables import too_large
from argnn.errors import ConfigError, DataError, ProblemsError
from argnn.interrupts import interrupts_put_off

#: Bytes of memory for any file, and how many more for each byte of the file.
_BASE, _PER_BYTE = 1 << 30, 50
_SECONDS_PER_GIB = 120
_VARIABLE = "ARGNN_READ_GIB"
_REST = ("node_ids", "feature_names", "schema", "notes", "undirected")
_ERRORS = {kind.__name__: kind for kind in (DataError, ConfigError, NoFeaturesError, ProblemsError)}


def allowed_memory(path: Path) -> int:
    """How many bytes of memory reading a file or folder may take."""
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        gib = float(chosen) if is_number(chosen) else math.nan
        if not 0 < gib < 2**20:
            raise ConfigError(f"{_VARIABLE} must be a number of GiB (got '{chosen[:20]}')")
        return int(gib * 2**30)
    try:
        files = [*path.iterdir()] if path.is_dir() else [path]
        found = [file.stat() for file in files if file.is_file()]
    except (OSError, ValueError):  # the reader meets the same error and explains it
        found = []
    # Holes in a sparse file take no space on the disk and are not counted.
    return _BASE + _PER_BYTE * sum(min(file.st_size, 512 * file.st_blocks) for file in found)


def read_limited(path: Path, read: Callable[[], ImportedGraph]) -> ImportedGraph:
    """Call ``read`` in a child process with limits; on other systems than Linux, without.

    The size of ``path``, which ``read`` opens, sets the limits.

    Raises:
        DataError: The child used up its memory or time.
    """
    if not sys.platform.startswith("linux"):
        return read()
    memory = allowed_memory(path)
    seconds = 1 + _SECONDS_PER_GIB * memory // 2**30
    with tempfile.TemporaryFile() as answer:
        status = _run_child(lambda: _answer(answer, read, memory, seconds))
        if status == -signal.SIGXCPU:
            raise DataError(
                f"{path}: takes more than {seconds} seconds to read, which is much for a file of "
                f"its size; set {_VARIABLE} to allow more memory and time"
            )
        imported = _read_answer(answer, path, status)
    # Words become features only later, with 4 bytes for each node and word.
    if 4 * len(imported.node_ids) * sum(width for _, width in imported.parts) > memory:
        raise too_large(path)
    return imported


def _read_answer(answer: IO[bytes], path: Path, status: int) -> ImportedGraph:
    answer.seek(0)
    try:
        with np.load(answer, allow_pickle=False) as arrays:
            found = dict(arrays)
    except (ValueError, EOFError, OSError, BadZipFile) as error:  # the child ended too early
        raise DataError(
            f"{path}: could not be read (exit code {status}), perhaps for lack of memory "
            f"({_VARIABLE} allows more) or of space in {tempfile.gettempdir()}"
        ) from error
    try:
        return _unpacked(found)
    except MemoryError:
        raise too_large(path) from None


def _run_child(work: Callable[[], None]) -> int:
    children: list[int] = []  # none after it has ended
    try:
        # Ctrl-C must not find a child that nobody knows of; in it, it would end what the parent
        # has begun.
        with interrupts_put_off():
            children.append(_forked(work))
        status = _status(children)
    except BaseException:
        with interrupts_put_off():
            for child in children:
                os.kill(child, signal.SIGKILL)
            _status(children)
        raise
    return status


def _forked(work: Callable[[], None]) -> int:
    """Begin a child process that does some work."""
    with warnings.catch_warnings():
        # Python warns of threads, which a fork does not copy; the child uses none.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child:
            return child
        try:
            # Garbage of the parent stays: to free an object of Ray takes a lock of one of its
            # threads, for which the child would wait for ever.
            gc.freeze()
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent will end the child
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            work()
        finally:
            os._exit(0)


def _status(children: list[int]) -> int:
    """Wait for the child, if there is one, and take it off the list."""
    status = 0
    for child in children:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        with interrupts_put_off():
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            children.clear()
    return status


def _answer(
    answer: IO[bytes], read: Callable[[], ImportedGraph], memory: int, seconds: int
) -> None:
    """In the child: read, and write the graph or the error into the answer."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # C++ libraries print a message when they run out of memory
        os.dup2(nowhere, stream)
    faulthandler.disable()  # it has a copy of the stream: a test run printed its stacks
    torch.set_num_threads(1)  # the other threads were not copied
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _lower(resource.RLIMIT_AS, held + memory)
    _lower(resource.RLIMIT_CPU, seconds)
    _lower(resource.RLIMIT_CORE, 0)
    try:
        arrays = _packed(read())
    except MemoryError:
        arrays = _said(error="MemoryError")
    except tuple(_ERRORS.values()) as error:
        arrays = _said(error=type(error).__name__, message=str(error))
    except BaseException:
        arrays = _said(error="RuntimeError", message=traceback.format_exc())
    np.savez(answer, allow_pickle=False, **arrays)
    answer.flush()


def _lower(kind: int, limit: int) -> None:
    soft, hard = resource.getrlimit(kind)
    given = [value for value in (soft, hard) if value != resource.RLIM_INFINITY]
    resource.setrlimit(kind, (min([limit, *given]), hard))


def _said(**values: Any) -> dict[str, NDArray[Any]]:
    return {"json": np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)}


def _packed(imported: ImportedGraph) -> dict[str, NDArray[Any]]:
    """A graph as arrays; one of them holds all texts as JSON."""
    fields = imported.data.to_dict()
    tensors = {name: value for name, value in fields.items() if isinstance(value, Tensor)}
    return {
        **{f"data {name}": value.numpy() for name, value in tensors.items()},
        **{f"part {at}": values for at, (values, _) in enumerate(imported.parts)},
        **_said(
            data={name: value for name, value in fields.items() if name not in tensors},
            widths=[width for _, width in imported.parts],
            rest={name: getattr(imported, name) for name in _REST},
        ),
    }


def _unpacked(arrays: dict[str, NDArray[Any]]) -> ImportedGraph:
    said = json.loads(arrays.pop("json").tobytes())
    if said.get("error") == "MemoryError":
        raise MemoryError
    if "error" in said:
        raise _ERRORS.get(said["error"], RuntimeError)(said["message"])
    data = Data(**said["data"])
    for name, values in arrays.items():
        if name.startswith("data "):
            data[name.removeprefix("data ")] = torch.from_numpy(values)
    parts = [(arrays[f"part {at}"], width) for at, width in enumerate(said["widths"])]
    return ImportedGraph(data=data, parts=parts, **said["rest"])
