// RUN: twofour-opt %s --stencil-to-scatter | twofour-opt | filecheck %s --check-prefix=SCATTER
// RUN: twofour-opt %s --stencil-to-scatter --stencil-select-cover=option=orthogonal | twofour-opt | filecheck %s --check-prefix=LINES
// RUN: twofour-opt %s --stencil-to-scatter --stencil-select-cover=option=orthogonal --stencil-block=unroll=2,2 | twofour-opt | filecheck %s --check-prefix=BLOCKS
// RUN: twofour-opt %s --stencil-to-scatter --stencil-select-cover=option=orthogonal --stencil-block=unroll=2,2 --stencil-schedule-outer | twofour-opt | filecheck %s --check-prefix=OUTER
// RUN: twofour-opt %s --pass-pipeline='builtin.module(stencil-to-scatter,stencil-select-cover,stencil-block,stencil-schedule-outer,canonicalize)' | filecheck %s --check-prefix=DEAD

// Each form is printed, read again and verified; all ops are pure.

!in = !stencil.temp<#stencil.bounds<[-1, -1, -1], [9, 17, 17]>, f64>
!out = !stencil.temp<#stencil.bounds<[0, 0, 0], [8, 16, 16]>, f64>

// SCATTER: "stencil.scatter_sum"(%{{.*}}, %{{.*}}) {constant = 2.000000e+00 : f64, offsets = {{.*}} scatter_offsets = {{.*}} scatter_weights = array<f64: {{[^>]*}}>, weights = array<f64: {{[^>]*}}>} : (!stencil.temp<#stencil.bounds<[-1, -1, -1], [9, 17, 17]>, f64>, !stencil.temp<#stencil.bounds<[0, 0, 0], [8, 16, 16]>, f64>) -> !stencil.temp<#stencil.bounds<[0, 0, 0], [8, 16, 16]>, f64>
// LINES: "stencil.line_sum"(%{{.*}}, %{{.*}}) {constant = 2.000000e+00 : f64, lines = [{direction = [0, 1, 0], start = [0, -1, 0], weights = array<f64: {{.*}} option = "orthogonal"
// BLOCKS: "stencil.block_sum"(%{{.*}}, %{{.*}}) {blocks = [{lines = [0, 1], row_axis = 1 : i64, skew = 0 : i64, unroll = [2, 2]}, {lines = [2], row_axis = 0 : i64, skew = 0 : i64, unroll = [2, 2]}], constant = 2.000000e+00 : f64, lines = [
// OUTER: "stencil.outer_sum"(%{{.*}}, %{{.*}}) {by = "load", constant = 2.000000e+00 : f64, lines = [
// OUTER-SAME: smallest_length = 2 : i64, sweeps = [{lines = [0, 1], row_axis = 1 : i64, rows = [
// OUTER-SAME: {lines = [2], row_axis = 0 : i64, rows = [{products = {{\[\[}}2, 0, 0, 0, 0], [2, 0, 1, 0, 0], [2, 1, 0, 1, 0], [2, 1, 1, 1, 0]], start = [-1, 0], stop = [1, 1]}]

// DEAD-LABEL: func.func @star(
// DEAD-NEXT: return
func.func @star(%t: !in, %a: !out) {
  %r = "stencil.weighted_sum"(%t, %a) {
    constant = 2.0 : f64,
    offsets = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]],
    weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0>
  } : (!in, !out) -> !out
  return
}
