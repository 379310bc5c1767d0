"""Targets that are no classes: arrays, tables, what they are taken for, and bad ones."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from argnn.data import load
from argnn.data.targets import array_targets, task_of_array
from argnn.errors import ConfigError, DataError

EDGES = "source,target\n" + "".join(f"{i},{(i + 1) % 12}\n" for i in range(12))


@pytest.fixture
def folder(tmp_path):
    """Writes a table of twelve nodes with some columns of targets."""

    def write(**columns):
        (tmp_path / "edges.csv").write_text(EDGES)
        names = ["id", "size", *columns]
        rows = [
            [str(i), str(i % 5), *(str(cells[i % len(cells)]) for cells in columns.values())]
            for i in range(12)
        ]
        (tmp_path / "nodes.csv").write_text("\n".join(",".join(row) for row in [names, *rows]))
        return str(tmp_path)

    return write


def ring(y):
    edges = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    return Data(x=torch.eye(12), edge_index=edges, y=y)


def test_numbers_of_a_column(folder):
    graph = load(folder(price=[1.5, 2.0, ""]), label="price", task="regression")
    assert graph.target_kind == "regression"
    assert graph.target_names == ["price"]
    assert graph.targets[:2, 0].tolist() == [1.5, 2.0]
    assert graph.targets[2].isnan().all()
    assert (graph.y == -1).all()
    assert graph.class_count == 0
    assert graph.feature_names == ["size"]
    known = ~graph.targets.isnan().any(1)
    masks = graph.train_mask | graph.val_mask | graph.test_mask
    assert torch.equal(masks[:, 0], known)
    assert graph.split_rule == "one random 60/20/20 split drawn with seed 0"


def test_several_columns(folder):
    path = folder(a=[1.5, 2.0], b=[7, 8, 9])
    graph = load(path, label="a, b", task="auto")
    assert (graph.target_kind, graph.target_names) == ("regression", ["a", "b"])
    assert graph.targets[:3].tolist() == [[1.5, 7.0], [2.0, 8.0], [1.5, 9.0]]
    flags = load(folder(red=[1, 0], round=["yes", "no", "no"]), label="red,round", task="auto")
    assert flags.target_kind == "multilabel"
    assert flags.targets[:3].tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("cells", "values"),
    [(["6.096", "5"], [6096, 5]), (["923", "961", "1.000", "1.038"], [923, 961, 1000, 1038])],
)
@pytest.mark.parametrize("task", ["regression", "auto"])
def test_the_decimal_sign_also_holds_for_targets(folder, cells, values, task):
    graph = load(folder(p=cells), label="p", task=task, decimal=",")
    assert graph.targets[: len(values), 0].tolist() == values
    assert any("(--decimal .)" in note for note in graph.notes)


def test_targets_are_read_like_the_other_columns(folder):
    cells = ['"1,234"', '"5,678"']
    alone = load(folder(p=cells), label="p", task="regression")
    assert alone.targets[:2, 0].tolist() == [1234, 5678]
    assert "column p: 1,234 was read as 1234 and could be 1.234 (--decimal ,)" in alone.notes
    path = folder(p=cells, height=['"0,5"', '"0,25"'])
    for task in ("regression", "auto"):
        graph = load(path, label="p", task=task)
        assert graph.targets[:2, 0].tolist() == pytest.approx([1.234, 5.678])
        assert "column p: 1,234 was read as 1.234 and could be 1234 (--decimal .)" in graph.notes
    dropped = load(path, label="p", task="regression", drop=["height"])
    assert dropped.targets[:2, 0].tolist() == [1234, 5678]


@pytest.mark.parametrize(
    ("cells", "names", "values"),
    [
        (["1.5", "NA", "2.0", "?", "none"], ["p"], [[1.5], [2]]),
        (["red;round", "n/a", "red", "?", "-", "round"], ["red", "round"], [[1, 1], [1, 0]]),
    ],
)
def test_words_for_missing_values_are_no_targets(folder, cells, names, values):
    graph = load(folder(p=cells), label="p", task="auto")
    assert graph.target_names == names
    assert graph.targets[[0, 2]].tolist() == values
    assert graph.targets[[1, 3, 4]].isnan().all()
    which = ", ".join(f"'{cells[place]}'" for place in sorted((1, 3, 4), key=cells.__getitem__))
    assert f"column p: {which} count as no label" in graph.notes


def test_missing_words_in_columns_of_zeros_and_ones(folder):
    graph = load(folder(a=["1", "NA", "0"], b=["0", "?", "1"]), label="a,b", task="auto")
    assert graph.target_kind == "multilabel"
    assert graph.targets[1].isnan().all()
    assert graph.targets[[0, 2]].tolist() == [[1, 0], [0, 1]]


def test_missing_words_do_not_make_classes_of_numbers(folder):
    graph = load(folder(label=["1", "2", "NA"]), task="auto")
    assert graph.class_names == ["1", "2"]


def test_model_that_knows_a_missing_word_as_a_label_keeps_it(folder):
    schema = load(folder(p=["a;b", "a", "b"]), label="p", task="multilabel").schema
    schema = {**schema, "label": {**schema["label"], "names": ["?", "a"]}}
    other = load(folder(p=["a;?", "?", "NA"]), schema=schema)
    assert other.targets[:2].tolist() == [[1, 1], [1, 0]]
    assert other.targets[2].isnan().all()


@pytest.mark.parametrize("mark", [";", "|"])
def test_labels_in_one_cell(folder, mark):
    cells = [f"red{mark}round", "red", f"round {mark} soft", "soft", ""]
    graph = load(folder(tags=cells), label="tags", task="auto")
    assert (graph.target_kind, graph.target_names) == ("multilabel", ["red", "round", "soft"])
    assert graph.targets[:3].tolist() == [[1, 1, 0], [1, 0, 0], [0, 1, 1]]
    assert graph.targets[4].isnan().all()
    assert "column tags: read for --task multilabel" in graph.notes


@pytest.mark.parametrize(
    ("cells", "task"),
    [
        ([0, 1], "node"),
        ([1, 2, 3], "node"),
        (["1.0", "2.0"], "node"),  # pandas writes whole numbers so
        (["a", "b"], "node"),
        (["a;b", "c;d"], "node"),  # as many labels as texts: these may be names
        ([0.5, 1], "regression"),
        (["a;b", "a", "b"], "multilabel"),
    ],
)
def test_what_a_column_is_taken_for(folder, cells, task):
    graph = load(folder(label=cells), task="auto")
    assert graph.get("target_kind", None) == (None if task == "node" else task)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (torch.arange(12) % 3, "node"),
        (torch.rand(12), "regression"),
        (torch.rand(12, 3), "regression"),
        (torch.rand(12, 1), "regression"),
        (torch.randint(2, (12, 3)), "multilabel"),
        (torch.randint(2, (12, 3)).double(), "multilabel"),
        (torch.arange(24).view(12, 2), "regression"),
    ],
)
def test_what_an_array_is_taken_for(y, task):
    assert task_of_array(y) == task
    graph = load(ring(y), task="auto")
    assert graph.get("target_kind") == (None if task == "node" else task)
    if task != "node":
        torch.testing.assert_close(graph.targets, y.float().view(12, -1))


def test_classes_are_read_as_before(folder):
    """Without being asked for, nothing is guessed: fractions and matrices are refused."""
    with pytest.raises(DataError, match="y must hold integers"):
        load(ring(torch.rand(12)))
    with pytest.raises(DataError, match="a label must be a word or an integer"):
        load(folder(label=[0.5, 1.25]), label="label")


def test_a_loaded_graph_can_be_loaded_again_and_others_by_its_schema(folder):
    first = load(folder(price=[1.5, 2.0, 3.5]), label="price", task="regression")
    again = load(first)
    assert torch.equal(again.targets, first.targets)
    assert again.target_kind == "regression"
    other = load(folder(price=[4.0, 5.0]), schema=first.schema)
    assert other.targets[:2, 0].tolist() == [4.0, 5.0]
    assert load(folder(weight=[4]), schema=first.schema).get("targets") is None


def test_labels_that_the_schema_does_not_know_are_left_out(folder):
    first = load(folder(tags=["a;b", "a", "b"]), label="tags", task="multilabel")
    other = load(folder(tags=["a;c", "b"]), schema=first.schema)
    assert other.targets[:2].tolist() == [[1, 0], [0, 1]]
    assert "column tags: unknown labels left out: c" in other.notes


@pytest.mark.parametrize(
    ("columns", "label", "task", "message"),
    [
        ({"p": [1.5, "cheap"]}, "p", "regression", r"nodes.csv, line 3, column p: .*got 'cheap'"),
        ({"p": [1.5, "inf"]}, "p", "regression", "column p: a target must be a finite number"),
        ({"p": [1.5, "1e39"]}, "p", "regression", "line 3, column p: is equal to others in single"),
        ({"p": [0.1]}, "p", "regression", "target p is 0.1 for all nodes"),
        ({"p": [1.5, "w"]}, "p", "node", "a label must be a word.*--task regression reads numbers"),
        ({"p": [2.5]}, "p", "regression", "target p is 2.5 for all nodes"),
        ({"p": [""]}, "p", "regression", "no node has a target"),
        ({"p": [1.5, 2.5]}, None, "regression", "no column of targets: name it with label"),
        ({"p": [1.5, 2]}, "q", "regression", "no column 'q' for the labels"),
        ({"p": [1.5, 2], "q": [1, ""]}, "p,q", "regression", "line 3, column q: is empty; a node"),
        ({"t": ["a;b", ";"]}, "t", "multilabel", "line 3, column t: names no label"),
        ({"a": [0, 1], "b": [1, 2]}, "a,b", "multilabel", "column b: must be 0 or 1 .got '?2"),
        ({"a": [0, 1], "b": [0]}, "a,b", "multilabel", "target b is 0 for all nodes"),
        ({"a": [0], "b": [0]}, "a,b", "multilabel", "no node has any of the labels"),
    ],
)
def test_bad_columns_have_one_clear_line(folder, columns, label, task, message):
    with pytest.raises((DataError, ConfigError), match=message) as caught:
        load(folder(**columns), label=label, task=task)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        (torch.tensor([[0.0, 2.0]] * 12), "multilabel", r"y\[0, 1\] must be 0 or 1 \(got 2\)"),
        (torch.full((12,), torch.inf), "regression", r"y\[0, 0\] is not finite"),
        (1e9 + torch.rand(12).double(), "regression", r"y\[0, 0\] is equal to others in single"),
        (1e40 * torch.rand(12).double(), "regression", r"y\[0, 0\] is equal to others in single"),
        (torch.tensor([[1.0, torch.nan]] * 12), "regression", r"y\[0, 1\] is missing; a node has"),
        (torch.rand(5), "regression", "y must have 12 rows, one per node"),
        (torch.rand(12, 2, 2), "regression", r"y must be a dense array"),
    ],
)
def test_bad_arrays_have_one_clear_line(y, task, message):
    with pytest.raises(DataError, match=message):
        load(ring(y), task=task)


def test_unknown_rows_of_arrays():
    y = torch.tensor([[-1, -1], [0, 1]])
    assert array_targets(y, "multilabel", 2).isnan().tolist() == [[True, True], [False, False]]
    numbers = torch.tensor([-1.0, torch.nan])
    assert array_targets(numbers, "regression", 2)[0].tolist() == [-1.0]


def test_masks_need_targets(tmp_path):
    y = np.linspace(0, 1, 12)
    y[0] = np.nan
    part = np.arange(12) % 3
    masks = {f"{n}_mask": part == i for i, n in enumerate(("train", "val", "test"))}
    edges = np.stack([np.arange(12), (np.arange(12) + 1) % 12])
    np.savez(tmp_path / "g.npz", x=np.eye(12), edge_index=edges, y=y, **masks)
    with pytest.raises(DataError, match="node 0 has no label"):
        load(str(tmp_path / "g.npz"), task="regression")


def test_unknown_tasks_are_refused():
    with pytest.raises(ConfigError, match="task must be one of node, regression, multilabel, auto"):
        load(ring(torch.rand(12)), task="numbers")
