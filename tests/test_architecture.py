"""The direction of imports, read from the syntax tree of every module of the package.

A lower layer never imports a higher one, heavy optional packages are imported where they are
used, and training touches no files.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import argnn

PACKAGE = Path(argnn.__file__).parent

BOTTOM = {
    "checked",
    "csv_cells",
    "errors",
    "files",
    "folders",
    "interrupts",
    "registry",
    "tables",
    "telling",
    "version",
    "waiting",
    "wording",
    "yaml_files",
}
#: Equations, layers and training open no files.
_PURE = BOTTOM - {"files"}
_TRAINING = BOTTOM | {"functional", "nn", "train"}
_SETTINGS = _TRAINING | {"data"}
_STORE = _SETTINGS | {"settings"}
_RUNS = _STORE | {"store", "analysis"}

#: What the modules of each layer may import besides their own layer; "argnn" is the package
#: itself, whose ``__init__`` imports the public names.
ALLOWED: dict[str, set[str]] = {
    "errors": {"wording"},
    "version": set(),
    "csv_cells": set(),
    "waiting": set(),
    "wording": set(),
    "tables": set(),
    "telling": set(),
    "interrupts": set(),
    "folders": {"errors", "interrupts"},
    "files": {"errors", "folders", "interrupts", "wording"},
    "registry": {"errors"},
    "checked": {"errors", "registry", "wording"},
    "yaml_files": {"errors"},
    "kernels": _PURE,
    "functional": _PURE | {"kernels"},
    "nn": _PURE | {"functional"},
    "train": _PURE | {"functional", "nn"},
    "data": BOTTOM | {"functional"},
    "analysis": BOTTOM | {"functional", "nn", "data"},
    "settings": _SETTINGS,
    "store": _STORE,
    "runs": _RUNS | {"argnn"},
    "estimators": _RUNS | {"runs", "argnn"},
    "outputs": _RUNS | {"runs", "estimators", "argnn"},
    "bench": _RUNS | {"runs", "estimators", "argnn"},
    "cli": _RUNS | {"runs", "estimators", "outputs", "bench", "argnn"},
    "__main__": {"cli"},
    "argnn": _RUNS | {"estimators", "bench", "kernels", "outputs"},
}

#: Imported inside the functions that need them.
HEAVY = {
    "captum",
    "geoopt",
    "igraph",
    "matplotlib",
    "networkx",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "openTSNE",
    "optuna",
    "ot",
    "plotly",
    "pymetis",
    "ray",
    "tensorboard",
}

FILE_MODULES = {"io", "os", "pathlib"}


@dataclass(frozen=True)
class Import:
    """One imported name: ``target`` is the longest dotted name the statement gives."""

    target: str
    line: int
    at_import_time: bool


def layer_of(module: str) -> str:
    """``argnn.nn.conv.ar_conv`` is of layer ``nn``, and ``argnn`` of layer ``argnn``."""
    return module.split(".")[1] if "." in module else module


def imports_of(tree: ast.Module, module: str, is_package: bool) -> Iterator[Import]:
    """Every import of a module, wherever it stands."""
    deferred = _deferred_nodes(tree)
    for node in ast.walk(tree):
        for target in _targets(node, module, is_package):
            yield Import(target, node.lineno, node not in deferred)


def _targets(node: ast.AST, module: str, is_package: bool) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = module.split(".")
            package = parts[: len(parts) - node.level + is_package]
            base = ".".join([*package, *([base] if base else [])])
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call):
        # importlib.import_module("argnn.cli") is an import too.
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name in ("import_module", "__import__") and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                return [first.value]
    return []


def _deferred_nodes(tree: ast.Module) -> set[ast.AST]:
    """Nodes that are not executed when the module is imported."""
    deferred: set[ast.AST] = set()
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        body = node.body if is_function or is_for_types else []
        for statement in body:
            deferred.update(ast.walk(statement))
    return deferred


def imported_layer(target: str) -> str:
    """Layer of an imported name of the package; ``argnn.__version__`` is of the package itself."""
    layer = layer_of(target)
    return layer if layer in ALLOWED else "argnn"


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What is against the rules in the source text of a module."""
    layer = layer_of(module)
    if layer not in ALLOWED:
        return [f"{module}: no layer '{layer}' is known; give it a row in ALLOWED"]
    tree = ast.parse(source)
    found = []
    for item in imports_of(tree, module, is_package):
        where = f"{module}:{item.line}"
        root = item.target.split(".")[0]
        if root == "argnn":
            used = imported_layer(item.target)
            if used != layer and used not in ALLOWED[layer]:
                found.append(f"{where}: {layer} may not import {used}")
        elif root in HEAVY and item.at_import_time:
            found.append(f"{where}: {root} must be imported inside a function")
        if layer == "functional" and not _is_pure(item):
            found.append(f"{where}: functional may not import {item.target}")
        if layer == "train" and root in FILE_MODULES:
            found.append(f"{where}: train opens no files, but imports {root}")
    found += [
        f"{module}:{line}: {layer} may not open files of {owner}"
        for owner, line in _resources(tree)
        if owner != layer
    ]
    if layer == "train":
        found += [
            f"{module}:{line}: train opens no files, but calls {name}"
            for name, line in _file_calls(tree)
        ]
    return found


def _resources(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Layers of the package whose data files are opened by ``importlib.resources.files``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "files":
            for part in node.args:
                if isinstance(part, ast.Constant) and str(part.value).split(".")[0] == "argnn":
                    yield layer_of(str(part.value)), node.lineno


def _is_pure(item: Import) -> bool:
    """Whether a module of equations may import this."""
    root = item.target.split(".")[0]
    if root == "torch_geometric":
        return f"{item.target}.".startswith("torch_geometric.utils.")
    if root == "ot":
        return not item.at_import_time
    return root in ("argnn", "torch") or root in sys.stdlib_module_names


def _file_calls(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("open", "torch.save", "torch.load") or name.endswith(".open"):
                yield name, node.lineno


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found.append((".".join(parts), path))
    return found


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of every module by its name."""
    return {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in modules()}


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: str(value)[-40:])
def test_module_keeps_the_order_of_layers(module, path):
    source = path.read_text(encoding="utf-8")
    assert violations(source, module, is_package=path.name == "__init__.py") == []


def test_the_walk_finds_the_package():
    names = [name for name, _ in modules()]
    assert "argnn" in names
    assert "argnn.functional" in names
    assert "argnn.functional.ricci" in names


def test_the_order_of_layers_has_no_cycle():
    lower: set[str] = set()
    waiting = dict(ALLOWED)
    while waiting:
        ready = [layer for layer, allowed in waiting.items() if allowed <= lower]
        # runs may import the package, whose __init__ offers the estimators
        if not ready:
            assert {"argnn", "estimators"} <= set(waiting)
            ready = ["argnn"]
        lower.update(ready)
        for layer in ready:
            del waiting[layer]


VIOLATING = [
    ("argnn.functional.ricci", "from argnn.nn import ARConv", "functional may not import nn"),
    ("argnn.functional.ricci", "import argnn.train.loop", "functional may not import train"),
    ("argnn.functional.ricci", "from argnn import nn", "functional may not import nn"),
    ("argnn.functional.ricci", "from ..nn import metric", "functional may not import nn"),
    ("argnn.functional.ricci", "from .. import data", "functional may not import data"),
    ("argnn.functional.ricci", "from argnn import __version__", "may not import argnn"),
    ("argnn.functional.ricci", "import argnn", "functional may not import argnn"),
    ("argnn.functional.ricci", "import numpy", "functional may not import numpy"),
    ("argnn.functional.ricci", "import scipy.sparse", "functional may not import scipy.sparse"),
    ("argnn.functional.ricci", "from torch_geometric.nn import GCNConv", "torch_geometric.nn"),
    ("argnn.functional.ricci", "import torch_geometric", "may not import torch_geometric"),
    ("argnn.functional.ollivier", "import ot", "ot must be imported inside a function"),
    ("argnn.functional.ollivier", "try:\n    import ot\nexcept ImportError:\n    ot = None", "ot"),
    ("argnn.nn.models.argnn", "from argnn.train import fit", "nn may not import train"),
    ("argnn.nn.models.argnn", "from argnn.data import load", "nn may not import data"),
    ("argnn.nn.models.argnn", "from argnn.kernels import cpu", "nn may not import kernels"),
    ("argnn.nn.models.argnn", "from ...train import fit", "nn may not import train"),
    ("argnn.nn.metric", "import geoopt", "geoopt must be imported inside a function"),
    ("argnn.nn.metric", "class A:\n    import geoopt", "geoopt must be imported inside"),
    ("argnn.nn.metric", "if True:\n    from geoopt import optim", "geoopt must be imported"),
    ("argnn.nn.metric", "def f():\n    from argnn.bench import run", "nn may not import bench"),
    ("argnn.nn.metric", "def f():\n    import_module('argnn.cli')", "nn may not import cli"),
    ("argnn.nn.metric", "import importlib\nimportlib.import_module('argnn.data')", "import data"),
    (
        "argnn.nn.metric",
        "if TYPE_CHECKING:\n    from argnn.train import Config",
        "nn may not import train",
    ),
    ("argnn.train.loop", "from argnn.files import save", "train may not import files"),
    ("argnn.train.loop", "from argnn import data", "train may not import data"),
    ("argnn.train.loop", "from argnn.bench import run", "train may not import bench"),
    ("argnn.train.loop", "import os", "train opens no files, but imports os"),
    ("argnn.train.loop", "from pathlib import Path", "train opens no files, but imports pathlib"),
    ("argnn.train.loop", "def f():\n    import io", "train opens no files, but imports io"),
    ("argnn.train.loop", "def f(p):\n    return open(p)", "train opens no files, but calls open"),
    ("argnn.train.loop", "def f(p):\n    return p.open()", "calls p.open"),
    ("argnn.train.loop", "torch.save(x, 'x.pt')", "train opens no files, but calls torch.save"),
    ("argnn.data.specs", "from argnn.settings import stored", "data may not import settings"),
    ("argnn.data.specs", "from argnn.nn import MODELS", "data may not import nn"),
    (
        "argnn.analysis.layers",
        "import matplotlib.pyplot as plt",
        "matplotlib must be imported",
    ),
    (
        "argnn.analysis.layers",
        "from argnn.train import fit",
        "analysis may not import train",
    ),
    ("argnn.files", "from argnn.nn import MODELS", "files may not import nn"),
    ("argnn.settings.resolve", "from argnn.store import results", "settings may not import store"),
    ("argnn.store.results", "from argnn.runs import run", "store may not import runs"),
    ("argnn.outputs.predict", "from argnn.bench import tuning", "outputs may not import bench"),
    ("argnn.analysis.layers", "from argnn.runs import run", "analysis may not import runs"),
    ("argnn.bench.tuning", "from argnn.outputs import predict", "bench may not import outputs"),
    ("argnn.estimators", "files('argnn.settings')", "estimators may not open files of settings"),
    ("argnn.estimators", "files('argnn').joinpath('bench')", "may not open files of argnn"),
    ("argnn.kernels.cpu", "from argnn.functional import nrmd", "kernels may not import functional"),
    ("argnn.estimators", "from argnn.bench import run", "estimators may not import bench"),
    ("argnn.estimators", "from argnn.cli import app", "estimators may not import cli"),
    ("argnn.runs.run", "from argnn.bench import perf", "runs may not import bench"),
    ("argnn.runs.run", "import optuna", "optuna must be imported inside a function"),
    ("argnn.runs.run", "import argnn.__main__", "runs may not import __main__"),
    ("argnn.cli", "from argnn import __main__", "cli may not import __main__"),
    ("argnn", "from argnn.cli import main", "argnn may not import cli"),
    ("argnn.registry", "from argnn.data import load", "registry may not import data"),
    ("argnn.errors", "from argnn.registry import resolve", "errors may not import registry"),
    ("argnn.version", "from argnn.errors import ArgnnError", "version may not import errors"),
    ("argnn.utils", "x = 1", "no layer 'utils' is known"),
]


@pytest.mark.parametrize(("module", "source", "message"), VIOLATING, ids=lambda text: text[:50])
def test_checker_catches_a_violation(module, source, message):
    found = violations(source, module)
    assert any(message in line for line in found), found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("argnn.registry", "import difflib\nfrom argnn.errors import ConfigError"),
        ("argnn.functional.ricci", "import math\nimport torch\nfrom torch.nn import functional"),
        ("argnn.functional.ricci", "from torch_geometric.utils import scatter"),
        ("argnn.functional.ricci", "from torch_geometric import utils"),
        ("argnn.functional.ricci", "from argnn.functional.metric import norm\nfrom . import x"),
        ("argnn.functional.ricci", "from argnn.kernels import cpu"),
        ("argnn.functional.ollivier", "def f():\n    import ot"),
        ("argnn.nn.conv.ar_conv", "from argnn.functional import nrmd\nfrom ..metric import norm"),
        ("argnn.nn.metric", "def f():\n    import geoopt"),
        ("argnn.nn.metric", "if TYPE_CHECKING:\n    import geoopt"),
        ("argnn.train.loop", "from argnn import functional as AF, nn\nimport time"),
        ("argnn.analysis.layers", "def f(ax):\n    import matplotlib.pyplot as plt"),
        (
            "argnn.files",
            "import io\nimport json\nfrom pathlib import Path\nfrom argnn.errors import x",
        ),
        ("argnn.settings.resolve", "files('argnn.settings').joinpath('files')"),
        ("argnn.runs.run", "from argnn import data, files\nopen('x')\nimport os"),
        ("argnn.estimators", "from argnn import analysis, data, nn, runs, train"),
        ("argnn.cli", "from argnn import __version__, bench"),
        ("argnn.__main__", "from argnn.cli import main"),
        ("argnn", "from argnn.estimators import ARGNNClassifier"),
    ],
)
def test_checker_accepts_what_is_allowed(module, source):
    assert violations(source, module) == []


def test_checker_resolves_relative_imports_of_packages():
    assert violations("from .ricci import x", "argnn.functional", is_package=True) == []
    found = violations("from ..nn import x", "argnn.functional", is_package=True)
    assert found == ["argnn.functional:1: functional may not import nn"]


def test_importing_the_package_leaves_heavy_packages_alone():
    # networkx is not in the list: torch may import it.
    heavy = ["matplotlib", "plotly", "geoopt", "ot", "optuna", "ray"]
    code = f"import sys, argnn; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_no_two_classes_have_one_name():
    places: dict[str, list[str]] = {}
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name.strip("_"), []).append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_public_types_have_one_name():
    """A name for a type, such as ``Tell``, means the same in every module that has one."""
    meanings: dict[str, set[str]] = {}
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                meanings.setdefault(node.name, set()).add(f"class of {module}")
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                meanings.setdefault(node.targets[0].id, set()).add(ast.unparse(node.value))
    names = {name for name in meanings if re.fullmatch("[A-Z]+[a-z]\\w*", name)}
    assert {name: meanings[name] for name in names if len(meanings[name]) > 1} == {}


def test_only_resolve_reads_settings_files():
    """The search, which writes one of them, looks whether it may replace an older result."""
    readers = ("read_tuned", "stored_settings", "parsed_settings", "find_settings")
    found = set()
    for module, tree in trees().items():
        for node in ast.walk(tree):
            names = [each.name for each in node.names] if isinstance(node, ast.ImportFrom) else []
            found.update((module, name) for name in names if name in readers)
    known = {"argnn.settings.resolve", "argnn.bench.tuning.search"}
    assert found == {(module, "read_tuned") for module in known}


def test_nothing_is_compared_with_the_name_of_a_model_or_message_form():
    """What a model or a form can do is said by its class: others may be added."""
    names = {*argnn.nn.MODELS, *argnn.nn.MESSAGE_FORMS}
    found = [
        f"{module}:{node.lineno}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Constant) and side.value in names
    ]
    assert found == []
