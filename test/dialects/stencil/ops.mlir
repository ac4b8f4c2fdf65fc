// RUN: twofour-opt %s | filecheck %s
// RUN: twofour-opt %s | twofour-opt | filecheck %s
// RUN: twofour-opt %s --mlir-print-op-generic | twofour-opt | filecheck %s

!line = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!line_temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner_temp = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!plane_temp = !stencil.temp<#stencil.bounds<[0, 0], [8, 64]>, f64>

// Bounds on an axis may be negative, and a field may have a rank only.

// CHECK-LABEL: func.func @types(
// CHECK-SAME: !stencil.field<#stencil.bounds<[-1, -8, 3], [0, -2, 4]>, bf16>
// CHECK-SAME: !stencil.field<3 : i64, f16>
// CHECK-SAME: !stencil.temp<#stencil.bounds<[0], [1]>, i32>
// CHECK-SAME: !stencil.temp<1 : i64, f32>
// CHECK-SAME: !stencil.result<f64>
func.func @types(
    %a: !stencil.field<#stencil.bounds<[-1, -8, 3], [0, -2, 4]>, bf16>,
    %b: !stencil.field<3 : i64, f16>,
    %c: !stencil.temp<#stencil.bounds<[0], [1]>, i32>,
    %d: !stencil.temp<1 : i64, f32>,
    %e: !stencil.result<f64>) {
  return
}

// CHECK-LABEL: func.func @memory(
// CHECK-SAME: %[[U:.*]]: !stencil.field<1 : i64, f64>, %[[M:.*]]: memref<66xf64>, %[[D:.*]]: memref<?xf64>
func.func @memory(%u: !stencil.field<1 : i64, f64>, %m: memref<66xf64>, %d: memref<?xf64>) {
  // CHECK-NEXT: %[[CAST:.*]] = "stencil.cast"(%[[U]]) : (!stencil.field<1 : i64, f64>) -> !stencil.field<#stencil.bounds<[-1], [65]>, f64>
  %cast = "stencil.cast"(%u) : (!stencil.field<1 : i64, f64>) -> !line
  // CHECK-NEXT: %[[VIEW:.*]] = "stencil.external_load"(%[[M]]) : (memref<66xf64>) -> !stencil.field<#stencil.bounds<[-1], [65]>, f64>
  %view = "stencil.external_load"(%m) : (memref<66xf64>) -> !line
  // CHECK-NEXT: "stencil.external_load"(%[[D]]) : (memref<?xf64>) -> !stencil.field<1 : i64, f64>
  %any = "stencil.external_load"(%d) : (memref<?xf64>) -> !stencil.field<1 : i64, f64>
  // CHECK-NEXT: %[[T:.*]] = "stencil.load"(%[[CAST]]) : {{.*}} -> !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
  %t = "stencil.load"(%cast) : (!line) -> !line_temp
  // CHECK-NEXT: "stencil.load"(%[[CAST]]) : {{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
  %part = "stencil.load"(%cast) : (!line) -> !inner_temp
  // CHECK-NEXT: "stencil.load"(%[[CAST]]) : {{.*}} -> !stencil.temp<1 : i64, f64>
  %unknown = "stencil.load"(%cast) : (!line) -> !stencil.temp<1 : i64, f64>
  // CHECK-NEXT: %[[B:.*]] = "stencil.buffer"(%[[T]]) : {{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
  %b = "stencil.buffer"(%t) : (!line_temp) -> !inner_temp
  // CHECK-NEXT: "stencil.store"(%[[B]], %[[VIEW]]) {bounds = #stencil.bounds<[0], [64]>} :
  "stencil.store"(%b, %view) {bounds = #stencil.bounds<[0], [64]>} : (!inner_temp, !line) -> ()
  // CHECK-NEXT: "stencil.external_store"(%[[VIEW]], %[[D]]) :
  "stencil.external_store"(%view, %d) : (!line, memref<?xf64>) -> ()
  // CHECK-NEXT: return
  return
}

// The region of an apply captures what it reads; its results share one type.

// CHECK-LABEL: func.func @apply(
// CHECK-SAME: %[[T:.*]]: !stencil.temp<#stencil.bounds<[-1], [65]>, f64>, %[[K:.*]]: f64
func.func @apply(%t: !line_temp, %k: f64) {
  // CHECK-NEXT: %[[R:.*]]:2 = "stencil.apply"() ({
  %r, %s = "stencil.apply"() ({
    // CHECK-NEXT: %[[L:.*]] = "stencil.access"(%[[T]]) {offset = array<i64: -1>} : {{.*}} -> f64
    %l = "stencil.access"(%t) {offset = array<i64: -1>} : (!line_temp) -> f64
    // CHECK-NEXT: %[[H:.*]] = "stencil.access"(%[[T]]) {offset = array<i64: 1>} : {{.*}} -> f64
    %h = "stencil.access"(%t) {offset = array<i64: 1>} : (!line_temp) -> f64
    // CHECK-NEXT: %[[M:.*]] = arith.mulf %[[L]], %[[K]] : f64
    %m = arith.mulf %l, %k : f64
    // CHECK-NEXT: "stencil.index"() {dim = 0 : i64, offset = array<i64: 2>} : () -> index
    %i = "stencil.index"() {dim = 0 : i64, offset = array<i64: 2>} : () -> index
    // CHECK-NEXT: %[[SR:.*]] = "stencil.store_result"(%[[H]]) : (f64) -> !stencil.result<f64>
    %sr = "stencil.store_result"(%h) : (f64) -> !stencil.result<f64>
    // CHECK-NEXT: %[[SM:.*]] = "stencil.store_result"(%[[M]])
    %sm = "stencil.store_result"(%m) : (f64) -> !stencil.result<f64>
    // CHECK-NEXT: "stencil.return"(%[[SM]], %[[SR]]) : (!stencil.result<f64>, !stencil.result<f64>) -> ()
    "stencil.return"(%sm, %sr) : (!stencil.result<f64>, !stencil.result<f64>) -> ()
  // CHECK-NEXT: }) : () -> (!stencil.temp<#stencil.bounds<[0], [64]>, f64>, !stencil.temp<#stencil.bounds<[0], [64]>, f64>)
  }) : () -> (!inner_temp, !inner_temp)
  return
}

// Axis d of a temp of lower rank follows axis offset_mapping[d] of the apply.

// CHECK-LABEL: func.func @lower_rank(
func.func @lower_rank(%t: !line_temp, %p: !plane_temp) {
  %r = "stencil.apply"() ({
    // CHECK: "stencil.access"(%{{.*}}) {offset = array<i64: 1>, offset_mapping = array<i64: 1>} :
    %a = "stencil.access"(%t) {offset = array<i64: 1>, offset_mapping = array<i64: 1>} : (!line_temp) -> f64
    // CHECK-NEXT: "stencil.access"(%{{.*}}) {offset = array<i64: 0, 0>, offset_mapping = [0, 1]} :
    %b = "stencil.access"(%p) {offset = array<i64: 0, 0>, offset_mapping = [0, 1]} : (!plane_temp) -> f64
    %s = arith.addf %a, %b : f64
    "stencil.return"(%s) : (f64) -> ()
  }) : () -> !plane_temp
  return
}

// An access may stand in a region of another op.

// CHECK-LABEL: func.func @branch(
func.func @branch(%t: !line_temp, %c: i1) {
  // CHECK: "stencil.apply"() ({
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: "stencil.access"
  %r = "stencil.apply"() ({
    %v = scf.if %c -> (f64) {
      %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!line_temp) -> f64
      scf.yield %a : f64
    } else {
      %b = "stencil.access"(%t) {offset = array<i64: 0>} : (!line_temp) -> f64
      scf.yield %b : f64
    }
    "stencil.return"(%v) : (f64) -> ()
  }) : () -> !inner_temp
  return
}

// CHECK-LABEL: func.func @weighted_sum(
// CHECK-SAME: %[[T:.*]]: !stencil.temp<#stencil.bounds<[-1], [65]>, f64>, %[[A:.*]]: !stencil.temp<#stencil.bounds<[0], [64]>, f64>
func.func @weighted_sum(%t: !line_temp, %a: !inner_temp) {
  // CHECK-NEXT: "stencil.weighted_sum"(%[[T]]) {offsets = {{\[\[}}-1], [1]], weights = array<f64: 5.000000e-01, -2.500000e-01>} :
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 0.5, -0.25>} : (!line_temp) -> !inner_temp
  // CHECK-NEXT: "stencil.weighted_sum"(%[[T]], %[[A]]) {constant = 2.000000e+00 : f64, offsets = {{\[\[}}0]], weights = array<f64: 1.000000e+00>} :
  %s = "stencil.weighted_sum"(%t, %a) {constant = 2.0 : f64, offsets = [[0]], weights = array<f64: 1.0>} : (!line_temp, !inner_temp) -> !inner_temp
  // CHECK-NEXT: "stencil.weighted_sum"(%[[T]]) {{.*}} -> !stencil.temp<1 : i64, f64>
  %u = "stencil.weighted_sum"(%t) {offsets = [[-99]], weights = array<f64: 1.0>} : (!line_temp) -> !stencil.temp<1 : i64, f64>
  return
}

// A weight of an f16 stencil is a number of f32, the type in which f16 sums are formed.

// CHECK-LABEL: func.func @accumulation(
func.func @accumulation(%t: !stencil.temp<1 : i64, f16>, %b: !stencil.temp<1 : i64, bf16>) {
  // CHECK-NEXT: weights = array<f64: 1.0000001192092896>}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.00000011920928955078125>} : (!stencil.temp<1 : i64, f16>) -> !stencil.temp<1 : i64, f16>
  // CHECK-NEXT: weights = array<f64: 1.0000001192092896>}
  %s = "stencil.weighted_sum"(%b) {offsets = [[0]], weights = array<f64: 1.00000011920928955078125>} : (!stencil.temp<1 : i64, bf16>) -> !stencil.temp<1 : i64, bf16>
  return
}
