// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fields that view memrefs; the stored result is also copied out. A second function fills a field.
func.func @shift(%in: memref<20xf64>, %out: memref<16xf64>, %copy: memref<16xf64>) {
  %u = stencil.external_load %in : memref<20xf64> -> !stencil.field<[-2,18]xf64>
  %any = stencil.external_load %out : memref<16xf64> -> !stencil.field<?xf64>
  %v = stencil.cast %any : !stencil.field<?xf64> -> !stencil.field<[0,16]xf64>
  %ut = stencil.load %u : !stencil.field<[-2,18]xf64> -> !stencil.temp<[2,18]xf64>
  %r = stencil.apply(%a = %ut : !stencil.temp<[2,18]xf64>) -> (!stencil.temp<[0,16]xf64>) {
    %x = stencil.access %a[2] : !stencil.temp<[2,18]xf64>
    stencil.return %x : f64
  }
  stencil.store %r to %v(<[0], [16]>) : !stencil.temp<[0,16]xf64> to !stencil.field<[0,16]xf64>
  stencil.external_store %v to %copy : !stencil.field<[0,16]xf64> to memref<16xf64>
  func.return
}

func.func @fill(%out: !stencil.field<[-3,5]x[2,9]xf64>, %k: f64) {
  %r = stencil.apply(%c = %k : f64) -> (!stencil.temp<[-3,5]x[2,9]xf64>) {
    %i = stencil.index 0 <[0, 0]>
    %j = stencil.index 1 <[0, 2]>
    %ij = arith.addi %i, %j : index
    %n = arith.index_cast %ij : index to i64
    %x = arith.sitofp %n : i64 to f64
    %y = arith.addf %x, %c : f64
    stencil.return %y : f64
  }
  stencil.store %r to %out(<[-3, 2], [5, 9]>) : !stencil.temp<[-3,5]x[2,9]xf64> to !stencil.field<[-3,5]x[2,9]xf64>
  func.return
}
