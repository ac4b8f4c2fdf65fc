// RUN: twofour-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush,convert-nm-to-gpu{dtype=f16})'

!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f32>

func.func @arithmetic(%t: !temp) -> !inner {
  // expected-error@+1 {{'nm.patch_matmul' op expected dtype tf32 or f32 for fields of f32, got f16}}
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1], [1]], weights = array<f64: 0.5, 0.5>
  } : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f16>

func.func @addend(%t: !temp, %a: !inner) -> !inner {
  // expected-error@+1 {{'nm.patch_matmul' op expected an operator of one field, got one with an addend}}
  %r = "stencil.weighted_sum"(%t, %a) {
    offsets = [[-1], [1]], weights = array<f64: 0.5, 0.5>
  } : (!temp, !inner) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f16>

func.func @weights(%t: !temp) -> !inner {
  // expected-error@+1 {{expected weights within a factor of 2^28 of each other for f16, got 9.31323e-10 and 1}}
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1], [1]], weights = array<f64: 1.0, 9.313225746154785e-10>
  } : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-300, -300], [364, 364]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [64, 64]>, f16>

func.func @reach(%t: !temp) -> !inner {
  // expected-error@+1 {{expected a halo tile of at most 101376 bytes of shared memory}}
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-300, 0], [0, -300], [0, 300], [300, 0]], weights = array<f64: 1.0, 1.0, 1.0, 1.0>
  } : (!temp) -> !inner
  return %r : !inner
}

// -----

!temp = !stencil.temp<1 : i64, f16>

func.func @bounds(%t: !temp) -> !temp {
  // expected-error@+1 {{expected known bounds}}
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1], [1]], weights = array<f64: 1.0, 1.0>
  } : (!temp) -> !temp
  return %r : !temp
}
