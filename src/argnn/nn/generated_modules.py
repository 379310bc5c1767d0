"""Keeps the code that PyG generates in memory.

PyG writes a Python module for each class of layers to the shared temporary folder and imports it
from there. Python also trusts a compiled file in ``__pycache__`` of that folder, so another user of
the machine could run code in this process (``docs/security.md``). Importing :mod:`argnn.nn`
replaces PyG's function by the one below, which writes no file and reads only PyG's own templates.
"""

import sys
from importlib.abc import SourceLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import torch_geometric.nn.conv.message_passing
import torch_geometric.nn.sequential
import torch_geometric.template
from jinja2 import Environment, FileSystemLoader


class _TextLoader(SourceLoader):
    """Loads a source text; as it has no time of change, Python looks for no compiled file."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text

    def get_filename(self, fullname: str) -> str:
        return self._name

    def get_data(self, path: str | bytes) -> bytes:
        return self._text.encode()


def module_in_memory(module_name: str, template_path: str, **values: Any) -> ModuleType:
    """The module that PyG's ``module_from_template`` gives, made once and without a file."""
    if module_name in sys.modules:
        return sys.modules[module_name]
    template = Path(template_path)
    environment = Environment(loader=FileSystemLoader(template.parent))
    text = environment.get_template(template.name).render(**values)
    # No file can have this name: its folder is a file.
    name = str(template / f"{module_name}.py")
    spec = spec_from_file_location(module_name, name, loader=_TextLoader(name, text))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[module_name] = module
    return module


for _user in (
    torch_geometric.template,
    torch_geometric.nn.conv.message_passing,
    torch_geometric.nn.sequential,
):
    _user.module_from_template = module_in_memory
