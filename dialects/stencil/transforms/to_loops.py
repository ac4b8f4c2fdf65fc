# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-to-loops`: applies of any kind as plain loops (the general path).

    %r = "stencil.apply"() ({ ... }) : () -> !stencil.temp<...>

becomes a call of a function that is appended to the module: loops over the domain whose body is the
region, with accesses as `memref.load` and `stencil.return` as `memref.store`. Numbers that the
region uses are passed in memory, as inputs of rank 0: kernels take views only. What the function
computes from numbers is computed in the kernel.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.stencil.ops import ApplyOp
from twofour.dialects.stencil.regions import AppliedRegion, sink_numbers
from twofour.dialects.stencil.sweep import (
    enclosing_function,
    kernel_name,
    known_domain,
    module_end,
    replace_by_sweep,
)
from twofour.dialects.stencil.traversal import nested_ops
from twofour.mlir import func, ir, memref, scf
from twofour.passes import ModulePass
from twofour.targets.cpu.kernel_abi import EntryConstants, kernel_function


def _convert(apply: ApplyOp) -> None:
    sink_numbers(apply)
    region = AppliedRegion(apply, known_domain(apply))
    name = kernel_name(apply)
    first, end = len(region.inputs), len(region.inputs) + len(region.scalars)
    with module_end(apply), apply.location:
        types = region.argument_types()
        types[first:end] = map(_in_memory, types[first:end])
        function = kernel_function(name, types, end)
        with ir.InsertionPoint(function.entry_block):
            *arguments, begin, last = function.entry_block.arguments
            for number, scalar in enumerate(region.scalars, first):
                if not isinstance(scalar.type, ir.MemRefType):
                    arguments[number] = memref.load(arguments[number], [])
            _emit_loops(region, function.entry_block, arguments, begin, last)
            func.ReturnOp([])
    replace_by_sweep(apply, name, region.inputs, [_stored(s, apply) for s in region.scalars])


def _in_memory(kind: ir.Type) -> ir.MemRefType:
    return kind if isinstance(kind, ir.MemRefType) else ir.MemRefType.get([], kind)


def _stored(scalar: ir.Value, apply: ApplyOp) -> ir.Value:
    """A number in memory of the function, written before the apply; a table is in memory."""
    if isinstance(scalar.type, ir.MemRefType):
        return scalar
    with ir.InsertionPoint.at_block_begin(enclosing_function(apply).entry_block), apply.location:
        place = memref.AllocaOp(_in_memory(scalar.type), [], []).result
    with ir.InsertionPoint(apply), apply.location:
        memref.store(scalar, place, [])
    return place


def _emit_loops(
    region: AppliedRegion,
    entry: ir.Block,
    arguments: list[ir.Value],
    first: ir.Value,
    last: ir.Value,
) -> None:
    """Loops over the range of the outermost axis and all of the others."""
    output = region.outputs(arguments)[0]
    constants = EntryConstants(entry)

    def loop(point: list[ir.Value]) -> None:
        axis = len(point)
        if axis == region.domain.rank:
            region.move(arguments, point, constants)
            return
        begin, end = first, last
        if axis > 0:
            begin = constants.index(0)
            end = memref.dim(output, constants.index(axis))
        for index in scf.for_(begin, end, constants.index(1)):
            loop([*point, index])
            scf.yield_([])

    loop([])


@dataclass(frozen=True)
class ConvertStencilToLoopsPass(ModulePass):
    """Lower applies of any kind to plain loops over their domain (the general path)."""

    name: ClassVar[str] = "convert-stencil-to-loops"

    def run(self, module: ir.Operation) -> None:
        for apply in nested_ops(module, ApplyOp.OPERATION_NAME):
            _convert(apply)
