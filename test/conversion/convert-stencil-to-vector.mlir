// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='tile=4,1' | filecheck %s
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='tile=1,1 past-caches=beside' | filecheck %s --check-prefix=PAST
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='machine=avx2 tile=2,2' | filecheck %s --check-prefix=WIDE
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='machine=avx2 tile=2,1 reassociate=true' | filecheck %s --check-prefix=SUMS
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='machine=avx2 tile=4,1 past-caches=beside' | filecheck %s --check-prefix=LINES
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='machine=znver4 tile=1,1 reassociate=true' | filecheck %s --check-prefix=PAIR
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='machine=znver4 past-caches=beside tile=4,1' | filecheck %s --check-prefix=BESIDE
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='machine=avx2 past-caches=large' | filecheck %s --check-prefix=LARGE
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='machine=sapphirerapids tile=2,1 past-caches=beside' | filecheck %s --check-prefix=CLAIMS
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-vector='tile=16,1' | filecheck %s --check-prefix=HIGH

!temp = !stencil.temp<#stencil.bounds<[-2], [66]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

// The function calls a kernel on the part of the input that the sum reads: [-1,66] of [-2,66].

// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<#stencil.bounds<[-2], [66]>, f64>
// CHECK-NEXT: %[[M:.*]] = builtin.unrealized_conversion_cast %[[T]] : {{.*}} to memref<68xf64, strided<[1], offset: ?>>
// CHECK-NEXT: %[[PART:.*]] = memref.subview %[[M]][1] [67] [1]
// CHECK-NEXT: %[[IN:.*]] = memref.cast %[[PART]]
// CHECK-NEXT: %[[ALLOC:.*]] = memref.alloc() : memref<64xf64>
// CHECK-NEXT: %[[OUT:.*]] = memref.cast %[[ALLOC]]
// CHECK-NEXT: %[[BEGIN:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[END:.*]] = arith.constant 64 : index
// CHECK-NEXT: call @sum_kernel0(%[[IN]], %[[OUT]], %[[BEGIN]], %[[END]])
// CHECK-NEXT: %[[R:.*]] = builtin.unrealized_conversion_cast %[[ALLOC]] : memref<64xf64> to !stencil.temp<#stencil.bounds<[0], [64]>, f64>
// CHECK-NEXT: return %[[R]]

// The kernel adds the terms from the lowest offset on, by fused multiply-adds that start from the
// constant: eight points at a time, and the rest under masks. Index 0 of the input is offset -1.

// CHECK: func.func @sum_kernel0(%[[IN:[a-z0-9]+]]: memref<?xf64, strided<[1], offset: ?>>, %[[OUT:[a-z0-9]+]]: memref<?xf64, strided<[1], offset: ?>>, %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index)
// CHECK-SAME: attributes {llvm.emit_c_interface, stencil.in_place, stencil.kernel_inputs = 1 : i64}
// CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : vector<8xf64>
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<8xf64>
// CHECK-DAG: %[[CONSTANT:.*]] = arith.constant dense<3.000000e+00> : vector<8xf64>
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
// CHECK: scf.for %[[I:[a-z0-9]+]] = %[[BEGIN]] to %{{.*}} step %{{.*}} {
// CHECK-NEXT: %[[A:.*]] = vector.load %[[IN]][%[[I]]]
// CHECK-NEXT: %[[FIRST:.*]] = math.fma %[[ONE]], %[[A]], %[[CONSTANT]]
// CHECK-NEXT: %[[J:.*]] = arith.addi %[[I]], %[[C3]]
// CHECK-NEXT: %[[B:.*]] = vector.load %[[IN]][%[[J]]]
// CHECK-NEXT: %[[SUM:.*]] = math.fma %[[TWO]], %[[B]], %[[FIRST]]
// CHECK-NEXT: vector.store %[[SUM]], %[[OUT]][%[[I]]]
// CHECK: scf.for
// CHECK: vector.create_mask
// CHECK-COUNT-2: vector.maskedload %[[IN]]
// CHECK: vector.maskedstore %[[OUT]]
// CHECK-NOT: stencil.weighted_sum

// The kernel beside it that stores past the caches takes the first points under a mask, up to where
// a cache line of the output begins.

// PAST: func.func @sum_kernel0(
// PAST-NOT: nontemporal = true
// PAST: func.func @sum_kernel0_past_caches(
// PAST: memref.extract_aligned_pointer_as_index
// PAST: %[[FIRST:.*]] = arith.minsi
// PAST-NEXT: scf.for %{{.*}} = %{{.*}} to %[[FIRST]] step
// PAST: vector.maskedstore
// PAST: scf.for %{{.*}} = %[[FIRST]] to
// PAST: vector.store {{.*}} {alignment = 64 : i64, nontemporal = true}
// PAST-NOT: nontemporal = true
// PAST: vector.maskedstore
func.func @sum(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {constant = 3.0 : f64, offsets = [[-1], [2]], weights = array<f64: 1.0, 2.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [9, 65]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [8, 64]>, f16>

// 16-bit elements are summed in f32. Blocks of four rows load every input once: a column of three
// points reaches six rows, not twelve. Where blocks leave something, a second loop sums up the ends of
// the same four rows point by point; a third one the rows that are left, by vectors first.

// CHECK-LABEL: func.func @block(
// CHECK: func.func @block_kernel0(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-6: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// CHECK-NOT: vector.load
// CHECK-COUNT-4: arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
// CHECK: %[[LEFT:.*]] = arith.cmpi ne
// CHECK: %[[FROM:.*]] = arith.select %[[LEFT]], %{{.*}}, %[[WHOLE:.*]] : index
// CHECK: scf.for %{{.*}} = %[[FROM]] to
// CHECK-NOT: vector<16xf16>
// CHECK: scf.for
// CHECK-COUNT-6: memref.load
// CHECK: scf.for %{{.*}} = %[[WHOLE]] to
// CHECK: scf.for
// CHECK-COUNT-3: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// CHECK: scf.for
// CHECK-COUNT-3: memref.load
// CHECK-NOT: vector.maskedload

// What blocks of sixteen rows leave goes eight rows at once, by vectors and point by point, then row
// by row.

// HIGH-LABEL: func.func @block(
// HIGH: func.func @block_kernel0(
// HIGH: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16{{.*}} {
// HIGH-COUNT-18: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// HIGH: arith.select
// HIGH: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16{{.*}} {
// HIGH-COUNT-18: memref.load
// HIGH: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8{{.*}} {
// HIGH-COUNT-10: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// HIGH-COUNT-10: memref.load
// HIGH-NOT: memref.load
// HIGH: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1{{.*}} {
// HIGH-COUNT-3: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>

// Two rows and two vectors: four rows of input, each read twice, for four sums.

// WIDE-LABEL: func.func @block(
// WIDE: func.func @block_kernel0(
// WIDE: scf.for
// WIDE: scf.for
// WIDE-COUNT-8: arith.extf %{{.*}} : vector<8xf16> to vector<8xf32>
// WIDE-NOT: vector.load
// WIDE-COUNT-4: arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
func.func @block(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1, 0], [0, 0], [1, 0]], weights = array<f64: 1.0, 2.0, 3.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-2], [66]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f32>

// A chain over several temps is one kernel with an input for each; an addend that is no sum is an
// input too, read at the point itself.

// CHECK-LABEL: func.func @chain(
// CHECK: call @chain_kernel0(
// CHECK-NOT: call
// CHECK: func.func @chain_kernel0(%[[A:[a-z0-9]+]]: {{.*}}, %[[B:[a-z0-9]+]]: {{.*}}, %[[C:[a-z0-9]+]]: {{.*}}, %[[OUT:[a-z0-9]+]]: {{.*}}, %{{.*}}: index, %{{.*}}: index)
// CHECK-SAME: stencil.kernel_inputs = 3 : i64
// CHECK: %[[ADDEND:.*]] = vector.load %[[C]]
// CHECK: %[[X:.*]] = vector.load %[[A]]
// CHECK: %[[FIRST:.*]] = math.fma %{{.*}}, %[[X]], %[[ADDEND]]
// CHECK: %[[Y:.*]] = vector.load %[[B]]
// CHECK: %[[SECOND:.*]] = math.fma %{{.*}}, %[[Y]], %[[FIRST]]
// CHECK: vector.store %[[SECOND]], %[[OUT]]
func.func @chain(%s: !temp, %t: !temp, %u: !inner) -> !inner {
  %a = "stencil.weighted_sum"(%s, %u) {offsets = [[1]], weights = array<f64: 2.0>} : (!temp, !inner) -> !inner
  %b = "stencil.weighted_sum"(%t, %a) {offsets = [[-1]], weights = array<f64: 3.0>} : (!temp, !inner) -> !inner
  return %b : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-2], [66]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f32>

// A link that something else reads too is computed by a kernel of its own.

// CHECK-LABEL: func.func @shared(
// CHECK-COUNT-2: call @shared_kernel
// CHECK-DAG: func.func @shared_kernel0(
// CHECK-DAG: func.func @shared_kernel1(
func.func @shared(%s: !temp, %t: !temp) -> (!inner, !inner) {
  %a = "stencil.weighted_sum"(%s) {offsets = [[1]], weights = array<f64: 2.0>} : (!temp) -> !inner
  %b = "stencil.weighted_sum"(%t, %a) {offsets = [[-1]], weights = array<f64: 3.0>} : (!temp, !inner) -> !inner
  return %a, %b : !inner, !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [9, 65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [8, 64]>, f64>

// Outer points of a row have one weight but for its sign: their difference is multiplied, in two
// rows of output by one vector. Four rows of input have one addition each, and are read thrice.

// SUMS-LABEL: func.func @pairs(
// SUMS: func.func @pairs_kernel0(
// SUMS-DAG: %[[CENTRE:.*]] = arith.constant dense<5.000000e+00> : vector<4xf64>
// SUMS-DAG: %[[OUTER:.*]] = arith.constant dense<3.000000e+00> : vector<4xf64>
// SUMS-DAG: %[[INNER:.*]] = arith.constant dense<4.000000e+00> : vector<4xf64>
// SUMS: scf.for
// SUMS: scf.for
// SUMS: %[[A:.*]] = vector.load
// SUMS: %[[C:.*]] = vector.load
// SUMS-NEXT: %[[AC:.*]] = arith.subf %[[A]], %[[C]]
// SUMS-NEXT: arith.mulf %[[OUTER]], %[[AC]]
// SUMS: vector.load
// SUMS: arith.subf
// SUMS-NEXT: math.fma %[[INNER]]
// SUMS-NEXT: arith.mulf %[[OUTER]]
// SUMS: vector.load
// SUMS-NEXT: math.fma %[[CENTRE]]
// SUMS-COUNT-2: arith.subf
// SUMS-NOT: arith.subf
// SUMS: vector.store

// Past the caches four rows are stored side by side, each from its own first whole line on, and in
// whole lines: two vectors. What lines leave goes to the caches.

// LINES: func.func @pairs_kernel0_past_caches(
// LINES: scf.for %[[ROW:[a-z0-9]+]] =
// LINES: arith.muli %[[ROW]]
// LINES: arith.remui %{{.*}}, %c8
// LINES: %[[FIRST:.*]] = arith.minsi
// LINES: %[[SECOND:.*]] = arith.minsi
// LINES-COUNT-2: arith.minsi
// LINES: scf.for %{{.*}} = %c0 to %[[FIRST]] step %c4
// LINES: vector.maskedstore %{{.*}}[%[[ROW]],
// LINES: scf.for %{{.*}} = %c0 to %[[SECOND]] step %c4
// LINES: vector.maskedstore
// LINES-COUNT-3: arith.maxsi
// LINES: scf.for %[[PLACE:[a-z0-9]+]] = %c0 to %[[TOGETHER:.*]] step %c8
// LINES: arith.addi %[[FIRST]], %[[PLACE]]
// LINES-COUNT-2: vector.store %{{.*}}[%[[ROW]], %{{.*}} {alignment = 32 : i64, nontemporal = true}
// LINES: arith.addi %[[SECOND]], %[[PLACE]]
// LINES-COUNT-6: vector.store {{.*}} {alignment = 32 : i64, nontemporal = true}
// LINES: %[[REST:.*]] = arith.addi %[[FIRST]], %[[TOGETHER]]
// LINES: scf.for %{{.*}} = %[[REST]] to %{{.*}} step %c8
// LINES-COUNT-2: vector.store {{.*}} {alignment = 32 : i64, nontemporal = true}
// LINES: scf.for %{{.*}} step %c4
// LINES: vector.store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%[[ROW]], %{{[a-z0-9_]+}}] : memref
// LINES: vector.maskedstore %{{.*}}[%[[ROW]],

func.func @pairs(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1, -1], [-1, 1], [0, -1], [0, 0], [0, 1], [1, -1], [1, 1]], weights = array<f64: 3.0, -3.0, 4.0, 5.0, -4.0, 3.0, -3.0>} : (!temp) -> !inner
  return %r : !inner
}

// -----

func.func @unknown_bounds(%t: !stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64> {
  // expected-error @+1 {{'stencil.weighted_sum' op expected known bounds, got !stencil.temp<1 : i64, f64>; run stencil-infer-bounds}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return %r : !stencil.temp<1 : i64, f64>
}

// -----

// On a core that adds beside its multiply-adds, two rows share the products of the sum of a pair of
// weights: 15 multiply-adds for 18. The first row may be an odd one: it comes alone, with the
// products it would have in its pair. The weights of a pair are in the ratio of 3 at most.

!boxed = !stencil.temp<#stencil.bounds<[-1, -1], [65, 65]>, f64>
!plane = !stencil.temp<#stencil.bounds<[0, 0], [64, 64]>, f64>

// PAIR-LABEL: func.func @box_kernel0(
// PAIR-SAME: %[[IN:[a-z0-9]+]]: memref<?x?xf64, {{.*}}, %[[OUT:[a-z0-9]+]]: memref<?x?xf64, {{.*}}, %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index)
// PAIR-DAG: %[[W0:.*]] = arith.constant dense<5.000000e-01>
// PAIR-DAG: %[[W1:.*]] = arith.constant dense<1.250000e+00>
// PAIR-DAG: %[[BOTH:.*]] = arith.constant dense<1.750000e+00>
// PAIR-DAG: %[[W2:.*]] = arith.constant dense<2.000000e+00>
// PAIR: %[[ODD:.*]] = arith.remsi %[[BEGIN]], %c2
// PAIR: %[[FROM:.*]] = arith.addi %[[BEGIN]], %[[ODD]]
// PAIR: %[[EVEN:.*]] = arith.minsi %[[FROM]], %[[END]]
// PAIR: scf.for %[[ROW:[a-z0-9]+]] = %[[BEGIN]] to %[[EVEN]] step %c1
// PAIR: %[[D1:.*]] = vector.load %[[IN]][%[[ROW]],
// PAIR: arith.mulf %[[BOTH]], %[[D1]]
// PAIR: %[[D2:.*]] = vector.load
// PAIR: %[[UP:.*]] = arith.subf %[[D2]], %[[D1]]
// PAIR: arith.mulf %[[W1]], %[[UP]]
// PAIR: vector.store
// PAIR: scf.for %[[ROW:[a-z0-9]+]] = %[[EVEN]] to %{{.*}} step %c2
// PAIR: %[[D0:.*]] = vector.load %[[IN]][%[[ROW]],
// PAIR: %[[D1:.*]] = vector.load
// PAIR-NEXT: %[[DOWN:.*]] = arith.subf %[[D0]], %[[D1]]
// PAIR-NEXT: %[[S0:.*]] = arith.mulf %[[W0]], %[[DOWN]]
// PAIR-NEXT: %[[SHARED:.*]] = arith.mulf %[[BOTH]], %[[D1]]
// PAIR: %[[D2:.*]] = vector.load
// PAIR-NEXT: %[[T0:.*]] = math.fma %[[W2]], %[[D2]], %[[S0]]
// PAIR-NEXT: %[[UP:.*]] = arith.subf %[[D2]], %[[D1]]
// PAIR-NEXT: %[[S1:.*]] = arith.mulf %[[W1]], %[[UP]]
// PAIR: %[[D3:.*]] = vector.load
// PAIR-NEXT: math.fma %[[W2]], %[[D3]], %[[S1]]
// PAIR-COUNT-10: math.fma
// PAIR-NEXT: %[[R0:.*]] = arith.addf %{{.*}}, %[[P:.*]] :
// PAIR-NEXT: %[[R1:.*]] = arith.addf %{{.*}}, %[[P]] :
// PAIR-NEXT: vector.store %[[R0]], %[[OUT]][%[[ROW]],
// PAIR: vector.store %[[R1]], %[[OUT]]
// PAIR: return

func.func @box(%t: !boxed) -> !plane {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 0], [0, 1], [1, -1], [1, 0], [1, 1]],
    weights = array<f64: 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5>
  } : (!boxed) -> !plane
  return %r : !plane
}

// -----

// Kernels for arrays larger than the caches are there beside others, of all sums or only where the
// arrays are larger: here 134 MB. They take rows one by one; znver4 does not store planes past the caches,
// and fetches the next rows of the last plane that is read, and of the output, 2048 bytes ahead.

!many = !stencil.temp<#stencil.bounds<[-1, 0, 0], [257, 256, 128]>, f64>
!planes = !stencil.temp<#stencil.bounds<[0, 0, 0], [256, 256, 128]>, f64>

// BESIDE-LABEL: func.func @planes_kernel0(
// BESIDE: scf.for %{{.*}} step %c4
// BESIDE-NOT: nontemporal = true
// BESIDE-NOT: memref.prefetch
// BESIDE: func.func @planes_kernel0_past_caches(
// BESIDE: %[[COLUMNS:.*]] = memref.dim %arg1, %c2
// BESIDE: %[[SOME:.*]] = arith.maxui %[[COLUMNS]], %c1
// BESIDE: %[[ROWS:.*]] = arith.ceildivui %c256, %[[SOME]]
// BESIDE-NOT: step %c4
// BESIDE: scf.for %[[PLANE:.*]] = %arg2 to %arg3 step %c1
// BESIDE: scf.for %[[ROW:.*]] = %c0 to
// BESIDE: scf.for %[[AT:.*]] = %c0 to
// BESIDE-DAG: %[[NEXT:.*]] = arith.addi %[[ROW]], %[[ROWS]]
// BESIDE-DAG: %[[LAST:.*]] = arith.addi %[[PLANE]], %c2
// BESIDE: memref.prefetch %arg0[%[[LAST]], %[[NEXT]], %[[AT]]], read, locality<3>, data
// BESIDE-NEXT: memref.prefetch %arg1[%[[PLANE]], %[[NEXT]], %[[AT]]], write, locality<3>, data
// BESIDE-NOT: memref.prefetch
// BESIDE-NOT: nontemporal = true
// BESIDE: return

// LARGE-NOT: nontemporal = true
// LARGE: func.func @planes_kernel0_past_caches(
// LARGE: nontemporal = true

func.func @planes(%t: !many) -> !planes {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, 0, 0], [0, 0, 0], [1, 0, 0]], weights = array<f64: 0.25, 0.5, 0.25>
  } : (!many) -> !planes
  return %r : !planes
}

// -----

// What is added to a sum is fetched ahead as well.

!many = !stencil.temp<#stencil.bounds<[-1, 0, 0], [257, 256, 128]>, f64>
!planes = !stencil.temp<#stencil.bounds<[0, 0, 0], [256, 256, 128]>, f64>

// BESIDE: func.func @added_kernel0_past_caches(
// BESIDE: memref.prefetch %arg0[{{.*}}], read
// BESIDE-NEXT: memref.prefetch %arg1[{{.*}}], read
// BESIDE-NEXT: memref.prefetch %arg2[{{.*}}], write

func.func @added(%t: !many, %r: !planes) -> !planes {
  %s = "stencil.weighted_sum"(%t, %r) {
    offsets = [[-1, 0, 0], [0, 0, 0], [1, 0, 0]], weights = array<f64: 0.25, 0.5, 0.25>
  } : (!many, !planes) -> !planes
  return %s : !planes
}

// -----

// A field that is read point by point and stored to is in the caches; one that is read around each
// point gets a copy of the result.

!many = !stencil.temp<#stencil.bounds<[-1, 0, 0], [257, 256, 128]>, f64>
!planes = !stencil.temp<#stencil.bounds<[0, 0, 0], [256, 256, 128]>, f64>
!field = !stencil.field<#stencil.bounds<[-1, 0, 0], [257, 256, 128]>, f64>

// LARGE: func.func @over_kernel0(
// LARGE-NOT: past_caches

func.func @over(%f: !field, %t: !many) {
  %u = "stencil.load"(%f) : (!field) -> !planes
  %s = "stencil.weighted_sum"(%t, %u) {
    offsets = [[-1, 0, 0], [0, 0, 0], [1, 0, 0]], weights = array<f64: 0.25, 0.5, 0.25>
  } : (!many, !planes) -> !planes
  "stencil.store"(%s, %f) {bounds = #stencil.bounds<[0, 0, 0], [256, 256, 128]>} : (!planes, !field) -> ()
  return
}

// -----

!many = !stencil.temp<#stencil.bounds<[-1, 0, 0], [257, 256, 128]>, f64>
!planes = !stencil.temp<#stencil.bounds<[0, 0, 0], [256, 256, 128]>, f64>
!field = !stencil.field<#stencil.bounds<[-1, 0, 0], [257, 256, 128]>, f64>

// LARGE: func.func @around_kernel0(
// LARGE-NOT: nontemporal = true
// LARGE: func.func @around_kernel0_past_caches(
// LARGE: nontemporal = true

func.func @around(%f: !field) {
  %t = "stencil.load"(%f) : (!field) -> !many
  %s = "stencil.weighted_sum"(%t) {
    offsets = [[-1, 0, 0], [0, 0, 0], [1, 0, 0]], weights = array<f64: 0.25, 0.5, 0.25>
  } : (!many) -> !planes
  "stencil.store"(%s, %f) {bounds = #stencil.bounds<[0, 0, 0], [256, 256, 128]>} : (!planes, !field) -> ()
  return
}

// -----

!square = !stencil.temp<#stencil.bounds<[0, 0], [8, 64]>, f64>

// There a block asks for its lines before it reads anything; points under a mask and lines that are
// stored past the caches are not asked for.

// CLAIMS-LABEL: func.func @claims_kernel0(
// CLAIMS-SAME: %[[IN:[a-z0-9]+]]: {{[^%]*}}, %[[OUT:[a-z0-9]+]]: memref
// CLAIMS: scf.for %[[ROW:.*]] = %arg2 to
// CLAIMS: scf.for %[[AT:.*]] = %{{.*}} to {{.*}} {
// CLAIMS-NEXT: %[[NEXT:.*]] = arith.addi %[[ROW]], %{{.*}}
// CLAIMS-NEXT: memref.prefetch %[[OUT]][%[[NEXT]], %[[AT]]], write, locality<3>, data
// CLAIMS-NEXT: memref.prefetch %[[OUT]][%[[ROW]], %[[AT]]], write, locality<3>, data
// CLAIMS-NEXT: %{{.*}} = vector.load %[[IN]]
// CLAIMS: vector.create_mask
// CLAIMS-NEXT: %{{.*}} = vector.maskedload %[[IN]]
// CLAIMS: func.func @claims_kernel0_past_caches(
// CLAIMS-NOT: memref.prefetch
// CLAIMS: nontemporal
// CLAIMS-NOT: memref.prefetch
// CLAIMS: return

func.func @claims(%t: !square) -> !square {
  %r = "stencil.weighted_sum"(%t) {offsets = [[0, 0]], weights = array<f64: 2.0>} : (!square) -> !square
  return %r : !square
}
