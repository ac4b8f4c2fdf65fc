// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-extract-weights | filecheck %s
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --canonicalize --stencil-extract-weights --canonicalize | filecheck %s
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-extract-weights=sweep-terms=1000 | filecheck %s

// Every case holds as it stands, when canonicalization has hoisted the constants before, and where
// many terms may be added.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Constants on either side, and a sum of products.

// CHECK-LABEL: func.func @products(
// CHECK-NOT: stencil.apply
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}-1], [0], [1]], weights = array<f64: 2.500000e-01, 5.000000e-01, 1.250000e-01>}
// CHECK-NOT: stencil.apply
func.func @products(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %l = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
    %c = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %h = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %quarter = arith.constant 0.25 : f64
    %half = arith.constant 0.5 : f64
    %eighth = arith.constant 0.125 : f64
    %0 = arith.mulf %quarter, %l : f64
    %1 = arith.mulf %c, %half : f64
    %2 = arith.mulf %h, %eighth : f64
    %3 = arith.addf %0, %1 : f64
    %4 = arith.addf %2, %3 : f64
    "stencil.return"(%4) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Arithmetic on constants alone: 2 * (1 + 3) / -4 - 1 = -3.

// CHECK-LABEL: func.func @constant_folding(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}2]], weights = array<f64: -3.000000e+00>}
func.func @constant_folding(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 2>} : (!temp) -> f64
    %one = arith.constant 1.0 : f64
    %two = arith.constant 2.0 : f64
    %three = arith.constant 3.0 : f64
    %four = arith.constant 4.0 : f64
    %0 = arith.addf %one, %three : f64
    %1 = arith.mulf %two, %0 : f64
    %2 = arith.negf %four : f64
    %3 = arith.divf %1, %2 : f64
    %4 = arith.subf %3, %one : f64
    %5 = arith.mulf %4, %a : f64
    "stencil.return"(%5) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Accesses of one offset add up: u[1] + 2 u[1] + u[-1] - u[-1] leaves 3 u[1].

// CHECK-LABEL: func.func @same_offset(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}1]], weights = array<f64: 3.000000e+00>}
func.func @same_offset(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %c = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
    %two = arith.constant 2.0 : f64
    %0 = arith.mulf %two, %b : f64
    %1 = arith.addf %a, %0 : f64
    %2 = arith.addf %1, %c : f64
    %3 = arith.subf %2, %c : f64
    "stencil.return"(%3) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Negation, and a difference of both signs: -(u[0] - 4 u[1]).

// CHECK-LABEL: func.func @signs(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}0], [1]], weights = array<f64: -1.000000e+00, 4.000000e+00>}
func.func @signs(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %four = arith.constant 4.0 : f64
    %0 = arith.mulf %b, %four : f64
    %1 = arith.subf %a, %0 : f64
    %2 = arith.negf %1 : f64
    "stencil.return"(%2) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// fma with the constant in either factor, and a division: 4 u[0] + (u[1] * 2 + u[-1]) / 8.

// CHECK-LABEL: func.func @fma_and_quotient(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}-1], [0], [1]], weights = array<f64: 1.250000e-01, 4.000000e+00, 2.500000e-01>}
func.func @fma_and_quotient(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %c = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %two = arith.constant 2.0 : f64
    %four = arith.constant 4.0 : f64
    %eight = arith.constant 8.0 : f64
    %0 = math.fma %c, %two, %a : f64
    %1 = arith.divf %0, %eight : f64
    %2 = math.fma %four, %b, %1 : f64
    "stencil.return"(%2) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Weights are formed exactly and rounded once: (u + u + u) / 3 is u, not 3 * 0.333.. of it, and
// 1e30 u + u - 1e30 u is u, not 0.

// CHECK-LABEL: func.func @exact(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}0], [1]], weights = array<f64: 1.000000e+00, 1.000000e+00>}
func.func @exact(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %three = arith.constant 3.0 : f64
    %large = arith.constant 1.0e30 : f64
    %third = arith.divf %a, %three : f64
    %0 = arith.addf %third, %third : f64
    %1 = arith.addf %0, %third : f64
    %2 = arith.mulf %b, %large : f64
    %3 = arith.addf %2, %b : f64
    %4 = arith.subf %3, %2 : f64
    %5 = arith.addf %1, %4 : f64
    "stencil.return"(%5) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// A constant outside the apply.

// CHECK-LABEL: func.func @hoisted(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}1]], weights = array<f64: 5.000000e-01>}
func.func @hoisted(%t: !temp, %v: !field) {
  %half = arith.constant 0.5 : f64
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %0 = arith.mulf %a, %half : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Arithmetic over constants outside of the apply.

// CHECK-LABEL: func.func @computed_outside(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}1]], weights = array<f64: 7.500000e-01>}
func.func @computed_outside(%t: !temp, %v: !field) {
  %half = arith.constant 0.5 : f64
  %two = arith.constant 2.0 : f64
  %quarter = arith.divf %half, %two : f64
  %weight = arith.addf %half, %quarter : f64
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %0 = arith.mulf %a, %weight : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Affine: 3 u[1] + (2 - 0.5), and an access alone, whose weight is 1.

// CHECK-LABEL: func.func @affine(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {constant = 1.500000e+00 : f64, offsets = {{\[\[}}1]], weights = array<f64: 3.000000e+00>}
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}0]], weights = array<f64: 1.000000e+00>}
func.func @affine(%t: !temp, %v: !field, %w: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %three = arith.constant 3.0 : f64
    %two = arith.constant 2.0 : f64
    %half = arith.constant 0.5 : f64
    %0 = math.fma %a, %three, %two : f64
    %1 = arith.subf %0, %half : f64
    "stencil.return"(%1) : (f64) -> ()
  }) : () -> !temp
  %s = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  "stencil.store"(%s, %w) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Linear values of earlier applies are seen through, at any offset; what nothing reads any more
// goes: ((u[-1] + u[1]) at +1 and at -1) * 0.5 + 4 is a stencil over -2, 0, 2.

// CHECK-LABEL: func.func @composed(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>
// CHECK-NEXT: %[[R:.*]] = "stencil.weighted_sum"(%[[T]]) {constant = 4.000000e+00 : f64, offsets = {{\[\[}}-2], [0], [2]], weights = array<f64: 5.000000e-01, 1.000000e+00, 5.000000e-01>}
// CHECK-NEXT: "stencil.store"(%[[R]],
func.func @composed(%t: !temp, %v: !field) {
  %m = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %0 = arith.addf %a, %b : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%m) {offset = array<i64: -1>} : (!temp) -> f64
    %b = "stencil.access"(%m) {offset = array<i64: 1>} : (!temp) -> f64
    %half = arith.constant 0.5 : f64
    %four = arith.constant 4.0 : f64
    %0 = arith.addf %a, %b : f64
    %1 = math.fma %0, %half, %four : f64
    "stencil.return"(%1) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// A sum that stood there before is seen through too, and kept when something else reads it.

// CHECK-LABEL: func.func @composed_with_a_sum(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>
// CHECK-NEXT: %[[M:.*]] = "stencil.weighted_sum"(%[[T]]) {constant = 1.000000e+00 : f64, offsets = {{\[\[}}3]], weights = array<f64: 2.000000e+00>}
// CHECK-NEXT: %[[R:.*]] = "stencil.weighted_sum"(%[[T]]) {constant = 3.000000e+00 : f64, offsets = {{\[\[}}2]], weights = array<f64: 6.000000e+00>}
// CHECK-NEXT: "stencil.store"(%[[M]],
// CHECK-NEXT: "stencil.store"(%[[R]],
func.func @composed_with_a_sum(%t: !temp, %v: !field, %w: !field) {
  %m = "stencil.weighted_sum"(%t) {constant = 1.0 : f64, offsets = [[3]], weights = array<f64: 2.0>} : (!temp) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%m) {offset = array<i64: -1>} : (!temp) -> f64
    %three = arith.constant 3.0 : f64
    %0 = arith.mulf %a, %three : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%m, %w) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Nothing is composed across a buffer: it is memory of its own.

// CHECK-LABEL: func.func @buffered(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>
// CHECK-NEXT: %[[M:.*]] = "stencil.weighted_sum"(%[[T]]) {offsets = {{\[\[}}1]], weights = array<f64: 1.000000e+00>}
// CHECK-NEXT: %[[B:.*]] = "stencil.buffer"(%[[M]])
// CHECK-NEXT: "stencil.weighted_sum"(%[[B]]) {offsets = {{\[\[}}-2]], weights = array<f64: 1.000000e+00>}
func.func @buffered(%t: !temp, %v: !field) {
  %m = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  %b = "stencil.buffer"(%m) : (!temp) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%b) {offset = array<i64: -2>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Several temps: a chain, the temp with the most terms last; the constant stands in the first link.

// CHECK-LABEL: func.func @several_temps(
// CHECK-SAME: %[[S:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>, %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>
// CHECK-NEXT: %[[L:.*]] = "stencil.weighted_sum"(%[[T]]) {constant = 2.000000e+00 : f64, offsets = {{\[\[}}0]], weights = array<f64: -1.000000e+00>}
// CHECK-NEXT: %[[R:.*]] = "stencil.weighted_sum"(%[[S]], %[[L]]) {offsets = {{\[\[}}-1], [1]], weights = array<f64: 1.000000e+00, 1.000000e+00>}
// CHECK-NEXT: "stencil.store"(%[[R]],
func.func @several_temps(%s: !temp, %t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%s) {offset = array<i64: -1>} : (!temp) -> f64
    %b = "stencil.access"(%s) {offset = array<i64: 1>} : (!temp) -> f64
    %c = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %two = arith.constant 2.0 : f64
    %0 = arith.addf %a, %b : f64
    %1 = arith.subf %0, %c : f64
    %2 = arith.addf %1, %two : f64
    "stencil.return"(%2) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Of several results the linear ones are taken out; the rest stays one apply.

// CHECK-LABEL: func.func @several_results(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>
// CHECK-NEXT: %[[W:.*]] = "stencil.weighted_sum"(%[[T]]) {offsets = {{\[\[}}-1], [1]], weights = array<f64: 1.000000e+00, 1.000000e+00>}
// CHECK-NEXT: %[[A:.*]]:2 = "stencil.apply"() ({
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: "stencil.return"(%[[P]], %{{.*}}) : (f64, f64) -> ()
// CHECK: "stencil.store"(%[[A]]#0, %{{.*}}) {bounds = #stencil.bounds<[0], [61]>}
// CHECK: "stencil.store"(%[[W]], %{{.*}}) {bounds = #stencil.bounds<[0], [62]>}
// CHECK: "stencil.store"(%[[A]]#1, %{{.*}}) {bounds = #stencil.bounds<[0], [63]>}
func.func @several_results(%t: !temp, %u: !field, %v: !field, %w: !field) {
  %r:3 = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %0 = arith.addf %a, %b : f64
    %1 = arith.mulf %a, %b : f64
    %2 = arith.divf %a, %b : f64
    "stencil.return"(%1, %0, %2) : (f64, f64, f64) -> ()
  }) : () -> (!temp, !temp, !temp)
  "stencil.store"(%r#0, %u) {bounds = #stencil.bounds<[0], [61]>} : (!temp, !field) -> ()
  "stencil.store"(%r#1, %v) {bounds = #stencil.bounds<[0], [62]>} : (!temp, !field) -> ()
  "stencil.store"(%r#2, %w) {bounds = #stencil.bounds<[0], [63]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8, -8], [72, 72]>, f32>
!temp = !stencil.temp<2 : i64, f32>

// Offsets are sorted, slowest axis first; weights are numbers of f32, rounded once from the exact
// sum of the two constants.

// CHECK-LABEL: func.func @two_dimensions(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}-1, 2], [0, -1], [0, 3], [1, 0]], weights = array<f64: 0.10000000149011612, 0.10000000149011612, 0.10000000149011612, 0.20000000298023224>}
func.func @two_dimensions(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1, 0>} : (!temp) -> f32
    %b = "stencil.access"(%t) {offset = array<i64: 0, 3>} : (!temp) -> f32
    %c = "stencil.access"(%t) {offset = array<i64: 0, -1>} : (!temp) -> f32
    %d = "stencil.access"(%t) {offset = array<i64: -1, 2>} : (!temp) -> f32
    %w = arith.constant 0.1 : f32
    %0 = arith.addf %a, %b : f32
    %1 = arith.addf %0, %c : f32
    %2 = arith.addf %1, %d : f32
    %3 = arith.addf %2, %a : f32
    %4 = arith.mulf %3, %w : f32
    "stencil.return"(%4) : (f32) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [64, 64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f16>
!temp = !stencil.temp<1 : i64, f16>

// Conversions between float types, and stencil.store_result.

// CHECK-LABEL: func.func @conversions(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}0], [1]], weights = array<f64: 1.000000e+00, 2.500000e-01>}
func.func @conversions(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f16
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f16
    %quarter = arith.constant 0.25 : f32
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = math.fma %1, %quarter, %0 : f32
    %3 = arith.truncf %2 : f32 to f16
    %4 = "stencil.store_result"(%3) : (f16) -> !stencil.result<f16>
    "stencil.return"(%4) : (!stencil.result<f16>) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// What is left: products of accesses.

// CHECK-LABEL: func.func @product_of_accesses(
// CHECK: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @product_of_accesses(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %0 = arith.mulf %a, %b : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Quotients by an access.

// CHECK-LABEL: func.func @quotient_by_an_access(
// CHECK: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @quotient_by_an_access(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %one = arith.constant 1.0 : f64
    %0 = arith.divf %one, %a : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Division by zero, and infinite constants.

// CHECK-LABEL: func.func @infinities(
// CHECK-COUNT-2: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @infinities(%t: !temp, %v: !field, %w: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %zero = arith.constant 0.0 : f64
    %0 = arith.divf %a, %zero : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  %s = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %inf = arith.constant 0x7FF0000000000000 : f64
    %0 = arith.addf %a, %inf : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  "stencil.store"(%s, %w) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// A choice, also between equal offsets.

// CHECK-LABEL: func.func @select(
// CHECK: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @select(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %less = arith.cmpf olt, %a, %b : f64
    %0 = arith.select %less, %a, %b : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// A number that is not constant.

// CHECK-LABEL: func.func @scalar(
// CHECK: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @scalar(%t: !temp, %v: !field, %k: f64) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %0 = arith.mulf %a, %k : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// The coordinates of the point.

// CHECK-LABEL: func.func @index(
// CHECK: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @index(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %i = "stencil.index"() {dim = 0 : i64, offset = array<i64: 0>} : () -> index
    %n = arith.index_cast %i : index to i64
    %x = arith.sitofp %n : i64 to f64
    %0 = arith.addf %a, %x : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8, -8], [72, 72]>, f64>
!line = !stencil.temp<1 : i64, f64>
!plane = !stencil.temp<2 : i64, f64>

// A temp of lower rank.

// CHECK-LABEL: func.func @lower_rank(
// CHECK: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @lower_rank(%l: !line, %t: !plane, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%l) {offset = array<i64: 0>, offset_mapping = array<i64: 1>} : (!line) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 0, 1>} : (!plane) -> f64
    %0 = arith.addf %a, %b : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !plane
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [64, 64]>} : (!plane, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// A result that reads nothing, a sum that cancels, and functions of an access.

// CHECK-LABEL: func.func @nothing_or_not_linear(
// CHECK-COUNT-3: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @nothing_or_not_linear(%t: !temp, %u: !field, %v: !field, %w: !field) {
  %q = "stencil.apply"() ({
    %one = arith.constant 1.0 : f64
    "stencil.return"(%one) : (f64) -> ()
  }) : () -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %0 = arith.subf %a, %a : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  %s = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %0 = math.absf %a : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%q, %u) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  "stencil.store"(%s, %w) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f32>
!temp = !stencil.temp<1 : i64, f32>

// A weight that f32 cannot hold.

// CHECK-LABEL: func.func @weight_out_of_range(
// CHECK: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @weight_out_of_range(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f32
    %large = arith.constant 1.0e30 : f32
    %0 = arith.mulf %a, %large : f32
    %1 = arith.mulf %0, %large : f32
    "stencil.return"(%1) : (f32) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, i32>
!temp = !stencil.temp<1 : i64, i32>

// Integers.

// CHECK-LABEL: func.func @integers(
// CHECK: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @integers(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> i32
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> i32
    %0 = arith.addi %a, %b : i32
    "stencil.return"(%0) : (i32) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// A weight that is not a number, inside the apply or hoisted out of it.

func.func @not_a_number(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %nan = arith.constant 0x7FF8000000000000 : f64
    // expected-error @+1 {{'arith.mulf' op expected a number, got NaN}}
    %0 = arith.mulf %a, %nan : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// A NaN that marks points is no weight: the apply is left.

// CHECK-LABEL: func.func @mark(
// CHECK: "stencil.apply"
// CHECK-NOT: stencil.weighted_sum
func.func @mark(%t: !temp, %v: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %zero = arith.constant 0.0 : f64
    %nan = arith.constant 0x7FF8000000000000 : f64
    %less = arith.cmpf olt, %a, %zero : f64
    %0 = arith.select %less, %nan, %a : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Weights of zero that were there before are no terms of what is composed.

// CHECK-LABEL: func.func @zeros(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}0], [2]], weights = array<f64: 2.000000e+00, 1.000000e+00>}
func.func @zeros(%t: !temp, %v: !field) {
  %w = "stencil.weighted_sum"(%t) {offsets = [[-1], [0], [1]], weights = array<f64: 0.0, 2.0, -0.0>} : (!temp) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 2>} : (!temp) -> f64
    %b = "stencil.access"(%w) {offset = array<i64: 0>} : (!temp) -> f64
    %0 = arith.addf %a, %b : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// Offsets that no attribute holds are not composed.

!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @far(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}9223372036854775807]]
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}1]]
func.func @far(%t: !temp) -> !temp {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 9223372036854775807>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  %s = "stencil.apply"() ({
    %a = "stencil.access"(%r) {offset = array<i64: 1>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  return %s : !temp
}

// -----

// What would lose all its weights is not composed either.

!temp = !stencil.temp<1 : i64, f32>

// CHECK-LABEL: func.func @tiny(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}1]]
// CHECK: "stencil.weighted_sum"(%{{.*}}) {offsets = {{\[\[}}2]]
func.func @tiny(%t: !temp) -> !temp {
  %c = arith.constant 1.0e-30 : f32
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f32
    %m = arith.mulf %a, %c : f32
    "stencil.return"(%m) : (f32) -> ()
  }) : () -> !temp
  %s = "stencil.apply"() ({
    %a = "stencil.access"(%r) {offset = array<i64: 2>} : (!temp) -> f32
    %m = arith.mulf %a, %c : f32
    "stencil.return"(%m) : (f32) -> ()
  }) : () -> !temp
  return %s : !temp
}

// -----

// The weight of the second one is no number of f32; that of both is.

!temp = !stencil.temp<1 : i64, f32>

// CHECK-LABEL: func.func @down_and_up(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f32>)
// CHECK-NEXT: %[[R:.*]] = "stencil.weighted_sum"(%[[T]]) {offsets = {{\[\[}}3]], weights = array<f64: 1.000000e+10>}
// CHECK-NEXT: return %[[R]]
func.func @down_and_up(%t: !temp) -> !temp {
  %r = "stencil.apply"() ({
    %c = arith.constant 1.0e-30 : f32
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f32
    %m = arith.mulf %a, %c : f32
    "stencil.return"(%m) : (f32) -> ()
  }) : () -> !temp
  %s = "stencil.apply"() ({
    %c = arith.constant 1.0e20 : f32
    %a = "stencil.access"(%r) {offset = array<i64: 2>} : (!temp) -> f32
    %m = arith.mulf %a, %c : f32
    %n = arith.mulf %m, %c : f32
    "stencil.return"(%n) : (f32) -> ()
  }) : () -> !temp
  return %s : !temp
}
