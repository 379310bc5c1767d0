"""How each column of a node table becomes features: the rules of ``argnn.data.columns``.

A column is read as the first of these that fits all of its cells: lists of numbers, codes that only
look like numbers, true and false, numbers, dates, words. Up to ``max_categories`` different words
or codes become one feature each. More are text if half of the cells hold several words, a name of
the node if nearly all differ, and else they are hashed. No label is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

import numpy as np

from argnn.csv_cells import is_number
from argnn.data.columns import (
    ColumnRule,
    Numbers,
    cell_numbers,
    check_feature_count,
    is_no_number,
    is_no_word,
)
from argnn.data.dates import DATE_ORDERS, date_numbers, date_orders, is_date
from argnn.data.hashed_words import WORD_FEATURES, document_weights
from argnn.data.node_ids import shown
from argnn.data.tables import Table
from argnn.data.written_numbers import (
    DECIMAL_SIGNS,
    Writing,
    are_codes,
    looks_like_number,
    ways_of_writing,
)
from argnn.errors import Problems

#: So many cells that all differ are names, and so are those of a longer column of which this share
#: differs. This share of numbers or dates tells what the other cells should have been.
_MANY, _NEARLY_ALL = 20, 0.9
_DAY = 86_400
#: How a note about a column that becomes no feature ends.
LEFT_OUT = ", left out"


@dataclass(frozen=True)
class ColumnOptions:
    """What decides where the cells of a column leave a choice.

    Attributes:
        standardize: Shift and scale numbers to mean 0 and deviation 1.
        max_categories: Most different words that become one feature each.
        decimal: The sign before decimals, where both fit; None for that of the other columns.
        month_first: Whether 03/04/2024 is in March.
    """

    standardize: bool
    max_categories: int
    decimal: str | None = None
    month_first: bool = False


def learned_rules(
    table: Table,
    names: Sequence[str],
    notes: list[str],
    options: ColumnOptions,
    problems: Problems,
) -> list[ColumnRule]:
    """How each column becomes features; those that do not are noted."""
    check_feature_count(table, len(names))
    rules: dict[str, ColumnRule | None] = {}
    unsure: list[str] = []
    for name in names:
        with problems.noted(f"; --drop {quote(name)} leaves the column out"):
            column = _ColumnLearner(table, name, options, notes)
            rules[name] = column.rule()
            unsure += [name] if column.is_unsure else []
    for name in unsure:
        chosen = replace(options, decimal=decimal_sign(table, names))
        rules[name] = _ColumnLearner(table, name, chosen, notes).rule()
    return [rule for rule in rules.values() if rule is not None]


def decimal_sign(table: Table, names: Sequence[str]) -> str:
    """The sign before decimals of columns that leave no doubt, as which the others are read."""
    ways = (ways_of_writing(number_texts(table, name)) for name in names)
    return DECIMAL_SIGNS[any([way.decimal for way in found] == [","] for found in ways)]


def number_texts(table: Table, name: str) -> list[str]:
    """The texts of a column that are not missing numbers."""
    cells = table.columns[name]
    texts = cells.tolist() if cells.dtype.kind == "O" else []
    return [cell for cell in texts if isinstance(cell, str) and not is_no_number(cell)]


def learned_writing(
    texts: Sequence[str], decimal: str | None, note: Callable[[str], None]
) -> tuple[Writing | None, bool]:
    """How numbers are written, None if as Python does; and whether nothing says which way it is.

    ``decimal`` decides where both signs fit; ``note`` is told what else the numbers could be.
    """
    is_plain = all(map(is_number, texts))
    ways = [] if is_plain and not any("." in text for text in texts) else ways_of_writing(texts)
    fitting = sorted(ways, key=lambda found: found.decimal != decimal)
    way, others = next(iter(fitting), None), fitting[1:]
    if way is not None and others and decimal is not None:
        text = next(text for text in texts if not text.isdecimal())
        values = f"{way.read(text):.10g} and could be {others[0].read(text):.10g}"
        note(f"{text} was read as {values} (--decimal {others[0].decimal})")
    if is_plain and way is not None and way.decimal == ".":
        way = None
    return way, bool(others) and decimal is None


class _ColumnLearner:
    """One column while its rule is found."""

    def __init__(self, table: Table, name: str, options: ColumnOptions, notes: list[str]) -> None:
        self.table, self.name, self.options, self.notes = table, name, options, notes
        #: Whether its numbers can be read in two ways, and nothing says how.
        self.is_unsure = False

    def rule(self) -> ColumnRule | None:
        """The rule of the column; None if it is left out, with a note."""
        first = next(self.table.present(self.name), (0, None))[1]
        if isinstance(first, list | tuple | np.ndarray):
            return self._made("vector", size=len(first))
        if first is None or all(is_no_number(cell) for cell in self._cells()):
            return self._left_out("empty")
        texts = number_texts(self.table, self.name)
        if len(texts) == sum(not is_no_number(cell) for cell in self._cells()) and are_codes(texts):
            code = next((text for text in texts if text.startswith("0")), texts[0])
            self._note(f"{code} is a code and no number, so the column is read as words")
            return self._words(codes=True)
        for find in (self._truth, self._number, self._date):
            rule = find()
            if rule is not None:
                return rule
        return self._words()

    def _cells(self) -> list[Any]:
        return self.table.columns[self.name].tolist()  # type: ignore[no-any-return]

    def _made(self, kind: str, **values: Any) -> ColumnRule:
        return {"name": self.name, "kind": kind, **values}

    def _left_out(self, reason: str) -> ColumnRule | None:
        self._note(reason + LEFT_OUT)
        return None

    def _note(self, words: str) -> None:
        self.notes.append(f"column {self.name}: {words}")

    def _scaled(self, rule: ColumnRule, values: Numbers, *, scaled: bool) -> ColumnRule:
        """A rule with the mean, and by how much numbers are shifted and scaled."""
        known = values[~np.isnan(values)]
        mean, deviation = float(known.mean()), float(known.std())
        return {
            **rule,
            "mean": mean,
            "indicator": len(known) < len(values),
            "center": mean if scaled else 0.0,
            "scale": deviation if scaled and deviation > 0 else 1.0,
        }

    def _truth(self) -> ColumnRule | None:
        rule = self._made("boolean")
        values = cell_numbers(self.table, rule)
        if values is None or np.isnan(values).all():
            return None
        return self._scaled(rule, values, scaled=False)

    def _number(self) -> ColumnRule | None:
        rule = self._made("number")
        values = cell_numbers(self.table, rule)
        texts = number_texts(self.table, self.name)
        way, self.is_unsure = learned_writing(texts, self.options.decimal, self._note)
        if way is not None:
            rule |= {"decimal": way.decimal, "unit": list(way.unit)}
            values = cell_numbers(self.table, rule)
        if values is None:
            return None
        known = np.sort(values[~np.isnan(values)])
        if len(known) >= _MANY and (np.diff(known) == 1).all():
            left_out = f"(else --drop {quote(self.name)})"
            self._note(f"counts the rows, as an id does, and is kept as a number {left_out}")
        return self._scaled(rule, values, scaled=self.options.standardize)

    def _date(self) -> ColumnRule | None:
        cells = [cell for cell in self._cells() if not is_no_number(cell)]
        orders = date_orders(cells)
        if not orders:
            return None
        order = orders[-1] if self.options.month_first else orders[0]
        if order == "dmy" and len(orders) > 1:
            self._note(f"{cells[0]} was read with the day first (else --month-first)")
        rule = self._made("date", order=order)
        seconds = cell_numbers(self.table, rule)
        assert seconds is not None
        has_time = bool((seconds[~np.isnan(seconds)] % _DAY != 0).any())
        rule |= {"reference": float(np.nanmax(seconds)), "time": has_time}
        years = date_numbers(seconds, rule["reference"], has_time=False)[:, 0]
        return self._scaled(rule, years, scaled=self.options.standardize)

    def _words(self, *, codes: bool = False) -> ColumnRule | None:
        words = [
            str(cell) for row, cell in self.table.present(self.name) if self._is_word(row, cell)
        ]
        different = set(words)
        if not words:
            return self._left_out("empty")
        all_differ = len(words) == len(different) >= _MANY
        is_category = len(different) <= self.options.max_categories and not all_differ
        if not codes:
            self._check_strays(is_category)
        if is_category:
            return self._made("category", categories=sorted(different))
        if 2 * sum(len(word.split(maxsplit=1)) > 1 for word in words) >= len(words):
            return self._made("text", idf=document_weights(words))
        if len(different) > _NEARLY_ALL * len(words):
            return self._left_out("another word in nearly every row, as an id has")
        return self._made("hashed", size=WORD_FEATURES, different=len(different))

    def _is_word(self, row: int, cell: Any) -> bool:
        if not isinstance(cell, str | bool | int | float):
            kind = type(cell).__name__
            problem = f"a value of type {kind} cannot become a feature"
            raise self.table.error(row, self.name, problem)
        return not is_no_word(cell)

    def _check_strays(self, is_category: bool) -> None:
        """Raise, or note, if a few cells keep the column from being one of numbers or dates."""
        cells = [(row, cell) for row, cell in self.table.present(self.name) if not is_no_word(cell)]
        for kind, fits in _LOOKS.items():
            strays = [(row, cell) for row, cell in cells if not fits(cell)]
            if len(strays) > (1 - _NEARLY_ALL) * len(cells):
                continue
            row, cell = strays[0] if strays else cells[0]
            problem = f"{shown(cell)} is no {kind}, but nearly all of the column are"
            if not strays:
                problem = f"the {kind}s of the column are not all written in one way"
            error = self.table.error(row, self.name, problem)
            if not is_category:
                raise error
            self.notes.append(f"{error}: read as words")


def _is_any_date(cell: Any) -> bool:
    return any(is_date(cell, order) for order in DATE_ORDERS)


_LOOKS: dict[str, Callable[[Any], bool]] = {"number": looks_like_number, "date": _is_any_date}
