"""Code that torch's compiler and Triton keep: not in a folder of another user, and not nowhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from argnn.kernels import compiler_folders

INDUCTOR, TRITON = "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs owners and modes of files")


@pytest.fixture
def folder_of_torch(cache, tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "torchinductor_me"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv(INDUCTOR, str(folder))
    return folder


def test_a_private_folder_of_torch_stays(folder_of_torch):
    compiler_folders.avoid_foreign_inductor_folder()
    assert os.environ[INDUCTOR] == str(folder_of_torch)


@pytest.mark.parametrize("fault", ["mode", "owner", "link"])
def test_a_folder_that_others_can_write_is_left(fault, folder_of_torch, cache):
    if fault == "mode":
        folder_of_torch.chmod(0o777)
    elif fault == "owner":
        if os.geteuid() != 0:
            pytest.skip("needs root")
        os.chown(folder_of_torch, 65534, 65534)
    else:
        folder_of_torch.rename(folder_of_torch.with_name("theirs"))
        folder_of_torch.symlink_to("theirs")
    compiler_folders.avoid_foreign_inductor_folder()
    assert os.environ[INDUCTOR] == str(cache / f"argnn-inductor-{os.geteuid()}")


def test_a_folder_that_the_user_chose_stays(folder_of_torch, monkeypatch):
    ours = folder_of_torch.rename(folder_of_torch.with_name("shared_by_us"))
    ours.chmod(0o777)
    monkeypatch.setenv(INDUCTOR, str(ours))
    compiler_folders.avoid_foreign_inductor_folder()
    assert os.environ[INDUCTOR] == str(ours)


@pytest.mark.slow
def test_torch_is_led_away_when_argnn_is_imported(cache, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    environment = {**os.environ, "TMPDIR": str(shared), "USER": "me", "LOGNAME": "me"}
    environment.pop(INDUCTOR, None)
    (shared / "torchinductor_me").mkdir()
    (shared / "torchinductor_me").chmod(0o777)
    code = "import argnn.nn; from torch._inductor.runtime import cache_dir_utils as c"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print(c.cache_dir())"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(cache / f"argnn-inductor-{os.geteuid()}"), done.stderr


@pytest.fixture
def no_choice(cache, monkeypatch) -> None:
    monkeypatch.setenv(TRITON, "")  # so that it is restored
    monkeypatch.delenv(TRITON)


def test_triton_keeps_its_folder_in_the_home_folder(no_choice, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    compiler_folders.find_triton_folder()
    assert TRITON not in os.environ


def test_triton_gets_a_folder_where_the_home_folder_cannot_be_written(
    no_choice, cache, tmp_path, monkeypatch
):
    (tmp_path / "home").write_text("a file, not a folder")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    compiler_folders.find_triton_folder()
    assert os.environ[TRITON] == str(cache / f"argnn-triton-{os.geteuid()}")
