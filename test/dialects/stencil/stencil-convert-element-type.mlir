// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-convert-element-type | filecheck %s
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-convert-element-type=to=f64 | filecheck %s --check-prefix=SAME
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-convert-element-type=to=f16 | filecheck %s --check-prefix=HALF
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-convert-element-type=to=bf16 | filecheck %s --check-prefix=BRAIN

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// Fields, temps, results, scalars and constants change; indices and integers stay. f32 is the default.

// CHECK-LABEL: func.func @program(
// CHECK-SAME: %{{.*}}: !stencil.field<#stencil.bounds<[-1], [65]>, f32>, %{{.*}}: f32, %{{.*}}: i64, %{{.*}}: memref<66xf32>) -> !stencil.field<#stencil.bounds<[-1], [65]>, f32>
// CHECK: "stencil.external_load"(%{{.*}}) : (memref<66xf32>) -> !stencil.field<#stencil.bounds<[-1], [65]>, f32>
// CHECK: "stencil.load"({{.*}} -> !stencil.temp<1 : i64, f32>
// CHECK: arith.constant 1.000000e-01 : f32
// CHECK: "stencil.access"(%{{.*}}) {offset = array<i64: 1>} : (!stencil.temp<1 : i64, f32>) -> f32
// CHECK: "stencil.index"() {{.*}} -> index
// CHECK: arith.index_cast %{{.*}} : index to i64
// CHECK: arith.sitofp %{{.*}} : i64 to f32
// CHECK: scf.if %{{.*}} -> (f32) {
// CHECK: "stencil.store_result"(%{{.*}}) : (f32) -> !stencil.result<f32>
// CHECK: "stencil.return"(%{{.*}}) : (!stencil.result<f32>) -> ()
// CHECK-NEXT: }) : () -> !stencil.temp<1 : i64, f32>
// CHECK-NOT: f64
// CHECK: return
// SAME-LABEL: func.func @program(
// SAME-NOT: f32
// SAME: arith.constant 1.000000e-01 : f64
// SAME-NOT: f32
// HALF-LABEL: func.func @program(
// HALF-SAME: f16
// HALF: arith.constant 9.997550e-02 : f16
// BRAIN-LABEL: func.func @program(
// BRAIN-SAME: bf16
// BRAIN: arith.constant 1.000980e-01 : bf16
func.func @program(%u: !field, %k: f64, %n: i64, %m: memref<66xf64>) -> !field {
  %v = "stencil.external_load"(%m) : (memref<66xf64>) -> !field
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %tenth = arith.constant 0.1 : f64
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %i = "stencil.index"() {dim = 0 : i64, offset = array<i64: 0>} : () -> index
    %j = arith.index_cast %i : index to i64
    %x = arith.sitofp %j : i64 to f64
    %less = arith.cmpi slt, %j, %n : i64
    %c = scf.if %less -> (f64) {
      %0 = math.fma %a, %tenth, %k : f64
      scf.yield %0 : f64
    } else {
      scf.yield %x : f64
    }
    %s = "stencil.store_result"(%c) : (f64) -> !stencil.result<f64>
    "stencil.return"(%s) : (!stencil.result<f64>) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return %v : !field
}

// -----

!temp = !stencil.temp<1 : i64, f64>

// Weights, constants and matrices of linear ops are rounded to the accumulation type.

// CHECK-LABEL: func.func @linear_ops(
// CHECK: "stencil.weighted_sum"(%{{.*}}) {constant = 0.20000000298023224 : f64, offsets = {{\[\[}}0]], weights = array<f64: 0.10000000149011612>} : (!stencil.temp<1 : i64, f32>) -> !stencil.temp<1 : i64, f32>
// CHECK: "nm.patch_matmul"(%{{.*}}) {{{.*}}matrix = [array<f64: 0.10000000149011612>]{{.*}}weights = array<f64: 0.10000000149011612>} : (!stencil.temp<1 : i64, f32>) -> !stencil.temp<1 : i64, f32>
// HALF-LABEL: func.func @linear_ops(
// HALF: weights = array<f64: 0.10000000149011612>} : (!stencil.temp<1 : i64, f16>) -> !stencil.temp<1 : i64, f16>
// BRAIN-LABEL: func.func @linear_ops(
// BRAIN: weights = array<f64: 0.10000000149011612>} : (!stencil.temp<1 : i64, bf16>) -> !stencil.temp<1 : i64, bf16>
// SAME-LABEL: func.func @linear_ops(
// SAME: {constant = 2.000000e-01 : f64, offsets = {{\[\[}}0]], weights = array<f64: 1.000000e-01>}
func.func @linear_ops(%t: !temp) {
  %r = "stencil.weighted_sum"(%t) {constant = 0.2 : f64, offsets = [[0]], weights = array<f64: 0.1>} : (!temp) -> !temp
  %s = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>, matrix = [array<f64: 0.1>], output_offsets = [[0]], input_offsets = [[0]],
    offsets = [[0]], weights = array<f64: 0.1>
  } : (!temp) -> !temp
  return
}

// -----

// Without floats there is nothing to do.

// CHECK-LABEL: func.func @integers(
// CHECK-SAME: !stencil.field<1 : i64, i32>
func.func @integers(%u: !stencil.field<1 : i64, i32>, %n: i64) {
  return
}

// -----

// Which of two types is meant cannot be known.

// expected-error @+1 {{'func.func' op expected one float type, got f16 and f64}}
func.func @mixed(%u: !stencil.field<1 : i64, f64>, %v: !stencil.field<1 : i64, f16>) {
  return
}

// -----

// Tables and vectors change as numbers do.

!field = !stencil.field<1 : i64, f64>

// CHECK: memref.global "private" constant @table : memref<2x2xf32> = dense<{{\[\[}}1.000000e+00, 0.333333343], [2.000000e+00, -5.000000e-01]]>
// SAME: memref.global "private" constant @table : memref<2x2xf64> = dense<{{\[\[}}1.000000e+00, 0.33333333333333331], {{.*}}]>
// HALF: memref.global "private" constant @table : memref<2x2xf16> = dense<{{\[\[}}1.000000e+00, 3.332520e-01], {{.*}}]>
// BRAIN: memref.global "private" constant @table : memref<2x2xbf16> = dense<{{\[\[}}1.000000e+00, 3.339840e-01], {{.*}}]>
memref.global "private" constant @table : memref<2x2xf64> = dense<[[1.0, 0.33333333333333331], [2.0, -0.5]]>
// CHECK: memref.global "private" constant @numbers : memref<2xi64> = dense<[1, 2]>
memref.global "private" constant @numbers : memref<2xi64> = dense<[1, 2]>
// CHECK: memref.global "private" @empty : memref<4xf32>
memref.global "private" @empty : memref<4xf64>

// CHECK-LABEL: func.func @tables(
// CHECK: memref.get_global @table : memref<2x2xf32>
// CHECK: arith.constant dense<5.000000e-01> : vector<4xf32>
// CHECK: arith.constant dense<3> : vector<4xi32>
// CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
func.func @tables(%u: !field) -> vector<4xf64> {
  %t = memref.get_global @table : memref<2x2xf64>
  %v = arith.constant dense<0.5> : vector<4xf64>
  %i = arith.constant dense<3> : vector<4xi32>
  %n = arith.constant dense<[1.0, 2.0]> : tensor<2xf64>
  return %v : vector<4xf64>
}
