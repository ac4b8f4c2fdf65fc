# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-nm-to-gpu`: patch operators as kernels on tensor cores.

    %r = "nm.sparse_patch_matmul"(%t) {...}

becomes `gpu.launch_func @kernels::@heat_kernel0 ...` on views of the buffers, and the kernel a
`gpu.func` of the module's `gpu.module`: asynchronous copies of halo tiles into shared memory, on
sm_90 and later mostly by the copy engine, sparse matrix instructions on values gathered by offset
tables, coalesced rows or boxes of results.
`nm.patch_matmul` gives the same kernel with dense matrix instructions.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from twofour.codegen.gpu.kernel_abi import kernel_module, launch
from twofour.codegen.gpu.matrix_ops import MatrixOps, operands_of
from twofour.codegen.gpu.stream_kernel import StreamKernel, build_stream_kernel
from twofour.codegen.gpu.tensor_kernel import TensorKernel, build_tensor_kernel
from twofour.cost.explore import best_stream, reference_gpu
from twofour.dialects.nm.ops import PatchMatmulOp, SparsePatchMatmulOp
from twofour.dialects.stencil.levels import levels_of, reach_of_op
from twofour.dialects.stencil.linear_ops import addend_of, linear_terms
from twofour.dialects.stencil.sweep import (
    SweepInput,
    kernel_name,
    known_domain,
    replace_by_sweep,
)
from twofour.errors import TwofourError, Unsuitable
from twofour.layout.block import lay_out_block, takes_boxes
from twofour.layout.fragments import SPARSE_16, fragment_for
from twofour.layout.marches import MAX_MARCH, MAX_STAGES
from twofour.layout.patch import PatchOperator
from twofour.layout.stream import is_chunked, stream_layouts
from twofour.layout.weight_range import f16_scale
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_ops
from twofour.options import Chip
from twofour.passes import ModulePass
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.sim import chips

Arithmetic = Literal["auto", "f16", "bf16", "tf32", "f32", "f64"]


def _operands(storage: str, arithmetic: str) -> tuple[str, int]:
    """The type of operands for a storage type, and the number of parts that a number is split in.

    Raises TwofourError where the arithmetic does not fit the storage.
    """
    allowed = {"f32": ("auto", "tf32", "f32")}.get(storage, ("auto", storage))
    if arithmetic not in allowed:
        choices = " or ".join(allowed[1:])
        raise TwofourError(f"expected dtype {choices} for fields of {storage}, got {arithmetic}")
    return operands_of(storage if arithmetic == "auto" else arithmetic)


@dataclass(frozen=True)
class _Applied:
    """An operator, its constant and its reach (lo, hi), and how often a kernel applies it."""

    operator: PatchOperator
    constant: float
    reach: tuple[tuple[int, ...], tuple[int, ...]]
    levels: int = 1

    @classmethod
    def of(cls, op, levels: int = 1) -> "_Applied":
        _, _, constant = linear_terms(op)
        return cls(op.operator(), constant, reach_of_op(op), levels)


@dataclass(frozen=True)
class ConvertNmToGpuPass(ModulePass):
    """Lower every patch operator to a tensor-core kernel and a launch of it.

    `chip` is the architecture to compile for. `dtype` is the arithmetic: f16, bf16 and f64 as
    stored; fields of f32 are multiplied as tf32, or (f32, what auto is) as sums of two tf32 numbers
    each, which keeps the accuracy of f32. f64 has no sparse instruction: its operators are
    multiplied densely. Operators in chunks of eight columns (`nm-permute-2to4{strategy=chunks}`)
    stream, and what they read ahead waits in registers or, with `ring`, in shared memory; all
    others gather from halo tiles in shared memory. `block` holds the outputs of a thread block per
    axis, `stages` the halo tiles, the fragments of B in registers or the steps in a ring, and
    `march` how often a block advances along the slowest axis; all are chosen unless given. With
    `levels` functions of fused steps apply the single step once for each of them, in the kernel,
    rather than once with the weights of all.
    """

    name: ClassVar[str] = "convert-nm-to-gpu"
    chip: Chip = "sm_80"
    dtype: Arithmetic = "auto"
    block: tuple[int, ...] | None = None
    stages: int | None = None
    march: int | None = None
    ring: bool | None = None
    levels: bool = False

    def __post_init__(self):
        if self.stages is not None and not 1 <= self.stages <= MAX_STAGES:
            raise TwofourError(f"expected 1 to {MAX_STAGES} stages, got {self.stages}")
        if self.march is not None and not 1 <= self.march <= MAX_MARCH:
            raise TwofourError(f"expected a march of 1 to {MAX_MARCH}, got {self.march}")

    def run(self, module: ir.Operation) -> None:
        names = (PatchMatmulOp.OPERATION_NAME, SparsePatchMatmulOp.OPERATION_NAME)
        ops = nested_ops(module, *names)
        # Single steps are needed for levels after they were lowered themselves.
        steps = [levels_of(op, ops) if self.levels else (op, 1) for op in ops]
        applied = [_Applied.of(*step) for step in steps]
        for op, what in zip(ops, applied, strict=True):
            try:
                self._convert(op, what)
            except TwofourError as error:
                if error.location is not None:
                    raise
                raise error_at(op, error.message, type(error)) from None

    def _convert(self, op, applied: _Applied) -> None:
        domain = known_domain(op)
        if addend_of(op) is not None:
            raise error_at(op, "expected an operator of one field, got one with an addend")
        offsets, _, _ = linear_terms(op)
        storage = str(op.results[0].type.element_type)
        if storage not in ELEMENT_TYPES:
            raise error_at(op, f"expected fields of {', '.join(ELEMENT_TYPES)}, got {storage}")
        operands, parts = _operands(storage, self.dtype)
        sparse = op.operation.name == SparsePatchMatmulOp.OPERATION_NAME
        fragment = fragment_for(operands, sparse)
        operator, constant, reach = applied.operator, applied.constant, applied.reach
        if not fragment.sparse:
            operator = _without_zero_columns(operator)
        name, ops = kernel_name(op), MatrixOps(fragment, operands, parts)
        scale = f16_scale(operator.matrix) if operands == "f16" else 0
        choices = {"stages": self.stages, "march": self.march}
        with ir.InsertionPoint(kernel_module(op.operation, self.chip)), op.location:
            if fragment is SPARSE_16 and is_chunked(operator):
                choices |= {"block": self.block, "levels": applied.levels, "ring": self.ring}
                layouts = stream_layouts(operator, reach, **choices)
                layout = best_stream(layouts, operands, reference_gpu(self.chip))
                kernel = StreamKernel(name, layout, storage, constant, scale, ops=ops)
                build_stream_kernel(kernel)
            elif applied.levels > 1 or self.ring:
                what = "levels" if applied.levels > 1 else "a ring"
                raise Unsuitable(
                    f"expected columns in chunks of eight for {what}, got another order"
                )
            else:
                size = ELEMENT_TYPES[storage].itemsize
                bulk = chips.find(self.chip).copy_engine and takes_boxes(fragment, size)
                choices |= {"tile": self.block, "bulk": bulk}
                layout = lay_out_block(operator, fragment, size, reach, **choices)
                kernel = TensorKernel(name, layout, ops, storage, reach[0], constant, scale)
                build_tensor_kernel(kernel)
        inputs = [SweepInput(op.operands[0], offsets, tuple(range(domain.rank)))]
        replace_by_sweep(op, kernel.name, inputs, call=launch(kernel.launch))


def _without_zero_columns(operator: PatchOperator) -> PatchOperator:
    used = operator.matrix.any(axis=0)
    return PatchOperator(
        operator.matrix[:, used],
        operator.output_offsets,
        operator.input_offsets[used],
        operator.tile,
    )
