// RUN: twofour-opt %s --split-input-file --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush{tile=1,16},nm-permute-2to4{strategy=chunks},nm-compress,convert-nm-to-gpu{chip=sm_90 stages=3 march=8})' | filecheck %s
// RUN: not twofour-opt %s --split-input-file --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush{tile=1,16},nm-permute-2to4{strategy=chunks},nm-compress,convert-nm-to-gpu{block=1,256})' 2>&1 | filecheck %s --check-prefix=BLOCK
// RUN: not twofour-opt %s --split-input-file --convert-nm-to-gpu=march=0 2>&1 | filecheck %s --check-prefix=MARCH

// BLOCK: convert-nm-to-gpu-stream.mlir:{{[0-9]+}}:8: error: 'nm.sparse_patch_matmul' op expected a block of 1x512 outputs, got [1, 256]
// MARCH: <pass-pipeline>:1:16: error: expected a march of 1 to 2147483647, got 0

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [4001, 5121]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [4000, 5120]>, f16>

// 500 marches of 8 rows, each in 10 strips of 512 columns; no shared memory.

// CHECK-LABEL: func.func @heat2d(
// CHECK: %[[BLOCKS:.*]] = arith.constant 5000 : index
// CHECK: gpu.launch_func @kernels::@heat2d_kernel0 blocks in (%[[BLOCKS]],
// CHECK-SAME: dynamic_shared_memory_size %c0_i32

// The rows above and below the middle share their weights, and so their block of A.

// CHECK: memref.global "private" constant @heat2d_kernel0_metadata : memref<2x32xi32, 1 : i32>
// CHECK: memref.global "private" constant @heat2d_kernel0_values : memref<2x32x4xi32, 1 : i32>
// CHECK: gpu.func @heat2d_kernel0(
// CHECK-SAME: nvvm.minctasm = [[RESIDENT:[0-9]+]] : i32
// CHECK-SAME: stencil.launch = {alignment = 32 : i64, march = 8 : i64, resident = [[RESIDENT]] : i64, shared_bytes = 0 : i64, tile = array<i64: 1, 512>}

// A strip inside the array: two rows are read ahead; two meet one and two rows of outputs.

// CHECK: memref.reinterpret_cast
// CHECK: %[[TARGET:.*]] = memref.reinterpret_cast
// CHECK: gpu.grid_dim x
// CHECK: scf.if
// CHECK: scf.if
// CHECK-COUNT-2: nvvm.inline_ptx "ld.global.L2::256B.v4.b32
// CHECK: nvvm.mma.sp.sync
// CHECK-SAME: {orderedMetadata, shape = #nvvm.shape<m = 16, n = 8, k = 32>}
// CHECK: nvvm.inline_ptx "ld.global
// CHECK-COUNT-2: nvvm.mma.sp.sync
// CHECK: nvvm.inline_ptx "ld.global

// A round of the main loop is six steps, one read, three instructions and one write each.

// CHECK: scf.for
// CHECK-COUNT-3: nvvm.mma.sp.sync
// CHECK-NOT: nvvm.mma.sp.sync
// CHECK: nvvm.inline_ptx "ld.global
// CHECK-NOT: arith.andi
// CHECK: arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
// CHECK: nvvm.inline_ptx "movmatrix.sync.aligned.m8n8.trans.b16
// CHECK: arith.truncf
// CHECK: nvvm.inline_ptx "movmatrix.sync.aligned.m8n8.trans.b16
// CHECK: vector.store %{{.*}}, %[[TARGET]][%{{.*}}] {alignment = 8 : i64} : memref<?xf16, {{.*}}>, vector<4xf16>
// CHECK-COUNT-5: vector.store %{{.*}}, %[[TARGET]]
// CHECK: scf.yield

// What whole rounds leave, then the two rows of inputs that were read ahead: they complete a row of
// outputs each and begin none.

// CHECK: scf.for
// CHECK-COUNT-3: nvvm.mma.sp.sync
// CHECK: scf.yield
// CHECK-NOT: ld.global
// CHECK-COUNT-2: nvvm.mma.sp.sync
// CHECK: vector.store
// CHECK: nvvm.mma.sp.sync
// CHECK-NOT: nvvm.mma.sp.sync
// CHECK: vector.store

// A strip at an edge: what no output reads is replaced by zeros, outputs are written where they are.

// CHECK: } else {
// CHECK: nvvm.inline_ptx "ld.global
// CHECK-COUNT-4: arith.andi %{{.*}}, %{{.*}} : i32
// CHECK: scf.if
// CHECK: vector.store %{{.*}}, %[[TARGET]]
// CHECK: else
// CHECK: memref.store %{{.*}}, %[[TARGET]]
// CHECK: gpu.return
func.func @heat2d(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]],
    weights = array<f64: 0.125, 0.125, 0.5, 0.125, 0.125>
  } : (!temp) -> !inner
  return %r : !inner
}
