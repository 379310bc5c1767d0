"""Every test, fixture and doctest draws from a fixed seed, whatever ran before it.

``ARGNN_TEST_SEED`` (0 unless told) changes all seeds, also those that a test names itself;
``ARGNN_TEST_ORDER`` shuffles the files and the tests of a file. ``scripts/hunt.py`` uses both.
``--quick`` takes a part of all tests, for every day.
"""

import gc
import os
import random
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck

SEED = int(os.environ.get("ARGNN_TEST_SEED", "0"))
ORDER = os.environ.get("ARGNN_TEST_ORDER")
#: Seconds and names of tests, of ``scripts/slowest_tests.py``.
SLOWEST = Path(__file__).parent / "tests" / "slowest.txt"

gc.disable()
# Files of tests need not outlive a power cut, and a disk takes milliseconds for each.
os.fsync = lambda file: None

# torch.manual_seed writes down the stack for each kind of device that may be used later, which in
# pytest's deep stack takes a millisecond. What is not there needs no seed.
for device in (torch.cuda, torch.mtia, torch.xpu):
    if not device.is_available():
        device.manual_seed_all = lambda seed: None

# Hypothesis limits the time of an example unless told otherwise, which a busy machine breaks.
hypothesis.settings.register_profile(
    "argnn",
    deadline=None,
    database=None,
    derandomize=SEED == 0,
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis.settings.load_profile("argnn")

if SEED:
    _SHIFT, _manual_seed = 1_000_003 * SEED, torch.manual_seed

    def _shifted_seed(seed: int) -> torch.Generator:
        return _manual_seed(int(seed) + _SHIFT)

    class _ShiftedGenerator(torch.Generator):
        def manual_seed(self, seed: int) -> torch.Generator:
            return super().manual_seed(int(seed) + _SHIFT)

    _PLAIN = {"manual_seed": torch.manual_seed, "Generator": torch.Generator}
    torch.manual_seed, torch.Generator = _shifted_seed, _ShiftedGenerator


@pytest.fixture
def plain_seeds(monkeypatch) -> None:
    """Seeds as other processes have them, for a test that compares their results with its own."""
    if SEED:
        for name, plain in _PLAIN.items():
            monkeypatch.setattr(torch, name, plain)


def seed_all(seed: int) -> None:
    """Seed every generator that code can draw from without naming one."""
    torch.manual_seed(seed)
    np.random.seed(seed ^ SEED)  # noqa: NPY002 - for code that still draws from it
    random.seed(seed ^ SEED)


class TorchRandom:
    """Lets Hypothesis begin every example from the same state of torch."""

    seed = staticmethod(torch.manual_seed)
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)


TORCH_RANDOM = TorchRandom()
hypothesis.register_random(TORCH_RANDOM)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Other examples for another seed."""
    if SEED:
        config.option.hypothesisseed = SEED


def pytest_collection_finish() -> None:
    """Look for garbage from here on, and only among what comes now: it took a tenth of all time."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Libraries complain about what is left when Python ends."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """A test leaves as many threads as it found."""
    threads = torch.get_num_threads()
    result = yield
    torch.set_num_threads(threads)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """A module draws the same whichever was imported before it."""
    seed_all(0)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef) -> Iterator[None]:
    """A fixture draws the same whichever test asks for it first."""
    seed_all(zlib.crc32(fixturedef.argname.encode()))
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """A test draws the same whichever fixtures were made for it."""
    seed_all(0)


def pytest_addoption(parser: pytest.Parser) -> None:
    """What ``make quick`` says."""
    parser.addoption("--quick", action="store_true", help="one fast case of every test")


def leave_out_the_slow(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the first case of each test that is not slow, and something of every folder."""
    listed = {line.split(maxsplit=1)[1] for line in SLOWEST.read_text().splitlines()}
    kept: dict[str, pytest.Item] = {}
    for item in items:
        name = item.nodeid.split("[")[0]
        if name not in listed and item.get_closest_marker("slow") is None:
            kept.setdefault(name, item)
    before, after = (Counter(i.path.parent for i in part) for part in (items, kept.values()))
    empty = [str(folder) for folder in before if before[folder] > 9 and not after[folder]]
    if empty:
        raise pytest.UsageError(f"--quick leaves no test of {', '.join(empty)}")
    chosen = {item.nodeid for item in kept.values()}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = kept.values()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A part of the tests, or files in random order and the tests of each, where asked for."""
    if config.getoption("--quick"):
        leave_out_the_slow(config, items)
    if ORDER is None:
        return
    draw = random.Random(int(ORDER))
    files = {path: draw.random() for path in sorted({item.path for item in items})}
    keys = {item.nodeid: draw.random() for item in items}
    items.sort(key=lambda item: (files[item.path], keys[item.nodeid]))
