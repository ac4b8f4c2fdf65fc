// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-bufferize | filecheck %s

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!view = memref<66xf64, strided<[1], offset: ?>>

// Fields become memrefs of their extents, and a kernel writes straight into the field that its
// result is stored to: coordinate 0 is index 1.

func.func private @kernel(!view, memref<64xf64>)

// CHECK-LABEL: func.func @write_through(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>) attributes {llvm.emit_c_interface}
// CHECK-NEXT: %[[IN:.*]] = memref.cast %[[U]] : memref<66xf64> to memref<66xf64, strided<[1], offset: ?>>
// CHECK-NEXT: %[[OUT:.*]] = memref.subview %[[V]][1] [64] [1] : memref<66xf64> to memref<64xf64, strided<[1], offset: 1>>
// CHECK: call @kernel(%[[IN]],
// CHECK-NEXT: return
func.func @write_through(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m = builtin.unrealized_conversion_cast %t : !temp to !view
  %alloc = memref.alloc() : memref<64xf64>
  call @kernel(%m, %alloc) : (!view, memref<64xf64>) -> ()
  %r = builtin.unrealized_conversion_cast %alloc : memref<64xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}
