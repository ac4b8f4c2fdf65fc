// The general path: an apply that is not linear goes through every pass of either route unharmed and
// becomes loops, next to one that is linear.

// RUN: twofour-opt %s --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,convert-stencil-to-vector,convert-stencil-to-loops,stencil-bufferize,canonicalize,cse)' | filecheck %s --check-prefixes=CHECK,DIRECT
// RUN: twofour-opt %s --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,convert-stencil-to-nm,nm-crush,nm-permute-2to4,nm-compress,convert-nm-to-vector,convert-stencil-to-loops,stencil-bufferize,canonicalize,cse)' | filecheck %s --check-prefixes=CHECK,SPARSE
// RUN: twofour-opt %s --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-convert-element-type{to=f32},convert-stencil-to-loops,stencil-bufferize,canonicalize,cse)' | filecheck %s --check-prefixes=CHECK,LOOPS

!field = !stencil.field<#stencil.bounds<[-2], [66]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @burgers(
// DIRECT-SAME: memref<68xf64>
// LOOPS-SAME: memref<68xf32>
// CHECK: %[[MIDDLE:.*]] = memref.alloc() : memref<66xf
// CHECK: call @burgers_kernel{{[01]}}(
// CHECK: call @burgers_kernel{{[01]}}(
// CHECK: memref.dealloc %[[MIDDLE]]
// CHECK-NEXT: return
// CHECK-NOT: "stencil.
// DIRECT: vector.maskedstore
// DIRECT: arith.mulf %{{.*}}, %{{.*}} : f64
// SPARSE: vector.scatter
// SPARSE: arith.mulf %{{.*}}, %{{.*}} : f64
// LOOPS: arith.mulf %{{.*}}, %{{.*}} : f32
// LOOPS-NOT: vector.
func.func @burgers(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %half = arith.constant 0.5 : f64
    %s = arith.addf %a, %b : f64
    %h = arith.mulf %s, %half : f64
    "stencil.return"(%h) : (f64) -> ()
  }) : () -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%m) {offset = array<i64: -1>} : (!temp) -> f64
    %b = "stencil.access"(%m) {offset = array<i64: 1>} : (!temp) -> f64
    %p = arith.mulf %a, %b : f64
    "stencil.return"(%p) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}
