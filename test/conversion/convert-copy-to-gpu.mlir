// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-copy-to-gpu=chip=sm_90 | filecheck %s

// Views of both memrefs go to one kernel for each element type and rank. A block copies 4 rows of 64.

// CHECK-LABEL: func.func @two(
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<9x70xf32>, %[[B:[a-z0-9]+]]: memref<9x70xf32, strided<[80, 1], offset: 81>>
// CHECK-NEXT: %[[FROM:.*]] = memref.cast %[[A]] : memref<9x70xf32> to memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK-NEXT: %[[TO:.*]] = memref.cast %[[B]] : memref<9x70xf32, strided<[80, 1], offset: 81>> to memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK-DAG: %[[BLOCKS:.*]] = arith.constant 6 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 256 : index
// CHECK: gpu.launch_func @kernels::@copy_f32_2d blocks in (%[[BLOCKS]], %{{.*}}, %{{.*}}) threads in (%[[THREADS]], %{{.*}}, %{{.*}}) {{.*}} args(%[[FROM]] : {{.*}}, %[[TO]] : {{.*}})
// CHECK: gpu.launch_func @kernels::@copy_f32_2d
// CHECK: gpu.launch_func @kernels::@copy_i8_1d
// CHECK-NOT: memref.copy

// CHECK: gpu.module @kernels [#nvvm.target<chip = "sm_90">]
// CHECK: gpu.func @copy_f32_2d(%[[IN:[a-z0-9]+]]: memref<?x?xf32, strided<[?, 1], offset: ?>>, %[[OUT:[a-z0-9]+]]: memref<?x?xf32, strided<[?, 1], offset: ?>>) kernel
// CHECK-SAME: stencil.kernel_inputs = 1 : i64
// CHECK-SAME: stencil.launch = {alignment = 4 : i64, march = 1 : i64, shared_bytes = 0 : i64, tile = array<i64: 4, 64>}
// CHECK: scf.if
// CHECK-NEXT: %[[X:.*]] = memref.load %[[IN]][%[[I:.*]], %[[J:.*]]]
// CHECK-NEXT: memref.store %[[X]], %[[OUT]][%[[I]], %[[J]]]
// CHECK: gpu.func @copy_i8_1d(
// CHECK-NOT: gpu.func
func.func @two(%a: memref<9x70xf32>, %b: memref<9x70xf32, strided<[80, 1], offset: 81>>, %c: memref<5xi8>, %d: memref<5xi8>) {
  memref.copy %a, %b : memref<9x70xf32> to memref<9x70xf32, strided<[80, 1], offset: 81>>
  memref.copy %b, %a : memref<9x70xf32, strided<[80, 1], offset: 81>> to memref<9x70xf32>
  memref.copy %c, %d : memref<5xi8> to memref<5xi8>
  return
}

// -----

func.func @dynamic(%a: memref<?xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{'memref.copy' op expected a copy of static rows to static rows, got memref<?xf32> to memref<4xf32>}}
  memref.copy %a, %b : memref<?xf32> to memref<4xf32>
  return
}

// -----

func.func @columns(%a: memref<4xf32>, %b: memref<4xf32, strided<[2]>>) {
  // expected-error @+1 {{expected a copy of static rows to static rows}}
  memref.copy %a, %b : memref<4xf32> to memref<4xf32, strided<[2]>>
  return
}

// -----

func.func @quads(%a: memref<4xf128>, %b: memref<4xf128>) {
  // expected-error @+1 {{'memref.copy' op expected an element type out of f16, bf16, f32, f64, i1, i8, i16, i32, i64, index, got 'f128'}}
  memref.copy %a, %b : memref<4xf128> to memref<4xf128>
  return
}

// -----

// Each module has the kernels that its functions launch.

// CHECK: module @one attributes {gpu.container_module}
// CHECK: gpu.launch_func @kernels::@copy_f64_1d
// CHECK: gpu.func @copy_f64_1d
// CHECK: module @other attributes {gpu.container_module}
// CHECK: gpu.launch_func @kernels::@copy_f64_1d
// CHECK: gpu.func @copy_f64_1d
module @one {
  func.func @f(%a: memref<8xf64>, %b: memref<8xf64>) {
    memref.copy %a, %b : memref<8xf64> to memref<8xf64>
    return
  }
}
module @other {
  func.func @f(%a: memref<8xf64>, %b: memref<8xf64>) {
    memref.copy %a, %b : memref<8xf64> to memref<8xf64>
    return
  }
}

// -----

func.func @unranked(%a: memref<*xf32>, %b: memref<*xf32>) {
  // expected-error @+1 {{'memref.copy' op expected a copy of static rows to static rows, got memref<*xf32> to memref<*xf32>}}
  memref.copy %a, %b : memref<*xf32> to memref<*xf32>
  return
}
