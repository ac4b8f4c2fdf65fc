# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-outer-to-vector`: scheduled outer products on a processor with vectors alone.

    %r = "stencil.outer_sum"(%t) {sweeps = [...], lines = [...], ...} : ...

becomes a call of a function that is appended to the module. A tile of n x n outputs is n vectors of
n elements; an outer product adds, to each row whose coefficient is not zero, that coefficient times
the input vector:

    func.func @heat_kernel0(%in: memref<?x?xf64, ...>, %out: ..., %begin: index, %end: index) {
      scf.for %i = %begin to %stop step %c8 {
        scf.for %j = ... {
          %a = vector.load %in[%i, %j1] ...
          %b = arith.mulf %w0, %a : vector<8xf64>
          ...
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from twofour.codegen.cpu.direct_kernel import DirectKernel, build_direct_kernel
from twofour.codegen.cpu.elements import ElementCode
from twofour.codegen.cpu.outer_kernel import check_schedule, register_tile, scheduled_rows
from twofour.codegen.cpu.vector_unit import Machine, vector_unit
from twofour.dialects.stencil.chains import chain_ending_at
from twofour.dialects.stencil.outer_ops import OuterSumOp
from twofour.dialects.stencil.sweep import kernel_name, module_end, replace_by_sweep
from twofour.errors import TwofourError
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_ops
from twofour.passes import ModulePass


def _convert(op: OuterSumOp, machine: Machine) -> None:
    plan, rank, unit = op.plan(), op.results[0].type.rank, vector_unit(machine)
    element = op.results[0].type.element_type
    n = ElementCode(element, unit.bytes).lanes
    try:
        check_schedule(plan, rank)
        tile = register_tile(plan, n, unit)
    except TwofourError as error:
        raise error_at(op, error.message) from None
    chain = chain_ending_at(op)
    kernel = DirectKernel(kernel_name(op), chain.terms, chain.constant, chain.has_addend)
    with module_end(op), op.location:
        rows = partial(scheduled_rows, plan, rank, n)
        build_direct_kernel(kernel, element, unit, tile, rows_of=rows)
    replace_by_sweep(op, kernel.name, chain.inputs)


@dataclass(frozen=True)
class ConvertStencilOuterToVectorPass(ModulePass):
    """Lower scheduled outer products to kernels of vector operations, and calls of them.

    Coefficients that are zero are left out. Only schedules of one sweep with lines along the row
    axis are taken (option parallel), one plane of tiles at a time. `machine` names the vector
    registers to use: avx512, sapphirerapids, znver4, avx2, sse, neon, or those of the host.
    """

    name: ClassVar[str] = "convert-stencil-outer-to-vector"
    machine: Machine = "avx512"

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, OuterSumOp.OPERATION_NAME):
            _convert(op, self.machine)
