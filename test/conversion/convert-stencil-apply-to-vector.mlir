// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-apply-to-vector='tile=2,1' | filecheck %s
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-apply-to-vector='machine=avx2 past-caches=true' | filecheck %s --check-prefix=PAST

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [9, 17]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [8, 16]>, f64>

// Two rows at once: the second one reads two vectors that the first one has read, and two others.
// All is read before the first vector is written. Then what is left of a row, and the last row.

// CHECK-LABEL: func.func @product(
// CHECK: memref.subview %{{.*}}[0, 0] [10, 17] [1, 1]
// CHECK: call @product_kernel0(
// CHECK: func.func @product_kernel0(%[[IN:[a-z0-9]+]]: memref<?x?xf64, strided<[?, 1], offset: ?>>, %[[OUT:[a-z0-9]+]]: memref<?x?xf64, strided<[?, 1], offset: ?>>, %{{.*}}: index, %{{.*}}: index)
// CHECK-SAME: stencil.in_place, stencil.kernel_inputs = 1 : i64
// CHECK-DAG: %[[TENTH:.*]] = arith.constant dense<1.000000e-01> : vector<8xf64>
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: scf.for %[[J:[a-z0-9]+]] =
// CHECK: %[[A:.*]] = vector.load %[[IN]][%[[I]], %{{.*}}] : {{.*}}, vector<8xf64>
// CHECK: %[[B:.*]] = vector.load %[[IN]][%{{.*}}, %[[J]]]
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : vector<8xf64>
// CHECK: %[[Q:.*]] = arith.mulf %[[P]], %[[TENTH]] : vector<8xf64>
// CHECK: %[[C:.*]] = vector.load %[[IN]]
// CHECK: %[[D:.*]] = vector.load %[[IN]]
// CHECK: %[[R:.*]] = arith.mulf %[[C]], %[[D]] : vector<8xf64>
// CHECK: %[[S:.*]] = arith.mulf %[[R]], %[[TENTH]] : vector<8xf64>
// CHECK-NEXT: vector.store %[[Q]], %[[OUT]][%[[I]], %[[J]]]
// CHECK: vector.store %[[S]], %[[OUT]]
// CHECK: vector.create_mask
// CHECK-COUNT-4: vector.maskedload
// CHECK-COUNT-2: vector.maskedstore
// CHECK-NOT: "stencil.
func.func @product(%t: !temp) -> !inner {
  %tenth = arith.constant 0.1 : f64
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1, 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1, -1>} : (!temp) -> f64
    %p = arith.mulf %a, %b : f64
    %q = arith.mulf %p, %tenth : f64
    "stencil.return"(%q) : (f64) -> ()
  }) : () -> !inner
  return %r : !inner
}

// -----

!line = !stencil.temp<#stencil.bounds<[0], [8]>, f32>
!plane = !stencil.temp<#stencil.bounds<[0, 0], [8, 16]>, f32>

// What does not depend on the innermost axis is a number until a vector needs it; a vector holds as
// many numbers as of its widest type. Both branches are computed.

// CHECK-LABEL: func.func @chosen(
// CHECK: func.func @chosen_kernel0(%[[LINE:[a-z0-9]+]]: memref<?xf32, strided<[1], offset: ?>>, %[[MEMORY:[a-z0-9]+]]: memref<f32>, %[[OUT:[a-z0-9]+]]:
// CHECK-SAME: stencil.uses_index
// CHECK-DAG: %[[NUMBER:.*]] = memref.load %[[MEMORY]][]
// CHECK-DAG: %[[LANES:.*]] = vector.step : vector<8xindex>
// CHECK-DAG: %[[FOUR:.*]] = arith.constant dense<4> : vector<8xindex>
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: scf.for %[[J:[a-z0-9]+]] =
// CHECK-NEXT: %[[FIRST:.*]] = vector.broadcast %[[J]] : index to vector<8xindex>
// CHECK-NEXT: %[[COLUMN:.*]] = arith.addi %[[FIRST]], %[[LANES]]
// CHECK-NEXT: %[[LEFT:.*]] = arith.cmpi slt, %[[COLUMN]], %[[FOUR]] : vector<8xindex>
// CHECK-NEXT: %[[A:.*]] = memref.load %[[LINE]][%[[I]]]
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[A]], %[[NUMBER]] : f32
// CHECK-NEXT: %[[BS:.*]] = vector.broadcast %[[B]] : f32 to vector<8xf32>
// CHECK-NEXT: %[[NUMBERS:.*]] = vector.broadcast %[[NUMBER]] : f32 to vector<8xf32>
// CHECK-NEXT: arith.select %[[LEFT]], %[[BS]], %[[NUMBERS]] : vector<8xi1>, vector<8xf32>
func.func @chosen(%t: !line, %number: f32) -> !plane {
  %r = "stencil.apply"() ({
    %four = arith.constant 4 : index
    %j = "stencil.index"() {dim = 1 : i64, offset = array<i64: 0, 0>} : () -> index
    %left = arith.cmpi slt, %j, %four : index
    %v = scf.if %left -> (f32) {
      %a = "stencil.access"(%t) {offset = array<i64: 0>, offset_mapping = array<i64: 0>} : (!line) -> f32
      %b = arith.mulf %a, %number : f32
      scf.yield %b : f32
    } else {
      scf.yield %number : f32
    }
    "stencil.return"(%v) : (f32) -> ()
  }) : () -> !plane
  return %r : !plane
}

// -----

!large = !stencil.temp<#stencil.bounds<[0, 0], [4096, 4096]>, f64>

// Results of large arrays go past the caches, in a kernel beside the usual one, where their lines
// begin at the same points.

// PAST-LABEL: func.func @squares_kernel0(
// PAST-NOT: nontemporal
// PAST: func.func @squares_kernel0_past_caches(
// PAST: %[[APART:.*]] = arith.ori
// PAST: %[[ALIKE:.*]] = arith.cmpi eq
// PAST-NEXT: scf.if %[[ALIKE]] {
// PAST: vector.store {{.*}} {alignment = 32 : i64, nontemporal = true}
// PAST: } else {
// PAST-NOT: nontemporal
func.func @squares(%t: !large) -> (!large, !large) {
  %r:2 = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0, 0>} : (!large) -> f64
    %b = arith.mulf %a, %a : f64
    %c = arith.mulf %b, %a : f64
    "stencil.return"(%b, %c) : (f64, f64) -> ()
  }) : () -> (!large, !large)
  return %r#0, %r#1 : !large, !large
}

// -----

!field = !stencil.field<#stencil.bounds<[0, 0], [4096, 4096]>, f64>
!large = !stencil.temp<#stencil.bounds<[0, 0], [4096, 4096]>, f64>

// Not so where they are stored over what was just read.

// PAST-LABEL: func.func @square_kernel0(
// PAST-NOT: {{nontemporal|past_caches}}
func.func @square(%f: !field) {
  %t = "stencil.load"(%f) : (!field) -> !large
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0, 0>} : (!large) -> f64
    %b = arith.mulf %a, %a : f64
    "stencil.return"(%b) : (f64) -> ()
  }) : () -> !large
  "stencil.store"(%r, %f) {bounds = #stencil.bounds<[0, 0], [4096, 4096]>} : (!large, !field) -> ()
  return
}

// -----

!temp = !stencil.temp<#stencil.bounds<[0], [8]>, f16>

// Left to loops.

// CHECK-LABEL: func.func @half(
// CHECK: "stencil.apply"
func.func @half(%t: !temp) -> !temp {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f16
    %b = arith.mulf %a, %a : f16
    "stencil.return"(%b) : (f16) -> ()
  }) : () -> !temp
  return %r : !temp
}

// -----

!temp = !stencil.temp<1 : i64, f64>

func.func @unknown_bounds(%t: !temp) -> !temp {
  // expected-error @+1 {{'stencil.apply' op expected known bounds, got !stencil.temp<1 : i64, f64>; run stencil-infer-bounds}}
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  return %r : !temp
}
