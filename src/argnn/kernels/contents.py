"""What is derived from a tensor, kept for as long as the tensor lives and holds the same contents.

Torch counts what its own operations write into a tensor, but not what is written through numpy,
``.data`` or any other view of the same memory. So every use reads the whole tensor and compares a
checksum of its contents; :class:`unchanged` spares that where the caller vouches for the tensors.
"""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import torch
import xxhash
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric import EdgeIndex

from argnn.kernels.wide import at_wide

T = TypeVar("T")

# Tensors that a caller vouches for, with torch's count of writes and the contents found then.
_VOUCHED: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Numbers that are mixed at once on a GPU, which needs room for twice as many.
_AT_ONCE = 2**22
# The steps of the random generator "splitmix64", with constants as signed numbers.
_STEP = 0x9E3779B97F4A7C15 - 2**64
_MIXING = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64), (31, 1))


class ContentCache(Generic[T]):
    """What was made from tensors, each for as long as the tensor lives and has not changed.

    What is made must not hold the tensor itself: it would keep it alive.
    """

    def __init__(self) -> None:
        self._known: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, tensor: Tensor, make: Callable[[], T], key: Hashable = None) -> T:
        """What ``make`` gives for these contents: made now, or kept since an earlier call.

        It is made outside of inference mode, since it may be needed for training later.

        Args:
            tensor: The tensor that ``make`` reads.
            make: Called where nothing is known for the present contents.
            key: Tells apart what else is made from the same tensor.
        """
        seen, made = self._known.get(tensor, (None, {}))
        # While a CUDA graph is recorded nothing can be read: what was found last counts.
        if seen is None or not _is_recording(tensor):
            contents = _contents(tensor)
            if contents != seen:
                made = {}
                self._known[tensor] = (contents, made)
        if key not in made:
            with torch.inference_mode(False), torch.no_grad():
                made[key] = make()
        return made[key]


class unchanged:  # noqa: N801 - reads like a statement
    """Vouch for tensors: nobody writes to them inside of this ``with`` block.

    Their contents are read once inside of the block, instead of at every use, and once more at its
    end. What torch's own operations change is noticed all the same, unless a CUDA graph was
    recorded. Training does this for its features and edges; a loop of your own may do it too.

    Args:
        *tensors: Node features, edges, or anything else that models are called with.

    Raises:
        RuntimeError: At the end, where a change was not noticed before.

    Example:
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> with unchanged(edge_index):
        ...     pass  # many steps of training
    """

    def __init__(self, *tensors: Tensor) -> None:
        self._tensors = [plain_tensor(tensor) for tensor in tensors]

    def __enter__(self) -> None:
        self._tensors = [tensor for tensor in self._tensors if tensor not in _VOUCHED]
        for tensor in self._tensors:
            vouch_for(tensor)

    def __exit__(self, kind: object, *error: object) -> None:
        entries = [(tensor, _VOUCHED.pop(tensor, None)) for tensor in self._tensors]
        if kind is None and any(entry and entry[1] != _contents(t) for t, entry in entries):
            raise RuntimeError(
                "features or edges were changed while argnn relied on them (inside `fit` or "
                "`unchanged`): what was computed since then is of no use"
            )


def vouch_for(tensor: Tensor) -> None:
    """Say that nobody will write to a tensor, except by operations that torch counts."""
    _VOUCHED[tensor] = None


def plain_tensor(tensor: Tensor) -> Tensor:
    """The tensor itself, or the one inside of PyG's class for edges."""
    return tensor.as_tensor() if isinstance(tensor, EdgeIndex) else tensor


def _contents(tensor: Tensor) -> Hashable:
    """What tells the contents of a tensor from others: equal only where nothing has changed."""
    if tensor not in _VOUCHED:
        return _read(tensor)
    writes = None if tensor.is_inference() else tensor._version
    entry = _VOUCHED[tensor]
    if entry is None or entry[0] != writes:
        entry = _VOUCHED[tensor] = (writes, _read(tensor))
    return entry[1]


def _read(tensor: Tensor) -> Hashable:
    numbers = at_wide(tensor.detach()).contiguous().view(-1)
    numbers = numbers.view(_INTEGERS.get(numbers.element_size(), torch.int64))
    if numbers.device.type == "cpu":
        memory: Any = numbers.numpy()
        checksum = xxhash.xxh3_64_intdigest(memory)
    else:
        checksum = _device_checksum(numbers)
    return tensor.shape, tensor.dtype, tensor.device, checksum


def _device_checksum(numbers: Tensor) -> int:
    """Sum of a random-looking function of every number and its place; waits for the device."""
    total = torch.zeros((), dtype=torch.int64, device=numbers.device)
    for start in range(0, numbers.numel(), _AT_ONCE):
        part = numbers[start : start + _AT_ONCE]
        mixed = torch.arange(start, start + part.numel(), device=part.device).mul_(_STEP).add_(part)
        for shift, factor in _MIXING:
            mixed.bitwise_xor_(mixed >> shift).mul_(factor)
        total += mixed.sum()
    return int(total)


def _is_recording(tensor: Tensor) -> bool:
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()
