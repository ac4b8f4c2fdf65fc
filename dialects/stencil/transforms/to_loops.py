# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-to-loops`: applies of any kind as plain loops (the general path).

    %r = "stencil.apply"() ({ ... }) : () -> !stencil.temp<...>

becomes a call of a function that is appended to the module: loops over the domain whose body is the
region, with accesses as `memref.load` and `stencil.return` as `memref.store`. Branches that need
nothing but instructions are selects.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.codegen.cpu.kernel_abi import EntryConstants
from twofour.dialects.stencil.branches import select_branches
from twofour.dialects.stencil.ops import ApplyOp
from twofour.dialects.stencil.region_kernel import replace_by_kernel
from twofour.dialects.stencil.regions import AppliedRegion
from twofour.mlir import func, ir, memref, scf
from twofour.mlir_support import nested_ops
from twofour.passes import ModulePass


def _emit_loops(
    region: AppliedRegion,
    function: func.FuncOp,
    arguments: list[ir.Value],
    outermost: tuple[ir.Value, ir.Value],
) -> None:
    """Loops over the range of the outermost axis and all of the others."""
    output = region.outputs(arguments)[0]
    constants = EntryConstants(function.entry_block)

    def loop(point: list[ir.Value]) -> None:
        axis = len(point)
        if axis == region.domain.rank:
            region.emit(arguments, [point], constants)
            return
        begin, end = outermost
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
            select_branches(apply)
            replace_by_kernel(apply, ("", _emit_loops))
