# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-add-boundary-kernels`: GPU kernels that refresh halos between sweeps.

    module {
    }

becomes, with `rank=2 bits=16`,

    module attributes {gpu.container_module} {
      gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
        gpu.func @refresh_halo_16_2d(%source: memref<?x?xi16, ...>, %mode0: i32, %lower0: index,
            %upper0: index, %value0: i16, %mode1: i32, ..., %target: memref<?x?xi16, ...>) kernel

One launch refills all halo cells of an array; which boundary each axis has is a number that the
kernel takes. No function launches it: the runtime does, between calls.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.codegen.gpu.boundary_kernel import boundary_kernel_name, build_boundary_kernel
from twofour.codegen.gpu.kernel_abi import kernel_module
from twofour.errors import TwofourError
from twofour.mlir import ir
from twofour.options import Chip
from twofour.passes import ModulePass
from twofour.runtime.native import MAX_RANK

SIZES = (8, 16, 32, 64)


@dataclass(frozen=True)
class AddBoundaryKernelsPass(ModulePass):
    """Add a kernel that refreshes halos for each size of elements in `bits` (8, 16, 32 or 64) that
    has none yet.

    `chip` is the architecture to compile for, `rank` the number of axes of the arrays.
    """

    name: ClassVar[str] = "stencil-add-boundary-kernels"
    chip: Chip = "sm_80"
    rank: int = 1
    bits: tuple[int, ...] = (32,)

    def __post_init__(self):
        if not 1 <= self.rank <= MAX_RANK:
            raise TwofourError(f"expected arrays of 1 to {MAX_RANK} axes, got {self.rank}")
        for bits in self.bits:
            if bits not in SIZES:
                wanted = ", ".join(map(str, SIZES))
                raise TwofourError(f"expected elements of {wanted} bits, got {bits}")

    def run(self, module: ir.Operation) -> None:
        with module.location:
            kernels = kernel_module(module, self.chip)
            known = {kernel.attributes["sym_name"].value for kernel in kernels.operations}
            with ir.InsertionPoint(kernels):
                for bits in dict.fromkeys(self.bits):
                    if boundary_kernel_name(self.rank, bits) not in known:
                        build_boundary_kernel(self.rank, bits)
