"""Every measured number of README and docs comes from a file in docs/results."""

import re
import runpy
from pathlib import Path

import pytest

from result_rows import finished, write_rows

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "write_pages.py"))
#: Pages with numbers that are limits or counts of attacks, not measurements of a model.
OTHERS = ("own_data.md", "security.md", "stores.md", "torture.md")
PAGES = [path for path in SCRIPT["PAGES"] if path.name not in OTHERS]
FILES = sorted((ROOT / "docs" / "results").glob("*.csv"))

MEASURED = {
    "an interval": r"\d ± \d",
    "a score in per cent": r"\b[1-9]\d\.\d{1,3}\b",
    "a share": r"\b[01]\.\d\d+\b",
    "a time, a size or a ratio": r"\b\d[\d,.]* (?:ms|ns|s|seconds|MiB|x|times|points)\b",
}


def unmarked(page: str) -> str:
    """A page without its blocks of code, words in code, generated tables and marked numbers."""
    page = re.sub(r"^ *```.*?^ *```$", "", page, flags=re.DOTALL | re.MULTILINE)
    page = SCRIPT["NUMBER"].sub("", SCRIPT["TABLE"].sub("", page))
    return re.sub(r"`[^`]*`|\$[^$]*\$", "", page)


@pytest.mark.parametrize("page", SCRIPT["PAGES"], ids=lambda path: path.name)
def test_page_is_what_the_script_writes(page):
    text = page.read_text(encoding="utf-8")
    assert text == SCRIPT["written"](text), "run scripts/write_pages.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_no_measured_number_stands_outside_a_marker(page):
    text = unmarked(page.read_text(encoding="utf-8"))
    for line in text.splitlines():
        for kind, pattern in MEASURED.items():
            found = re.search(pattern, line)
            assert found is None, f"{found[0]!r} looks like {kind}: {line}"


@pytest.mark.parametrize(
    "sentence",
    ["Cora 87.09 ± 0.76", "it reaches 87.1 on Cora", "an AUROC of 0.97", "in 13 ms", "0.9 x GCN"],
)
def test_a_number_typed_by_hand_is_found(sentence):
    assert any(re.search(pattern, sentence) for pattern in MEASURED.values())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_says_how_its_numbers_were_made_and_is_used(path):
    head = SCRIPT["head"](path.stem)
    assert all(head[name] for name in ("command", "machine", "versions", "date"))
    used = {key.partition(":")[0] for _, _, key in numbers()} | set(tables())
    assert path.stem in {SCRIPT["file_of"](name.removeprefix("minus ")) for name in used}


def numbers() -> list[tuple[str, str, str]]:
    texts = [path.read_text(encoding="utf-8") for path in SCRIPT["PAGES"]]
    return [found for text in texts for found in SCRIPT["NUMBER"].findall(text)]


def tables() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in SCRIPT["PAGES"]]
    return [found for text in texts for found in SCRIPT["TABLE"].findall(text)]


def test_every_marker_follows_a_number():
    texts = [path.read_text(encoding="utf-8") for path in SCRIPT["PAGES"]]
    markers = [key for text in texts for key in re.findall(r"<!-- ([^>]*: [^>]*) -->", text)]
    assert markers == [key for _, _, key in numbers()]


def test_numbers_keep_their_digits_and_their_sign():
    cells = {"fixed": "+2.87 ± 0.87", "control": "-1,234.50"}
    table = SCRIPT["Table"](("graph", *cells), [("`Cora`", *cells.values())])
    SCRIPT["COMPUTED"]["made-up"] = (lambda: table, None)
    written = SCRIPT["written"]
    assert written("9.9<!-- made-up: Cora: fixed -->") == "2.9<!-- made-up: Cora: fixed -->"
    assert written("+9<!-- made-up: Cora: fixed -->") == "+3<!-- made-up: Cora: fixed -->"
    behind = "1.0<!-- minus made-up: Cora: control -->"
    assert written(behind) == "1,234.5<!-- minus made-up: Cora: control -->"
    with pytest.raises(ValueError, match="too few digits"):
        written("-7<!-- made-up: Cora: control -->")
    whole = written("0 ± 0<!-- made-up: Cora: fixed -->")
    assert whole == "+2.87 ± 0.87<!-- made-up: Cora: fixed -->"
    with pytest.raises(ValueError, match=r"is -1234.50, but the sentence has 7"):
        written("7<!-- made-up: Cora: control -->")


def test_store_keeps_scores_and_how_they_were_made(tmp_path):
    twins = {"twins": {"test": 50, "with_twin": 10}, "test_without_twins": {"accuracy": 0.5}}
    rows = [{**finished(0.75, split=split), **twins} for split in (1, 0)]
    path = SCRIPT["store"](write_rows(tmp_path / "mine.jsonl", rows), tmp_path)
    assert path.read_text().splitlines() == [
        "# command: argnn bench test",
        "# machine: cpu (x86_64)",
        "# versions: argnn 0.1.0",
        "# date: 2026-11-15 (commit 0123456)",
        "graph,method,split,seed,f1,accuracy,without_twins,twins,validation",
        "Cora,argnn,0,0,75.000,75.000,50.000,20.000,75.000",
        "Cora,argnn,1,0,75.000,75.000,50.000,20.000,75.000",
    ]


def studied(method, value, split):
    row = finished(value, method=method, data="wisconsin", split=split)
    return {**row, "experiment": "ablate-neighbor-norm", "cell": f"{method}/{split}"}


def test_studies_keep_levels_of_the_runs_that_all_have(tmp_path):
    own, receiver = "own metric of the neighbour", "metric of the receiver"
    rows = [studied(own, 0.75, split) for split in range(7)]
    rows += [studied(receiver, 0.5, split) for split in range(6)]  # stopped before the last
    path = SCRIPT["store_studies"]([write_rows(tmp_path / "mine.jsonl", rows)], tmp_path)
    _, *lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert [",".join(line.split(",")[:10]) for line in lines] == [
        f"neighbor-norm,Wisconsin,{own},yes,6,1,75.000,75.000,0.000,",
        f"neighbor-norm,Wisconsin,{receiver},,6,1,50.000,50.000,0.000,-25.000",
    ]


def test_studies_that_were_not_run_again_keep_their_lines(tmp_path):
    own, receiver = "own metric of the neighbour", "metric of the receiver"

    def stored(value, **facts):
        rows = [studied(m, value, n) | facts for m in (own, receiver) for n in range(6)]
        return SCRIPT["store_studies"]([write_rows(tmp_path / "mine.jsonl", rows)], tmp_path)

    stored(0.75)
    stored(0.5, data="cora")
    lines = SCRIPT["lines_of"](stored(0.25, device="cuda (a GPU)"))
    assert [(line["graph"], line["test"], line["device"]) for line in lines] == [
        *[("Wisconsin", "25.000", "cuda (a GPU)")] * 2,
        *[("Cora", "50.000", "cpu (x86_64)")] * 2,
    ]


@pytest.mark.parametrize(
    ("splits", "p", "gap", "word"),
    [
        ("5", "0.01", "-1", "not tested"),
        ("6", "0.06", "-1", "the same"),
        ("6", "0.04", "-1", "worse"),
        ("10", "0.04", "1", "better"),
    ],
)
def test_a_level_differs_only_where_the_test_can_say_so(splits, p, gap, word):
    row = {"splits": splits, "p": p, "difference": gap}
    assert SCRIPT["verdict"](row) == word
