// The Gray-Scott reaction of two fields on 128 x 128 points, explicit Euler with dt = h = 1:
//   u' = u + 0.16 laplace(u) - u v^2 + F (1 - u)
//   v' = v + 0.08 laplace(v) + u v^2 - (F + k) v
// The product u v^2 is not linear: this apply stays on the general path. Inputs and outputs swap
// after each step, u with u_next and v with v_next, since they stand in the same order.
!field = !stencil.field<[-1,129]x[-1,129]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @gray_scott(%u : !field, %v : !field, %u_next : !field, %v_next : !field) {
  %ut = stencil.load %u : !field -> !temp
  %vt = stencil.load %v : !field -> !temp
  %ur, %vr = stencil.apply(%a = %ut : !temp, %b = %vt : !temp) -> (!temp, !temp) {
    %feed = arith.constant 3.500000e-02 : f64
    %drain = arith.constant 1.000000e-01 : f64
    %du = arith.constant 1.600000e-01 : f64
    %dv = arith.constant 8.000000e-02 : f64
    %one = arith.constant 1.000000e+00 : f64
    %four = arith.constant 4.000000e+00 : f64
    %an = stencil.access %a[-1, 0] : !temp
    %as = stencil.access %a[1, 0] : !temp
    %aw = stencil.access %a[0, -1] : !temp
    %ae = stencil.access %a[0, 1] : !temp
    %ac = stencil.access %a[0, 0] : !temp
    %bn = stencil.access %b[-1, 0] : !temp
    %bs = stencil.access %b[1, 0] : !temp
    %bw = stencil.access %b[0, -1] : !temp
    %be = stencil.access %b[0, 1] : !temp
    %bc = stencil.access %b[0, 0] : !temp
    %a0 = arith.addf %an, %as : f64
    %a1 = arith.addf %aw, %ae : f64
    %a2 = arith.addf %a0, %a1 : f64
    %a3 = arith.mulf %ac, %four : f64
    %alap = arith.subf %a2, %a3 : f64
    %b0 = arith.addf %bn, %bs : f64
    %b1 = arith.addf %bw, %be : f64
    %b2 = arith.addf %b0, %b1 : f64
    %b3 = arith.mulf %bc, %four : f64
    %blap = arith.subf %b2, %b3 : f64
    %bb = arith.mulf %bc, %bc : f64
    %reaction = arith.mulf %ac, %bb : f64
    %left = arith.subf %one, %ac : f64
    %fed = arith.mulf %left, %feed : f64
    %drained = arith.mulf %bc, %drain : f64
    %adiff = arith.mulf %alap, %du : f64
    %bdiff = arith.mulf %blap, %dv : f64
    %a4 = arith.addf %ac, %adiff : f64
    %a5 = arith.subf %a4, %reaction : f64
    %anew = arith.addf %a5, %fed : f64
    %b4 = arith.addf %bc, %bdiff : f64
    %b5 = arith.addf %b4, %reaction : f64
    %bnew = arith.subf %b5, %drained : f64
    stencil.return %anew, %bnew : f64, f64
  }
  stencil.store %ur to %u_next(<[0, 0], [128, 128]>) : !temp to !field
  stencil.store %vr to %v_next(<[0, 0], [128, 128]>) : !temp to !field
  return
}
