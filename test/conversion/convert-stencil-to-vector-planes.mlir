// RUN: twofour-opt %s --convert-stencil-to-vector='machine=sapphirerapids past-caches=beside' | filecheck %s
// RUN: twofour-opt %s --convert-stencil-to-vector='tile=2,1,4' | filecheck %s --check-prefix=GIVEN
// RUN: not twofour-opt %s --convert-stencil-to-vector='tile=1,2,1,4' 2>&1 | filecheck %s --check-prefix=FOUR

!temp = !stencil.temp<#stencil.bounds<[-1, -1, 0], [17, 17, 16]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0, 0], [16, 16, 16]>, f64>

// Two rows in each of four planes at once: of the four middle planes of inputs they read four rows,
// of the outer two planes two.

// CHECK-LABEL: func.func @star_kernel0(
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4{{.*}} {
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c2{{.*}} {
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8{{.*}} {
// CHECK-COUNT-8: memref.prefetch %{{.*}}, write
// CHECK-NOT: memref.prefetch
// CHECK-COUNT-20: vector.load
// CHECK-NOT: vector.load
// CHECK-COUNT-8: vector.store
// CHECK-NEXT: }

// What is left of the planes goes plane by plane, four rows at once.

// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1{{.*}} {
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4{{.*}} {
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8{{.*}} {
// CHECK-COUNT-14: vector.load
// CHECK-NOT: vector.load
// CHECK-COUNT-4: vector.store
// CHECK-NEXT: }

// Of large arrays one row in each of four planes. Inputs are not fetched ahead.

// CHECK-LABEL: func.func @star_kernel0_past_caches(
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4{{.*}} {
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1{{.*}} {
// CHECK-NOT: memref.prefetch %{{.*}}, read
// CHECK-COUNT-4: memref.prefetch %{{.*}}, write
// CHECK-NOT: memref.prefetch
// CHECK-COUNT-14: vector.load
// CHECK-NOT: vector.load
// CHECK-COUNT-4: vector.store
// CHECK-NEXT: }

// A tile of three numbers begins with planes.

// GIVEN-LABEL: func.func @star_kernel0(
// GIVEN: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c2{{.*}} {
// GIVEN: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1{{.*}} {
// GIVEN: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c32{{.*}} {
// GIVEN-COUNT-8: vector.store
// GIVEN-NEXT: }

// FOUR: expected tile=[PLANES,]ROWS,VECTORS of at least 1, got [1, 2, 1, 4]
func.func @star(%u: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%u) {
    offsets = [array<i64: -1, 0, 0>, array<i64: 0, -1, 0>, array<i64: 0, 0, 0>, array<i64: 0, 1, 0>, array<i64: 1, 0, 0>],
    weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0>, constant = 0.0 : f64
  } : (!temp) -> !inner
  return %r : !inner
}
