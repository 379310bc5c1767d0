"""Compiled kernels that are kept on disk: numba's own cache, made safe for shared machines.

Numba's cache is unpickled and run as it is: a file of another user would run that user's code, and
a damaged one crashes or computes wrong numbers. Here a file must belong to this user and carry a
digest of what it holds. And numba gives up where neither the package nor the home folder can be
written, as in a container; here there is always a next place, and without any, no cache.
"""

import hashlib
import inspect
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite  # type: ignore[import-untyped]
import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.serialize import dumps

from argnn.errors import ConfigError
from argnn.folders import is_own, private_folders, scratch_folder, warn_once

logger = logging.getLogger(__name__)

_DIGEST_SIZE = hashlib.sha256().digest_size
#: What a compiled function may name: what it calls, what it reads, and what is never ours.
_COMPILED, _CONSTANTS = (Dispatcher, _Intrinsic), (bool, int, float, str, tuple)
_NOT_OURS = {"builtins", "llvmlite", "math", "numba", "numpy"}


def kept_jit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function as ``numba.njit`` does, and keep what comes out."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise ConfigError("argnn compiles its kernels with numba: unset NUMBA_DISABLE_JIT")
    kernel = numba.njit(**options)(function)
    kernel._cache = KeptKernel(kernel)  # as numba does with a cache of its own
    return kernel


class KeptKernel(NullCache):
    """The compiled forms of one function, each in a file of its own.

    A compiled form holds the code of all compiled functions that it calls. So it is built again
    where a file of any of these has changed, its options, or a constant that it reads.

    Args:
        kernel: What numba made of the function.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        for part in _parts(kernel):
            _digest_of_file(part.file)  # before anybody edits what was imported

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled form for these types; nothing where none is kept that can be used."""
        context.refresh()
        name = self._name(signature, context.codegen())
        for folder in _folders():
            content = _read_own(folder / name)
            digest, payload = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
            if digest == self._digest(name, payload):
                return CompileResult._rebuild(context, *pickle.loads(payload))
        say_compiling()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled form in the first place that can be written."""
        if result.library.has_dynamic_globals:  # addresses of this process
            return
        payload = dumps(result._reduce())
        name = self._name(signature, result.codegen)
        for folder in _folders(make=True):
            try:
                with scratch_folder(folder) as scratch:
                    unfinished = scratch / name
                    unfinished.touch(mode=0o600)
                    unfinished.write_bytes(self._digest(name, payload) + payload)
                    unfinished.replace(folder / name)
            except OSError:
                continue
            return
        warn_once("compiled kernels cannot be kept (set ARGNN_CACHE to a folder of your own)")

    @cached_property
    def _parts(self) -> list["_Part"]:
        return list(_parts(self._kernel))

    @cached_property
    def _stamp(self) -> bytes:
        """Differs where the same payload would not fit: another source or compiler."""
        versions = f"{numba.__version__} {llvmlite.__version__}"
        parts = [(_digest_of_file(part.file), part.rest) for part in self._parts]
        return repr((versions, parts)).encode()

    def _name(self, signature: Any, codegen: Any) -> str:
        name, python = self._kernel.py_func.__name__, sys.implementation.cache_tag
        files = sorted({part.file for part in self._parts})
        key = repr((files, name, python, signature, codegen.magic_tuple()))
        return f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"

    def _digest(self, name: str, payload: bytes) -> bytes:
        return hashlib.sha256(b"".join((self._stamp, name.encode(), payload))).digest()


class _Part(NamedTuple):
    """A function whose code is in a compiled form: its file, and what else decides on its code."""

    file: str
    rest: str


def _parts(kernel: Any) -> Iterator[_Part]:
    """A compiled function, and all those that it calls by a name of their own."""
    seen, waiting = {kernel}, [kernel]
    while waiting:
        part = waiting.pop()
        function = part.py_func if isinstance(part, Dispatcher) else part._defn
        used = inspect.getclosurevars(function)
        names = {**used.globals, **used.nonlocals}
        calls = [value for value in names.values() if isinstance(value, _COMPILED)]
        waiting += [call for call in calls if call not in seen]
        seen.update(calls)
        constants = {name: value for name, value in names.items() if isinstance(value, _CONSTANTS)}
        for name, value in names.items():
            if not isinstance(value, _COMPILED + _CONSTANTS) and _package(value) not in _NOT_OURS:
                raise TypeError(f"{function.__name__}: changes of {name} would not be noticed")
        yield _Part(function.__code__.co_filename, f"{_options(part)} {constants}")


def _package(value: Any) -> str:
    name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
    return str(name).split(".")[0]


def _options(part: Any) -> list[tuple[str, Any]]:
    """The options that a function is compiled with, in an order that every process has."""
    options = getattr(part, "targetoptions", {})
    return sorted((k, sorted(v) if isinstance(v, set) else v) for k, v in options.items())


@cache
def say_compiling() -> None:
    """Tell the user once per process why the first use of a kernel takes seconds."""
    logger.info("compiling kernels, once on this machine ...")


@cache
def _digest_of_file(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _folders(*, make: bool = False) -> Iterator[Path]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return private_folders("kernels", *([Path(chosen)] if chosen else []), make=make)


def _read_own(path: Path) -> bytes:
    """The content of a file that nobody else can have written; nothing of any other."""
    try:
        with path.open("rb") as file:
            return file.read() if is_own(os.fstat(file.fileno())) else b""
    except OSError:
        return b""
