"""YAML files and values: plain ones are read, everything that grows is refused in one line."""

import os
import subprocess
import sys
import textwrap

import pytest

from adversarial import crafted
from argnn.errors import ConfigError
from argnn.yaml_files import parsed_yaml, yaml_content


def test_plain_values():
    text = "a: 1\nb: [0.5, 1e-3, null, true, word]\nc: {d: '1'}\n"
    assert parsed_yaml(text, "file") == {
        "a": 1,
        "b": [0.5, 0.001, None, True, "word"],
        "c": {"d": "1"},
    }


def test_dates_are_texts():
    assert parsed_yaml("[2024-01-31, 2024-99-99]", "file") == ["2024-01-31", "2024-99-99"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (crafted.alias_bomb(), "anchors (&) and aliases (*) are not read (line 1"),
        ("a: &b {}\n", "anchors (&)"),
        ("*a", "anchors (&)"),
        ("[" * 60 + "]" * 60, "nested too deeply"),
        ("[" * 500_000, "nested too deeply"),
        ("{a: " * 60, "nested too deeply"),
        ("9" * 5000, "the number is too long"),
        ("1:" * 50_000 + "1", "the number is too long"),
        ("0x" + "f" * 5000, "the number is too long"),
        ("!!int word", "invalid literal"),
        ("!!timestamp 2024-99-99", "not YAML"),
        ("a: 1\na: 2", "key 'a' is there twice (line 2, column 1)"),
        ("a: 1\n---\nb: 2", "found another document"),
        (b"\xff\xfe\xff", "not YAML"),
        ("x" * (1 << 20) + "y", "larger than 1 MiB"),
    ],
    ids=range(15),
)
def test_refused_in_one_line(text, message):
    with pytest.raises(ConfigError) as refused:
        parsed_yaml(text, "mine.yaml")
    assert str(refused.value).startswith("mine.yaml: ")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ConfigError, match="not a file"):
        yaml_content(tmp_path / "pipe.yaml")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the limits of Linux")
def test_bombs_take_little_time_and_memory():
    code = """
        import resource, sys
        from argnn.errors import ConfigError
        from argnn.yaml_files import parsed_yaml
        for kind, limit in ((resource.RLIMIT_CPU, 30), (resource.RLIMIT_AS, 2**30)):
            resource.setrlimit(kind, (limit, limit))
        for text in sys.stdin.read().split(chr(0)):
            try:
                parsed_yaml(text, "mine.yaml")
            except ConfigError:
                print("refused")
    """
    bombs = [crafted.alias_bomb(), "[" * 900_000, "1:" * 400_000 + "1", "{a: " * 200_000]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        input=chr(0).join(bombs),
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.stdout.split() == ["refused"] * len(bombs), done.stderr[-500:]
