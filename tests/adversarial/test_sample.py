"""A sample of every attack; ``make torture`` tries all of them."""

import sys

import pytest

from forked import code, run_forked

from .__main__ import table
from .process import Ended
from .world import contents

ALL = "import sys; from adversarial.__main__ import main; sys.exit(main())"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the limits of Linux")
def test_sample_of_all_attacks(tmp_path):
    words = ("--count=1", "--jobs=1")
    done, out, errors = run_forked(code, ALL, *words, cwd=tmp_path, TMPDIR=str(tmp_path))
    assert (done, errors) == (0, ""), out + errors
    for attack in ("kills", "interrupts", "flips", "mutations", "crafted", "two at once"):
        assert f"| {attack} | 1 | " in out
    assert not list(tmp_path.glob("argnn-torture-*"))


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        (Ended(0, "scores", ""), "done"),
        (Ended(0, "", "argnn: a warning\n"), "done"),
        (Ended(2, "", "argnn: error: no such file\n"), "refused"),
        (Ended(1, "", ""), "code 1: "),
        (Ended(-9, "", ""), "code -9: "),
        (
            Ended(2, "", "argnn: error: no\nsecond line\n"),
            "code 2: argnn: error: no\nsecond line\n",
        ),
        (Ended(2, "", f"argnn: {5000 * 'x'}\n"), f"5007 letters: argnn: {193 * 'x'}"),
    ],
)
def test_ends_are_told_apart(ended, kind):
    assert ended.kind == kind


def test_traceback_is_never_a_good_end():
    text = 'Traceback (most recent call last):\n  File "/a/b/c.py", line 3\nOSError: no'
    assert Ended(0, text, "").kind.startswith("traceback")
    assert Ended(2, "", text).kind == "traceback at b/c.py:3: OSError: no"


def test_only_measured_values_may_differ(tmp_path):
    def written(name, text):
        (tmp_path / name).mkdir()
        (tmp_path / name / "row.json").write_text(text)
        return contents(tmp_path / name)

    first = written("first", '{"score": 0.5, "seconds": 1.5}')
    assert written("slower", '{"score": 0.5, "seconds": 2.5}') == first
    assert written("other", '{"score": 0.6, "seconds": 1.5}') != first


def test_table_counts_failures():
    rows = [["kills", "a", "same"], ["kills", "b", "refused"], ["kills", "c", "lost a file"]]
    assert table(rows).splitlines()[-1] == "| kills | 3 | 1 | 1 | 1 |"
