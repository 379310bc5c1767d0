"""`argnn table` on stored results: its numbers against independent ones, and what it refuses."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from result_rows import failed, finished, node_scores, several, write_rows

SPLITS, SEEDS = 5, 2
METHODS = {"argnn": 0.02, "gcn": 0.0, "mlp": -0.05}
DATA = {"cora": 0.86, "texas": 0.80, "actor": 0.35}


@pytest.fixture
def results():
    """A file in the folder of the command: 3 methods, 3 data sets, 5 splits, 2 seeds."""
    rng = np.random.default_rng(0)
    rows = []
    for data, level in DATA.items():
        for method, shift in METHODS.items():
            for split, seed in itertools.product(range(SPLITS), range(SEEDS)):
                # Shares of 37 test nodes, so that there are ties and zero differences.
                value = round(37 * (level + shift + rng.normal(0, 0.03))) / 37
                who = {"data": data, "method": method, "split": split, "seed": seed}
                rows.append(finished(value, oracle=min(1.0, value + 0.01), **who))
    # One run of the GCN failed, and failed again: the means and tests are over the others.
    gone = {"data": "texas", "method": "gcn", "split": 1, "seed": 1}
    rows = [row for row in rows if any(row[key] != value for key, value in gone.items())]
    rows += [failed(**gone), failed(**gone)]
    write_rows(Path("results.jsonl"), rows)
    return [row for row in rows if "error" not in row]


def scores(rows, data, method):
    return {
        (row["split"], row["seed"]): row["test"]["accuracy"]
        for row in rows
        if (row["data"], row["method"]) == (data, method)
    }


def over_seeds(values):
    """The mean of each split."""
    return np.array([np.mean([v for (s, _), v in values.items() if s == n]) for n in range(SPLITS)])


def student_tail(t, freedom):
    """Two-sided p-value of Student's t by integrating its density."""
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    inside, _ = quad(lambda x: scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2), 0, abs(t))
    return 1 - 2 * inside


def signed_rank_p(differences):
    """Two-sided p-value of the signed-rank test by trying all assignments of signs."""
    # Means over two seeds of shares of 37 nodes.
    kept = np.array([round(74 * value) for value in differences if round(74 * value) != 0])
    size = np.abs(kept)
    ranks = np.array([((size < s).sum() + (size <= s).sum() + 1) / 2 for s in size])
    signs = np.array(list(itertools.product([0, 1], repeat=len(kept))))
    sums = signs @ ranks
    smaller = min(ranks[kept > 0].sum(), ranks[kept < 0].sum())
    return min(1.0, 2 * float((sums <= smaller + 1e-9).mean()))


def test_json_equals_independent_numbers(argnn, results):
    done = argnn("table", "results.jsonl", "--score", "accuracy", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["files"] == ["results.jsonl"]
    assert (document["rows"], document["failed"]) == (90, 1)
    [board] = document["boards"]
    for cell in board["cells"]:
        values = scores(results, cell["column"], cell["method"])
        assert cell["n"] == len(values)
        assert cell["mean"] == pytest.approx(np.mean(list(values.values())))
        # Student's t at 0.975 with four degrees of freedom, from a printed table.
        half = 2.7764 * over_seeds(values).std(ddof=1) / math.sqrt(SPLITS)
        assert cell["interval"] == pytest.approx(half, rel=1e-4)
    assert len(board["paired"]) == 6
    for column in DATA:
        entries = [entry for entry in board["paired"] if entry["column"] == column]
        for entry in entries:
            ours, theirs = (scores(results, column, m) for m in ("argnn", entry["rival"]))
            common = ours.keys() & theirs.keys()
            d = over_seeds({pair: ours[pair] - theirs[pair] for pair in common})
            assert entry["pairs"] == SPLITS
            assert entry["difference"] == pytest.approx(d.mean())
            assert entry["wilcoxon"]["p"] == pytest.approx(signed_rank_p(d))
            t = d.mean() / (d.std(ddof=1) / math.sqrt(len(d)))
            assert entry["t"]["statistic"] == pytest.approx(t)
            assert entry["t"]["p"] == pytest.approx(student_tail(t, len(d) - 1), abs=1e-8)
        for test in ("wilcoxon", "t"):
            low, high = sorted(entries, key=lambda entry: entry[test]["p"])
            assert low[test]["holm"] == pytest.approx(min(1, 2 * low[test]["p"]))
            assert high[test]["holm"] == pytest.approx(max(low[test]["holm"], high[test]["p"]))
    assert board["ranks"]["left_out"] == ["texas"]


def test_default_prints_every_task_and_main_score(argnn):
    rows = several({"cora": {"argnn": [0.9, 0.91], "gcn": [0.8, 0.83]}})
    rows += several({"cora": {"argnn": [0.9, 0.92]}}, task="link")
    write_rows(Path("r.jsonl"), rows)
    done = argnn("table", "r.jsonl")
    assert done.code == 0, done.err
    assert done.err == ""
    for title in ("F1 (weighted)", "accuracy", "AUROC", "AUPRC", "efficiency"):
        assert f"Node classification, {title}" in done.out
    for title in ("AUROC", "AUPRC", "accuracy", "efficiency"):
        assert f"Link prediction, {title}" in done.out
    assert "F1 (macro)" not in done.out
    assert "**90.50 ± 6.35" in done.out
    assert "argnn, published [a]" in done.out
    assert "6 rows of r.jsonl." in done.out


def test_task_and_score_are_chosen(argnn):
    write_rows(Path("r.jsonl"), [finished(0.9), finished(0.8, task="link")])
    done = argnn("table", "r.jsonl", "--task=link", "--score=mrr", "--score", "hits@50")
    assert done.code == 0, done.err
    assert "Link prediction, MRR" in done.out
    assert "Link prediction, hits@50" in done.out
    assert "Node" not in done.out
    assert "AUROC, %" not in done.out


def test_options_leave_parts_out(argnn, results):
    whole = argnn("table", "results.jsonl", "--score=f1", "--format=markdown").out
    assert "oracle (test-selected)" in whole
    assert "argnn, published [a]" in whole
    part = argnn(
        "table", "results.jsonl", "--score=f1", "--format=markdown", "--no-published",
        "--no-comparability", "--reference=gcn",
    ).out  # fmt: skip
    assert "oracle" not in part
    assert "published" not in part
    assert "gcn minus rival in points" in part


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("t.md", "## Node classification, F1"),
        ("t.tex", "\\begin{table*}"),
        ("t.csv", "kind,task,score"),
        ("t.json", "{\n"),
        ("t.txt", "Node classification, F1"),
    ],
)
def test_out_takes_its_format_from_the_name(argnn, results, name, start):
    done = argnn("table", "results.jsonl", "--out", f"new/{name}")
    assert done.code == 0, done.err
    assert done.out == f"Tables: new/{name}\n"
    text = Path("new", name).read_text(encoding="utf-8")
    assert text.startswith(start)
    assert [path.name for path in Path("new").iterdir()] == [name]
    if name == "t.json":
        printed = argnn("table", "results.jsonl", "--json").out
        assert text == printed
    elif name != "t.txt":
        formats = {"t.md": "markdown", "t.tex": "latex", "t.csv": "csv"}
        assert argnn("table", "results.jsonl", f"--format={formats[name]}").out == text


def test_out_replaces_an_older_file(argnn, results):
    Path("t.md").write_text("old")
    assert argnn("table", "results.jsonl", "--out=t.md", "--force").code == 0
    assert "old" not in Path("t.md").read_text(encoding="utf-8")[:10]


def test_json_to_a_file_prints_nothing(argnn, results):
    done = argnn("table", "results.jsonl", "--json", "--out=t.txt", "--diagram=d.svg")
    assert (done.code, done.out) == (0, "")
    assert "boards" in json.loads(Path("t.txt").read_text(encoding="utf-8"))


def test_diagram(argnn, results):
    done = argnn("table", "results.jsonl", "--score=f1", "--out=t.md", "--diagram=d.png")
    assert done.code == 0, done.err
    assert done.out == "Tables: t.md\nDiagram: d.png\n"
    assert len(Path("d.png").read_bytes()) > 2000


def test_several_files(argnn):
    write_rows(Path("a.jsonl"), [finished(0.9), finished(0.8, split=1)])
    write_rows(Path("b.jsonl"), [finished(0.7, split=2), finished(0.5, method="gcn")])
    document = json.loads(argnn("table", "a.jsonl", "b.jsonl", "--json").out)
    cells = {c["method"]: (c["n"], c["expected"]) for c in document["boards"][0]["cells"]}
    assert cells == {"argnn": (3, 3), "gcn": (1, 3)}


def test_the_last_row_of_a_cell_wins(argnn):
    rows = [failed(), finished(0.8), failed()]
    write_rows(Path("r.jsonl"), rows)
    [board, *_] = json.loads(argnn("table", "r.jsonl", "--json").out)["boards"]
    assert (board["cells"][0]["n"], board["cells"][0]["failed"]) == (1, 0)


REFUSED = [
    ([], "Missing argument 'FILE'"),
    (["none.jsonl"], "none.jsonl: no such file"),
    (["."], ".: "),
    (["empty.jsonl"], "empty.jsonl: no rows"),
    (["broken.jsonl"], "broken.jsonl, line 2: damaged"),
    (["mixed.jsonl"], "mixed.jsonl, line 2: has format 2"),
    (["score.jsonl"], "score.jsonl: argnn on cora, split 0, seed 0: f1 must be from 0 to 1"),
    (["r.jsonl", "other.jsonl"], "other.jsonl: argnn on cora, split 0, seed 0 is in r.jsonl too"),
    (
        ["r.jsonl", "--task=edge"],
        "--task must be one of node, link, regression, multilabel",
    ),
    (["r.jsonl", "--task=link"], "r.jsonl: no rows of the task link"),
    (["r.jsonl", "--score=auroq"], "unknown --score 'auroq'; did you mean 'auroc'"),
    (["r.jsonl", "--reference=argn"], "'argn' has no rows; did you mean 'argnn'"),
    (["r.jsonl", "--format=html"], "--format must be one of rich, markdown, csv, latex, json"),
    (["r.jsonl", "--json", "--format=csv"], "--json and --format csv exclude each other"),
    (["r.jsonl", "--out=."], ".: is a folder, not a file"),
    (["r.jsonl", "--out=./r.jsonl"], "--out r.jsonl: would replace r.jsonl"),
    (["r.jsonl", "--out=t.svg", "--diagram=t.svg"], "--diagram t.svg: would replace t.svg"),
    (["r.jsonl", "--diagram=t.jpg"], "--diagram must end with .pdf, .svg, .png (got 't.jpg')"),
    (["r.jsonl", "--diagram=r.jsonl"], "--diagram r.jsonl: would replace r.jsonl"),
    (["r.jsonl", "--diagram=t.pdf", "--out=t.md"], "--diagram: average ranks need 3 methods"),
    (["r.jsonl", "--out=r.jsonl/t.md"], "r.jsonl: not a directory"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=lambda value: str(value)[:60])
def test_bad_input(argnn, listing, arguments, message):
    row = finished(0.5)
    write_rows(Path("r.jsonl"), [row])
    write_rows(Path("other.jsonl"), [finished(0.6)])
    write_rows(Path("score.jsonl"), [finished(node_scores(0.5, f1=50.0))])
    write_rows(Path("mixed.jsonl"), [row, {**finished(0.5, split=1), "format": 2}])
    Path("broken.jsonl").write_text(json.dumps(row) + "\n[1, 2\n" + json.dumps(row) + "\n")
    Path("empty.jsonl").write_text("")
    before = listing()
    done = argnn("table", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith("argnn: error: ")
    assert message in done.err
    assert listing() == before


@pytest.mark.parametrize("value", [True, 3.5, "word", [], [[1]], {"a": {}}], ids=str)
@pytest.mark.parametrize(
    "place",
    [
        *(("num_parameters",), ("peak_memory_mib",), ("device",), ("versions",), ("git_commit",)),
        *(("git_changed",), ("versions", "argnn"), ("config", "graph"), ("config", "link")),
        *(("config", "graph", "nodes"), ("test", "absent_classes"), ("oracle",)),
    ],
    ids=".".join,
)
def test_odd_types_are_damage_or_do_no_harm(tmp_path, argnn, place, value):
    """A row that is read can be shown as a table."""
    odd = {**finished(0.5, seed=1, oracle=0.5), "config": {"link": None, "graph": {"nodes": 9}}}
    part = odd
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    done = argnn("table", write_rows(tmp_path / "odd.jsonl", [finished(0.5), odd]))
    assert done.code in (0, 2), done
    assert (len(done.err.splitlines()), "Traceback" in done.err) == (done.code == 2, False)
