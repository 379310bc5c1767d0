"""Every test of the runner has a cache of its own, and one thread."""

import pytest


@pytest.fixture(autouse=True)
def _own_cache(cache, one_thread, packaged_once):
    """See ``tests/conftest.py``."""
