# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that refresh the halo of an array in one launch.

The runtime binds them (twofour.runtime.devices.halo_kernels).

A thread writes one cell. The cells outside the interior are cut into one slab an axis: slab k holds
what is outside on axis k, inside on the axes before, and anywhere on the axes behind. The number of
a thread counts through the slabs one after another.

Refreshes axis by axis end with the same values if a cell's source is looked up axis by axis from
the last one to the first: cells outside on an axis that fills with a constant take that of the last
such axis; all others take the value where every axis by itself sends them, which is inside on every
axis that is refreshed. So no thread reads what another one writes.
"""

import re
from dataclasses import dataclass

from twofour.codegen.cpu.kernel_abi import view_type
from twofour.codegen.gpu.code import IndexCode
from twofour.codegen.gpu.kernel_abi import BlockShape, gpu_function
from twofour.mlir import arith, gpu, ir, memref, scf
from twofour.runtime.devices.halo_kernels import Mode
from twofour.runtime.manifest import axis_numbers

THREADS = 256
_NAME = re.compile(r"refresh_halo_[0-9]+_[0-9]+d")


def is_boundary_kernel(name: str) -> bool:
    """Whether a kernel of this name refreshes halos; others have names that end otherwise."""
    return _NAME.fullmatch(name) is not None


def boundary_kernel_name(rank: int, bits: int) -> str:
    """The name of the kernel for views of `rank` axes, of elements of `bits` bits."""
    return f"refresh_halo_{bits}_{rank}d"


def build_boundary_kernel(rank: int, bits: int) -> gpu.GPUFuncOp:
    """Insert the kernel for views of `rank` axes, of elements of `bits` bits, where IR is built."""
    element = ir.IntegerType.get_signless(bits)
    view = view_type(rank, element)
    numbers = [ir.Type.parse(kind) for kind in axis_numbers(bits)]
    tile = (1,) * (rank - 1) + (THREADS,)
    function = gpu_function(
        boundary_kernel_name(rank, bits),
        [view, *numbers * rank, view],
        1,
        BlockShape(THREADS, tile, 1, bits // 8),
    )
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint(entry):
        _Emitter(entry, len(numbers), bits // 8).emit()
        gpu.ReturnOp([])
    return function


@dataclass(frozen=True)
class _Axis:
    """An axis of the array: `extent` cells, `inside` of them in its interior from `lower` on."""

    mode: ir.Value
    lower: ir.Value
    value: ir.Value
    extent: ir.Value
    inside: ir.Value
    outside: ir.Value


class _Emitter:
    def __init__(self, entry: ir.Block, count: int, itemsize: int):
        self.code = IndexCode(entry)
        # LLVM takes for granted that integers of 64 bits begin at multiples of 4 bytes only.
        self.itemsize = itemsize
        self.source, *numbers, self.target = entry.arguments
        self.axes = []
        for axis in range(len(numbers) // count):
            mode, lower, upper, value = numbers[axis * count : (axis + 1) * count]
            extent = memref.dim(self.target, self.code.value(axis))
            inside = self.code.sub(upper, lower)
            outside = self.code.sub(extent, inside)
            self.axes.append(_Axis(mode, lower, value, extent, inside, outside))

    def emit(self) -> None:
        code = self.code
        block, thread = gpu.block_id(gpu.Dimension.x), gpu.thread_id(gpu.Dimension.x)
        number = code.add(code.mul(block, THREADS), thread)
        starts = self._slab_starts()
        code.when(code.less(number, starts[-1]), lambda: self._cell(number, starts[:-1]))

    def _slab_starts(self) -> list[ir.Value | int]:
        """The numbers that the slabs begin with, and the end of the last one."""
        code, starts = self.code, [0]
        for own, axis in enumerate(self.axes):
            cells = axis.outside
            for before in self.axes[:own]:
                cells = code.mul(cells, before.inside)
            for behind in self.axes[own + 1 :]:
                cells = code.mul(cells, behind.extent)
            starts.append(code.add(starts[-1], cells))
        return starts

    def _cell(self, number: ir.Value, starts: list[ir.Value | int]) -> None:
        """Write the cell of a number."""
        cell = self._place(number, starts)
        source, filled, value = [], None, None
        for at, axis in zip(cell, self.axes, strict=True):
            from_lower = self.code.sub(at, axis.lower)
            outside = arith.cmpi(arith.CmpIPredicate.uge, from_lower, axis.inside)
            source.append(self._source(at, from_lower, outside, axis))
            fills = arith.andi(outside, self._has_mode(axis, Mode.CONSTANT))
            value = axis.value if value is None else arith.select(fills, axis.value, value)
            filled = fills if filled is None else arith.ori(filled, fills)
        branch = scf.IfOp(filled, [value.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_([value])
        with ir.InsertionPoint(branch.else_block):
            scf.yield_([memref.load(self.source, source, alignment=self.itemsize)])
        memref.store(branch.results[0], self.target, cell, alignment=self.itemsize)

    def _place(self, number: ir.Value, starts: list[ir.Value | int]) -> list[ir.Value]:
        """The cell of a number: in which slab it is, and where there."""
        code, axes = self.code, self.axes
        # Whether the cell is in the slab of an axis or behind it.
        reached = [None] + [
            arith.cmpi(arith.CmpIPredicate.uge, number, start) for start in starts[1:]
        ]
        first = starts[0]
        for slab, start in zip(reached[1:], starts[1:], strict=True):
            first = code.select(slab, start, first)
        rest = code.sub(number, first)
        cell = [rest] * len(axes)
        for place in range(len(axes) - 1, -1, -1):
            axis, inner = axes[place], None
            own, extent = reached[place], axis.outside
            if own is not None:
                extent = code.select(own, axis.outside, axis.extent)
            if place + 1 < len(axes):
                inner = reached[place + 1]
                extent = code.select(inner, axis.inside, extent)
            at = rest
            if place:
                at, rest = code.rem(rest, extent), code.div(rest, extent)
            # In its own slab, the cells below and above the interior follow each other.
            above = arith.cmpi(arith.CmpIPredicate.uge, at, axis.lower)
            above = above if own is None else arith.andi(above, own)
            shift = code.select(above, axis.inside, 0)
            if inner is not None:
                shift = code.select(inner, axis.lower, shift)
            cell[place] = code.add(at, shift)
        return cell

    def _source(
        self, at: ir.Value, from_lower: ir.Value, outside: ir.Value, axis: _Axis
    ) -> ir.Value:
        """Where an axis sends a cell: for CONSTANT anywhere in the interior."""
        branch = scf.IfOp(outside, [at.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_([self._beyond(at, from_lower, axis)])
        with ir.InsertionPoint(branch.else_block):
            scf.yield_([at])
        return branch.results[0]

    def _beyond(self, at: ir.Value, from_lower: ir.Value, axis: _Axis) -> ir.Value:
        """The same for a cell outside of the interior."""
        code = self.code
        repeats = arith.cmpi(arith.CmpIPredicate.uge, axis.mode, self._mode(axis, Mode.PERIODIC))
        branch = scf.IfOp(repeats, [at.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_([code.add(axis.lower, self._folded(from_lower, axis))])
        with ir.InsertionPoint(branch.else_block):
            last = code.sub(axis.inside, 1)
            nearest = code.minimum(code.maximum(from_lower, 0), last)
            copied = self._has_mode(axis, Mode.COPY)
            scf.yield_([code.select(copied, at, code.add(axis.lower, nearest))])
        return branch.results[0]

    def _folded(self, from_lower: ir.Value, axis: _Axis) -> ir.Value:
        """Where PERIODIC and REFLECT send a cell, from the interior's first one on."""
        code = self.code
        twice = code.mul(axis.inside, 2)
        period = code.select(self._has_mode(axis, Mode.REFLECT), twice, axis.inside)
        # Unsigned division: below, -1 is the last cell of a period, and so on.
        below = code.less(from_lower, 0)
        distance = code.select(below, code.sub(-1, from_lower), from_lower)
        rest = self._rest(distance, period)
        place = code.select(below, code.sub(code.sub(period, 1), rest), rest)
        # The second half of a period runs backwards; PERIODIC has no such half.
        return code.minimum(place, code.sub(code.sub(twice, 1), place))

    def _rest(self, distance: ir.Value, period: ir.Value) -> ir.Value:
        """What division of a distance by a period leaves; few halos are so deep as to divide."""
        branch = scf.IfOp(self.code.less(distance, period), [distance.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_([distance])
        with ir.InsertionPoint(branch.else_block):
            scf.yield_([self.code.rem(distance, period)])
        return branch.results[0]

    def _has_mode(self, axis: _Axis, mode: Mode) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.eq, axis.mode, self._mode(axis, mode))

    def _mode(self, axis: _Axis, mode: Mode) -> ir.Value:
        return self.code.constants.get(
            ("mode", mode), lambda: arith.ConstantOp(axis.mode.type, int(mode)).result
        )
