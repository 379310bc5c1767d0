"""PyG's generated code is not taken from a folder that others can write."""

import importlib.util
import inspect
import marshal
import os
import re
import sys
from pathlib import Path

import pytest
import torch
import torch_geometric
from torch_geometric.nn import GCNConv, Sequential

import argnn.nn
from forked import code, run_forked

BUILD = """
import tempfile, sys
# The names are random, but the attacker reads them from the folder and is faster than the import.
tempfile._get_candidate_names = lambda: iter(["guessed"] * 10)
from torch_geometric.nn import GCNConv, MessagePassing, Sequential
from argnn.nn import MODELS

class Own(MessagePassing):
    def message(self, x_j):
        return x_j

def build():
    for make in MODELS.values():
        make(4, 8, 2)
    Own(), GCNConv(4, 4), Sequential("x, e", [(GCNConv(4, 4), "x, e -> x")])
    print(sum(name.endswith("_propagate") for name in sys.modules))

if __name__ == "__main__":
    import multiprocessing
    build()
    for method in ("spawn", "fork"):
        child = multiprocessing.get_context(method).Process(target=build)
        child.start()
        child.join()
        assert child.exitcode == 0
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and a sticky folder")
def test_code_that_another_user_planted_is_not_run(tmp_path):
    shared, mark = tmp_path / "shared", tmp_path / "mark"
    planted = shared / "__pycache__"
    planted.mkdir(parents=True)
    shared.chmod(0o1777)
    planted_code = compile(f"open({str(mark)!r}, 'a')", "planted", "exec")
    # "unchecked": Python runs it without a look at the source.
    content = importlib.util.MAGIC_NUMBER + b"\1" + bytes(11) + marshal.dumps(planted_code)
    layers = [("argnn.nn.conv.ar_conv", "ARConv"), ("torch_geometric.nn.conv.gcn_conv", "GCNConv")]
    layers += [("__main__", "Own"), ("__mp_main__", "Own")]
    for module, layer in layers:
        name = f"{module}_{layer}_propagate_guessed.{sys.implementation.cache_tag}.pyc"
        (planted / name).write_bytes(content)
    script = tmp_path / "build.py"
    script.write_text(BUILD)
    # A fork has PyG, but no layer of it yet; of its two children the first imports everything.
    done, out, errors = run_forked(
        code,
        f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')",
        cwd=tmp_path,
        TMPDIR=str(shared),
        PYTHONPATH=os.pathsep.join(sys.path),
        PYTHONDONTWRITEBYTECODE="1",
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path),  # torch makes its own folder in TMPDIR
    )
    assert done == 0, errors
    assert not mark.exists(), "planted code was run"
    assert [int(line) > 3 for line in out.split()] == [True] * 3
    assert [path.name for path in shared.iterdir()] == ["__pycache__"], "nothing is left behind"
    assert len(list(planted.iterdir())) == len(layers)


def test_no_other_part_of_pyg_uses_its_own_function():
    root = Path(torch_geometric.__file__).parent
    users = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"\bmodule_from_template\b", path.read_text(encoding="utf-8"))
    }
    assert users == {"template.py", "nn/conv/message_passing.py", "nn/sequential.py"}
    for name in users:
        module = sys.modules[f"torch_geometric.{name[:-3].replace('/', '.')}"]
        assert module.module_from_template is argnn.nn.generated_modules.module_in_memory


def test_generated_code_can_be_read_and_compiled():
    conv = GCNConv(4, 4).eval()
    assert "def propagate(" in inspect.getsource(type(conv).propagate)
    x, edge_index = torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]])
    torch.testing.assert_close(torch.jit.script(conv)(x, edge_index), conv(x, edge_index))
    layers = Sequential("x, edge_index", [(conv, "x, edge_index -> x")])
    torch.testing.assert_close(layers(x, edge_index), conv(x, edge_index))
