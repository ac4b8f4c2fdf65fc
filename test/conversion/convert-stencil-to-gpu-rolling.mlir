// RUN: twofour-opt %s --split-input-file --convert-stencil-to-gpu="chip=sm_90 rolling=true ring=false" | filecheck %s

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [65, 1025]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [64, 1024]>, f32>

// A block of four warps has 512 columns; its marches of 14 rows are five, in two strips.

// CHECK-LABEL: func.func @sum(
// CHECK: %[[BLOCKS:.*]] = arith.constant 10 : index
// CHECK: gpu.launch_func @kernels::@sum_kernel0 blocks in (%[[BLOCKS]],
// CHECK-SAME: dynamic_shared_memory_size %c0_i32
// CHECK: gpu.func @sum_kernel0(
// CHECK-SAME: nvvm.minctasm = [[RESIDENT:[0-9]+]] : i32
// CHECK-SAME: stencil.launch = {alignment = 32 : i64, march = {{[0-9]+}} : i64, resident = [[RESIDENT]] : i64, shared_bytes = 0 : i64, tile = array<i64: 1, 512>}
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4.000000e+00 : f32
// CHECK-DAG: %[[CONSTANT:.*]] = arith.constant 5.000000e-01 : f32

// The first row of inputs meets the first row of outputs only, by its own column.

// CHECK: nvvm.inline_ptx "ld.global.L2::256B.v4.b32 {{[{][{][$]}}w0}, {$w1}, {$w2}, {$w3}}, [{$r0}+-16];"
// CHECK: %[[ROW:[0-9]+]]:4 = nvvm.inline_ptx "ld.global.L2::256B.v4.b32 {{.*}}+0];"
// CHECK-COUNT-4: llvm.intr.fma(%[[ONE]], %[[ROW]]#{{[0-3]}}, %[[CONSTANT]])
// CHECK: nvvm.inline_ptx "ld.global.L2::256B.v4.b32 {{.*}}+16];"

// In the main loop a row of inputs begins a row of outputs, is added to the next one from its left,
// and to the oldest from its right, by the column beyond this lane's for the last.

// CHECK: scf.for
// CHECK: %[[ROW:[0-9]+]]:4 = nvvm.inline_ptx "ld.global.L2::256B.v4.b32 {{.*}}+0];"
// CHECK-COUNT-4: llvm.intr.fma(%[[ONE]], %[[ROW]]#{{[0-3]}}, %[[CONSTANT]])
// CHECK-COUNT-3: llvm.intr.fma(%[[TWO]], %[[ROW]]#{{[0-2]}}, %{{.*}})
// CHECK-COUNT-3: llvm.intr.fma(%[[FOUR]], %[[ROW]]#{{[1-3]}}, %{{.*}})
// CHECK: %[[RIGHT:[0-9]+]]:4 = nvvm.inline_ptx "ld.global.L2::256B.v4.b32 {{.*}}+16];"
// CHECK: llvm.intr.fma(%[[FOUR]], %[[RIGHT]]#0, %{{.*}})
// CHECK: vector.store %{{.*}}, %{{.*}}[%{{.*}}] {alignment = 16 : i64} : memref<?xf32, {{.*}}>, vector<4xf32>
// CHECK: scf.yield
func.func @sum(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {constant = 0.5 : f64, offsets = [[-1, 0], [0, -1], [1, 1]], weights = array<f64: 1.0, 2.0, 4.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [1025]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [1024]>, f64>

// Sums of two fields have threads with points of their own.

// CHECK-LABEL: func.func @two(
// CHECK: gpu.func @two_kernel0(
// CHECK-SAME: alignment = 8 : i64
// CHECK-NOT: nvvm.inline_ptx
func.func @two(%a: !temp, %b: !temp) -> !inner {
  %s = "stencil.weighted_sum"(%a) {offsets = [[-1], [1]], weights = array<f64: 1.0, 2.0>} : (!temp) -> !inner
  %r = "stencil.weighted_sum"(%b, %s) {offsets = [[0]], weights = array<f64: 4.0>} : (!temp, !inner) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[0, 0, 0, 0], [4, 4, 4, 4]>, f64>

// Nothing marches in four dimensions.

// CHECK-LABEL: func.func @four(
// CHECK: gpu.func @four_kernel0(
// CHECK-SAME: alignment = 8 : i64
func.func @four(%a: !temp) -> !temp {
  %r = "stencil.weighted_sum"(%a) {offsets = [[0, 0, 0, 0]], weights = array<f64: 2.0>} : (!temp) -> !temp
  return %r : !temp
}
