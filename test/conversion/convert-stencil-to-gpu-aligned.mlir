// RUN: twofour-opt %s --split-input-file --convert-stencil-to-gpu="chip=sm_90 aligned=true" | filecheck %s

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [65, 1025]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [64, 1024]>, f32>

// A block of 8 rows has 128 columns, of which a thread has four: eight times eight blocks.

// CHECK-LABEL: func.func @sum(
// CHECK: %[[BLOCKS:.*]] = arith.constant 64 : index
// CHECK: gpu.launch_func @kernels::@sum_kernel0 blocks in (%[[BLOCKS]],
// CHECK: gpu.func @sum_kernel0(
// CHECK-SAME: stencil.launch = {alignment = 16 : i64, march = 1 : i64, shared_bytes = 0 : i64, tile = array<i64: 8, 128>}
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4.000000e+00 : f32
// CHECK-DAG: %[[CONSTANT:.*]] = arith.constant 5.000000e-01 : f32

// Where all of a vector exists: outputs lie one beyond the lowest input of a row, and so does the
// first vector that is read. The row of the outputs takes the last element of the vector before,
// the row below the first one of the vector behind.

// CHECK: scf.if
// CHECK: %[[ABOVE:[0-9]+]]:4 = nvvm.inline_ptx "ld.global.v4.b32 {{.*}}+4];"
// CHECK-COUNT-4: llvm.intr.fma(%[[ONE]], %[[ABOVE]]#{{[0-3]}}, %[[CONSTANT]])
// CHECK: %[[LEFT:[0-9]+]]:4 = nvvm.inline_ptx "ld.global.v4.b32 {{.*}}+-12];"
// CHECK: llvm.intr.fma(%[[TWO]], %[[LEFT]]#3, %{{.*}})
// CHECK: %[[ROW:[0-9]+]]:4 = nvvm.inline_ptx "ld.global.v4.b32 {{.*}}+4];"
// CHECK-COUNT-3: llvm.intr.fma(%[[TWO]], %[[ROW]]#{{[0-2]}}, %{{.*}})
// CHECK: %[[BELOW:[0-9]+]]:4 = nvvm.inline_ptx "ld.global.v4.b32 {{.*}}+4];"
// CHECK-COUNT-3: llvm.intr.fma(%[[FOUR]], %[[BELOW]]#{{[1-3]}}, %{{.*}})
// CHECK: %[[RIGHT:[0-9]+]]:4 = nvvm.inline_ptx "ld.global.v4.b32 {{.*}}+20];"
// CHECK: llvm.intr.fma(%[[FOUR]], %[[RIGHT]]#0, %{{.*}})
// CHECK: vector.store %{{.*}}, %{{.*}}[%{{.*}}] {alignment = 16 : i64} : memref<?xf32, {{.*}}>, vector<4xf32>

// What a row leaves is computed element by element.

// CHECK: } else {
// CHECK: scf.for
// CHECK-COUNT-3: memref.load %{{.*}} : memref<?xf32
// CHECK: memref.store %{{.*}} : memref<?xf32
func.func @sum(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {constant = 0.5 : f64, offsets = [[-1, 0], [0, -1], [1, 1]], weights = array<f64: 1.0, 2.0, 4.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [1025]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0], [1024]>, f16>

// Eight elements of 16 bits are four words, of which sums are of f32.

// CHECK-LABEL: gpu.func @half_kernel0(
// CHECK-SAME: tile = array<i64: 2048>
// CHECK: %[[WORDS:[0-9]+]]:4 = nvvm.inline_ptx "ld.global.v4.b32 {{.*}} -> i32, i32, i32, i32
// CHECK: vector.bitcast %{{.*}} : vector<4xi32> to vector<8xf16>
// CHECK: arith.extf
// CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
// CHECK: vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf16>
func.func @half(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 1.0, 2.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[0], [1024]>, f64>

// Fields of sums with an addend may be aligned differently, and so may those of several sums.

// CHECK-LABEL: gpu.func @added_kernel0(
// CHECK-SAME: alignment = 8 : i64
// CHECK-NOT: inline_ptx
func.func @added(%t: !temp, %s: !temp) -> !temp {
  %r = "stencil.weighted_sum"(%t, %s) {offsets = [[0]], weights = array<f64: 2.0>} : (!temp, !temp) -> !temp
  return %r : !temp
}

// -----

!temp = !stencil.temp<#stencil.bounds<[0], [1024]>, f64>

// CHECK-LABEL: gpu.func @several_kernel0(
// CHECK-SAME: alignment = 8 : i64
// CHECK-NOT: inline_ptx
func.func @several(%t: !temp, %s: !temp) -> !temp {
  %u = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 2.0>} : (!temp) -> !temp
  %r = "stencil.weighted_sum"(%s, %u) {offsets = [[0]], weights = array<f64: 3.0>} : (!temp, !temp) -> !temp
  return %r : !temp
}
