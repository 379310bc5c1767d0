"""What a file may hold, and the one line about what it may not."""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired

import pytest
from annotated_types import Gt, Lt, MinLen
from typing_extensions import TypedDict

from argnn.checked import Count, Text, check_fields, checked, checked_value
from argnn.errors import ConfigError


@dataclass(frozen=True)
class Method:
    model: Text
    changes: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if self.model == "gnc":
            raise ConfigError("unknown model 'gnc'")


@dataclass(frozen=True)
class Plan:
    methods: Annotated[tuple[Method, ...], MinLen(1)]
    data: list[Text | Method] = field(default_factory=list)
    splits: list[Count] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, Count] = field(default_factory=dict)
    temperature: Annotated[float, Gt(0), Lt(1e300)] = 1.0
    task: Literal["node", "link"] = "node"
    best: Method | None = None


GOOD = {"methods": [{"model": "gcn"}]}


def test_a_structure_of_lists_and_parts():
    values = {**GOOD, "data": ["cora", {"model": "a"}], "temperature": 2, "best": {"model": "b"}}
    found = checked(values, Plan)
    assert found == Plan((Method("gcn"),), ["cora", Method("a")], temperature=2.0, best=Method("b"))
    assert isinstance(found.temperature, float)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "must be a mapping of names to values (got 3)"),
        ([GOOD], "must be a mapping of names to values (got [{'methods'"),
        ({}, "has no 'methods'"),
        ({**GOOD, "taks": "node"}, "unknown key 'taks'; did you mean 'task'? choices: best, co"),
        ({**GOOD, "\ud800": 1}, "unknown key '?'; choices: "),
        ({**GOOD, 3: 1}, "unknown key '3'; choices: "),
        ({"methods": []}, "methods must be a list that is not empty (got [])"),
        ({"methods": [{"model": "gcn"}, 3]}, "methods, entry 2: must be a mapping of names to"),
        ({"methods": [{}]}, "methods, entry 1: has no 'model'"),
        ({"methods": [{"modle": "a"}]}, "methods, entry 1: unknown key 'modle'; did you mean"),
        ({"methods": [{"model": "gnc"}]}, "methods, entry 1: unknown model 'gnc'"),
        ({"methods": [{"model": " "}]}, "methods, entry 1: model must be a text (got ' ')"),
        (
            {"methods": [{"model": "a", "changes": ["b", 3]}]},
            "methods, entry 1: changes, entry 2: must be a text (got 3)",
        ),
        ({**GOOD, "data": [7]}, "data, entry 1: must be a text or a mapping of names to values"),
        ({**GOOD, "splits": 3}, "splits must be a list (got 3)"),
        ({**GOOD, "splits": [0, -1]}, "splits, entry 2: must be a number from 0 (got -1)"),
        ({**GOOD, "splits": [0, True]}, "splits, entry 2: must be a whole number (got True)"),
        ({**GOOD, "splits": [1.0]}, "splits, entry 1: must be a whole number (got 1.0)"),
        ({**GOOD, "options": {1: 2}}, "options must be a mapping of names to values (key 1 is no"),
        ({**GOOD, "counts": {"a": -2}}, "counts.a must be a number from 0 (got -2)"),
        ({**GOOD, "temperature": 0}, "temperature must be a number above 0"),
        ({**GOOD, "temperature": "1"}, "temperature must be a number (got '1')"),
        ({**GOOD, "temperature": True}, "temperature must be a number (got True)"),
        ({**GOOD, "temperature": math.nan}, "temperature must be a number below 1e+300"),
        ({**GOOD, "temperature": math.inf}, "temperature must be a number below 1e+300"),
        ({**GOOD, "temperature": 10**400}, "temperature must be a smaller number (got 1000"),
        ({**GOOD, "splits": 10**9000}, "splits must be a smaller number (got a huge number)"),
        ({**GOOD, "task": "graph"}, "task must be one of node, link (got 'graph')"),
        ({**GOOD, "task": 3}, "task must be a text (got 3)"),
        ({**GOOD, "best": {"model": "gnc"}}, "best: unknown model 'gnc'"),
        ({**GOOD, "best": {"model": 3}}, "best.model must be a text (got 3)"),
        ({**GOOD, "best": {}}, "best has no 'model'"),
    ],
)
def test_the_field_and_both_values_are_named(value, message):
    with pytest.raises(ConfigError) as caught:
        checked(value, Plan)
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("depth", [101, 5000])
def test_deep_nesting_is_refused(depth):
    value: Any = 1
    for _ in range(depth):
        value = [value]
    with pytest.raises(ConfigError, match="options: values are nested too deeply"):
        checked({**GOOD, "options": {"a": value}}, Plan)


def test_list_of_another_length_is_refused():
    with pytest.raises(ConfigError, match="has no entry 2"):
        checked([1], tuple[int, int])
    with pytest.raises(ConfigError, match="must be a list of at most 2 .got .1, 2, 3.."):
        checked([1, 2, 3], tuple[int, int])


class Row(TypedDict):
    seed: int
    score: NotRequired[float | None]


def test_rows_may_hold_more_than_is_checked():
    checked({"seed": 1, "colour": "red"}, Row)
    checked({"seed": 1, "score": None}, Row)
    for row, message in (
        ({"score": 1.0}, "has no 'seed'"),
        ({"seed": 1, "score": "1"}, "score must be a number .got '1'."),
        ({"seed": True}, "seed must be a whole number .got True."),
    ):
        with pytest.raises(ConfigError, match=message):
            checked(row, Row)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (True, int, "must be a whole number (got True)"),
        (1.0, int, "must be a whole number (got 1.0)"),
        (2**63, int, "must be a smaller number (got 9223372036854775808)"),
        ("1", float, "must be a number (got '1')"),
        (False, float, "must be a number (got False)"),
        ("x", float | None, "must be a number (got 'x')"),
        (1, bool, "must be true or false (got 1)"),
        (None, str, "must be a text (got None)"),
        ([1], int, "must be a whole number (got [1])"),
    ],
)
def test_a_setting_of_another_type_is_refused(value, kind, message):
    with pytest.raises(ConfigError) as caught:
        checked_value("depth", value, kind)
    assert str(caught.value) == f"depth {message}"


def test_a_setting_keeps_its_value():
    for value, kind in (
        (3, int),
        (True, bool),
        (None, float | None),
        ("a", str),
        (-(2**63) + 1, int),
    ):
        assert checked_value("depth", value, kind) == value
    assert isinstance(checked_value("lr", 1, float), float)


def test_all_fields_of_a_record_are_checked():
    check_fields(Method("gcn"))
    with pytest.raises(ConfigError, match="model must be a text .got 3."):
        check_fields(Method(3))
