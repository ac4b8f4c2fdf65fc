// RUN: twofour compile %s --target sm_90 --dtype f16 --schedule dense --emit gpu | filecheck %s --check-prefix=GPU
// RUN: twofour compile %s --target sm_90 --dtype f16 --schedule dense --emit nvvm | filecheck %s --check-prefix=NVVM
// RUN: twofour compile %s --target sm_90 --dtype f16 --schedule dense --emit llvm | filecheck %s --check-prefix=LLVM
// RUN: twofour compile %s --target sm_90 --dtype f16 --schedule dense --emit ptx | filecheck %s --check-prefix=PTX

// Dense kernels of sm_90 after every stage: the copy engine moves tiles.

// GPU: gpu.launch_func @kernels::@heat2d_kernel0
// GPU: gpu.func @heat2d_kernel0
// GPU: nvvm.mma.sync

// NVVM: llvm.mlir.global external @__dynamic_shmem__0
// NVVM: llvm.mlir.global private constant @heat2d_kernel0_values
// NVVM: llvm.func @heat2d_kernel0(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64,
// NVVM-SAME: %arg14: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// NVVM-SAME: nvvm.kernel
// NVVM-SAME: nvvm.maxntid = array<i32: 128, 1, 1>
// NVVM: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %arg14, %{{.*}}, box[%{{.*}}, %{{.*}}] : !llvm.ptr<7>, !llvm.ptr
// NVVM: nvvm.mbarrier.try_wait.parity
// NVVM: llvm.load %{{.*}} : !llvm.ptr<3> -> f16
// NVVM: nvvm.mma.sync
// NVVM-NOT: {{(memref|scf|arith|vector|nvgpu)\.}}

// LLVM: @__dynamic_shmem__0 = external addrspace(3) global [0 x i8]
// LLVM: define ptx_kernel void @heat2d_kernel0(
// LLVM: call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(

// PTX: .target sm_90
// PTX: .extern .shared .align 128 .b8 __dynamic_shmem__0[];
// PTX: .visible .entry heat2d_kernel0(
// PTX: .param .align 64 .b8 heat2d_kernel0_param_15[128]
// PTX: .maxntid 128, 1, 1
// PTX: .minnctapersm 1
// PTX: fence.mbarrier_init.release.cluster;
// PTX: bar.sync 0;
// PTX: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// PTX: mbarrier.try_wait.parity.shared.b64
// PTX-COUNT-8: ld.shared.b16
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// PTX-COUNT-4: st.shared.b16
// PTX: fence.proxy.async.shared::cta;
// PTX: bar.sync 0;
// PTX: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// PTX-NOT: .local

func.func @heat2d(%in: !stencil.field<[-1,65]x[-1,513]xf64>, %out: !stencil.field<[-1,65]x[-1,513]xf64>) {
  %u = stencil.load %in : !stencil.field<[-1,65]x[-1,513]xf64> -> !stencil.temp<?x?xf64>
  %next = stencil.apply(%v = %u : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %half = arith.constant 0.5 : f64
    %eighth = arith.constant 0.125 : f64
    %c = stencil.access %v[0, 0] : !stencil.temp<?x?xf64>
    %n = stencil.access %v[-1, 0] : !stencil.temp<?x?xf64>
    %s = stencil.access %v[1, 0] : !stencil.temp<?x?xf64>
    %w = stencil.access %v[0, -1] : !stencil.temp<?x?xf64>
    %e = stencil.access %v[0, 1] : !stencil.temp<?x?xf64>
    %ns = arith.addf %n, %s : f64
    %we = arith.addf %w, %e : f64
    %around = arith.addf %ns, %we : f64
    %inner = arith.mulf %half, %c : f64
    %outer = arith.mulf %eighth, %around : f64
    %r = arith.addf %inner, %outer : f64
    stencil.return %r : f64
  }
  stencil.store %next to %out(<[0, 0], [64, 512]>) : !stencil.temp<?x?xf64> to !stencil.field<[-1,65]x[-1,513]xf64>
  func.return
}
