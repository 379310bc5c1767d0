"""Packages that import their public names on first use."""

import pkgutil

import pytest

import argnn
import argnn.data


@pytest.mark.parametrize("package", [argnn, argnn.data])
def test_every_public_name_is_found(package):
    assert set(dir(package)) == set(package.__all__) - {"__version__"}
    for name in package.__all__:
        assert getattr(package, name) is not None


@pytest.mark.parametrize("package", [argnn, argnn.data])
def test_no_name_is_hidden_by_a_module(package):
    # Importing the module would make it the attribute of that name.
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    hidden = [name for name in modules & set(package.__all__) if callable(getattr(package, name))]
    assert hidden == []


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'argnn.data' has no attribute 'nothing'"):
        _ = argnn.data.nothing
