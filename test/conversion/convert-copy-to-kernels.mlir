// RUN: twofour-opt %s --split-input-file --convert-copy-to-kernels | filecheck %s

// Views of both memrefs go to one kernel of the function for each element type and rank, with all rows.

// CHECK-LABEL: func.func @two(
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<9x70xf32>, %[[B:[a-z0-9]+]]: memref<9x70xf32, strided<[80, 1], offset: 81>>
// CHECK-DAG: %[[FROM:.*]] = memref.cast %[[A]] : memref<9x70xf32> to memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK-DAG: %[[TO:.*]] = memref.cast %[[B]] : memref<9x70xf32, strided<[80, 1], offset: 81>> to memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK-DAG: %[[BEGIN:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[END:.*]] = arith.constant 9 : index
// CHECK: call @two_kernel0(%[[FROM]], %[[TO]], %[[BEGIN]], %[[END]])
// CHECK: call @two_kernel0(
// CHECK: call @two_kernel1(
// CHECK-NOT: memref.copy

// CHECK: func.func @two_kernel0(%[[IN:[a-z0-9]+]]: memref<?x?xf32, strided<[?, 1], offset: ?>>, %[[OUT:[a-z0-9]+]]: memref<?x?xf32, strided<[?, 1], offset: ?>>, %[[FIRST:[a-z0-9]+]]: index, %[[LAST:[a-z0-9]+]]: index)
// CHECK-SAME: stencil.kernel_inputs = 1 : i64
// CHECK: %[[COLUMNS:.*]] = memref.dim %[[OUT]]
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %[[LAST]]
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %[[COLUMNS]]
// CHECK-NEXT: %[[X:.*]] = memref.load %[[IN]][%[[I]], %[[J]]]
// CHECK-NEXT: memref.store %[[X]], %[[OUT]][%[[I]], %[[J]]]
// CHECK: func.func @two_kernel1(
// CHECK-NOT: func.func
func.func @two(%a: memref<9x70xf32>, %b: memref<9x70xf32, strided<[80, 1], offset: 81>>, %c: memref<5xi8>, %d: memref<5xi8>) {
  memref.copy %a, %b : memref<9x70xf32> to memref<9x70xf32, strided<[80, 1], offset: 81>>
  memref.copy %b, %a : memref<9x70xf32, strided<[80, 1], offset: 81>> to memref<9x70xf32>
  memref.copy %c, %d : memref<5xi8> to memref<5xi8>
  return
}

// -----

// Rows whose number is not known.

// CHECK-LABEL: func.func @dynamic(
// CHECK: %[[ROWS:.*]] = memref.dim
// CHECK: call @dynamic_kernel0(%{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS]])
func.func @dynamic(%a: memref<?x4xf64>, %b: memref<?x4xf64>) {
  memref.copy %a, %b : memref<?x4xf64> to memref<?x4xf64>
  return
}

// -----

// Every other element: no row of neighbouring ones.

// CHECK-LABEL: func.func @columns(
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<4xf32>, %[[B:[a-z0-9]+]]: memref<4xf32, strided<[2]>>
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK-NEXT: %[[X:.*]] = memref.load %[[A]][%[[I]]]
// CHECK-NEXT: memref.store %[[X]], %[[B]][%[[I]]]
// CHECK-NOT: func.func
func.func @columns(%a: memref<4xf32>, %b: memref<4xf32, strided<[2]>>) {
  memref.copy %a, %b : memref<4xf32> to memref<4xf32, strided<[2]>>
  return
}

// -----

// CHECK-LABEL: func.func @one(
// CHECK: %[[X:.*]] = memref.load %{{.*}}[]
// CHECK-NEXT: memref.store %[[X]], %{{.*}}[]
func.func @one(%a: memref<f32>, %b: memref<f32>) {
  memref.copy %a, %b : memref<f32> to memref<f32>
  return
}

// -----

// Functions have kernels of their own, of names that no other function has.

// CHECK-LABEL: func.func @f(
// CHECK: call @f_kernel1(
// CHECK-LABEL: func.func @f_kernel0(
// CHECK: call @f_kernel0_kernel0(
// CHECK: func.func @f_kernel1(
// CHECK: func.func @f_kernel0_kernel0(
func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  return
}

func.func @f_kernel0(%a: memref<4xf32>, %b: memref<4xf32>) {
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  return
}

// -----

// So have those of other modules.

// CHECK: module @a {
// CHECK: call @f_kernel0(
// CHECK: func.func @f_kernel0(
// CHECK: module @b {
// CHECK: call @f_kernel0(
// CHECK: func.func @f_kernel0(
module @a {
  func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
    memref.copy %a, %b : memref<4xf32> to memref<4xf32>
    return
  }
}
module @b {
  func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
    memref.copy %a, %b : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

// Layouts without strides have no rows.

// CHECK-LABEL: func.func @halves(
// CHECK-NOT: call
// CHECK: memref.store
#halves = affine_map<(i, j) -> (i floordiv 2, j, i mod 2)>
func.func @halves(%a: memref<4x4xf32>, %b: memref<4x4xf32, #halves>) {
  memref.copy %a, %b : memref<4x4xf32> to memref<4x4xf32, #halves>
  return
}
