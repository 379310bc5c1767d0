"""A graph with known twins, for tests of scores without them."""

from pathlib import Path

import numpy as np

#: Of each split: its test nodes, and how many of them have a twin among the training nodes.
COUNTS = ({"test": 15, "with_twin": 8}, {"test": 3, "with_twin": 0})
#: The test nodes without a twin, by split.
OTHERS = ([7, 8, 9, 44, 45, 48, 49], [7, 8, 9])


def write_twins(path: Path) -> Path:
    """10 hubs, and 10 groups of 4 leaves: those of group k hang on the hubs k and k + 1.

    Leaves of a group are twins, hubs have none. In split 0 the groups 8 and 9 have no training
    node; in split 1 only hubs are test nodes.
    """
    group = np.repeat(np.arange(10), 4)
    leaf = 10 + np.arange(40)
    pairs = np.concatenate([np.stack([leaf, group]), np.stack([leaf, (group + 1) % 10])], axis=1)
    y = np.concatenate([np.arange(10) % 2, group % 2])
    place = np.tile(np.arange(4), 10)
    far = group >= 8
    train, val, test = (np.zeros((50, 2), dtype=bool) for _ in range(3))
    train[:4] = val[4:7] = test[7:10] = True
    train[10:, 0], train[10:, 1] = ~far & (place < 2), place < 2
    val[10:, 0], val[10:, 1] = np.where(far, place < 2, place == 2), place >= 2
    test[10:, 0] = np.where(far, place >= 2, place == 3)
    np.savez(
        path,
        x=np.random.default_rng(0).normal(size=(50, 4)),
        edge_index=pairs,
        y=y,
        train_mask=train,
        val_mask=val,
        test_mask=test,
    )
    return path
