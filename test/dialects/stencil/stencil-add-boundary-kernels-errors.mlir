// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-add-boundary-kernels="rank=2 bits=16,24"
// RUN: not twofour-opt %s --stencil-add-boundary-kernels=rank=0 2>&1 | filecheck %s --check-prefix=RANK

// RANK: error: 'builtin.module' op expected arrays of at least one axis, got rank 0

// expected-error @+1 {{'builtin.module' op expected elements of 8, 16, 32, 64 bits, got 24}}
module {
}
