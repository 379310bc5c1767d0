"""Convert a graph of any supported kind to a store."""

from pathlib import Path
from typing import Any

from argnn.data.assemble import TooFewLabelsError
from argnn.data.graph_store.array_files import Tell, be_silent
from argnn.data.graph_store.new_folder import new_folder, require_free
from argnn.data.graph_store.opening import GraphStore, open_store
from argnn.data.graph_store.writing import MEMORY, write_graph
from argnn.data.loading import load


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
    graph = _loaded(source, options)
    with new_folder(path, force=force) as folder:
        write_graph(folder, graph, tell)
    return open_store(path)


def _loaded(source: Any, options: dict[str, Any]) -> Any:
    """The graph; without a split if there are too few labels for one."""
    try:
        return load(source, **options)
    except TooFewLabelsError:
        return load(source, **options, draw_split=False)
