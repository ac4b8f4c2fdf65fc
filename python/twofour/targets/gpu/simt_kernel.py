# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain GPU kernels for weighted sums, without tensor cores.

The terms of an output are added from the lowest offset to the highest by fused multiply-adds, as by
the CPU's direct kernels without reassociation, so that both give the same bits.
"""

from collections import defaultdict
from collections.abc import Sequence

from twofour.mlir import arith, gpu, ir, llvm, memref
from twofour.targets.cpu.direct_kernel import DirectKernel, Offset, Terms
from twofour.targets.cpu.kernel_abi import view_type
from twofour.targets.gpu.code import Index, IndexCode
from twofour.targets.gpu.kernel_abi import gpu_function
from twofour.targets.gpu.point_grid import PointGrid

# A thread's points are unrolled; beyond this many multiply-adds they only cost compile time.
MAX_TERMS = 2048
# Points of a thread: this many bytes of them, but as many as make rows share what they read.
POINT_BYTES, MIN_POINTS = 16, 4


def point_grid(kernel: DirectKernel, itemsize: int) -> PointGrid:
    """The threads of a kernel: as many points to each as fit the limits, a power of two."""
    terms = sum(len(t.weights) for t in kernel.inputs)
    points = max(MIN_POINTS, POINT_BYTES // itemsize)
    while points > 1 and points * terms > MAX_TERMS:
        points //= 2
    return PointGrid(kernel.rank, points)


def build_simt_kernel(kernel: DirectKernel, element: str, grid: PointGrid, itemsize: int) -> None:
    """Insert the kernel's function, for fields of `element`, at the current insertion point."""
    inputs = len(kernel.inputs) + kernel.has_addend
    views = [view_type(kernel.rank, ir.Type.parse(element))] * (inputs + 1)
    function = gpu_function(kernel.name, views, inputs, grid.launch(itemsize))
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint(entry):
        _Emitter(kernel, element, entry).emit(grid)
        gpu.ReturnOp([])


class _Rows:
    """A view as one row of elements: a point's place is found once for every row it is read in."""

    def __init__(self, code: IndexCode, view: ir.Value):
        rank, unknown = view.type.rank, ir.ShapedType.get_dynamic_stride_or_offset()
        base, offset, *rest = memref.extract_strided_metadata(view)
        self.code = code
        self.strides: list[Index] = [*rest[rank : 2 * rank - 1], 1]
        self.flat = memref.reinterpret_cast(
            ir.MemRefType.get(
                [ir.ShapedType.get_dynamic_size()],
                view.type.element_type,
                ir.StridedLayoutAttr.get(unknown, [1]),
            ),
            base,
            [offset],
            [code.value(2**62)],
            [],
            [unknown],
            [ir.ShapedType.get_dynamic_size()],
            [1],
        )

    def at(self, point: Sequence[Index]) -> Index:
        """The index of a point."""
        return self.code.dot(point, self.strides)

    def beyond(self, place: Index, shift: Offset) -> list[ir.Value]:
        """The index of the point at `shift` from that at `place`."""
        row = self.code.dot(shift[:-1], self.strides[:-1])
        return [self.code.value(self.code.add(self.code.add(place, row), shift[-1]))]


class _Emitter:
    def __init__(self, kernel: DirectKernel, element: str, entry: ir.Block):
        self.kernel = kernel
        self.code = IndexCode(entry)
        self.storage = ir.Type.parse(element)
        self.accumulation = self.storage if element == "f64" else ir.F32Type.get()
        views = list(entry.arguments)
        self.output = views[-1]
        with ir.InsertionPoint(entry):
            self.rows = [_Rows(self.code, view) for view in views]

    def emit(self, grid: PointGrid) -> None:
        grid.emit(self.code, self.output, self._points)

    def _points(self, point: list[Index], shifts: Sequence[Offset]) -> None:
        """The outputs at point + shifts; each of their inputs is loaded once."""
        sums = self._start(point, shifts)
        for rows, terms in zip(self.rows, self.kernel.inputs, strict=False):
            first = rows.at(point)
            for place, uses in _uses(terms, shifts):
                value = self._read(rows, first, place)
                for number, weight in uses:
                    total, factor = sums[number], self._number(weight)
                    # `math.fma` would become the call of a library.
                    sums[number] = (
                        arith.mulf(factor, value)
                        if total is None
                        else llvm.intr_fma(factor, value, total)
                    )
        rows = self.rows[-1]
        first = rows.at(point)
        for shift, total in zip(shifts, sums, strict=True):
            if self.storage != self.accumulation:
                total = arith.truncf(self.storage, total)
            memref.store(total, rows.flat, rows.beyond(first, shift))

    def _start(self, point: list[Index], shifts: Sequence[Offset]) -> list[ir.Value | None]:
        """The numbers that the sums start from, None for nothing."""
        kernel = self.kernel
        start = self._number(kernel.constant) if kernel.constant else None
        if not kernel.has_addend:
            return [start] * len(shifts)
        rows = self.rows[len(kernel.inputs)]
        first = rows.at(point)
        values = [self._read(rows, first, shift) for shift in shifts]
        return values if start is None else [arith.addf(value, start) for value in values]

    def _read(self, rows: _Rows, place: Index, shift: Offset) -> ir.Value:
        value = memref.load(rows.flat, rows.beyond(place, shift))
        if self.storage == self.accumulation:
            return value
        return arith.extf(self.accumulation, value)

    def _number(self, value: float) -> ir.Value:
        return self.code.constants.get(
            ("number", value), lambda: arith.ConstantOp(self.accumulation, value).result
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
