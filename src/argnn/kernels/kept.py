"""Compiled kernels that are kept on disk: numba's own cache, made safe for shared machines.

Numba's cache is unpickled and run as it is: a file of another user would run that user's code, and
a damaged one crashes or computes wrong numbers. Here a file must belong to this user and carry a
digest of what it holds. And numba gives up where neither the package nor the home folder can be
written, as in a container; here there is always a next place, and without any, no cache.
"""

import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from argnn.folders import is_own, private_folders, warn_once

_DIGEST_SIZE = hashlib.sha256().digest_size


class KeptKernel(NullCache):
    """The compiled forms of one function, each in a file of its own.

    Args:
        function: What is compiled, from a file that holds all functions it calls.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._source = function.__code__.co_filename

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled form for these types; nothing where none is kept that can be used."""
        context.refresh()
        name = self._name(signature, context.codegen())
        for folder in _folders():
            content = _read_own(folder / name)
            digest, payload = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
            if digest == self._digest(name, payload):
                return CompileResult._rebuild(context, *pickle.loads(payload))
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled form in the first place that can be written."""
        if result.library.has_dynamic_globals:  # addresses of this process
            return
        payload = dumps(result._reduce())
        name = self._name(signature, result.codegen)
        for folder in _folders(make=True):
            try:
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    unfinished = Path(scratch) / name
                    unfinished.touch(mode=0o600)
                    unfinished.write_bytes(self._digest(name, payload) + payload)
                    unfinished.replace(folder / name)
            except OSError:
                continue
            return
        warn_once("compiled kernels cannot be kept (set ARGNN_CACHE to a folder of your own)")

    def _name(self, signature: Any, codegen: Any) -> str:
        name, python = self._function.__name__, sys.implementation.cache_tag
        key = repr((self._source, name, python, signature, codegen.magic_tuple()))
        return f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"

    def _digest(self, name: str, payload: bytes) -> bytes:
        parts = _digest_of_source(self._source), name.encode(), payload
        return hashlib.sha256(b"".join(parts)).digest()


@cache
def _digest_of_source(path: str) -> bytes:
    """Differs where the same payload would not fit: another source or compiler."""
    versions = f"{numba.__version__} {llvmlite.__version__} "
    return hashlib.sha256(versions.encode() + Path(path).read_bytes()).digest()


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
