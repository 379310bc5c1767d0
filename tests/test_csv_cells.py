"""Words that a spreadsheet would run: written with a mark, and read back as they were."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argnn.csv_cells import plain_cell, safe_cell

DANGEROUS = ["=1+1", "+a", "-b", "@SUM(A1)", "=cmd|' /C calc'!A0", "\t=1", "\n=1", "-1+1", "=", "-"]


@pytest.mark.parametrize("text", DANGEROUS)
def test_formulas_are_marked(text):
    assert safe_cell(text) == f"'{text}"
    assert plain_cell(safe_cell(text)) == text


@pytest.mark.parametrize("value", ["-1.5", "+2", "-1e-3", "a=b", "'quoted'", "", -1.5, 3, None])
def test_other_values_stay(value):
    assert safe_cell(value) == value


@given(st.text(alphabet="'=+-@\t\ra1.", max_size=6))
def test_any_text_comes_back(text):
    written = safe_cell(text)
    assert plain_cell(written) == text.replace("\r", "\n")
    assert not written.startswith(tuple("=+-@\t\r")) or np.isfinite(float(written))


def test_no_row_begins_inside_a_cell():
    assert safe_cell("a\r=1+1") == "a\n=1+1", "which is written in quotes"


def test_table_of_an_analysis():
    pandas = pytest.importorskip("pandas")
    from argnn.analysis.tables import table_bytes

    table = pandas.DataFrame({"id": [*DANGEROUS, "-1.5"], "value": -1.5})
    rows = list(csv.reader(io.StringIO(table_bytes(table, "csv").decode(), newline="")))
    assert [row[0] for row in rows] == ["id", *(f"'{text}" for text in DANGEROUS), "-1.5"]
    assert {row[1] for row in rows[1:]} == {"-1.5"}
    assert table["id"][0] == DANGEROUS[0], "the table itself stays"
