"""Handwritten digits as a nearest-neighbor graph: real data that needs no download."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from argnn.data.assemble import assemble
from argnn.data.splits import stratified_splits

# Few labels: with half of the nodes labelled, every method scores the same on this graph.
FRACTIONS = (0.05, 0.15, 0.8)


def digits(num_neighbors: int = 8, num_splits: int = 10, seed: int = 0) -> Data:
    """The 1,797 digits of scikit-learn; each chooses its nearest others as neighbors.

    The seed fixes the splits; the graph itself has no randomness.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    y = torch.from_numpy(labels).long()
    train, val, test = stratified_splits(y, FRACTIONS, num_splits, seed)
    source = Data(
        x=torch.from_numpy(images / 16.0),
        edge_index=torch.from_numpy(nearest_neighbors(images, num_neighbors)),
        y=y,
        train_mask=train,
        val_mask=val,
        test_mask=test,
        class_names=[str(digit) for digit in range(10)],
        split_rule=f"{num_splits} stratified 5/15/80 splits drawn with seed {seed}",
    )
    return assemble(source, origin="digits", name="digits")


def nearest_neighbors(points: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Edges from the ``count`` nearest points to each point, ``[2, N * count]``.

    Ties go to the lower index. Where the coordinates are whole numbers, as those of the digits, all
    distances are exact, so that every machine finds the same graph.

    Example:
        >>> nearest_neighbors(np.array([[0.0], [1.0], [5.0]]), 1).tolist()
        [[1, 0, 1], [0, 1, 2]]
    """
    squares = (points**2).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * points @ points.T
    np.fill_diagonal(distances, np.inf)
    source = np.argsort(distances, axis=1, kind="stable")[:, :count]
    target = np.broadcast_to(np.arange(len(points))[:, None], source.shape)
    return np.stack([source.ravel(), target.ravel()])
