"""Arrays in memory: ``(X, edge_index)``, and a sparse adjacency matrix with features."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.errors import DataError

_LARGEST_DENSE = 8 << 30


def is_sparse(value: object) -> bool:
    """Whether a value is a sparse matrix or array of scipy."""
    return bool(sp.issparse(value))


def adjacency_data(adjacency: Any, x: Any = None) -> tuple[Data, list[str]]:
    """A graph whose edge from i to j is the entry in row i and column j.

    Args:
        adjacency: Sparse ``[N, N]``; entries of 0 are no edges.
        x: Features ``[N, F]``, dense or sparse.
    """
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1] or not adjacency.shape[0]:
        raise DataError(
            f"adjacency matrix: must be square and not empty (got {list(adjacency.shape)})"
        )
    entries = adjacency.tocoo()
    present = entries.data != 0
    ends = np.stack([entries.row[present], entries.col[present]]).astype(np.int64)
    weight = entries.data[present]
    if weight.dtype.kind not in "biuf":
        raise DataError(f"adjacency matrix: must hold real numbers (got {weight.dtype})")
    data = Data(edge_index=torch.from_numpy(ends), num_nodes=adjacency.shape[0])
    if x is not None:
        data.x = dense_features(x)
        if data.x.dim() == 2 and data.x.size(0) != adjacency.shape[0]:
            raise DataError(
                f"features have {data.x.size(0)} rows, but the adjacency matrix has "
                f"{adjacency.shape[0]}"
            )
    notes = []
    if bool((weight != 1).any()):
        data.edge_weight = torch.from_numpy(weight.astype(np.float64))
        notes.append("adjacency matrix: entries other than 1 are weights")
    return data, notes


def arrays_data(x: Any, edge_index: Any) -> Data:
    """A graph of features ``[N, F]`` and edges ``[2, E]``."""
    edges = edge_index if isinstance(edge_index, Tensor) else _numeric(edge_index, "edge_index")
    return Data(x=dense_features(x), edge_index=torch.as_tensor(edges))


def dense_features(x: Any) -> Tensor:
    """Features as a dense tensor, unless that would fill the memory."""
    if isinstance(x, Tensor):
        return x.to_dense() if x.layout != torch.strided else x
    if is_sparse(x):
        if 4 * int(np.prod(x.shape)) > _LARGEST_DENSE:
            raise DataError(
                f"x: {list(x.shape)} features do not fit into the memory once they are dense"
            )
        return torch.from_numpy(np.asarray(x.astype(np.float32).toarray()))
    return torch.from_numpy(_numeric(x, "x"))


def _numeric(value: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(f"{name}: rows must be of equal length") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name}: must hold numbers (got {array.dtype})")
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    return array if array.dtype.kind == "b" else array.astype(np.int64)
