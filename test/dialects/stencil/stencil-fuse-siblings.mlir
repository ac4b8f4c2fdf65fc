// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-fuse-siblings | filecheck %s

!field = !stencil.field<#stencil.bounds<[-1, -1], [9, 9]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1, -1], [9, 9]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [8, 8]>, f64>

// Both sums read %h. The terms of each are in the order of their kernels: addend and constant, then
// the inputs of a chain, each by ascending offset, without terms of weight zero. The load of %b
// stood between them, and what is stored to %x and %y is read at the point only.

// CHECK-LABEL: func.func @two_sums(
// CHECK-SAME: %[[X:.*]]: !stencil.field{{.*}}, %[[Y:.*]]: !stencil.field{{.*}}, %[[Z:.*]]: !stencil.field
// CHECK: %[[A:.*]] = "stencil.load"(%[[X]])
// CHECK: %[[H:.*]] = "stencil.load"(%[[Z]])
// CHECK-NEXT: %[[B:.*]] = "stencil.load"(%[[Y]])
// CHECK-NEXT: %[[R:.*]]:2 = "stencil.apply"()
// CHECK-NEXT: %[[A0:.*]] = "stencil.access"(%[[A]]) {offset = array<i64: 0, 0>}
// CHECK-NEXT: %[[C:.*]] = arith.constant 4.000000e+00 : f64
// CHECK-NEXT: %[[A1:.*]] = arith.addf %[[A0]], %[[C]] : f64
// CHECK-NEXT: %[[H0:.*]] = "stencil.access"(%[[H]]) {offset = array<i64: -1, 0>}
// CHECK-NEXT: %[[W0:.*]] = arith.constant -5.000000e-01 : f64
// CHECK-NEXT: %[[S0:.*]] = math.fma %[[W0]], %[[H0]], %[[A1]] : f64
// CHECK-NEXT: %[[H1:.*]] = "stencil.access"(%[[H]]) {offset = array<i64: 0, 0>}
// CHECK-NEXT: %[[W1:.*]] = arith.constant 2.500000e-01 : f64
// CHECK-NEXT: %[[S1:.*]] = math.fma %[[W1]], %[[H1]], %[[S0]] : f64
// CHECK-NEXT: %[[B0:.*]] = "stencil.access"(%[[B]]) {offset = array<i64: 0, 0>}
// CHECK-NEXT: %[[W2:.*]] = arith.constant 3.000000e+00 : f64
// CHECK-NEXT: %[[S2:.*]] = arith.mulf %[[W2]], %[[B0]] : f64
// CHECK-NEXT: %[[H2:.*]] = "stencil.access"(%[[H]]) {offset = array<i64: 0, 1>}
// CHECK-NEXT: %[[W3:.*]] = arith.constant 1.250000e-01 : f64
// CHECK-NEXT: %[[S3:.*]] = math.fma %[[W3]], %[[H2]], %[[S2]] : f64
// CHECK-NEXT: "stencil.return"(%[[S1]], %[[S3]]) : (f64, f64) -> ()
// CHECK-NOT: stencil.weighted_sum
// CHECK: "stencil.store"(%[[R]]#0, %[[X]])
// CHECK: "stencil.store"(%[[R]]#1, %[[Y]])
func.func @two_sums(%x: !field, %y: !field, %z: !field) {
  %a = "stencil.load"(%x) : (!field) -> !inner
  %h = "stencil.load"(%z) : (!field) -> !temp
  %p = "stencil.weighted_sum"(%h, %a) {offsets = [[0, 0], [-1, 0]], weights = array<f64: 0.25, -0.5>, constant = 4.0 : f64} : (!temp, !inner) -> !inner
  "stencil.store"(%p, %x) {bounds = #stencil.bounds<[0, 0], [8, 8]>} : (!inner, !field) -> ()
  %b = "stencil.load"(%y) : (!field) -> !inner
  %3 = "stencil.weighted_sum"(%b) {offsets = [[0, 0]], weights = array<f64: 3.0>} : (!inner) -> !inner
  %q = "stencil.weighted_sum"(%h, %3) {offsets = [[0, 0], [0, 1]], weights = array<f64: 0.0, 0.125>} : (!temp, !inner) -> !inner
  "stencil.store"(%q, %y) {bounds = #stencil.bounds<[0, 0], [8, 8]>} : (!inner, !field) -> ()
  return
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [9]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f32>

// An apply with two results, a sum and another apply, which captures a number that is computed
// after the first one.

// CHECK-LABEL: func.func @applies(
// CHECK: %[[N:.*]] = arith.addf
// CHECK-NEXT: %[[R:.*]]:4 = "stencil.apply"()
// CHECK: arith.negf
// CHECK: arith.mulf
// CHECK: arith.mulf %{{.*}}, %[[N]] : f32
// CHECK-NEXT: "stencil.return"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (f32, f32, f32, f32) -> ()
// CHECK-NOT: stencil.apply
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3
func.func @applies(%t: !temp, %n: f32) -> (!inner, !inner, !inner, !inner) {
  %r:2 = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f32
    %b = arith.negf %a : f32
    "stencil.return"(%a, %b) : (f32, f32) -> ()
  }) : () -> (!inner, !inner)
  %s = "stencil.weighted_sum"(%t) {offsets = [[1]], weights = array<f64: 0.5>} : (!temp) -> !inner
  %m = arith.addf %n, %n : f32
  %q = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f32
    %b = arith.mulf %a, %m : f32
    "stencil.return"(%b) : (f32) -> ()
  }) : () -> !inner
  return %r#0, %r#1, %s, %q : !inner, !inner, !inner, !inner
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [9]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [9]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f64>

// %q reads around a point what %p is stored to.

// CHECK-LABEL: func.func @in_the_way(
// CHECK-COUNT-2: stencil.weighted_sum
// CHECK-NOT: stencil.apply
func.func @in_the_way(%x: !field, %y: !field) {
  %a = "stencil.load"(%x) : (!field) -> !temp
  %p = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.5>} : (!temp) -> !inner
  %q = "stencil.weighted_sum"(%a) {offsets = [[1]], weights = array<f64: 0.5>} : (!temp) -> !inner
  "stencil.store"(%p, %x) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
  "stencil.store"(%q, %y) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
  return
}

// In the other order, too.

// CHECK-LABEL: func.func @in_the_way_of_the_first(
// CHECK-COUNT-2: stencil.weighted_sum
// CHECK-NOT: stencil.apply
func.func @in_the_way_of_the_first(%x: !field, %y: !field) {
  %a = "stencil.load"(%x) : (!field) -> !temp
  %q = "stencil.weighted_sum"(%a) {offsets = [[1]], weights = array<f64: 0.5>} : (!temp) -> !inner
  %p = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.5>} : (!temp) -> !inner
  "stencil.store"(%q, %y) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
  "stencil.store"(%p, %x) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
  return
}

// %q is computed from what %p was stored to.

// CHECK-LABEL: func.func @loaded_after_the_store(
// CHECK-COUNT-2: stencil.weighted_sum
// CHECK-NOT: stencil.apply
func.func @loaded_after_the_store(%x: !field, %y: !field) {
  %a = "stencil.load"(%x) : (!field) -> !inner
  %p = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.5>} : (!inner) -> !inner
  "stencil.store"(%p, %x) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
  %b = "stencil.load"(%x) : (!field) -> !inner
  %q = "stencil.weighted_sum"(%a, %b) {offsets = [[0]], weights = array<f64: 0.5>} : (!inner, !inner) -> !inner
  "stencil.store"(%q, %y) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
  return
}

// A copy of %x stands between them: %q, which is stored there, must not be written before.

// CHECK-LABEL: func.func @read_between(
// CHECK: stencil.weighted_sum
// CHECK-NEXT: stencil.store
// CHECK-NEXT: stencil.weighted_sum
// CHECK-NOT: stencil.apply
func.func @read_between(%x: !field, %y: !field, %z: !field) -> !inner {
  %a = "stencil.load"(%x) : (!field) -> !inner
  %p = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.5>} : (!inner) -> !inner
  "stencil.store"(%a, %z) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
  %q = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.25>} : (!inner) -> !inner
  "stencil.store"(%q, %x) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
  return %p : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [9]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f64>
!less = !stencil.temp<#stencil.bounds<[0], [7]>, f64>
!half = !stencil.temp<#stencil.bounds<[-1], [9]>, f16>
!half_inner = !stencil.temp<#stencil.bounds<[0], [8]>, f16>

// Nothing in common; other points; a sum of a sum; numbers of 16 bits.

// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-8: stencil.weighted_sum
// CHECK-NOT: stencil.apply
func.func @apart(%a: !temp, %b: !temp, %c: !half) -> (!inner, !inner, !inner, !less, !inner, !half_inner, !half_inner) {
  %p = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.5>} : (!temp) -> !inner
  %q = "stencil.weighted_sum"(%b) {offsets = [[0]], weights = array<f64: 0.5>} : (!temp) -> !inner
  %r = "stencil.weighted_sum"(%b) {offsets = [[1]], weights = array<f64: 0.5>} : (!temp) -> !less
  %s = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.25>} : (!temp) -> !inner
  %t = "stencil.buffer"(%s) : (!inner) -> !inner
  %u = "stencil.weighted_sum"(%t, %s) {offsets = [[0]], weights = array<f64: 0.25>} : (!inner, !inner) -> !inner
  %v = "stencil.weighted_sum"(%c) {offsets = [[1]], weights = array<f64: 0.5>} : (!half) -> !half_inner
  %w = "stencil.weighted_sum"(%c) {offsets = [[0]], weights = array<f64: 0.25>} : (!half) -> !half_inner
  %x = "stencil.weighted_sum"(%w) {offsets = [[0]], weights = array<f64: 0.25>} : (!half_inner) -> !half_inner
  return %p, %q, %s, %r, %u, %v, %x : !inner, !inner, !inner, !less, !inner, !half_inner, !half_inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-8], [16]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f64>

// A region that calls a function; a sum of 17 terms, for which arithmetic takes the time.

// CHECK-LABEL: func.func @arithmetic(
// CHECK-COUNT-2: = "stencil.apply"
// CHECK-COUNT-3: stencil.weighted_sum
// CHECK-NOT: stencil.apply
func.func @arithmetic(%a: !temp) -> (!inner, !inner, !inner, !inner, !inner) {
  %p = "stencil.apply"() ({
    %x = "stencil.access"(%a) {offset = array<i64: -1>} : (!temp) -> f64
    %y = arith.negf %x : f64
    "stencil.return"(%y) : (f64) -> ()
  }) : () -> !inner
  %q = "stencil.apply"() ({
    %x = "stencil.access"(%a) {offset = array<i64: -1>} : (!temp) -> f64
    %y = math.exp %x : f64
    "stencil.return"(%y) : (f64) -> ()
  }) : () -> !inner
  %r = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.5>} : (!temp) -> !inner
  %wide = "stencil.weighted_sum"(%a) {offsets = [[-8], [-7], [-6], [-5], [-4], [-3], [-2], [-1], [0], [1], [2], [3], [4], [5], [6], [7], [8]], weights = array<f64: 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0>} : (!temp) -> !inner
  %s = "stencil.weighted_sum"(%a) {offsets = [[1]], weights = array<f64: 0.5>} : (!temp) -> !inner
  return %p, %q, %r, %wide, %s : !inner, !inner, !inner, !inner, !inner
}

// Nor is the first link of a chain of 17 terms, which has one term, taken out of it.

// CHECK-LABEL: func.func @chain_of_17(
// CHECK-COUNT-3: stencil.weighted_sum
// CHECK-NOT: stencil.apply
func.func @chain_of_17(%a: !temp, %b: !temp) -> (!inner, !inner) {
  %r = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.5>} : (!temp) -> !inner
  %first = "stencil.weighted_sum"(%a) {offsets = [[1]], weights = array<f64: 0.5>} : (!temp) -> !inner
  %wide = "stencil.weighted_sum"(%b, %first) {offsets = [[-8], [-7], [-6], [-5], [-4], [-3], [-2], [-1], [0], [1], [2], [3], [4], [5], [6], [7]], weights = array<f64: 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0>} : (!temp, !inner) -> !inner
  return %r, %wide : !inner, !inner
}

// Four sums of 16 terms come to more than 100 ops: three of them are one apply.

// CHECK-LABEL: func.func @many(
// CHECK: = "stencil.apply"
// CHECK-COUNT-45: math.fma
// CHECK: "stencil.return"(%{{.*}}, %{{.*}}, %{{.*}}) :
// CHECK: stencil.weighted_sum
// CHECK-NOT: stencil.apply
func.func @many(%a: !temp) -> (!inner, !inner, !inner, !inner) {
  %p = "stencil.weighted_sum"(%a) {offsets = [[-8], [-7], [-6], [-5], [-4], [-3], [-2], [-1], [0], [1], [2], [3], [4], [5], [6], [7]], weights = array<f64: 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0>} : (!temp) -> !inner
  %q = "stencil.weighted_sum"(%a) {offsets = [[-8], [-7], [-6], [-5], [-4], [-3], [-2], [-1], [0], [1], [2], [3], [4], [5], [6], [7]], weights = array<f64: 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0>} : (!temp) -> !inner
  %r = "stencil.weighted_sum"(%a) {offsets = [[-8], [-7], [-6], [-5], [-4], [-3], [-2], [-1], [0], [1], [2], [3], [4], [5], [6], [7]], weights = array<f64: 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0>} : (!temp) -> !inner
  %s = "stencil.weighted_sum"(%a) {offsets = [[-8], [-7], [-6], [-5], [-4], [-3], [-2], [-1], [0], [1], [2], [3], [4], [5], [6], [7]], weights = array<f64: 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0>} : (!temp) -> !inner
  return %p, %q, %r, %s : !inner, !inner, !inner, !inner
}

// -----

!field = !stencil.field<#stencil.bounds<[0], [8]>, f64>
!any = !stencil.field<1 : i64, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f64>

// A group that reads what another one computes, in a loop, with a cast that moves as well.

// CHECK-LABEL: func.func @groups(
// CHECK: scf.for
// CHECK: stencil.cast
// CHECK-NEXT: %[[B:.*]] = "stencil.load"
// CHECK-NEXT: %[[R:.*]]:2 = "stencil.apply"
// CHECK: stencil.store
// CHECK: %[[S:.*]]:2 = "stencil.apply"
// CHECK: "stencil.access"(%[[R]]#1)
// CHECK: "stencil.access"(%[[R]]#1)
// CHECK-NOT: stencil.weighted_sum
func.func @groups(%x: !field, %y: !any, %z: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    %a = "stencil.load"(%x) : (!field) -> !inner
    %p = "stencil.weighted_sum"(%a) {offsets = [[0]], weights = array<f64: 0.5>} : (!inner) -> !inner
    %c = "stencil.cast"(%y) : (!any) -> !field
    %b = "stencil.load"(%c) : (!field) -> !inner
    %q = "stencil.weighted_sum"(%a, %b) {offsets = [[0]], weights = array<f64: 0.25>} : (!inner, !inner) -> !inner
    "stencil.store"(%p, %z) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
    %r = "stencil.weighted_sum"(%q) {offsets = [[0]], weights = array<f64: 0.5>} : (!inner) -> !inner
    %t = "stencil.buffer"(%r) : (!inner) -> !inner
    %s = "stencil.weighted_sum"(%q) {offsets = [[0]], weights = array<f64: 0.25>} : (!inner) -> !inner
    %u = "stencil.weighted_sum"(%q) {offsets = [[0]], weights = array<f64: 0.125>} : (!inner) -> !inner
    "stencil.store"(%s, %x) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
    "stencil.store"(%u, %c) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
    "stencil.store"(%t, %z) {bounds = #stencil.bounds<[0], [8]>} : (!inner, !field) -> ()
  }
  return
}

// -----

!ints = !stencil.temp<#stencil.bounds<[0], [8]>, i64>
!floats = !stencil.temp<#stencil.bounds<[0], [8]>, f32>

// Quotients of integers have no form on vectors; vectors of wider numbers hold fewer of them.

// CHECK-LABEL: func.func @forms(
// CHECK-COUNT-4: = "stencil.apply"
func.func @forms(%a: !ints, %b: !floats) -> (!ints, !ints, !floats, !floats) {
  %p = "stencil.apply"() ({
    %x = "stencil.access"(%a) {offset = array<i64: 0>} : (!ints) -> i64
    %y = arith.remsi %x, %x : i64
    "stencil.return"(%y) : (i64) -> ()
  }) : () -> !ints
  %q = "stencil.apply"() ({
    %x = "stencil.access"(%a) {offset = array<i64: 0>} : (!ints) -> i64
    %y = arith.divsi %x, %x : i64
    "stencil.return"(%y) : (i64) -> ()
  }) : () -> !ints
  %r = "stencil.apply"() ({
    %x = "stencil.access"(%b) {offset = array<i64: 0>} : (!floats) -> f32
    %y = arith.addf %x, %x : f32
    "stencil.return"(%y) : (f32) -> ()
  }) : () -> !floats
  %s = "stencil.apply"() ({
    %x = "stencil.access"(%b) {offset = array<i64: 0>} : (!floats) -> f32
    %y = arith.extf %x : f32 to f64
    %z = arith.truncf %y : f64 to f32
    "stencil.return"(%z) : (f32) -> ()
  }) : () -> !floats
  return %p, %q, %r, %s : !ints, !ints, !floats, !floats
}
