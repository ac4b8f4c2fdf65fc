# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-to-gpu`: weighted sums and applies as plain GPU kernels.

    %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = ...} : ...

becomes `gpu.launch_func @kernels::@heat_kernel0 ...` on views of the buffers, and the kernel a
`gpu.func` of the module's `gpu.module`. A thread of a weighted sum computes several points, a
vector of them where rows are `aligned`, or marches along the slowest axis (`rolling`). One of
`stencil.apply` computes the region once for each of its points, which lie in neighbouring rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from twofour.codegen.cpu.direct_kernel import DirectKernel
from twofour.codegen.gpu.code import Index, IndexCode
from twofour.codegen.gpu.kernel_abi import gpu_function, kernel_module, launch
from twofour.codegen.gpu.point_grid import PointGrid
from twofour.codegen.gpu.rolling_kernel import RollingKernel, build_rolling_kernel
from twofour.codegen.gpu.simt_kernel import build_simt_kernel, point_grid
from twofour.cost.explore import best_rolling, reference_gpu
from twofour.cost.simt import full_blocks
from twofour.dialects.stencil.chains import chain_ending_at
from twofour.dialects.stencil.levels import levels_of, reach_of_op
from twofour.dialects.stencil.linear_ops import WeightedSumOp, addend_of, linear_terms
from twofour.dialects.stencil.ops import ApplyOp
from twofour.dialects.stencil.point_ops import call_intrinsics, check_point_ops, expand_divisions
from twofour.dialects.stencil.regions import AppliedRegion, sink_numbers
from twofour.dialects.stencil.sweep import (
    SweepInput,
    kernel_name,
    known_domain,
    replace_by_sweep,
)
from twofour.errors import TwofourError, Unsuitable
from twofour.layout.marches import check_march
from twofour.layout.rolling import rolling_layouts
from twofour.mlir import gpu, ir
from twofour.mlir_support import error_at, nested_ops
from twofour.options import Chip
from twofour.passes import ModulePass
from twofour.runtime.dtypes import field_element_type
from twofour.sim import chips

# Rows of a thread of an apply share what they read in registers, as long as there are enough of
# these: with 92 words of inputs two rows of f64 were 1.1 times as fast as one on an H200, with 168
# words four rows were slower than one. More ops than so many only cost compile time.
HELD_BYTES = 512
MAX_OPS = 2048
# Threads of an apply have registers for so many blocks on a multiprocessor, as long as it has ops
# for a point that hardly need more: acoustic waves of order 8 were 1.1 (f64) and 1.17 (f32) times
# as fast with 64 registers as with the 102 and 110 that ptxas takes by itself.
RESIDENT, FEW_OPS = 4, 128
MARCH_OPTIONS = ("block", "stages", "march", "ring")


@dataclass(frozen=True)
class ConvertStencilToGpuPass(ModulePass):
    """Lower every weighted sum and every apply to a plain GPU kernel and a launch of it.

    `chip` is the architecture to compile for. With `aligned` the threads of sums of one field
    compute a vector of 16 bytes each. With `rolling` they march along the slowest axis with rolling
    sums, where registers hold those. Either way the fields' rows begin on sectors. With `levels`
    functions of fused steps apply the single step once for each of them, in the kernel, rather than
    once with the weights of all. `block` holds the outputs of a block that marches per axis, in one
    step, `march` how many steps it takes, `stages` the fragments of inputs in registers or, with
    `ring`, the steps whose inputs wait in shared memory; all are chosen unless given. Applies may
    hold what the GPU targets have code for: control flow, integers, loads from memrefs, and the
    functions that PTX computes as accurately as the CPU does.
    """

    name: ClassVar[str] = "convert-stencil-to-gpu"
    chip: Chip = "sm_80"
    aligned: bool = False
    rolling: bool = False
    levels: bool = False
    block: tuple[int, ...] | None = None
    stages: int | None = None
    march: int | None = None
    ring: bool | None = None

    def __post_init__(self):
        given = [name for name in MARCH_OPTIONS if getattr(self, name) is not None]
        if given and not self.rolling:
            raise TwofourError(f"expected rolling=true for {given[0]}, which marches have")
        if self.block is not None and min(self.block) < 1:
            raise TwofourError(f"expected a block of positive extents, got {list(self.block)}")
        check_march(self.stages, self.march)

    def run(self, module: ir.Operation) -> None:
        marching = self._marching(nested_ops(module, WeightedSumOp.OPERATION_NAME))
        while sums := nested_ops(module, WeightedSumOp.OPERATION_NAME):
            op = sums[-1]
            if op in marching:
                self._convert_march(op, marching[op])
            else:
                self._convert_sum(op)
        for apply in nested_ops(module, ApplyOp.OPERATION_NAME):
            self._convert_apply(apply)

    def _kernels(self, op) -> ir.InsertionPoint:
        """Where the kernel of an op goes."""
        return ir.InsertionPoint(kernel_module(op.operation, self.chip))

    def _marching(self, sums: list) -> dict:
        """By weighted sum of one field: its kernel, where it can march."""
        if not self.rolling:
            return {}
        addends = [addend for op in sums if (addend := addend_of(op)) is not None]
        kernels = {}
        for op in sums:
            if addend_of(op) is not None or op.results[0] in addends:
                continue
            try:
                kernels[op] = self._march(op, *(levels_of(op, sums) if self.levels else (op, 1)))
            except Unsuitable:
                # Threads with points of their own take it.
                continue
            except TwofourError as error:
                if error.location is not None:
                    raise
                raise error_at(op, error.message) from None
        return kernels

    def _march(self, op, single, levels: int) -> RollingKernel:
        """The kernel of an op that applies `single` once for each of some levels."""
        element = str(op.results[0].type.element_type)
        offsets, weights, constant = linear_terms(single)
        choices = {name: getattr(self, name) for name in MARCH_OPTIONS}
        layouts = rolling_layouts(
            offsets, weights, _itemsize(element), reach_of_op(single), levels=levels, **choices
        )
        layout = best_rolling(layouts, element, reference_gpu(self.chip))
        return RollingKernel(kernel_name(op), layout, element, constant)

    def _convert_march(self, op, kernel: RollingKernel) -> None:
        with self._kernels(op), op.location:
            build_rolling_kernel(kernel)
        offsets, _, _ = linear_terms(op)
        inputs = [SweepInput(op.operands[0], offsets, tuple(range(kernel.layout.rank)))]
        replace_by_sweep(op, kernel.name, inputs, call=launch(kernel.launch))

    def _convert_sum(self, op) -> None:
        chain = chain_ending_at(op)
        kernel = DirectKernel(kernel_name(op), chain.terms, chain.constant, chain.has_addend)
        element = str(op.results[0].type.element_type)
        itemsize = _itemsize(element)
        grid = point_grid(kernel, itemsize, self.aligned)
        room_for = full_blocks(kernel, grid, element, chips.find(self.chip))
        with self._kernels(op), op.location:
            build_simt_kernel(kernel, element, grid, itemsize, room_for)
        replace_by_sweep(op, kernel.name, chain.inputs, call=launch(grid.launch(itemsize)))
        chain.erase_rest()

    def _convert_apply(self, apply: ApplyOp) -> None:
        sink_numbers(apply)
        region = AppliedRegion(apply, known_domain(apply))
        check_point_ops(apply, region.scalars)
        # Memrefs are input views, which come before the numbers.
        region.scalars.sort(key=lambda value: not isinstance(value.type, ir.MemRefType))
        inputs, scalars = region.inputs, region.scalars
        views = len(inputs) + sum(isinstance(v.type, ir.MemRefType) for v in scalars)
        name, grid = kernel_name(apply), _grid_of(region)
        fields = [*(item.temp for item in inputs), *apply.results]
        shape = grid.launch(min(_itemsize(field.type.element_type) for field in fields))
        with self._kernels(apply), apply.location:
            function = gpu_function(
                name,
                region.argument_types(),
                views,
                shape,
                in_place=True,
                room_for=RESIDENT if len(nested_ops(apply)) <= FEW_OPS else None,
            )
            entry = function.regions[0].blocks[0]
            with ir.InsertionPoint(entry):
                _emit_points(region, grid, entry)
                gpu.ReturnOp([])
            call_intrinsics(function)
            expand_divisions(function)
        replace_by_sweep(apply, name, inputs, scalars, call=launch(shape))


def _grid_of(region: AppliedRegion) -> PointGrid:
    """The threads of an apply: as many points to each as fit the limits, a power of two."""
    rank, size = region.domain.rank, len(nested_ops(region.apply))
    grids = (PointGrid(rank, points) for points in (4, 2))
    fitting = (g for g in grids if size * g.points <= MAX_OPS and _held(region, g) <= HELD_BYTES)
    return next(fitting, PointGrid(rank))


def _held(region: AppliedRegion, grid: PointGrid) -> int:
    """Bytes of what a thread reads for its points, the same place once."""
    found = 0
    for item in region.inputs:
        shifts = [[shift[axis] for axis in item.axes] for shift in grid.shifts]
        pairs = product(item.offsets, shifts)
        places = {tuple(map(sum, zip(*pair, strict=True))) for pair in pairs}
        found += len(places) * _itemsize(item.temp.type.element_type)
    return found


def _itemsize(element: object) -> int:
    return field_element_type(str(element)).itemsize


def _emit_points(region: AppliedRegion, grid: PointGrid, entry: ir.Block) -> None:
    arguments, code = list(entry.arguments), IndexCode(entry)

    def points(first: list[Index], shifts: Sequence[tuple[int, ...]]) -> None:
        moved = [map(code.add, first, shift) for shift in shifts]
        places = [[code.value(at) for at in point] for point in moved]
        region.emit(arguments, places, code.constants)

    grid.emit(code, region.outputs(arguments)[0], points)
