"""A corpus of files that must be refused: each builder writes one and returns what to open."""

import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

Builder = Callable[[Path], Path]

EDGES = "source,target\na,b\nb,c\n"
NODES = "id,x,label\na,1,u\nb,2,v\nc,3,u\n"
SPLIT = "id,x,label,split\na,1,u,train\nb,2,v,val\nc,3,u,test\n"


def folder(edges: str | bytes | None = EDGES, nodes: str | bytes | None = NODES) -> Builder:
    """A folder of CSV files."""

    def build(root: Path) -> Path:
        path = root / "graph"
        path.mkdir()
        for name, content in (("edges.csv", edges), ("nodes.csv", nodes)):
            if content is not None:
                raw = content if isinstance(content, bytes) else content.encode()
                (path / name).write_bytes(raw)
        return path

    return build


def file(name: str, content: str | bytes) -> Builder:
    """One file."""

    def build(root: Path) -> Path:
        path = root / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return build


def with_pipe(root: Path) -> Path:
    path = folder(edges=None)(root)
    os.mkfifo(path / "edges.csv")
    return path


def with_dangling_link(root: Path) -> Path:
    path = folder(edges=None)(root)
    (path / "edges.csv").symlink_to(root / "nowhere")
    return path


def with_link_to_a_device(root: Path) -> Path:
    path = folder(nodes=None)(root)
    (path / "nodes.csv").symlink_to("/dev/zero")
    return path


def with_folder_as_table(root: Path) -> Path:
    path = folder(nodes=None)(root)
    (path / "nodes.csv").mkdir()
    return path


def sparse_table(size: int) -> Builder:
    """A file of zeros that takes no space on the disk."""

    def build(root: Path) -> Path:
        path = folder()(root)
        with (path / "edges.csv").open("wb") as opened:
            opened.truncate(size)
        return path

    return build


def empty_folder(root: Path) -> Path:
    path = root / "graph"
    path.mkdir()
    return path


def two_formats(root: Path) -> Path:
    path = folder()(root)
    (path / "edges.parquet").write_bytes(b"PAR1PAR1")
    return path


def damaged_parquet(root: Path) -> Path:
    path = root / "graph"
    path.mkdir()
    (path / "edges.parquet").write_bytes(b"PAR1" + b"\xff" * 400 + b"PAR1")
    return path


# npz ---------------------------------------------------------------------------------------------

FIELDS = {
    "x": np.arange(20.0).reshape(10, 2),
    "edge_index": np.array([[0, 1, 2], [1, 2, 3]]),
    "y": np.arange(10) % 2,
}
FULL = np.ones(10, dtype=bool)


def npz(**changes: np.ndarray | None) -> Builder:
    """A valid archive with some fields replaced or, by None, left out."""

    def build(root: Path) -> Path:
        path = root / "graph.npz"
        fields = {n: v for n, v in {**FIELDS, **changes}.items() if v is not None}
        np.savez(path, **fields)
        return path

    return build


def array_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Builder:
    """A zip file with given members beside the valid ones."""

    def build(root: Path) -> Path:
        path = root / "graph.npz"
        whole = {f"{name}.npy": array_bytes(value) for name, value in FIELDS.items()} | members
        with zipfile.ZipFile(path, "w", compression) as opened:
            for name, content in whole.items():
                opened.writestr(name, content)
        return path

    return build


def header_of(text: str, content: bytes = b"") -> bytes:
    """An array whose header is any text."""
    padded = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode() + content


def declared(shape: str) -> bytes:
    return header_of(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}", b"\0" * 16)


def zip_bomb(root: Path) -> Path:
    """512 MiB of zeros in half a MiB."""
    path = root / "graph.npz"
    rows = (512 << 20) // 8 // 16
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 16), }}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as opened:
        opened.writestr("edge_index.npy", array_bytes(FIELDS["edge_index"]))
        with opened.open("x.npy", "w", force_zip64=True) as member:
            member.write(header_of(header))
            chunk = bytes(16 << 20)
            for _ in range((512 << 20) // len(chunk)):
                member.write(chunk)
    return path


def cut(builder: Builder, length: int) -> Builder:
    """The beginning of a file."""

    def build(root: Path) -> Path:
        path = builder(root)
        path.write_bytes(path.read_bytes()[:length])
        return path

    return build


def encrypted(root: Path) -> Path:
    """The flag that says a member needs a password."""
    path = npz()(root)
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(content)
    return path


# GraphML -----------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


def graphml(body: str, keys: str = "", before: str = "") -> Builder:
    text = (
        f'<?xml version="1.0"?>\n{before}<graphml>\n'
        f'<key id="k" for="node" attr.name="x" attr.type="double"/>{keys}\n'
        f'<graph edgedefault="undirected">\n{body}\n</graph>\n</graphml>'
    )
    return file("graph.graphml", text)


NODE = '<node id="{}"><data key="k">{}</data></node>\n'
PAIR = NODE.format("a", 1) + NODE.format("b", 2)

CORPUS: dict[str, tuple[Builder, str]] = {
    # CSV
    "csv: empty file": (folder(""), "edges.csv: the file is empty"),
    "csv: no header": (folder("1,2\n2,3\n"), "line 1: expected a header such as source,target"),
    "csv: one column": (folder("source\na\n"), "an edge needs two columns"),
    "csv: unknown node": (folder(EDGES + "a,z\n"), "line 4, column target: unknown node 'z'"),
    "csv: ids written in two ways": (
        folder("source,target\n7.0,8.0\n", "id,x\n007,1\n008,2\n"),
        "line 2, column source: unknown node '7.0'; there is '007': write ids in the same way",
    ),
    "csv: row numbers of pandas": (
        folder(",source,target\n0,a,b\n"),
        "line 1: column 1 has no name: name it or delete it (pandas writes one unless index=False)",
    ),
    "csv: line for spreadsheets": (folder(f"sep=,\n{EDGES}"), "line 1: delete this line"),
    "csv: missing end": (folder(EDGES + "a,\n"), "line 4, column target: a node id is missing"),
    "csv: cell too many": (folder(EDGES + "a,b,c\n"), "line 4: expected 2 columns (got 3)"),
    "csv: cell too few": (folder(EDGES + "a\n"), "line 4: expected 2 columns (got 1)"),
    "csv: same column twice": (folder("source,source\na,b\n"), "two columns 'source'"),
    "csv: column without name": (folder("source,,\na,b,c\n"), "line 1: column 2 has no name"),
    "csv: terminal codes in a name": (
        folder(nodes="id,\x1b[2J\na,1\nb,1\nc,1\n"),
        "unprintable name of a column",
    ),
    "csv: latin-1": (folder(nodes="id,x\na,é\n".encode("latin-1")), "line 2: not UTF-8 text"),
    "csv: utf-16": (
        folder(EDGES.encode("utf-16")),
        "NUL byte, so it is not UTF-8 text: save it as",
    ),
    "csv: NUL": (folder(EDGES + "a,b\0\n"), "line 4: holds a NUL byte"),
    "csv: open quote": (folder(EDGES + '"a,b\n'), "line 4: not readable as CSV"),
    "csv: text after a quote": (folder(EDGES + '"a"x,b\n'), "line 4: not readable as CSV"),
    "csv: huge field": (folder(EDGES + "a," + "b" * 10**6), "line 4: not readable as CSV"),
    "csv: duplicate id": (folder(nodes=NODES + "a,4,u\n"), "duplicate id 'a' (also in line 2)"),
    "csv: missing id": (folder(nodes=NODES + ",4,u\n"), "line 5, column id: a node id is missing"),
    "csv: no nodes": (folder(nodes="id,x\n"), "nodes.csv: there are no nodes"),
    "csv: no edges, no nodes": (folder("source,target\n", None), "there are no edges"),
    "csv: infinity": (folder(nodes=NODES + "d,inf,u\n"), "line 5, column x: 'inf' is too large"),
    "csv: overflow": (folder(nodes=NODES + "d,1e39,u\n"), "line 5, column x: '1e39' is too large"),
    "csv: fractional label": (
        folder(nodes=NODES + "d,4,0.5\n"),
        "line 5, column label: a label must be a word or an integer",
    ),
    "csv: wrong split": (folder(nodes=SPLIT + "d,4,u,tset\n"), "line 5, column split: must be tr"),
    "csv: training node without label": (
        folder(nodes=SPLIT + "d,4,,train\n"),
        "line 5, column split: a node of the train part has no label",
    ),
    "csv: two masks": (
        folder(nodes="id,x,label,train_mask,val_mask\na,1,u,1,0\nb,1,v,0,1\nc,1,u,0,0\n"),
        "no column 'test_mask'; give all three masks or none",
    ),
    "csv: mask of two": (
        folder(nodes="id,label,train_mask,val_mask,test_mask\na,u,2,0,0\nb,v,0,1,0\nc,v,0,0,1\n"),
        "line 2, column train_mask: must be 0 or 1",
    ),
    "csv: masks and split": (
        folder(nodes="id,label,train_mask,split\na,u,1,train\nb,v,0,val\nc,u,0,test\n"),
        "there are columns split and train_mask; keep one",
    ),
    "csv: node in two masks": (
        folder(
            nodes="id,label,x,train_mask,val_mask,test_mask\na,u,1,1,1,0\nb,v,1,1,0,0\nc,u,1,0,0,1"
        ),
        "node 0 is in train_mask and in val_mask",
    ),
    "csv: no validation part": (
        folder(nodes=SPLIT.replace("val", "test")),
        "val_mask of split 0 is empty",
    ),
    "csv: a word among numbers": (
        folder(
            "source,target\n1,2\n", "id,t\n0,w\n" + "".join(f"{i},{i}\n" for i in range(1, 200))
        ),
        "line 2, column t: 'w' is no number, but nearly all of the column are; --drop t leaves",
    ),
    "csv: too many features": (
        folder(
            "source,target\na,a\n",
            "id," + ",".join(f"f{i}" for i in range(60_000)) + "\na" + ",1" * 60_000 + "\n",
        ),
        "more than 50000 features",
    ),
    "csv: pipe": (with_pipe, "edges.csv: not a file"),
    "csv: dangling link": (with_dangling_link, "edges.csv: no such file"),
    "csv: link to a device": (with_link_to_a_device, "nodes.csv: not a file"),
    "csv: folder as table": (with_folder_as_table, "nodes.csv: not a file"),
    "csv: three GiB of zeros": (sparse_table(3 << 30), "line 1: holds a NUL byte"),
    "csv: a TiB of zeros": (sparse_table(1 << 40), "larger than 4 GiB"),
    "folder: empty": (empty_folder, "needs edges.csv or edges.parquet"),
    "folder: two formats": (two_formats, "holds edges.csv and edges.parquet; keep one"),
    "parquet: damaged": (damaged_parquet, "edges.parquet: not a readable Parquet file"),
    # edge lists
    "list: empty": (file("g.txt", ""), "there are no edges"),
    "list: comments only": (file("g.txt", "# a\n% b\n"), "there are no edges"),
    "list: ragged": (file("g.txt", "# c\n1 2\n3\n"), "line 3: expected 2 columns (got 1)"),
    "list: one id per line": (file("g.tsv", "1\n2\n"), "line 1: an edge needs two node ids"),
    "list: matrix": (
        file("g.txt", "# A\n" + "0 1 0 1 1\n" * 5),
        "g.txt: 5 lines of 5 columns look like an adjacency matrix: write a line for each edge",
    ),
    "list: matrix with a header": (
        file("g.csv", ",a,b,c,d\n" + "".join(f"{name},0,1,1,0\n" for name in "abcd")),
        "g.csv: 5 lines of 5 columns look like an adjacency matrix",
    ),
    "list: a table of nodes": (file("nodes.csv", NODES), "nodes.csv: a table of nodes; give the"),
    "list: bytes": (file("g.txt", b"1 2\n\x80\x81\n"), "line 2: not UTF-8 text"),
    "list: unknown suffix": (file("g.gexf", "<gexf/>"), "supported graph files are .npz"),
    # npz
    "npz: empty": (file("g.npz", b""), "not a readable npz file"),
    "npz: not a zip": (file("g.npz", b"PK\x03\x04" + b"x" * 500), "not a readable npz file"),
    "npz: truncated": (cut(npz(), 400), "not a readable npz file"),
    "npz: encrypted": (encrypted, "not a readable npz file"),
    "npz: zip bomb": (zip_bomb, "refused, as it would fill the memory"),
    "npz: object array": (npz(x=np.array([[{}]], dtype=object)), "x is an object array"),
    "npz: gigantic shape": (
        archive({"x.npy": declared("(100000000000, 1000)")}),
        "x declares the shape [100000000000, 1000], but does not hold as much",
    ),
    "npz: negative shape": (archive({"x.npy": declared("(-1, 2)")}), "x declares the shape"),
    "npz: shape of words": (archive({"x.npy": declared("('a', 2)")}), "not a readable npz file"),
    "npz: code in the header": (
        archive({"x.npy": header_of("__import__('os').system('touch hacked')")}),
        "not a readable npz file",
    ),
    "npz: member is a pickle": (
        archive({"x.npy": b"cos\nsystem\n(S'true'\ntR."}),
        "not a readable",
    ),
    "npz: path traversal": (archive({"../../evil.npy": b""}), "unknown field ../../evil"),
    "npz: absolute path": (archive({"/etc/cron.d/x": b""}), "unknown field /etc/cron.d/x"),
    "npz: line break in a name": (archive({"x\n.npy": b""}), "unknown field x?"),
    "npz: unknown field": (npz(z=FULL), "unknown field z"),
    "npz: no edges": (npz(edge_index=None), "edge_index is missing"),
    "npz: NaN": (npz(x=FIELDS["x"] * np.nan), "x[0, 0] is not finite"),
    "npz: words": (npz(x=np.array([["a"]])), "x must hold numbers"),
    "npz: complex": (npz(x=FIELDS["x"] * 1j), "x must hold numbers"),
    "npz: structured": (npz(x=np.zeros(3, dtype=[("a", "f8")])), "x must hold numbers"),
    "npz: no dimensions": (npz(x=np.float64(1)), "x must have shape"),
    "npz: float edges": (
        npz(edge_index=FIELDS["edge_index"] * 1.0),
        "edge_index must hold integers",
    ),
    "npz: unknown node": (npz(edge_index=FIELDS["edge_index"] + 9), "edge_index[0, 1] is 10"),
    "npz: negative node": (npz(edge_index=FIELDS["edge_index"] - 1), "edge_index[0, 0] is -1"),
    "npz: gigantic label": (npz(y=np.array([10**12] + [0] * 9)), "y[0] is 1000000000000"),
    "npz: label missing": (npz(y=np.array([0, 1])), "y must have shape [10]"),
    "npz: negative label": (npz(y=np.full(10, -7)), "y[0] is -7"),
    "npz: one mask": (npz(train_mask=FULL), "val_mask is missing"),
    "npz: overlapping masks": (
        npz(train_mask=FULL, val_mask=FULL, test_mask=FULL),
        "node 0 is in train_mask and in val_mask",
    ),
    "npz: same id twice": (npz(node_ids=np.array(["a"] * 10)), "node_ids holds a value twice"),
    "npz: ids missing": (npz(node_ids=np.arange(3)), "node_ids has 3 entries for 10 nodes"),
    "npz: object ids": (npz(node_ids=np.array([{}] * 10)), "node_ids is an object array"),
    "npz: billion nodes": (
        npz(x=None, y=None, edge_index=np.array([[0], [10**9]])),
        "edge_index holds 1000000000",
    ),
    # GraphML
    "graphml: empty": (file("g.graphml", ""), "line 1: not XML"),
    "graphml: truncated": (cut(graphml(PAIR), 90), "not XML"),
    "graphml: other root": (file("g.graphml", "<gexf/>"), "expected a graphml element"),
    "graphml: entity bomb": (
        graphml("&l9;", before=f'<!DOCTYPE g [<!ENTITY l0 "lol">{LAUGHS}]>'),
        "line 2: a document type (DTD) is refused",
    ),
    "graphml: quadratic bomb": (
        graphml("&a;" * 10**5, before=f'<!DOCTYPE g [<!ENTITY a "{"a" * 10**5}">]>'),
        "a document type (DTD) is refused",
    ),
    "graphml: external entity": (
        graphml("&e;", before='<!DOCTYPE g [<!ENTITY e SYSTEM "file:///etc/passwd">]>'),
        "a document type (DTD) is refused",
    ),
    "graphml: parameter entity": (
        graphml("", before='<!DOCTYPE g [<!ENTITY % p SYSTEM "http://127.0.0.1:9/"> %p;]>'),
        "a document type (DTD) is refused",
    ),
    "graphml: undefined entity": (graphml("&nobody;"), "line 5: not XML (undefined entity)"),
    "graphml: node without id": (graphml("<node/>"), "line 5: a node has no id"),
    "graphml: edge without end": (graphml(PAIR + '<edge source="a"/>'), "has no target"),
    "graphml: unknown node": (
        graphml(PAIR + '<edge source="a" target="z"/>'),
        "line 7, column target: unknown node 'z'",
    ),
    "graphml: duplicate node": (graphml(PAIR + NODE.format("a", 3)), "duplicate id 'a'"),
    "graphml: no number": (
        graphml(NODE.format("a", "one")),
        "key 'x': 'one' is not of type double",
    ),
    "graphml: infinite number": (graphml(PAIR + NODE.format("c", "1e999")), "inf is too large"),
    "graphml: undeclared key": (
        graphml('<node id="a"><data key="z">1</data></node>'),
        "data of an undeclared key 'z'",
    ),
    "graphml: two graphs": (graphml("<graph/>"), "more than one graph"),
    "graphml: hyperedge": (graphml("<hyperedge/>"), "hyperedges are not supported"),
    "graphml: deep": (graphml("<a>" * 10**5), "nested too deeply"),
    "graphml: no nodes": (graphml(""), "there are no nodes"),
}
