# mypy: disable-error-code="no-untyped-def"
"""How the kernels of a CPU are compiled: functions of one row, and loops over all rows."""

from collections.abc import Callable
from typing import Any

from numba import extending, njit, prange
from numba.core import cgutils, types
from numba.np.arrayobj import make_array

from argnn.kernels.kept import kept_jit

#: A decorator for functions that write instructions of the compiler; numba's types are wrong.
intrinsic: Any = extending.intrinsic

# Sums may be reordered for vector units; NaN and infinity keep their meaning.
_OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp", "afn"},
    "error_model": "numpy",
    "nogil": True,
}


def jit(function: Callable[..., Any]) -> Any:
    """For what a loop over edges calls: without inlining, the calls take as long as the sums."""
    return njit(forceinline=True, **_OPTIONS)(function)


def exact_jit(function: Callable[..., Any]) -> Any:
    """For the few operations per edge: reordered products of large factors might overflow.

    ``fastmath`` is said: numba takes an option that is not from the function that calls.
    """
    return njit(forceinline=True, **(_OPTIONS | {"fastmath": False}))(function)


def over_rows(rows: Callable[..., Any]) -> Any:
    """A kernel that shares out rows among threads.

    Args:
        rows: Computes the rows from ``first`` to ``last``, its first two arguments.

    Returns:
        A function of the bounds of all parts and of the other arguments.
    """
    compute = jit(rows)

    def kernel(bounds, *arguments):
        for part in prange(bounds.shape[0] - 1):
            compute(bounds[part], bounds[part + 1], *_borrowed(*arguments))

    kernel.__name__ = rows.__name__
    return kept_jit(kernel, parallel=True, **_OPTIONS)


@intrinsic
def _borrowed(typing_context, *arguments):
    """The same, arrays without their reference counts, which every view of a row would raise."""

    def generate(context, builder, signature, values):
        borrowed = []
        unpacked = cgutils.unpack_tuple(builder, values[0])
        for kind, value in zip(signature.args[0], unpacked, strict=True):
            if isinstance(kind, types.Array):
                array = make_array(kind)(context, builder, value)
                for name in ("meminfo", "parent"):
                    setattr(array, name, cgutils.get_null_value(getattr(array, name).type))
                value = array._getvalue()
            borrowed.append(value)
        return context.make_tuple(builder, signature.return_type, borrowed)

    return types.Tuple(arguments)(types.StarArgTuple(arguments)), generate
