// RUN: twofour-opt %s --stencil-extract-weights=compose=false | filecheck %s

// Without composition the temps that earlier applies compute are inputs like any other.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>
// CHECK-NEXT: %[[M:.*]] = "stencil.weighted_sum"(%[[T]]) {offsets = {{\[\[}}-1]], weights = array<f64: 1.000000e+00>}
// CHECK-NEXT: %[[R:.*]] = "stencil.weighted_sum"(%[[M]]) {offsets = {{\[\[}}3]], weights = array<f64: 1.000000e+00>}
// CHECK-NEXT: "stencil.store"(%[[R]],
func.func @chain(%t: !temp, %v: !field) {
  %m = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%m) {offset = array<i64: 3>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}
