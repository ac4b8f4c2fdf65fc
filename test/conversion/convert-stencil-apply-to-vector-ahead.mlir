// RUN: twofour-opt %s --convert-stencil-apply-to-vector='machine=znver4 past-caches=true' | filecheck %s
// RUN: twofour-opt %s --convert-stencil-apply-to-vector='machine=sapphirerapids past-caches=true' | filecheck %s --check-prefix=CLAIMS

!temp = !stencil.temp<#stencil.bounds<[-6, 0, 0], [518, 512, 512]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0, 0], [512, 512, 512]>, f64>

// Thirteen rows of planes that do not stay in the caches: in a kernel beside the usual one the last
// one and that of the output are fetched some rows ahead. A core that waits for the lines of stores has those of the block itself
// asked for, of four planes, and nothing else.

// CHECK-LABEL: func.func @highest_kernel0(
// CHECK-NOT: memref.prefetch
// CHECK: func.func @highest_kernel0_past_caches(
// CHECK: memref.prefetch %{{.*}}, read
// CHECK: memref.prefetch %{{.*}}, write
// CHECK-NOT: memref.prefetch
// CHECK: vector.load
// CLAIMS-LABEL: func.func @highest_kernel0(
// CLAIMS-NOT: read
// CLAIMS-COUNT-4: memref.prefetch %{{.*}}, write
// CLAIMS-NOT: memref.prefetch
// CLAIMS-COUNT-16: vector.load
// CLAIMS-COUNT-4: vector.store
// CLAIMS-NOT: {{, read|past_caches}}
func.func @highest(%a: !temp) -> !inner {
  %r = "stencil.apply"() ({
    %0 = "stencil.access"(%a) {offset = array<i64: -6, 0, 0>} : (!temp) -> f64
    %1 = "stencil.access"(%a) {offset = array<i64: -5, 0, 0>} : (!temp) -> f64
    %2 = "stencil.access"(%a) {offset = array<i64: -4, 0, 0>} : (!temp) -> f64
    %3 = "stencil.access"(%a) {offset = array<i64: -3, 0, 0>} : (!temp) -> f64
    %4 = "stencil.access"(%a) {offset = array<i64: -2, 0, 0>} : (!temp) -> f64
    %5 = "stencil.access"(%a) {offset = array<i64: -1, 0, 0>} : (!temp) -> f64
    %6 = "stencil.access"(%a) {offset = array<i64: 0, 0, 0>} : (!temp) -> f64
    %7 = "stencil.access"(%a) {offset = array<i64: 1, 0, 0>} : (!temp) -> f64
    %8 = "stencil.access"(%a) {offset = array<i64: 2, 0, 0>} : (!temp) -> f64
    %9 = "stencil.access"(%a) {offset = array<i64: 3, 0, 0>} : (!temp) -> f64
    %10 = "stencil.access"(%a) {offset = array<i64: 4, 0, 0>} : (!temp) -> f64
    %11 = "stencil.access"(%a) {offset = array<i64: 5, 0, 0>} : (!temp) -> f64
    %12 = "stencil.access"(%a) {offset = array<i64: 6, 0, 0>} : (!temp) -> f64
    %m1 = arith.maximumf %0, %1 : f64
    %m2 = arith.maximumf %m1, %2 : f64
    %m3 = arith.maximumf %m2, %3 : f64
    %m4 = arith.maximumf %m3, %4 : f64
    %m5 = arith.maximumf %m4, %5 : f64
    %m6 = arith.maximumf %m5, %6 : f64
    %m7 = arith.maximumf %m6, %7 : f64
    %m8 = arith.maximumf %m7, %8 : f64
    %m9 = arith.maximumf %m8, %9 : f64
    %m10 = arith.maximumf %m9, %10 : f64
    %m11 = arith.maximumf %m10, %11 : f64
    %m12 = arith.maximumf %m11, %12 : f64
    "stencil.return"(%m12) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}
