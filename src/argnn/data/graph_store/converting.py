"""Convert a graph of any supported kind to a store."""

from pathlib import Path
from typing import Any

from argnn.data.graph_store.new_folder import new_folder, require_free
from argnn.data.graph_store.opening import GraphStore, open_store
from argnn.data.graph_store.streaming import StreamedSource, streamed_source, write_streamed
from argnn.data.graph_store.writing import MEMORY, write_graph
from argnn.data.import_options import ImportOptions
from argnn.data.loading import as_path, load_with_or_without_split
from argnn.telling import Tell, be_silent

#: Bytes of tables from which on they are read in parts: as Python objects they take many times
#: as much memory.
STREAMED_FROM = 256 << 20


def convert(
    source: Any,
    store: Path | str,
    *,
    force: bool = False,
    memory: int = MEMORY,
    tell: Tell = be_silent,
    **options: Any,
) -> GraphStore:
    """Write a graph into a store, whole or not at all.

    Large lists of edges, CSV and Parquet folders are read in parts, in bounded memory.

    Args:
        source: A graph as of :func:`argnn.data.load`.
        store: The folder to make.
        force: Replace a store that is there.
        memory: Bytes of memory for edges that are sorted on the disk.
        tell: Is told what is done.
        **options: Further arguments of :func:`argnn.data.load`.

    Raises:
        RunError: There is something at ``store`` already, or another process is writing it.
    """
    path = Path(store).expanduser()
    require_free(path, force)
    tell(0, 0, "reading")
    tables = _streamed(source, options)
    if tables is not None:
        with new_folder(path, force=force) as folder:
            write_streamed(tables, folder, ImportOptions.among(options), memory, tell)
        return open_store(path)
    graph = load_with_or_without_split(source, **options)
    with new_folder(path, force=force) as folder:
        write_graph(folder, graph, tell)
    return open_store(path)


def _streamed(source: Any, options: dict[str, Any]) -> StreamedSource | None:
    """The tables of a source that is too large for memory."""
    path = as_path(source) if isinstance(source, str | Path) else None
    tables = None if path is None or "schema" in options else streamed_source(path)
    return tables if tables is not None and tables.size >= STREAMED_FROM else None
