"""How this process gets its memory from the system."""

import ctypes
import sys

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
#: The most that glibc accepts: larger blocks are always asked of the system anew.
_LARGEST_KEPT_BLOCK = 32 * 2**20
_KEPT = 2**30


def keep_freed_memory() -> bool:
    """Keep up to a gigabyte of freed memory for the next step instead of giving it back.

    A training step frees and asks for the same tensors again and again; by default glibc
    returns them to the system, which then has to clear every page of them at every step.
    Returns whether there is a glibc that took the setting.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # another C library
        return False
    settings = ((_M_MMAP_THRESHOLD, _LARGEST_KEPT_BLOCK), (_M_TRIM_THRESHOLD, _KEPT))
    return all(mallopt(name, value) == 1 for name, value in settings)
