# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Applies as kernels of the CPU: what stands around the code of their regions.

Numbers that the region uses are passed in memory, as inputs of rank 0: kernels take views only.
What the function computes from numbers is computed in the kernel.
"""

from collections.abc import Callable

from twofour.codegen.cpu.kernel_abi import (
    TABLES_ATTRIBUTE,
    USES_INDEX_ATTRIBUTE,
    kernel_function,
)
from twofour.dialects.stencil.ops import ApplyOp, IndexOp
from twofour.dialects.stencil.regions import AppliedRegion, sink_numbers
from twofour.dialects.stencil.sweep import (
    enclosing_function,
    kernel_name,
    known_domain,
    module_end,
    replace_by_sweep,
)
from twofour.mlir import func, ir, memref
from twofour.mlir_support import nested_ops

# Emits the loops of a kernel: the region, its function, the views and numbers of the region, and
# the range of the outermost axis.
Loops = Callable[[AppliedRegion, func.FuncOp, list[ir.Value], tuple[ir.Value, ir.Value]], None]


def replace_by_kernel(apply: ApplyOp, *loops: tuple[str, Loops]) -> None:
    """Append kernels of an apply to the module, call the first one instead, and erase the apply.

    Their names end as given.
    """
    sink_numbers(apply)
    region = AppliedRegion(apply, known_domain(apply))
    name = kernel_name(apply)
    for suffix, emit_loops in loops:
        _append_kernel(region, name + suffix, emit_loops)
    replace_by_sweep(apply, name, region.inputs, [_stored(s, apply) for s in region.scalars])


def _append_kernel(region: AppliedRegion, name: str, emit_loops: Loops) -> None:
    first, end = len(region.inputs), len(region.inputs) + len(region.scalars)
    with module_end(region.apply), region.apply.location:
        types = region.argument_types()
        types[first:end] = map(_in_memory, types[first:end])
        function = kernel_function(name, types, end)
        if nested_ops(region.apply, IndexOp.OPERATION_NAME):
            function.attributes[USES_INDEX_ATTRIBUTE] = ir.UnitAttr.get()
        tables = [n for n, value in enumerate(region.scalars, first) if _is_table(value)]
        if tables:
            function.attributes[TABLES_ATTRIBUTE] = ir.DenseI64ArrayAttr.get(tables)
        with ir.InsertionPoint(function.entry_block):
            *arguments, begin, last = function.entry_block.arguments
            for number, scalar in enumerate(region.scalars, first):
                if not _is_table(scalar):
                    arguments[number] = memref.load(arguments[number], [])
            emit_loops(region, function, arguments, (begin, last))
            func.ReturnOp([])


def _is_table(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def _in_memory(kind: ir.Type) -> ir.MemRefType:
    return kind if isinstance(kind, ir.MemRefType) else ir.MemRefType.get([], kind)


def _stored(scalar: ir.Value, apply: ApplyOp) -> ir.Value:
    """A number in memory of the function, written before the apply; a table is in memory."""
    if _is_table(scalar):
        return scalar
    with ir.InsertionPoint.at_block_begin(enclosing_function(apply).entry_block), apply.location:
        place = memref.AllocaOp(_in_memory(scalar.type), [], []).result
    with ir.InsertionPoint(apply), apply.location:
        memref.store(scalar, place, [])
    return place
