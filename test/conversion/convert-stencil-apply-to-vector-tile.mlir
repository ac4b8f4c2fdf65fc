// RUN: twofour-opt %s --convert-stencil-apply-to-vector | filecheck %s
// RUN: twofour-opt %s --convert-stencil-apply-to-vector='machine=avx2' | filecheck %s --check-prefix=AVX2
// RUN: twofour-opt %s --convert-stencil-apply-to-vector='machine=sapphirerapids' | filecheck %s --check-prefix=INTEL

!temp = !stencil.temp<#stencil.bounds<[-4, -4], [12, 76]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [8, 72]>, f64>
!cube = !stencil.temp<#stencil.bounds<[-1, 0, 0], [13, 12, 72]>, f64>
!core = !stencil.temp<#stencil.bounds<[0, 0, 0], [12, 12, 72]>, f64>

// No point is read twice: four vectors of one row.

// CHECK-LABEL: func.func @product_kernel0(
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c32{{.*}} {
// CHECK-COUNT-8: vector.load
// CHECK-COUNT-4: vector.store
// CHECK-NEXT: }
func.func @product(%a: !temp, %b: !temp) -> !inner {
  %r = "stencil.apply"() ({
    %x = "stencil.access"(%a) {offset = array<i64: 0, 0>} : (!temp) -> f64
    %y = "stencil.access"(%b) {offset = array<i64: 0, 0>} : (!temp) -> f64
    %p = arith.mulf %x, %y : f64
    "stencil.return"(%p) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// Two rows have one vector in common, four rows would spare little more. Cores of Intel compute two
// vectors of each.

// CHECK-LABEL: func.func @few_kernel0(
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8{{.*}} {
// CHECK-COUNT-3: vector.load
// CHECK-COUNT-2: vector.store
// CHECK-NEXT: }
// INTEL-LABEL: func.func @few_kernel0(
// INTEL: scf.for
// INTEL: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16{{.*}} {
// INTEL-COUNT-6: vector.load
// INTEL-NOT: vector.load
// INTEL-COUNT-4: vector.store
// INTEL-NEXT: }
func.func @few(%a: !temp) -> !inner {
  %r = "stencil.apply"() ({
    %x = "stencil.access"(%a) {offset = array<i64: 0, 0>} : (!temp) -> f64
    %y = "stencil.access"(%a) {offset = array<i64: 1, 0>} : (!temp) -> f64
    %p = arith.mulf %x, %y : f64
    "stencil.return"(%p) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// Nine points of a column: four rows spare 1.125 more vectors an output, with two arrays. Where
// registers are few, two rows.

// CHECK-LABEL: func.func @column_kernel0(
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8{{.*}} {
// CHECK-COUNT-12: vector.load
// CHECK-NOT: vector.load
// CHECK-COUNT-4: vector.store
// CHECK-NEXT: }
// AVX2-LABEL: func.func @column_kernel0(
// AVX2: scf.for
// AVX2: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4{{.*}} {
// AVX2-COUNT-10: vector.load
// AVX2-NOT: vector.load
// AVX2-COUNT-2: vector.store
// AVX2-NEXT: }
func.func @column(%a: !temp) -> !inner {
  %r = "stencil.apply"() ({
    %0 = "stencil.access"(%a) {offset = array<i64: -4, 0>} : (!temp) -> f64
    %1 = "stencil.access"(%a) {offset = array<i64: -3, 0>} : (!temp) -> f64
    %2 = "stencil.access"(%a) {offset = array<i64: -2, 0>} : (!temp) -> f64
    %3 = "stencil.access"(%a) {offset = array<i64: -1, 0>} : (!temp) -> f64
    %4 = "stencil.access"(%a) {offset = array<i64: 0, 0>} : (!temp) -> f64
    %5 = "stencil.access"(%a) {offset = array<i64: 1, 0>} : (!temp) -> f64
    %6 = "stencil.access"(%a) {offset = array<i64: 2, 0>} : (!temp) -> f64
    %7 = "stencil.access"(%a) {offset = array<i64: 3, 0>} : (!temp) -> f64
    %8 = "stencil.access"(%a) {offset = array<i64: 4, 0>} : (!temp) -> f64
    %a0 = arith.maximumf %0, %1 : f64
    %a1 = arith.maximumf %a0, %2 : f64
    %a2 = arith.maximumf %a1, %3 : f64
    %a3 = arith.maximumf %a2, %4 : f64
    %a4 = arith.maximumf %a3, %5 : f64
    %a5 = arith.maximumf %a4, %6 : f64
    %a6 = arith.maximumf %a5, %7 : f64
    %a7 = arith.maximumf %a6, %8 : f64
    "stencil.return"(%a7) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// A point and the one below it: rows of four planes have three of five vectors in common. What
// shares nothing is computed row by row.

// INTEL-LABEL: func.func @below_kernel0(
// INTEL: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4{{.*}} {
// INTEL: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1{{.*}} {
// INTEL: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8{{.*}} {
// INTEL-COUNT-5: vector.load
// INTEL-NOT: vector.load
// INTEL-COUNT-4: vector.store
// INTEL-NEXT: }
// CHECK-LABEL: func.func @below_kernel0(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-2: vector.load
// CHECK-COUNT-1: vector.store
// CHECK-NEXT: }
func.func @below(%a: !cube) -> !core {
  %r = "stencil.apply"() ({
    %x = "stencil.access"(%a) {offset = array<i64: 0, 0, 0>} : (!cube) -> f64
    %y = "stencil.access"(%a) {offset = array<i64: -1, 0, 0>} : (!cube) -> f64
    %m = arith.maximumf %x, %y : f64
    "stencil.return"(%m) : (f64) -> ()
  }) : () -> !core
  return %r : !core
}

// INTEL-LABEL: func.func @square_kernel0(
// INTEL: scf.for
// INTEL: scf.for
// INTEL: scf.for
// INTEL-COUNT-1: vector.load
// INTEL-COUNT-1: vector.store
// INTEL-NEXT: }
func.func @square(%a: !cube) -> !core {
  %r = "stencil.apply"() ({
    %x = "stencil.access"(%a) {offset = array<i64: 0, 0, 0>} : (!cube) -> f64
    %m = arith.mulf %x, %x : f64
    "stencil.return"(%m) : (f64) -> ()
  }) : () -> !core
  return %r : !core
}
