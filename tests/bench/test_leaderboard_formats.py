"""How the document is printed: marks, escapes, gaps and notes in every format."""

import csv
import io
import re

import pytest
from rich.console import Console

from argnn.bench.leaderboard import grids, leaderboard, to_csv, to_latex, to_markdown, to_rich
from result_rows import failed, finished, node_scores, several

TABLE = {
    "cora": {"argnn": [0.90, 0.92], "gcn": [0.80, 0.84], "mlp": [0.70, 0.72]},
    "texas": {"argnn": [0.60, 0.62], "gcn": [0.61, 0.61], "mlp": [0.61, 0.60]},
}
STRANGE = "a|b_c & 50 % {x} $y$ #1 ~^\\ <i> *z* [q]"


def rows():
    return [
        *several(TABLE),
        finished(node_scores(0.5, absent=[3]), data="actor", split=0, oracle=0.55),
        failed(data="actor", split=1),
        finished(0.4, data="actor", method="mlp", split=0),
        finished(0.4, data="actor", method="mlp", split=1),
    ]


def document(found=None, **options):
    return leaderboard(rows() if found is None else found, **{"scores": ["f1"], **options})


def markdown_table(text, title):
    """The cells of the table below a heading."""
    below = text.split(f"{title}\n\n", 1)[1].split("\n\n", 1)[0]
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in below.splitlines()]
    return [[cell.strip() for cell in line] for line in lines]


def test_markdown_of_a_score():
    table = markdown_table(
        to_markdown(grids(document())), "## Node classification, F1 (weighted), %"
    )
    assert table[0] == ["method", "cora (n = 2)", "actor (n = 2)", "texas (n = 2)"]
    assert table[1] == ["---", "---:", "---:", "---:"]
    found = {row[0]: row[1:] for row in table[2:]}
    # With two values the interval is 12.706 times half their distance.
    assert found["argnn"] == ["**91.00** ± 12.71", "50.00 (1 of 2)", "**61.00** ± 12.71"]
    assert found["gcn"] == ["<u>82.00</u> ± 25.41", "not run (0 of 2)", "**61.00** ± 0.00"]
    assert found["mlp"] == ["71.00 ± 12.71", "40.00 ± 0.00", "<u>60.50</u> ± 6.35"]
    assert found["argnn, published [a]"] == ["86.83 ± 0.84", "42.18 ± 0.33", "92.28 ± 1.59"]
    assert found["gcn, published [b]"] == ["75.21 ± 0.28", "31.12 ± 0.96", "75.61 ± 0.07"]


def test_markdown_without_published_figures():
    text = to_markdown(grids(document(published=False)))
    assert ", published [" not in text
    assert "Wang et al." not in text


def test_notes_of_a_score():
    text = to_markdown(grids(document()))
    assert "- **bold**: best; <u>underlined</u>: second best." in text
    assert (
        "± 95 % Student-t interval over splits, their seeds averaged; epoch chosen by val" in text
    )
    assert "- (k of n): only k of the n runs have a score" in text
    assert "- actor: no test node of class 3 in split 0." in text
    assert "- argnn on actor: split 1 failed (DivergenceError: the loss is not finite)." in text
    assert (
        "[a] ARGNN paper (Wang et al. 2026), tab:node\\_classification: epoch with the best" in text
    )
    assert "12 rows" not in text
    assert "16 rows, 1 of them failed." in text


def test_a_complete_board_has_no_note_on_gaps():
    assert "(k of n)" not in to_markdown(grids(document(several(TABLE))))


def test_remarks_on_data_sets_name_their_sources():
    text = to_markdown(grids(document(several({"cornell": {"argnn": [0.5], "gcn": [0.4]}}))))
    assert re.search(r"- \[a, b\] cornell: .*faulty file", text)


def test_paired_tests():
    table = markdown_table(
        to_markdown(grids(document())), "### Node classification, F1 (weighted): paired tests"
    )
    assert table[0] == ["rival", "cora", "actor", "texas"]
    assert table[2][0] == "gcn"
    # Differences 0.10 and 0.08: t = 9 on one degree of freedom, p = 2/pi * atan(1/9) = 0.070,
    # the larger of two p-values. The other rival is always 0.2 behind, without any spread.
    assert table[2][1] == "+9.00, W 1.000, t 0.070, 2 pairs"
    assert table[2][2] == "-"
    assert table[3][1:] == [
        "+20.00, W 1.000, t <0.001, 2 pairs".replace("<", "\\<"),
        "+10.00, no test, 1 pair",
        "+0.50, W 1.000, t 1.000, 2 pairs",
    ]


def test_all_differences_zero_is_said():
    text = to_markdown(grids(document(several({"cora": {"argnn": [0.5] * 6, "gcn": [0.5] * 6}}))))
    assert "| gcn | +0.00, W 1.000, t 1.000, 6 pairs, all equal |" in text
    assert "fewer than 6 pairs" not in text


def test_significant_differences_are_bold():
    values = {"argnn": [0.9 + 0.001 * k for k in range(8)], "gcn": [0.5] * 8}
    text = to_markdown(grids(document(several({"cora": values}))))
    assert "| gcn | **+40.35**, W 0.008, t \\<0.001, 8 pairs |" in text
    assert "**bold**: W below 0.05 after correction." in text


def test_ranks_and_their_absence():
    text = to_markdown(grids(document(several(TABLE))))
    table = markdown_table(text, "### Node classification, F1 (weighted): average ranks")
    # argnn 1 and 1.5, gcn 2 and 1.5, mlp 3 and 3
    assert table[2:] == [["argnn", "1.25"], ["gcn", "1.75"], ["mlp", "3.00"]]
    assert "Nemenyi critical difference at 0.05: 2.34. Groups within it: argnn, gcn, mlp." in text
    text = to_markdown(grids(document(several({"cora": TABLE["cora"]}))))
    assert "No ranks: average ranks need 3 methods and 2 data sets" in text
    assert "(got 3 methods, 1 data set)." in text


def test_ranks_over_two_forms_of_one_graph_are_said_to_depend():
    note = "Not independent, as of one graph: texas and texas, directed."
    both = several(TABLE) + several({"texas": TABLE["texas"]}, directed=True)
    assert note in to_markdown(grids(document(both)))
    assert "Not independent" not in to_markdown(grids(document(several(TABLE))))


def test_comparability_report():
    text = to_markdown(grids(document()))
    table = markdown_table(text, "### Node classification, F1 (weighted): comparability, %")
    assert table[0][4] == "oracle (test-selected)"
    assert table[2:] == [["actor", "argnn", "1", "50.00", "55.00", "+5.00", "42.18", "-12.82"]]
    without = to_markdown(grids(document(several(TABLE))))
    assert "comparability" not in without
    assert "oracle" not in without


def test_efficiency_table():
    text = to_markdown(grids(document()))
    table = markdown_table(text, "## Node classification, efficiency")
    assert table[2] == [
        "cora",
        "argnn",
        "2",
        "2.00",
        "0.1",
        "20.0",
        "1,234",
        "500",
        "cpu (x86\\_64)",
    ]
    assert ["cora", "gcn, published [a]", "-", "-", "0.12", "-", "-", "0.8 GB", "-"] in table


def strange_document():
    found = [
        finished(0.5, method=STRANGE, model="strange", data=STRANGE, split=split)
        for split in range(2)
    ]
    found += [failed(method=STRANGE, model="strange", data=STRANGE, split=2, error=STRANGE)]
    return document([*found, *several(TABLE)])


def test_markdown_keeps_strange_names_in_their_cells():
    text = to_markdown(grids(strange_document()))
    tables = [part for part in text.split("\n\n") if part.startswith("|")]
    assert len(tables) == 3
    for table in tables:
        assert len({len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table
    assert r"a\|b\_c & 50 % {x} $y$ #1 ~^\\ \<i\> \*z\* [q]" in text


def braces_balance(text):
    depth = 0
    for token in re.findall(r"\\.|[{}]", text, flags=re.DOTALL):
        depth += {"{": 1, "}": -1}.get(token, 0)
        assert depth >= 0
    return depth == 0


@pytest.mark.parametrize("make", [document, strange_document])
def test_latex_is_sound(make):
    text = to_latex(grids(make()))
    assert braces_balance(text)
    for name in ("table*", "tabular", "minipage"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") > 0
    for alignment, body in re.findall(
        r"\\begin\{tabular\}\{([lr]+)\}\n(.*?)\\end\{tabular\}", text, flags=re.DOTALL
    ):
        rows = [line for line in body.splitlines() if line.endswith(r" \\")]
        assert len(rows) >= 2
        for row in rows:
            assert len(re.findall(r"(?<!\\)&", row)) == len(alignment) - 1, row
    # Outside of comments nothing that LaTeX would read as something else.
    code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)[%#_~^]", code)
    assert len(re.findall(r"(?<!\\)\$", code)) % 2 == 0


def test_latex_marks_and_escapes():
    text = to_latex(grids(strange_document()))
    assert r"\textbf{91.00} $\pm$ 12.71" in text
    assert r"\underline{82.00} $\pm$ 25.41" in text
    assert r"a$|$b\_c \& 50 \% \{x\} \$y\$ \#1 \textasciitilde{}\textasciicircum{}" in text
    assert r"\textbackslash{} $<$i$>$ {*}z{*} {[}q{]}" in text


def test_latex_stacks_the_lines_of_wide_tables():
    nine = ("cora", "citeseer", "pubmed", "actor", "texas", "cornell")
    text = to_latex(grids(document(several({name: TABLE["cora"] for name in nine}))))
    assert r"\shortstack[r]{\textbf{91.00} \\ $\pm$ 12.71}" in text


def rich_text(found, width=120):
    console = Console(file=io.StringIO(), width=width)
    for grid in grids(found):
        console.print(to_rich(grid))
    return console.file.getvalue()


def test_rich_shows_marks_without_colours():
    text = rich_text(document())
    assert "**91.00 ± 12.71" in text
    assert " *82.00 ± 25.41" in text
    assert "** best; * second best." in text
    assert "not run (0 of 2)" in text


def test_rich_takes_names_literally():
    found = document([finished(0.5, method="[bold]x[/bold]", model="x"), *several(TABLE)])
    assert "[bold]x[/bold]" in rich_text(found)


def test_rich_splits_wide_tables_and_loses_nothing():
    names = ("cora", "citeseer", "pubmed", "actor", "chameleon", "squirrel", "texas", "wisconsin")
    found = document(several({name: TABLE["cora"] for name in names}), published=False)
    text = rich_text(found, width=90)
    assert all(text.count(name) >= 3 for name in names)
    assert text.count("**91.00") == 8
    assert "…" not in text


def test_csv_has_a_line_for_every_figure():
    found = document()
    lines = list(csv.DictReader(io.StringIO(to_csv(found))))
    measured = {
        (line["score"], line["data"], line["method"]): line
        for line in lines
        if line["kind"] == "measured"
    }
    argnn, gcn = measured["f1", "cora", "argnn"], measured["f1", "cora", "gcn"]
    assert (argnn["mean"], argnn["unit"], argnn["mark"], argnn["n"]) == ("91.0", "%", "best", "2")
    assert float(argnn["interval"]) == pytest.approx(12.7062, abs=1e-4)
    assert (gcn["reference"], gcn["pairs"], gcn["difference"]) == ("argnn", "2", "9.0")
    [entry] = [
        e for e in found["boards"][0]["paired"] if (e["rival"], e["column"]) == ("gcn", "cora")
    ]
    assert float(gcn["t_p"]) == entry["t"]["p"]
    assert float(gcn["wilcoxon_p_holm"]) == entry["wilcoxon"]["holm"]
    actor = measured["f1", "actor", "argnn"]
    assert (actor["n"], actor["expected"], actor["failed"]) == ("1", "2", "1")
    assert (actor["oracle (test-selected)"], actor["validation_selected_same_runs"]) == (
        "55.0",
        "50.0",
    )
    assert measured["seconds_per_epoch", "cora", "mlp"]["mean"] == "0.1"
    published = [line for line in lines if line["kind"] == "published" and line["score"] == "f1"]
    assert len(published) == 6
    assert published[0]["mean"] == "86.83"
    assert "best test score" in published[0]["protocol"]


def test_csv_quotes_strange_names():
    lines = list(csv.DictReader(io.StringIO(to_csv(strange_document()))))
    assert STRANGE in {line["method"] for line in lines}
    assert all(None not in line for line in lines)


def test_csv_marks_what_a_spreadsheet_would_run():
    found = [finished(0.5, method="=1+1", model="gcn", data="@a", split=0)]
    lines = list(csv.DictReader(io.StringIO(to_csv(document(found)))))
    assert {(line["method"], line["data"]) for line in lines} >= {("'=1+1", "'@a")}
    assert not [cell for line in lines for cell in line.values() if cell.startswith(("=", "@"))]


def test_every_format_shows_the_scores_without_twins():
    counts = {"test": 100, "with_twin": 60}
    others = {"twins": counts, "test_without_twins": node_scores(0.41)}
    found = document(
        [
            {**finished(0.78, data="chameleon"), **others},
            finished(0.7, data="chameleon", method="mlp"),  # by an older version
        ],
        published=False,
    )
    table = markdown_table(to_markdown(grids(found)), "## Node classification, F1 (weighted), %")
    assert table[0] == ["method", "chameleon (n = 1)", "chameleon, without twins (n = 1)"]
    assert [row for row in table[2:] if row[0] == "argnn"] == [["argnn", "**78.00**", "41.00"]]
    assert [row for row in table[2:] if row[0] == "mlp"] == [["mlp", "<u>70.00</u>", "-"]]
    latex = to_latex(grids(found))
    assert r"chameleon, without twins (n = 1) \\" in latex
    assert r"mlp & \underline{70.00} & - \\" in latex
    console = Console(file=io.StringIO(), width=160)
    for grid in grids(found):
        console.print(to_rich(grid))
    assert "chameleon, without twins" in console.file.getvalue()
    assert "60.0 % of the test nodes" in console.file.getvalue()
    lines = list(csv.DictReader(io.StringIO(to_csv(found))))
    shown = {
        (line["data"], line["method"]): line["mean"] for line in lines if line["score"] == "f1"
    }
    assert shown["chameleon, without twins", "argnn"] == "41.0"
    assert shown["chameleon, without twins", "mlp"] == ""
