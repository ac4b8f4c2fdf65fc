# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-copy-to-gpu`: copies between buffers as GPU kernels.

    memref.copy %a, %b : memref<8x8xf32> to memref<8x8xf32, strided<[10, 1], offset: 11>>

becomes `gpu.launch_func @kernels::@copy_f32_2d ...` on views of both. The module has one such
kernel for each element type and rank.
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from twofour.box import Box
from twofour.codegen.cpu.kernel_abi import view_type
from twofour.codegen.gpu.code import IndexCode
from twofour.codegen.gpu.kernel_abi import MODULE, BlockShape, gpu_function, kernel_module, launch
from twofour.codegen.gpu.point_grid import PointGrid
from twofour.dialects.stencil.sweep import has_rows
from twofour.errors import TwofourError
from twofour.mlir import gpu, ir, memref
from twofour.mlir_support import enclosing, error_at, nested_ops
from twofour.options import Chip
from twofour.passes import ModulePass
from twofour.runtime.dtypes import field_element_type

_NAME = re.compile(r"copy_[a-z0-9]+_[0-9]+d")


def is_copy_kernel(name: str) -> bool:
    """Whether a kernel of this name only copies; others have names that end otherwise."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class ConvertCopyToGpuPass(ModulePass):
    """Lower every copy of memrefs to a launch of a kernel, which copies one point a thread.

    `chip` is the architecture to compile for. Memrefs have static extents.
    """

    name: ClassVar[str] = "convert-copy-to-gpu"
    chip: Chip = "sm_80"

    def run(self, module: ir.Operation) -> None:
        # By the module that they are in.
        made: dict[tuple[ir.Operation, str], BlockShape] = {}
        for op in nested_ops(module, "memref.copy"):
            _check(op)
            kind = op.operands[0].type
            name = f"copy_{kind.element_type}_{kind.rank}d"
            key = enclosing(op.operation, MODULE), name
            with op.location:
                if key not in made:
                    with ir.InsertionPoint(kernel_module(op.operation, self.chip)):
                        made[key] = _build(name, kind.rank, kind.element_type)
                _launch(op, name, made[key])
            op.operation.erase()


def _check(op) -> None:
    """Raise TwofourError where no kernel could copy."""
    source, target = (operand.type for operand in op.operands)
    if not all(has_rows(kind) and kind.has_static_shape for kind in (source, target)):
        got = f"{source} to {target}"
        raise error_at(op, f"expected a copy of static rows to static rows, got {got}")
    try:
        field_element_type(str(source.element_type))
    except TwofourError as error:
        raise error_at(op, error.message) from None


def _build(name: str, rank: int, element: ir.Type) -> BlockShape:
    """Build a copy kernel at the insertion point; how it is launched."""
    grid = PointGrid(rank)
    shape = grid.launch(field_element_type(str(element)).itemsize)
    function = gpu_function(name, [view_type(rank, element)] * 2, 1, shape)
    entry = function.regions[0].blocks[0]
    source, target = entry.arguments
    code = IndexCode(entry)

    def copy_point(point, _) -> None:
        at = [code.value(index) for index in point]
        memref.store(memref.load(source, at), target, at)

    with ir.InsertionPoint(entry):
        grid.emit(code, target, copy_point)
        gpu.ReturnOp([])
    return shape


def _launch(op, name: str, shape: BlockShape) -> None:
    kind = op.operands[0].type
    with ir.InsertionPoint(op):
        view = view_type(kind.rank, kind.element_type)
        views = [memref.cast(view, operand) for operand in op.operands]
        launch(shape)(name, views, Box((0,) * kind.rank, tuple(kind.shape)))
