!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @step(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 0.5, 0.5>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}
