"""The results file: nothing is lost, nothing is taken for what it is not."""

import json
import logging
import os

import pytest

from argnn.errors import RunError
from argnn.store.results import FORMAT, ResultsFile, read_rows
from result_rows import append_row


def row(cell="aa", **changes):
    values = {
        "cell": cell,
        "experiment": "mine",
        "task": "node",
        "data": "mixed",
        "directed": False,
        "method": "gcn",
        "model": "gcn",
        "preset": "default",
        "split": 0,
        "seed": 0,
        "config": {"threads": 1},
        "settings": "s",
        "test": {"f1": 0.1 + 0.2},
        "val": {"f1": 0.5},
        "oracle": None,
        "chosen_epoch": 3,
        "epochs_run": 5,
        "seconds": 1.5,
        "versions": {"argnn": "0.1.0"},
    }
    return {**values, **changes}


def failed(cell="aa", **changes):
    scores = ("test", "val", "oracle", "chosen_epoch", "epochs_run", "seconds")
    kept = {key: value for key, value in row(cell).items() if key not in scores}
    return {**kept, "error": "DivergenceError: nan", **changes}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results" / "mine.jsonl"


def test_what_is_appended_is_read_bit_for_bit(path):
    append_row(path, row("aa"))
    append_row(path, failed("bb"))
    assert read_rows(path) == [{"format": FORMAT, **row("aa")}, {"format": FORMAT, **failed("bb")}]
    lines = path.read_text().splitlines()
    assert [json.loads(line)["cell"] for line in lines] == ["aa", "bb"]
    assert all(line.startswith('{"format": 1, "cell"') for line in lines)


def test_later_row_replaces_an_earlier_one_but_a_failure_no_scores(path):
    for item in (failed("aa"), row("bb"), row("aa", split=1), failed("bb"), row("aa", split=2)):
        append_row(path, item)
    found = {item["cell"]: item for item in read_rows(path)}
    assert found["aa"]["split"] == 2
    assert "error" not in found["bb"]
    assert len(path.read_text().splitlines()) == 5


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_refused(path, value):
    append_row(path, row())
    before = path.read_bytes()
    with pytest.raises(RunError, match="not a finite number"):
        append_row(path, row("bb", test={"f1": value}))
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_are_not_read(path, number):
    append_row(path, row("aa", seconds=12345.0))
    append_row(path, row("bb"))
    path.write_text(path.read_text().replace("12345.0", number))
    with pytest.raises(RunError, match="line 1: damaged, not JSON"):
        read_rows(path)


@pytest.mark.parametrize("cut", [1, 2, 9, 10, 11, 40, 300, -2])
def test_cut_line_is_set_aside(path, caplog, cut):
    append_row(path, row("aa"))
    whole = path.read_bytes()
    append_row(path, row("bb"))
    tail = path.read_bytes()[len(whole) :][:cut]
    damaged = whole + tail
    path.write_bytes(damaged)

    with caplog.at_level(logging.WARNING):
        assert [item["cell"] for item in read_rows(path)] == ["aa"]
    assert path.read_bytes() == damaged, "reading changes nothing"
    assert "its last line was cut off" in caplog.text

    aside = path.with_name("mine.jsonl.damaged-tail")
    caplog.clear()
    with caplog.at_level(logging.WARNING), ResultsFile(path) as file:
        assert [item["cell"] for item in file.rows] == ["aa"]
        assert path.read_bytes() == whole
        file.append(row("cc"))
    assert f"is now in {aside}" in caplog.text
    assert aside.read_bytes() == tail + b"\n"
    assert [item["cell"] for item in read_rows(path)] == ["aa", "cc"]


@pytest.mark.parametrize("tail", [b'{"format": 1, "cell": "b\n', b"\0\0\0\0", b"\0\0\n"])
def test_broken_last_line_is_set_aside(path, tail):
    append_row(path, row("aa"))
    with path.open("ab") as file:
        file.write(tail)
    append_row(path, row("cc"))
    assert [item["cell"] for item in read_rows(path)] == ["aa", "cc"]
    assert path.with_name("mine.jsonl.damaged-tail").read_bytes() == tail.rstrip(b"\n") + b"\n"


def test_second_cut_line_is_kept_beside_the_first(path):
    for tail in (b'{"format": 1, "first', b'{"format": 1, "second'):
        append_row(path, row("aa"))
        with path.open("ab") as file:
            file.write(tail)
    append_row(path, row("bb"))
    aside = path.with_name("mine.jsonl.damaged-tail").read_text()
    assert aside == '{"format": 1, "first\n{"format": 1, "second\n'


def test_missing_newline_alone_loses_nothing(path):
    append_row(path, row("aa"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert len(read_rows(path)) == 1
    append_row(path, row("bb"))
    assert [item["cell"] for item in read_rows(path)] == ["aa", "bb"]
    assert not path.with_name("mine.jsonl.damaged-tail").exists()


def test_empty_lines_are_nothing(path):
    append_row(path, row("aa"))
    path.write_bytes(b"\n" + path.read_bytes() + b"\n\n")
    append_row(path, row("bb"))
    assert [item["cell"] for item in read_rows(path)] == ["aa", "bb"]


def test_empty_file_is_a_beginning(path):
    path.parent.mkdir()
    path.touch()
    assert read_rows(path) == []
    append_row(path, row("aa"))
    assert len(read_rows(path)) == 1


def lines_of(*rows):
    return [json.dumps({"format": FORMAT, **item}) for item in rows]


FOREIGN = [
    ("not JSON, line 2 of 3", 2, '{"format": 1, "cell": "b', "line 2: damaged, not JSON"),
    ("somebody's last line", 3, "# Notes of somebody", "line 3: damaged, not JSON"),
    ("a number", 3, "3", "line 3: not a row of argnn bench"),
    ("another object", 3, '{"a": 1}', "line 3: not a row of argnn bench"),
    ("no key", 2, lines_of({"cell": "b"})[0], "line 2: damaged, has no 'experiment'"),
    (
        "no scores",
        2,
        json.dumps({k: v for k, v in {"format": 1, **row()}.items() if k != "val"}),
        "line 2: damaged, has no 'val'",
    ),
    (
        "split",
        2,
        lines_of(row(split="0"))[0],
        "line 2: damaged, split must be a whole number (got '0')",
    ),
    (
        "seed",
        2,
        lines_of(row(seed=True))[0],
        "line 2: damaged, seed must be a whole number (got True)",
    ),
    (
        "error",
        2,
        lines_of(failed(error=None))[0],
        "line 2: damaged, error must be a text (got None)",
    ),
    (
        "newer",
        2,
        json.dumps({**row(versions={"argnn": "9.1"}), "format": 2}),
        "line 2: has format 2, written by argnn 9.1; this version reads format 1",
    ),
    (
        "unknown",
        3,
        json.dumps({"format": "x"}),
        "line 3: has format 'x', of an unknown version; this version reads format 1",
    ),
]


@pytest.mark.parametrize(("line", "text", "message"), [case[1:] for case in FOREIGN])
def test_damage_is_an_error_and_nothing_is_changed(path, line, text, message):
    lines = lines_of(row("aa"), row("bb"), row("cc"))
    lines[line - 1] = text
    path.parent.mkdir()
    path.write_text("\n".join(lines) + "\n")
    before = path.read_bytes()
    for use in (read_rows, lambda where: append_row(where, row("dd"))):
        with pytest.raises(RunError) as caught:
            use(path)
        assert str(caught.value).startswith(f"{path}, {message}")
        assert str(caught.value).endswith("nothing was changed")
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["mine.jsonl"]


def test_changed_row_is_refused(path):
    for cell in ("aa", "bb"):
        append_row(path, row(cell, seed=33))
    path.write_text(path.read_text().replace('"seed": 33', '"seed": 73', 1))
    before = path.read_bytes()
    for use in (read_rows, lambda where: append_row(where, row("dd"))):
        with pytest.raises(RunError) as caught:
            use(path)
        assert str(caught.value) == (
            f"{path}, line 1: damaged, its content does not match its checksum; nothing was changed"
        )
    assert path.read_bytes() == before


def test_changed_last_line_is_not_taken_for_one_that_was_cut(path):
    append_row(path, row("aa"))
    path.write_text(path.read_text().replace('"cell"', '"cell'))
    with pytest.raises(RunError, match="line 1: damaged, not JSON"):
        read_rows(path)


def test_rows_of_earlier_versions_are_read_with_one_warning(path, caplog):
    path.parent.mkdir()
    path.write_text("\n".join(lines_of(row("aa"), row("bb"))) + "\n")
    append_row(path, row("cc"))
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert [item["cell"] for item in read_rows(path)] == ["aa", "bb", "cc"]
    [record] = caplog.records
    assert record.getMessage().startswith(f"{path}: 2 of 3 rows have no checksum")


def test_one_line_of_somebody_else_is_left_alone(path):
    path.parent.mkdir()
    path.write_text("dear diary")
    with pytest.raises(RunError, match="line 1: damaged, not JSON"):
        append_row(path, row())
    assert path.read_text() == "dear diary"


@pytest.mark.parametrize("text", ["[" * 5000, '{"format": ' * 80 + "1" + "}" * 80])
def test_nested_lines_are_damage(path, text):
    path.parent.mkdir()
    path.write_text("\n".join([text, *lines_of(row())]) + "\n")
    with pytest.raises(RunError, match="line 1: damaged, not JSON"):
        read_rows(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.jsonl"):
        read_rows(tmp_path / "none.jsonl")
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        read_rows(tmp_path)


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(NotADirectoryError, match="taken"):
        append_row(tmp_path / "taken" / "mine.jsonl", row())


def test_full_disk_takes_back_what_it_took(path, monkeypatch):
    append_row(path, row("aa"))
    before = path.read_bytes()
    whole = os.write
    monkeypatch.setattr(os, "write", lambda file, content: whole(file, content[:20]))
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
        append_row(path, row("bb"))
    assert path.read_bytes() == before


def test_second_writer_is_refused(path):
    with ResultsFile(path), pytest.raises(RunError, match="another process is using it"):
        ResultsFile(path).__enter__()
    with ResultsFile(path) as file:
        file.append(row())
    assert len(read_rows(path)) == 1


@pytest.mark.parametrize(
    "damage",
    [
        {"twins": 3},
        {"twins": {"test": 5}},
        {"twins": {"test": 5, "with_twin": "2"}},
        {"twins": {"test": 5, "with_twin": 2}},
        {"twins": {"test": 5, "with_twin": 2}, "test_without_twins": 0.5},
    ],
    ids=str,
)
def test_counts_of_twins_are_checked(tmp_path, damage):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"format": FORMAT, **row(**damage)}) + "\n")
    with pytest.raises(RunError, match="line 1: damaged"):
        read_rows(path)
