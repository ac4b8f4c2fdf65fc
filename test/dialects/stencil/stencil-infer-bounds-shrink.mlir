// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-infer-bounds=shrink=true | filecheck %s
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-infer-bounds | filecheck %s --check-prefix=KEPT

// Temps that are larger than their uses need shrink; without the option they stay as they are.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!large = !stencil.temp<#stencil.bounds<[-2], [66]>, f64>
!whole = !stencil.temp<#stencil.bounds<[-8], [72]>, f64>

// CHECK-LABEL: func.func @larger_than_needed(
// CHECK: "stencil.load"{{.*}} -> !stencil.temp<#stencil.bounds<[-1], [64]>, f64>
// CHECK: "stencil.weighted_sum"{{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
// KEPT-LABEL: func.func @larger_than_needed(
// KEPT: "stencil.load"{{.*}} -> !stencil.temp<#stencil.bounds<[-8], [72]>, f64>
// KEPT: "stencil.weighted_sum"{{.*}} -> !stencil.temp<#stencil.bounds<[-2], [66]>, f64>
func.func @larger_than_needed(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !whole
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [0]], weights = array<f64: 1.0, 2.0>} : (!whole) -> !large
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!large, !field) -> ()
  return
}

// -----

// Results of one apply keep one box, which all uses need; what nobody reads stays as it is.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-4], [68]>, f64>

// CHECK-LABEL: func.func @two_results(
// CHECK: "stencil.load"{{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
// CHECK: "stencil.load"{{.*}} -> !stencil.temp<#stencil.bounds<[-4], [68]>, f64>
// CHECK: "stencil.apply"
// CHECK: -> (!stencil.temp<#stencil.bounds<[0], [64]>, f64>, !stencil.temp<#stencil.bounds<[0], [64]>, f64>)
func.func @two_results(%u: !field, %v: !field, %w: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %unused = "stencil.load"(%u) : (!field) -> !temp
  %r, %s = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    "stencil.return"(%a, %a) : (f64, f64) -> ()
  }) : () -> (!temp, !temp)
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [32]>} : (!temp, !field) -> ()
  "stencil.store"(%s, %w) {bounds = #stencil.bounds<[16], [64]>} : (!temp, !field) -> ()
  return
}
