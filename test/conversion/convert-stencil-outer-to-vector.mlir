// RUN: twofour-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(stencil-to-scatter,stencil-select-cover{option=parallel},stencil-block{unroll=2},stencil-schedule-outer{shortest=4},convert-stencil-outer-to-vector{machine=avx2})' | filecheck %s

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [17, 33]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [16, 32]>, f64>

// Two tiles of four rows and four columns, from six rows of input. The first row reaches the first
// row of the tiles alone: a product with one weight that is not zero. The second row is read at
// three shifts; its middle one reaches two rows.

// CHECK-LABEL: func.func @star(
// CHECK: call @star_kernel0(
// CHECK: func.func @star_kernel0(%[[IN:[a-z0-9]+]]: {{.*}}, %[[OUT:[a-z0-9]+]]: {{.*}}, %{{.*}}: index, %{{.*}}: index)
// CHECK-DAG: %[[NORTH:.*]] = arith.constant dense<1.000000e+00> : vector<4xf64>
// CHECK-DAG: %[[WEST:.*]] = arith.constant dense<2.000000e+00> : vector<4xf64>
// CHECK-DAG: %[[CENTRE:.*]] = arith.constant dense<3.000000e+00> : vector<4xf64>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[A:.*]] = vector.load %[[IN]]
// CHECK: %[[B:.*]] = vector.load %[[IN]]
// CHECK-NEXT: %[[A0:.*]] = arith.mulf %[[NORTH]], %[[A]]
// CHECK-NEXT: %[[B0:.*]] = arith.mulf %[[NORTH]], %[[B]]
// CHECK: %[[C:.*]] = vector.load %[[IN]]
// CHECK: %[[D:.*]] = vector.load %[[IN]]
// CHECK-NEXT: math.fma %[[WEST]], %[[C]], %[[A0]]
// CHECK-NEXT: math.fma %[[WEST]], %[[D]], %[[B0]]
// CHECK: %[[E:.*]] = vector.load %[[IN]]
// CHECK: %[[F:.*]] = vector.load %[[IN]]
// CHECK-NEXT: math.fma %[[CENTRE]], %[[E]]
// CHECK-NEXT: math.fma %[[CENTRE]], %[[F]]
// CHECK-NEXT: arith.mulf %[[NORTH]], %[[E]]
// CHECK-NEXT: arith.mulf %[[NORTH]], %[[F]]
// CHECK-COUNT-8: vector.store
func.func @star(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]], weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [17, 33]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [16, 32]>, f64>

// Lines along the vector axis need matrix registers.

func.func @column(%t: !temp) -> !inner {
  // expected-error @+1 {{'stencil.outer_sum' op expected lines along the row axis alone; stencil-select-cover{option=parallel}}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 0, column = 0, reach = 1, segments = [
        {start = [0, 0], stop = [0, 1], phase = 0, products = [[0, 0, 0]]},
        {start = [0, 1], stop = [1, 1], phase = 1, products = [[0, 0, 0]]}]}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, -1], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, 0], [0, 1]], weights = array<f64: 1.0, 2.0>
  } : (!temp) -> !inner
  return %r : !inner
}
