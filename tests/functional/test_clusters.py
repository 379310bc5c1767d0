"""Groups of similar points by the k-means method."""

import torch

from argnn.functional.clusters import clustered, nearest


def blobs(count=30, seed=0):
    generator = torch.Generator().manual_seed(seed)
    center = torch.tensor([[0.0, 0.0], [8.0, 0.0], [0.0, 9.0]], dtype=torch.float64)
    noise = torch.randn(3, count, 2, generator=generator, dtype=torch.float64)
    return (center.unsqueeze(1) + 0.5 * noise).flatten(0, 1)


def test_separate_groups_are_found_and_their_centres_are_means():
    points = blobs()
    center = clustered(points, 3)
    group = nearest(points, center).view(3, -1)
    assert all(len(set(row.tolist())) == 1 for row in group)
    assert len(set(group[:, 0].tolist())) == 3
    for row, part in zip(group, points.view(3, -1, 2), strict=True):
        torch.testing.assert_close(center[row[0]], part.mean(0))


def test_order_of_the_points_does_not_matter():
    points = blobs()
    order = torch.randperm(len(points))
    torch.testing.assert_close(clustered(points[order], 5), clustered(points, 5))


def test_nearest_by_a_loop():
    points, center = blobs(4), blobs(2, seed=3)
    expected = [min(range(6), key=lambda k: (p - center[k]).norm().item()) for p in points]
    assert nearest(points, center).tolist() == expected


def test_more_groups_than_points():
    points = torch.tensor([[1.0], [2.0], [2.0]], dtype=torch.float64)
    center = clustered(points, 5)
    assert center.isfinite().all()
    assert nearest(points, center).bincount(minlength=5).tolist()[2:] == [0, 0, 0]
    assert nearest(points[:0], center).tolist() == []
