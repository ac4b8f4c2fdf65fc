// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One apply with results of two element types; a buffered temp feeds the second apply.
func.func @mixed(%u: !stencil.field<[-2,18]xf64>, %f: !stencil.field<[0,16]xf32>, %d: !stencil.field<[0,16]xf64>) {
  %ut = stencil.load %u : !stencil.field<[-2,18]xf64> -> !stencil.temp<[-2,18]xf64>
  %s, %m = stencil.apply(%a = %ut : !stencil.temp<[-2,18]xf64>) -> (!stencil.temp<[-1,17]xf32>, !stencil.temp<[-1,17]xf64>) {
    %l = stencil.access %a[-1] : !stencil.temp<[-2,18]xf64>
    %h = stencil.access %a[1] : !stencil.temp<[-2,18]xf64>
    %half = arith.constant 0.5 : f64
    %sum = arith.addf %l, %h : f64
    %mean = arith.mulf %half, %sum : f64
    %short = arith.truncf %mean : f64 to f32
    stencil.return %short, %mean : f32, f64
  }
  %mb = stencil.buffer %m : !stencil.temp<[-1,17]xf64> -> !stencil.temp<[-1,17]xf64>
  %g = stencil.apply(%a = %mb : !stencil.temp<[-1,17]xf64>) -> (!stencil.temp<[0,16]xf64>) {
    %l = stencil.access %a[-1] : !stencil.temp<[-1,17]xf64>
    %h = stencil.access %a[1] : !stencil.temp<[-1,17]xf64>
    %slope = arith.subf %h, %l : f64
    stencil.return %slope : f64
  }
  stencil.store %s to %f(<[0], [16]>) : !stencil.temp<[-1,17]xf32> to !stencil.field<[0,16]xf32>
  stencil.store %g to %d(<[0], [16]>) : !stencil.temp<[0,16]xf64> to !stencil.field<[0,16]xf64>
  func.return
}
