"""Commands of argnn in forked processes: each is a real one, but its imports are done already."""

import atexit
import ctypes
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: What a command may take beyond its imports where its input is not to be trusted.
MEMORY, CPU_SECONDS = 2 << 30, 60
#: A forked process cannot use threads that its parent had.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
#: A process that has not ended after this time hangs.
PATIENCE = 300
_BECOME_SUBREAPER = 36


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def kind(self) -> str:
        """``done``, ``refused`` with nothing but lines of our own, or what is wrong."""
        lines = self.err.splitlines()
        if "Traceback" in self.err + self.out:
            places = re.findall(r'/(\w+/\w+\.py)", line (\d+)', self.err)[-3:]
            where = " > ".join(f"{file}:{line}" for file, line in places)
            return f"traceback at {where}: {(lines or ['printed'])[-1][:200]}"
        if self.code == 0:
            return "done"
        if self.code in (1, 2) and lines and all(line.startswith("argnn: ") for line in lines):
            longest = max(lines, key=len)
            return "refused" if len(longest) < 2000 else f"{len(longest)} letters: {longest[:200]}"
        return f"code {self.code}: {self.err[-200:]}"


class Place:
    """Where one case happens: a folder to work in, a cache, and temporary files of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.here, self.cache, self.tmp = (
            root,
            root / "here",
            root / "cache",
            root / "tmp",
        )
        for folder in (self.here, self.cache, self.tmp):
            folder.mkdir(parents=True, exist_ok=True)

    def copy(self, root: Path) -> "Place":
        """The same files in another place."""
        for name in ("here", "cache"):
            shutil.copytree(self.root / name, root / name, dirs_exist_ok=True)
        return Place(root)

    def begin(
        self,
        words: Sequence[str],
        *,
        name: str = "first",
        user: int = 0,
        limited: bool = False,
        prepare: Callable[[], None] = lambda: None,
    ) -> int:
        """Start a command; returns the number of its process, which calls ``prepare`` first."""
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            self._become(words, name, user, limited, prepare)
        return pid

    def _become(
        self,
        words: Sequence[str],
        name: str,
        user: int,
        limited: bool,
        prepare: Callable[[], None],
    ) -> None:
        code: object = 70
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()
            for number, stream in ((1, "out"), (2, "err")):
                kinds = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                os.dup2(os.open(self.root / f"{name}.{stream}", kinds), number)
            os.environ.update(ARGNN_CACHE=str(self.cache), TMPDIR=str(self.tmp))
            os.environ.update(ARGNN_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
            signal.signal(signal.SIGINT, signal.default_int_handler)
            # Python tries the folder out once, with an empty file that a signal may leave there.
            tempfile.tempdir = None
            tempfile.gettempdir()
            os.chdir(self.here)
            if limited:
                pages = int(Path("/proc/self/statm").read_text().split()[0])
                most = pages * resource.getpagesize() + MEMORY
                resource.setrlimit(resource.RLIMIT_AS, (most, most))
                resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            import argnn.__main__ as program

            sys.modules["__main__"] = program  # what processes that it starts import again
            (self.root / f"{name}.begun").touch()
            if user:
                os.environ["HOME"] = "/nonexistent"
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            sys.argv = ["argnn", *words]
            prepare()
            program.main()
        except SystemExit as stopped:
            code = stopped.code
        except BaseException:
            traceback.print_exc()
        finally:
            # The command has ended; what Python does now is not ours.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            if not user:
                (self.root / "modules").write_text("\n".join(sys.modules))
            os._exit(code if isinstance(code, int) else 0)

    def wait_for_begin(self, name: str = "first") -> None:
        """Wait until a command that was started is about to run."""
        while not (self.root / f"{name}.begun").exists():
            time.sleep(0.001)

    def end(self, pid: int, *, name: str = "first") -> Ended:
        """Wait until a command and all processes that it started have ended."""
        status, deadline = None, time.monotonic() + PATIENCE
        note = ""
        while True:
            try:
                found, how = os.waitpid(-pid, os.WNOHANG)
            except ChildProcessError:
                if status is not None:
                    break
                found = 0  # it has no group of its own yet
            if found == pid:
                # What it started should end with it; half a minute for a busy machine.
                status, deadline = how, min(deadline, time.monotonic() + 30)
            if not found:
                if time.monotonic() > deadline:
                    note = "hangs" if status is None else "left processes behind"
                    os.killpg(pid, signal.SIGKILL)
                time.sleep(0.002)
        out, err = (
            (self.root / f"{name}.{stream}").read_text(errors="replace")
            for stream in ("out", "err")
        )
        code = os.waitstatus_to_exitcode(status)
        return Ended(code, out, err) if not note else Ended(99, out, f"{note}; {err}")

    def run(self, words: Sequence[str], **how: Any) -> Ended:
        """Run a command to its end; ``how`` is for :meth:`begin`."""
        return self.end(self.begin(words, **how))


def adopt_orphans() -> None:
    """Make this process the parent of what killed commands leave behind, to wait for it."""
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1)
