// RUN: twofour-opt %s --pass-pipeline='builtin.module(stencil-infer-bounds,stencil-extract-weights,stencil-convert-element-type{to=f16},stencil-fuse-steps{steps=3},convert-stencil-to-nm,nm-crush{tile=1,16},nm-permute-2to4{strategy=chunks},nm-compress,convert-nm-to-gpu{chip=sm_90 dtype=f16 ring=false levels=true})' | filecheck %s

// Three fused steps as levels of one kernel. Each level multiplies once for each of three rows; what
// it completes is shuffled into the fragment that the next one multiplies.

// CHECK: gpu.func @step_fused3_kernel0
// CHECK-SAME: tile = array<i64: 1, 448>
// CHECK: scf.for
// CHECK-COUNT-3: nvvm.mma.sp.sync
// CHECK-COUNT-2: nvvm.inline_ptx "movmatrix
// CHECK-COUNT-4: gpu.shuffle idx
// CHECK-COUNT-3: nvvm.mma.sp.sync
// CHECK-COUNT-2: nvvm.inline_ptx "movmatrix
// CHECK-COUNT-4: gpu.shuffle idx
// CHECK-COUNT-3: nvvm.mma.sp.sync
// CHECK-COUNT-2: nvvm.inline_ptx "movmatrix
// CHECK-NOT: gpu.shuffle
// CHECK: vector.store

func.func @step(%u : !stencil.field<[-3,4099]x[-3,4099]xf32>, %v : !stencil.field<[-3,4099]x[-3,4099]xf32>) {
  %t = stencil.load %u : !stencil.field<[-3,4099]x[-3,4099]xf32> -> !stencil.temp<?x?xf32>
  %r = stencil.apply(%a = %t : !stencil.temp<?x?xf32>) -> (!stencil.temp<?x?xf32>) {
    %w = arith.constant 0.25 : f32
    %n = stencil.access %a[-3, 0] : !stencil.temp<?x?xf32>
    %s = stencil.access %a[3, 0] : !stencil.temp<?x?xf32>
    %l = stencil.access %a[0, -3] : !stencil.temp<?x?xf32>
    %m = stencil.access %a[0, 3] : !stencil.temp<?x?xf32>
    %0 = arith.addf %n, %s : f32
    %1 = arith.addf %l, %m : f32
    %2 = arith.addf %0, %1 : f32
    %3 = arith.mulf %2, %w : f32
    stencil.return %3 : f32
  }
  stencil.store %r to %v(<[0, 0], [4096, 4096]>) : !stencil.temp<?x?xf32> to !stencil.field<[-3,4099]x[-3,4099]xf32>
  return
}
