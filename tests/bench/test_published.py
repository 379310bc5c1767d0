from collections import Counter

import pytest

from argnn.bench.leaderboard.published import find_published, parsed_tables, published_values
from argnn.data import DATASETS
from argnn.errors import ConfigError

PAPER = "ARGNN paper"
# fmt: off
NINE = [
    "cora", "citeseer", "pubmed", "actor", "chameleon", "squirrel", "texas", "cornell", "wisconsin",
]
FOURTEEN = [
    "gcn", "gat", "graphsage", "hgcn", "hgat", "kappa-gcn", "q-gcn", "h2gcn", "gprgnn", "fagcn",
    "cusp", "gnrf", "curvdrop", "argnn",
]
# fmt: on
TABLES = [
    *(("node", score) for score in ("f1", "accuracy", "auroc", "auprc")),
    *(("link", score) for score in ("auroc", "auprc", "accuracy")),
]


#: How many figures of each of the paper's ablations there are; the first has one row twice, under
#: the names of two studies.
ABLATIONS = {
    "tab:complete_ablation_extended": 9 * 9,
    "tab:layer_depth_ablation": 2 * 6 * 3,
    "tab:embedding_dim_ablation": 5 * 3,
    "tab:learning_rate_ablation": 7 * 3,
    "tab:comprehensive_hyperparameter_ablation": 12 * 3,
    "tab:metric_init": 4 * 3,
}


def of_paper():
    found = [value for value in published_values() if value.source.startswith(PAPER)]
    return [value for value in found if table_of(value) not in ABLATIONS]


def table_of(value):
    return value.source.split(", ")[-1]


def test_ablations_of_the_paper_are_whole():
    counts = Counter(table_of(value) for value in published_values())
    assert {table: counts[table] for table in ABLATIONS} == ABLATIONS
    [found] = [v for v in published_values() if (v.method, v.data) == ("dropout 0.7", "actor")]
    assert (found.value, found.interval) == (41.3, 0.98)


@pytest.mark.parametrize(("task", "score"), TABLES)
def test_tables_of_the_paper_are_whole(task, score):
    found = [value for value in of_paper() if (value.task, value.score) == (task, score)]
    assert len(found) == 14 * 9
    assert {(value.method, value.data) for value in found} == {
        (method, data) for method in FOURTEEN for data in NINE
    }
    assert all(10 < value.value < 100 for value in found)
    assert all(value.interval is not None and value.sd is None for value in found)
    assert all(0 < value.interval < 7 for value in found)


def test_nothing_else_is_ascribed_to_the_paper():
    counts = Counter((value.task, value.score) for value in of_paper())
    efficiency = {("node", "seconds_per_epoch"): 18, ("node", "memory_gb"): 18}
    assert counts == {**dict.fromkeys(TABLES, 126), **efficiency}


def one(task, score, method, data, source=PAPER):
    [found] = [v for v in find_published(task, score, method, data) if v.source.startswith(source)]
    return found


@pytest.mark.parametrize(
    ("task", "score", "method", "data", "value", "interval"),
    [
        ("node", "f1", "argnn", "cora", 86.83, 0.84),
        ("node", "f1", "gcn", "wisconsin", 59.46, 3.25),
        ("node", "f1", "kappa-gcn", "cornell", 86.36, 0.64),
        ("node", "f1", "fagcn", "squirrel", 52.30, 1.70),
        ("node", "accuracy", "cusp", "texas", 90.43, 0.68),
        ("node", "accuracy", "argnn", "actor", 42.68, 0.88),
        ("node", "auroc", "argnn", "texas", 98.68, 1.27),
        ("node", "auroc", "q-gcn", "citeseer", 86.93, 0.89),
        ("node", "auprc", "gnrf", "texas", 97.00, 1.43),
        ("node", "auprc", "curvdrop", "cornell", 96.72, 2.19),
        ("link", "auroc", "argnn", "cora", 91.03, 0.72),
        ("link", "auroc", "hgcn", "pubmed", 86.98, 0.72),
        ("link", "auprc", "argnn", "wisconsin", 78.72, 3.04),
        ("link", "accuracy", "gat", "squirrel", 88.71, 0.71),
        ("link", "accuracy", "cusp", "squirrel", 91.04, 0.68),
    ],
)
def test_values_read_in_the_paper(task, score, method, data, value, interval):
    found = one(task, score, method, data)
    assert (found.value, found.interval) == (value, interval)


def test_efficiency_of_the_paper():
    assert one("node", "seconds_per_epoch", "argnn", "pubmed").value == 0.82
    assert one("node", "memory_gb", "gcn", "cora").value == 0.8
    assert one("node", "memory_gb", "argnn", "cora").interval is None


def test_what_is_known_about_the_paper():
    values = {(v.task, v.score, v.method, v.data): v.value for v in of_paper()}
    # Link accuracy is above AUROC everywhere; the argnn row is the best of its F1 table.
    for method in FOURTEEN:
        for data in NINE:
            assert values["link", "accuracy", method, data] > values["link", "auroc", method, data]
            assert values["node", "f1", method, data] <= values["node", "f1", "argnn", data]
    accuracy, f1 = ([values["node", s, m, "cora"] for m in FOURTEEN] for s in ("accuracy", "f1"))
    assert [a - b for a, b in zip(accuracy, f1, strict=True)] == pytest.approx([0.40] * 14)


@pytest.mark.parametrize(
    ("method", "data", "source", "value", "sd"),
    [
        ("mlp", "cora", "Ma et al.", 75.0, None),
        ("gcn", "squirrel", "Ma et al.", 54.47, None),
        ("gcn", "texas", "H2GCN paper", 59.46, 5.25),
        ("gat", "wisconsin", "GGCN paper", 49.41, None),
        ("graphsage", "wisconsin", "a later", 81.18, 5.56),
        ("gprgnn", "chameleon", "GGCN paper", 46.58, None),
        ("fagcn", "actor", "highest", 36.8, None),
        ("gnrf", "pubmed", "GNRF paper", 90.37, 0.69),
    ],
)
def test_anchors_of_other_papers(method, data, source, value, sd):
    found = one("node", "accuracy", method, data, source)
    assert (found.value, found.interval, found.sd) == (value, None, sd)


def test_figures_known_from_memory_are_left_out():
    sources = [v.source for v in find_published("node", "accuracy", "gcn", "cora")]
    assert not any(source.startswith("H2GCN") for source in sources)
    assert sources[0].startswith(PAPER)


def test_both_variants_of_h2gcn_are_kept():
    found = find_published("node", "accuracy", "h2gcn", "cora")
    assert [value.value for value in found] == [83.10, 86.92, 87.81]


def test_every_value_says_where_it_is_from():
    for value in published_values():
        assert value.data in DATASETS, value
        assert value.source.strip(), value
        assert len(value.protocol) > 20, value


def test_protocol_of_argnn_names_the_selection_by_test_score():
    for task, score in TABLES:
        assert "best test score" in one(task, score, "argnn", "cora").protocol
        assert "best test score" not in one(task, score, "gcn", "cora").protocol


def test_names_are_folded_and_the_old_cornell_has_figures():
    assert one("node", "f1", "KappaGCN", "cora").value == 78.71
    old = one("node", "f1", "argnn", "cornell-old")
    assert old == one("node", "f1", "argnn", "cornell")
    assert "faulty" in old.remark
    assert find_published("node", "f1", "mlp", "cora") == []
    assert find_published("node", "f1", "argnn", "/some/file.npz") == []


TABLE = """
- task: node
  score: f1
  source: somewhere
  protocol: as it was
  data: [cora, texas]
  methods: {gcn: [1.5 ± 0.5, "-"]}
"""


def test_a_small_table():
    [found] = parsed_tables(TABLE, "some.yaml")
    assert (found.method, found.data, found.value, found.interval) == ("gcn", "cora", 1.5, 0.5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("task: node", "task: graph", "entry 1: task must be one of node, link"),
        ("score:", "scroe:", "unknown key 'scroe'; did you mean 'score'"),
        ("  source: somewhere\n", "", "entry 1: has no 'source'"),
        ("cora", "coar", "unknown data set 'coar'"),
        ('"-"', "1.5, 2", r"gcn: expected 2 values \(got 3\)"),
        ('"-"', "high", r"gcn, texas: must read like 75.21 ± 0.28, 75.21 or - \(got 'high'\)"),
        ('"-"', "-1.5", "gcn, texas: must read like"),
        ("protocol: as", "spread: range\n  protocol: as", "spread must be one of interval, sd"),
        ("protocol: as", "protocols: {gat: x}\n  protocol: as", "protocol of 'gat', which has no"),
    ],
)
def test_faulty_file_is_refused(old, new, message):
    with pytest.raises(ConfigError, match=message):
        parsed_tables(TABLE.replace(old, new), "some.yaml")


@pytest.mark.parametrize(("text", "message"), [("{}", "must be a list"), ("[3]", "a mapping")])
def test_a_file_of_something_else_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parsed_tables(text, "some.yaml")
