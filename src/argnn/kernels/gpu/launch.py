"""How work is cut into programs: tile heights, warps, and the second launch for split rows."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from argnn.kernels.csr import Csr

#: Edges of a tile, warps of a program and pipeline stages of its loop, by kernel and padded
#: number of channels; where nothing is said, :func:`launch_shape` decides.
LAUNCH: dict[tuple[str, int], tuple[int, int, int]] = {}

#: Elements of a gathered tile, as measured on an H200: more of them are in flight where a kernel
#: needs few registers.
_TILE = {"gather_sum": 1024, "laplacian": 512, "moments": 512, "moments_backward": 512}
_DEFAULT_TILE = 256
#: Bytes that the 32 threads of a warp load at once.
_WARP_BYTES = 512
_NOTHING = nullcontext()
_STORAGE = (torch.float32, torch.bfloat16, torch.float16)


def padded(channels: int) -> int:
    """The smallest power of two that holds the channels."""
    return 1 << (channels - 1).bit_length()


def launch_shape(kernel: str, block_d: int) -> tuple[int, int, int]:
    """Edges of a tile, warps of a program, and pipeline stages of its loop."""
    if (kernel, block_d) in LAUNCH:
        return LAUNCH[kernel, block_d]
    height = _TILE.get(kernel, _DEFAULT_TILE) // block_d
    return min(max(height, 2), 16), 2 if block_d > 256 else 1, 1


def over_rows(
    name: str,
    kernel: Any,
    csr: Csr,
    like: Tensor,
    *,
    width: int | None = None,
    channels: int | None = None,
    **arguments: Any,
) -> None:
    """Run a kernel on every segment, then once more on the rows that were split.

    Args:
        name: Of the kernel, in :data:`LAUNCH`.
        kernel: Takes rows, starts, stops, slots, partial sums and columns first.
        csr: Whose rows are walked.
        like: Of the storage type, on the device to run on, with the channels of the kernel's ``D``.
        width: Floats that a piece of a split row leaves behind; ``D`` where None.
        channels: Of the widest gathered row; ``D`` where None.
        **arguments: The rest of what the kernel takes.
    """
    check_storage(like)
    segments, num_channels = csr.segments, like.size(1)
    if segments.row.numel() == 0:
        return
    block_d = padded(channels or num_channels)
    block_e, num_warps, num_stages = launch_shape(name, block_d)
    arguments |= {
        "column": csr.column,
        "D": num_channels,
        "BLOCK_D": padded(num_channels),
        "BLOCK_E": block_e,
        "STAGES": num_stages,
        "FOLD": block_d * like.element_size() >= _WARP_BYTES * num_warps,
        "num_warps": num_warps,
    }
    is_split = segments.num_slots > 0
    slots, partial = None, None
    if is_split:
        slots = segments.slot
        partial = floats(like, segments.num_slots, width or num_channels)
    with on_device(like):
        kernel[(segments.row.numel(),)](
            segments.row,
            segments.start,
            segments.stop,
            slots,
            partial,
            COMBINE=False,
            **arguments,
        )
        if is_split:
            kernel[(segments.split_row.numel(),)](
                segments.split_row,
                segments.split_slot,
                segments.split_slot[1:],
                None,
                partial,
                COMBINE=True,
                **arguments,
            )


def on_device(like: Tensor) -> AbstractContextManager[object]:
    """Make a tensor's device the current one, if it is not."""
    if not like.is_cuda or like.device.index == torch.cuda.current_device():
        return _NOTHING
    return torch.cuda.device(like.device)


def floats(like: Tensor, *shape: int) -> Tensor:
    """Room for float32 numbers on the same device."""
    return torch.empty(shape, dtype=torch.float32, device=like.device)


def edge_weight(csr: Csr) -> Tensor | None:
    """The weight of each entry of a matrix, ``[E]`` float32; None where all are one."""
    return csr.weight_as(torch.float32)


def check_storage(x: Tensor) -> None:
    """Refuse what the kernels would silently compute in float32."""
    if x.dtype not in _STORAGE:
        raise ValueError(f"GPU kernels take float32, bfloat16 or float16 (got {x.dtype})")
