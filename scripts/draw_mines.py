"""Draw a Minesweeper board as a graph: one of those on which the trial's recipes were developed.

A field is joined to the eight around it. The task is to find the mines, a fifth of all fields.
Every second field shows how many mines are around it, one-hot up to five; the others show nothing.
Mines that are several steps away matter, so that deep models are better.

    python scripts/draw_mines.py mines.npz
"""

import argparse
import itertools
from pathlib import Path

import numpy as np

SIDE, SEED, SPLITS, MOST_SHOWN = 100, 7, 10, 5


def board() -> dict[str, np.ndarray]:
    """The arrays that ``argnn.data.load`` reads from an npz file."""
    rng, count = np.random.default_rng(SEED), SIDE * SIDE
    mine = rng.random(count) < 0.2
    row, column = np.divmod(np.arange(count), SIDE)
    edges = []
    for down, right in itertools.product((-1, 0, 1), repeat=2):
        inside = (row + down >= 0) & (row + down < SIDE)
        inside &= (column + right >= 0) & (column + right < SIDE) & (down != 0 or right != 0)
        target = (row + down) * SIDE + column + right
        edges.append(np.stack([np.arange(count)[inside], target[inside]]))
    edge_index = np.concatenate(edges, axis=1)
    near = np.bincount(edge_index[1], weights=mine[edge_index[0]], minlength=count).astype(int)
    x = np.zeros((count, MOST_SHOWN + 2), dtype=np.float32)
    x[np.arange(count), near.clip(0, MOST_SHOWN)] = 1
    hidden = rng.random(count) < 0.5
    x[hidden] = 0
    x[hidden, -1] = 1
    order = np.stack([rng.permutation(count) for _ in range(SPLITS)], axis=1)
    rank = np.argsort(order, axis=0)
    masks = {
        "train_mask": rank < count // 2,
        "val_mask": (rank >= count // 2) & (rank < 3 * count // 4),
        "test_mask": rank >= 3 * count // 4,
    }
    return {"x": x, "edge_index": edge_index, "y": mine.astype(np.int64), **masks}


def main() -> None:
    """Write the board."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    np.savez_compressed(parser.parse_args().out, **board())


if __name__ == "__main__":
    main()
