// The wave equation u_tt = c^2 laplace(u) on 128 x 128 points, leapfrog with (c dt/h)^2 = 1/4:
//   next = 2 now - old + 1/4 (north + south + west + east - 4 now)
// Three time levels rotate: after a call, argument i takes over the buffer that argument
// rotation[i] held, so that old <- now, now <- next, and next gets the buffer of old to write into.
!field = !stencil.field<[-1,129]x[-1,129]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @wave2d(%old : !field, %now : !field, %next : !field) attributes {stencil.rotation = array<i64: 1, 2, 0>} {
  %ot = stencil.load %old : !field -> !temp
  %nt = stencil.load %now : !field -> !temp
  %r = stencil.apply(%o = %ot : !temp, %u = %nt : !temp) -> (!temp) {
    %quarter = arith.constant 2.500000e-01 : f64
    %n = stencil.access %u[-1, 0] : !temp
    %s = stencil.access %u[1, 0] : !temp
    %w = stencil.access %u[0, -1] : !temp
    %e = stencil.access %u[0, 1] : !temp
    %c = stencil.access %u[0, 0] : !temp
    %before = stencil.access %o[0, 0] : !temp
    %ns = arith.addf %n, %s : f64
    %we = arith.addf %w, %e : f64
    %around = arith.addf %ns, %we : f64
    %pull = arith.mulf %around, %quarter : f64
    // 2 now - 4/4 now = now
    %ahead = arith.addf %c, %pull : f64
    %new = arith.subf %ahead, %before : f64
    stencil.return %new : f64
  }
  stencil.store %r to %next(<[0, 0], [128, 128]>) : !temp to !field
  return
}
