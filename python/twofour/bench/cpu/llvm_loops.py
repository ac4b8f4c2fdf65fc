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

import itertools
import operator
from collections.abc import Sequence

import numpy as np

from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.contest import Sweeper
from twofour.bench.cpu.pinning import pin_pool
from twofour.bench.cpu.workload import Workload
from twofour.mlir import ir
from twofour.reach import reach_of
from twofour.runtime import LinearKernel, NativeKernel, element_type, parse_boundary
from twofour.runtime.tiles.program import TileCode, TileProgram
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


def _compile(workload: Workload) -> tuple[LinearKernel, TileCode]:
    """The kernel, and the code that drives it."""
    rank = len(workload.extents)
    context = ir.Context()
    with context, ir.Location.unknown():
        compiled = CompiledModule(ir.Module.parse(loops(workload)))
    native = NativeKernel(SWEEP, compiled.address(SWEEP), rank, 1, 1, (compiled, context))
    kernel = LinearKernel(native, *reach_of(workload.kernel.offsets))
    return kernel, tile_driver(rank, workload.itemsize)


def loops(workload: Workload) -> str:
    """The module of one step, by the calling convention of sweep kernels."""
    kernel, dtype = workload.kernel, workload.dtype
    rank = len(workload.extents)
    strides = [1]
    for extent in reversed(workload.shape[1:]):
        strides.insert(0, strides[0] * extent)
    below, _ = reach_of(kernel.offsets)
    view = f"memref<{'?x' * rank}{dtype}, strided<{strides}, offset: ?>>"
    places = [tuple(map(operator.add, offset, below)) for offset in kernel.offsets]
    shifts = sorted({0, 1, *workload.extents[1:], *itertools.chain(*places)})
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
    for number, place in enumerate(places):
        indices = [f"%i{number}_{axis}" for axis in range(rank)]
        for axis, (index, shift) in enumerate(zip(indices, place, strict=True)):
            lines.append(f"{index} = arith.addi %x{axis}, %c{shift} : index")
        lines.append(f"%v{number} = memref.load %in[{', '.join(indices)}] : {view}")
        product = f"arith.mulf %v{number}, %w{number} fastmath<fast> : {dtype}"
        lines.append(f"%{'p' if number else 's'}{number} = {product}")
        if number:
            total = f"arith.addf %s{number - 1}, %p{number} fastmath<fast> : {dtype}"
            lines.append(f"%s{number} = {total}")
    point = ", ".join(f"%x{axis}" for axis in range(rank))
    lines.append(f"memref.store %s{len(kernel.offsets) - 1}, %out[{point}] : {view}")
    return "\n".join([*lines, "}" * rank, "return", "}"])
