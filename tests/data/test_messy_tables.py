"""Tables as people keep them: dates, text, many words, numbers in all ways of writing."""

import contextlib
import copy
import json
import math
import random

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import RidgeClassifier

from argnn.data import hashed_words, load
from argnn.data.columns import described, feature_count
from argnn.data.dates import date_numbers, read_date
from argnn.data.graph_store import converting, streaming
from argnn.data.graph_store.converting import convert
from argnn.data.hashed_words import hash_of_word
from argnn.data.inspect import class_warnings, leak_warnings
from argnn.data.written_numbers import Writing, ways_of_writing
from argnn.errors import ArgnnError, DataError, ProblemsError

WORDS = ["red", "blue", "green", "fast", "slow", "old", "new", "fine", "small", "large", "heavy"]


def graph_of(count=None, **columns):
    """Nodes in a ring, with given columns."""
    count = count or len(next(iter(columns.values())))
    ids = [f"n{i}" for i in range(count)]
    nodes = pd.DataFrame({"id": ids, **columns})
    return pd.DataFrame({"source": ids, "target": ids[1:] + ids[:1]}), nodes


def rule_of(cells, **options):
    """The rule of one column."""
    return load(graph_of(x=cells, other=range(len(cells))), **options).schema["columns"][0]


def values_of(cells, **options):
    return load(graph_of(x=cells), standardize=False, **options).x[:, 0].tolist()


def texts(count, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=5)) for _ in range(count)]


# ---- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3,14", "2", "-0,5"], [3.14, 2, -0.5]),
        (["1,234.5", "12", "1,234,567"], [1234.5, 12, 1234567]),
        (["1.234,5", "7"], [1234.5, 7]),
        (["1 234", "1\u00a0234,5"], [1234, 1234.5]),
        (["1'234.50", "1\u2019234.25"], [1234.5, 1234.25]),
        (["12 %", "3%"], [12, 3]),
        (["€ 5", "€ 1.000,50"], [5, 1000.5]),
        (["-$5", "$6.25"], [-5, 6.25]),
        (["5 kg", "6,5 kg"], [5, 6.5]),
        (["\u22125,2", "1,5e3"], [-5.2, 1500]),
    ],
)
def test_numbers_as_people_write_them(cells, values):
    np.testing.assert_allclose(values_of(cells), values, rtol=1e-6)


@pytest.mark.parametrize(
    "cells", [["5 kg", "6 g"], ["$5", "€6"], ["A12", "A13"], ["030 123", "030 124"], ["1,2,3", "4"]]
)
def test_what_is_no_number_in_one_way_of_writing_stays_words(cells):
    assert rule_of(cells)["kind"] == "category"


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["01234", "53111", "NA", "53111"], "01234"),
        (["00", "7"], "00"),
        (["192.168.101.202", "10.0.0.1"], "192.168.101.202"),
        (["192.168.101.202", "192.168.101.203"], "192.168.101.202"),
    ],
)
def test_codes_are_words(cells, code):
    graph = load(graph_of(x=cells))
    assert graph.feature_names == [f"x = {cell}" for cell in sorted({*cells} - {"NA"})]
    note = f"column x: {code} is a code and no number, so the column is read as words"
    assert note in graph.notes
    other = load(graph_of(a=["1,234", "5"], x=[cells[0]] * 2), standardize=False)
    assert other.x[:, 0].tolist() == [1234, 5]  # codes do not tell the decimal sign


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["0", "12"], [0, 12]),
        (["0.5", "00.25"], [0.5, 0.25]),
        (["0,5", "1"], [0.5, 1]),
        (["1.234.567.890", "1.000.000.000"], [1234567890, 1e9]),
    ],
)
def test_numbers_that_begin_with_a_zero_are_no_codes(cells, values):
    np.testing.assert_allclose(values_of(cells), values, rtol=1e-6)


def test_codes_that_a_model_knows_as_numbers_stay_numbers():
    schema = load(graph_of(x=["1234", "53111"]), standardize=False).schema
    assert load(graph_of(x=["01234", "53111"]), schema=schema).x.tolist() == [[1234], [53111]]


def test_codes_of_nearly_every_row_are_left_out():
    graph = load(graph_of(x=[f"{i:04d}" for i in range(300)], size=[1.5, 2.5] * 150))
    assert graph.feature_names == ["size"]
    assert "column x: another word in nearly every row, as an id has, left out" in graph.notes


def test_two_ways_of_writing_are_told_and_chosen():
    cells = ["1,234", "5,678", "9"]
    graph = load(graph_of(x=cells))
    note = "column x: 1,234 was read as 1234 and could be 1.234 (--decimal ,)"
    assert note in graph.notes
    assert values_of(cells) == [1234, 5678, 9]
    assert values_of(cells, decimal=",") == pytest.approx([1.234, 5.678, 9])
    assert values_of(["1.234", "5"]) == pytest.approx([1.234, 5])
    assert values_of(["1.234", "5"], decimal=",") == [1234, 5]
    # The option decides only where both fit.
    assert values_of(["3.14", "5"], decimal=",") == pytest.approx([3.14, 5])


def test_other_columns_tell_the_decimal_sign():
    both = load(graph_of(x=["1,234", "5,678"], z=["0,5", "0,25"]))
    assert [rule["decimal"] for rule in both.schema["columns"]] == [",", ","]
    assert any("could be 1234 (--decimal .)" in note for note in both.notes)


def test_semicolons_and_decimal_commas(tmp_path):
    (tmp_path / "nodes.csv").write_text("id;height\na;1,85\nb;1,6\n")
    (tmp_path / "edges.csv").write_text("source;target\na;b\n")
    assert load(tmp_path, standardize=False).x.flatten().tolist() == pytest.approx([1.85, 1.6])


def test_a_few_strays_are_refused_not_hashed():
    numbers = [str(i / 7) for i in range(200)]
    with pytest.raises(DataError, match="row 3, column x: 'twelve' is no number, but nearly all"):
        rule_of([*numbers[:3], "twelve", *numbers[3:]])
    mixed = [f"{i},5" if i % 2 else f"{i}.5" for i in range(200)]
    with pytest.raises(DataError, match="the numbers of the column are not all written in one way"):
        rule_of(mixed)
    # Few different ones may be grades, of which one is a word.
    graph = load(graph_of(x=["1", "2", "3"] * 10 + ["K"]))
    assert graph.feature_names == ["x = 1", "x = 2", "x = 3", "x = K"]
    assert any("'K' is no number" in note and "read as words" in note for note in graph.notes)


@given(
    st.floats(-1e9, 1e9, allow_nan=False), st.sampled_from(".,"), st.sampled_from(["", "'", " "])
)
def test_written_numbers_come_back(number, decimal, thousands):
    text = f"{number:,.3f}".replace(",", thousands).replace(".", decimal)
    assert Writing(decimal).read(text) == pytest.approx(float(f"{number:.3f}"))
    assert Writing(decimal) in ways_of_writing([text, f"0{decimal}5"])


@pytest.mark.parametrize("cell", ["1 " * 32, "1" * 64, "1'" * 30 + "e", " " * 64, "9" * 10**6])
def test_no_cell_is_slow_to_read(cell):
    assert len(ways_of_writing([cell])) <= 2


# ---- standardized by default -------------------------------------------------------------------


def test_numbers_of_tables_are_standardized_and_arrays_are_not():
    table = graph_of(x=[1.0, 2, 3, 600], flag=[True, False, True, True], same=[5] * 4)
    graph = load(table)
    assert graph.x.mean(0).tolist() == pytest.approx([0, 0.75, 0], abs=1e-6)
    assert graph.x.std(0, correction=0)[0] == pytest.approx(1)
    assert graph.x[:, 2].tolist() == [0] * 4
    assert load(table, standardize=False).x[:, 0].tolist() == [1, 2, 3, 600]
    x = np.array([[1.0], [600.0]])
    assert load((x, [[0], [1]])).x.flatten().tolist() == [1, 600]
    assert load((x, [[0], [1]]), standardize=True).x.flatten().tolist() == [-1, 1]


def test_rows_of_sum_one_are_not_standardized():
    graph = load(graph_of(x=[1.0, 2], z=[3.0, 4]), row_normalize=True)
    assert graph.x.sum(1).tolist() == pytest.approx([1, 1])


# ---- dates -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["2024-12-31", "2024-01-01"], "ymd"),
        (["2024/12/31 23:59", "2024/1/1 00:00:01.5"], "ymd"),
        (["2024-12-31T23:59:59+02:00", "2024-01-01T00:00Z"], "ymd"),
        (["31.12.2024", "01.02.2023"], "dmy"),
        (["31/12/2024", "01/02/2023"], "dmy"),
        (["12/31/2024", "01/02/2023"], "mdy"),
        (["01.02.2024", "02.03.2024"], "dmy"),
    ],
)
def test_dates(cells, order):
    rule = rule_of(cells)
    assert (rule["kind"], rule["order"]) == ("date", order)
    assert rule["reference"] == max(read_date(cell, order) for cell in cells)
    assert rule["time"] == (":" in cells[0])


def test_dates_that_can_be_read_in_two_ways_are_told():
    graph = load(graph_of(x=["03/04/2024", "05/06/2024"]))
    assert "column x: 03/04/2024 was read with the day first (else --month-first)" in graph.notes
    assert graph.schema["columns"][0]["order"] == "dmy"
    assert rule_of(["03/04/2024", "05/06/2024"], month_first=True)["order"] == "mdy"
    assert rule_of(["03/04/2024", "31/06/2024"])["kind"] == "category"  # there is no June 31
    assert rule_of(["31/12/2024", "05/06/2024"], month_first=True)["order"] == "dmy"


def test_numbers_of_dates():
    day, year = 86_400.0, 365.2425
    monday = read_date("2024-01-01", "ymd")
    seconds = np.array([monday, monday + 7 * day, monday + 12 * 3600, math.nan])
    found = date_numbers(seconds, monday + year * day, has_time=True)
    np.testing.assert_allclose(found[:3, 0], [1, 1 - 7 / year, 1 - 0.5 / year])
    np.testing.assert_allclose(found[0, 1:], [0, 1, 0, 1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(found[1, 3:], [0, 1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(found[2, 5:], [0, -1], atol=1e-12)
    assert math.isnan(found[3, 0])
    assert found[3, 1:].tolist() == [0] * 6


def test_age_is_counted_from_the_newest_date_of_the_first_table():
    first = load(graph_of(born=["2000-01-01", "2010-01-01", "n/a"]), standardize=False)
    assert first.feature_names[0] == "born: years before 2010-01-01"
    assert first.feature_names[1] == "born is missing"
    assert first.x[:, 0].tolist() == pytest.approx([10.0016, 0, 5.0008], abs=1e-3)
    later = load(graph_of(born=["2020-01-01", "2010-01-01"]), schema=first.schema)
    assert later.x[:, 0].tolist() == pytest.approx([-9.999, 0], abs=1e-3)
    with pytest.raises(DataError, match="row 0, column born: '1.1.2020' must be a date written as"):
        load(graph_of(born=["1.1.2020", "2010-01-01"]), schema=first.schema)


def test_dates_of_pandas_and_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    days = pd.to_datetime(["2020-01-01 12:00", None, "2021-01-01 00:00"])
    edges, nodes = graph_of(when=days)
    nodes.to_parquet(tmp_path / "nodes.parquet")
    edges.to_parquet(tmp_path / "edges.parquet")
    stored, in_memory = load(tmp_path), load((edges, nodes))
    assert torch.equal(stored.x, in_memory.x)
    as_text = load(graph_of(when=["2020-01-01 12:00", "", "2021-01-01"]))
    assert torch.equal(as_text.x, in_memory.x)


# ---- words and text ----------------------------------------------------------------------------


def test_many_words_are_hashed():
    cells = [f"code{i % 150}" for i in range(400)]
    graph = load(graph_of(x=cells))
    assert graph.schema["columns"] == [
        {"name": "x", "kind": "hashed", "size": 128, "different": 150}
    ]
    assert graph.x.sum(1).tolist() == [1] * 400
    assert graph.x[0, hash_of_word("code0", 128)] == 1
    assert torch.equal(graph.x[0], graph.x[150])


def test_text_becomes_weighted_words():
    cells = texts(60)
    cells[5] = "?"
    graph = load(graph_of(x=cells))
    assert described(graph.schema["columns"][0]).startswith("text, its words hashed to 256")
    assert graph.x.shape == (60, 256)
    assert graph.x[5].tolist() == [0] * 256
    lengths = graph.x.norm(dim=1)
    assert lengths[lengths > 0].tolist() == pytest.approx([1] * 59, rel=1e-5)
    # The same words in another order are the same text.
    turned = [" ".join(reversed(cell.split())) for cell in cells]
    torch.testing.assert_close(load(graph_of(x=turned), schema=graph.schema).x, graph.x)


def test_text_is_weighted_as_by_scikit_learn():
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    cells = texts(50)
    counts = HashingVectorizer(n_features=256, alternate_sign=False, norm=None).transform(cells)
    expected = TfidfTransformer().fit_transform(counts).toarray()
    np.testing.assert_allclose(load(graph_of(x=cells)).x.numpy(), expected, rtol=1e-5, atol=1e-7)


def test_features_of_words_are_the_same_on_every_machine():
    found = [hash_of_word(word, 128) for word in ("Bonn", "Jena", "Ülm", "\ud800")]
    assert found == [103, 125, 94, 6]


def test_names_of_nodes_are_no_features():
    graph = load(graph_of(mail=[f"u{i}@x.org" for i in range(50)], size=range(50, 100)))
    assert graph.feature_names == ["size"]
    left = "column mail: another word in nearly every row, as an id has, left out"
    kept = "column size: counts the rows, as an id does, and is kept as a number (else --drop size)"
    assert {left, kept} <= set(graph.notes)


@pytest.mark.parametrize("kind", ["frame", "streamed"])
def test_without_features_it_is_said_which_columns_were_left_out(tmp_path, monkeypatch, kind):
    source = graph_of(mail=[f"u{i}@x.org" for i in range(50)], gap=[""] * 50)
    problem = (
        r"the nodes have no features \(column mail: another word in nearly every row, as an id "
        r"has, left out, column gap: empty, left out\); choose some with features"
    )
    if kind == "frame":
        with pytest.raises(DataError, match=problem):
            load(source)
        return
    pytest.importorskip("pyarrow")
    for name, frame in zip(("edges", "nodes"), source, strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.setattr(converting, "STREAMED_FROM", 0)
    with pytest.raises(DataError, match=problem):
        convert(tmp_path, tmp_path / "store")


def test_words_for_missing_values():
    graph = load(graph_of(x=["red", "N/A", "blue", "?", "-", "NA", None, "none"]))
    assert graph.feature_names == ["x = blue", "x = none", "x = red"]
    note = "column x: 5 missing words became zeros (also '-', '?', 'N/A', 'NA')"
    assert note in graph.notes


def test_errors_of_spreadsheets_are_missing_values():
    graph = load(graph_of(x=["1.5", "#DIV/0!", "2.5", "#N/A", "3", "#REF!"]))
    assert graph.feature_names == ["x", "x is missing"]
    assert graph.x[:, 1].tolist() == [0, 1, 0, 1, 0, 1]


def test_words_for_missing_values_beside_true_and_false():
    graph = load(graph_of(x=["true", "false", "NA", "True", "?"]))
    assert graph.feature_names == ["x", "x is missing"]
    assert graph.x[[0, 1, 3], 0].tolist() == [1, 0, 1]
    assert graph.x[:, 1].tolist() == [0, 0, 1, 0, 1]
    assert described(graph.schema["columns"][0]).endswith("with a mark where it is missing")


def test_model_that_knows_a_missing_word_as_a_category_keeps_it():
    schema = copy.deepcopy(load(graph_of(x=["red", "blue"])).schema)
    schema["columns"][0]["categories"] = ["?", "red"]
    assert load(graph_of(x=["red", "?", "-"]), schema=schema).x.tolist() == [[0, 1], [1, 0], [0, 0]]


# ---- all of them -------------------------------------------------------------------------------


def messy(count=300, seed=0, label=None):
    rng = random.Random(seed)
    columns = {
        "since": [f"{rng.randint(1, 28):02d}.06.20{rng.randint(10, 24)}" for _ in range(count)],
        "price": [f"{rng.randint(0, 9)},{rng.randint(10, 99)} €" for _ in range(count)],
        "code": [rng.choice(["-", *(f"K{i}" for i in range(200))]) for _ in range(count)],
        "notes": [rng.choice([text, ""]) for text in texts(count, seed)],
    }
    columns["label"] = label or [rng.choice("uv") for _ in range(count)]
    return graph_of(**columns)


@pytest.fixture(scope="module")
def learned():
    return load(messy())


def test_every_kind_of_column(learned):
    kinds = [rule["kind"] for rule in learned.schema["columns"]]
    assert kinds == ["date", "number", "hashed", "text"]
    widths = [feature_count(rule) for rule in learned.schema["columns"]]
    assert sum(widths) == learned.x.size(1) == len(learned.feature_names)
    assert torch.isfinite(learned.x).all()


def test_another_table_is_encoded_by_the_stored_rules(learned):
    schema = json.loads(json.dumps(learned.schema, allow_nan=False))
    assert torch.equal(load(messy(), schema=schema).x, learned.x)
    edges, nodes = messy()
    few = nodes.iloc[:7]
    part = load((edges.iloc[:6], few), schema=schema)
    assert torch.equal(part.x, learned.x[:7])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_conversion_in_parts_gives_the_same_features(tmp_path, monkeypatch, learned, kind):
    pytest.importorskip("pyarrow")
    for name, frame in zip(("edges", "nodes"), messy(), strict=True):
        path = tmp_path / f"{name}.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    monkeypatch.setattr(converting, "STREAMED_FROM", 0)
    monkeypatch.setattr(converting, "load_with_or_without_split", None)
    monkeypatch.setattr(streaming, "_TEXT_AT_ONCE", 5000)
    monkeypatch.setattr(hashed_words, "_TEXTS_AT_ONCE", 64)
    stored = load(convert(tmp_path, tmp_path / "store").path)
    assert torch.equal(stored.x, learned.x)
    assert stored.schema == learned.schema
    assert stored.notes == load(tmp_path).notes


def test_model_that_knows_words_with_white_space_finds_them():
    table = graph_of(x=["red ", "blue"] * 6, label=["u ", "v"] * 6)
    schema = copy.deepcopy(load(table).schema)
    schema["columns"][0]["categories"], schema["label"]["classes"] = ["blue", "red "], ["u ", "v"]
    again = load(table, schema=schema)
    assert again.x[:2].tolist() == [[0, 1], [1, 0]]
    assert again.y[:2].tolist() == [0, 1]


def every_other_padded(cells):
    return [f" {cell} " if place % 2 else cell for place, cell in enumerate(cells)]


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "streamed"])
def test_white_space_around_cells_changes_nothing(tmp_path, monkeypatch, learned, kind):
    pytest.importorskip("pyarrow")
    edges, nodes = messy()
    nodes["site"] = [f"g{i % 9}" for i in range(len(nodes))]
    asked = {"folds": 3, "groups": "site"}
    plain = load((edges, nodes), **asked)
    source = edges.apply(every_other_padded), nodes.apply(every_other_padded)
    if kind != "frame":
        for name, frame in zip(("edges", "nodes"), source, strict=True):
            path = tmp_path / name
            csv, parquet = path.with_suffix(".csv"), path.with_suffix(".parquet")
            frame.to_csv(csv, index=False) if kind == "csv" else frame.to_parquet(parquet)
        source = tmp_path
    if kind == "streamed":
        monkeypatch.setattr(converting, "STREAMED_FROM", 0)
        source = convert(tmp_path, tmp_path / "store", **asked).path
    graph = load(source) if kind == "streamed" else load(source, **asked)
    assert torch.equal(graph.x, learned.x)
    assert torch.equal(graph.y, plain.y)
    assert (graph.class_names, graph.node_ids) == (plain.class_names, plain.node_ids)
    assert torch.equal(graph.test_mask, plain.test_mask)


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        (0, {"order": "dym"}, "columns, entry 1: order must be"),
        (0, {"reference": 1e300}, "columns, entry 1: reference must be a number up to"),
        (0, {"time": 1}, "columns, entry 1: time must be true or false"),
        (1, {"decimal": ";"}, "columns, entry 2: decimal must be"),
        (1, {"unit": ["€"]}, "columns, entry 2: unit must be a list"),
        (2, {"size": 0}, "columns, entry 3: size must be a number from 1"),
        (2, {"size": 10**6}, "a rule makes more features than num_features says"),
        (3, {"idf": []}, "columns, entry 4: idf must be a list that is not empty"),
        (3, {"idf": [1.0, 0.0]}, "columns, entry 4: idf, entry 2: must be a number above 0"),
        (3, {"idf": [1.0]}, r"trained with 390 features \(got 135\)"),
    ],
)
def test_damaged_rules_are_refused_by_name(learned, place, change, message):
    schema = copy.deepcopy(learned.schema)
    schema["columns"][place] |= change
    with pytest.raises(DataError, match=message):
        load(messy(), schema=schema)


@given(
    path=st.tuples(st.integers(0, 3), st.integers(0, 12)),
    value=st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=3), st.just([0])),
)
def test_no_change_of_a_rule_does_harm(learned, path, value):
    schema = copy.deepcopy(learned.schema)
    rule = schema["columns"][path[0]]
    rule[sorted(rule)[path[1] % len(rule)]] = value
    with contextlib.suppress(ArgnnError):
        load(messy(20), schema=schema)


def test_no_label_enters_a_feature(learned):
    other = load(messy(label=random.Random(9).choices("uvw", k=300)))
    assert torch.equal(other.x, learned.x)
    assert other.schema["columns"] == learned.schema["columns"]


def test_columns_without_information_tell_nothing():
    """A classifier of the features alone stays at chance where labels are random."""
    graph = load(messy(1000, seed=3))
    x, y = graph.x.numpy(), graph.y.numpy()
    model = RidgeClassifier(alpha=10).fit(x[:600], y[:600])
    assert abs(model.score(x[600:], y[600:]) - 0.5) < 4 * 0.5 / math.sqrt(400)
    assert leak_warnings(graph) == []


# ---- what is told ------------------------------------------------------------------------------


def problems_of(source, **options):
    with pytest.raises(ProblemsError) as refused:
        load(source, **options)
    return refused.value.lines


def test_all_problems_are_told_at_once(tmp_path):
    count = 200
    edges, nodes = graph_of(
        count,
        age=["twelve", *(str(i / 3) for i in range(1, count))],
        born=[*(f"2020-01-01 {i % 24:02d}:{i // 24:02d}" for i in range(1, count)), "soon"],
        **{"two words": [1e300] + [1.0] * (count - 1)},
    )
    edges.loc[0, "target"] = "nobody"
    expected = [
        "edges.csv, line 2, column target: unknown node 'nobody'",
        "nodes.csv, line 2, column age: 'twelve' is no number, but nearly all of the column are; "
        "--drop age leaves the column out",
        "nodes.csv, line 201, column born: 'soon' is no date, but nearly all of the column are; "
        "--drop born leaves the column out",
        "nodes.csv, line 2, column two words: '1e+300' is too large for a feature; "
        "--drop 'two words' leaves the column out",
    ]
    for name, frame in {"edges": edges, "nodes": nodes}.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    lines = problems_of(tmp_path)
    assert [line.removeprefix(f"{tmp_path}/") for line in lines] == expected
    assert len(problems_of((edges, nodes))) == 4


def test_all_problems_of_another_table_are_told_at_once():
    schema = load(graph_of(a=[1.5, 2.5], b=["x", "y"], c=[True, False])).schema
    lines = problems_of(graph_of(a=["old", "2"], c=["maybe", "true"]), schema=schema)
    assert lines == [
        "nodes table, row 0, column a: 'old' must be a number",
        "nodes table: no column 'b', which the model was trained with",
        "nodes table, row 0, column c: 'maybe' must be true or false",
    ]


def test_many_problems_are_counted():
    columns = {f"c{i}": [float("inf"), 1.0] for i in range(130)}
    lines = problems_of(graph_of(**columns))
    assert len(lines) == 101
    assert lines[-1] == "... and 30 more problems"


@pytest.mark.parametrize("kind", ["copy", "number", "text"])
def test_column_that_tells_the_class_is_named(kind):
    rng = random.Random(4)
    labels = [rng.choice("uvw") for _ in range(200)]
    made = {
        "copy": lambda label: label.upper(),
        "number": lambda label: 10 * ord(label) + rng.random(),
        "text": lambda label: f"{' '.join(rng.choices(WORDS, k=4))} kind{label}",
    }[kind]
    fair = [rng.random() for _ in labels]
    graph = load(graph_of(hint=[made(label) for label in labels], fair=fair, label=labels))
    told = "column hint tells the class of every labelled node"
    assert leak_warnings(graph) == [f"{told}: --drop hint if it is the label again"]
    some = [made("u" if label == "v" else "v") for label in labels[:2]]
    some += [made(label) for label in labels[2:]]
    near = leak_warnings(load(graph_of(hint=some, fair=fair, label=labels)))
    assert [line.split(" labelled")[0] for line in near] == [
        "column hint tells the class of nearly every"
    ]


def test_columns_that_could_be_the_label_are_named():
    rng = random.Random(2)
    table = graph_of(
        size=[rng.random() for _ in range(60)],
        town=[rng.choice(["Bonn", "Ulm"]) for _ in range(60)],
        status=[rng.choice([0, 1, 2]) for _ in range(60)],
    )
    (warning,) = class_warnings(load(table))
    assert warning.endswith("the column of the classes could be status, town (--label status)")


# ---- targets, labels and weights ---------------------------------------------------------------


def test_targets_with_decimal_commas():
    cells = ["1,5", "2", "1.000,25", "", "3", "4"]
    for options in ({"task": "auto"}, {"task": "regression"}):
        graph = load(graph_of(x=range(6), label=cells), **options)
        assert graph.targets[:3].flatten().tolist() == [1.5, 2, 1000.25]
    same = load(graph_of(x=range(6), label=cells), schema=graph.schema)
    torch.testing.assert_close(same.targets, graph.targets, equal_nan=True)


def test_words_for_no_label():
    labels = [*"uvuvuvuvuv", "?", "N/A"]
    graph = load(graph_of(x=range(12), label=labels))
    assert graph.class_names == ["u", "v"]
    assert graph.y.tolist()[-2:] == [-1, -1]
    assert "column label: '?', 'N/A' count as no label" in graph.notes
    known = copy.deepcopy(graph.schema)
    known["label"]["classes"] = ["?", "u", "v"]
    assert load(graph_of(x=range(3), label=["?", "u", "-"]), schema=known).y.tolist() == [0, 1, -1]


def test_weights_with_decimal_commas():
    edges, nodes = graph_of(x=range(3))
    edges["weight"] = ["1,5", "2,5", "0,5"]
    with pytest.raises(
        DataError, match="row 0, column weight: .* .got '1,5'.; --decimal , reads it"
    ):
        load((edges, nodes), weight="weight")
    graph = load((edges, nodes), weight="weight", decimal=",", directed=True)
    assert sorted(graph.edge_weight.tolist()) == [0.5, 1.5, 2.5]


def test_huge_cells_are_read_in_little_time():
    """Of a text the beginning counts; what is too long for a number or a date is none."""
    cells = [*texts(40), "word " * 200_000, "9" * 10**6, "1," * 500_000, "2024-01-01T" * 90_000]
    graph = load(graph_of(x=cells))
    assert graph.schema["columns"][0]["kind"] == "text"
    assert torch.isfinite(graph.x).all()
