"""Every test begins in the same state, in any order: see ``conftest.py`` of the repository."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

SEEN: dict[str, list[object]] = {}
AT_IMPORT = torch.rand(3).tolist()


def same_as_before(kind: str, state: object) -> bool:
    """Whether all calls of a kind were given the same."""
    SEEN.setdefault(kind, []).append(state)
    return SEEN[kind][0] == state


def draws() -> tuple[object, ...]:
    return torch.rand(3).tolist(), np.random.rand(), random.random()  # noqa: NPY002


@pytest.fixture
def drawn() -> tuple[object, ...]:
    return draws()


@pytest.mark.parametrize("time", range(2))
def test_tests_draw_the_same(time):
    assert same_as_before("test", draws())


def test_modules_draw_from_the_seed_when_they_are_imported():
    assert torch.rand(3).tolist() == AT_IMPORT


@pytest.mark.parametrize("time", range(2))
def test_fixtures_draw_the_same_and_other_numbers_than_tests(drawn, time):
    assert same_as_before("fixture", drawn)
    assert drawn != draws()


@pytest.mark.parametrize("time", range(2))
def test_threads_of_another_test_are_not_left(time):
    assert same_as_before("threads", torch.get_num_threads())
    torch.set_num_threads(torch.get_num_threads() + 1)


@given(st.integers(0, 3))
def test_examples_draw_the_same(number):
    assert same_as_before("example", torch.rand(3).tolist())
    torch.rand(number)
