// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-nm-to-vector | filecheck %s

!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f32>

// The kernel reads its tables: for each row of A where its non-zeros begin, then the weights and
// input points (from the lowest offset on, counted from the start of the input view), and the
// outputs. They are decoded from values, metadata and offsets.

// CHECK-LABEL: func.func @sparse(
// CHECK: memref.subview %{{.*}}[0] [66] [1]
// CHECK: call @sparse_kernel0(
// CHECK: memref.global "private" constant @sparse_kernel0_first : memref<3xindex> = dense<[0, 3, 6]>
// CHECK: memref.global "private" constant @sparse_kernel0_weight : memref<6xf32> = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]>
// CHECK: memref.global "private" constant @sparse_kernel0_point : memref<6x1xindex> = dense<{{\[\[}}0], [1], [2], [1], [2], [3]]>
// CHECK: memref.global "private" constant @sparse_kernel0_output : memref<2x1xindex> = dense<{{\[\[}}0], [1]]>

// The lanes of a vector are neighbouring tiles; a sum starts from its first product.

// CHECK: func.func @sparse_kernel0(%[[IN:[a-z0-9]+]]: memref<?xf32, strided<[1], offset: ?>>, %[[OUT:[a-z0-9]+]]: memref<?xf32, strided<[1], offset: ?>>, %{{.*}}: index, %{{.*}}: index)
// CHECK-SAME: attributes {llvm.emit_c_interface, stencil.kernel_inputs = 1 : i64}
// CHECK: arith.constant dense<[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]> : vector<16xi64>
// CHECK: scf.for
// CHECK: scf.if
// CHECK: scf.for
// CHECK: vector.gather %[[IN]]
// CHECK: %[[FIRST:.*]] = arith.mulf
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[SO_FAR:[a-z0-9]+]] = %[[FIRST]])
// CHECK: vector.gather %[[IN]]
// CHECK: math.fma %{{.*}}, %{{.*}}, %[[SO_FAR]]
// CHECK: vector.scatter %[[OUT]]{{.*}}%[[SUM]]

// Tiles that are cut are computed one by one, those of their outputs that exist.

// CHECK: } else {
// CHECK: arith.cmpi slt
// CHECK: memref.load %[[IN]]
// CHECK: memref.store %{{.*}}, %[[OUT]]
// CHECK-NOT: nm.sparse_patch_matmul
func.func @sparse(%t: !temp) -> !inner {
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>,
              array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, bf16>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, bf16>

// An addend and a constant: the sum starts from both. 16-bit elements are summed in f32.

// CHECK-LABEL: func.func @addend(
// CHECK: memref<6xf32>
// CHECK: func.func @addend_kernel0(%{{.*}}: memref<?xbf16, strided<[1], offset: ?>>, %[[ADDEND:[a-z0-9]+]]: memref<?xbf16, strided<[1], offset: ?>>, %{{.*}}: memref<?xbf16, strided<[1], offset: ?>>, %{{.*}}: index, %{{.*}}: index)
// CHECK-SAME: stencil.kernel_inputs = 2 : i64
// CHECK: %[[LOADED:.*]] = vector.gather %[[ADDEND]]
// CHECK: %[[WIDE:.*]] = arith.extf %[[LOADED]] : vector<16xbf16> to vector<16xf32>
// CHECK: %[[START:.*]] = arith.addf %[[WIDE]], %{{.*}} : vector<16xf32>
// CHECK: iter_args(%{{.*}} = %[[START]])
func.func @addend(%t: !temp, %a: !inner) -> !inner {
  %r = "nm.sparse_patch_matmul"(%t, %a) {
    constant = 0.5 : f64,
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>,
              array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp, !inner) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<1 : i64, f32>

func.func @unknown_bounds(%t: !temp) -> !temp {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected known bounds, got !stencil.temp<1 : i64, f32>; run stencil-infer-bounds}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>,
              array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !temp
  return %r : !temp
}

// -----

!temp = !stencil.temp<1 : i64, f32>

// A dense operator is not for this pass.

// CHECK-LABEL: func.func @dense(
// CHECK: "nm.patch_matmul"
func.func @dense(%t: !temp) -> !temp {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>, matrix = [array<f64: 1.0>], output_offsets = [[0]], input_offsets = [[0]],
    offsets = [[0]], weights = array<f64: 1.0>
  } : (!temp) -> !temp
  return %r : !temp
}
