// RUN: twofour-opt %s --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush{tile=1,16},nm-permute-2to4{strategy=chunks},nm-compress,convert-nm-to-gpu{chip=sm_90 stages=4 march=9 ring=true})' | filecheck %s
// RUN: not twofour-opt %s --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush,nm-permute-2to4,nm-compress,convert-nm-to-gpu{ring=true})' 2>&1 | filecheck %s --check-prefix=ORDER

// ORDER: convert-nm-to-gpu-ring.mlir:{{[0-9]+}}:8: error: 'nm.sparse_patch_matmul' op expected columns in chunks of eight for a ring, got another order

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [4001, 5121]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [4000, 5120]>, f16>

// Four warps of four steps, each of 144 inputs.

// CHECK-LABEL: func.func @heat2d(
// CHECK: gpu.func @heat2d_kernel0(
// CHECK-SAME: shared_bytes = 4608 : i64, tile = array<i64: 1, 512>
// CHECK: gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>

// A strip inside the array: 18 lanes copy what three steps need, a group each.

// CHECK: scf.if
// CHECK: scf.if
// CHECK-COUNT-3: nvvm.cp.async.commit.group

// A step waits until its group and the whole warp are there, and copies ahead before it reads.

// CHECK: nvvm.cp.async.wait.group 2
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: %[[COPIES:.*]] = arith.cmpi slt, %{{.*}}, %c18
// CHECK: nvvm.inline_ptx "cp.async.ca.shared.global.L2::256B [{$r0}+0], [{$r1}+-16], 16;" {{.*}} predicate = %[[COPIES]]
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.mma.sp.sync
// CHECK: nvvm.inline_ptx "ld.shared.v4.b32 {{.*}}, [{$r0}+0];"
// CHECK: nvvm.mma.sp.sync

// The main loop carries the sums of two rows and two slots, and no inputs.

// CHECK: scf.for
// CHECK-SAME: iter_args(
// CHECK-SAME: -> (f32, f32, f32, f32, f32, f32, f32, f32, index, index, index, i32, i32)
// CHECK-COUNT-6: nvvm.cp.async.wait.group 2
// CHECK-NOT: nvvm.cp.async.wait.group
// CHECK: scf.yield

// What whole rounds leave, then the steps that were copied ahead.

// CHECK: scf.for
// CHECK: scf.yield
// CHECK: nvvm.cp.async.wait.group 2
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NOT: cp.async
// CHECK: nvvm.inline_ptx "ld.shared

// A strip at an edge: lanes copy what exists, and replace what no output reads by zeros.

// CHECK: } else {
// CHECK: arith.select
// CHECK: cp.async.ca.shared.global
// CHECK: nvvm.inline_ptx "ld.shared
// CHECK-COUNT-4: arith.andi %{{.*}}, %{{.*}} : i32
// CHECK: gpu.return
func.func @heat2d(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]],
    weights = array<f64: 0.125, 0.125, 0.5, 0.125, 0.125>
  } : (!temp) -> !inner
  return %r : !inner
}
