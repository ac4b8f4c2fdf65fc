// Schedules that take matrix registers are refused, and the option is named that vectors need.

// RUN: twofour-opt %s --stencil-to-scatter --stencil-select-cover=option=parallel --stencil-block=unroll=1,2 --stencil-schedule-outer --convert-stencil-outer-to-vector | filecheck %s --check-prefix=TAKEN
// RUN: not twofour-opt %s --stencil-to-scatter --stencil-select-cover=option=parallel --stencil-block=unroll=2,1 --stencil-schedule-outer --convert-stencil-outer-to-vector 2>&1 | filecheck %s --check-prefix=PLANES
// RUN: not twofour-opt %s --stencil-to-scatter --stencil-select-cover=option=orthogonal --stencil-block=unroll=1,2 --stencil-schedule-outer --convert-stencil-outer-to-vector 2>&1 | filecheck %s --check-prefix=SWEEPS
// RUN: not twofour-opt %s --stencil-to-scatter --stencil-select-cover=option=hybrid --stencil-block=unroll=1,2 --stencil-schedule-outer --convert-stencil-outer-to-vector 2>&1 | filecheck %s --check-prefix=COLUMNS
// RUN: not twofour-opt %s --stencil-to-scatter --stencil-select-cover=option=diagonal --stencil-block=unroll=1,2 --stencil-schedule-outer --convert-stencil-outer-to-vector 2>&1 | filecheck %s --check-prefix=SKEWED

!temp = !stencil.temp<#stencil.bounds<[-1, -1, -1], [17, 17, 33]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0, 0], [16, 16, 32]>, f64>

// TAKEN: call @seven_kernel0(
// PLANES: 'stencil.outer_sum' op expected one plane of tiles, got 2; stencil-block{unroll=1,N}
// SWEEPS: 'stencil.outer_sum' op expected one sweep over the output, got 2; stencil-select-cover{option=parallel}
// COLUMNS: 'stencil.outer_sum' op expected lines along the row axis alone; stencil-select-cover{option=parallel}
// SKEWED: 'stencil.outer_sum' op expected tiles over the last two axes, not skewed; stencil-select-cover{option=parallel}
func.func @seven(%t: !temp) -> !inner {
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]], weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0>} : (!temp) -> !inner
  return %r : !inner
}
