// The direct CPU route in one pipeline, from xDSL's syntax to the LLVM dialect, with upstream passes
// before, between and behind the project's own.

// RUN: twofour-opt %S/Inputs/heat2d.mlir --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,convert-stencil-to-vector,stencil-bufferize,canonicalize,cse)' | filecheck %s
// RUN: twofour-opt %S/Inputs/heat2d.mlir --canonicalize --stencil-infer-bounds --cse --stencil-extract-weights --convert-stencil-to-vector --stencil-bufferize --canonicalize --cse | filecheck %s
// RUN: twofour-opt %S/Inputs/heat2d.mlir --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,convert-stencil-to-vector,stencil-bufferize,func.func(canonicalize,cse),convert-scf-to-cf,expand-strided-metadata,lower-affine,convert-vector-to-llvm,convert-math-to-llvm,convert-index-to-llvm,convert-arith-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)' | filecheck %s --check-prefix=LLVM

// CHECK-NOT: "stencil.
// CHECK-LABEL: func.func @heat2d(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<18x34xf32>, %[[V:[a-z0-9]+]]: memref<18x34xf32>
// CHECK: memref.subview %[[V]][1, 1] [16, 32] [1, 1]
// CHECK: call @heat2d_kernel0(
// CHECK-NEXT: return
// CHECK-LABEL: func.func @heat2d_kernel0(
// CHECK: vector.load
// CHECK: math.fma
// CHECK: vector.store
// CHECK: vector.maskedstore

// LLVM-NOT: {{(stencil|nm|vector|memref|scf|arith|math|func)\.[a-z]+[ (%]}}
// LLVM-NOT: unrealized_conversion_cast
// LLVM: llvm.func @heat2d(
// LLVM: llvm.call @heat2d_kernel0(
// LLVM: llvm.func @_mlir_ciface_heat2d(
// LLVM: llvm.func @heat2d_kernel0(
// LLVM: llvm.intr.fma({{.*}}) : (vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
// LLVM: llvm.intr.masked.store
// LLVM: llvm.func @_mlir_ciface_heat2d_kernel0(
