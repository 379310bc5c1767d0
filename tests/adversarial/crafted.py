"""Small files of graphs and settings that would become gigabytes, or take minutes.

Each case of :data:`CRAFTED` writes its files below a folder and returns the words of a command,
which must be refused with one line and exit code 2.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Case = Callable[[Path], list[str]]

_EDGES = "source,target\n0,1\n"


def alias_bomb(levels: int = 12) -> str:
    """YAML of some hundred bytes with 9 to the power of ``levels`` values."""
    lines = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels))
    return "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x]", *lines])


def _inspected(write: Callable[[Path], Path]) -> Case:
    return lambda here: ["inspect", str(write(here))]


def _npz(**arrays: Any) -> Case:
    """An archive of arrays, shrunk as far as possible."""

    def write(here: Path) -> Path:
        path = here / "crafted.npz"
        made = {name: array() if callable(array) else array for name, array in arrays.items()}
        np.savez_compressed(path, **made)
        return path

    return _inspected(write)


def _endless_npz(name: str, header: bytes, size: int) -> Case:
    """An archive whose one array is zeros, written without ever holding them."""

    def write(here: Path) -> Path:
        path = here / "endless.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            with archive.open("edge_index.npy", "w") as file:
                np.lib.format.write_array(file, np.array([[0], [1]]))
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
                for _ in range(size >> 20):
                    file.write(bytes(1 << 20))
        return path

    return _inspected(write)


def _header(kind: str, shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    return text.ljust(117).encode() + b"\n"


def _parquet(columns: Callable[[], dict[str, Any]], repeated: int = 1, **options: Any) -> Case:
    """A folder of tables whose nodes have the given columns, as often as asked for."""

    def write(here: Path) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder = here / "tables"
        folder.mkdir()
        pq.write_table(pa.table({"source": [0], "target": [1]}), folder / "edges.parquet")
        table = pa.table(columns())
        path = folder / "nodes.parquet"
        with pq.ParquetWriter(path, table.schema, compression="zstd", **options) as writer:
            for _ in range(repeated):
                writer.write_table(table)
        return folder

    return _inspected(write)


def _ids(count: int) -> np.ndarray:
    return np.arange(count)


def _list_column() -> dict[str, Any]:
    import pyarrow as pa

    size, rows = 1_000_000, 60
    offsets = pa.array(np.arange(rows + 1) * size, pa.int32())
    values = pa.array(np.zeros(size * rows, np.float32))
    return {"id": _ids(rows), "f": pa.ListArray.from_arrays(offsets, values)}


def _dictionary_column() -> dict[str, Any]:
    import pyarrow as pa

    words = pa.array([f"{number}" * 100_000 for number in range(3)])
    places = pa.array(np.arange(30_000, dtype=np.int32) % 3)
    column = pa.DictionaryArray.from_arrays(places, words)
    return {"id": _ids(len(places)), "f": column}


def _many_words() -> dict[str, Any]:
    import pyarrow as pa

    words = pa.array([f"w{number}" for number in range(100)])
    places = pa.array(np.arange(100_000, dtype=np.int32) % 100)
    column = pa.DictionaryArray.from_arrays(places, words)
    return {"id": _ids(len(places)), **{f"f{number}": column for number in range(100)}}


def _repeated_prefix() -> dict[str, Any]:
    return {"id": _ids(1000), "f": ["p" * 100_000] * 1000}


def _graphml(content: Callable[[], str]) -> Case:
    def write(here: Path) -> Path:
        path = here / "crafted.graphml"
        path.write_text(f"<graphml>{content()}</graphml>")
        return path

    return _inspected(write)


def _keys_times_nodes(count: int = 20_000) -> str:
    keys = "".join(f'<key id="k{n}" for="node" attr.type="int"/>' for n in range(count))
    nodes = "".join(f'<node id="{n}"><data key="k{n}">1</data></node>' for n in range(count))
    return f'{keys}<graph edgedefault="undirected">{nodes}<edge source="0" target="1"/></graph>'


def _keys_of_all(count: int = 20_000) -> str:
    keys = "".join(f'<key id="k{n}"><default>1</default></key>' for n in range(count))
    nodes = "".join(f'<node id="{n}"/>' for n in range(count))
    return f'{keys}<graph edgedefault="undirected">{nodes}<edge source="0" target="1"/></graph>'


def _tables(nodes: Callable[[], str], edges: str = _EDGES) -> Case:
    def write(here: Path) -> Path:
        folder = here / "tables"
        folder.mkdir()
        (folder / "edges.csv").write_text(edges)
        (folder / "nodes.csv").write_text(nodes())
        return folder

    return _inspected(write)


def _million_columns() -> str:
    names = ",".join(f"c{number}" for number in range(1_000_000))
    row = ",1" * 1_000_000
    return f"id,{names}\n0{row}\n1{row}\n"


def _word_per_row() -> str:
    return "id,word\n" + "".join(f"{number},w{number}\n" for number in range(200_000))


def _long_names() -> str:
    name = "n" * 100_000
    return f"id,{name},{name}\n0,1,1\n1,2,2\n"


def _edge_list(content: str) -> Case:
    def write(here: Path) -> Path:
        path = here / "crafted.txt"
        path.write_text(content)
        return path

    return _inspected(write)


def _zeros_behind_a_header(here: Path) -> list[str]:
    """Four GiB that take no space on the disk."""
    folder = here / "tables"
    folder.mkdir()
    (folder / "edges.csv").write_text(_EDGES)
    with (folder / "nodes.csv").open("w") as file:
        file.write("id,f\n" + "0,1\n" * 50_000)
        file.truncate(4 << 30)
    return ["inspect", str(folder)]


def _zeros_behind_xml(here: Path) -> list[str]:
    path = here / "zeros.graphml"
    with path.open("w") as file:
        file.write("<graphml>")
        file.truncate(4 << 30)
    return ["inspect", str(path)]


def _settings(text: str, *command: str) -> Case:
    def write(here: Path) -> list[str]:
        path = here / "crafted.yaml"
        path.write_text(text)
        return [word.format(path) for word in command]

    return write


_PAIR = np.array([[0], [1]])

CRAFTED: dict[str, Case] = {
    "npz: zeros as features": _npz(
        edge_index=_PAIR, x=lambda: np.zeros((25_000, 10_000), dtype=np.int8)
    ),
    "npz: more zeros as features": _endless_npz("x", _header("|i1", (1, 1 << 29)), 1 << 29),
    "npz: masks of many splits": _npz(
        edge_index=_PAIR,
        x=np.ones((2, 1)),
        **{
            name: lambda: np.zeros((2, 50_000_000), dtype=bool)
            for name in ("train_mask", "val_mask", "test_mask")
        },
    ),
    "npz: long texts": _npz(
        edge_index=_PAIR, x=np.ones((60, 1)), node_ids=lambda: np.array(["a" * 1_000_000] * 60)
    ),
    "npz: node 10**12": _npz(edge_index=np.array([[0], [10**12]])),
    "npz: label 10**9": _npz(edge_index=_PAIR, x=np.ones((2, 1)), y=np.array([0, 10**9])),
    "parquet: list column": _parquet(_list_column),
    "parquet: dictionary column": _parquet(_dictionary_column),
    "parquet: common prefixes": _parquet(
        _repeated_prefix, 20, use_dictionary=False, column_encoding={"f": "DELTA_BYTE_ARRAY"}
    ),
    "parquet: many words": _parquet(_many_words),
    "graphml: keys times nodes": _graphml(_keys_times_nodes),
    "graphml: defaults times nodes": _graphml(_keys_of_all),
    "graphml: zeros without space": _zeros_behind_xml,
    "csv: a million columns": _tables(_million_columns),
    "csv: a word per row": _tables(_word_per_row),
    "csv: long names": _tables(_long_names),
    "csv: long word": _tables(lambda: "id,f\n0,1\n1," + "x" * 10_000_000 + "\n"),
    "csv: long id": _tables(lambda: "id,f\n0,1\n1,2\n", _EDGES + "0," + "x" * 100_000 + "\n"),
    "csv: zeros without space": _zeros_behind_a_header,
    "edges: long line": _edge_list("0 " * 1_000_000),
    "experiment: aliases": _settings(alias_bomb(), "bench", "{}", "--workers=1"),
    "experiment: depth": _settings("[" * 500_000, "bench", "{}", "--workers=1"),
    "experiment: long key": _settings("k" * 500_000 + ": 1", "bench", "{}", "--workers=1"),
    "settings: aliases": _settings(
        alias_bomb(), "train", "mixed", "--epochs=1", "--out=new", "--settings={}"
    ),
    "set: aliases": lambda here: [
        *("train", "mixed", "--epochs=1", "--out=new", "--set"),
        f"lr={{{', '.join(alias_bomb().splitlines())}}}",
    ],
}
