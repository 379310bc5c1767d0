"""GraphML, read as a stream of elements.

A file with a document type is refused, because that could declare entities, which can grow without
bound or fetch other files.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from argnn.data.formats.plain_files import check_regular
from argnn.data.node_ids import shown
from argnn.data.tables import GraphTables, Table, object_cells
from argnn.errors import DataError

_IDS, _ENDS = "id", ("source", "target")
_DEEPEST = 100
_MOST_CELLS = 50_000_000


def read_graphml(path: Path) -> GraphTables:
    """The nodes, edges and attributes of the one graph in a file."""
    reader = _GraphMLReader(path)
    reader.read()
    directed = reader.settle_directions()
    edges, nodes = reader.table("edge", _ENDS), reader.table("node", (_IDS,))
    return GraphTables(edges, nodes, undirected=not directed, directed=directed)


def _integer(text: str) -> int:
    if len(text) > 18:
        raise ValueError(text)
    return int(text)


_TRUTH = {"true": True, "1": True, "false": False, "0": False}
#: How the text of an attribute is read; errors are ``LookupError`` or ``ValueError``.
_TYPES: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: _TRUTH[text.lower()],
    "int": _integer,
    "long": _integer,
    "float": float,
    "double": float,
    "string": str,
}


@dataclass
class _Key:
    """A declared attribute."""

    name: str
    kind: str
    of: str
    default: Any = None


@dataclass
class _Item:
    """A node or an edge, with the values of its attributes."""

    tag: str
    line: int
    ends: dict[str, str]
    values: dict[str, Any] = field(default_factory=dict)
    #: What an edge says of itself; nothing where it is as the graph says.
    directed: str | None = None


class _GraphMLReader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys: dict[str, _Key] = {}
        self.items: dict[str, list[_Item]] = {"node": [], "edge": []}
        self.stack: list[str] = []
        self.edge_default: str | None = None
        self.open: list[_Item] = []
        self.key: _Key | None = None  # of the data or default element that is being read
        self.text: list[str] | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def read(self) -> None:
        check_regular(self.path)
        try:
            with self.path.open("rb") as file:
                self.parser.ParseFile(file)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read ({error.strerror})") from error
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code) or "damaged"
            raise DataError(f"{self.path}, line {error.lineno}: not XML ({message})") from error
        except (ValueError, LookupError) as error:  # an unknown encoding
            raise DataError(f"{self.path}: not readable as XML ({error})") from error
        if self.edge_default is None:
            raise DataError(f"{self.path}: there is no graph in it")

    def _fail(self, message: str) -> NoReturn:
        raise DataError(f"{self.path}, line {self.parser.CurrentLineNumber}: {message}")

    def _doctype(self, *_: Any) -> NoReturn:
        self._fail("a document type (DTD) is refused, as it can declare entities")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rsplit(" ", 1)[-1]
        self.stack.append(tag)
        if len(self.stack) > _DEEPEST:
            self._fail("the elements are nested too deeply")
        if len(self.stack) == 1 and tag != "graphml":
            self._fail(f"expected a graphml element (got {shown(tag)})")
        if tag in self.items:
            names = (_IDS,) if tag == "node" else _ENDS
            ends = {name: self._attribute(tag, attributes, name) for name in names}
            line, directed = self.parser.CurrentLineNumber, attributes.get("directed")
            self.open.append(_Item(tag, line, ends, directed=directed))
            if tag == "edge" and directed not in (None, *_TRUTH):
                self._fail(f"directed must be true or false (got {shown(directed)})")
            self.items[tag].append(self.open[-1])
        elif tag == "default":
            self.text = []
        elif tag == "hyperedge":
            self._fail("hyperedges are not supported")
        elif tag in ("key", "graph", "data"):
            getattr(self, f"_start_{tag}")(attributes)

    def _start_key(self, attributes: dict[str, str]) -> None:
        key = self._attribute("key", attributes, "id")
        kind = attributes.get("attr.type", "string")
        if kind not in _TYPES:
            self._fail(f"unknown attr.type {shown(kind)} (known: {', '.join(_TYPES)})")
        if key in self.keys:
            self._fail(f"there are two keys {shown(key)}")
        self.key = _Key(
            attributes.get("attr.name", key).strip(), kind, attributes.get("for", "all")
        )
        if any(
            (other.name, other.of) == (self.key.name, self.key.of) for other in self.keys.values()
        ):
            self._fail(f"there are two keys with the name {shown(self.key.name)}")
        self.keys[key] = self.key

    def _start_graph(self, attributes: dict[str, str]) -> None:
        if self.edge_default is not None:
            self._fail("there is more than one graph, or one inside another")
        self.edge_default = attributes.get("edgedefault", "undirected")
        if self.edge_default not in ("directed", "undirected"):
            self._fail(
                f"edgedefault must be directed or undirected (got {shown(self.edge_default)})"
            )

    def _start_data(self, attributes: dict[str, str]) -> None:
        key = self._attribute("data", attributes, "key")
        if key not in self.keys:
            self._fail(f"data of an undeclared key {shown(key)}")
        self.key, self.text = self.keys[key], []

    def _attribute(self, tag: str, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            self._fail(f"a {tag} has no {name}")
        return attributes[name]

    def _characters(self, text: str) -> None:
        if self.text is not None and self.stack[-1] in ("data", "default"):
            self.text.append(text)

    def _end(self, name: str) -> None:
        tag = self.stack.pop()
        if tag in self.items and self.open:
            self.open.pop()
        elif tag in ("data", "default") and self.text is not None and self.key is not None:
            self._end_text(tag, "".join(self.text).strip(), self.key)
            self.text = None

    def _end_text(self, tag: str, text: str, key: _Key) -> None:
        if tag == "default":
            key.default = self._parsed(text, key)
        elif self.open:
            item = self.open[-1]
            if key.of not in (item.tag, "all"):
                of = shown(key.of)
                self._fail(f"key {shown(key.name)} is declared for {of}, not {item.tag}s")
            item.values[key.name] = self._parsed(text, key)

    def _parsed(self, text: str, key: _Key) -> Any:
        try:
            return _TYPES[key.kind](text) if text else None
        except (LookupError, ValueError):
            self._fail(f"key {shown(key.name)}: {shown(text)} is not of type {key.kind}")

    def settle_directions(self) -> bool:
        """Whether the graph has directions; if only some edges have, the others get both."""
        default = self.edge_default == "directed"
        edges = self.items["edge"]
        have = [default if edge.directed is None else _TRUTH[edge.directed] for edge in edges]
        if len(set(have)) < 2:
            return have[0] if have else default
        for edge, is_directed in zip(list(edges), have, strict=True):
            if not is_directed:
                back = {"source": edge.ends["target"], "target": edge.ends["source"]}
                edges.append(_Item("edge", edge.line, back, edge.values))
        return True

    def table(self, tag: str, ends: tuple[str, ...]) -> Table:
        """What was read, as a table."""
        items = self.items[tag]
        if len(self.keys) * len(items) > _MOST_CELLS:
            raise DataError(
                f"{self.path}: {len(self.keys)} keys for {len(items)} {tag}s are too many for a "
                "table with a column for each key"
            )
        columns = {end: object_cells([item.ends[end] for item in items]) for end in ends}
        for key in self.keys.values():
            if key.of in (tag, "all"):
                values = [item.values.get(key.name, key.default) for item in items]
                # An attribute may have the name of an XML attribute, such as id.
                name = key.name if key.name not in columns else f"{key.name} (data)"
                if key.of == tag or any(value is not None for value in values):
                    columns[name] = object_cells(values)
        return Table(str(self.path), columns, [item.line for item in items])
