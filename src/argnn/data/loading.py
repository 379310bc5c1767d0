"""One door to every graph: a registered name, a file, or a PyG ``Data``."""

import os
from collections.abc import Callable
from pathlib import Path

from torch_geometric.data import Data

from argnn.data.assemble import assemble
from argnn.data.benchmarks import load_benchmark
from argnn.data.digits import digits
from argnn.data.npz import load_npz
from argnn.data.specs import DATASETS, DatasetSpec, check_counts
from argnn.data.synthetic import mixed
from argnn.errors import ConfigError, DataError
from argnn.registry import resolve

_EMBEDDED: dict[str, Callable[[], Data]] = {"digits": digits, "mixed": mixed}


def load(
    source: str | Path | Data,
    *,
    root: str | Path | None = None,
    directed: bool = False,
    row_normalize: bool = False,
) -> Data:
    """Load a graph, check it, and bring it to the one form that the library works with.

    Args:
        source: A name of ``DATASETS``, the path of a ``.npz`` file, or a PyG ``Data``.
        root: Folder of the raw benchmark files; else ``$ARGNN_DATA``, else the cache.
        directed: Keep the directions of the edges instead of listing both.
        row_normalize: Scale each row of the features to sum one.

    Returns:
        A graph with ``x`` ``[N, F]``, ``edge_index`` ``[2, E]``, ``y`` ``[N]`` (``-1``: no label),
        ``train_mask``, ``val_mask``, ``test_mask`` ``[N, S]``, ``name``, ``class_count``,
        ``class_names``, and in words ``edge_rule``, ``feature_rule``, ``split_rule``.

    Raises:
        DataError: Something is missing, damaged or contradicts itself.
        ConfigError: There is no data set of that name.

    Example:
        >>> graph = load("mixed")
        >>> graph.edge_rule
        'self-loops removed, both directions listed, duplicates merged'
    """
    if isinstance(source, Data):
        name = str(source.get("name") or "graph")
        return assemble(
            source, origin=name, name=name, directed=directed, row_normalize=row_normalize
        )
    path = _as_path(source)
    if path is not None:
        return assemble(
            _read_file(path),
            origin=str(path),
            name=path.stem,
            directed=directed,
            row_normalize=row_normalize,
        )
    spec = resolve(str(source), DATASETS, "data set")
    return assemble(
        _registered(spec, root),
        origin=spec.name,
        name=spec.name,
        directed=directed,
        row_normalize=row_normalize,
        undirected_source=not spec.directed,
    )


def _registered(spec: DatasetSpec, root: str | Path | None) -> Data:
    graph = _EMBEDDED[spec.loader]() if spec.embedded else load_benchmark(spec, root)
    check_counts(spec, graph)
    graph.split_rule = spec.split_rule
    return graph


def _as_path(source: str | Path) -> Path | None:
    """The path that ``source`` means, or nothing if it reads as a name."""
    if isinstance(source, Path):
        return source.expanduser()
    if not isinstance(source, str):
        raise ConfigError(
            f"a graph is a name, a path or a PyG Data object (got {type(source).__name__})"
        )
    try:
        resolve(source, DATASETS, "data set")
    except ConfigError:
        path = Path(source).expanduser()
        looks_like_path = os.sep in source or bool(path.suffix) or path.exists()
        return path if looks_like_path else None
    return None


def _read_file(path: Path) -> Data:
    if path.suffix.lower() != ".npz":
        what = "a folder" if path.is_dir() else f"'{path.suffix}'" if path.suffix else "no suffix"
        raise DataError(f"{path}: supported graph files are .npz (got {what})")
    return load_npz(path)
