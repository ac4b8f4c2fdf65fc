// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-to-scatter --stencil-select-cover=option=orthogonal --stencil-block=unroll=2 --stencil-schedule-outer --stencil-reorganize=by=splice --convert-stencil-outer-to-sme | filecheck %s

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [65, 65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [64, 64]>, f64>

// Views of the source, the addend and the result, and the range of rows.

// CHECK-LABEL: func.func @star(
// CHECK: call @star_kernel0(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (memref<?x?xf64, strided<[?, 1], offset: ?>>, memref<?x?xf64, strided<[?, 1], offset: ?>>, memref<?x?xf64, strided<[?, 1], offset: ?>>, index, index)

// A table has 31 zeros on both sides: the longest vectors have 32 elements.

// CHECK: memref.global "private" constant @star_kernel0_line0 : memref<65xf64> = dense<[0.0{{.*}}, 0.000000e+00, 5.000000e+00, 3.000000e+00, 1.000000e+00, 0.000000e+00
// CHECK: memref.global "private" constant @star_kernel0_line1 : memref<65xf64> = dense<[0.0{{.*}}, 0.000000e+00, 4.000000e+00, 0.000000e+00, 2.000000e+00, 0.000000e+00
// CHECK: func.func @star_kernel0(%[[IN:[a-z0-9]+]]: {{[^%]*}}, %[[ADDEND:[a-z0-9]+]]: {{[^%]*}}, %[[OUT:[a-z0-9]+]]: {{[^%]*}}, %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index)
// CHECK-SAME: attributes {llvm.emit_c_interface, stencil.kernel_inputs = 2 : i64}
// CHECK-DAG: %[[CONSTANT:.*]] = arith.constant dense<6.000000e+00> : vector<[2]xf64>
// CHECK-DAG: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : vector<[2]xf64>
// CHECK-DAG: %[[ROWS:.*]] = memref.get_global @star_kernel0_line0
// CHECK-DAG: %[[COLUMNS:.*]] = memref.get_global @star_kernel0_line1

// Blocks of one tile by two. Their tiles start from the addend, row by row.

// CHECK: scf.for %[[ROW:[a-z0-9]+]] = %[[BEGIN]] to %[[STOP:.*]] step %[[N:[a-z0-9_]+]] {
// CHECK-NEXT: scf.for %[[COLUMN:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %[[TWO_N:[a-z0-9_]+]] {
// CHECK: scf.for %{{.*}} iter_args({{.*}}, {{.*}}) -> (vector<[2]x[2]xf64>, vector<[2]x[2]xf64>)
// CHECK: memref.extract_strided_metadata %[[ADDEND]]
// CHECK-COUNT-2: arm_sme.load_tile_slice

// Input rows -1 to n of the line along the rows: its window starts where the row says.

// CHECK: scf.for %[[P:[a-z0-9]+]] = %c-1{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[T0:[a-z0-9]+]] = {{.*}}, %[[T1:[a-z0-9]+]] = {{.*}})
// CHECK: %[[START:.*]] = arith.subi %{{.*}}, %[[P]]
// CHECK-NEXT: %[[WINDOW:.*]] = vector.load %[[ROWS]][%[[START]]] : memref<65xf64>, vector<[2]xf64>
// CHECK: %[[A0:.*]] = vector.load %[[IN]]
// CHECK-NEXT: %{{.*}} = vector.outerproduct %[[WINDOW]], %[[A0]], %[[T0]] {kind = #vector.kind<add>}
// CHECK: %[[A1:.*]] = vector.load %[[IN]]
// CHECK-NEXT: %{{.*}} = vector.outerproduct %[[WINDOW]], %[[A1]], %[[T1]] {kind = #vector.kind<add>}

// The line along the columns: rows of the input go into tiles, and columns come out. Of the third
// tile, in the register of the first, there are two columns that some output needs.

// CHECK: %[[MATRICES:.*]]:2 = scf.for
// CHECK: memref.extract_strided_metadata %[[IN]]
// CHECK-COUNT-2: arm_sme.load_tile_slice
// CHECK: scf.for %[[Q:[a-z0-9]+]]
// CHECK: %[[CW:.*]] = vector.load %[[COLUMNS]]
// CHECK: %[[V0:.*]] = arm_sme.extract_tile_slice %[[MATRICES]]#0[%[[Q]]] layout<vertical>
// CHECK-NEXT: vector.outerproduct %[[V0]], %[[CW]]
// CHECK: %[[V1:.*]] = arm_sme.extract_tile_slice %[[MATRICES]]#1[%[[Q]]] layout<vertical>
// CHECK-NEXT: vector.outerproduct %[[V1]], %[[CW]]
// CHECK: %[[MASK:.*]] = vector.create_mask %c2{{.*}} : vector<[2]xi1>
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[MATRICES]]#0)
// CHECK: arm_sme.load_tile_slice %{{.*}}, %[[MASK]],
// CHECK: scf.for %[[Q:[a-z0-9]+]] = %{{.*}} to %c2{{.*}} step
// CHECK: arm_sme.extract_tile_slice %[[MATRICES]]#1[%[[Q]]]
// CHECK: arm_sme.extract_tile_slice %[[LAST]][%[[Q]]]

// The constant, and the way to memory.

// CHECK-COUNT-2: vector.outerproduct %[[ONES]], %[[CONSTANT]],
// CHECK: scf.for
// CHECK: memref.extract_strided_metadata %[[OUT]]
// CHECK-COUNT-2: arm_sme.store_tile_slice

// Rows after the last block, then columns beside the last block.

// CHECK: scf.for %{{.*}} = %[[STOP]] to %[[END]]
// CHECK: vector.maskedload %[[ADDEND]]
// CHECK-COUNT-5: vector.fma
// CHECK: vector.maskedstore %[[OUT]]
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[STOP]]
// CHECK-COUNT-5: vector.fma
// CHECK: vector.maskedstore %[[OUT]]
func.func @star(%t: !temp, %a: !inner) -> !inner {
  %r = "stencil.weighted_sum"(%t, %a) {offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]],
    weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0>, constant = 6.0} : (!temp, !inner) -> !inner
  return %r : !inner
}

// -----

// Vectors of four f32 at least. Shifted vectors are spliced from two loaded ones, but for the last,
// which would reach beyond what it needs; schedules with splices need vectors of more than two.

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [65, 65]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [64, 64]>, f32>

// CHECK: func.func @spliced_kernel0(%[[IN:[a-z0-9]+]]:
// CHECK: %[[A0:.*]] = vector.load %[[IN]]{{.*}} vector<[4]xf32>
// CHECK: %[[A1:.*]] = vector.load %[[IN]]{{.*}} vector<[4]xf32>
// CHECK: llvm.call_intrinsic "llvm.aarch64.sve.ext.nxv4f32"(%[[A0]], %[[A1]], %{{.*}}) : (vector<[4]xf32>, vector<[4]xf32>, i32) -> vector<[4]xf32>
// CHECK: vector.load %[[IN]]{{.*}} vector<[4]xf32>
func.func @spliced(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, -1], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 1]],
    weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<2 : i64, f64>

func.func @unknown_bounds(%t: !temp) -> !temp {
  // expected-error @+1 {{'stencil.outer_sum' op expected known bounds, got !stencil.temp<2 : i64, f64>; run stencil-infer-bounds}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1, 0], [1, 0]],
    weights = array<f64: 1.0, 2.0>} : (!temp) -> !temp
  return %r : !temp
}
