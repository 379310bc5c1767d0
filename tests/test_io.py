import errno
import json
import logging
import math
import os
import shutil
import threading
from pathlib import Path

import pytest
import torch

from argnn.errors import RunError
from argnn.files import (
    fingerprint,
    place_folder,
    read_checked,
    read_json,
    read_tensors,
    tensors_digest,
    write_checked,
    write_json,
    write_output,
    write_tensors,
)
from argnn.folders import scratch_folder
from argnn.store.run_folder import (
    RunFolder,
    create_run,
    default_run_path,
    open_run,
    read_checkpoint,
    require_free,
    write_checkpoint,
)

TENSORS = {
    "float": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
    "double": torch.tensor(1 / 3, dtype=torch.float64),
    "bool": torch.tensor([True, False]),
    "uint8": torch.arange(5, dtype=torch.uint8),
    "int64": torch.tensor([2**62]),
    "empty": torch.empty(0, 3),
    "strided": torch.arange(6.0).view(2, 3).t(),
}


def files(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_json_round_trip_leaves_only_the_file(tmp_path):
    path = tmp_path / "new" / "a.json"
    value = {"a": [1, 0.1, None], "b": "ä"}
    write_json(path, value)
    assert read_json(path, ("a", "b")) == value
    assert files(tmp_path) == ["a.json", "new"]


def test_json_refuses_what_is_not_json(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"a": math.nan})
    assert read_json(path) == {"a": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"3", "must hold an object .got int."),
        (b"[" * 100_000, "not JSON .nested too deeply."),
        (b'{"a": ' * 80 + b"1" + b"}" * 80, "not JSON .nested too deeply."),
        (b'{"a": ' + b"1" * 5000 + b"}", "not JSON .Exceeds the limit"),
        (b'{"a": 1', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[1]", "must hold an object .got list."),
        (b'{"b": 1}', "has no 'a'"),
    ],
)
def test_damaged_json_is_one_line_that_names_the_file(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(RunError, match=message) as caught:
        read_json(path, ("a",))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_that_is_a_folder(tmp_path):
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        read_json(tmp_path)


@pytest.fixture(params=["links", "no links"])
def hard_links(request, monkeypatch):
    """Whether the file system has hard links."""
    if request.param == "no links":

        def refuse(*_):
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)


def test_output_is_new_or_asked_for(tmp_path, hard_links):
    path = tmp_path / "new" / "a.csv"
    write_output(path, b"one", force=False)
    with pytest.raises(RunError, match="a.csv: is there already; --force replaces it"):
        write_output(path, b"two", force=False)
    assert path.read_bytes() == b"one"
    write_output(path, b"two", force=True)
    assert path.read_bytes() == b"two"
    assert files(tmp_path) == ["a.csv", "new"]


@pytest.mark.parametrize("force", [True, False])
def test_output_goes_through_no_link_and_into_no_folder(tmp_path, hard_links, force):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = files(tmp_path)
    for name in ("link", "dangling", "folder", "pipe"):
        with pytest.raises(RunError, match=f"{name}: is (a|not a) "):
            write_output(tmp_path / name, b"x", force=force)
    assert files(tmp_path) == before
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize("turn", range(5))
def test_of_writers_that_meet_one_wins(tmp_path, hard_links, monkeypatch, turn):
    path, together, usual = tmp_path / "a", threading.Barrier(4), os.fsync

    def fsync(file):
        usual(file)
        together.wait(timeout=60)  # all have looked at the path, and none has written to it

    monkeypatch.setattr(os, "fsync", fsync)
    outcomes = {}

    def write(number):
        try:
            write_output(path, b"%d" % number, force=False)
            outcomes[number] = "won"
        except RunError as error:
            outcomes[number] = str(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=60)
    [winner] = [number for number, outcome in outcomes.items() if outcome == "won"]
    assert path.read_bytes() == b"%d" % winner
    assert sorted(outcomes.values())[:-1] == [f"{path}: is there already; --force replaces it"] * 3
    assert files(tmp_path) == ["a"]


def test_checked_json_comes_back_without_its_checksum(tmp_path, caplog):
    path = tmp_path / "a.json"
    write_checked(path, {"b": (1, 0.1), "a": {2: None, 10: "ä", 1: -0.0}})
    assert read_checked(path, ("a",)) == {"b": [1, 0.1], "a": {"2": None, "10": "ä", "1": -0.0}}
    assert "digest" in json.loads(path.read_text())
    assert caplog.records == []
    path.write_text(path.read_text().replace("0.1", "0.2"))
    with pytest.raises(RunError, match="damaged, its content does not match its checksum"):
        read_checked(path)


def test_json_of_an_earlier_version_is_read_with_a_warning(tmp_path, caplog):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with caplog.at_level(logging.WARNING):
        assert read_checked(path, ("a",)) == {"a": 1}
    [record] = caplog.records
    assert record.getMessage().startswith(f"{path}: has no checksum")


def test_tensors_round_trip_exactly(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, TENSORS, {"model": "argnn", "sizes": [1, 2]})
    tensors, facts = read_tensors(path)
    assert facts == {"model": "argnn", "sizes": [1, 2]}
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)


def test_equal_tensors_give_equal_bytes(tmp_path):
    facts = {str(number): number for number in range(9)}
    for name in ("a", "b"):
        write_tensors(tmp_path / name, TENSORS, facts)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_shared_memory_is_written_twice(tmp_path):
    shared = torch.ones(2)
    write_tensors(tmp_path / "a", {"x": shared, "y": shared}, {})
    assert torch.equal(read_tensors(tmp_path / "a")[0]["y"], shared)


def test_every_truncation_of_a_tensor_file_is_noticed(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"x": torch.arange(4.0)}, {"a": 1})
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(RunError, match="damaged"):
            read_tensors(path)


def test_a_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"x": torch.arange(4.0)}, {})
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(RunError, match="does not match its checksum"):
        read_tensors(path)


def test_facts_of_a_tensor_file_are_checked(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"x": torch.arange(4.0)}, {"score": 33.25, "best": math.inf})
    path.write_bytes(path.read_bytes().replace(b"33.25", b"73.25"))
    with pytest.raises(RunError, match="does not match its checksum"):
        read_tensors(path)


def test_tensor_file_of_an_earlier_version_is_read(tmp_path):
    from safetensors.torch import save_file

    held = {"x": torch.arange(4.0)}
    facts = {"a": 1, "digest": tensors_digest(held)}  # of the tensors alone
    save_file(held, tmp_path / "a", metadata={"argnn": json.dumps(facts)})
    assert read_tensors(tmp_path / "a")[1] == {"a": 1}


def test_foreign_tensor_file_is_refused(tmp_path):
    from safetensors.torch import save_file

    for number, metadata in enumerate([None, {"argnn": "[]"}, {"argnn": "3"}, {"argnn": "{}"}]):
        path = tmp_path / f"{number}.safetensors"
        save_file({"x": torch.ones(1)}, path, metadata=metadata)
        with pytest.raises(RunError, match="not a tensor file of argnn"):
            read_tensors(path)
    with pytest.raises(RunError, match="no such file"):
        read_tensors(tmp_path / "none")


def test_checkpoint_keeps_floats_exactly(tmp_path):
    path = tmp_path / "c.safetensors"
    values = {"best": -math.inf, "history": [{"loss": 0.1 + 0.2, "val": None}, {"loss": 1e-310}]}
    write_checkpoint(path, TENSORS, values, "abc")
    tensors, found = read_checkpoint(path, "abc")
    assert found == values
    assert torch.equal(tensors["float"], TENSORS["float"])


def test_checkpoint_of_another_configuration_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, {}, {}, "abc")
    with pytest.raises(RunError, match="another configuration"):
        read_checkpoint(path, "abd")
    write_tensors(path, {}, {"run": "abc"})
    with pytest.raises(RunError, match="has no 'values'"):
        read_checkpoint(path, "abc")


def test_fingerprint_sees_every_value():
    base = {"a": 1, "b": {"c": 0.1}}
    assert fingerprint(base) == fingerprint({"b": {"c": 0.1}, "a": 1})
    assert fingerprint(base) != fingerprint({"a": 1, "b": {"c": 0.2}})
    assert fingerprint({"a": 1}) != fingerprint({"a": 1.0})


def test_digest_sees_values_shapes_and_types():
    base = tensors_digest({"x": torch.zeros(4)})
    assert base == tensors_digest({"x": torch.zeros(8)[::2]})
    others = [torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32), torch.tensor([0, 0, 0, 1.0])]
    assert base not in {tensors_digest({"x": other}) for other in others}


def test_new_run_has_its_configuration(tmp_path):
    folder = create_run(tmp_path / "a" / "run", {"lr": 0.1})
    assert files(folder.root) == ["config.json", "log.txt"]
    again, config = open_run(folder.root)
    assert (again, config) == (folder, {"lr": 0.1})
    folder.note("one\ntwo")
    assert [line.split(" ", 1)[1] for line in folder.log.read_text().splitlines()] == ["one", "two"]


def test_empty_folder_may_be_used(tmp_path):
    create_run(tmp_path, {})
    assert files(tmp_path) == ["config.json", "log.txt"]


def test_folder_that_a_full_disk_left_may_be_used_again(tmp_path, monkeypatch):
    def full(path, value):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patch:
        patch.setattr("argnn.store.run_folder.write_json", full)
        with pytest.raises(OSError, match="No space left"):
            create_run(tmp_path / "run", {})
    assert files(tmp_path / "run") == ["log.txt"]
    (tmp_path / "run" / ".writing-abc").mkdir()  # as a kill leaves it
    create_run(tmp_path / "run", {})
    with pytest.raises(RunError, match="holds a run already"):
        create_run(tmp_path / "run", {})


def test_log_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "log.txt").write_text("mine")
    with pytest.raises(RunError, match="the folder is not empty"):
        create_run(tmp_path, {})


def test_folder_that_another_process_uses(tmp_path):
    (tmp_path / "log.txt").touch()
    with RunFolder(tmp_path).held(), pytest.raises(RunError, match="another process is using it"):
        create_run(tmp_path, {})
    create_run(tmp_path, {})


def test_file_system_without_locks_gives_a_warning(tmp_path, monkeypatch, caplog):
    def refuse(file, kind):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    create_run(tmp_path, {})
    assert "cannot be locked" in caplog.text


@pytest.mark.parametrize("kind", ["file", "run", "folder with a file", "dangling link", "link"])
def test_nothing_is_overwritten(tmp_path, kind):
    path = tmp_path / "out"
    if kind == "file":
        path.write_text("mine")
    elif kind == "dangling link":
        path.symlink_to(tmp_path / "nowhere")
    elif kind == "link":
        (tmp_path / "empty").mkdir()
        path.symlink_to(tmp_path / "empty")
    else:
        path.mkdir()
        (path / ("config.json" if kind == "run" else "notes.txt")).write_text("mine")
    before = files(tmp_path)
    for refuse in (require_free, lambda path: create_run(path, {})):
        with pytest.raises(RunError, match=str(path)):
            refuse(path)
    assert files(tmp_path) == before


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "run", tmp_path / "file" / "a" / "run"):
        with pytest.raises(NotADirectoryError, match="file"):
            create_run(path, {})


def test_changed_configuration_is_noticed(tmp_path):
    folder = create_run(tmp_path / "run", {"lr": 0.1})
    stored = json.loads(folder.config.read_text())
    stored["run"]["lr"] = 0.2
    folder.config.write_text(json.dumps(stored))
    with pytest.raises(RunError, match="was changed after the run began"):
        open_run(folder.root)
    folder.config.write_text('{"fingerprint": "", "run": 3}')
    with pytest.raises(RunError, match="damaged, run must be a mapping of names to values .got 3."):
        open_run(folder.root)


def test_missing_run(tmp_path):
    with pytest.raises(RunError, match="no such run folder"):
        open_run(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"config.json"):
        open_run(tmp_path)


def test_default_path_says_what_runs_and_is_free(tmp_path):
    first = default_run_path("/some/my graph.npz", "argnn", "paper", tmp_path)
    assert first.name.startswith("my_graph-argnn-paper-20")
    first.mkdir()
    second = default_run_path("/some/my graph.npz", "argnn", "paper", tmp_path)
    assert not second.exists()


def test_no_file_of_a_split_lies_outside_its_folder(tmp_path):
    folder = RunFolder(tmp_path)
    for path in (folder.weights(3), folder.result(3), folder.checkpoint(3), folder.model(3)):
        assert tmp_path / "split-3" in path.parents


@pytest.mark.parametrize(
    ("owner", "name", "late"),
    [(Path, "mkdir", True), (shutil, "rmtree", False), (shutil, "rmtree", True)],
)
def test_ctrl_c_at_the_worst_moment_leaves_no_scratch_folder(
    tmp_path, monkeypatch, owner, name, late
):
    """Right after the folder was made, when it is about to be removed, or right after that."""
    real, came = getattr(owner, name), []

    def interrupted(path, **options):
        if came:
            return real(path, **options)
        came.append(path)
        if late:
            real(path, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path):
        pass
    assert came
    assert list(tmp_path.iterdir()) == []


def test_older_folder_comes_back_where_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    new, path, aside = (tmp_path / name for name in ("new", "path", "aside"))
    for folder in (new, path):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    replace = Path.replace

    def failing(source, target):
        if source == new:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OSError, match="No space left"):
        place_folder(new, path, aside)
    assert ((path / "file").read_text(), aside.exists()) == ("path", False)
    monkeypatch.undo()
    place_folder(new, path, aside)
    assert ((path / "file").read_text(), aside.exists(), new.exists()) == ("new", False, False)
