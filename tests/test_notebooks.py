"""The notebooks in ``examples``: short, stored without outputs, and run from top to bottom."""

import json
import shutil
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="notebooks need pip install 'argnn[dev]'")
nbformat = pytest.importorskip("nbformat")

EXAMPLES = Path(__file__).parent.parent / "examples"
TABLE, GEOMETRY = EXAMPLES / "table_to_page.ipynb", EXAMPLES / "learned_geometry.ipynb"

#: Trials of a few epochs, as of the fixture ``brief_trial``.
BRIEF = """
from argnn.runs import trial
trial.ROUNDS, trial._FIRST_ROUND, trial.NODES_PER_RECIPE = ((1, 2), (2, 1)), 1, 1
trial.RECIPES = trial.RECIPES[:3]
"""


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cells, kind="text/html") -> str:
    """Everything of a kind that some cells display."""
    outputs = [output for cell in cells for output in cell.outputs]
    return "".join(output.get("data", {}).get(kind, "") for output in outputs)


def test_notebooks_are_stored_without_outputs():
    for path in EXAMPLES.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert [cell["outputs"] for cell in cells if "outputs" in cell if cell["outputs"]] == []


def test_a_table_becomes_a_page_in_fewer_than_ten_lines():
    notebook = nbformat.read(TABLE, as_version=4)
    lines = "\n".join(cell.source for cell in code_cells(notebook)).splitlines()
    assert len([line for line in lines if line.strip()]) < 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_notebooks_run_in_one_kernel_and_show_progress(tmp_path):
    shutil.copytree(EXAMPLES / "shop", tmp_path / "shop")
    both = [nbformat.read(path, as_version=4) for path in (TABLE, GEOMETRY)]
    cells = [nbformat.v4.new_code_cell(BRIEF), *(cell for one in both for cell in one.cells)]
    whole = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(
        whole, timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    table, geometry = (code_cells(one) for one in both)
    fitted = shown(table[1:2])
    assert "epochs of the trial" in fitted
    assert "chosen epoch" in fitted
    assert "learned: every node has its own" in fitted or "fixed: all nodes" in fitted
    assert "<th>known</th>" in shown(table[2:3])
    assert "importance" in shown(table[3:4])
    assert '<iframe src="shop.html"' in shown(table[4:])
    assert b"<html" in (tmp_path / "shop.html").read_bytes()
    assert "clique" in shown(geometry[1:2])
    assert "epochs of all trials" in shown(geometry[3:4])
    assert "val_accuracy" in shown(geometry[3:4])
    assert "<th>split</th>" in shown(geometry[4:])
    # Bars are replaced, not printed; PyG's tqdm wishes for ipywidgets.
    streams = [o for cell in table + geometry for o in cell.outputs if o.output_type == "stream"]
    assert [o for o in streams if "IProgress not found" not in o.text] == []
