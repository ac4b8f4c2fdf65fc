// RUN: twofour-opt %s --split-input-file --verify-diagnostics

// Every form of a stencil in the route to outer products: one attribute is wrong in each.

// Scatter form: the offsets of the gather form, one weight lost, another order, a zero

func.func @gather(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.scatter_sum' op expected weight 0.0 at offset [-1, 0], got 2.0}}
  %r = "stencil.scatter_sum"(%t) {
    scatter_offsets = [[0, -1], [1, 0]], scatter_weights = array<f64: 1.0, 2.0>,
    offsets = [[0, -1], [1, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @lost(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.scatter_sum' op expected weight 1.0 at offset [0, -1], got 0.0}}
  %r = "stencil.scatter_sum"(%t) {
    scatter_offsets = [[-1, 0]], scatter_weights = array<f64: 2.0>,
    offsets = [[0, -1], [1, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @order(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.scatter_sum' op expected ascending scatter_offsets, got [[0, 1], [-1, 0]]}}
  %r = "stencil.scatter_sum"(%t) {
    scatter_offsets = [[0, 1], [-1, 0]], scatter_weights = array<f64: 1.0, 2.0>,
    offsets = [[0, -1], [1, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @zero(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.scatter_sum' op expected finite scatter_weights that are not zero, got 0.0}}
  %r = "stencil.scatter_sum"(%t) {
    scatter_offsets = [[-1, 0], [0, 1], [5, 5]], scatter_weights = array<f64: 2.0, 1.0, 0.0>,
    offsets = [[0, -1], [1, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @counts(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.scatter_sum' op expected 1 scatter_offsets, got 2}}
  %r = "stencil.scatter_sum"(%t) {
    scatter_offsets = [[-1, 0], [0, 1]], scatter_weights = array<f64: 2.0>,
    offsets = [[0, -1], [1, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

// Lines: reversed weights, another start, a weight twice, a direction that no tile has

func.func @mirrored(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected weight 1.0 at offset [-1, 0], got 2.0}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 1.0, 2.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @shifted(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected weight 0.0 at offset [-2, 0], got 1.0}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [1, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @twice(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected weight 2.0 at offset [0, 0], got 4.0}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}, {direction = [1, 0], start = [0, 0], weights = array<f64: 2.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @direction(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected lines along an axis or a diagonal of the last two axes, got direction [2, 0]}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [2, 0], start = [0, 0], weights = array<f64: 2.0>}, {direction = [1, 0], start = [1, 0], weights = array<f64: 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @backwards(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected lines along an axis or a diagonal of the last two axes, got direction [-1, 0]}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [-1, 0], start = [1, 0], weights = array<f64: 1.0, 2.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @no_lines(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected at least one line, got none}}
  %r = "stencil.line_sum"(%t) {
    lines = [],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @names(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected lines with direction, start, weights, got ['direction', 'start']}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [0, 0]}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @short(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected 2 integers in start, got [0]}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @not_finite(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected finite weights, got array<f64: 0x7FF0000000000000>}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 0x7FF0000000000000>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @rank(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected rank 2 or 3 for coefficient lines, got 1}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1], start = [0], weights = array<f64: 1.0>}],
    option = "parallel", offsets = [[0]], weights = array<f64: 1.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @option(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.line_sum' op expected option as parallel, orthogonal, hybrid, diagonal, got "sideways"}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 1.0>}],
    option = "sideways", offsets = [[0, 0]], weights = array<f64: 1.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

// Blocks: a line in none, tiles of another shape, unroll factors

func.func @forgotten(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.block_sum' op expected each of 2 lines in one block, got [0]}}
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 0, skew = 0, unroll = [1, 2], lines = [0]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0>}, {direction = [1, 0], start = [1, 0], weights = array<f64: 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @row_axis(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.block_sum' op expected row axis 0 and skew 0 for line 0, got 1 and 0}}
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 1, skew = 0, unroll = [1, 2], lines = [0]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @skew(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.block_sum' op expected row axis 0 and skew 0 for line 0, got 0 and 1}}
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 0, skew = 1, unroll = [1, 2], lines = [0]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @planes(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.block_sum' op expected positive unroll factors, 1 for planes in rank 2, got [2, 1]}}
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 0, skew = 0, unroll = [2, 1], lines = [0]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @many(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.block_sum' op expected at most 64 tiles in a block, got [1, 1000000000]}}
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 0, skew = 0, unroll = [1, 1000000000], lines = [0]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @empty(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.block_sum' op expected blocks with lines, got one without}}
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 0, skew = 0, unroll = [1, 2], lines = [0]}, {row_axis = 0, skew = 0, unroll = [1, 2], lines = []}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

// Schedules: rows, shifts, planes and products that do not compute the stencil

func.func @rows(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected weight 2.0 at offset [0, 0], got 0.0}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [-1, 1], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @more_rows(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected line 0 from -1 to 1 for n = 1, got 1}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [1, 1], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @fixed_rows(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a smallest_length of 1, got 8}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 8, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [8, 0], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @fixed(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected line 0 from -1 to 1 for n = 1, got 1}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [8, 0], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @right_for_one_length(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected weight 2.0 at offset [0, 0] of row 1 of tile (0, 0) for n = 2, got 0.0}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [1, 0], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @shift(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected weight 1.0 at offset [-1, 0], got 0.0}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = [[0, 0, 0, 0, 1]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @plane(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected plane 0 in rank 2, got 1}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = [[0, 0, 0, 1, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @product_twice(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected weight 1.0 at offset [-1, 0], got 2.0}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @tile(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a tile of 1 x 1, got (0, 1)}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = [[0, 0, 1, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @no_line(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a line of the block, got 1}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = [[1, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @other_tile(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected weight 1.0 at offset [-1, 0] of row 0 of tile (0, 1) for n = 1, got 0.0}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 2], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @no_products(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected segments with products, got one without}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = []}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @multiple(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected bounds c or n + c, got another multiple of n}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [-1, 2], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @gap(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a segment from 0 on, got n + 0}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 0], products = [[0, 0, 0, 0, 0]]},
        {start = [0, 1], stop = [0, 1], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @long(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a schedule for vectors of at most 1024 elements, got 1000000001}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1000000001, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [1000000000, 0], stop = [-1, 1], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @by(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected by as load or splice, got gather}}
  %r = "stencil.outer_sum"(%t) {
    by = "gather", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @five(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected products of rank 5, got [0, 0, 0]}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = [[0, 0, 0]]}]}],
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

// Transpositions: another row, another column, too few columns, the wrong matrix

func.func @transposed_row(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected weight 1.0 at offset [0, -1], got 0.0}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 1, column = -1, reach = 1, segments = [
        {start = [0, 0], stop = [0, 1], phase = 0, products = [[0, 0, 0]]},
        {start = [0, 1], stop = [1, 1], phase = 1, products = [[0, 0, 0]]}]}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @transposed_column(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected line 0 from -1 to 1 for n = 1, got 1}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 0, column = 0, reach = 1, segments = [
        {start = [0, 0], stop = [0, 1], phase = 0, products = [[0, 0, 0]]},
        {start = [0, 1], stop = [1, 1], phase = 1, products = [[0, 0, 0]]}]}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @reach(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a smallest_length of 1, got 2}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 2, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 0, column = -1, reach = 0, segments = [
        {start = [0, 0], stop = [0, 1], phase = 0, products = [[0, 0, 0]]},
        {start = [0, 1], stop = [1, 1], phase = 1, products = [[0, 0, 0]]}]}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @no_reach(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a transposition from step 0 to n + 0, got 0 to n + 1}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 0, column = -1, reach = 0, segments = [
        {start = [0, 0], stop = [0, 1], phase = 0, products = [[0, 0, 0]]},
        {start = [0, 1], stop = [1, 1], phase = 1, products = [[0, 0, 0]]}]}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @phase(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a column below 1 of matrix 0, got 1 at n = 1}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 0, column = -1, reach = 1, segments = [
        {start = [0, 0], stop = [1, 1], phase = 0, products = [[0, 0, 0]]}]}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @no_segments(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected segments in a transposition, got none}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 0, column = -1, reach = 1, segments = []}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @unused_columns(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a transposition from step 0 to n + 2, got 0 to n + 1}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 2, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 0, column = -1, reach = 2, segments = [
        {start = [0, 0], stop = [1, 1], phase = 0, products = [[0, 0, 0]]}]}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @late(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected a transposition from step 0 to n + 1, got 1 to n + 1}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 0, column = -2, reach = 1, segments = [
        {start = [1, 0], stop = [1, 1], phase = 0, products = [[0, 0, 0]]}]}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @other_phase(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected phase 0 or 1, got 2}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [{plane = 0, row = 0, column = -1, reach = 1, segments = [
        {start = [0, 0], stop = [1, 1], phase = 2, products = [[0, 0, 0]]}]}],
      rows = []}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @line_for_rows(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.outer_sum' op expected direction [1, 0] for line 0, got [0, 1]}}
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, sweeps = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0], transpositions = [],
      rows = [{start = [-1, 0], stop = [0, 1], products = [[0, 0, 0, 0, 0]]}]}],
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}
