// The sparse CPU route in one pipeline: every layout pass, then the LLVM dialect.

// RUN: twofour-opt %S/Inputs/heat2d.mlir --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,convert-stencil-to-nm,nm-crush{tile=4,4},canonicalize,nm-permute-2to4{strategy=auto fragment=32},cse,nm-compress)' | filecheck %s --check-prefix=LAYOUT
// RUN: twofour-opt %S/Inputs/heat2d.mlir --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,convert-stencil-to-nm,nm-crush{tile=4,4},nm-permute-2to4,nm-compress,convert-nm-to-vector,stencil-bufferize,canonicalize)' | filecheck %s
// RUN: twofour-opt %S/Inputs/heat2d.mlir --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,convert-stencil-to-nm,nm-crush,nm-permute-2to4,nm-compress,convert-nm-to-vector,stencil-bufferize,convert-scf-to-cf,expand-strided-metadata,lower-affine,convert-vector-to-llvm,convert-math-to-llvm,convert-index-to-llvm,convert-arith-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)' | filecheck %s --check-prefix=LLVM

// The 4 x 4 tile of a five-point star reads 32 points: one fragment without padding.

// LAYOUT: "nm.sparse_patch_matmul"
// LAYOUT-SAME: permutation = {fragment = 32 : i64, k_lower_bound = 32 : i64, padding_columns = 0 : i64, proven = true,
// LAYOUT-SAME: tile = array<i64: 4, 4>
// LAYOUT-SAME: -> !stencil.temp<#stencil.bounds<[0, 0], [16, 32]>, f32>
// LAYOUT-NOT: stencil.apply

// CHECK-NOT: "stencil.
// CHECK-NOT: "nm.
// CHECK-LABEL: func.func @heat2d(
// CHECK: call @heat2d_kernel0(
// CHECK: memref.global "private" constant @heat2d_kernel0_first : memref<17xindex>
// CHECK: memref.global "private" constant @heat2d_kernel0_weight : memref<80xf32>
// CHECK: memref.global "private" constant @heat2d_kernel0_point : memref<80x2xindex>
// CHECK: memref.global "private" constant @heat2d_kernel0_output : memref<16x2xindex>
// CHECK: func.func @heat2d_kernel0(
// CHECK: vector.gather
// CHECK: vector.scatter

// LLVM-NOT: {{(stencil|nm|vector|memref|scf|arith|math|func)\.[a-z]+[ (%]}}
// LLVM-NOT: unrealized_conversion_cast
// LLVM: llvm.func @heat2d(
// LLVM: llvm.intr.masked.gather
// LLVM: llvm.intr.masked.scatter
