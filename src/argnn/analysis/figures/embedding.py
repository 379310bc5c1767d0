"""Points of a learned layer in two or three dimensions, by t-SNE."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from argnn.errors import ConfigError

Points = NDArray[np.float64]

# Fewer points have no neighbourhoods that a picture could keep.
_FEWEST = 8
_PERPLEXITY = 30


def embed(h: Tensor, dimensions: int = 2, seed: int = 0, jobs: int = 1) -> Points:
    """Positions of points ``[N, D]`` in the plane or in space, ``[N, dimensions]``.

    t-SNE of openTSNE, starting at the principal components. Of fewer than eight points, or where
    all are equal, these components are the result.

    Args:
        h: The points.
        dimensions: 2 or 3.
        seed: Fixes the result, for one number of jobs.
        jobs: Number of threads.
    """
    points = h.detach().cpu().double().numpy()
    start = _principal(points, dimensions)
    distinct = len(np.unique(points, axis=0))
    if distinct < _FEWEST:
        return start
    tsne = _tsne()(
        n_components=dimensions,
        perplexity=min(_PERPLEXITY, (len(points) - 1) / 3),
        negative_gradient_method="auto" if dimensions < 3 else "bh",
        initialization=start / max(start[:, 0].std(), 1e-12) * 1e-4,
        random_state=seed,
        n_jobs=jobs,
    )
    return np.array(tsne.fit(points), dtype=np.float64)


def upright(points: Points) -> Points:
    """The same picture turned so that it is widest along the first axis."""
    return _principal(points, points.shape[1])


def _principal(points: Points, dimensions: int) -> Points:
    """The first principal components; missing ones are zero."""
    centred = points - points.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    found = (left * values)[:, :dimensions]
    # A component has no sign of its own: its largest entry is made positive.
    signs = np.sign(found[np.abs(found).argmax(0), np.arange(found.shape[1])])
    padded = np.zeros((len(points), dimensions))
    padded[:, : found.shape[1]] = found * np.where(signs == 0, 1, signs)
    return padded


def _tsne() -> type:
    try:
        from openTSNE import TSNE
    except ImportError as error:
        raise ConfigError("maps need openTSNE: pip install 'argnn[plot]'") from error
    kind: type = TSNE
    return kind
