"""How each column of a node table becomes features: the rules of ``argnn.data.columns``.

A column is read as the first of these that fits all of its cells: lists of numbers, true and false,
numbers, dates, words. Up to ``max_categories`` different words become one feature each. More are
text if half of the cells hold several words, a name of the node if nearly all differ, and else
they are hashed. No label is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

import numpy as np

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
from argnn.data.written_numbers import DECIMAL_SIGNS, Writing, looks_like_number, ways_of_writing
from argnn.errors import Problems

#: So many cells that all differ are names, and so are those of a longer column of which this share
#: differs. This share of numbers or dates tells what the other cells should have been.
_MANY, _NEARLY_ALL = 20, 0.9
_DAY = 86_400


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
    # Numbers that can be read in two ways are read as those of the other columns.
    commas = [name for name, rule in rules.items() if (rule or {}).get("decimal") == ","]
    for name in unsure:
        chosen = replace(options, decimal=DECIMAL_SIGNS[bool(commas)])
        rules[name] = _ColumnLearner(table, name, chosen, notes).rule()
    return [rule for rule in rules.values() if rule is not None]


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
        self._note(f"{reason}, left out")
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
        cells = self.table.columns[self.name]
        if cells.dtype.kind == "O":
            texts = [c for c in cells.tolist() if isinstance(c, str) and not is_no_number(c)]
            ways = ways_of_writing(texts) if values is None or any("." in t for t in texts) else []
            way = self._chosen(ways, texts)
            if way is not None and (values is None or way.decimal == ","):
                rule |= {"decimal": way.decimal, "unit": list(way.unit)}
                values = cell_numbers(self.table, rule)
        if values is None:
            return None
        known = np.sort(values[~np.isnan(values)])
        if len(known) >= _MANY and (np.diff(known) == 1).all():
            left_out = f"(else --drop {quote(self.name)})"
            self._note(f"counts the rows, as an id does, and is kept as a number {left_out}")
        return self._scaled(rule, values, scaled=self.options.standardize)

    def _chosen(self, ways: Sequence[Writing], texts: Sequence[str]) -> Writing | None:
        """The way of writing that the options ask for, else the first."""
        if len(ways) < 2:
            return ways[0] if ways else None
        if self.options.decimal is None:
            self.is_unsure = True
            return ways[0]
        way, other = sorted(ways, key=lambda found: found.decimal != self.options.decimal)
        text = next(text for text in texts if not text.isdecimal())
        values = f"{way.read(text):.10g} and could be {other.read(text):.10g}"
        self._note(f"{text} was read as {values} (--decimal {other.decimal})")
        return way

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

    def _words(self) -> ColumnRule | None:
        words = [
            str(cell) for row, cell in self.table.present(self.name) if self._is_word(row, cell)
        ]
        different = set(words)
        if not words:
            return self._left_out("empty")
        all_differ = len(words) == len(different) >= _MANY
        is_category = len(different) <= self.options.max_categories and not all_differ
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
