// Three fused steps beside the single step, down to compressed operators: each keeps its kernel.

// RUN: twofour-opt %S/Inputs/heat2d.mlir --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,stencil-fuse-steps{steps=3},convert-stencil-to-nm,nm-crush,nm-permute-2to4,nm-compress)' | filecheck %s
// RUN: twofour-opt %S/Inputs/heat2d.mlir --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,stencil-fuse-steps{steps=3},convert-stencil-to-vector,stencil-bufferize)' | filecheck %s --check-prefix=KERNELS

// CHECK-LABEL: func.func @heat2d(
// CHECK: "nm.sparse_patch_matmul"
// CHECK: {bounds = #stencil.bounds<[0, 0], [16, 32]>}
// CHECK: func.func @heat2d_fused3(
// CHECK-SAME: attributes {stencil.single_step = @heat2d, stencil.steps = 3 : i64}
// CHECK: "nm.sparse_patch_matmul"
// CHECK: {bounds = #stencil.bounds<[2, 2], [14, 30]>}

// KERNELS-DAG: func.func @heat2d(
// KERNELS-DAG: func.func @heat2d_kernel0(
// KERNELS-DAG: func.func @heat2d_fused3(
// KERNELS-DAG: func.func @heat2d_fused3_kernel0(
