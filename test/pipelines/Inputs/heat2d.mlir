func.func @heat2d(%u : !stencil.field<[-1,17]x[-1,33]xf32>, %v : !stencil.field<[-1,17]x[-1,33]xf32>) {
  %t = stencil.load %u : !stencil.field<[-1,17]x[-1,33]xf32> -> !stencil.temp<?x?xf32>
  %r = stencil.apply(%a = %t : !stencil.temp<?x?xf32>) -> (!stencil.temp<?x?xf32>) {
    %eighth = arith.constant 0.125 : f32
    %half = arith.constant 0.5 : f32
    %n = stencil.access %a[-1, 0] : !stencil.temp<?x?xf32>
    %s = stencil.access %a[1, 0] : !stencil.temp<?x?xf32>
    %w = stencil.access %a[0, -1] : !stencil.temp<?x?xf32>
    %e = stencil.access %a[0, 1] : !stencil.temp<?x?xf32>
    %c = stencil.access %a[0, 0] : !stencil.temp<?x?xf32>
    %ns = arith.addf %n, %s : f32
    %we = arith.addf %w, %e : f32
    %sum = arith.addf %ns, %we : f32
    %around = arith.mulf %sum, %eighth : f32
    %new = math.fma %c, %half, %around : f32
    stencil.return %new : f32
  }
  stencil.store %r to %v(<[0, 0], [16, 32]>) : !stencil.temp<?x?xf32> to !stencil.field<[-1,17]x[-1,33]xf32>
  return
}
