"""Count the files that a piece of work runs through, and its calls from package to package.

    python scripts/count_crossings.py
    python scripts/count_crossings.py --pairs

The work is done in this process, on small graphs: ``argnn train FOLDER``; one cell of ``argnn
bench``; ``fit``, ``predict``, ``save`` and ``argnn.load`` of an estimator.

A file counts if one of its functions is called, but not while a module is being imported. A
crossing is a pair of files of different packages, of which the first calls the second; it counts
once, however often it happens. Functions of libraries between the two are skipped. A module at
the root, such as ``errors``, is a package of its own.

functional, kernels, nn and data are left out, as callers and as called.
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

import argnn
from argnn.cli import main as command

ROOT = Path(argnn.__file__).parent
LEFT_OUT = {"functional", "kernels", "nn", "data"}
Pairs = set[tuple[str, str]]


def package_of(file: str) -> str:
    """The first folder below ``argnn``, or the module at its root."""
    return Path(file).parts[0].removesuffix(".py")


class Calls:
    """Notes who calls whom, as a profile function of Python."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.pairs: Pairs = set()
        self._names: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Python calls this at every call and return."""
        if event != "call" or self._file(frame) is None:
            return
        stack = list(self._stack(frame))
        if any(not each.f_code.co_flags & CO_OPTIMIZED for each in stack):
            return  # a module or a class is being defined
        called, calling = [self._file(each) for each in (stack * 2)[:2]]
        assert called is not None
        assert calling is not None
        if package_of(called) in LEFT_OUT:
            return
        self.files.add(called)
        if package_of(calling) not in {*LEFT_OUT, package_of(called)}:
            self.pairs.add((calling, called))

    def _stack(self, frame: FrameType | None) -> Iterator[FrameType]:
        """The functions of argnn that have led to a call, and itself, the last one first."""
        while frame is not None:
            if self._file(frame) is not None:
                yield frame
            frame = frame.f_back

    def _file(self, frame: FrameType) -> str | None:
        """The file of a function below ``argnn``; none elsewhere."""
        name = frame.f_code.co_filename
        if name not in self._names:
            inside = Path(name).is_relative_to(ROOT)
            self._names[name] = Path(name).relative_to(ROOT).as_posix() if inside else None
        return self._names[name]


def counted(work: Callable[[], None]) -> Calls:
    """What is called while some work is done, in all threads of this process."""
    calls = Calls()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        threading.setprofile(calls)
        sys.setprofile(calls)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return calls


def run(*words: str) -> None:
    """Run a command of the command line, which must succeed."""
    try:
        command(list(words))
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"argnn {' '.join(words)} failed") from ended


def make_tables() -> None:
    """A folder ``shop`` with a table of nodes and one of edges."""
    Path("shop").mkdir()
    nodes = [f"c{i},{20 + i % 7},{'ab'[i % 2]}" for i in range(60)]
    edges = [f"c{i},c{(i + step) % 60}" for i in range(60) for step in (2, 7)]
    Path("shop/nodes.csv").write_text("\n".join(["id,age,label", *nodes]), encoding="utf-8")
    Path("shop/edges.csv").write_text("\n".join(["source,target", *edges]), encoding="utf-8")


def train() -> None:
    """``argnn train FOLDER`` with a small budget and without a trial."""
    run("train", "shop", "--no-trial", "--epochs", "3", "--device", "cpu", "--out", "run")


def bench() -> None:
    """One cell of an experiment."""
    text = "name: one\ntitle: one\ntask: node\ndata: [digits]\nmodels: [gcn]\nsplits: [0]\n"
    Path("one.yaml").write_text(f"{text}seeds: [0]\nset: [train.epochs=3]\n", encoding="utf-8")
    run("bench", "one.yaml", "--device", "cpu", "--out", "results.jsonl")


def estimate() -> None:
    """``fit``, ``predict``, ``save``, ``argnn.load``."""
    model = argnn.ARGNNClassifier("gcn", epochs=3, device="cpu").fit("shop")
    model.predict("shop")
    model.save("model")
    argnn.load("model").predict("shop")


def main() -> None:
    """Count, and print a line for each command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", action="store_true", help="list the crossings, too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["ARGNN_CACHE"] = folder
        make_tables()
        for name, work in {
            "argnn train FOLDER": train,
            "a cell of argnn bench": bench,
            "fit, predict, save, load": estimate,
        }.items():
            calls = counted(work)
            print(f"{name}: {len(calls.files)} files, {len(calls.pairs)} crossings")
            if asked.pairs:
                print(*(f"  {a} -> {b}" for a, b in sorted(calls.pairs)), sep="\n")


if __name__ == "__main__":
    main()
