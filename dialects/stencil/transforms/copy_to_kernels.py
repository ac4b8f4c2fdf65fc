# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-copy-to-kernels`: copies between buffers as sweep kernels of the CPU.

    memref.copy %a, %b : memref<8x8xf32> to memref<8x8xf32, strided<[10, 1], offset: 11>>

in a function `f` becomes `call @f_kernel0` on views of both, and rows 0 to 8. The runtime shares
such calls out to threads, as it does all sweeps. A function has one such kernel for each element
type and rank. Copies to or from memory whose rows are not neighbouring elements become loops where
they are.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.codegen.cpu.kernel_abi import kernel_function, view_type
from twofour.dialects.stencil.sweep import enclosing_function, has_rows, kernel_name, module_end
from twofour.mlir import arith, func, ir, memref, scf
from twofour.mlir_support import error_at, nested_ops
from twofour.passes import ModulePass


@dataclass(frozen=True)
class ConvertCopyToKernelsPass(ModulePass):
    """Lower every copy of memrefs to a call of a kernel, which the CPU may share out to threads."""

    name: ClassVar[str] = "convert-copy-to-kernels"

    def run(self, module: ir.Operation) -> None:
        made: dict[tuple[ir.Operation, ir.Type], str] = {}
        for op in nested_ops(module, "memref.copy"):
            with ir.InsertionPoint(op), op.location:
                source, target = op.operands
                if not all(isinstance(value.type, ir.MemRefType) for value in op.operands):
                    got = f"{source.type} to {target.type}"
                    raise error_at(op, f"expected memrefs of known rank, got {got}")
                if not (has_rows(source.type) and has_rows(target.type)):
                    _copy(source, target, _ranges(source))
                else:
                    view = view_type(source.type.rank, source.type.element_type)
                    key = enclosing_function(op).operation, view
                    if key not in made:
                        made[key] = kernel_name(op)
                        with module_end(op):
                            _build(made[key], view)
                    _call(made[key], view, source, target)
            op.operation.erase()


def _ranges(value: ir.Value) -> list[tuple[ir.Value, ir.Value]]:
    """Where each axis of a memref begins and ends."""

    def number(value: int) -> ir.Value:
        return arith.ConstantOp(ir.IndexType.get(), value).result

    def end(axis: int) -> ir.Value:
        if value.type.is_dynamic_dim(axis):
            return memref.dim(value, number(axis))
        return number(value.type.shape[axis])

    return [(number(0), end(axis)) for axis in range(value.type.rank)]


def _copy(source: ir.Value, target: ir.Value, ranges: list[tuple[ir.Value, ir.Value]]) -> None:
    """Loops over these ranges, one an axis."""
    one = arith.ConstantOp(ir.IndexType.get(), 1).result

    def level(point: list[ir.Value]) -> None:
        if len(point) == len(ranges):
            memref.store(memref.load(source, point), target, point)
            return
        for i in scf.for_(*ranges[len(point)], one):
            level([*point, i])
            scf.yield_([])

    level([])


def _build(name: str, view: ir.MemRefType) -> None:
    """Build a copy kernel at the insertion point."""
    function = kernel_function(name, [view] * 2, 1)
    source, target, begin, end = function.entry_block.arguments
    with ir.InsertionPoint(function.entry_block):
        _, *others = _ranges(target)
        _copy(source, target, [(begin, end), *others])
        func.ReturnOp([])


def _call(name: str, view: ir.MemRefType, source: ir.Value, target: ir.Value) -> None:
    views = [memref.cast(view, value) for value in (source, target)]
    func.CallOp([], ir.FlatSymbolRefAttr.get(name), [*views, *_ranges(source)[0]])
