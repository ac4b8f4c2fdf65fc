// RUN: twofour-opt %s --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush,nm-permute-2to4{strategy=blossom fragment=16},nm-compress,convert-nm-to-gpu{dtype=tf32})' | filecheck %s --check-prefix=TF32
// RUN: twofour-opt %s --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush,nm-permute-2to4{strategy=blossom fragment=16},nm-compress,convert-nm-to-gpu)' | filecheck %s --check-prefix=SPLIT
// RUN: twofour-opt %s --pass-pipeline='builtin.module(stencil-convert-element-type{to=f64},convert-stencil-to-nm,nm-crush,nm-permute-2to4,nm-compress,convert-nm-to-gpu)' | filecheck %s --check-prefix=F64
// RUN: twofour-opt %s --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush,convert-nm-to-gpu{dtype=tf32 block=8,64})' | filecheck %s --check-prefix=BLOCK

!temp = !stencil.temp<#stencil.bounds<[-1, -1], [65, 513]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [64, 512]>, f32>

// tf32: inputs are rounded to nearest where they are loaded; pairs of columns, two steps of 16.

// TF32: memref.global "private" constant @heat2d_kernel0_values : memref<2x32x4xi32, 1 : i32>
// TF32-COUNT-4: nvvm.convert.float.to.tf32 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rna>}
// TF32: nvvm.mma.sp.sync {{.*}}orderedMetadata, shape = #nvvm.shape<m = 16, n = 8, k = 16>
// TF32-NOT: arith.subf
// TF32: gpu.return

// f32: values and inputs have two parts, and every step three products.

// SPLIT: memref.global "private" constant @heat2d_kernel0_values : memref<2x32x8xi32, 1 : i32>
// SPLIT-COUNT-4: nvvm.convert.float.to.tf32
// SPLIT-COUNT-4: arith.subf
// SPLIT-COUNT-4: nvvm.convert.float.to.tf32
// SPLIT-COUNT-3: nvvm.mma.sp.sync

// f64 has no sparse instruction: eight steps of four of the 32 columns, for two blocks of eight rows,
// without those whose part of A is zero.

// F64: memref.global "private" constant @heat2d_kernel0_values : memref<16x32x1xf64, 1 : i32>
// F64-NOT: kernel0_metadata
// F64: nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 8, n = 8, k = 4>
// F64: gpu.return

// BLOCK: stencil.launch = {{.*}}tile = array<i64: 8, 64>
func.func @heat2d(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]],
    weights = array<f64: 0.125, 0.125, 0.5, 0.125, 0.125>
  } : (!temp) -> !inner
  return %r : !inner
}
