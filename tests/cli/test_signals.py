"""Ctrl-C, SIGTERM and kills of real processes: what is said, what is kept, what is removed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from argnn.files import read_json
from argnn.runs.machine import ending_as_interrupts
from argnn.runs.pool import graphs_for_worker
from argnn.store.run_folder import RunFolder
from forked import PATIENCE, Forked, code, command_that_forks, run_forked

pytestmark = pytest.mark.slow


@pytest.fixture
def started(small_npz, tmp_path, cache):
    """Start a command in a folder of its own, with a temporary folder of its own."""
    small_npz()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    processes = []

    def start(*arguments):
        process = Forked(command_that_forks, *arguments, cwd=tmp_path, TMPDIR=str(temporary))
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.end()


def started_anew(arguments, tmp_path):
    """Start a command as a shell does, without a fork server; returns the process."""
    return subprocess.Popen(
        [sys.executable, "-m", "argnn", *arguments],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What runs in the background of a shell, as these tests may, ignores Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(process, condition):
    """Wait until something is there, which a process that has ended will not make any more."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def copies(tmp_path):
    """The copies of graphs that worker processes read."""
    return [path for path in (tmp_path / "temporary").rglob("argnn-*/*") if path.is_file()]


LONG = (
    *("train", "small.npz", "--model=gcn", "--split=0,1", "--out=run"),
    *("--epochs=1000000", "--set=patience=0", "--checkpoint-every=5"),
)


def both_at_work(tmp_path):
    """Whether both workers have saved a checkpoint."""
    folder = RunFolder(tmp_path / "run")
    return all(folder.checkpoint(split).exists() for split in (0, 1))


@pytest.mark.parametrize(
    ("number", "everybody"),
    [
        (signal.SIGINT, True),  # as a terminal sends it
        pytest.param(signal.SIGHUP, True, marks=pytest.mark.torture),  # a terminal that is closed
        pytest.param(signal.SIGTERM, True, marks=pytest.mark.torture),
        (signal.SIGTERM, False),
    ],
)
def test_training_says_what_is_kept_and_removes_its_copies(started, tmp_path, number, everybody):
    process = started(*LONG, "--workers=2")
    wait_for(process, lambda: both_at_work(tmp_path))
    assert copies(tmp_path)
    (os.killpg if everybody else os.kill)(process.pid, number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert errors == "argnn: error: interrupted; continue with: argnn train --resume run\n"
    assert process.returncode == 128 + number
    assert copies(tmp_path) == []
    assert not list((tmp_path / "run").rglob(".writing-*"))


def test_killed_parent_leaves_no_copies_and_no_tracebacks(small_npz, tmp_path, cache):
    small_npz()
    (tmp_path / "temporary").mkdir()
    with started_anew((*LONG, "--workers=2"), tmp_path) as process:
        try:
            wait_for(process, lambda: both_at_work(tmp_path))
            process.kill()
            _, errors = process.communicate(timeout=PATIENCE)  # workers hold the same pipe
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert "Traceback" not in errors
    assert copies(tmp_path) == []


def test_worker_whose_parent_is_gone_says_nothing(tmp_path):
    code, *printed = run_forked(graphs_for_worker, tmp_path / "removed", 0, cwd=tmp_path)
    assert (code != 0, printed) == (True, ["", ""])


@pytest.mark.torture  # its pool is that of a training, whose ends are tested above
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_search_in_processes_leaves_no_copies(started, tmp_path, number):
    search = ("tune", "small.npz", "--model=gcn", "--trials=99", "--epochs=300", "--workers=2")
    process = started(*search, "--storage=s", "--out=t.yaml")
    ended = b'"state":1'
    wait_for(process, lambda: (tmp_path / "s").exists() and ended in (tmp_path / "s").read_bytes())
    assert copies(tmp_path)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in errors
    assert copies(tmp_path) == []
    if number == signal.SIGTERM:
        assert errors.startswith("argnn: error: interrupted; continue with: argnn tune ")
        assert len(errors.splitlines()) == 1
        assert process.returncode == 128 + signal.SIGTERM


def test_run_is_locked_while_it_runs_and_free_after_a_kill(started, tmp_path):
    process = started(*LONG, "--workers=1")
    checkpoint = RunFolder(tmp_path / "run").checkpoint(0)
    wait_for(process, checkpoint.exists)
    second = started("train", "--resume=run")
    _, errors = second.communicate(timeout=PATIENCE)
    assert second.returncode == 2
    assert errors == "argnn: error: run: another process is using it; wait until it ends\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = checkpoint.stat().st_mtime_ns
    third = started("train", "--resume=run", "--workers=1")
    wait_for(third, lambda: checkpoint.stat().st_mtime_ns > before)


NOTHING = "nothing was written"
#: Command, the function during which it is interrupted, and what it says.
MOMENTS = [
    ("train small.npz", "argnn.runs.prepare", "load", NOTHING),
    ("tune small.npz --model=gcn", "argnn.runs.prepare", "load", NOTHING),
    ("compare small.npz", "argnn.runs.prepare", "load", NOTHING),
    ("bench mine.yaml", "argnn.bench.experiments.cells", "load_graph", "what is finished is in"),
    (
        "ablate small.npz --study=depth",
        "argnn.bench.experiments.cells",
        "load_graph",
        "what is finished is in",
    ),
    ("theory weights", "argnn.bench.theory.report", "measure_claims", NOTHING),
    ("importances run", "argnn.outputs.importances", "require_writable", NOTHING),
    ("inspect small.npz", "argnn.data.inspect", "load_with_or_without_split", NOTHING),
    ("table results.jsonl", "argnn.store.results", "read_rows", NOTHING),
    ("perf --json=p.json", "argnn.bench.perf.run", "_child", NOTHING),
    ("predict run", "argnn.outputs.predict", "load", NOTHING),
    ("export run", "argnn.outputs.export", "load", NOTHING),
    ("analyze run", "argnn.outputs.analyze", "require_writable", NOTHING),
    ("figures run", "argnn.outputs.figures", "stored_run", NOTHING),
    ("demo", "argnn.outputs.demo", "run_jobs", "finished splits are in argnn-demo"),
    ("datasets", "argnn.settings.catalog", "dataset_rows", NOTHING),
    ("models", "argnn.settings.catalog", "model_rows", NOTHING),
    ("convert small.npz store", "argnn.data.graph_store.writing", "content_digest", NOTHING),
    (
        "generate store --nodes=99 --edges=99",
        "argnn.data.graph_store.generating",
        "_node_rows",
        NOTHING,
    ),
]


@pytest.fixture
def usual_handlers():
    """The handlers of a new process, whatever libraries did to those of this one."""
    usual = {number: signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGHUP)}
    usual[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_interrupted_before_a_command_begins(argnn, usual_handlers, monkeypatch):
    def interrupt(app):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("typer.main.get_command", interrupt)
    done = argnn("models")
    assert (done.code, done.err) == (130, "argnn: error: interrupted; nothing was written\n")


def test_interrupt_that_a_library_swallows(argnn, usual_handlers, monkeypatch):
    def swallow(app):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise RecursionError("half imported")

    monkeypatch.setattr("typer.main.get_command", swallow)
    done = argnn("models")
    said = "argnn: error: interrupted; what was finished before is kept\n"
    assert (done.code, done.err) == (130, said)


def test_interrupt_that_a_library_swallows_for_good(argnn, usual_handlers, monkeypatch):
    def swallow():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        return []

    monkeypatch.setattr("argnn.settings.catalog.model_rows", swallow)
    done = argnn("models", "--json")
    said = "argnn: error: interrupted; what was finished before is kept\n"
    assert (done.code, done.err) == (143, said)


def test_interrupted_when_the_work_is_over(argnn, usual_handlers, monkeypatch):
    def interrupt(*_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("argnn.cli.logger.debug", interrupt)
    done = argnn("generate", "store", "--nodes=99", "--edges=99")
    said = "argnn: error: interrupted; what was finished before is kept\n"
    assert (done.code, done.err) == (130, said)
    assert Path("store").is_dir()


def test_nothing_is_said_of_objects_that_an_interrupt_left_half_made(usual_handlers, capsys):
    class HalfMade:
        def __init__(self):
            signal.raise_signal(signal.SIGINT)
            self.file = None

        def __del__(self):
            self.file.close()  # as ZipFile does

    with ending_as_interrupts(), contextlib.suppress(KeyboardInterrupt):
        HalfMade()
    assert capsys.readouterr().err == ""


def test_interrupted_while_it_is_imported():
    code = """
import signal, sys
class Finder:
    def find_spec(name, path, target=None):
        if name == "argnn.cli":
            signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder)
from argnn.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "argnn: error: interrupted\n")


def test_an_interrupt_that_python_loses_comes_again(usual_handlers, capsys):
    class Removed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def work():
        Removed()
        time.sleep(PATIENCE)

    with ending_as_interrupts(), pytest.raises(KeyboardInterrupt):
        work()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment[0].split()[0])
def test_every_command_says_what_is_kept(
    argnn, usual_handlers, small_npz, monkeypatch, moment, number
):
    words, module, function, kept = moment
    text = "{name: mine, title: mine, task: node, data: [small.npz], methods: [{model: gcn}]}"
    Path("mine.yaml").write_text(text)
    small_npz("here/small.npz")

    def interrupt(*args, **kwargs):
        assert signal.getsignal(number) != signal.SIG_DFL
        os.kill(os.getpid(), number)
        signal.sigtimedwait([], 1)  # the handler comes first
        pytest.fail("not interrupted")

    monkeypatch.setattr(f"{module}.{function}", interrupt)
    before = signal.getsignal(number)
    done = argnn(*words.split())
    assert done.err.startswith(f"argnn: error: interrupted; {kept}"), done.err
    assert len(done.err.splitlines()) == 1
    assert done.code == 128 + number
    assert signal.getsignal(number) == before
    assert kept != NOTHING or sorted(map(str, Path().iterdir())) == ["mine.yaml", "small.npz"]


GCN = "--model=gcn --epochs=1 --workers=1"
#: Command, the function of its last step, which prints, and what it says when that is interrupted.
LAST_STEPS = [
    (f"train small.npz {GCN} --out=new", "train._print_scores", "continue with: argnn train --res"),
    (f"tune small.npz {GCN} --trials=1 --split=0", "tune._best_table", "continue with: argnn tune"),
    ("bench mine.yaml --workers=1", "bench._print_report", "what is finished is in results/mine"),
    ("predict run", "outputs._show", "predictions.csv: written"),
    ("figures run --format=svg", "outputs._show", "figures: written"),
    ("export run", "outputs._show", "model.pt2: written"),
    ("convert small.npz store", "stores._show", "store: written"),
    ("generate store --nodes=99 --edges=99", "stores._show", "store: written"),
]


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """A run whose model has no metric."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    work = ("train", "mixed", "--model=gcn", "--epochs=1", "--workers=1", "--json")
    done = run_forked(command_that_forks, *work, f"--out={folder}", cwd=folder.parent)
    assert done[0] == 0, done
    return folder


@pytest.mark.usefixtures("usual_handlers")
@pytest.mark.parametrize("step", LAST_STEPS, ids=lambda step: step[0].split()[0])
def test_what_was_written_is_said_up_to_the_last_line(
    argnn, small_npz, finished_run, monkeypatch, step
):
    words, function, kept = step
    text = (
        "{name: mine, title: mine, task: node, data: [small.npz], splits: [0], seeds: [0], "
        "methods: [{model: gcn, set: [train.epochs=1]}]}"
    )
    Path("mine.yaml").write_text(text)
    small_npz("here/small.npz")

    def interrupt(*args, **kwargs):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(f"argnn.cli.{function}", interrupt)
    monkeypatch.setattr("argnn.bench.experiments.files.LEAST_SEEDS", 1)
    Path("run").symlink_to(finished_run)
    done = argnn(*words.split())
    assert done.err == f"argnn: error: interrupted; {kept}" + done.err.partition(kept)[2]
    assert len(done.err.splitlines()) == 1
    assert done.code == 130
    if kept.endswith("written"):
        assert Path(kept.partition(":")[0]).exists()


def test_replaced_output_is_written_and_an_old_one_is_not(argnn, usual_handlers, monkeypatch):
    def interrupt(*args, **kwargs):
        signal.raise_signal(signal.SIGINT)

    words = ("generate", "store", "--nodes=99", "--edges=99")
    assert argnn(*words).code == 0
    with monkeypatch.context() as patch:
        patch.setattr("argnn.data.graph_store.generating._node_rows", interrupt)
        assert argnn(*words, "--force").err.endswith("interrupted; nothing was written\n")
    monkeypatch.setattr("argnn.cli.stores._show", interrupt)
    assert argnn(*words, "--force").err.endswith("interrupted; store: written\n")


def test_ctrl_c_in_a_trial_takes_the_best_so_far(
    argnn, usual_handlers, small_npz, brief_trial, monkeypatch
):
    from argnn.runs import trial

    train_one, begun = trial.train_one, []

    def interrupted(*arguments, **more):
        begun.append(arguments)
        if len(begun) == 2:
            signal.raise_signal(signal.SIGINT)
        return train_one(*arguments, **more)

    monkeypatch.setattr(trial, "train_one", interrupted)
    done = argnn("train", small_npz(), "--epochs=2", "--out=run")
    assert (done.code, done.err, len(begun)) == (0, "", 2)
    assert "self path, rw: the best of 1 recipes when the user ended the trial" in done.out
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_moments_are_of_all_commands():
    from argnn.cli import app

    names = {command.callback.__name__ for command in app.registered_commands}
    assert {command.split()[0] for command, *_ in MOMENTS} == names


@pytest.mark.parametrize("target", ["/dev/full", "closed pipe"])
def test_output_that_cannot_be_written(target):
    where = "> /dev/full" if target == "/dev/full" else "| true"
    shell = f"set -o pipefail; {sys.executable} -m argnn --help {where}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    if target == "/dev/full":
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "No space left on device" in done.stderr
    else:
        assert done.stderr == ""


CLOSED = """
import os, sys
from argnn.__main__ import main
number, *sys.argv[1:] = sys.argv[1:]
os.close(int(number))
setattr(sys, "stdout" if number == "1" else "stderr", None)
main()
"""


@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.torture)])
def test_standard_stream_that_is_closed(small_npz, tmp_path, cache, number):
    """A file that is opened next must not get the number of such a stream."""
    words = ("inspect", small_npz(), "--json")
    done = run_forked(code, CLOSED.lstrip(), number, *words, cwd=tmp_path)
    assert (done[0], done[2]) == (0, "")


def test_resume_with_other_code_is_told_and_recorded(argnn, monkeypatch, caplog):
    train = ("train", "mixed", "--model=gcn", "--epochs=2", "--out=run", "--workers=1")
    assert argnn(*train, "--split=0,1").err == ""
    folder = RunFolder(Path("run"))
    [first] = read_json(folder.code)["sessions"]
    assert first.keys() >= {"argnn", "torch", "git_commit", "git_changed"}
    again = ("train", "--resume=run", "--workers=1")
    argnn(*again)
    assert caplog.text == ""
    assert read_json(folder.code)["sessions"] == [first]

    new = {**first, "argnn": "99.0", "git_commit": "f" * 40}
    monkeypatch.setattr("argnn.runs.parallel.code_state", lambda: new)
    assert argnn(*again).code == 0
    text = f"the code has changed since the run began: argnn {first['argnn']} -> 99.0, git_commit"
    assert text in caplog.text
    assert text in folder.log.read_text()
    assert read_json(folder.code)["sessions"] == [first, new]
    argnn(*again)
    assert caplog.text.count("has changed") == 1

    folder.code.unlink()  # as of an earlier version
    argnn(*again)
    assert "argnn of an earlier version -> 99.0" in caplog.text
    folder.code.write_text('{"sessions": [3]}')
    done = argnn(*again)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "code.json: damaged" in done.err
