// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-loops | filecheck %s

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [9, 17]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [8, 16]>, f64>

// The region becomes the body of loops; index 0 of the input view is offset [-1, 1].

// CHECK-LABEL: func.func @product(
// CHECK: memref.subview %{{.*}}[0, 1] [10, 17] [1, 1]
// CHECK: call @product_kernel0(
// CHECK: func.func @product_kernel0(%[[IN:[a-z0-9]+]]: memref<?x?xf64, strided<[?, 1], offset: ?>>, %[[OUT:[a-z0-9]+]]: memref<?x?xf64, strided<[?, 1], offset: ?>>, %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index)
// CHECK-SAME: stencil.kernel_inputs = 1 : i64}
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK: scf.for %[[I:[a-z0-9]+]] = %[[BEGIN]] to %[[END]] step %[[C1]]
// CHECK-NEXT: %[[WIDTH:.*]] = memref.dim %[[OUT]], %[[C1]]
// CHECK-NEXT: scf.for %[[J:[a-z0-9]+]] = %[[C0]] to %[[WIDTH]] step %[[C1]]
// CHECK-NEXT: %[[A:.*]] = memref.load %[[IN]][%[[I]], %[[J]]]
// CHECK-NEXT: %[[I2:.*]] = arith.addi %[[I]], %[[C2]]
// CHECK-NEXT: %[[J1:.*]] = arith.addi %[[J]], %[[C1]]
// CHECK-NEXT: %[[B:.*]] = memref.load %[[IN]][%[[I2]], %[[J1]]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f64
// CHECK-NEXT: memref.store %[[P]], %[[OUT]][%[[I]], %[[J]]]
// CHECK-NOT: "stencil.
func.func @product(%t: !temp) -> !inner {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1, 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1, 1>} : (!temp) -> f64
    %p = arith.mulf %a, %b : f64
    "stencil.return"(%p) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-5], [9]>, f64>
!inner = !stencil.temp<#stencil.bounds<[-3], [8]>, f64>

// stencil.index counts from the lower bound of the domain: coordinate = loop index - 3, and 2 more.
// Numbers are passed in memory; constants from outside are copied; results are stored one by one.

// CHECK-LABEL: func.func @captured(
// CHECK-SAME: %[[K:[a-z0-9]+]]: f64
// CHECK: %[[PLACE:.*]] = memref.alloca() : memref<f64>
// CHECK: memref.store %[[K]], %[[PLACE]][]
// CHECK: call @captured_kernel0(%{{[a-z0-9_]+}}, %[[PLACE]], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}})
// CHECK: func.func @captured_kernel0(%[[IN:[a-z0-9]+]]: memref<?xf64, strided<[1], offset: ?>>, %[[MEMORY:[a-z0-9]+]]: memref<f64>, %[[R:[a-z0-9]+]]: memref<?xf64, strided<[1], offset: ?>>, %[[S:[a-z0-9]+]]: memref<?xf64, strided<[1], offset: ?>>, %{{.*}}: index, %{{.*}}: index)
// CHECK-SAME: stencil.kernel_inputs = 2 : i64, stencil.uses_index}
// CHECK-DAG: %[[SCALAR:.*]] = memref.load %[[MEMORY]][]
// CHECK-DAG: %[[SHIFT:.*]] = arith.constant -1 : index
// CHECK-DAG: %[[TENTH:.*]] = arith.constant 1.000000e-01 : f64
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[X:.*]] = memref.load %[[IN]][%[[I]]]
// CHECK: arith.mulf %[[X]], %[[TENTH]]
// CHECK: %[[AT:.*]] = arith.addi %[[I]], %[[SHIFT]]
// CHECK: arith.index_cast %[[AT]]
// CHECK: arith.addf %{{.*}}, %[[SCALAR]]
// CHECK: memref.store %{{.*}}, %[[R]][%[[I]]]
// CHECK: memref.store %{{.*}}, %[[S]][%[[I]]]
func.func @captured(%t: !temp, %k: f64) -> (!inner, !inner) {
  %tenth = arith.constant 0.1 : f64
  %r:2 = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -2>} : (!temp) -> f64
    %b = arith.mulf %a, %tenth : f64
    %i = "stencil.index"() {dim = 0 : i64, offset = array<i64: 2>} : () -> index
    %n = arith.index_cast %i : index to i64
    %x = arith.sitofp %n : i64 to f64
    %c = arith.addf %x, %k : f64
    %d = "stencil.store_result"(%c) : (f64) -> !stencil.result<f64>
    %e = "stencil.store_result"(%b) : (f64) -> !stencil.result<f64>
    "stencil.return"(%e, %d) : (!stencil.result<f64>, !stencil.result<f64>) -> ()
  }) : () -> (!inner, !inner)
  return %r#0, %r#1 : !inner, !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-2], [20]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [18]>, f64>

// What the function computes from numbers is computed in the kernel; a table is an input.

// CHECK-LABEL: func.func @computed(
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: memref<18xf64>, %[[K:[a-z0-9]+]]: f64
// CHECK-NOT: arith.mulf
// CHECK: memref.store %[[K]], %[[PLACE:.*]][]
// CHECK: call @computed_kernel0(%{{[a-z0-9_]+}}, %[[PLACE]], %[[TABLE]], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}})
// CHECK: func.func @computed_kernel0(%{{[a-z0-9]+}}: memref<?xf64, strided<[1], offset: ?>>, %[[MEMORY:[a-z0-9]+]]: memref<f64>, %[[IN:[a-z0-9]+]]: memref<18xf64>,
// CHECK-SAME: stencil.kernel_inputs = 3 : i64
// CHECK-DAG: %[[SCALAR:.*]] = memref.load %[[MEMORY]][]
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[SCALAR]], %[[SCALAR]]
// CHECK: %[[SPEED:.*]] = memref.load %[[IN]][
// CHECK: arith.mulf %[[SPEED]], %[[SQUARE]]
func.func @computed(%t: !temp, %table: memref<18xf64>, %k: f64) -> !inner {
  %square = arith.mulf %k, %k : f64
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -2>} : (!temp) -> f64
    %i = "stencil.index"() {dim = 0 : i64, offset = array<i64: 0>} : () -> index
    %s = memref.load %table[%i] : memref<18xf64>
    %b = arith.mulf %s, %square : f64
    %c = arith.addf %a, %b : f64
    "stencil.return"(%c) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// -----

!line = !stencil.temp<#stencil.bounds<[0], [20]>, f32>
!plane = !stencil.temp<#stencil.bounds<[0, 0], [8, 16]>, f32>

// A temp of lower rank read along two axes is two inputs, each indexed by its own loop; accesses in
// branches are loads in branches.

// CHECK-LABEL: func.func @lower_rank(
// CHECK: memref.subview %{{.*}}[1] [8] [1]
// CHECK: memref.subview %{{.*}}[3] [16] [1]
// CHECK: func.func @lower_rank_kernel0(%[[ROWS:[a-z0-9]+]]: memref<?xf32, strided<[1], offset: ?>>, %[[COLUMNS:[a-z0-9]+]]: memref<?xf32, strided<[1], offset: ?>>, %[[MEMORY:[a-z0-9]+]]: memref<i1>, %[[OUT:[a-z0-9]+]]: memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK: %[[CHOICE:.*]] = memref.load %[[MEMORY]][]
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: scf.for %[[J:[a-z0-9]+]] =
// CHECK: scf.if %[[CHOICE]] -> (f32) {
// CHECK-NEXT: memref.load %[[ROWS]][%[[I]]]
// CHECK: } else {
// CHECK-NEXT: memref.load %[[COLUMNS]][%[[J]]]
func.func @lower_rank(%t: !line, %choice: i1) -> !plane {
  %r = "stencil.apply"() ({
    %v = scf.if %choice -> (f32) {
      %a = "stencil.access"(%t) {offset = array<i64: 1>, offset_mapping = array<i64: 0>} : (!line) -> f32
      scf.yield %a : f32
    } else {
      %b = "stencil.access"(%t) {offset = array<i64: 3>, offset_mapping = array<i64: 1>} : (!line) -> f32
      scf.yield %b : f32
    }
    "stencil.return"(%v) : (f32) -> ()
  }) : () -> !plane
  return %r : !plane
}

// -----

!temp = !stencil.temp<#stencil.bounds<[0], [10]>, f16>
!inner = !stencil.temp<#stencil.bounds<[1], [9]>, f16>

// Branches that the region chooses are selects, inner ones first.

// CHECK-LABEL: func.func @branches_kernel0(
// CHECK: scf.for
// CHECK-DAG: %[[C:.*]] = memref.load
// CHECK-DAG: %[[IS:.*]] = arith.cmpf ogt, %[[C]], %{{.*}} : f16
// CHECK-DAG: %[[L:.*]] = memref.load
// CHECK-DAG: %[[M:.*]] = arith.mulf %[[C]], %[[L]] : f16
// CHECK-DAG: %[[R:.*]] = memref.load
// CHECK-DAG: %[[INNER:.*]] = arith.select %[[SMALL:.*]], %[[R]], %[[C]] : f16
// CHECK: %[[X:.*]] = arith.select %[[IS]], %[[M]], %[[INNER]] : f16
// CHECK-NOT: scf.if
// CHECK: memref.store %[[X]]
func.func @branches(%t: !temp) -> !inner {
  %r = "stencil.apply"() ({
    %zero = arith.constant 0.0 : f16
    %one = arith.constant 1.0 : f16
    %c = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f16
    %is = arith.cmpf ogt, %c, %one : f16
    %v = scf.if %is -> (f16) {
      %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f16
      %m = arith.mulf %c, %a : f16
      scf.yield %m : f16
    } else {
      %small = arith.cmpf olt, %c, %zero : f16
      %w = scf.if %small -> (f16) {
        %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f16
        scf.yield %b : f16
      } else {
        scf.yield %c : f16
      }
      scf.yield %w : f16
    }
    "stencil.return"(%v) : (f16) -> ()
  }) : () -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[0], [10]>, i8>

// What may end the process stays in its branch, and results are chosen by branches.

// CHECK-LABEL: func.func @divided_kernel0(
// CHECK: scf.if
// CHECK: arith.divsi
// CHECK: scf.if
// CHECK: scf.yield
func.func @divided(%t: !temp) -> !temp {
  %r = "stencil.apply"() ({
    %zero = arith.constant 0 : i8
    %c = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> i8
    %is = arith.cmpi sgt, %c, %zero : i8
    %v = scf.if %is -> (i8) {
      %d = arith.divsi %c, %c : i8
      scf.yield %d : i8
    } else {
      scf.yield %c : i8
    }
    %s = "stencil.store_result"(%v) : (i8) -> !stencil.result<i8>
    %o = "stencil.store_result"(%c) : (i8) -> !stencil.result<i8>
    %w = scf.if %is -> (!stencil.result<i8>) {
      scf.yield %s : !stencil.result<i8>
    } else {
      scf.yield %o : !stencil.result<i8>
    }
    "stencil.return"(%w) : (!stencil.result<i8>) -> ()
  }) : () -> !temp
  return %r : !temp
}

// -----

!temp = !stencil.temp<1 : i64, f64>

func.func @unknown_bounds(%t: !temp) -> !temp {
  // expected-error @+1 {{'stencil.apply' op expected known bounds, got !stencil.temp<1 : i64, f64>; run stencil-infer-bounds}}
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  return %r : !temp
}

// -----

!temp = !stencil.temp<1 : i64, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f64>

// The bounds of what an apply reads must be known too.

func.func @unknown_input(%t: !temp) -> !inner {
  // expected-error @+1 {{'stencil.apply' op expected known bounds, got !stencil.temp<1 : i64, f64>; run stencil-infer-bounds}}
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// -----

// Kernels stand beside functions.

// expected-error @+1 {{'stencil.apply' op expected to be inside 'func.func'}}
%r = "stencil.apply"() ({
  %one = arith.constant 1.0 : f64
  "stencil.return"(%one) : (f64) -> ()
}) : () -> !stencil.temp<#stencil.bounds<[0], [8]>, f64>
