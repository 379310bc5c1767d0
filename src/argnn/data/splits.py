"""Training, validation and test masks: drawing, checking and choosing them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.errors import ConfigError, DataError, error_prefix

MASK_NAMES = ("train_mask", "val_mask", "test_mask")

Masks = tuple[Tensor, Tensor, Tensor]


def stratified_splits(y: Tensor, fractions: Sequence[float], count: int, seed: int) -> Masks:
    """Draw splits in which every class has the same shares.

    Nodes without a label (``-1``) are in no mask. The last mask takes all that remain, so that
    every labelled node is used.

    Args:
        y: Class of each node, ``[N]``.
        fractions: Shares of training, validation and test nodes; they sum to one.
        count: How many splits to draw.
        seed: Fixes all of them.

    Returns:
        Training, validation and test masks, each ``[N, count]``.

    Example:
        >>> y = torch.tensor([0] * 5 + [1] * 5)
        >>> [int(mask.sum()) for mask in stratified_splits(y, (0.6, 0.2, 0.2), 1, 0)]
        [6, 2, 2]
    """
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-9:
        raise ConfigError(f"fractions must be three shares that sum to 1 (got {fractions})")
    rng = np.random.default_rng(seed)
    labels = y.numpy()
    masks = np.zeros((3, len(labels), count), dtype=bool)
    bounds = np.cumsum(fractions)[:2]
    for split in range(count):
        for label in np.unique(labels[labels >= 0]):
            members = rng.permutation(np.flatnonzero(labels == label))
            cuts = np.floor(bounds * len(members) + 0.5).astype(int)
            for mask, chosen in zip(masks, np.split(members, cuts), strict=True):
                mask[chosen, split] = True
    train, val, test = torch.from_numpy(masks)
    return train, val, test


@dataclass(frozen=True)
class Folds:
    """How labelled nodes are divided into folds.

    Attributes:
        count: Number of folds.
        column: Name of the groups, of which no fold has a part only; None without groups.
    """

    count: int
    column: str | None = None

    def rule(self, seed: int, has_classes: bool) -> str:
        """How the splits come about, in words."""
        kind = " stratified by class" if has_classes else ""
        groups = "" if self.column is None else f" of whole groups ({self.column})"
        drawn = f"{self.count} folds{kind}{groups}, drawn from all labels with seed {seed}"
        return f"{drawn}; split k tests fold k, the next validates"


def fold_splits(y: Tensor, count: int, seed: int, groups: Tensor | None = None) -> Masks:
    """Divide labelled nodes into folds: split k tests fold k, and the next fold validates.

    Every labelled node is tested in exactly one split. Classes are spread evenly over the folds; a
    group lies in one fold, and classes are spread as evenly as that allows.

    Args:
        y: Class of each node, ``[N]``; those with ``-1`` are in no mask.
        count: Number of folds, at least three.
        seed: Fixes them.
        groups: Number of each node's group, ``[N]``.

    Returns:
        Training, validation and test masks, each ``[N, count]``.

    Example:
        >>> y = torch.tensor([0] * 5 + [1] * 5)
        >>> train, val, test = fold_splits(y, 5, seed=0)
        >>> test.sum(1).tolist(), train.sum(0).tolist()
        ([1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [6, 6, 6, 6, 6])
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    known = (y >= 0).nonzero().squeeze(1)
    labels = y[known].numpy()
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(count, shuffle=True, random_state=seed)
    fold = torch.full_like(y, -1)
    parts = splitter.split(labels, labels, None if groups is None else groups[known].numpy())
    for number, (_, tested) in enumerate(parts):
        fold[known[torch.from_numpy(tested)]] = number
    test = fold.unsqueeze(1) == torch.arange(count)
    val = test.roll(-1, dims=1)
    return (fold >= 0).unsqueeze(1) & ~test & ~val, val, test


def check_folds(
    y: Tensor, folds: Folds, class_names: Sequence[str], groups: Tensor | None = None
) -> None:
    """Raise unless every class fills the folds; without ``class_names``, all that is labelled."""
    known = y >= 0
    sizes = y[known].bincount(minlength=len(class_names)).tolist()
    parts = [
        (size, f"class {name}") for size, name in zip(sizes, class_names, strict=False) if size
    ]
    size, what = min(parts or [(int(known.sum()), "the graph")])
    if size < folds.count:
        raise DataError(
            f"{what} has {size} labelled nodes, too few for {folds.count} folds; take fewer folds"
            + (", or leave the class out" if parts else "")
        )
    if groups is not None and len(held := groups[known].unique()) < folds.count:
        raise DataError(
            f"column {folds.column} has {len(held)} groups of labelled nodes, too few for "
            f"{folds.count} folds; take fewer folds"
        )


def check_masks(train: Tensor, val: Tensor, test: Tensor, *, origin: str) -> None:
    """Raise unless three ``[N, S]`` masks are disjoint, and those needed for training not empty.

    An empty test mask is allowed: then there is no test score. ``origin`` is named in errors.
    """
    with error_prefix(f"{origin}:"):
        check_usable(train, val, test)


def check_usable(train: Tensor, val: Tensor, test: Tensor) -> None:
    """:func:`check_masks` for a caller that names the graph itself."""
    masks = dict(zip(MASK_NAMES, (train, val, test), strict=True))
    for name, mask in masks.items():
        if mask.shape != train.shape:
            found = f"{name} has shape {list(mask.shape)}"
            raise DataError(f"{found}, but train_mask has {list(train.shape)}")
    for first, second in (MASK_NAMES[:2], MASK_NAMES[1:], MASK_NAMES[::2]):
        both = (masks[first] & masks[second]).nonzero()
        if len(both):
            node, split = both[0].tolist()
            raise DataError(f"node {node} is in {first} and in {second} of split {split}")
    for name in MASK_NAMES[:2]:
        empty = (~masks[name].any(dim=0)).nonzero()
        if len(empty):
            raise DataError(f"{name} of split {int(empty[0])} is empty")


def split_masks(graph: Data, split: int) -> Masks:
    """Training, validation and test mask of one split, each ``[N]``."""
    count = graph.train_mask.size(1)
    if not 0 <= split < count:
        known = f"splits 0 to {count - 1}" if count > 1 else "split 0 only"
        raise ConfigError(f"split {split} out of range: {graph.name} has {known}")
    return graph.train_mask[:, split], graph.val_mask[:, split], graph.test_mask[:, split]
