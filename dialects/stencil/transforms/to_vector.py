# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-to-vector`: weighted sums as vectorised kernels (the direct CPU route).

    %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = ...} : ...

becomes a call of a function that is appended to the module,

    func.func @heat_kernel0(%in: memref<?xf64, strided<[1], offset: ?>>, %out: ..., %begin, %end) {
      scf.for %i = %begin to %stop step %c8 {
        %a = vector.load %in[%i] ...
        %b = arith.mulf %w0, %a : vector<8xf64>
        ...
        %s = math.fma %w1, %c, %b : vector<8xf64>
        vector.store %s, %out[%i] ...

Chains of weighted sums over several temps become one kernel with several inputs.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.stencil.ops import WeightedSumOp, addend_of, linear_terms
from twofour.dialects.stencil.sweep import (
    SweepInput,
    kernel_name,
    known_domain,
    module_end,
    replace_by_sweep,
)
from twofour.dialects.stencil.traversal import nested_ops
from twofour.mlir import ir
from twofour.mlir_support import defining_op
from twofour.passes import ModulePass
from twofour.targets.cpu.direct_kernel import DirectKernel, Terms, build_direct_kernel


def _chain(op) -> list:
    """The weighted sums that one kernel computes, first link first; `op` is the last."""
    links = [op]
    while (addend := addend_of(links[0])) is not None:
        owner = defining_op(addend)
        if owner is None or owner.name != WeightedSumOp.OPERATION_NAME:
            break
        if len(list(addend.uses)) > 1:
            break
        links.insert(0, owner.opview)
    return links


def _convert(op) -> None:
    links = _chain(op)
    domain = known_domain(op)
    inputs = [linear_terms(link) for link in links]
    # A constant can stand anywhere in a chain; the kernel starts from their sum.
    constant = sum(constant for _, _, constant in inputs)
    addend = addend_of(links[0])
    kernel = DirectKernel(
        kernel_name(op),
        [Terms(offsets, weights) for offsets, weights, _ in inputs],
        constant,
        has_addend=addend is not None,
    )
    axes = tuple(range(domain.rank))
    sweep_inputs = [
        SweepInput(link.operands[0], offsets, axes)
        for link, (offsets, _, _) in zip(links, inputs, strict=True)
    ]
    if addend is not None:
        sweep_inputs.append(SweepInput(addend, [(0,) * domain.rank], axes))
    with module_end(op), op.location:
        build_direct_kernel(kernel, op.results[0].type.element_type)
    replace_by_sweep(op, kernel.name, sweep_inputs)
    for link in reversed(links[:-1]):
        link.operation.erase()


@dataclass(frozen=True)
class ConvertStencilToVectorPass(ModulePass):
    """Lower every weighted sum to a vectorised kernel and a call of it (the direct CPU route)."""

    name: ClassVar[str] = "convert-stencil-to-vector"

    def run(self, module: ir.Operation) -> None:
        while sums := nested_ops(module, WeightedSumOp.OPERATION_NAME):
            _convert(sums[-1])
