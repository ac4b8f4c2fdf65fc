// RUN: twofour-opt %s --split-input-file --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush,nm-permute-2to4,nm-compress,convert-nm-to-gpu{chip=sm_89})' | filecheck %s
// RUN: twofour-opt %s --split-input-file --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush,convert-nm-to-gpu{stages=1})' | filecheck %s --check-prefix=DENSE
// RUN: twofour-opt %s --split-input-file --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush,convert-nm-to-gpu{chip=sm_90})' | filecheck %s --check-prefix=BULK

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [65, 513]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [64, 512]>, f16>

// A launch on views of the buffers: 64 rows are less than a march of 8 tiles of 16.

// CHECK-LABEL: func.func @heat2d(
// CHECK: %[[IN:.*]] = memref.cast %{{.*}} : memref<66x514xf16, {{.*}}> to memref<?x?xf16, strided<[?, 1], offset: ?>>
// CHECK: %[[OUT:.*]] = memref.cast %{{.*}} : memref<64x512xf16> to memref<?x?xf16, strided<[?, 1], offset: ?>>
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 128 : index
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 56576 : i32
// CHECK: gpu.launch_func @kernels::@heat2d_kernel0 blocks in (%{{.*}}, %[[ONE]], %[[ONE]]) threads in (%[[THREADS]], %[[ONE]], %[[ONE]]) dynamic_shared_memory_size %[[BYTES]] args(%[[IN]] : memref<?x?xf16, strided<[?, 1], offset: ?>>, %[[OUT]] : memref<?x?xf16, strided<[?, 1], offset: ?>>)

// Tables by lane: four registers of A and one word of metadata (lanes 2 and 3 of a quad repeat 0 and
// 1), the places of eight inputs for each of four lanes, and those of sixteen outputs.

// CHECK: gpu.module @kernels [#nvvm.target<chip = "sm_89">]
// CHECK: memref.global "private" constant @heat2d_kernel0_values : memref<1x32x4xi32, 1 : i32>
// CHECK: memref.global "private" constant @heat2d_kernel0_metadata : memref<1x32xi32, 1 : i32> = dense<{{\[\[}}[[M0:-?[0-9]+]], [[M1:-?[0-9]+]], [[M0]], [[M1]],
// CHECK: memref.global "private" constant @heat2d_kernel0_input_offsets : memref<1x2x4x4xi32, 1 : i32>
// CHECK: memref.global "private" constant @heat2d_kernel0_output_offsets : memref<16xi32, 1 : i32> = dense<[0, 1, 2, 3, 544, 545, 546, 547, 1088, 1089, 1090, 1091, 1632, 1633, 1634, 1635]>
// CHECK: gpu.func @heat2d_kernel0(
// CHECK-SAME: kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 1 : i32, stencil.kernel_inputs = 1 : i64, stencil.launch = {alignment = 32 : i64, march = 8 : i64, shared_bytes = 56576 : i64, tile = array<i64: 16, 512>}}

// The first halo tile of 18 rows is copied before the march, the next one while this is multiplied.

// CHECK: %[[SHARED:.*]] = gpu.dynamic_shared_memory
// CHECK: %[[HALO:.*]] = memref.view %[[SHARED]]{{.*}} to memref<19584xf16, #gpu.address_space<workgroup>>
// CHECK: %[[STAGING:.*]] = memref.view %[[SHARED]]{{.*}} to memref<8704xf16, #gpu.address_space<workgroup>>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c18
// CHECK: nvgpu.device_async_copy %{{.*}}, %[[HALO]][%{{.*}}], 8, %{{.*}} {bypassL1}
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for %{{.*}} iter_args(%[[NOW:[a-z0-9]+]] = %{{.*}}, %[[NEXT:[a-z0-9]+]] = %{{.*}}) -> (index, index)
// CHECK: scf.if
// CHECK: nvgpu.device_async_copy %{{.*}}, %[[HALO]][%{{.*}}], 8, %{{.*}} {bypassL1}
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: gpu.barrier
// Eight groups are multiplied together.

// CHECK: scf.for
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> f16
// CHECK: nvvm.mma.sp.sync
// CHECK-SAME: {orderedMetadata, shape = #nvvm.shape<m = 16, n = 8, k = 32>}
// CHECK-COUNT-7: nvvm.mma.sp.sync
// CHECK-NOT: nvvm.mma.sp.sync
// CHECK-COUNT-32: llvm.store %{{.*}} : f16, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK-NOT: arith.divui
// CHECK: vector.load %[[STAGING]][%{{.*}}] {alignment = 16 : i64}
// CHECK: vector.store %{{.*}} {alignment = 16 : i64}
// CHECK: scf.yield %[[NEXT]], %[[NOW]]
// CHECK: gpu.return

// The dense kernel takes two steps of 16 columns; with one stage it waits for every copy.

// DENSE-LABEL: func.func @heat2d(
// DENSE: gpu.module @kernels [#nvvm.target<chip = "sm_80">]
// DENSE-NOT: kernel0_metadata
// DENSE: nvvm.cp.async.wait.group 0
// DENSE-COUNT-16: nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
// DENSE-NOT: nvvm.mma

// On sm_90 the copy engine moves boxes: halo tiles of 18 x 160, results in four boxes of 16 x 32.
// Three stages have a barrier each; a stage is filled again once the barrier of the block has passed.

// BULK-LABEL: func.func @heat2d(
// BULK: llvm.mlir.global external @heat2d_kernel0_map0() {{{.*}}stencil.tensor_map_of = @heat2d_kernel0} : !llvm.array<128 x i8>
// BULK: llvm.mlir.global external @heat2d_kernel0_map1()
// BULK: gpu.func @heat2d_kernel0(%{{.*}}: memref<?x?xf16, strided<[?, 1], offset: ?>>, %{{.*}}: memref<?x?xf16, strided<[?, 1], offset: ?>>) kernel
// BULK-SAME: maps = [array<i64: 0, 7, 18, 160>, array<i64: 1, 0, 16, 32>], march = 16 : i64, shared_bytes = 25496 : i64
// BULK-COUNT-3: nvvm.mbarrier.init
// BULK: nvvm.fence.mbarrier.init
// BULK: gpu.barrier
// BULK-COUNT-3: nvvm.cp.async.bulk.tensor.shared.cluster.global
// BULK: scf.for
// BULK: nvvm.mbarrier.try_wait.parity
// BULK: nvvm.mma.sync
// BULK: nvvm.cp.async.bulk.wait_group 0 {read}
// BULK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// BULK: gpu.barrier
// BULK-COUNT-4: nvvm.cp.async.bulk.tensor.global.shared.cta
// BULK: nvvm.cp.async.bulk.commit.group
// BULK: nvvm.mbarrier.arrive.expect_tx
// BULK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// BULK: nvvm.cp.async.bulk.wait_group 0 {read}
// BULK: gpu.return
func.func @heat2d(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]],
    weights = array<f64: 0.125, 0.125, 0.5, 0.125, 0.125>
  } : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [100001]>, bf16>
!inner = !stencil.temp<#stencil.bounds<[0], [100000]>, bf16>

// A row is cut into segments of 512, which share a halo tile of 16 rows: the eight tiles of an
// instruction come from two segments. A march takes 65536 points. Segments overlap, as boxes cannot.

// CHECK-LABEL: func.func @heat1d(
// CHECK: %[[BLOCKS:.*]] = arith.constant 2 : index
// CHECK: gpu.launch_func @kernels::@heat1d_kernel0 blocks in (%[[BLOCKS]],
// CHECK: gpu.func @heat1d_kernel0(
// CHECK-SAME: tile = array<i64: 8192>
// CHECK: nvgpu.device_async_copy
// CHECK: nvvm.mma.sp.sync {{.*}} {multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, orderedMetadata, shape = #nvvm.shape<m = 16, n = 8, k = 32>}
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// DENSE-LABEL: func.func @heat1d(
// BULK-LABEL: func.func @heat1d(
// BULK: nvgpu.device_async_copy
// DENSE: nvvm.mma.sync {{.*}}#nvvm.mma_type<bf16>
func.func @heat1d(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1], [0], [1]],
    weights = array<f64: 0.25, 0.5, 0.25>
  } : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1, -1, -1], [33, 33, 257]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0, 0, 0], [32, 32, 256]>, f16>

// Rows of a tile of three axes are found by a table in constant memory: 6 planes of 10 rows.

// CHECK-LABEL: func.func @heat3d(
// CHECK: memref.global "private" constant @heat3d_kernel0_halo_rows : memref<60x2xi32, 4 : i32>
// CHECK: memref.global "private" constant @heat3d_kernel0_output_rows : memref<32x2xi32, 4 : i32>
// CHECK: gpu.func @heat3d_kernel0(
// CHECK-SAME: tile = array<i64: 4, 8, 256>
// CHECK: gpu.barrier
// CHECK-COUNT-8: nvvm.mma.sp.sync
// CHECK-NOT: nvvm.mma.sp.sync
// BULK-LABEL: func.func @heat3d(
// BULK: maps = [array<i64: 0, 7, 6, 10, 160>, array<i64: 1, 0, 4, 8, 32>]
// DENSE-LABEL: func.func @heat3d(
// DENSE: nvvm.mma.sync
func.func @heat3d(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]],
    weights = array<f64: 0.125, 0.125, 0.125, 0.25, 0.125, 0.125, 0.125>
  } : (!temp) -> !inner
  return %r : !inner
}
