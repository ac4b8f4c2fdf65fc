// RUN: twofour-opt %s --split-input-file --stencil-time-tile='steps=8 extents=48,512' | filecheck %s
// RUN: not twofour-opt %s --stencil-time-tile=steps=0 2>&1 | filecheck %s --check-prefix=STEPS
// RUN: not twofour-opt %s --stencil-time-tile=extents=4,0 2>&1 | filecheck %s --check-prefix=EXTENTS
// RUN: twofour-opt %S/../../../docs/examples/heat2d.mlir --stencil-extract-weights --stencil-time-tile | filecheck %s --check-prefix=UNKNOWN

// Bounds need not be known yet.
// UNKNOWN: attributes {stencil.time_tile = array<i64: 4, 64, 512>}

// STEPS: error: expected a positive number of steps, got 0
// EXTENTS: error: expected positive extents, got [4, 0]

!field = !stencil.field<#stencil.bounds<[-1, -1], [65, 65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1, -1], [65, 65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [64, 64]>, f64>

// The function keeps its one step, and says how many are taken of which part at once.

// CHECK-LABEL: func.func @step(
// CHECK-SAME: attributes {stencil.time_tile = array<i64: 8, 48, 512>}
// CHECK-COUNT-1: "stencil.weighted_sum"
// CHECK-NOT: "stencil.weighted_sum"
func.func @step(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1, 0], [0, 1]], weights = array<f64: 1.0, 2.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [64, 64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

// Another rank, and two steps in one function, are left alone.

// CHECK-LABEL: func.func @line(
// CHECK-NOT: stencil.time_tile
func.func @line(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1]], weights = array<f64: 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// CHECK-LABEL: func.func @copies(
// CHECK-NOT: stencil.time_tile
func.func @copies(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  "stencil.store"(%t, %v) {bounds = #stencil.bounds<[-1], [65]>} : (!temp, !field) -> ()
  return
}
