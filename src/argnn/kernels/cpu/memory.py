# mypy: disable-error-code="no-untyped-def"
"""Asking for rows ahead of their use: at random places in memory it is latency that costs."""

import numpy as np
from numba.core import types
from numba.np.arrayobj import make_array

from argnn.kernels.cpu.compiling import intrinsic, jit

#: Edges between asking for a row and using it.
AHEAD = 4


@intrinsic
def _prefetch(typing_context, array, index):
    """Ask for the cache line of an element, counted from the first one of an array."""

    def generate(context, builder, signature, arguments):
        from llvmlite import ir  # type: ignore[import-untyped]

        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        byte_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte_pointer)
        name = "llvm.prefetch.p0"
        declared = builder.module.globals.get(name)
        if declared is None:
            kind = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
            declared = ir.Function(builder.module, kind, name)
        read, keep, data_cache = int32(0), int32(3), int32(1)
        builder.call(declared, [address, read, keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, index), generate


@jit
def prefetch_row(x, row):
    """Ask for all cache lines of a row of ``x``, whose rows follow each other in memory."""
    per_line = 64 // x.itemsize
    offset = np.int64(row) * x.shape[1]
    stop = offset + x.shape[1]
    while offset < stop:  # a `for` with a step compiles to many more instructions
        _prefetch(x, offset)
        offset += per_line


@jit
def prefetch_ahead(x, column, e, end):
    """Ask for the row that an edge some places after ``e`` will gather."""
    prefetch_row(x, column[min(e + AHEAD, end - 1)])
