# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM's own vectorisation: plain scalar loops in MLIR, with the flags that let it reorder sums.

The loops know strides and inner extents, as those in C do; what makes vectors of them is LLVM at
O3, by the project's own JIT. For a stencil of two points:

    func.func @sweep(%in: memref<?x?xf64, strided<[514, 1], offset: ?>>, %out: ...,
                     %begin: index, %end: index) {
      scf.for %x0 = %begin to %end step %c1 {
        scf.for %x1 = %c0 to %c512 step %c1 {
          %v0 = memref.load %in[%x0, %x1]
          %t0 = arith.mulf %v0, %w0 fastmath<fast>
          ...
          memref.store %t2, %out[%x0, %x1]

The project's driver of time tiles runs them, a part of the domain a thread: it is the same for the
project's own kernels.
"""

from collections.abc import Sequence

import numpy as np

from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.contest import Sweeper
from twofour.bench.cpu.pinning import pin_pool
from twofour.bench.cpu.workload import Workload
from twofour.mlir import ir
from twofour.runtime import LinearKernel, NativeKernel, element_type, parse_boundary
from twofour.runtime.tiles.program import TileProgram
from twofour.runtime.tiles.runs import Leg, run_legs
from twofour.runtime.tiles.steps import Geometry, Layout
from twofour.targets.cpu.jit import CompiledModule
from twofour.targets.cpu.tile_driver import tile_driver

LLVM, SWEEP = "LLVM", "sweep"


def llvm_sweeps(workload: Workload, arrays: Arrays, cpus: Sequence[int]) -> Sweeper:
    """Single steps by LLVM's vectorisation."""
    kernel, code = _compile(workload)
    boundary = parse_boundary("fixed", len(workload.extents))
    reach = (kernel.reach_lo, kernel.reach_hi)
    # What each thread sweeps is one part, as in C.
    part = (-(-workload.extents[0] // workload.threads), *workload.extents[1:])
    program = TileProgram(
        kernel,
        code,
        Geometry(workload.interior, *reach, boundary),
        (Layout.of_domain(workload.shape),) * 2,
        element_type(workload.dtype),
        1,
        part,
    )

    def run(sweeps: int) -> np.ndarray:
        run_legs([Leg(program, *arrays.both, sweeps)], workload.threads)
        return arrays.after(sweeps)

    used = cpus[: workload.threads]
    return arrays.sweeper(LLVM, run, lambda: pin_pool(used))


def _compile(workload: Workload):
    """The kernel, and the code that drives it."""
    rank = len(workload.extents)
    columns = list(zip(*workload.kernel.offsets, strict=True))
    reach_lo = tuple(-min(column) for column in columns)
    reach_hi = tuple(max(column) for column in columns)
    context = ir.Context()
    with context, ir.Location.unknown():
        compiled = CompiledModule(ir.Module.parse(loops(workload)))
    native = NativeKernel(SWEEP, compiled.address(SWEEP), rank, 1, 1, (compiled, context))
    return LinearKernel(native, reach_lo, reach_hi), tile_driver(rank, workload.itemsize)


def loops(workload: Workload) -> str:
    """The module of one step, by the calling convention of sweep kernels."""
    kernel, dtype = workload.kernel, workload.dtype
    rank = len(workload.extents)
    strides = [1]
    for extent in reversed(workload.shape[1:]):
        strides.insert(0, strides[0] * extent)
    columns = list(zip(*kernel.offsets, strict=True))
    view = f"memref<{'?x' * rank}{dtype}, strided<{strides}, offset: ?>>"
    shifts = sorted({o - min(c) for c in columns for o in c} | {0, 1} | {*workload.extents[1:]})
    lines = [
        f"func.func @{SWEEP}(%in: {view}, %out: {view}, %begin: index, %end: index)",
        "  attributes {llvm.emit_c_interface} {",
        *(f"%c{number} = arith.constant {number} : index" for number in shifts),
        *(
            f"%w{number} = arith.constant {weight:.17e} : {dtype}"
            for number, weight in enumerate(kernel.weights)
        ),
    ]
    for axis, extent in enumerate(workload.extents):
        bounds = "%begin to %end" if axis == 0 else f"%c0 to %c{extent}"
        lines.append(f"scf.for %x{axis} = {bounds} step %c1 {{")
    for number, offset in enumerate(kernel.offsets):
        places = []
        for axis, (o, column) in enumerate(zip(offset, columns, strict=True)):
            places.append(f"%i{number}_{axis}")
            lines.append(f"{places[-1]} = arith.addi %x{axis}, %c{o - min(column)} : index")
        lines.append(f"%v{number} = memref.load %in[{', '.join(places)}] : {view}")
        product = f"arith.mulf %v{number}, %w{number} fastmath<fast> : {dtype}"
        lines.append(f"%{'p' if number else 's'}{number} = {product}")
        if number:
            total = f"arith.addf %s{number - 1}, %p{number} fastmath<fast> : {dtype}"
            lines.append(f"%s{number} = {total}")
    place = ", ".join(f"%x{axis}" for axis in range(rank))
    lines.append(f"memref.store %s{len(kernel.offsets) - 1}, %out[{place}] : {view}")
    return "\n".join([*lines, "}" * rank, "return", "}"])
