# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-nm-to-vector`: compressed patch operators as kernels (the sparse CPU route).

Every `nm.sparse_patch_matmul` becomes a call of a function that is appended to the module. The
function reads the non-zeros of A, decoded from values and metadata, and the offsets from constant
tables; the lanes of its vectors are neighbouring tiles, as the columns of B are for `mma.sp`.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.codegen.cpu.elements import ElementCode
from twofour.codegen.cpu.patch_kernel import PatchKernel, build_patch_kernel
from twofour.dialects.nm.ops import SparsePatchMatmulOp
from twofour.dialects.stencil.linear_ops import addend_of, linear_terms
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


def _is_partial_sum(op: SparsePatchMatmulOp) -> bool:
    """Whether the result of an op is only the addend of another one."""
    uses = list(op.results[0].uses)
    return len(uses) == 1 and (
        uses[0].owner.operation.name == SparsePatchMatmulOp.OPERATION_NAME
        and uses[0].operand_number == 1
    )


def _convert(op: SparsePatchMatmulOp) -> None:
    domain = known_domain(op)
    offsets, _, constant = linear_terms(op)
    axes = tuple(range(domain.rank))
    inputs = [SweepInput(op.operands[0], offsets, axes)]
    addend = addend_of(op)
    if addend is not None:
        inputs.append(SweepInput(addend, [(0,) * domain.rank], axes))
    element = op.results[0].type.element_type
    with module_end(op), op.location:
        if _is_partial_sum(op):
            # A sum over several temps is rounded to the storage type once, at its end.
            element = ElementCode(element).accumulation
        kernel = PatchKernel(
            kernel_name(op),
            op.operator(),
            reach_of(offsets)[0],
            input=inputs[0].element,
            output=element,
            addend=None if addend is None else inputs[1].element,
            constant=constant,
        )
        build_patch_kernel(kernel)
    replace_by_sweep(op, kernel.name, inputs, element=element)


@dataclass(frozen=True)
class ConvertNmToVectorPass(ModulePass):
    """Lower every compressed patch operator to a kernel and a call of it (the sparse CPU route)."""

    name: ClassVar[str] = "convert-nm-to-vector"

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, SparsePatchMatmulOp.OPERATION_NAME):
            _convert(op)
