# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-to-gpu`: weighted sums and applies as plain GPU kernels.

    %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = ...} : ...

becomes `gpu.launch_func @kernels::@heat_kernel0 ...` on views of the buffers, and the kernel a
`gpu.func` of the module's `gpu.module`. A thread of a weighted sum computes several points, one of
`stencil.apply` a single one: the region becomes the body of the kernel.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.stencil.chains import chain_ending_at
from twofour.dialects.stencil.ops import ApplyOp, WeightedSumOp
from twofour.dialects.stencil.regions import AppliedRegion, is_constant
from twofour.dialects.stencil.sweep import kernel_name, known_domain, replace_by_sweep
from twofour.dialects.stencil.traversal import captured_values, nested_ops
from twofour.mlir import gpu, ir
from twofour.mlir_support import defining_op
from twofour.options import Chip
from twofour.passes import ModulePass
from twofour.runtime.dtypes import field_element_type
from twofour.targets.cpu.direct_kernel import DirectKernel
from twofour.targets.gpu.code import IndexCode
from twofour.targets.gpu.kernel_abi import gpu_function, kernel_module, launch
from twofour.targets.gpu.point_grid import PointGrid
from twofour.targets.gpu.point_ops import call_intrinsics, check_point_ops
from twofour.targets.gpu.simt_kernel import build_simt_kernel, point_grid


@dataclass(frozen=True)
class ConvertStencilToGpuPass(ModulePass):
    """Lower every weighted sum and every apply to a plain GPU kernel and a launch of it.

    `chip` is the architecture to compile for. Applies may hold what the GPU targets have code for:
    control flow, integers, loads from memrefs, and the functions that PTX computes as accurately as
    the CPU does.
    """

    name: ClassVar[str] = "convert-stencil-to-gpu"
    chip: Chip = "sm_80"

    def run(self, module: ir.Operation) -> None:
        while sums := nested_ops(module, WeightedSumOp.OPERATION_NAME):
            self._convert_sum(sums[-1], module)
        for apply in nested_ops(module, ApplyOp.OPERATION_NAME):
            self._convert_apply(apply, module)

    def _kernels(self, module: ir.Operation) -> ir.InsertionPoint:
        return ir.InsertionPoint(kernel_module(module, self.chip))

    def _convert_sum(self, op, module: ir.Operation) -> None:
        chain = chain_ending_at(op)
        kernel = DirectKernel(kernel_name(op), chain.terms, chain.constant, chain.has_addend)
        element = str(op.results[0].type.element_type)
        itemsize = _itemsize(element)
        grid = point_grid(kernel, itemsize)
        with self._kernels(module), op.location:
            build_simt_kernel(kernel, element, grid, itemsize)
        replace_by_sweep(op, kernel.name, chain.inputs, call=launch(grid.launch(itemsize)))
        chain.erase_rest()

    def _convert_apply(self, apply: ApplyOp, module: ir.Operation) -> None:
        _sink_numbers(apply)
        region = AppliedRegion(apply, known_domain(apply))
        check_point_ops(apply, region.scalars)
        # Memrefs are input views, which come before the numbers.
        region.scalars.sort(key=lambda value: not isinstance(value.type, ir.MemRefType))
        inputs, scalars = region.inputs, region.scalars
        views = len(inputs) + sum(isinstance(v.type, ir.MemRefType) for v in scalars)
        name, grid = kernel_name(apply), PointGrid(region.domain.rank)
        fields = [*(item.temp for item in inputs), *apply.results]
        shape = grid.launch(min(_itemsize(field.type.element_type) for field in fields))
        with self._kernels(module), apply.location:
            function = gpu_function(name, region.argument_types(), views, shape)
            entry = function.regions[0].blocks[0]
            with ir.InsertionPoint(entry):
                _emit_point(region, grid, entry)
                gpu.ReturnOp([])
            call_intrinsics(function)
        replace_by_sweep(apply, name, inputs, scalars, call=launch(shape))


def _sink_numbers(apply: ApplyOp) -> None:
    """Compute in the region what its function computes from numbers.

    What is left of the function are launches, which the runtime makes without running code of it.
    """
    while (outside := _computed_outside(apply)) is not None:
        with ir.InsertionPoint.at_block_begin(apply.block):
            copies = list(outside.clone().results)
        results = list(outside.results)
        for op in nested_ops(apply):
            for position, operand in enumerate(op.operands):
                if operand in results:
                    op.operation.operands[position] = copies[results.index(operand)]
        if not any(list(result.uses) for result in results):
            outside.erase()


def _computed_outside(apply: ApplyOp) -> ir.Operation | None:
    """An op before the apply that computes a number which its region uses, constants aside."""
    for value in captured_values(apply):
        owner = defining_op(value)
        if owner is None or is_constant(value):
            continue
        if owner.name.startswith(("arith.", "math.")):
            return owner
    return None


def _itemsize(element: object) -> int:
    return field_element_type(str(element)).itemsize


def _emit_point(region: AppliedRegion, grid: PointGrid, entry: ir.Block) -> None:
    arguments, code = list(entry.arguments), IndexCode(entry)
    grid.emit(
        code,
        region.outputs(arguments)[0],
        lambda point, _: region.move(arguments, [code.value(at) for at in point], code.constants),
    )
