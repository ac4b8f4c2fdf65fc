// Fourth-order smoothing in three dimensions, stronger or weaker from level to level:
//   out = u - strength(z) laplace(laplace(u)) / 64
// Axes are (z, y, x). The first apply is linear and becomes a weighted sum. The second one multiplies
// by a field of lower rank, read along z only, and stays on the general path. The inner
// Laplacian is needed one cell beyond the result on each side; its bounds are inferred.
!field = !stencil.field<[-2,34]x[-2,34]x[-2,34]xf32>
!profile = !stencil.field<[0,32]xf32>
!temp = !stencil.temp<?x?x?xf32>
func.func @smooth3d(%u : !field, %strength : !profile, %out : !field) {
  %ut = stencil.load %u : !field -> !temp
  %st = stencil.load %strength : !profile -> !stencil.temp<?xf32>
  %lap = stencil.apply(%a = %ut : !temp) -> (!temp) {
    %six = arith.constant -6.000000e+00 : f32
    %c = stencil.access %a[0, 0, 0] : !temp
    %zm = stencil.access %a[-1, 0, 0] : !temp
    %zp = stencil.access %a[1, 0, 0] : !temp
    %ym = stencil.access %a[0, -1, 0] : !temp
    %yp = stencil.access %a[0, 1, 0] : !temp
    %xm = stencil.access %a[0, 0, -1] : !temp
    %xp = stencil.access %a[0, 0, 1] : !temp
    %z = arith.addf %zm, %zp : f32
    %y = arith.addf %ym, %yp : f32
    %x = arith.addf %xm, %xp : f32
    %zy = arith.addf %z, %y : f32
    %around = arith.addf %zy, %x : f32
    %own = arith.mulf %c, %six : f32
    %l = arith.addf %own, %around : f32
    stencil.return %l : f32
  }
  %r = stencil.apply(%a = %ut : !temp, %b = %lap : !temp, %s = %st : !stencil.temp<?xf32>) -> (!temp) {
    %six = arith.constant -6.000000e+00 : f32
    %scale = arith.constant -1.562500e-02 : f32
    %c = stencil.access %b[0, 0, 0] : !temp
    %zm = stencil.access %b[-1, 0, 0] : !temp
    %zp = stencil.access %b[1, 0, 0] : !temp
    %ym = stencil.access %b[0, -1, 0] : !temp
    %yp = stencil.access %b[0, 1, 0] : !temp
    %xm = stencil.access %b[0, 0, -1] : !temp
    %xp = stencil.access %b[0, 0, 1] : !temp
    %level = stencil.access %s[0, _, _] : !stencil.temp<?xf32>
    %old = stencil.access %a[0, 0, 0] : !temp
    %z = arith.addf %zm, %zp : f32
    %y = arith.addf %ym, %yp : f32
    %x = arith.addf %xm, %xp : f32
    %zy = arith.addf %z, %y : f32
    %around = arith.addf %zy, %x : f32
    %own = arith.mulf %c, %six : f32
    %l = arith.addf %own, %around : f32
    %scaled = arith.mulf %l, %scale : f32
    %change = arith.mulf %scaled, %level : f32
    %new = arith.addf %old, %change : f32
    stencil.return %new : f32
  }
  stencil.store %r to %out(<[0, 0, 0], [32, 32, 32]>) : !temp to !field
  return
}
