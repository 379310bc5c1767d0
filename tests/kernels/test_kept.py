"""Compiled kernels on disk: found again, rebuilt when damaged, and never another user's."""

import importlib
import logging
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import argnn
from argnn import folders
from argnn.errors import ConfigError
from argnn.kernels import kept

posix = pytest.mark.skipif(os.name != "posix", reason="needs owners and modes of files")
#: Somebody who may write nowhere.
NOBODY = 65534


def double(x):
    return 2 * x


def triple(x):
    return 3 * x


def compiled(function=double):
    kernel = kept.kept_jit(function)
    assert kernel(7) == function(7)
    return kernel


def was_found(function=double) -> bool:
    return sum(compiled(function).stats.cache_hits.values()) == 1


def only_file(folder: Path) -> Path:
    (path,) = [path for path in folder.rglob("*") if path.is_file()]
    return path


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch) -> tuple[Path, Path]:
    """An empty cache and an empty temporary folder."""
    first, second = tmp_path / "cache", tmp_path / "temporary"
    second.mkdir()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("ARGNN_CACHE", str(first))
    monkeypatch.setattr(tempfile, "tempdir", str(second))
    folders.warn_once.cache_clear()
    return first, second


def test_a_compiled_kernel_is_found_again(places):
    assert not was_found()
    assert was_found()
    assert list(places[1].iterdir()) == [], "the temporary folder is left alone"


def test_compiling_is_said_once(places, caplog):
    kept.say_compiling.cache_clear()
    with caplog.at_level(logging.INFO, logger="argnn"):
        compiled(double)
        compiled(triple)
    assert [r.message for r in caplog.records] == ["compiling kernels, once on this machine ..."]


def test_a_kernel_that_is_found_is_not_said_to_be_compiled(places, caplog):
    compiled(double)
    kept.say_compiling.cache_clear()
    with caplog.at_level(logging.INFO, logger="argnn"):
        assert was_found(double)
    assert not caplog.records


@posix
def test_nobody_else_can_write_what_is_kept(places):
    before = os.umask(0)
    try:
        compiled()
    finally:
        os.umask(before)
    path = only_file(places[0])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert was_found()


def opens(path: Path) -> bytes:
    """A pickle that makes a file when it is read."""

    class Program:
        def __reduce__(self):
            return open, (str(path), "w")

    return pickle.dumps(Program())


def flipped(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 4
    return bytes(changed)


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "one bit of the digest": lambda content: flipped(content, 0),
    "one bit of the code": lambda content: flipped(content, 999),
    "last byte": lambda content: flipped(content, -1),
    "longer": lambda content: content + b"\0",
    "garbage": lambda content: bytes(range(256)) * 20,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_kernel_is_built_again(damage, places):
    compiled()
    path = only_file(places[0])
    whole = path.read_bytes()
    assert len(whole) > 1000
    path.write_bytes(DAMAGES[damage](whole))
    assert not was_found()
    assert was_found(), "it was replaced"


def test_a_foreign_pickle_is_not_opened(places, tmp_path):
    compiled()
    only_file(places[0]).write_bytes(bytes(32) + opens(tmp_path / "ran"))
    assert not was_found()
    assert not (tmp_path / "ran").exists()


def test_one_kernel_is_not_taken_for_another(places):
    compiled(triple)
    other = only_file(places[0])
    content = other.read_bytes()
    other.unlink()
    compiled(double)
    only_file(places[0]).write_bytes(content)
    assert not was_found(double)


#: A small package: which file of it calls which, and reads what of it.
SOURCES = {
    "constants": "FACTOR = 2",
    "helper": """
from argnn.kernels.kept import kept_jit

@kept_jit
def halve(x):
    return x / 2
""",
    "builtin": """
from numba.core import types
from numba.extending import intrinsic

@intrinsic
def negate(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.neg(arguments[0])
    return types.int64(types.int64), generate
""",
    "middle": """
from argnn.kernels.kept import kept_jit
from small.builtin import negate
from small.helper import halve

@kept_jit
def negate_half(x):
    return halve(negate(x))
""",
    "first": """
from small.constants import FACTOR
from argnn.kernels.kept import kept_jit
from small.middle import negate_half

def over(function):
    def first(x):
        return FACTOR * function(x)
    return kept_jit(first)

first = over(negate_half)
""",
    "second": """
from argnn.kernels.kept import kept_jit
from small.helper import halve

def second(x):
    return 3 * halve(x)

second = kept_jit(second, error_model="numpy")
""",
    "third": """
from small import helper
from argnn.kernels.kept import kept_jit

@kept_jit
def third(x):
    return x + 1
""",
}


@pytest.fixture
def rebuilt(tmp_path, monkeypatch):
    """Import the small package with a text of it replaced: what was compiled, what it computes."""
    folder = tmp_path / "small"
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def build(changed=None, old="", new=""):
        for name in [name for name in sys.modules if name.split(".")[0] == "small"]:
            del sys.modules[name]
        for name, source in SOURCES.items():
            text = source.replace(old, new) if name == changed else source
            (folder / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        kept._digest_of_file.cache_clear()
        kernels = {name: getattr(importlib.import_module(f"small.{name}"), name) for name in NAMES}
        values = {name: kernel(8) for name, kernel in kernels.items()}
        return {name for name in NAMES if not kernels[name].stats.cache_hits}, values

    return build


NAMES = ("first", "second", "third")
CHANGES = {
    "nothing": ((), set(), {}),
    "its own file": (("third", "x + 1", "x + 5"), {"third"}, {"third": 13}),
    "a comment in its own file": (("second", "import halve", "import halve  #"), {"second"}, {}),
    "what another one calls": (
        ("middle", "halve(negate(x))", "halve(negate(x)) - 1"),
        {"first"},
        {"first": -10},
    ),
    "what two of them call": (
        ("helper", "x / 2", "x / 4"),
        {"first", "second"},
        {"first": -4, "second": 6},
    ),
    "an instruction": (("builtin", "builder.neg", "builder.not_"), {"first"}, {"first": -9}),
    "a constant": (("constants", "2", "3"), {"first"}, {"first": -12}),
    "a file of constants, not its values": (("constants", "= 2", "= 2  # two"), set(), {}),
    "an option": (("second", '"numpy"', '"python"'), {"second"}, {}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_rebuilds_the_kernels_that_hold_its_code_and_no_others(change, rebuilt):
    replacement, missed, values = CHANGES[change]
    before = {"first": -8, "second": 12, "third": 9}
    assert rebuilt() == (set(NAMES), before)
    assert rebuilt() == (set(), before)
    assert rebuilt(*replacement) == (missed, before | values)


def test_a_kernel_whose_parts_cannot_be_followed_is_refused():
    def calls_by_module(x):
        return folders.cache_root(x)

    with pytest.raises(TypeError, match="calls_by_module: changes of folders would not be noticed"):
        kept.kept_jit(calls_by_module)


def test_a_kernel_of_another_compiler_is_built_again(monkeypatch):
    compiled()
    monkeypatch.setattr(kept.numba, "__version__", "0")
    assert not was_found()
    assert was_found()


@posix
def test_a_file_that_others_can_write_is_not_used(places):
    compiled()
    path = only_file(places[0])
    path.chmod(0o620)
    assert not was_found()
    assert was_found(), "it was replaced"


@posix
@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(mode, places, caplog):
    compiled()
    folder = only_file(places[0]).parent
    folder.chmod(mode)
    with caplog.at_level(logging.WARNING):
        assert not was_found()
        assert was_found(), "in the temporary folder"
    assert caplog.messages == [f"{folder} is not used for kernels: another user could write to it"]
    assert only_file(places[1]).parent.parent == places[1]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("owned", ["file", "folder"])
def test_what_belongs_to_another_user_is_not_used(owned, places):
    compiled()
    path = only_file(places[0])
    os.chown(path if owned == "file" else path.parent, NOBODY, NOBODY)
    assert not was_found()


def test_without_a_place_there_is_one_line_and_no_cache(places, monkeypatch, caplog):
    places[0].write_text("a file, not a folder")
    monkeypatch.setattr(tempfile, "tempdir", str(places[0] / "none"))
    with caplog.at_level(logging.WARNING):
        assert not was_found()
        assert not was_found()
    (message,) = caplog.messages
    assert message.startswith("compiled kernels cannot be kept")


def test_a_user_without_a_home_keeps_kernels_in_the_temporary_folder(places, monkeypatch):
    monkeypatch.delenv("ARGNN_CACHE")

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert not was_found()
    assert was_found()
    assert only_file(places[1])


FUSED = """
import torch
from argnn import functional as AF, kernels
with kernels.use("fused"):
    print(AF.aggregate(torch.ones(3, 2), torch.tensor([[0, 1], [1, 2]])).sum().item())
"""


@pytest.fixture
def container(tmp_path):
    """Run a program where package and home folder cannot be written, not even by root.

    Gives the result and the cache, which can be written if it is asked for.
    """
    read_only, writable = tmp_path / "read_only", tmp_path / "writable"
    shutil.copytree(Path(argnn.__file__).parent, read_only / "argnn")
    writable.mkdir()
    package = [read_only, *(path for path in read_only.rglob("*") if path.is_dir())]
    for folder in package:
        folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root and not shutil.which("setpriv"):
        pytest.skip("root needs setpriv to give up its right to write everywhere")
    without_rights = ["setpriv", "--bounding-set=-all"] if is_root else []

    def run(code: str, *, has_cache: bool):
        cache = writable if has_cache else read_only
        done = subprocess.run(
            [*without_rights, sys.executable, "-c", code],
            cwd=read_only,
            env={
                "PATH": os.environ["PATH"],
                "OMP_NUM_THREADS": "1",
                "HOME": str(read_only),
                "PYTHONPATH": str(read_only),
                "TORCHINDUCTOR_CACHE_DIR": str(writable),  # torch does not start without
                "ARGNN_CACHE": str(cache / "argnn-cache"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done, cache

    yield run
    for folder in package:
        folder.chmod(0o755)


@posix
@pytest.mark.slow
@pytest.mark.parametrize("has_cache", [pytest.param(True, marks=pytest.mark.torture), False])
def test_kernels_run_in_a_read_only_container(has_cache, container):
    probe, _ = container("open('argnn/x', 'w')", has_cache=has_cache)
    assert "PermissionError" in probe.stderr, "the folder can be written after all"
    no_temporary = "import tempfile\ntempfile.tempdir = '.'\n"
    done, cache = container(no_temporary + FUSED, has_cache=has_cache)
    assert (done.returncode, done.stdout) == (0, "4.0\n"), done.stderr
    kept_now = [path.name for path in cache.rglob("_gather_sum-*")]
    assert len(kept_now) == has_cache
    lines = done.stderr.splitlines()
    assert [line.startswith("compiled kernels cannot be kept") for line in lines] == (
        [] if has_cache else [True]
    )


def test_a_switched_off_compiler_is_named(monkeypatch):
    monkeypatch.setattr(kept.numba.config, "DISABLE_JIT", 1)
    with pytest.raises(ConfigError, match="unset NUMBA_DISABLE_JIT"):
        kept.kept_jit(double)
