// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-fuse-steps=steps=3 | filecheck %s
// RUN: twofour-opt %S/Inputs/one_step.mlir --stencil-fuse-steps=steps=1 | filecheck %s --check-prefix=ONE

// One step makes no function.

// ONE-LABEL: func.func @step(
// ONE-NOT: _fused

!field = !stencil.field<#stencil.bounds<[-4], [68]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

// The weights are convolved with themselves; the constant c becomes c + 4 c + 16 c, for weights
// whose sum is 4. Two points on each side, which a step's halo reaches first, are left to single
// steps; the single step stays as it is.

// CHECK-LABEL: func.func @step(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {constant = 1.000000e+00 : f64, offsets = {{\[\[}}-1], [0], [1]], weights = array<f64: 1.000000e+00, 2.000000e+00, 1.000000e+00>}
// CHECK: {bounds = #stencil.bounds<[0], [64]>}
// CHECK: func.func @step_fused3(
// CHECK-SAME: attributes {stencil.single_step = @step, stencil.steps = 3 : i64}
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-4], [68]>, f64>
// CHECK-NEXT: %[[R:.*]] = "stencil.weighted_sum"(%{{.*}}) {constant = 2.100000e+01 : f64, offsets = {{\[\[}}-3], [-2], [-1], [0], [1], [2], [3]], weights = array<f64: 1.000000e+00, 6.000000e+00, 1.500000e+01, 2.000000e+01, 1.500000e+01, 6.000000e+00, 1.000000e+00>}
// CHECK-SAME: -> !stencil.temp<#stencil.bounds<[2], [62]>, f64>
// CHECK-NEXT: "stencil.store"(%[[R]], %{{.*}}) {bounds = #stencil.bounds<[2], [62]>}
func.func @step(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {constant = 1.0 : f64, offsets = [[-1], [0], [1]], weights = array<f64: 1.0, 2.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

// In two dimensions; the first axis is read to one side only, so only that side loses points.

!field = !stencil.field<#stencil.bounds<[0, -3], [19, 19]>, f64>
!temp = !stencil.temp<#stencil.bounds<[0, -1], [17, 17]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [16, 16]>, f64>

// CHECK-LABEL: func.func @two_dimensions(
// CHECK: func.func @two_dimensions_fused3(
// CHECK: offsets = {{\[\[}}0, -3], [0, -1], [0, 1], [0, 3], [1, -2], [1, 0], [1, 2], [2, -1], [2, 1], [3, 0]]
// CHECK-SAME: weights = array<f64: 1.000000e+00, 3.000000e+00, 3.000000e+00, 1.000000e+00, 3.000000e+00, 6.000000e+00, 3.000000e+00, 3.000000e+00, 3.000000e+00, 1.000000e+00>
// CHECK: {bounds = #stencil.bounds<[0, 2], [14, 14]>}
func.func @two_dimensions(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[1, 0], [0, -1], [0, 1]], weights = array<f64: 1.0, 1.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [16, 16]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-3], [67]>, f32>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f32>

// Terms that cancel are dropped.

// CHECK-LABEL: func.func @cancelled(
// CHECK: func.func @cancelled_fused3(
// CHECK: offsets = {{\[\[}}-3], [-2], [0], [2], [3]], weights = array<f64: -1.000000e+00, 3.000000e+00, -5.000000e+00, 3.000000e+00, 1.000000e+00>
func.func @cancelled(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [0], [1]], weights = array<f64: -1.0, 1.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f32>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f32>

// Weights are rounded once, from the exact powers: 0.1 in f32, cubed.

// CHECK-LABEL: func.func @rounded(
// CHECK: func.func @rounded_fused3(
// CHECK: offsets = {{\[\[}}0]], weights = array<f64: 0.0010000000474974513>
func.func @rounded(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 0.10000000149011612>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-4], [68]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

// Functions that are not one linear step of one field are left alone: two sweeps, two inputs,
// something other than a sum, and a loop.

// CHECK-LABEL: func.func @two_sweeps(
// CHECK-LABEL: func.func @two_inputs(
// CHECK-LABEL: func.func @not_linear(
// CHECK-LABEL: func.func @loop(
// CHECK-LABEL: func.func private @declared(
// CHECK-NOT: _fused
func.func @two_sweeps(%u: !field, %v: !field, %w: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[1]], weights = array<f64: 1.0>} : (!temp) -> !inner
  %s = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 2.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  "stencil.store"(%s, %w) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

func.func @two_inputs(%u: !field, %a: !inner, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t, %a) {offsets = [[1]], weights = array<f64: 1.0>} : (!temp, !inner) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

func.func @not_linear(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %0 = arith.mulf %a, %a : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

func.func @loop(%u: !field, %v: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %t = "stencil.load"(%u) : (!field) -> !temp
    %r = "stencil.weighted_sum"(%t) {offsets = [[1]], weights = array<f64: 1.0>} : (!temp) -> !inner
    "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  }
  return
}

func.func private @declared(!field)

// -----

!field = !stencil.field<#stencil.bounds<[-1], [5]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [5]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [4]>, f64>

// Too small for any point to take three steps in one: single steps do.

// CHECK-LABEL: func.func @no_interior(
// CHECK-NOT: func.func @no_interior_fused3
func.func @no_interior(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 1.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [4]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @overflow(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  // expected-error @+1 {{'stencil.weighted_sum' op expected weights that 3 steps keep in range}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0e200>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @overflow_of_the_constant(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  // expected-error @+1 {{'stencil.weighted_sum' op expected weights that 3 steps keep in range}}
  %r = "stencil.weighted_sum"(%t) {constant = 1.0e300 : f64, offsets = [[0]], weights = array<f64: 1.0e20>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @underflow(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  // expected-error @+1 {{'stencil.weighted_sum' op expected weights that 3 steps keep in range}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0e-200>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

// What counts are the terms, not the size of the box that they lie in: 16 points of 121 x 121.

!field = !stencil.field<#stencil.bounds<[-50, -50], [1000, 1000]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-50, -50], [1000, 1000]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [900, 900]>, f64>

// CHECK-LABEL: func.func @far_apart_fused3(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}-60, 0], [-40, -20], [-40, 20], [-20, -40], [-20, 0],
func.func @far_apart(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[-20, 0], [20, 0], [0, -20], [0, 20]], weights = array<f64: 1.0, 1.0, 1.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [900, 900]>} : (!inner, !field) -> ()
  return
}

// -----

// Almost all sums of three cubes differ.

!field = !stencil.field<#stencil.bounds<[0], [200000]>, f64>
!temp = !stencil.temp<#stencil.bounds<[0], [200000]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [100000]>, f64>

func.func @too_many_terms(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  // expected-error @+1 {{'stencil.weighted_sum' op expected at most 4096 terms in 3 fused steps, got 4564 or more}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0], [1], [8], [27], [64], [125], [216], [343], [512], [729], [1000], [1331], [1728], [2197], [2744], [3375], [4096], [4913], [5832], [6859], [8000], [9261], [10648], [12167], [13824], [15625], [17576], [19683], [21952], [24389]], weights = array<f64: 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [100000]>} : (!inner, !field) -> ()
  return
}

// -----

// Fused steps are not fused again, and a name that is taken gets a number.

!field = !stencil.field<#stencil.bounds<[-4], [68]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-4], [68]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

// CHECK-LABEL: func.func @fused(
// CHECK-SAME: stencil.steps = 2
// CHECK-NOT: func.func @fused_fused3
func.func @fused(%u: !field, %v: !field) attributes {stencil.single_step = @named, stencil.steps = 2 : i64} {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [0], [1]], weights = array<f64: 1.0, 2.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// CHECK-LABEL: func.func @named_fused3_0(
// CHECK-SAME: stencil.single_step = @named, stencil.steps = 3
func.func @named(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[0], [1]], weights = array<f64: 1.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

func.func private @named_fused3(%u: f32)

// -----

// A temp that the caller sees as well stays as it is.

!field = !stencil.field<#stencil.bounds<[-4], [68]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

// CHECK-LABEL: func.func @returned(
// CHECK-NOT: func.func
func.func @returned(%u: !field, %v: !field) -> !inner {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 1.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return %r : !inner
}

// CHECK-LABEL: func.func @returned_as_loaded(
// CHECK-NOT: func.func
func.func @returned_as_loaded(%u: !field, %v: !field) -> !temp {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 1.0, 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return %t : !temp
}
