// RUN: twofour compile %s --target sm_90 --dtype f16 --schedule sparse --emit nm | filecheck %s --check-prefix=NM
// RUN: twofour compile %s --target sm_90 --dtype f16 --schedule sparse --emit gpu | filecheck %s --check-prefix=GPU
// RUN: twofour compile %s --target sm_90 --dtype f16 --schedule sparse --emit nvvm | filecheck %s --check-prefix=NVVM
// RUN: twofour compile %s --target sm_90 --dtype f16 --schedule sparse --emit llvm | filecheck %s --check-prefix=LLVM
// RUN: twofour compile %s --target sm_90 --dtype f16 --schedule sparse --emit ptx | filecheck %s --check-prefix=PTX
// RUN: twofour compile %s --target sm_80 --dtype f16 --schedule sparse --emit ptx | filecheck %s --check-prefix=SM80
// RUN: twofour compile %s --target sm_100 --dtype f16 --schedule sparse --emit ptx | filecheck %s --check-prefix=SM100

// A program in the pretty syntax after every stage of the way to a GPU.

// NM: "nm.sparse_patch_matmul"
// NM-SAME: tile = array<i64: 4, 4>

// GPU: gpu.launch_func @kernels::@heat2d_kernel0
// GPU: gpu.func @heat2d_kernel0
// GPU: nvvm.mma.sp.sync

// NVVM: llvm.mlir.global external @__dynamic_shmem__0
// NVVM: llvm.mlir.global private constant @heat2d_kernel0_values
// NVVM: llvm.func @heat2d_kernel0(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64,
// NVVM-SAME: nvvm.kernel
// NVVM-SAME: nvvm.maxntid = array<i32: 128, 1, 1>
// NVVM: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %{{.*}} : !llvm.ptr<3>, !llvm.ptr<1>, i32
// NVVM: nvvm.cp.async.wait.group 1
// NVVM: nvvm.barrier
// NVVM: llvm.load %{{.*}} : !llvm.ptr<3> -> f16
// NVVM: nvvm.mma.sp.sync
// NVVM-SAME: orderedMetadata
// NVVM-NOT: {{(memref|scf|arith|vector|nvgpu)\.}}

// LLVM: @__dynamic_shmem__0 = external addrspace(3) global [0 x i8]
// LLVM: define ptx_kernel void @heat2d_kernel0(
// LLVM: call { float, float, float, float } @llvm.nvvm.mma.sp.ordered.metadata.m16n8k32.row.col.f32.f32(

// PTX: .target sm_90
// PTX: .extern .shared .align 128 .b8 __dynamic_shmem__0[];
// PTX: .visible .entry heat2d_kernel0(
// PTX: .maxntid 128, 1, 1
// PTX: .minnctapersm 1
// PTX: cp.async.cg.shared.global
// PTX: cp.async.commit_group;
// PTX: cp.async.wait_group 1;
// PTX: bar.sync 0;
// PTX-COUNT-8: ld.shared.b16
// PTX: mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32
// PTX-COUNT-4: st.shared.b16
// PTX: bar.sync 0;
// PTX-NOT: .local

// SM80: .target sm_80
// SM80: mma.sp::ordered_metadata.sync.aligned.m16n8k32

// SM100: .version 8.6
// SM100: .target sm_100
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
