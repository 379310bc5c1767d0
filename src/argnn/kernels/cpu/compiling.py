# mypy: disable-error-code="no-untyped-def"
"""How the kernels of a CPU are compiled: functions of one row, and loops over all rows."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, njit
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
# Python calls none of the functions inside of a kernel: numba need not compile an entry for it.
_CALLED: dict[str, Any] = {
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def jit(function: Callable[..., Any]) -> Any:
    """For what a loop over edges calls: without inlining, the calls take as long as the sums."""
    return njit(**_OPTIONS, **_CALLED)(function)


def exact_jit(function: Callable[..., Any]) -> Any:
    """For the few operations per edge: reordered products of large factors might overflow.

    ``fastmath`` is said: numba takes an option that is not from the function that calls.
    """
    return njit(**(_OPTIONS | {"fastmath": False}), **_CALLED)(function)


def over_rows(rows: Callable[..., Any]) -> Any:
    """A kernel that shares out rows among threads.

    Args:
        rows: Computes the rows from ``first`` to ``last``, its first two arguments.

    Returns:
        A function of the bounds of all parts and of the other arguments.
    """
    compute = jit(rows)

    def kernel(bounds, *arguments):
        _share_out(compute, bounds, arguments)

    kernel.__name__ = rows.__name__
    return kept_jit(kernel, **_OPTIONS)


@intrinsic
def _share_out(typing_context, compute, bounds, arguments):
    """Call ``compute`` once for each part, in the threads of numba.

    This is ``for part in prange(...)``, for which numba compiles the same code four times. Of what
    can go wrong in a part only memory is left: bounds are not checked, divisions do not raise.
    """
    of_compute = compute.get_call_type(typing_context, (types.intp,) * 2 + arguments.types, {})

    def generate(context, builder, signature, values):
        compiled = compute.dispatcher.get_compile_result(of_compute)
        context.active_code_library.add_linking_library(compiled.library)
        size, address = context.get_value_type(types.intp), cgutils.voidptr_t
        to_size, to_address = size.as_pointer(), address.as_pointer()

        # What a thread calls: places in the arrays, number of places, steps, other arguments.
        kind = ir.FunctionType(ir.VoidType(), [to_address, to_size, to_size, address])
        part = ir.Function(builder.module, kind, f"{builder.function.name}.part")
        part.linkage = "internal"
        inside = ir.IRBuilder(part.append_basic_block())
        failed = cgutils.alloca_once_value(builder, cgutils.false_byte)
        both = cgutils.pack_struct(builder, [values[2], failed])
        shared = cgutils.alloca_once_value(builder, both)
        both = inside.load(inside.bitcast(part.args[3], shared.type))
        given = _borrowed(context, inside, arguments.types, inside.extract_value(both, 0))
        bound = inside.bitcast(inside.load(part.args[0]), to_size)
        with cgutils.for_range(inside, inside.load(part.args[1])) as loop:
            first = inside.gep(bound, [loop.index])
            last = inside.gep(first, [size(1)])
            rows = context.declare_function(builder.module, compiled.fndesc)
            status, _ = context.call_conv.call_function(
                *(inside, rows, types.none, of_compute.args),
                [inside.load(first), inside.load(last), *given],
            )
            with cgutils.if_unlikely(inside, status.is_error):
                inside.store(cgutils.true_byte, inside.extract_value(both, 1))
        inside.ret_void()

        array = make_array(bounds)(context, builder, values[1])
        count = builder.sub(cgutils.unpack_tuple(builder, array.shape)[0], size(1))
        places = cgutils.alloca_once_value(builder, builder.bitcast(array.data, address))
        counts, steps = (cgutils.alloca_once_value(builder, v) for v in (count, size(8)))
        get_threads = ir.FunctionType(size, [])
        threads = cgutils.get_or_insert_function(builder.module, get_threads, "get_num_threads")
        kind = ir.FunctionType(
            ir.VoidType(), [address, to_address, to_size, to_size, address, size, size, size]
        )
        run = cgutils.get_or_insert_function(builder.module, kind, "numba_parallel_for")
        function, data = builder.bitcast(part, address), builder.bitcast(shared, address)
        one_array = [size(0), size(1), builder.call(threads, [])]
        builder.call(run, [function, places, counts, steps, data, *one_array])
        with cgutils.if_unlikely(builder, cgutils.is_true(builder, builder.load(failed))):
            message = "there is not enough memory for the sums over edges"
            context.call_conv.return_user_exc(builder, MemoryError, (message,))
        return context.get_dummy_value()

    return types.void(compute, bounds, arguments), generate


def _borrowed(context, builder, kinds, values):
    """The same, arrays without their reference counts, which every view of a row would raise."""
    borrowed = cgutils.unpack_tuple(builder, values)
    for place, kind in enumerate(kinds):
        if isinstance(kind, types.Array):
            array = make_array(kind)(context, builder, borrowed[place])
            for name in ("meminfo", "parent"):
                setattr(array, name, cgutils.get_null_value(getattr(array, name).type))
            borrowed[place] = array._getvalue()
    return borrowed
