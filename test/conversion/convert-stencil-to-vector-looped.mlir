// RUN: twofour-opt %s --convert-stencil-to-vector='machine=sapphirerapids' | filecheck %s
// RUN: twofour-opt %s --convert-stencil-to-vector='tile=1,1' | filecheck %s --check-prefix=ALONE

// CHECK-LABEL: func.func @filter_kernel0(
// CHECK: %[[WEIGHTS:.*]] = memref.get_global @filter_kernel0_weights0 : memref<169xf64>
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8{{.*}} {
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c24{{.*}} {

// The first row of inputs feeds one row of outputs, the second one two, each in a loop of 13 turns.

// CHECK: %[[FIRST:.*]]:24 = scf.for %[[J:.*]] = %c0 to %c13 step %c1 iter_args(%[[A:[^ ]*]] = %[[ZERO:.*]], %[[B:[^ ]*]] = %[[ZERO]], %[[C:[^ ]*]] = %[[ZERO]],
// CHECK: %[[COLUMN:.*]] = arith.addi %{{.*}}, %[[J]] : index
// CHECK: %[[PLACE:.*]] = arith.addi %c0, %[[J]] : index
// CHECK-COUNT-3: vector.load
// CHECK-NEXT: %[[WEIGHT:.*]] = memref.load %[[WEIGHTS]][%[[PLACE]]]
// CHECK-NEXT: %[[ALL:.*]] = vector.broadcast %[[WEIGHT]] : f64 to vector<8xf64>
// CHECK-NEXT: math.fma %[[ALL]], %{{.*}}, %[[A]]
// CHECK-NEXT: math.fma %[[ALL]], %{{.*}}, %[[B]]
// CHECK-NEXT: math.fma %[[ALL]], %{{.*}}, %[[C]]
// CHECK-NEXT: scf.yield
// CHECK: scf.for %{{.*}} = %c0 to %c13 step %c1 iter_args(%{{.*}} = %[[FIRST]]#0,
// CHECK-COUNT-6: math.fma
// CHECK-NEXT: scf.yield

// Those that feed all eight are turns of a loop around it.

// CHECK: scf.for %{{.*}} = %c0 to %c6 step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c13 step %c1
// CHECK-COUNT-3: vector.load
// CHECK-NOT: vector.load
// CHECK-COUNT-24: math.fma
// CHECK-NEXT: scf.yield
// CHECK: memref.global "private" constant @filter_kernel0_weights0 : memref<169xf64>

// ALONE-LABEL: func.func @filter_kernel0(
// ALONE: scf.for %[[I:.*]] = %c0 to %c13 step %c1
// ALONE: arith.muli %[[I]], %c13
// ALONE: scf.for %{{.*}} = %c0 to %c13 step %c1
// ALONE-COUNT-1: math.fma
!temp = !stencil.temp<#stencil.bounds<[-6, -6], [38, 54]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [32, 48]>, f64>
func.func @filter(%u: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%u) {
    offsets = [
      array<i64: -6, -6>, array<i64: -6, -5>, array<i64: -6, -4>, array<i64: -6, -3>, array<i64: -6, -2>, array<i64: -6, -1>, array<i64: -6, 0>, array<i64: -6, 1>, array<i64: -6, 2>, array<i64: -6, 3>, array<i64: -6, 4>, array<i64: -6, 5>, array<i64: -6, 6>,
      array<i64: -5, -6>, array<i64: -5, -5>, array<i64: -5, -4>, array<i64: -5, -3>, array<i64: -5, -2>, array<i64: -5, -1>, array<i64: -5, 0>, array<i64: -5, 1>, array<i64: -5, 2>, array<i64: -5, 3>, array<i64: -5, 4>, array<i64: -5, 5>, array<i64: -5, 6>,
      array<i64: -4, -6>, array<i64: -4, -5>, array<i64: -4, -4>, array<i64: -4, -3>, array<i64: -4, -2>, array<i64: -4, -1>, array<i64: -4, 0>, array<i64: -4, 1>, array<i64: -4, 2>, array<i64: -4, 3>, array<i64: -4, 4>, array<i64: -4, 5>, array<i64: -4, 6>,
      array<i64: -3, -6>, array<i64: -3, -5>, array<i64: -3, -4>, array<i64: -3, -3>, array<i64: -3, -2>, array<i64: -3, -1>, array<i64: -3, 0>, array<i64: -3, 1>, array<i64: -3, 2>, array<i64: -3, 3>, array<i64: -3, 4>, array<i64: -3, 5>, array<i64: -3, 6>,
      array<i64: -2, -6>, array<i64: -2, -5>, array<i64: -2, -4>, array<i64: -2, -3>, array<i64: -2, -2>, array<i64: -2, -1>, array<i64: -2, 0>, array<i64: -2, 1>, array<i64: -2, 2>, array<i64: -2, 3>, array<i64: -2, 4>, array<i64: -2, 5>, array<i64: -2, 6>,
      array<i64: -1, -6>, array<i64: -1, -5>, array<i64: -1, -4>, array<i64: -1, -3>, array<i64: -1, -2>, array<i64: -1, -1>, array<i64: -1, 0>, array<i64: -1, 1>, array<i64: -1, 2>, array<i64: -1, 3>, array<i64: -1, 4>, array<i64: -1, 5>, array<i64: -1, 6>,
      array<i64: 0, -6>, array<i64: 0, -5>, array<i64: 0, -4>, array<i64: 0, -3>, array<i64: 0, -2>, array<i64: 0, -1>, array<i64: 0, 0>, array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 0, 3>, array<i64: 0, 4>, array<i64: 0, 5>, array<i64: 0, 6>,
      array<i64: 1, -6>, array<i64: 1, -5>, array<i64: 1, -4>, array<i64: 1, -3>, array<i64: 1, -2>, array<i64: 1, -1>, array<i64: 1, 0>, array<i64: 1, 1>, array<i64: 1, 2>, array<i64: 1, 3>, array<i64: 1, 4>, array<i64: 1, 5>, array<i64: 1, 6>,
      array<i64: 2, -6>, array<i64: 2, -5>, array<i64: 2, -4>, array<i64: 2, -3>, array<i64: 2, -2>, array<i64: 2, -1>, array<i64: 2, 0>, array<i64: 2, 1>, array<i64: 2, 2>, array<i64: 2, 3>, array<i64: 2, 4>, array<i64: 2, 5>, array<i64: 2, 6>,
      array<i64: 3, -6>, array<i64: 3, -5>, array<i64: 3, -4>, array<i64: 3, -3>, array<i64: 3, -2>, array<i64: 3, -1>, array<i64: 3, 0>, array<i64: 3, 1>, array<i64: 3, 2>, array<i64: 3, 3>, array<i64: 3, 4>, array<i64: 3, 5>, array<i64: 3, 6>,
      array<i64: 4, -6>, array<i64: 4, -5>, array<i64: 4, -4>, array<i64: 4, -3>, array<i64: 4, -2>, array<i64: 4, -1>, array<i64: 4, 0>, array<i64: 4, 1>, array<i64: 4, 2>, array<i64: 4, 3>, array<i64: 4, 4>, array<i64: 4, 5>, array<i64: 4, 6>,
      array<i64: 5, -6>, array<i64: 5, -5>, array<i64: 5, -4>, array<i64: 5, -3>, array<i64: 5, -2>, array<i64: 5, -1>, array<i64: 5, 0>, array<i64: 5, 1>, array<i64: 5, 2>, array<i64: 5, 3>, array<i64: 5, 4>, array<i64: 5, 5>, array<i64: 5, 6>,
      array<i64: 6, -6>, array<i64: 6, -5>, array<i64: 6, -4>, array<i64: 6, -3>, array<i64: 6, -2>, array<i64: 6, -1>, array<i64: 6, 0>, array<i64: 6, 1>, array<i64: 6, 2>, array<i64: 6, 3>, array<i64: 6, 4>, array<i64: 6, 5>, array<i64: 6, 6>
    ],
    weights = array<f64:
      1.0, 1.00390625, 1.0078125, 1.01171875, 1.015625, 1.01953125, 1.0234375, 1.02734375, 1.03125, 1.03515625, 1.0390625, 1.04296875, 1.046875,
      1.05078125, 1.0546875, 1.05859375, 1.0625, 1.06640625, 1.0703125, 1.07421875, 1.078125, 1.08203125, 1.0859375, 1.08984375, 1.09375, 1.09765625,
      1.1015625, 1.10546875, 1.109375, 1.11328125, 1.1171875, 1.12109375, 1.125, 1.12890625, 1.1328125, 1.13671875, 1.140625, 1.14453125, 1.1484375,
      1.15234375, 1.15625, 1.16015625, 1.1640625, 1.16796875, 1.171875, 1.17578125, 1.1796875, 1.18359375, 1.1875, 1.19140625, 1.1953125, 1.19921875,
      1.203125, 1.20703125, 1.2109375, 1.21484375, 1.21875, 1.22265625, 1.2265625, 1.23046875, 1.234375, 1.23828125, 1.2421875, 1.24609375, 1.25,
      1.25390625, 1.2578125, 1.26171875, 1.265625, 1.26953125, 1.2734375, 1.27734375, 1.28125, 1.28515625, 1.2890625, 1.29296875, 1.296875, 1.30078125,
      1.3046875, 1.30859375, 1.3125, 1.31640625, 1.3203125, 1.32421875, 1.328125, 1.33203125, 1.3359375, 1.33984375, 1.34375, 1.34765625, 1.3515625,
      1.35546875, 1.359375, 1.36328125, 1.3671875, 1.37109375, 1.375, 1.37890625, 1.3828125, 1.38671875, 1.390625, 1.39453125, 1.3984375, 1.40234375,
      1.40625, 1.41015625, 1.4140625, 1.41796875, 1.421875, 1.42578125, 1.4296875, 1.43359375, 1.4375, 1.44140625, 1.4453125, 1.44921875, 1.453125,
      1.45703125, 1.4609375, 1.46484375, 1.46875, 1.47265625, 1.4765625, 1.48046875, 1.484375, 1.48828125, 1.4921875, 1.49609375, 1.5, 1.50390625,
      1.5078125, 1.51171875, 1.515625, 1.51953125, 1.5234375, 1.52734375, 1.53125, 1.53515625, 1.5390625, 1.54296875, 1.546875, 1.55078125, 1.5546875,
      1.55859375, 1.5625, 1.56640625, 1.5703125, 1.57421875, 1.578125, 1.58203125, 1.5859375, 1.58984375, 1.59375, 1.59765625, 1.6015625, 1.60546875,
      1.609375, 1.61328125, 1.6171875, 1.62109375, 1.625, 1.62890625, 1.6328125, 1.63671875, 1.640625, 1.64453125, 1.6484375, 1.65234375, 1.65625
    >,
    constant = 0.0 : f64
  } : (!temp) -> !inner
  return %r : !inner
}
