// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-gpu=chip=sm_90 | filecheck %s

!temp = !stencil.temp<#stencil.bounds<[-2], [1030]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [1025]>, f64>

// The function launches a kernel on the part of the input that the sum reads: [-1,1027] of
// [-2,1030]. A block writes 1024 points.

// CHECK-LABEL: func.func @sum(
// CHECK: memref.subview %{{.*}}[1] [1028] [1]
// CHECK-NEXT: %[[IN:.*]] = memref.cast
// CHECK-NEXT: %[[ALLOC:.*]] = memref.alloc() : memref<1025xf64>
// CHECK-NEXT: %[[OUT:.*]] = memref.cast %[[ALLOC]]
// CHECK-DAG: %[[BLOCKS:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 256 : index
// CHECK: gpu.launch_func @kernels::@sum_kernel0 blocks in (%[[BLOCKS]], %{{.*}}, %{{.*}}) threads in (%[[THREADS]], %{{.*}}, %{{.*}}) {{.*}} args(%[[IN]] : memref<?xf64, strided<[1], offset: ?>>, %[[OUT]] : memref<?xf64, strided<[1], offset: ?>>)

// CHECK: gpu.module @kernels [#nvvm.target<chip = "sm_90">]
// CHECK: gpu.func @sum_kernel0(%[[IN:[a-z0-9]+]]: memref<?xf64, strided<[1], offset: ?>>, %[[OUT:[a-z0-9]+]]: memref<?xf64, strided<[1], offset: ?>>) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME: stencil.kernel_inputs = 1 : i64
// CHECK-SAME: stencil.launch = {alignment = 8 : i64, march = 1 : i64, shared_bytes = 0 : i64, tile = array<i64: 1024>}
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[C256:.*]] = arith.constant 256 : index
// CHECK-DAG: %[[C768:.*]] = arith.constant 768 : index
// CHECK-DAG: %[[C1024:.*]] = arith.constant 1024 : index
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2.000000e+00 : f64
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f64
// CHECK-DAG: %[[CONSTANT:.*]] = arith.constant 5.000000e-01 : f64
// CHECK-DAG: %[[SIZE:.*]] = memref.dim %[[OUT]]

// Lanes are neighbours, and the four points of a thread lie 256 apart. Terms are added from the
// lowest offset on, by fused multiply-adds that start from the constant. Index 0 of the input is
// offset -1.

// CHECK: %[[BLOCK:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK-NEXT: %[[START:.*]] = arith.muli %[[BLOCK]], %[[C1024]]
// CHECK-NEXT: %[[X:.*]] = arith.addi %[[START]], %{{.*}}
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %[[X]], %[[C768]]
// CHECK-NEXT: %[[ALL:.*]] = arith.cmpi slt, %[[LAST]], %[[SIZE]]
// CHECK-NEXT: scf.if %[[ALL]] {
// CHECK-COUNT-8: llvm.intr.fma
// CHECK-COUNT-4: memref.store
// CHECK-NOT: memref.store

// Where not all of them exist, they are computed one by one.

// CHECK: } else {
// CHECK-NEXT: scf.for %[[I:[a-z0-9]+]] = %[[X]] to %[[SIZE]] step %[[C256]] {
// CHECK-NEXT: %[[A:.*]] = memref.load %{{.*}}[%[[I]]]
// CHECK-NEXT: %[[FIRST:.*]] = llvm.intr.fma(%[[ONE]], %[[A]], %[[CONSTANT]])
// CHECK-NEXT: %[[J:.*]] = arith.addi %[[I]], %[[C3]]
// CHECK-NEXT: %[[B:.*]] = memref.load %{{.*}}[%[[J]]]
// CHECK-NEXT: %[[SUM:.*]] = llvm.intr.fma(%[[TWO]], %[[B]], %[[FIRST]])
// CHECK-NEXT: memref.store %[[SUM]], %{{.*}}[%[[I]]]
// CHECK-NOT: stencil.weighted_sum
func.func @sum(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {constant = 0.5 : f64, offsets = [[-1], [2]], weights = array<f64: 1.0, 2.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1, -1, -1], [9, 65, 65]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0, 0, 0], [8, 64, 64]>, f16>

// 16-bit elements are summed in f32. A thread computes eight rows, in which a column of three
// points reaches ten inputs, not 24; a block has rows of one plane.

// CHECK-LABEL: func.func @rows(
// CHECK: gpu.func @rows_kernel0(
// CHECK-SAME: tile = array<i64: 1, 64, 32>
// CHECK: scf.if
// CHECK: scf.if
// CHECK-COUNT-10: arith.extf %{{.*}} : f16 to f32
// CHECK-NOT: arith.extf
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT: memref.store
// CHECK-COUNT-7: memref.store
// CHECK: } else {
func.func @rows(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {offsets = [[0, -1, 0], [0, 0, 0], [0, 1, 0]], weights = array<f64: 1.0, 2.0, 1.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f32>

// A chain over two temps and an addend is one kernel with three inputs.

// CHECK-LABEL: func.func @chain(
// CHECK: gpu.launch_func @kernels::@chain_kernel0
// CHECK-NOT: gpu.launch_func
// CHECK: gpu.func @chain_kernel0(
// CHECK-SAME: stencil.kernel_inputs = 3 : i64
// CHECK: scf.for
// CHECK: %[[C:.*]] = memref.load
// CHECK: %[[A:.*]] = memref.load
// CHECK: %[[SUM:.*]] = llvm.intr.fma(%{{.*}}, %[[A]], %[[C]])
// CHECK: %[[B:.*]] = memref.load
// CHECK: llvm.intr.fma(%{{.*}}, %[[B]], %[[SUM]])
func.func @chain(%t: !temp, %u: !temp, %c: !inner) -> !inner {
  %s = "stencil.weighted_sum"(%t, %c) {offsets = [[-1]], weights = array<f64: 2.0>} : (!temp, !inner) -> !inner
  %r = "stencil.weighted_sum"(%u, %s) {offsets = [[1]], weights = array<f64: 3.0>} : (!temp, !inner) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [9, 17]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [8, 16]>, f64>

// The region of an apply is computed for each of the four rows of a thread, or row by row at the end.
// Index 0 of the input is offset [-1, 1]; functions are intrinsics that PTX has instructions for. All
// rows are read before the first is written.

// CHECK-LABEL: func.func @apply(
// CHECK-SAME: %[[K:[a-z0-9]+]]: f64
// CHECK: memref.subview %{{.*}}[0, 1] [10, 17] [1, 1]
// CHECK: gpu.launch_func @kernels::@apply_kernel0 {{.*}} args(%{{.*}} : memref<?x?xf64, strided<[?, 1], offset: ?>>, %[[K]] : f64, %{{.*}} : memref<?x?xf64, strided<[?, 1], offset: ?>>)
// CHECK: gpu.func @apply_kernel0(%[[IN:[a-z0-9]+]]: memref<?x?xf64, strided<[?, 1], offset: ?>>, %[[SCALAR:[a-z0-9]+]]: f64, %[[OUT:[a-z0-9]+]]: memref<?x?xf64, strided<[?, 1], offset: ?>>) kernel
// CHECK-SAME: stencil.in_place
// CHECK-SAME: tile = array<i64: 16, 64>
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[J:.*]], %{{.*}} : index
// CHECK-NEXT: scf.if %[[INSIDE]] {
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %[[I:.*]], %[[C3]]
// CHECK-NEXT: %[[WHOLE:.*]] = arith.cmpi slt, %[[LAST]], %{{.*}} : index
// CHECK-NEXT: scf.if %[[WHOLE]] {
// CHECK-NEXT: %[[SECOND:.*]] = arith.addi %[[I]], %[[C1]]
// CHECK: %[[A:.*]] = memref.load %[[IN]][%[[I]], %[[J]]]
// CHECK-NEXT: %[[I2:.*]] = arith.addi %[[I]], %[[C2]]
// CHECK-NEXT: %[[J1:.*]] = arith.addi %[[J]], %[[C1]]
// CHECK-NEXT: %[[B:.*]] = memref.load %[[IN]][%[[I2]], %[[J1]]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK-NEXT: %[[ROOT:.*]] = llvm.call_intrinsic "llvm.sqrt.f64"(%[[P]])
// CHECK-NEXT: %[[R:.*]] = arith.addf %[[ROOT]], %[[SCALAR]]
// CHECK-NEXT: memref.load %[[IN]][%[[SECOND]], %[[J]]]
// CHECK-COUNT-5: memref.load %[[IN]]
// CHECK-NOT: memref.load
// CHECK: memref.store %[[R]], %[[OUT]][%[[I]], %[[J]]]
// CHECK-NEXT: memref.store %{{.*}}, %[[OUT]][%[[SECOND]], %[[J]]]
// CHECK-COUNT-2: memref.store
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.for %[[ROW:.*]] = %[[I]] to %{{.*}} step %[[C1]] {
// CHECK-COUNT-2: memref.load %[[IN]]
// CHECK: memref.store %{{.*}}, %[[OUT]][%[[ROW]], %[[J]]]
// CHECK-NEXT: }
// CHECK-NOT: "stencil.
func.func @apply(%t: !temp, %k: f64) -> !inner {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1, 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1, 1>} : (!temp) -> f64
    %p = arith.mulf %a, %b : f64
    %s = math.sqrt %p : f64
    %c = arith.addf %s, %k : f64
    "stencil.return"(%c) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// -----

!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f64>

func.func @library(%t: !inner) -> !inner {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!inner) -> f64
    %i = arith.fptosi %a : f64 to i64
    // expected-error @+1 {{'math.ipowi' op expected an op that the GPU targets have code for}}
    %p = math.ipowi %i, %i : i64
    %e = arith.sitofp %p : i64 to f64
    "stencil.return"(%e) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// -----

!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f64>

// Memrefs that an apply loads from are input views, before the numbers.

// CHECK-LABEL: func.func @table(
// CHECK: gpu.launch_func @kernels::@table_kernel0 {{.*}} args(%{{.*}} : memref<?xf64, strided<[1], offset: ?>>, %{{.*}} : memref<8xf64>, %{{.*}} : f64, %{{.*}} : memref<?xf64, strided<[1], offset: ?>>)
// CHECK: gpu.func @table_kernel0(%{{.*}}: memref<?xf64, strided<[1], offset: ?>>, %[[TABLE:[a-z0-9]+]]: memref<8xf64>, %{{.*}}: f64, %{{.*}}: memref<?xf64, strided<[1], offset: ?>>) kernel
// CHECK-SAME: stencil.kernel_inputs = 2 : i64
// CHECK: memref.load %[[TABLE]][
func.func @table(%t: !inner, %k: f64, %table: memref<8xf64>) -> !inner {
  %r = "stencil.apply"() ({
    %c0 = arith.constant 0 : index
    %x = "stencil.access"(%t) {offset = array<i64: 0>} : (!inner) -> f64
    %y = arith.mulf %x, %k : f64
    %a = memref.load %table[%c0] : memref<8xf64>
    %b = arith.mulf %a, %y : f64
    "stencil.return"(%b) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// -----

!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f64>

func.func @one_number(%t: !inner, %table: memref<f64>) -> !inner {
  // expected-error @+1 {{'stencil.apply' op expected numbers of type f16, bf16, f32, f64, index or integers of at most 64 bits on a GPU, got memref<f64>}}
  %r = "stencil.apply"() ({
    %a = memref.load %table[] : memref<f64>
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<1 : i64, f64>

func.func @unknown_bounds(%t: !temp) -> !temp {
  // expected-error @+1 {{'stencil.weighted_sum' op expected known bounds, got !stencil.temp<1 : i64, f64>; run stencil-infer-bounds}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0>} : (!temp) -> !temp
  return %r : !temp
}

// -----

// Kernels are beside the functions that launch them, also in a module in a module.

// CHECK: module {
// CHECK-NEXT: module attributes {gpu.container_module}
// CHECK: gpu.launch_func @kernels::@nested_kernel0
// CHECK: gpu.module @kernels
// CHECK: gpu.func @nested_kernel0
module {
  module {
    func.func @nested(%t: !stencil.temp<#stencil.bounds<[-1], [65]>, f64>) -> !stencil.temp<#stencil.bounds<[0], [64]>, f64> {
      %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 0.5, 0.5>} : (!stencil.temp<#stencil.bounds<[-1], [65]>, f64>) -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
      return %r : !stencil.temp<#stencil.bounds<[0], [64]>, f64>
    }
  }
}
