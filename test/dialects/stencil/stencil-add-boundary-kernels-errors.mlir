// RUN: not twofour-opt %s --stencil-add-boundary-kernels=rank=0 2>&1 | filecheck %s --check-prefix=LEAST
// RUN: not twofour-opt %s --stencil-add-boundary-kernels=rank=33 2>&1 | filecheck %s --check-prefix=MOST
// RUN: not twofour-opt %s --stencil-add-boundary-kernels="rank=2 bits=16,24" 2>&1 | filecheck %s --check-prefix=BITS
// RUN: not twofour-opt %s --stencil-add-boundary-kernels --stencil-add-boundary-kernels=chip=sm_90 2>&1 | filecheck %s --check-prefix=CHIPS

// LEAST: <pass-pipeline>:1:16: error: expected arrays of 1 to 32 axes, got 0
// MOST: <pass-pipeline>:1:16: error: expected arrays of 1 to 32 axes, got 33
// BITS: <pass-pipeline>:1:16: error: expected elements of 8, 16, 32, 64 bits, got 24
// CHIPS: errors.mlir:10:1: error: 'builtin.module' op expected kernels for #nvvm.target<chip = "sm_80"> as before, got chip sm_90
module {
}
