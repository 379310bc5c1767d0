"""Run commands one after the other where the operating system refuses something.

Every case is a child of the process that runs them all: it starts without imports of its own, and
may give up the rights of root.
"""

import ctypes
import json
import os
import resource
import struct
import sys
import traceback
from collections.abc import Callable

_SET_SECURE_BITS, _PROGRAMS_GET_NO_RIGHTS = 28, 1
_CAPABILITIES_VERSION_3 = 0x20080522


def attempt(arguments: list[str], restrict: Callable[[], None]) -> tuple[int, str]:
    """Exit code and standard error of a command in a child whose rights are restricted."""
    from argnn.cli import main

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(writing, 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            restrict()
            main(arguments)
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 98
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as errors:
        text = errors.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), text


def give_up_the_rights_of_root() -> None:
    """Be a user who may not read or write what the permissions of a file do not allow."""
    system = ctypes.CDLL(None, use_errno=True)
    system.prctl(_SET_SECURE_BITS, _PROGRAMS_GET_NO_RIGHTS)
    if system.capset(struct.pack("Ii", _CAPABILITIES_VERSION_3, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), "capset")


def fill_disk(room: int) -> None:
    """Let no file grow beyond so many bytes; Python ignores the signal that comes with it."""
    sys.dont_write_bytecode = True  # Python would keep what was cut off of a module, for later runs
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))


def run(case: dict) -> tuple[int, str]:
    def restrict() -> None:
        if "room" in case:
            fill_disk(case["room"])
        elif case.get("without_rights"):
            give_up_the_rights_of_root()

    return attempt(case["arguments"], restrict)


def _no_measuring(config, turns, policy) -> dict:
    """In place of ``run_perf``, which starts processes of its own."""
    return {"config": config.to_json(), "measurements": [{"rows": [], "edge_part": None}]}


def run_all(cases: list[dict]) -> None:
    """Write what became of each case, a line for each."""
    import argnn.bench.perf
    import argnn.cli.perf
    from argnn.settings.options import resolve_options

    for model in ("argnn", "gcn"):
        resolve_options(model, "default")  # PyG makes a module for each kind of layer
    argnn.bench.perf.run_perf = _no_measuring
    argnn.cli.perf._print_perf = lambda result, console: None
    for case in cases:
        code, text = run(case)
        sys.stdout.write(json.dumps({"code": code, "text": text}) + "\n")
