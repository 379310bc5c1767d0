"""Every command that writes a file where a user says: nothing is replaced unasked."""

import ast
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated, get_args, get_origin

import numpy as np
import pytest
import typer

import argnn as package
from argnn.cli import app, main
from result_rows import several, write_rows


@dataclass(frozen=True)
class Writer:
    """A command that writes one file of a user's choosing, and maybe others.

    Attributes:
        arguments: The command without ``--force``.
        file: What it writes.
        refusal: What is said of a file that is there.
        code: Exit code where another command was faster.
    """

    arguments: Sequence[str]
    file: str
    refusal: str = "is there already; --force replaces it"
    code: int = 2


#: Every option that names a file or folder to write; ``test_every_output_is_known`` compares it
#: with the commands.
WRITERS = {
    ("predict", "out"): Writer(("predict", "gcn", "--out=p.csv"), "p.csv"),
    ("export", "out"): Writer(("export", "gcn", "--out=m.pt2"), "m.pt2"),
    ("analyze", "out"): Writer(("analyze", "gcn", "--out=r.html"), "r.html"),
    ("analyze", "tables"): Writer(
        ("analyze", "metric", "--out={other}.html", "--tables=tables"), "tables/axes.csv"
    ),
    ("figures", "out"): Writer(
        ("figures", "gcn", "--out=drawn", "--format=svg"), "drawn/gcn-training.svg"
    ),
    ("table", "out"): Writer(("table", "results.jsonl", "--out=t.md"), "t.md"),
    ("table", "diagram"): Writer(("table", "results.jsonl", "--diagram=d.svg"), "d.svg"),
    ("importances", "out"): Writer(("importances", "gcn", "--out=i.csv"), "i.csv"),
    ("ablate", "plots"): Writer(
        ("ablate", "small.npz", "--study=neighbor-norm", "--set=epochs=1", "--split=0",
         "--seeds=1", "--workers=1", "--out={other}.jsonl", "--plots=drawn"),
        "drawn/ablate-neighbor-norm.png",
    ),
    ("theory", "out"): Writer(("theory", "weights", "--out=t"), "t/theory-verdicts-weights.csv"),
    ("theory", "plots"): Writer(("theory", "weights", "--plots=t"), "t/theory-weights.pdf"),
    ("perf", "json_file"): Writer(("perf", "--json=perf.json"), "perf.json"),
    ("tune", "out"): Writer(
        ("tune", "small.npz", "--model=gcn", "--trials=1", "--epochs=1", "--split=0",
         "--storage={other}.journal", "--out=tuned.yaml"),
        "tuned.yaml",
        refusal="choose another --out, or replace it with --force",
        code=1,
    ),
}  # fmt: skip

#: Outputs with rules of their own, and the test of each.
OTHERS = {
    ("train", "out"): "tests/test_io.py::test_nothing_is_overwritten",  # a new folder only
    ("bench", "out"): "tests/store/test_results.py::test_second_writer_is_refused",  # adds lines
    ("ablate", "out"): "tests/store/test_results.py::test_second_writer_is_refused",  # adds lines
    (
        "compare",
        "out",
    ): "tests/bench/test_comparison.py::test_folders_with_something_else_are_refused",
    ("tune", "storage"): "tests/bench/test_tune.py::test_other_files_are_refused_and_left_alone",
    ("demo", "out"): "tests/outputs/test_demo.py::test_what_a_user_put_there_stays",
    ("convert", "store"): "tests/cli/test_stores.py::test_damaged_store_is_one_line",
    ("generate", "store"): "tests/cli/test_stores.py::test_generated_graph_is_trained_on",
}

INPUTS = {
    ("predict", "run"), ("predict", "pairs"), ("export", "run"), ("analyze", "run"),
    ("predict", "new_nodes"), ("predict", "new_edges"), ("importances", "run"),
    ("figures", "runs"), ("figures", "results"), ("table", "files"), ("train", "resume"),
}  # fmt: skip


def files_named_by(application: typer.Typer) -> set[tuple[str, str]]:
    """Command and name of every parameter that takes a path, or says that it is written to."""
    found = set()
    for command in application.registered_commands:
        for name, parameter in signature(command.callback).parameters.items():
            hint = parameter.annotation
            kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            says_so = any("write" in (getattr(extra, "help", "") or "").lower() for extra in extras)
            if "Path" in str(kind) or (says_so and kind is not bool):
                found.add((command.callback.__name__, name))
    return found


def test_every_output_is_known():
    assert files_named_by(app) == WRITERS.keys() | OTHERS.keys() | INPUTS
    root = Path(__file__).parents[2]
    for test in OTHERS.values():
        path, name = test.split("::")
        assert f"def {name}(" in (root / path).read_text(encoding="utf-8")


def test_a_new_output_would_be_found():
    application = typer.Typer()

    @application.command()
    def one(target: Annotated[Path, typer.Option()] = Path("x")) -> None: ...

    @application.command()
    def two(goal: Annotated[str, typer.Option(help="Where to write.")] = "x") -> None: ...

    @application.command()
    def three(
        text: str = "", flag: Annotated[bool, typer.Option(help="Write.")] = False
    ) -> None: ...

    assert files_named_by(application) == {("one", "target"), ("two", "goal")}


#: Modules that write to disk themselves, and why none of them writes where a user says.
OWN_WRITING = {
    "argnn.files": "the functions that all others use",
    "argnn.store.run_folder": "the log and the configuration of a run",
    "argnn.store.results": "adds lines to a results file under a lock",
    "argnn.bench.comparison.compare": "the copy of the winner in the folder of a comparison",
    "argnn.bench.tuning.study": "adds lines to a journal under a lock",
    "argnn.runs.machine": "a switch of the kernel, not a file",
    "argnn.bench.perf.__main__": "the standard output of a child process",
    "argnn.outputs.demo": "the empty mark of its folder",
    "argnn.cli.__init__": "opens /dev/null only",
    "argnn.__main__": "opens /dev/null only",
    "argnn.data.benchmarks": "a temporary copy",
    "argnn.data.cache": "the cache",
    **dict.fromkeys(
        (
            f"argnn.data.graph_store.{name}"
            for name in ("array_files", "new_folder", "sorting", "streaming", "writing")
        ),
        "a new folder that is renamed when it is whole",
    ),
    "argnn.data.limited_reading": "opens /dev/null only",
    "argnn.store.model_folder": "whole folders, under rules of their own",
    "argnn.kernels.kept": "the cache of compiled kernels",
}
WRITING = {"write_text", "write_bytes", "touch", "save_file", "fdopen"}


def written_by(source: str) -> list[str]:
    """Calls of a module that write, create or rename files."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in ("write_bytes", "write_json"):
            found.append(node.func.id)  # of argnn.files, which replace what is there
        if not isinstance(node.func, ast.Attribute):
            continue
        texts = [part.value for part in node.args if isinstance(part, ast.Constant)]
        mode = any(isinstance(text, str) and set(text) & set("wax+") for text in texts)
        # A text has a method `replace` as well, which takes two.
        renames = node.func.attr in ("replace", "rename") and len(node.args) == 1
        writes = node.func.attr in WRITING or renames
        opens = node.func.attr == "open" and (mode or ast.unparse(node.func) == "os.open")
        if (writes and not node.keywords) or opens:
            found.append(ast.unparse(node.func))
    return found


def test_commands_write_through_one_function():
    root = Path(package.__file__).parent
    found = {}
    for path in root.rglob("*.py"):
        name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        if calls := written_by(path.read_text(encoding="utf-8")):
            found[name] = calls
    assert found.keys() - OWN_WRITING.keys() == set(), found


@pytest.mark.parametrize(
    "call",
    [
        "path.write_text('x')",
        "path.open('w')",
        "path.open('r+b')",
        "a.replace(b)",
        "write_bytes(path, b'')",
    ],
)
def test_writing_would_be_found(call):
    assert written_by(call)
    assert not written_by("text.replace('a', 'b'); path.open(); replace(config, device='cpu')")


# --- what every one of them does --------------------------------------------------------------


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    return stopped.value.code


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A graph, a run of a model with a metric, one of a model without, and results."""
    folder = tmp_path_factory.mktemp("outputs")
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    order = rng.permutation(60)[:, None]
    masks = {"train_mask": order < 25, "val_mask": (order >= 25) & (order < 40)}
    graph = {"x": np.eye(3)[y], "edge_index": rng.integers(0, 60, size=(2, 200)), "y": y}
    np.savez(folder / "small.npz", **graph, **masks, test_mask=order >= 40)
    scores = {"argnn": [0.9, 0.8], "gcn": [0.7, 0.6], "mlp": [0.5, 0.4]}
    write_rows(folder / "results.jsonl", several({"cora": scores, "texas": scores}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGNN_CACHE", str(folder / "cache"))
        patch.setenv("OMP_NUM_THREADS", "1")
        small = ("--epochs=2", "--set=hidden_channels=4", "--device=cpu")
        for name, model in (("gcn", ("--model=gcn",)), ("metric", ("--preset=paper",))):
            train = ("train", folder / "small.npz", *small, *model, "--out", folder / name)
            assert called(*train) == 0
    return folder


@pytest.fixture
def here(argnn, trained, tmp_path, monkeypatch):
    """All of it in the empty folder of a test; perf measures nothing."""
    here = tmp_path / "here"
    for name in ("gcn", "metric"):
        shutil.copytree(trained / name, here / name)
    shutil.copy(trained / "results.jsonl", here)
    shutil.copy(trained / "small.npz", here)
    monkeypatch.setattr("argnn.bench.perf.run_perf", lambda *_: {"measurements": []})
    monkeypatch.setattr("argnn.cli.perf._print_perf", lambda *_: None)
    return here


@pytest.fixture(params=WRITERS, ids=" ".join)
def writer(request, here):
    found = WRITERS[request.param]
    (here / found.file).parent.mkdir(exist_ok=True)
    return found


def words(writer: Writer, other: str = "first") -> list[str]:
    """The command; ``other`` names the files that two commands must not share."""
    return [word.format(other=other) for word in writer.arguments]


def test_existing_file_is_refused_and_untouched(writer, refused):
    Path(writer.file).write_text("mine")
    refused(*words(writer), message=writer.refusal)


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "pipe"])
def test_only_plain_files_are_replaced(writer, refused, kind):
    target = Path(writer.file)
    Path("precious").write_text("mine")
    if "link" in kind:
        target.symlink_to(Path("precious" if kind == "link" else "nowhere").absolute())
    elif kind == "folder":
        target.mkdir()
    else:
        os.mkfifo(target)
    said = {"folder": "is a folder, not a file", "pipe": "is not a plain file"}
    for force in ((), ("--force",)):
        refused(*words(writer), *force, message=said.get(kind, "is a symbolic link"))


def test_force_replaces_in_one_step(writer, argnn):
    target = Path(writer.file)
    target.write_text("mine")
    os.link(target, "old")
    done = argnn(*words(writer), "--force")
    assert done.code == 0, done.err
    assert target.stat().st_size > 0
    assert target.read_bytes() != b"mine"
    # The old file itself was not written to, so that nobody ever saw a part of the new one.
    assert Path("old").read_text() == "mine"
    assert not list(Path().rglob(".writing-*"))


@pytest.fixture
def before_writing(monkeypatch):
    """Do something after a command has looked at its output, and before it puts it there."""

    def arrange(action):
        waiting, usual = [action], os.fsync

        def fsync(file):
            usual(file)
            if waiting:
                waiting.pop()()

        monkeypatch.setattr(os, "fsync", fsync)
        return waiting

    return arrange


def test_of_two_at_once_one_wins(writer, argnn, before_writing):
    rival = []

    def overtake():
        rival.append(argnn(*words(writer, "second")))
        rival.append(Path(writer.file).read_bytes())

    waiting = before_writing(overtake)
    done = argnn(*words(writer))
    assert not waiting
    assert (rival[0].code, done.code) == (0, writer.code), (rival[0], done)
    assert "is there already; --force replaces it" in done.err
    assert Path(writer.file).read_bytes() == rival[1]
    assert not list(Path().rglob(".writing-*"))


def test_a_late_link_is_not_followed(writer, argnn, before_writing):
    Path("precious").write_text("mine")
    link = Path("precious").absolute()
    before_writing(lambda: Path(writer.file).symlink_to(link))
    done = argnn(*words(writer), "--force")
    assert done.code == writer.code
    assert "is a symbolic link, which is not written through" in done.err
    assert Path(writer.file).is_symlink()
    assert Path("precious").read_text() == "mine"
