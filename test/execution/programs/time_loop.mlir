// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Heat in one dimension: a time loop that swaps two fields, which are cast from unknown bounds.
func.func @heat(%a: !stencil.field<?xf32>, %b: !stencil.field<?xf32>) -> !stencil.field<[-1,65]xf32> {
  %u = stencil.cast %a : !stencil.field<?xf32> -> !stencil.field<[-1,65]xf32>
  %v = stencil.cast %b : !stencil.field<?xf32> -> !stencil.field<[-1,65]xf32>
  %begin = arith.constant 0 : index
  %end = arith.constant 5 : index
  %step = arith.constant 1 : index
  %last, %other = scf.for %t = %begin to %end step %step iter_args(%now = %u, %next = %v) -> (!stencil.field<[-1,65]xf32>, !stencil.field<[-1,65]xf32>) {
    %nt = stencil.load %now : !stencil.field<[-1,65]xf32> -> !stencil.temp<[-1,65]xf32>
    %r = stencil.apply(%x = %nt : !stencil.temp<[-1,65]xf32>) -> (!stencil.temp<[0,64]xf32>) {
      %l = stencil.access %x[-1] : !stencil.temp<[-1,65]xf32>
      %c = stencil.access %x[0] : !stencil.temp<[-1,65]xf32>
      %h = stencil.access %x[1] : !stencil.temp<[-1,65]xf32>
      %half = arith.constant 0.5 : f32
      %quarter = arith.constant 0.25 : f32
      %0 = arith.addf %l, %h : f32
      %1 = arith.mulf %0, %quarter : f32
      %2 = math.fma %c, %half, %1 : f32
      stencil.return %2 : f32
    }
    stencil.store %r to %next(<[0], [64]>) : !stencil.temp<[0,64]xf32> to !stencil.field<[-1,65]xf32>
    scf.yield %next, %now : !stencil.field<[-1,65]xf32>, !stencil.field<[-1,65]xf32>
  }
  func.return %last : !stencil.field<[-1,65]xf32>
}
