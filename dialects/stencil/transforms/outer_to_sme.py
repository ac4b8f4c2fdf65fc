# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-outer-to-sme`: scheduled outer products as kernels for Arm SME.

    %r = "stencil.outer_sum"(%t) {sweeps = [{rows = [{start = [-1, 0], stop = [1, 1], ...}]}], ...}

becomes a call of a function that is appended to the module,

    func.func @heat_kernel0(%in: memref<?x?xf64, ...>, %out: ..., %begin: index, %end: index) {
      ...
      scf.for %row = %begin to %stop step %n {
        scf.for %column = ... {
          %tiles:8 = scf.for %p = %cm1 to %n_plus_1 iter_args(%a = %zero, ...) {
            %w = vector.load %table[%window] : ..., vector<[2]xf64>
            %v = vector.load %in[...] : ..., vector<[2]xf64>
            %b = vector.outerproduct %w, %v, %a {kind = #vector.kind<add>}
              : vector<[2]xf64>, vector<[2]xf64>
            ...
          scf.for %q = %c0 to %n {
            arm_sme.store_tile_slice %tiles#0, %q, %all, %out_row[%c0] ...

Vectors are scalable, so that one binary serves every vector length. Points beside the last whole
block are sums of vectors.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.codegen.sme.kernel import OuterKernel, build_outer_kernel
from twofour.dialects.stencil.linear_ops import addend_of, linear_terms
from twofour.dialects.stencil.outer_ops import OuterSumOp
from twofour.dialects.stencil.sweep import (
    SweepInput,
    kernel_name,
    known_domain,
    module_end,
    replace_by_sweep,
)
from twofour.mlir import ir
from twofour.mlir_support import nested_ops
from twofour.passes import ModulePass
from twofour.reach import reach_of


def _convert(op: OuterSumOp) -> None:
    rank = known_domain(op).rank
    axes = tuple(range(rank))
    offsets, _, constant = linear_terms(op)
    inputs = [SweepInput(op.operands[0], offsets, axes)]
    if (addend := addend_of(op)) is not None:
        inputs.append(SweepInput(addend, [(0,) * rank], axes))
    below, _ = reach_of(offsets)
    kernel = OuterKernel(kernel_name(op), op.plan(), below, constant, addend is not None)
    with module_end(op), op.location:
        build_outer_kernel(kernel, op.results[0].type.element_type)
    replace_by_sweep(op, kernel.name, inputs)


@dataclass(frozen=True)
class ConvertStencilOuterToSmePass(ModulePass):
    """Lower every outer sum to a kernel on scalable vectors and matrix tiles, and a call of it."""

    name: ClassVar[str] = "convert-stencil-outer-to-sme"

    def run(self, module: ir.Operation) -> None:
        while sums := nested_ops(module, OuterSumOp.OPERATION_NAME):
            _convert(sums[-1])
