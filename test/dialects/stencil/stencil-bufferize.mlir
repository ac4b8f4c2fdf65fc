// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-bufferize | filecheck %s

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// Fields become memrefs of their extents, and a kernel writes straight into the field that its
// result is stored to: coordinate 0 is index 1.

// CHECK-LABEL: func.func @write_through(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>) attributes {llvm.emit_c_interface}
// CHECK-NEXT: %[[STATIC:.*]] = memref.cast %[[U]] : memref<66xf64> to memref<66xf64, strided<[1], offset: ?>>
// CHECK-NEXT: %[[IN:.*]] = memref.cast %[[STATIC]]
// CHECK-NEXT: %[[PART:.*]] = memref.subview %[[V]][1] [64] [1] : memref<66xf64> to memref<64xf64, strided<[1], offset: 1>>
// CHECK-NEXT: %[[OUT:.*]] = memref.cast %[[PART]]
// CHECK-NEXT: call @kernel(%[[IN]], %[[OUT]])
// CHECK-NEXT: return
func.func @write_through(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// Where the same field is read, the result is formed beside it and copied.

// CHECK-LABEL: func.func @in_place(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>
// CHECK: memref.cast %[[U]]
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<64xf64>
// CHECK: call @kernel(
// CHECK: %[[PART:.*]] = memref.subview %[[U]][1] [64] [1]
// CHECK-NEXT: memref.copy %[[RESULT]], %[[PART]]
// CHECK: memref.dealloc %[[RESULT]]
// CHECK: return
func.func @in_place(%u: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// A temp that is read after its field was written keeps the value that was loaded.

// CHECK-LABEL: func.func @read_later(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>
// CHECK: %[[LOADED:.*]] = memref.alloc() : memref<66xf64>
// CHECK-NEXT: memref.copy %[[U]], %[[LOADED]]
// CHECK: memref.cast %[[LOADED]]
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<64xf64>
// CHECK: call @kernel(
// CHECK: memref.subview %[[U]][1] [64] [1]
// CHECK: memref.subview %[[LOADED]][1] [64] [1]
// CHECK-DAG: memref.dealloc %[[LOADED]]
// CHECK-DAG: memref.dealloc %[[RESULT]]
func.func @read_later(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// A result that is stored to two fields, in parts: one buffer and two copies.

// CHECK-LABEL: func.func @two_stores(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>, %[[W:[a-z0-9]+]]: memref<66xf64>
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<64xf64>
// CHECK: call @kernel(
// CHECK: memref.subview %[[RESULT]][0] [10] [1]
// CHECK: memref.subview %[[V]][1] [10] [1]
// CHECK: memref.subview %[[RESULT]][10] [54] [1]
// CHECK: memref.subview %[[W]][11] [54] [1]
// CHECK: memref.dealloc %[[RESULT]]
func.func @two_stores(%u: !field, %v: !field, %w: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [10]>} : (!inner, !field) -> ()
  "stencil.store"(%r, %w) {bounds = #stencil.bounds<[10], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// Two results for one field: the second store wins where they overlap, so both are copied in order.

// CHECK-LABEL: func.func @overlapping_stores(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>
// CHECK: %[[A:.*]] = memref.alloc() : memref<64xf64>
// CHECK: call @kernel(
// CHECK: %[[B:.*]] = memref.alloc() : memref<64xf64>
// CHECK: call @kernel(
// CHECK: memref.copy %[[A]], %
// CHECK: memref.copy %[[B]], %
func.func @overlapping_stores(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  %m1 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in1 = memref.cast %m1 : !static to !view
  %alloc1 = memref.alloc() : memref<64xf64>
  %out1 = memref.cast %alloc1 : memref<64xf64> to !view
  func.call @kernel(%in1, %out1) : (!view, !view) -> ()
  %s = builtin.unrealized_conversion_cast %alloc1 : memref<64xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  "stencil.store"(%s, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!upper = !stencil.temp<#stencil.bounds<[10], [64]>, f64>
!lower = !stencil.temp<#stencil.bounds<[0], [10]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// Two results for parts of one field: both kernels write into it.

// CHECK-LABEL: func.func @stores_of_parts(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>
// CHECK-NOT: memref.alloc
// CHECK: memref.subview %[[V]][11] [54] [1]
// CHECK: call @kernel(
// CHECK: memref.subview %[[V]][1] [10] [1]
// CHECK: call @kernel(
// CHECK-NOT: memref.copy
// CHECK: return
func.func @stores_of_parts(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<54xf64>
  %out0 = memref.cast %alloc0 : memref<54xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<54xf64> to !upper
  %m1 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in1 = memref.cast %m1 : !static to !view
  %alloc1 = memref.alloc() : memref<10xf64>
  %out1 = memref.cast %alloc1 : memref<10xf64> to !view
  func.call @kernel(%in1, %out1) : (!view, !view) -> ()
  %s = builtin.unrealized_conversion_cast %alloc1 : memref<10xf64> to !lower
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[10], [64]>} : (!upper, !field) -> ()
  "stencil.store"(%s, %v) {bounds = #stencil.bounds<[0], [10]>} : (!lower, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// A temp between two sweeps, through a buffer of a part of it, needs memory of its own.

// CHECK-LABEL: func.func @between(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>
// CHECK: %[[MIDDLE:.*]] = memref.alloc() : memref<64xf64>
// CHECK: memref.subview %[[MIDDLE]][1] [62] [1] : memref<64xf64> to memref<62xf64, strided<[1], offset: 1>>
// CHECK: memref.subview %[[V]][2] [60] [1]
// CHECK: memref.dealloc %[[MIDDLE]]
func.func @between(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  %b = "stencil.buffer"(%r) : (!inner) -> !stencil.temp<#stencil.bounds<[1], [63]>, f64>
  %m1 = builtin.unrealized_conversion_cast %b : !stencil.temp<#stencil.bounds<[1], [63]>, f64> to memref<62xf64, strided<[1], offset: ?>>
  %in1 = memref.cast %m1 : memref<62xf64, strided<[1], offset: ?>> to !view
  %alloc1 = memref.alloc() : memref<60xf64>
  %out1 = memref.cast %alloc1 : memref<60xf64> to !view
  func.call @kernel(%in1, %out1) : (!view, !view) -> ()
  %s = builtin.unrealized_conversion_cast %alloc1 : memref<60xf64> to !stencil.temp<#stencil.bounds<[1], [61]>, f64>
  "stencil.store"(%s, %v) {bounds = #stencil.bounds<[1], [61]>} : (!stencil.temp<#stencil.bounds<[1], [61]>, f64>, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// Casts and memrefs seen as fields are views; copying a field to the memref it views is nothing.

// CHECK-LABEL: func.func @views(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<?xf64>, %[[M:[a-z0-9]+]]: memref<66xf64>, %[[C:[a-z0-9]+]]: memref<?xf64>
// CHECK: %[[CAST:.*]] = memref.cast %[[U]] : memref<?xf64> to memref<66xf64>
// CHECK: memref.cast %[[CAST]] : memref<66xf64> to memref<66xf64, strided<[1], offset: ?>>
// CHECK: memref.subview %[[M]][1] [64] [1]
// CHECK: call @kernel(
// CHECK: memref.copy %[[M]], %[[C]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @views(%any: !stencil.field<1 : i64, f64>, %m: memref<66xf64>, %copy: memref<?xf64>) {
  %u = "stencil.cast"(%any) : (!stencil.field<1 : i64, f64>) -> !field
  %v = "stencil.external_load"(%m) : (memref<66xf64>) -> !field
  %t = "stencil.load"(%u) : (!field) -> !temp
  %s0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %s0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  "stencil.external_store"(%v, %copy) : (!field, memref<?xf64>) -> ()
  "stencil.external_store"(%v, %m) : (!field, memref<66xf64>) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// Copying one field to another, in two dimensions, with nothing computed.

// CHECK-LABEL: func.func @copy(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<6x8xf32>, %[[V:[a-z0-9]+]]: memref<4x5xf32>
// CHECK: %[[PART:.*]] = memref.subview %[[U]][2, 3] [4, 5] [1, 1] : memref<6x8xf32> to memref<4x5xf32, strided<[8, 1], offset: 19>>
// CHECK-NEXT: memref.copy %[[PART]], %[[V]]
func.func @copy(%u: !stencil.field<#stencil.bounds<[-2, -3], [4, 5]>, f32>, %v: !stencil.field<#stencil.bounds<[0, 0], [4, 5]>, f32>) {
  %t = "stencil.load"(%u) : (!stencil.field<#stencil.bounds<[-2, -3], [4, 5]>, f32>) -> !stencil.temp<#stencil.bounds<[-2, -3], [4, 5]>, f32>
  "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0, 0], [4, 5]>} : (!stencil.temp<#stencil.bounds<[-2, -3], [4, 5]>, f32>, !stencil.field<#stencil.bounds<[0, 0], [4, 5]>, f32>) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// A time loop: the fields it carries become memrefs, and the result of the function too. Which
// field an iteration reads is not known, so the result is copied.

// CHECK-LABEL: func.func @time_loop(
// CHECK-SAME: -> memref<66xf64>
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[NOW:[a-z0-9]+]] = %{{.*}}, %[[NEXT:[a-z0-9]+]] = %{{.*}}) -> (memref<66xf64>, memref<66xf64>)
// CHECK: memref.cast %[[NOW]]
// CHECK: memref.subview %[[NEXT]][1] [64] [1]
// CHECK: call @kernel(
// CHECK: scf.yield %[[NEXT]], %[[NOW]] : memref<66xf64>, memref<66xf64>
// CHECK: return %[[LOOP]]#0 : memref<66xf64>
func.func @time_loop(%u: !field, %v: !field, %n: index) -> !field {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%now = %u, %next = %v) -> (!field, !field) {
    %t = "stencil.load"(%now) : (!field) -> !temp
    %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
    %in0 = memref.cast %m0 : !static to !view
    %alloc0 = memref.alloc() : memref<64xf64>
    %out0 = memref.cast %alloc0 : memref<64xf64> to !view
    func.call @kernel(%in0, %out0) : (!view, !view) -> ()
    %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
    "stencil.store"(%r, %next) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
    scf.yield %next, %now : !field, !field
  }
  return %a : !field
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// A copy of a field before it is stored to takes the old values.

// CHECK-LABEL: func.func @copied_before(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[M:[a-z0-9]+]]: memref<66xf64>, %[[C:[a-z0-9]+]]: memref<66xf64>
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<64xf64>
// CHECK: call @kernel(
// CHECK: memref.copy %[[M]], %[[C]]
// CHECK: memref.copy %[[RESULT]], %
func.func @copied_before(%u: !field, %m: memref<66xf64>, %c: memref<66xf64>) {
  %v = "stencil.external_load"(%m) : (memref<66xf64>) -> !field
  %t = "stencil.load"(%u) : (!field) -> !temp
  %s0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %s0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.external_store"(%v, %c) : (!field, memref<66xf64>) -> ()
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!part = memref<64xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @in_place(!view, !view) attributes {stencil.in_place}
func.func private @kernel(!view, !view)

// A kernel that reads each point before it writes it may write over what it reads, where nobody reads that
// later.

// CHECK-LABEL: func.func @point_by_point(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>
// CHECK-NOT: memref.alloc
// CHECK-DAG: %[[TARGET:.*]] = memref.subview %[[U]][1] [64] [1] : memref<66xf64>
// CHECK-DAG: %[[OUT:.*]] = memref.cast %[[TARGET]]
// CHECK: call @in_place(%{{.*}}, %[[OUT]])
// CHECK-NOT: memref.copy
func.func @point_by_point(%u: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %part0 = memref.subview %m0[1] [64] [1] : !static to !part
  %in0 = memref.cast %part0 : !part to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @in_place(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!part = memref<64xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

// Kernels of a GPU may, too; the second one does not say that it reads before it writes.

// CHECK-LABEL: func.func @launched(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>
// CHECK-DAG: %[[TARGET:.*]] = memref.subview %[[U]][1] [64] [1] : memref<66xf64>
// CHECK-DAG: %[[OUT:.*]] = memref.cast %[[TARGET]]
// CHECK: gpu.launch_func @kernels::@in_place {{.*}}, %[[OUT]] :
// CHECK-NOT: memref.copy
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<64xf64>
// CHECK: gpu.launch_func @kernels::@other
// CHECK: memref.copy %[[RESULT]]
module attributes {gpu.container_module} {
  func.func @launched(%u: !field, %v: !field) {
    %c1 = arith.constant 1 : index
    %t = "stencil.load"(%u) : (!field) -> !temp
    %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
    %part0 = memref.subview %m0[1] [64] [1] : !static to !part
    %in0 = memref.cast %part0 : !part to !view
    %alloc0 = memref.alloc() : memref<64xf64>
    %out0 = memref.cast %alloc0 : memref<64xf64> to !view
    gpu.launch_func @kernels::@in_place blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%in0 : !view, %out0 : !view)
    %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
    "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
    %s = "stencil.load"(%v) : (!field) -> !temp
    %m1 = builtin.unrealized_conversion_cast %s : !temp to !static
    %part1 = memref.subview %m1[1] [64] [1] : !static to !part
    %in1 = memref.cast %part1 : !part to !view
    %alloc1 = memref.alloc() : memref<64xf64>
    %out1 = memref.cast %alloc1 : memref<64xf64> to !view
    gpu.launch_func @kernels::@other blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%in1 : !view, %out1 : !view)
    %q = builtin.unrealized_conversion_cast %alloc1 : memref<64xf64> to !inner
    "stencil.store"(%q, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
    return
  }
  gpu.module @kernels {
    gpu.func @other(%a: !view, %b: !view) kernel {
      gpu.return
    }
    gpu.func @in_place(%a: !view, %b: !view) kernel attributes {stencil.in_place} {
      gpu.return
    }
  }
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!part = memref<64xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @in_place(!view, !view) attributes {stencil.in_place}
func.func private @kernel(!view, !view)

// Not over neighbours.

// CHECK-LABEL: func.func @neighbours(
// CHECK: memref.alloc() : memref<64xf64>
// CHECK: call @in_place(
// CHECK: memref.copy
func.func @neighbours(%u: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %part0 = memref.subview %m0[2] [64] [1] : !static to !part
  %in0 = memref.cast %part0 : !part to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @in_place(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!part = memref<64xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @in_place(!view, !view) attributes {stencil.in_place}
func.func private @kernel(!view, !view)

// Not where another kernel may not.

// CHECK-LABEL: func.func @other_kernel(
// CHECK: memref.alloc() : memref<64xf64>
// CHECK: call @kernel(
// CHECK: memref.copy
func.func @other_kernel(%u: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %part0 = memref.subview %m0[1] [64] [1] : !static to !part
  %in0 = memref.cast %part0 : !part to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!part = memref<64xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @in_place(!view, !view) attributes {stencil.in_place}
func.func private @kernel(!view, !view)

// Not where the old values are stored later.

// CHECK-LABEL: func.func @stored_later(
// CHECK: memref.alloc() : memref<64xf64>
// CHECK: call @in_place(
// CHECK: memref.copy
func.func @stored_later(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %part0 = memref.subview %m0[1] [64] [1] : !static to !part
  %in0 = memref.cast %part0 : !part to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @in_place(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// A result that was copied in part stays where it is.

// CHECK-LABEL: func.func @in_part_and_whole(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>, %[[W:[a-z0-9]+]]: memref<66xf64>
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<64xf64>
// CHECK: memref.subview %[[RESULT]][2] [8] [1] : memref<64xf64> to memref<8xf64, strided<[1], offset: 2>>
// CHECK: memref.subview %[[V]][3] [8] [1]
// CHECK: memref.subview %[[W]][1] [64] [1]
func.func @in_part_and_whole(%u: !field, %v: !field, %w: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[2], [10]>} : (!inner, !field) -> ()
  "stencil.store"(%r, %w) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// After a loop its results may be any field that it carried: the result of a sweep that reads one
// of them and is stored to another is copied.

// CHECK-LABEL: func.func @after_a_loop(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>, %[[V:[a-z0-9]+]]: memref<66xf64>
// CHECK: %[[LOOP:.*]]:2 = scf.for
// CHECK: memref.cast %[[LOOP]]#0
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<64xf64>
// CHECK: call @kernel(
// CHECK: %[[PART:.*]] = memref.subview %[[U]][1] [64] [1]
// CHECK: memref.copy %[[RESULT]], %[[PART]]
func.func @after_a_loop(%u: !field, %v: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%now = %u, %next = %v) -> (!field, !field) {
    scf.yield %next, %now : !field, !field
  }
  %t = "stencil.load"(%a) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// In a loop, a field from outside may be one that the loop carries.

// CHECK-LABEL: func.func @captured_by_a_loop(
// CHECK-SAME: %[[U:[a-z0-9]+]]: memref<66xf64>
// CHECK: scf.for
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<64xf64>
// CHECK: call @kernel(
// CHECK: %[[PART:.*]] = memref.subview %[[U]][1] [64] [1]
// CHECK: memref.copy %[[RESULT]], %[[PART]]
func.func @captured_by_a_loop(%u: !field, %v: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%now = %u, %next = %v) -> (!field, !field) {
    %t = "stencil.load"(%now) : (!field) -> !temp
    %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
    %in0 = memref.cast %m0 : !static to !view
    %alloc0 = memref.alloc() : memref<64xf64>
    %out0 = memref.cast %alloc0 : memref<64xf64> to !view
    func.call @kernel(%in0, %out0) : (!view, !view) -> ()
    %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
    "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
    scf.yield %next, %now : !field, !field
  }
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// What bufferization refuses

func.func @not_lowered(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  // expected-error @+1 {{'stencil.weighted_sum' op expected to be lowered to a kernel before bufferization}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

func.func @unknown_bounds(%u: !stencil.field<1 : i64, f64>, %v: !field) {
  // expected-error @+1 {{'stencil.load' op expected a field with known bounds; give them by stencil.cast}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

func.func @store_to_unknown_bounds(%u: !field, %v: !stencil.field<1 : i64, f64>) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  // expected-error @+1 {{'stencil.store' op expected a field with known bounds; give them by stencil.cast}}
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !stencil.field<1 : i64, f64>) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

func.func @one_field_twice(%u: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{'scf.for' op expected distinct fields in a time loop, got one field twice}}
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%now = %u, %next = %u) -> (!field, !field) {
    %t = "stencil.load"(%now) : (!field) -> !temp
    %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
    %in0 = memref.cast %m0 : !static to !view
    %alloc0 = memref.alloc() : memref<64xf64>
    %out0 = memref.cast %alloc0 : memref<64xf64> to !view
    func.call @kernel(%in0, %out0) : (!view, !view) -> ()
    %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
    "stencil.store"(%r, %next) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
    scf.yield %next, %now : !field, !field
  }
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

func.func @a_field_that_the_loop_may_carry(%u: !field, %v: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{'scf.for' op expected distinct fields in a time loop, got one field twice}}
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%now = %u, %next = %v) -> (!field, !field) {
    %t = "stencil.load"(%now) : (!field) -> !temp
    %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
    %in0 = memref.cast %m0 : !static to !view
    %alloc0 = memref.alloc() : memref<64xf64>
    %out0 = memref.cast %alloc0 : memref<64xf64> to !view
    func.call @kernel(%in0, %out0) : (!view, !view) -> ()
    %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
    "stencil.store"(%r, %next) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
    scf.yield %next, %u : !field, !field
  }
  return
}

// -----

// A temp and its buffer are one memref, which is a part of a field from the first store on.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
!static = memref<66xf64, strided<[1], offset: ?>>
!view = memref<?xf64, strided<[1], offset: ?>>

func.func private @kernel(!view, !view)

// CHECK-LABEL: func.func @a_buffer_that_is_stored_as_well(
// CHECK-SAME: %[[U:.*]]: memref<66xf64>, %[[V:.*]]: memref<66xf64>, %[[W:.*]]: memref<66xf64>)
// CHECK-NOT: memref.alloc
// CHECK: %[[OUT:.*]] = memref.subview %[[V]][1] [64] [1]
// CHECK: call @kernel
// CHECK-NEXT: %[[OTHER:.*]] = memref.subview %[[W]][1] [64] [1]
// CHECK-NEXT: memref.copy %[[OUT]], %[[OTHER]]
// CHECK-NEXT: return
func.func @a_buffer_that_is_stored_as_well(%u: !field, %v: !field, %w: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %m0 = builtin.unrealized_conversion_cast %t : !temp to !static
  %in0 = memref.cast %m0 : !static to !view
  %alloc0 = memref.alloc() : memref<64xf64>
  %out0 = memref.cast %alloc0 : memref<64xf64> to !view
  func.call @kernel(%in0, %out0) : (!view, !view) -> ()
  %r = builtin.unrealized_conversion_cast %alloc0 : memref<64xf64> to !inner
  %b = "stencil.buffer"(%r) : (!inner) -> !inner
  %unread = "stencil.buffer"(%r) : (!inner) -> !stencil.temp<1 : i64, f64>
  "stencil.store"(%b, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  "stencil.store"(%r, %w) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

// Casts of other things are left alone.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>

// CHECK-LABEL: func.func @no_conversion(
// CHECK: builtin.unrealized_conversion_cast %{{.*}} : memref<4xf64> to i64
func.func @no_conversion(%u: !field, %m: memref<4xf64>) -> i64 {
  %w = builtin.unrealized_conversion_cast %m : memref<4xf64> to i64
  return %w : i64
}

// -----

// Memory that is freed in the end has to be the function's own.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @memory_of_a_caller(%m: memref<64xf64>, %v: !field) {
  // expected-error @+1 {{'builtin.unrealized_conversion_cast' op expected memory allocated for !stencil.temp<#stencil.bounds<[0], [64]>, f64>, got memref<64xf64>}}
  %r = builtin.unrealized_conversion_cast %m : memref<64xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @memory_of_other_extents(%v: !field) {
  %alloc = memref.alloc() : memref<32xf64>
  // expected-error @+1 {{'builtin.unrealized_conversion_cast' op expected memory allocated for !stencil.temp<#stencil.bounds<[0], [64]>, f64>, got memref<32xf64>}}
  %r = builtin.unrealized_conversion_cast %alloc : memref<32xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>

func.func @memory_of_unknown_bounds(%m: memref<64xf64>, %v: !field) {
  // expected-error @+1 {{'builtin.unrealized_conversion_cast' op expected no temps outside of stencil ops, got !stencil.temp<1 : i64, f64>}}
  %r = builtin.unrealized_conversion_cast %m : memref<64xf64> to !stencil.temp<1 : i64, f64>
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!stencil.temp<1 : i64, f64>, !field) -> ()
  return
}

// -----

// It is freed once, at the end of the block that allocates it.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @memory_of_two_temps(%v: !field, %w: !field) {
  %alloc = memref.alloc() : memref<64xf64>
  %r = builtin.unrealized_conversion_cast %alloc : memref<64xf64> to !inner
  // expected-error @+1 {{'builtin.unrealized_conversion_cast' op expected memory allocated for !stencil.temp<#stencil.bounds<[0], [64]>, f64>, got memref<64xf64>}}
  %s = builtin.unrealized_conversion_cast %alloc : memref<64xf64> to !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  "stencil.store"(%s, %w) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @memory_of_another_block(%v: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %alloc = memref.alloc() : memref<64xf64>
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @+1 {{'builtin.unrealized_conversion_cast' op expected memory allocated for !stencil.temp<#stencil.bounds<[0], [64]>, f64>, got memref<64xf64>}}
    %r = builtin.unrealized_conversion_cast %alloc : memref<64xf64> to !inner
    "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  }
  return
}

// -----

// The memory of a temp is that of the block that computes it.

!field = !stencil.field<#stencil.bounds<[0], [64]>, f64>
!temp = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @stored_in_another_block(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  cf.br ^next
^next:
  // expected-error @+1 {{'stencil.store' op expected temps to be used in the block that computes them}}
  "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}
