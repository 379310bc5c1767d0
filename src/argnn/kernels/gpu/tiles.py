# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""What the kernels share: a segment's edges, tiles of gathered rows, and sums over them.

A tile is ``[BLOCK_E, BLOCK_D]``: some edges of one row by all channels, in float32. Sums over
edges are kept either as a row of channels (``FOLD``, where a thread holds whole columns of the
tile and adding them is free) or as a tile that is added up once, at the end.
"""

import triton  # type: ignore[import-untyped, import-not-found, unused-ignore]
import triton.language as tl  # type: ignore[import-untyped, import-not-found, unused-ignore]


@triton.jit
def segment(rows, starts, stops):
    """Row, first entry, one past the last, and number of this program's segment."""
    program = tl.program_id(0)
    row = tl.load(rows + program).to(tl.int64)
    return row, tl.load(starts + program), tl.load(stops + program), program


@triton.jit
def tile_count(start, stop, BLOCK_E: tl.constexpr):
    """Tiles that cover the entries from ``start`` to ``stop``."""
    return ((stop - start).to(tl.int32) + BLOCK_E - 1) // BLOCK_E


@triton.jit
def channels(D: tl.constexpr, BLOCK_D: tl.constexpr):
    """Channel numbers and which of them exist; a mask that is all true vanishes."""
    d = tl.arange(0, BLOCK_D)
    mask = tl.full((BLOCK_D,), True, tl.int1) if D == BLOCK_D else d < D
    return d, mask


@triton.jit
def load_row(x, row, d, d_mask, D: tl.constexpr):
    """One row of ``x``, ``[BLOCK_D]``, zero beyond its channels."""
    return tl.load(x + row * D + d, mask=d_mask, other=0.0).to(tl.float32)


@triton.jit
def load_tile(first, d, mask, d_mask):
    """The rows that begin at the pointers ``first``, ``[BLOCK_E, BLOCK_D]``."""
    at = first[:, None] + d[None, :]
    return tl.load(at, mask=mask[:, None] & d_mask[None, :], other=0.0).to(tl.float32)


@triton.jit
def gather(x, index, d, mask, d_mask, D: tl.constexpr):
    """The rows ``index`` of ``x``, ``[BLOCK_E, BLOCK_D]``, zero where masked."""
    return load_tile(x + index.to(tl.int64) * D, d, mask, d_mask)


@triton.jit
def empty_sum(BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr, FOLD: tl.constexpr):
    """A sum of tiles that has none yet."""
    return tl.zeros((BLOCK_D,) if FOLD else (BLOCK_E, BLOCK_D), tl.float32)


@triton.jit
def add_tile(total, tile, FOLD: tl.constexpr):
    """The sum with one more tile."""
    if FOLD:
        total += tl.sum(tile, axis=0)
    else:
        total += tile
    return total


@triton.jit
def finish_sum(total, FOLD: tl.constexpr):
    """The sum over all edges, ``[BLOCK_D]``."""
    if not FOLD:
        total = tl.sum(total, axis=0)
    return total


@triton.jit
def part_or_whole(slot, d, d_mask):
    """The channels to store as a partial sum, and those to store as the result."""
    # By channel, since Triton's interpreter cannot spread a single truth value.
    return d_mask & (slot + d >= d), d_mask & (slot + d < d)


@triton.jit
def modulation(g):
    """tanh(-log g) = (1 - g^2) / (1 + g^2); the bound keeps the square finite."""
    g = tl.minimum(g, 1e18)
    return (1 - g) * (1 + g) / (1 + g * g)


@triton.jit
def modulation_slope(g):
    """Derivative of :func:`modulation`, -4 g / (1 + g^2)^2."""
    g = tl.minimum(g, 1e18)
    u = 2 / (1 + g * g)
    return -u * (u * g)
