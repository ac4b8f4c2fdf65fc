// RUN: twofour-opt %s --split-input-file --verify-diagnostics

// The stencil 1, 2, 3 at offsets -1, 0, 1, by two outputs at a time: one attribute is wrong in each.

// What the operator computes

func.func @wrong_column(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected weight 0.0 at offset (-2,) of row 1, got 2.0}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 2.0, 1.0, 0.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @swapped_columns(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected weight 1.0 at offset (-1,) of row 0, got 2.0}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 2.0, 1.0, 3.0, 0.0>, array<f64: 1.0, 0.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @wrong_input_offset(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected weight 3.0 at offset (1,) of row 1, got 0.0}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [3]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @swapped_input_offsets(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected weight 1.0 at offset (-1,) of row 0, got 2.0}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[0], [-1], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @wrong_weight(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected weight 3.0 at offset (1,) of row 1, got 3.0000000000000004}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0000000000000004>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @lost_term(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected weight 3.0 at offset (1,) of row 0, got 0.0}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 0.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @extra_term(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected weight 0.0 at offset (2,) of row 0, got 1.0}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 1.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @another_stencil(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected weight 4.0 at offset (1,) of row 0, got 3.0}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 4.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// Two columns that read the same input for one row: their sum would not be rounded as one product is.

func.func @shared_offset(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected one column for offset (-1,) of row 0, got 2}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0, 1.0>, array<f64: 0.0, 1.0, 2.0, 3.0, 0.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2], [-1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @infinite_entry(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected finite matrix entries, got infinity or nan in row 1}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0x7FF0000000000000, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// Which outputs it computes

func.func @duplicate_row(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected the output offsets to cover tile (2,), got (0,) in place of (1,)}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 1.0, 2.0, 3.0, 0.0>],
    output_offsets = [[0], [0]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @output_outside_the_tile(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected the output offsets to cover tile (2,), got (2,) in place of (1,)}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [2]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @missing_row(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected 2 rows for tile (2,), got 1}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>],
    output_offsets = [[0]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @too_few_output_offsets(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected 2 output_offsets, got 1}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @too_few_input_offsets(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected 4 input_offsets, got 3}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @tile_of_another_rank(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected a tile of 1 positive extents, got [1, 2]}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1, 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @empty_tile(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected a tile of 1 positive extents, got [0]}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 0>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @tile_of_another_width(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected tile as integers, got array<i32: 2>}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i32: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @output_offsets_of_another_rank(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected output_offsets of rank 1, got [0, 0]}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0, 0], [0, 1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @input_offsets_of_another_rank(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected input_offsets of rank 1, got [-1, 0]}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1, 0], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @matrix_of_integers(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected matrix as rows 'array<f64: ...>'}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<i64: 1, 2, 3, 0>, array<i64: 0, 1, 2, 3>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @ragged_matrix(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected matrix with rows of one length, got lengths [3, 4]}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @no_matrix(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected matrix with rows of one length, got lengths []}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @without_tile(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op attribute "tile" is expected but not provided}}
  %r = "nm.patch_matmul"(%t) {
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// What every linear op checks

func.func @operand_that_is_no_temp(%t: tensor<4xf64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected a !stencil.temp, got tensor<4xf64>}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (tensor<4xf64>) -> tensor<4xf64>
  return
}

// -----

func.func @another_element_type(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected element type f32, got f64}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f32>
  return
}

// -----

func.func @offset_twice(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected distinct offsets, got [[-1], [0], [0]]}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [0]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @infinite_weight(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected finite weights, got inf}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 0x7FF0000000000000, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @reads_outside(%t: !stencil.temp<#stencil.bounds<[0], [9]>, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected the source's bounds to cover [-1,9], got [0,9]}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<#stencil.bounds<[0], [9]>, f64>) -> !stencil.temp<#stencil.bounds<[0], [8]>, f64>
  return
}

// -----

func.func @addend_outside(%t: !stencil.temp<1 : i64, f64>, %a: !stencil.temp<#stencil.bounds<[1], [8]>, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected the addend's bounds to cover [0,8], got [1,8]}}
  %r = "nm.patch_matmul"(%t, %a) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>, !stencil.temp<#stencil.bounds<[1], [8]>, f64>) -> !stencil.temp<#stencil.bounds<[0], [8]>, f64>
  return
}

// -----

// Metadata: each nibble names two columns of its group, the lower one first.

func.func @equal_indices(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected ordered indices in group 1 of row 0, got 0 and 0}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4408>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @unordered_indices(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected ordered indices in group 0 of row 1, got 2 and 1}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4446>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @wrong_index(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected weight 2.0 at offset (0,) of row 0, got 0.0}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4444>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @flipped_bit(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected weight 1.0 at offset (-1,) of row 0, got 0.0}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4449>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// Values

func.func @wrong_value(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected weight 3.0 at offset (1,) of row 0, got 4.0}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @swapped_values(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected weight 1.0 at offset (-1,) of row 0, got 2.0}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 2.0, 1.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @wrong_lookup(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected weight 2.0 at offset (0,) of row 0, got 0.0}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [4], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @too_few_values(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected one metadata word for 8 values, got 2 x 4 values and 2 x 1 words}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @too_many_words(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected one metadata word for 8 values, got 2 x 8 values and 2 x 2 words}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448, 0x4444>, array<i16: 0x4449, 0x4444>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @missing_row_of_words(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected one metadata word for 8 values, got 2 x 8 values and 1 x 1 words}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @columns_that_are_kept_only(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected 16 input_offsets, got 8}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @ragged_values(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected values with rows of one length, got lengths [7, 8]}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @ragged_metadata(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected metadata with rows of one length, got lengths [1, 2]}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449, 0x4444>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @metadata_of_another_width(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected metadata as rows 'array<i16: ...>'}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i32: 0x4448>, array<i32: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @values_of_another_width(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected values as rows 'array<f64: ...>'}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f32: 1.0>, array<f32: 1.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sparse_tile_of_another_extent(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected 3 rows for tile (3,), got 2}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 3>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sparse_duplicate_row(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected the output offsets to cover tile (2,), got (1,) in place of (0,)}}
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>, array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: 0x4449>],
    output_offsets = [[1], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// The product of these extents is 1 in 64 bits.

func.func @tile_that_overflows(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected 55340232221128654849 rows for tile (7, 7905747460161236407), got 1}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 7, 7905747460161236407>,
    matrix = [array<f64: 1.0>],
    output_offsets = [[0, 0]],
    input_offsets = [[0, 0]],
    offsets = [[0, 0]],
    weights = array<f64: 1.0>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

// Columns that cancel are read as well, here far away.

func.func @cancels(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.patch_matmul' op expected one column for offset (1000000000,) of row 0, got 2}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>,
    matrix = [array<f64: 1.0, 1.0, -1.0>],
    output_offsets = [[0]],
    input_offsets = [[0], [1000000000], [1000000000]],
    offsets = [[0]],
    weights = array<f64: 1.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @no_fragment(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected a fragment of 16, 32, ... that divides 16 columns, got 0}}
  %r = "nm.sparse_patch_matmul"(%t) {
    permutation = {fragment = 0 : i64, k_lower_bound = 16 : i64, padding_columns = 15 : i64, proven = true, strategy = "blossom"},
    tile = array<i64: 1>,
    values = [array<f64: 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4444>],
    output_offsets = [[0]],
    input_offsets = [[0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0]],
    offsets = [[0]],
    weights = array<f64: 2.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @odd_fragment(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected a fragment of 16, 32, ... that divides 16 columns, got 32}}
  %r = "nm.sparse_patch_matmul"(%t) {
    permutation = {fragment = 32 : i64, k_lower_bound = 16 : i64, padding_columns = 15 : i64, proven = true, strategy = "blossom"},
    tile = array<i64: 1>,
    values = [array<f64: 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4444>],
    output_offsets = [[0]],
    input_offsets = [[0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0]],
    offsets = [[0]],
    weights = array<f64: 2.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @much_padding(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected padding_columns among 15 columns of zeros, got 16}}
  %r = "nm.sparse_patch_matmul"(%t) {
    permutation = {fragment = 16 : i64, k_lower_bound = 16 : i64, padding_columns = 16 : i64, proven = true, strategy = "blossom"},
    tile = array<i64: 1>,
    values = [array<f64: 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4444>],
    output_offsets = [[0]],
    input_offsets = [[0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0]],
    offsets = [[0]],
    weights = array<f64: 2.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @high_bound(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected a k_lower_bound of at most 16, which it is where it is proven, got 32 and proven = false}}
  %r = "nm.sparse_patch_matmul"(%t) {
    permutation = {fragment = 16 : i64, k_lower_bound = 32 : i64, padding_columns = 15 : i64, proven = false, strategy = "blossom"},
    tile = array<i64: 1>,
    values = [array<f64: 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4444>],
    output_offsets = [[0]],
    input_offsets = [[0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0]],
    offsets = [[0]],
    weights = array<f64: 2.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @not_proven(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'nm.sparse_patch_matmul' op expected a k_lower_bound of at most 16, which it is where it is proven, got 0 and proven = true}}
  %r = "nm.sparse_patch_matmul"(%t) {
    permutation = {fragment = 16 : i64, k_lower_bound = 0 : i64, padding_columns = 15 : i64, proven = true, strategy = "blossom"},
    tile = array<i64: 1>,
    values = [array<f64: 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4444>],
    output_offsets = [[0]],
    input_offsets = [[0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0]],
    offsets = [[0]],
    weights = array<f64: 2.0>
  } : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}
