// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Not linear: the side that is read depends on a sign, and a band of rows is left unchanged.
func.func @upwind(%u: !stencil.field<[-1,17]x[-1,17]xf64>, %c: !stencil.field<[0,16]x[0,16]xf64>, %out: !stencil.field<[0,16]x[0,16]xf64>) {
  %ut = stencil.load %u : !stencil.field<[-1,17]x[-1,17]xf64> -> !stencil.temp<[-1,17]x[-1,17]xf64>
  %ct = stencil.load %c : !stencil.field<[0,16]x[0,16]xf64> -> !stencil.temp<[0,16]x[0,16]xf64>
  %r = stencil.apply(%a = %ut : !stencil.temp<[-1,17]x[-1,17]xf64>, %b = %ct : !stencil.temp<[0,16]x[0,16]xf64>) -> (!stencil.temp<[0,16]x[0,16]xf64>) {
    %x = stencil.access %a[0, 0] : !stencil.temp<[-1,17]x[-1,17]xf64>
    %l = stencil.access %a[0, -1] : !stencil.temp<[-1,17]x[-1,17]xf64>
    %h = stencil.access %a[0, 1] : !stencil.temp<[-1,17]x[-1,17]xf64>
    %v = stencil.access %b[0, 0] : !stencil.temp<[0,16]x[0,16]xf64>
    %zero = arith.constant 0.0 : f64
    %right = arith.cmpf ogt, %v, %zero : f64
    %flux = scf.if %right -> (f64) {
      %0 = arith.subf %x, %l : f64
      scf.yield %0 : f64
    } else {
      %0 = arith.subf %h, %x : f64
      scf.yield %0 : f64
    }
    %1 = arith.mulf %v, %flux : f64
    %2 = arith.subf %x, %1 : f64
    %row = stencil.index 0 <[-1, 0]>
    %four = arith.constant 4 : index
    %outside = arith.cmpi slt, %row, %four : index
    %3 = arith.select %outside, %x, %2 : f64
    %4 = stencil.store_result %3 : !stencil.result<f64>
    stencil.return %4 : !stencil.result<f64>
  }
  stencil.store %r to %out(<[0, 0], [16, 16]>) : !stencil.temp<[0,16]x[0,16]xf64> to !stencil.field<[0,16]x[0,16]xf64>
  func.return
}
