import pytest
import torch

from argnn.data import load
from argnn.errors import DataError

NODES = """id,age,color,member,label
ann,30,red,true,a
bob,,blue,false,b
cem,50,red,,a
dan,40,,true,b
eva,20,blue,false,
"""
EDGES = "source,target,weight\nann,bob,1\nbob,cem,2\ncem,cem,1\nann,bob,3\nbob,ann,1\n"


@pytest.fixture
def folder(tmp_path):
    """Write a graph of five people; texts replace single files, None leaves one out."""

    def write(edges=EDGES, nodes=NODES):
        path = tmp_path / "people"
        path.mkdir(exist_ok=True)
        for name, text in (("edges.csv", edges), ("nodes.csv", nodes)):
            if text is not None:
                (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def split_nodes(*words):
    """The node table with a column of splits."""
    lines = NODES.splitlines()
    return "\n".join([f"{lines[0]},split", *map(",".join, zip(lines[1:], words, strict=True))])


SPLIT = split_nodes("train", "train", "val", "test", "")


def test_columns_become_features(folder):
    graph = load(folder(nodes=SPLIT), standardize=False)
    assert graph.node_ids == ["ann", "bob", "cem", "dan", "eva"]
    assert graph.feature_names == [
        "age",
        "age is missing",
        "color = blue",
        "color = red",
        "member",
        "member is missing",
    ]
    assert graph.x.tolist() == [
        [30, 0, 0, 1, 1, 0],
        [35, 1, 1, 0, 0, 0],
        [50, 0, 0, 1, 0.5, 1],
        [40, 0, 0, 0, 1, 0],
        [20, 0, 1, 0, 0, 0],
    ]
    assert graph.class_names == ["a", "b"]
    assert graph.y.tolist() == [0, 1, 0, 1, -1]
    assert graph.split_rule == "masks of the source"
    assert graph.train_mask.squeeze(1).tolist() == [True, True, False, False, False]
    assert graph.name == "people"


def test_everything_that_was_changed_is_counted(folder):
    notes = load(folder(nodes=SPLIT)).notes
    assert "column age: 1 missing values became the mean, marked in a feature of its own" in notes
    assert "column color: 1 missing words became zeros" in notes
    assert any(note.endswith("column weight ignored (not asked for)") for note in notes)
    assert "1 self-loops removed" in notes
    assert "1 duplicate edges merged" in notes
    assert "2 nodes without edges" in notes


def test_weights_are_kept_on_request(folder):
    graph = load(folder(nodes=SPLIT), weight="weight", directed=True)
    pairs = {
        tuple(ends): weight
        for ends, weight in zip(
            graph.edge_index.T.tolist(), graph.edge_weight.tolist(), strict=True
        )
    }
    assert pairs == {(0, 1): 2.0, (1, 0): 1.0, (1, 2): 2.0}
    assert not any("weight" in note for note in graph.notes)
    assert load(folder(nodes=SPLIT)).get("edge_weight") is None


def test_symmetric_list_keeps_its_weights(folder):
    edges = "source,target,weight\nann,bob,3\nbob,ann,3\nbob,cem,5\n"
    graph = load(folder(edges, SPLIT), weight="weight")
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.edge_weight.tolist() == [3, 3, 5, 5]


def test_numbers_are_standardized(folder):
    graph = load(folder(nodes=SPLIT))
    assert graph.feature_rule.endswith("numbers standardized")
    age = graph.x[:, 0]
    assert age[1] == 0
    assert age[[0, 2, 3, 4]].mean() == pytest.approx(0, abs=1e-6)
    assert age[[0, 2, 3, 4]].std(correction=0) == pytest.approx(1)
    assert graph.x[:, 3].tolist() == [1, 0, 1, 0, 0]


def test_integer_ids_come_back_as_integers(folder):
    graph = load(folder("source,target\n7,3\n", "id,x,label\n3,0.5,\n7,1.5,\n"))
    assert graph.node_ids == [3, 7]
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]


def test_leading_zeros_keep_ids_apart(folder):
    graph = load(folder("source,target\n7,007\n", "id,x\n7,0\n007,1\n"))
    assert graph.node_ids == ["7", "007"]


def test_without_node_table_the_nodes_are_those_of_the_edges(folder):
    path = folder("source,target\nb,a\na,c\n", None)
    graph = load(path, features="degree")
    assert graph.node_ids == ["b", "a", "c"]
    assert "no table of nodes: the nodes are those of the edges" in graph.notes
    with pytest.raises(DataError, match="no features; choose some with features"):
        load(path)


@pytest.mark.parametrize(
    "text", ["a;b\nann;bob\n", "a\tb\nann\tbob\n", "\ufeffsrc,dst\r\nann,bob\r\n"]
)
def test_other_delimiters_line_ends_and_a_byte_order_mark(folder, text):
    assert load(folder(text, SPLIT)).edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "header", ["number,Source,Target", "number,source_id,target_id", "to,from,Source"]
)
def test_columns_of_the_ends_are_found_by_their_names(folder, header):
    graph = load(folder(nodes=None, edges=f"{header}\n1,2,3\n4,5,6\n"), features="degree")
    assert graph.node_ids == ([1, 2, 4, 5] if "from" in header else [2, 3, 5, 6])


def test_quoted_cells_may_hold_anything(folder):
    nodes = 'id,text\n"a, b","x\ny"\n" c ",z\n'
    graph = load(folder('source,target\n"a, b",c\n', nodes))
    assert graph.node_ids == ["a, b", "c"]
    assert graph.feature_names == ["text = x\ny", "text = z"]


def test_columns_can_be_chosen_and_dropped(folder):
    nodes = "age,name,nick,sort\n1,ann,A,x\n2,bob,B,y\n3,cem,C,x\n4,dan,D,y\n5,eva,E,x\n"
    graph = load(folder(nodes=nodes), node_id="name", label="sort", drop=["nick"])
    assert graph.feature_names == ["age"]
    assert graph.class_names == ["x", "y"]
    assert graph.schema["drop"] == ["nick"]


def test_integer_labels_are_sorted_as_numbers_and_may_be_unknown(folder):
    labels = ["10", "9.0", "-1", "", "10"]
    nodes = "id,x,y\n" + "".join(f"{n},{i},{labels[i]}\n" for i, n in enumerate("abcde"))
    graph = load(folder("source,target\na,b\n", nodes + "f,1,9\ng,1,9\nh,1,10\ni,1,9\n"))
    assert graph.class_names == ["9", "10"]
    assert graph.y.tolist() == [1, 0, -1, -1, 1, 0, 0, 1, 0]


def test_codes_with_leading_zeros_are_classes_of_their_own(folder):
    labels = ["01", "1", "01", "1", "10", "10"]
    nodes = "id,x,y\n" + "".join(f"{n},{i},{labels[i]}\n" for i, n in enumerate("abcdef"))
    path = folder("source,target\na,b\n", nodes)
    graph = load(path)
    assert graph.class_names == ["01", "1", "10"]
    assert graph.y.tolist() == [0, 1, 0, 1, 2, 2]
    assert load(path, schema=graph.schema).y.tolist() == graph.y.tolist()
    # A model from before has the classes as numbers.
    before = {**graph.schema, "label": {"column": "y", "classes": ["1", "10"]}}
    assert load(path, schema=before).y.tolist() == [0, 0, 0, 0, 1, 1]


def test_coordinates_called_y_are_a_feature(folder):
    graph = load(folder("source,target\na,b\n", "id,x,y\na,1,0.5\nb,2,0.25\n"))
    assert graph.feature_names == ["x", "y"]
    assert any(note.startswith("column y: fractions") for note in graph.notes)


def test_label_that_names_each_node_is_no_class(folder):
    nodes = "id,x,label\na,1,Ann\nb,2,Bob\nc,3,Cem\n"
    graph = load(folder("source,target\na,b\n", nodes))
    assert (graph.class_count, graph.feature_names) == (0, ["x"])
    assert any("differs in every row" in note for note in graph.notes)


def test_masks_in_three_columns(folder):
    nodes = "id,x,label,train_mask,val_mask,test_mask\na,1,u,1,0,0\nb,2,v,,TRUE,false\nc,3,,0,,1\n"
    graph = load(folder("source,target\na,b\n", nodes))
    assert graph.train_mask.squeeze(1).tolist() == [True, False, False]
    assert graph.val_mask.squeeze(1).tolist() == [False, True, False]
    assert not graph.test_mask.any()
    assert "1 test nodes have no label and are not scored" in graph.notes


def test_empty_column_is_left_out(folder):
    graph = load(folder("source,target\na,b\n", "id,x,none\na,1,\nb,2,\n"))
    assert graph.feature_names == ["x"]
    assert "column none: empty, left out" in graph.notes


def test_words_for_missing_numbers(folder):
    path = folder("source,target\na,b\n", "id,x\na,NA\nb,2\nc,?\nd,4\n")
    graph = load(path, standardize=False)
    assert graph.x.tolist() == [[3, 1], [2, 0], [3, 1], [4, 0]]


def test_number_of_categories_is_limited(folder):
    rows = "".join(f"{i},word{i % 129}\n" for i in range(258))
    path = folder("source,target\n1,2\n", "id,code\n" + rows)
    assert load(path).schema["columns"][0]["kind"] == "hashed"
    assert load(path, max_categories=129).x.size(1) == 129


CASES = [
    ({"edges": ""}, r"edges\.csv: the file is empty"),
    ({"edges": "1,2\n3,4\n"}, r"edges\.csv, line 1: expected a header such as source,target"),
    ({"edges": "source\nann\n"}, r"edges\.csv: an edge needs two columns"),
    ({"edges": "source,target\nann,x9\n"}, r"edges\.csv, line 2, column target: unknown node 'x9'"),
    ({"edges": "source,target\n\nann,\n"}, r"edges\.csv, line 3, column target: a node id is miss"),
    ({"edges": "source,target\nann,bob,1\n"}, r"edges\.csv, line 2: expected 2 columns \(got 3\)"),
    ({"edges": "source,source\nann,bob\n"}, r"edges\.csv, line 1: there are two columns 'source'"),
    ({"edges": "source,\nann,bob\n"}, r"edges\.csv, line 1: column 2 has no name"),
    ({"edges": b"source,target\nann,\xff\n"}, r"edges\.csv, line 2: not UTF-8 text"),
    ({"edges": b"source,target\nann,b\0b\n"}, r"edges\.csv, line 2: holds a NUL byte"),
    ({"edges": 'source,target\nann,"bob\n'}, r"edges\.csv, line 2: not readable as CSV"),
    ({"edges": "source,target\nann," + "b" * 200_000}, r"edges\.csv, line 2: not readable as CSV"),
    ({"nodes": "id,x\n"}, r"nodes\.csv: there are no nodes"),
    (
        {"nodes": "id,x\nann,1\nbob,2\nann,3\n"},
        r"line 4, column id: duplicate id 'ann' .also in line 2",
    ),
    ({"nodes": "id,x\nann,1\n,2\n"}, r"nodes\.csv, line 3, column id: a node id is missing"),
    ({"nodes": "id,x\nann,1\nbob,inf\n"}, r"nodes\.csv, line 3, column x: 'inf' is too large"),
    ({"nodes": "id,x\nann,1\nbob,1e300\n"}, r"line 3, column x: '1e300' is too large"),
    (
        {"nodes": "id,x,label\nann,1,0.5\n"},
        r"line 2, column label: a label must be a word or an int",
    ),
    (
        {"nodes": split_nodes("train", "vall", "", "", "")},
        r"line 3, column split: must be train, val",
    ),
    (
        {"nodes": split_nodes("train", "val", "", "", "train")},
        r"line 6, column split: a node of the train part has no label",
    ),
    (
        {"nodes": "id,label,train_mask\nann,1,1\n"},
        r"no column 'val_mask'; give all three masks or none",
    ),
    (
        {"nodes": "id,x,label,train_mask,val_mask,test_mask\nann,1,a,2,0,0\n"},
        r"line 2, column train_mask: must be 0 or 1 \(got '2'\)",
    ),
]


@pytest.mark.parametrize(("texts", "message"), CASES)
def test_bad_table_names_file_line_and_column(folder, texts, message):
    no_edges = "source,target\n"
    with pytest.raises(DataError, match=message) as caught:
        load(folder(**{"edges": no_edges, "nodes": SPLIT, **texts}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "colour"}, "no column 'colour' for the labels; did you mean 'color'"),
        ({"node_id": "name"}, "no column 'name' for the node ids; choices: age"),
        ({"weight": "wieght"}, "no column 'wieght' for the edge weights; did you mean 'weight'"),
        ({"drop": ["agee"]}, "no column 'agee' for the columns to drop; did you mean 'age'"),
    ],
)
def test_unknown_column_is_suggested(folder, options, message):
    with pytest.raises(DataError, match=message):
        load(folder(nodes=SPLIT), **options)


def test_bad_weight_is_named(folder):
    path = folder("source,target,weight\nann,bob,1\nann,cem,heavy\n", SPLIT)
    with pytest.raises(DataError, match=r"line 3, column weight: a weight must be .*got 'heavy'"):
        load(path, weight="weight")


def test_graph_can_be_loaded_again(folder):
    graph = load(folder(nodes=SPLIT))
    again = load(graph)
    assert torch.equal(graph.x, again.x)
    assert (again.node_ids, again.feature_names) == (graph.node_ids, graph.feature_names)
    assert again.class_names == graph.class_names


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_sign_between_cells_is_that_outside_quotes(folder, sign):
    header = sign.join(["id", '"width, depth; and | weight"', "label"])
    rows = "".join(sign.join([f"n{i}", str(i / 2), "ab"[i % 2]]) + "\n" for i in range(20))
    graph = load(folder(f"source{sign}target\nn0{sign}n1\n", f"{header}\n{rows}"))
    assert (graph.feature_names, graph.class_count) == (["width, depth; and | weight"], 2)
