// RUN: twofour compile %s --target sm_90 --emit gpu | filecheck %s

// Two fields that read a third one in common are updated by one kernel, in place, and then that one.

// CHECK-LABEL: func.func @fdtd(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<34x34xf32>, %[[Y:[a-z0-9]+]]: memref<34x34xf32>, %[[H:[a-z0-9]+]]: memref<34x34xf32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: gpu.launch_func @kernels::@fdtd_kernel1
// CHECK-NOT: memref.copy
// CHECK: gpu.launch_func @kernels::@fdtd_kernel0
// CHECK-NOT: gpu.launch_func
// CHECK: return
!f = !stencil.field<[-1,33]x[-1,33]xf32>
!t = !stencil.temp<?x?xf32>
func.func @fdtd(%x: !f, %y: !f, %h: !f) {
  %xt = stencil.load %x : !f -> !t
  %yt = stencil.load %y : !f -> !t
  %ht = stencil.load %h : !f -> !t
  %xr = stencil.apply(%a = %xt : !t, %b = %ht : !t) -> (!t) {
    %old = stencil.access %a[0, 0] : !t
    %here = stencil.access %b[0, 0] : !t
    %north = stencil.access %b[-1, 0] : !t
    %d = arith.subf %here, %north : f32
    %new = arith.addf %old, %d : f32
    stencil.return %new : f32
  }
  stencil.store %xr to %x(<[0, 0], [32, 32]>) : !t to !f
  %yr = stencil.apply(%a = %yt : !t, %b = %ht : !t) -> (!t) {
    %old = stencil.access %a[0, 0] : !t
    %here = stencil.access %b[0, 0] : !t
    %west = stencil.access %b[0, -1] : !t
    %d = arith.subf %here, %west : f32
    %new = arith.subf %old, %d : f32
    stencil.return %new : f32
  }
  stencil.store %yr to %y(<[0, 0], [32, 32]>) : !t to !f
  %xl = stencil.load %x : !f -> !t
  %hr = stencil.apply(%a = %xl : !t, %b = %ht : !t) -> (!t) {
    %old = stencil.access %b[0, 0] : !t
    %south = stencil.access %a[1, 0] : !t
    %new = arith.addf %old, %south : f32
    stencil.return %new : f32
  }
  stencil.store %hr to %h(<[0, 0], [32, 32]>) : !t to !f
  return
}
