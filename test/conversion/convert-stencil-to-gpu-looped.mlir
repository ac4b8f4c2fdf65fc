// RUN: twofour-opt %s --convert-stencil-to-gpu="chip=sm_90 rolling=true ring=true" | filecheck %s

!temp = !stencil.temp<#stencil.bounds<[-16, -1], [78, 1025]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [64, 1024]>, f32>

// 33 terms: all steps of a march are one loop, with the sums of 31 rows of outputs.

// CHECK-LABEL: func.func @sum(
// CHECK: gpu.func @sum_kernel0(
// CHECK-DAG: %[[LAST:.*]] = arith.constant 1.400000e+01 : f32
// CHECK-DAG: %[[FIRST:.*]] = arith.constant -1.600000e+01 : f32
// CHECK-DAG: %[[CONSTANT:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32

// Rows of outputs before the first begin as anything.

// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for {{.*}} iter_args(%[[OLDEST:[^ ]+]] = %[[ZERO]],

// A row of inputs completes the oldest row of outputs, and begins one last.

// CHECK: %[[ROW:[0-9]+]]:4 = nvvm.inline_ptx "ld.shared.v4.b32
// CHECK: %[[ROW:[0-9]+]]:4 = nvvm.inline_ptx "ld.shared.v4.b32
// CHECK: %[[COMPLETE:.*]] = llvm.intr.fma(%[[LAST]], %[[ROW]]#0, %[[OLDEST]])
// CHECK-COUNT-4: llvm.intr.fma(%[[FIRST]], %[[ROW]]#{{[0-3]}}, %[[CONSTANT]])

// The first 30 steps write nothing.

// CHECK: %[[WANTED:.*]] = arith.cmpi slt, %c30, %{{.*}} : index
// CHECK: scf.if %[[WANTED]] {
// CHECK-NEXT: vector.store
// CHECK-NOT: scf.for
// CHECK: nvvm.cp.async.wait.group 0
func.func @sum(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {constant = 0.5 : f64, offsets = [[-16, 0], [-15, 0], [-14, 0], [-13, 0], [-12, 0], [-11, 0], [-10, 0], [-9, 0], [-8, 0], [-7, 0], [-6, 0], [-5, 0], [-4, 0], [-3, 0], [-2, 0], [-1, 0], [0, -1], [0, 0], [0, 1], [1, 0], [2, 0], [3, 0], [4, 0], [5, 0], [6, 0], [7, 0], [8, 0], [9, 0], [10, 0], [11, 0], [12, 0], [13, 0], [14, 0]], weights = array<f64: -16.0, -15.0, -14.0, -13.0, -12.0, -11.0, -10.0, -9.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.5, 1.0, 1.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0>} : (!temp) -> !inner
  return %r : !inner
}
