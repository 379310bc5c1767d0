"""Groups of similar points."""

import torch
from torch import Tensor

_STEPS = 50


def nearest(points: Tensor, center: Tensor) -> Tensor:
    """Number of the nearest centre of each point, ``[N, F] -> [N]``."""
    # By differences instead of products: equal points get equal groups.
    distance = torch.cdist(points, center, compute_mode="donot_use_mm_for_euclid_dist")
    return distance.argmin(-1)


def clustered(points: Tensor, count: int) -> Tensor:
    """Centres of groups by the k-means method, ``[N, F] -> [count, F]``.

    The first centre is the point that is farthest from the mean, each further one the point that is
    farthest from all before. So the result does not depend on the order of the points, except for
    rounding and for points that are equally far. Where there are fewer different points than
    groups, centres repeat; a repeated centre has no points.

    Example:
        >>> clustered(torch.tensor([[0.0], [1.0], [9.0], [11.0]]), 2).tolist()
        [[10.0], [0.5]]
    """
    chosen = [points[_gap(points, points.mean(0)).argmax()]]
    gap = _gap(points, chosen[0])
    while len(chosen) < count:
        chosen.append(points[gap.argmax()])
        gap = torch.minimum(gap, _gap(points, chosen[-1]))
    center = torch.stack(chosen)
    for _ in range(_STEPS):
        group = nearest(points, center)
        size = torch.bincount(group, minlength=count).unsqueeze(-1)
        total = torch.zeros_like(center).index_add_(0, group, points)
        moved = torch.where(size > 0, total / size.clamp_min(1), center)
        if torch.equal(moved, center):
            break
        center = moved
    return center


def _gap(points: Tensor, center: Tensor) -> Tensor:
    return (points - center).square().sum(-1)
