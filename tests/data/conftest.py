"""Every test of the data layer has a cache of its own."""

import pytest


@pytest.fixture(autouse=True)
def _own_cache(cache):
    """See ``cache`` of the tests' common file."""
