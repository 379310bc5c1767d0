"""Project points of many dimensions to two or three, for drawing."""

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

# With fewer points there are no neighbourhoods to keep.
_FEWEST_FOR_TSNE = 12
_MOST_FOR_PLANE = 60_000
#: Without interpolation, which exists in the plane only, t-SNE takes minutes on more points.
MOST_FOR_SPACE = 2_500
_MOST_CHANNELS = 50


def project(
    points: NDArray[Any], dimensions: int, seed: int = 0, jobs: int = 1
) -> tuple[Points, str]:
    """Place points in the plane or in space so that near ones stay near; also names the method.

    By t-SNE, if openTSNE is installed and there are neither too few distinct points nor too many
    points, else by principal components.

    Args:
        points: What to place, ``[N, D]``.
        dimensions: 2 or 3.
        seed: Seed of t-SNE; the result also depends on the number of jobs.
        jobs: Number of threads.
    """
    start = principal_components(points, _MOST_CHANNELS)
    most = _MOST_FOR_PLANE if dimensions == 2 else MOST_FOR_SPACE
    missing = importlib.util.find_spec("openTSNE") is None
    if missing or len(points) > most or len(np.unique(start, axis=0)) < _FEWEST_FOR_TSNE:
        return _widened(start, dimensions), "principal components"
    return _tsne(start, dimensions, seed, jobs), "t-SNE"


def upright(points: Points) -> Points:
    """The same points, turned so that they are widest along the first axis."""
    return _widened(principal_components(points, points.shape[1]), points.shape[1])


def principal_components(points: NDArray[Any], most: int) -> Points:
    """Coordinates along the directions of largest variance, at most ``most``, ``[N, K]``."""
    centred = np.asarray(points, dtype=np.float64)
    centred = centred - centred.mean(0)
    values, directions = np.linalg.eigh(centred.T @ centred)
    chosen = directions[:, ::-1][:, :most]
    # A principal component has no sign of its own.
    chosen = chosen * np.where(chosen.sum(0) < 0, -1.0, 1.0)
    found: Points = centred @ chosen
    return found


def _widened(points: Points, dimensions: int) -> Points:
    """The first coordinates, filled up with zeros where there are too few."""
    filled = np.zeros((len(points), dimensions))
    kept = min(dimensions, points.shape[1])
    filled[:, :kept] = points[:, :kept]
    return filled


def _tsne(start: Points, dimensions: int, seed: int, jobs: int) -> Points:
    from openTSNE import TSNE

    count = len(start)
    initial = _widened(start, dimensions)
    initial = initial / max(float(initial[:, 0].std()), 1e-12) * 1e-4
    found = TSNE(
        n_components=dimensions,
        perplexity=min(30.0, (count - 1) / 3),
        initialization=initial,
        early_exaggeration_iter=150,
        n_iter=500 if count <= 5_000 else 250,
        negative_gradient_method="fft" if dimensions == 2 and count > 3_000 else "bh",
        neighbors="exact" if count <= 5_000 else "auto",
        random_state=seed,
        n_jobs=jobs,
    ).fit(start)
    return np.asarray(found, dtype=np.float64)
