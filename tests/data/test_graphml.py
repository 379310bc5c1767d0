import networkx as nx
import pytest

from argnn.data import load
from argnn.errors import DataError

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
KEYS = """<key id="d0" for="node" attr.name="size" attr.type="double"><default>2.5</default></key>
<key id="d1" for="node" attr.name="label" attr.type="string"/>
<key id="d2" for="edge" attr.name="weight" attr.type="double"/>
"""
BODY = """<graph edgedefault="directed">
<node id="a"><data key="d0">1</data><data key="d1">u</data></node>
<node id="b"><data key="d1">v</data></node>
<node id="c"><data key="d0">3</data></node>
<node id="d"><data key="d1">u</data></node>
<node id="e"><data key="d1">v</data></node>
<edge source="a" target="b"><data key="d2">0.5</data></edge>
<edge source="c" target="b"/>
</graph>
"""


@pytest.fixture
def graphml(tmp_path):
    def write(text):
        path = tmp_path / "g.graphml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def document(keys=KEYS, body=BODY):
    return f"{HEAD}{keys}{body}</graphml>\n"


def test_attributes_defaults_and_directions(graphml):
    graph = load(graphml(document()), directed=True, standardize=False)
    assert graph.node_ids == list("abcde")
    assert graph.feature_names == ["size"]
    assert graph.x.squeeze(1).tolist() == [1, 2.5, 3, 2.5, 2.5]
    assert graph.y.tolist() == [0, 1, -1, 0, 1]
    assert graph.edge_index.tolist() == [[0, 2], [1, 1]]
    dropped = load(graphml(document())).notes
    assert any("directions, which were dropped" in note for note in dropped)


def test_undirected_file_stays_undirected(graphml):
    text = document().replace('"directed"', '"undirected"')
    graph = load(graphml(text), directed=True)
    assert graph.edge_rule.endswith("(the source is undirected)")


def test_what_networkx_writes_is_read(tmp_path):
    original = nx.karate_club_graph()
    path = tmp_path / "karate.graphml"
    nx.write_graphml(original, path)
    graph = load(path, label="club", features="degree")
    direct = load(original, label="club", features="degree")
    assert graph.node_ids == direct.node_ids == list(range(34))
    assert graph.edge_index.tolist() == direct.edge_index.tolist()
    assert graph.y.tolist() == direct.y.tolist()


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))

BAD = [
    ("", "line 1: not XML .no element found."),
    ("<graphml>", "line 1: not XML"),
    ("not xml", "line 1: not XML"),
    ("<svg/>", "line 1: expected a graphml element .got 'svg'."),
    (HEAD + "</graphml>", "there is no graph in it"),
    (
        f'<!DOCTYPE g [<!ENTITY l0 "lol">{LAUGHS}]>\n<graphml>&l9;</graphml>',
        "line 1: a document type",
    ),
    (
        '<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/passwd">]><graphml>&x;</graphml>',
        "document type",
    ),
    (
        '<!DOCTYPE g SYSTEM "http://127.0.0.1:9/x.dtd"><graphml/>',
        "a document type .DTD. is refused",
    ),
    (document() * 2, "line 16: not XML"),
    (document(body=BODY + BODY), "line 15: there is more than one graph"),
    (document().replace('id="a"', ""), "line 7: a node has no id"),
    (document().replace('target="b"/', "/"), "line 13: a edge has no target"),
    (document().replace('key="d0">1', 'key="d9">1'), "line 7: data of an undeclared key 'd9'"),
    (document().replace(">1<", ">one<"), "line 7: key 'size': 'one' is not of type double"),
    (document().replace('"double"', '"complex"'), "line 3: unknown attr.type 'complex'"),
    (document().replace('edgedefault="directed"', 'edgedefault="up"'), "edgedefault must be"),
    (document().replace('id="d1"', 'id="d0"'), "line 4: there are two keys 'd0'"),
    (
        document().replace('id="b"', 'id="a"'),
        "line 8, column id: duplicate id 'a' .also in line 7.",
    ),
    (document().replace('source="c"', 'source="z"'), "line 13, column source: unknown node 'z'"),
    (document().replace("<edge", "<hyperedge/><edge", 1), "hyperedges are not supported"),
    (document().replace(">0.5<", "><data key='d0'>1</data><"), "is declared for 'node', not edges"),
    (HEAD + "<a>" * 200, "nested too deeply"),
    (document().replace("UTF-8", "klingon"), "not (XML|readable as XML)"),
    (document().encode("utf-16")[:301], "not XML"),
    (b"\x00" * 1000, "not XML"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(len(BAD)))
def test_bad_file_names_the_line(graphml, text, message):
    with pytest.raises(DataError, match=message) as caught:
        load(graphml(text))
    assert "g.graphml" in str(caught.value)
    assert "\n" not in str(caught.value)


def mixed_directions(default, first, second):
    return (
        f'<graphml><graph edgedefault="{default}"><node id="1"/><node id="2"/><node id="3"/>'
        f'<edge source="1" target="2" {first}/><edge source="2" target="3" {second}/>'
        "</graph></graphml>"
    )


@pytest.mark.parametrize(
    ("default", "first", "second", "expected"),
    [
        ("directed", "", 'directed="false"', [(0, 1), (1, 2), (2, 1)]),
        ("undirected", 'directed="true"', "", [(0, 1), (1, 2), (2, 1)]),
        ("undirected", 'directed="true"', 'directed="true"', [(0, 1), (1, 2)]),
        ("directed", 'directed="true"', "", [(0, 1), (1, 2)]),
    ],
)
def test_an_edge_may_say_whether_it_has_a_direction(tmp_path, default, first, second, expected):
    path = tmp_path / "mixed.graphml"
    path.write_text(mixed_directions(default, first, second))
    graph = load(path, directed=True, features="degree")
    assert [tuple(pair) for pair in graph.edge_index.t().tolist()] == expected
    both = load(path, features="degree").edge_index.t().tolist()
    assert both == [[0, 1], [1, 0], [1, 2], [2, 1]]


def test_words_for_directions_and_names_of_keys_must_be_clear(tmp_path):
    path = tmp_path / "wrong.graphml"
    path.write_text(mixed_directions("directed", 'directed="maybe"', ""))
    with pytest.raises(DataError, match=r"directed must be true or false \(got 'maybe'\)"):
        load(path, features="degree")
    key = '<key id="{}" for="node" attr.name="age" attr.type="int"/>'
    keys = key.format("a") + key.format("b")
    path.write_text(f'<graphml>{keys}<graph><node id="1"/></graph></graphml>')
    with pytest.raises(DataError, match="there are two keys with the name 'age'"):
        load(path, features="degree")
