# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain GPU kernels for weighted sums, without tensor cores.

A thread reads each of its inputs once, element by element, or by aligned vectors. The terms of an
output are added from the lowest offset to the highest by fused multiply-adds, as by the CPU's
direct kernels without reassociation, so that both give the same bits.
"""

from collections import defaultdict
from collections.abc import Sequence

from twofour.codegen.cpu.direct_kernel import DirectKernel, Offset, Terms
from twofour.codegen.cpu.kernel_abi import view_type
from twofour.codegen.gpu.code import Index, IndexCode
from twofour.codegen.gpu.flat_array import flat_array
from twofour.codegen.gpu.kernel_abi import gpu_function
from twofour.codegen.gpu.point_access import ElementAccess, Types, VectorAccess
from twofour.codegen.gpu.point_grid import PointGrid
from twofour.layout.march import ACCESS
from twofour.mlir import arith, gpu, ir, llvm

# A thread's points are unrolled; beyond this many multiply-adds they only cost compile time.
MAX_TERMS = 2048
# Points of a thread: those of an access, but as many as make rows share what they read.
MIN_POINTS = 4


def point_grid(kernel: DirectKernel, itemsize: int, aligned: bool = False) -> PointGrid:
    """The threads of a kernel: as many points to each as fit the limits, a power of two.

    Where rows are `aligned`, on those of an access, they are one vector, if this fits and there is
    one input and no addend.
    """
    terms = sum(len(t.weights) for t in kernel.inputs)
    vector = ACCESS // itemsize
    if (
        aligned
        and len(kernel.inputs) == 1
        and not kernel.has_addend
        and vector * terms <= MAX_TERMS
    ):
        return PointGrid(kernel.rank, vector, vectors=True)
    points = max(MIN_POINTS, vector)
    while points > 1 and points * terms > MAX_TERMS:
        points //= 2
    return PointGrid(kernel.rank, points)


def build_simt_kernel(
    kernel: DirectKernel, element: str, grid: PointGrid, itemsize: int, room_for: int | None = None
) -> None:
    """Insert the kernel's function, for fields of `element`, at the current insertion point.

    Registers are left for `room_for` blocks on a multiprocessor.
    """
    inputs = len(kernel.inputs) + kernel.has_addend
    views = [view_type(kernel.rank, ir.Type.parse(element))] * (inputs + 1)
    shape = grid.launch(itemsize)
    function = gpu_function(kernel.name, views, inputs, shape, in_place=True, room_for=room_for)
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint(entry):
        _Emitter(kernel, element, entry, grid, itemsize).emit()
        gpu.ReturnOp([])


class _Emitter:
    def __init__(
        self, kernel: DirectKernel, element: str, entry: ir.Block, grid: PointGrid, itemsize: int
    ):
        self.kernel, self.grid = kernel, grid
        self.code = IndexCode(entry)
        storage = ir.Type.parse(element)
        self.types = Types(storage, storage if element == "f64" else ir.F32Type.get(), itemsize)
        views = list(entry.arguments)
        self.output = views[-1]
        with ir.InsertionPoint(entry):
            nothing = (0,) * kernel.rank
            self.arrays = [flat_array(self.code, view, nothing) for view in views]

    def emit(self) -> None:
        self.grid.emit(self.code, self.output, self._points)

    def _points(self, point: list[Index], shifts: Sequence[Offset]) -> None:
        """The outputs at point + shifts; each of their inputs is loaded once."""
        vectors = self.grid.vectors and len(shifts) > 1
        sums = self._start(point, shifts)
        for array, terms in zip(self.arrays, self.kernel.inputs, strict=False):
            if vectors:
                inputs = VectorAccess(self.code, self.types, array, point, terms.reach_lo[-1])
            else:
                inputs = ElementAccess(self.code, self.types, array, point)
            for place, uses in _uses(terms, shifts):
                value = inputs.read(place)
                for number, weight in uses:
                    total, factor = sums[number], self._number(weight)
                    # `math.fma` would become the call of a library.
                    sums[number] = (
                        arith.mulf(factor, value)
                        if total is None
                        else llvm.intr_fma(factor, value, total)
                    )
        access = VectorAccess if vectors else ElementAccess
        access(self.code, self.types, self.arrays[-1], point).write(shifts, sums)

    def _start(self, point: list[Index], shifts: Sequence[Offset]) -> list[ir.Value | None]:
        """The numbers that the sums start from, None for nothing."""
        kernel = self.kernel
        start = self._number(kernel.constant) if kernel.constant else None
        if not kernel.has_addend:
            return [start] * len(shifts)
        addend = ElementAccess(self.code, self.types, self.arrays[len(kernel.inputs)], point)
        values = [addend.read(shift) for shift in shifts]
        return values if start is None else [arith.addf(value, start) for value in values]

    def _number(self, value: float) -> ir.Value:
        return self.code.constants.get(
            ("number", value), lambda: arith.ConstantOp(self.types.sums, value).result
        )


def _uses(terms: Terms, shifts: Sequence[Offset]) -> list[tuple[Offset, list[tuple[int, float]]]]:
    """The points that some outputs read, lowest first: (output, weight) of each use.

    Points count from the lowest one that the first output reads.
    """
    uses = defaultdict(list)
    for offset, weight in zip(terms.offsets, terms.weights, strict=True):
        if weight:
            for number, shift in enumerate(shifts):
                place = zip(offset, shift, terms.reach_lo, strict=True)
                uses[tuple(map(sum, place))].append((number, weight))
    return sorted(uses.items())
