// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-add-boundary-kernels="chip=sm_90 rank=2 bits=16,64,16" --canonicalize | filecheck %s
// RUN: twofour-opt %s --split-input-file --stencil-add-boundary-kernels="chip=sm_90 rank=2 bits=64" --stencil-add-boundary-kernels="chip=sm_90 rank=2 bits=64" | filecheck %s --check-prefix=AGAIN
// RUN: twofour-opt %s --split-input-file --stencil-add-boundary-kernels="rank=3 bits=8" | filecheck %s --check-prefix=THREE

// One kernel for each size of elements, beside those that are there. A thread finds its cell in one of
// two slabs: above and below the interior, whole rows; beside it, rows of the interior.

// AGAIN: gpu.func @refresh_halo_64_2d(
// AGAIN-NOT: gpu.func @refresh_halo_64_2d(

// CHECK: gpu.module @kernels [#nvvm.target<chip = "sm_90">]
// CHECK: gpu.func @refresh_halo_16_2d(
// CHECK-SAME: %[[IN:[a-z0-9]+]]: memref<?x?xi16, strided<[?, 1], offset: ?>>,
// CHECK-SAME: %[[MODE0:[a-z0-9]+]]: i32, %[[LOWER0:[a-z0-9]+]]: index, %[[UPPER0:[a-z0-9]+]]: index, %[[VALUE0:[a-z0-9]+]]: i16,
// CHECK-SAME: %[[MODE1:[a-z0-9]+]]: i32, %[[LOWER1:[a-z0-9]+]]: index, %[[UPPER1:[a-z0-9]+]]: index, %[[VALUE1:[a-z0-9]+]]: i16,
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<?x?xi16, strided<[?, 1], offset: ?>>) kernel
// CHECK-SAME: stencil.kernel_inputs = 1 : i64, stencil.launch = {alignment = 2 : i64, march = 1 : i64, shared_bytes = 0 : i64, tile = array<i64: 1, 256>}
// CHECK-DAG: %[[ROWS:.*]] = memref.dim %[[OUT]], %c0
// CHECK-DAG: %[[COLUMNS:.*]] = memref.dim %[[OUT]], %c1
// CHECK-DAG: %[[INSIDE0:.*]] = arith.subi %[[UPPER0]], %[[LOWER0]]
// CHECK-DAG: %[[OUTSIDE0:.*]] = arith.subi %[[ROWS]], %[[INSIDE0]]
// CHECK-DAG: %[[INSIDE1:.*]] = arith.subi %[[UPPER1]], %[[LOWER1]]
// CHECK-DAG: %[[OUTSIDE1:.*]] = arith.subi %[[COLUMNS]], %[[INSIDE1]]
// CHECK-DAG: %[[SLAB0:.*]] = arith.muli %[[OUTSIDE0]], %[[COLUMNS]]
// CHECK-DAG: %[[SLAB1:.*]] = arith.muli %[[OUTSIDE1]], %[[INSIDE0]]
// CHECK: %[[CELLS:.*]] = arith.addi %[[SLAB0]], %[[SLAB1]]
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[NUMBER:.*]], %[[CELLS]]
// CHECK-NEXT: scf.if %[[EXISTS]] {
// CHECK: arith.cmpi uge, %[[NUMBER]], %[[SLAB0]]

// The last axis that fills decides on the value; all else is read where every axis sends the cell.
// CHECK: %[[CONSTANT0:.*]] = arith.cmpi eq, %[[MODE0]], %c1_i32
// CHECK-NEXT: %[[FILLS0:.*]] = arith.andi %{{.*}}, %[[CONSTANT0]]
// CHECK: %[[CONSTANT1:.*]] = arith.cmpi eq, %[[MODE1]], %c1_i32
// CHECK-NEXT: %[[FILLS1:.*]] = arith.andi %{{.*}}, %[[CONSTANT1]]
// CHECK: %[[VALUE:.*]] = arith.select %[[FILLS1]], %[[VALUE1]], %[[VALUE0]] : i16
// CHECK: %[[FILLS:.*]] = arith.ori %[[FILLS0]], %[[FILLS1]] : i1
// CHECK: %[[CELL:.*]] = scf.if %[[FILLS]] -> (i16) {
// CHECK-NEXT: scf.yield %[[VALUE]] : i16
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[READ:.*]] = memref.load %[[IN]][%{{.*}}, %{{.*}}] {alignment = 2 : i64}
// CHECK-NEXT: scf.yield %[[READ]] : i16
// CHECK-NEXT: }
// CHECK-NEXT: memref.store %[[CELL]], %[[OUT]][%{{.*}}, %{{.*}}] {alignment = 2 : i64}
// CHECK: gpu.func @refresh_halo_64_2d(
// CHECK-NOT: gpu.func

// THREE: gpu.func @refresh_halo_8_3d(%{{.*}}: memref<?x?x?xi8, strided<[?, ?, 1], offset: ?>>
// THREE-SAME: tile = array<i64: 1, 1, 256>
module {
}
