// RUN: twofour-opt %s --split-input-file --verify-diagnostics

// Types

// expected-error @+1 {{'func.func' op expected lower and upper bounds of one rank, got [0, 0] and [64] in !stencil.field<#stencil.bounds<[0, 0], [64]>, f64>}}
func.func @bounds_of_two_ranks(%u: !stencil.field<#stencil.bounds<[0, 0], [64]>, f64>) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expected bounds that are not empty, got [3,3] on axis 1 in !stencil.field<#stencil.bounds<[0, 3], [4, 3]>, f64>}}
func.func @empty_bounds(%u: !stencil.field<#stencil.bounds<[0, 3], [4, 3]>, f64>) {
  return
}

// -----

func.func @empty_bounds_of_a_load(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.load' op expected bounds that are not empty, got [3,3] on axis 0}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<#stencil.bounds<[3], [3]>, f64>
  return
}

// -----

func.func @bounds_of_floats(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.load' op expected lower bounds as integers, got [0.000000e+00]}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<#stencil.bounds<[0.0], [3]>, f64>
  return
}

// -----

func.func @rank_zero(%u: !stencil.field<0 : i64, f64>) {
  // expected-error @+1 {{'stencil.load' op expected #stencil.bounds or a positive rank in the type, got 0 : i64}}
  %t = "stencil.load"(%u) : (!stencil.field<0 : i64, f64>) -> !stencil.temp<0 : i64, f64>
  return
}

// -----

func.func @no_bounds(%u: !stencil.field<"x", f64>) {
  // expected-error @+1 {{'stencil.load' op expected #stencil.bounds or a positive rank in the type, got "x"}}
  %t = "stencil.load"(%u) : (!stencil.field<"x", f64>) -> !stencil.temp<"x", f64>
  return
}

// -----

func.func @no_element_type(%u: !stencil.field<1 : i64, 3 : i64>) {
  // expected-error @+1 {{'stencil.load' op expected an element type, got 3 : i64}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, 3 : i64>) -> !stencil.temp<1 : i64, 3 : i64>
  return
}

// -----

func.func @result_without_a_type(%k: f64) {
  // expected-error @+1 {{'stencil.store_result' op expected an element type, got 3 : i64}}
  %s = "stencil.store_result"(%k) : (f64) -> !stencil.result<3 : i64>
  return
}

// -----

// expected-error @+1 {{'func.func' op expected bounds of at most 576460752303423488 points within +-576460752303423488, got [0,1073741824]x[0,1073741824]}}
func.func @too_many_points(%u: !stencil.field<#stencil.bounds<[0, 0], [1073741824, 1073741824]>, f64>) {
  return
}

// -----

// Types of declarations and results are checked too.

// expected-error @+1 {{'func.func' op expected an element type, got "x" in !stencil.field<1 : i64, "x">}}
func.func private @declared() -> !stencil.field<1 : i64, "x">

// -----

// stencil.load

func.func @load_of_another_rank(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.load' op expected rank 1, got rank 2}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @load_of_another_type(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.load' op expected element type f64, got f32}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<1 : i64, f32>
  return
}

// -----

func.func @load_outside(%u: !stencil.field<#stencil.bounds<[0], [64]>, f64>) {
  // expected-error @+1 {{'stencil.load' op expected the field's bounds to cover [-1,64], got [0,64]}}
  %t = "stencil.load"(%u) : (!stencil.field<#stencil.bounds<[0], [64]>, f64>) -> !stencil.temp<#stencil.bounds<[-1], [64]>, f64>
  return
}

// -----

// stencil.store

func.func @store_of_another_rank(%t: !stencil.temp<2 : i64, f64>, %u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.store' op expected rank 1, got rank 2}}
  "stencil.store"(%t, %u) {bounds = #stencil.bounds<[0], [4]>} : (!stencil.temp<2 : i64, f64>, !stencil.field<1 : i64, f64>) -> ()
  return
}

// -----

func.func @store_of_another_type(%t: !stencil.temp<1 : i64, f32>, %u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.store' op expected element type f64, got f32}}
  "stencil.store"(%t, %u) {bounds = #stencil.bounds<[0], [4]>} : (!stencil.temp<1 : i64, f32>, !stencil.field<1 : i64, f64>) -> ()
  return
}

// -----

func.func @store_bounds_of_another_rank(%t: !stencil.temp<1 : i64, f64>, %u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.store' op expected bounds of rank 1, got [0,4]x[0,4]}}
  "stencil.store"(%t, %u) {bounds = #stencil.bounds<[0, 0], [4, 4]>} : (!stencil.temp<1 : i64, f64>, !stencil.field<1 : i64, f64>) -> ()
  return
}

// -----

func.func @store_outside_the_field(%t: !stencil.temp<1 : i64, f64>, %u: !stencil.field<#stencil.bounds<[0], [4]>, f64>) {
  // expected-error @+1 {{'stencil.store' op expected the field's bounds to cover [0,5], got [0,4]}}
  "stencil.store"(%t, %u) {bounds = #stencil.bounds<[0], [5]>} : (!stencil.temp<1 : i64, f64>, !stencil.field<#stencil.bounds<[0], [4]>, f64>) -> ()
  return
}

// -----

func.func @store_outside_the_temp(%t: !stencil.temp<#stencil.bounds<[1], [4]>, f64>, %u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.store' op expected the temp's bounds to cover [0,4], got [1,4]}}
  "stencil.store"(%t, %u) {bounds = #stencil.bounds<[0], [4]>} : (!stencil.temp<#stencil.bounds<[1], [4]>, f64>, !stencil.field<1 : i64, f64>) -> ()
  return
}

// -----

func.func @store_without_bounds(%t: !stencil.temp<1 : i64, f64>, %u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.store' op attribute "bounds" is expected but not provided}}
  "stencil.store"(%t, %u) : (!stencil.temp<1 : i64, f64>, !stencil.field<1 : i64, f64>) -> ()
  return
}

// -----

// stencil.cast

func.func @cast_to_another_rank(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.cast' op expected rank 1, got rank 2}}
  %v = "stencil.cast"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.field<2 : i64, f64>
  return
}

// -----

func.func @cast_to_another_type(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.cast' op expected element type f64, got f16}}
  %v = "stencil.cast"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.field<1 : i64, f16>
  return
}

// -----

func.func @cast_to_other_extents(%u: !stencil.field<#stencil.bounds<[0], [4]>, f64>) {
  // expected-error @+1 {{'stencil.cast' op expected bounds [0,4], got [0,5]}}
  %v = "stencil.cast"(%u) : (!stencil.field<#stencil.bounds<[0], [4]>, f64>) -> !stencil.field<#stencil.bounds<[0], [5]>, f64>
  return
}

// -----

func.func @cast_of_a_temp(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{expected base type 'stencil.field' but got 'stencil.temp'}}
  %v = "stencil.cast"(%t) : (!stencil.temp<1 : i64, f64>) -> !stencil.field<1 : i64, f64>
  return
}

// -----

// stencil.external_load and stencil.external_store

func.func @external_load_of_no_memref(%m: tensor<4xf64>) {
  // expected-error @+1 {{'stencil.external_load' op expected a memref, got tensor<4xf64>}}
  %u = "stencil.external_load"(%m) : (tensor<4xf64>) -> !stencil.field<1 : i64, f64>
  return
}

// -----

func.func @external_load_of_another_rank(%m: memref<4x4xf64>) {
  // expected-error @+1 {{'stencil.external_load' op expected rank 1, got memref<4x4xf64>}}
  %u = "stencil.external_load"(%m) : (memref<4x4xf64>) -> !stencil.field<1 : i64, f64>
  return
}

// -----

func.func @external_load_of_another_type(%m: memref<4xf32>) {
  // expected-error @+1 {{'stencil.external_load' op expected element type f64, got memref<4xf32>}}
  %u = "stencil.external_load"(%m) : (memref<4xf32>) -> !stencil.field<1 : i64, f64>
  return
}

// -----

func.func @external_load_of_other_extents(%m: memref<4xf64>) {
  // expected-error @+1 {{'stencil.external_load' op expected extents (5,), got memref<4xf64>}}
  %u = "stencil.external_load"(%m) : (memref<4xf64>) -> !stencil.field<#stencil.bounds<[-1], [4]>, f64>
  return
}

// -----

func.func @external_store_to_no_memref(%u: !stencil.field<1 : i64, f64>, %m: f64) {
  // expected-error @+1 {{'stencil.external_store' op expected a memref, got f64}}
  "stencil.external_store"(%u, %m) : (!stencil.field<1 : i64, f64>, f64) -> ()
  return
}

// -----

func.func @external_store_to_other_extents(%u: !stencil.field<#stencil.bounds<[-1], [4]>, f64>, %m: memref<4xf64>) {
  // expected-error @+1 {{'stencil.external_store' op expected extents (5,), got memref<4xf64>}}
  "stencil.external_store"(%u, %m) : (!stencil.field<#stencil.bounds<[-1], [4]>, f64>, memref<4xf64>) -> ()
  return
}

// -----

// stencil.buffer

func.func @buffer_of_another_type(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.buffer' op expected element type f64, got f32}}
  %b = "stencil.buffer"(%t) : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f32>
  return
}

// -----

func.func @buffer_outside(%t: !stencil.temp<#stencil.bounds<[0], [4]>, f64>) {
  // expected-error @+1 {{'stencil.buffer' op expected the temp's bounds to cover [0,5], got [0,4]}}
  %b = "stencil.buffer"(%t) : (!stencil.temp<#stencil.bounds<[0], [4]>, f64>) -> !stencil.temp<#stencil.bounds<[0], [5]>, f64>
  return
}

// -----

// stencil.apply

func.func @apply_without_results() {
  // expected-error @+1 {{'stencil.apply' op expected at least one result, got none}}
  "stencil.apply"() ({
    "stencil.return"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @apply_of_two_types(%k: f64) {
  // expected-error @+1 {{expected '!stencil.temp<1 : i64, f64>' but got '!stencil.temp<2 : i64, f64>'}}
  %r, %s = "stencil.apply"() ({
    "stencil.return"(%k, %k) : (f64, f64) -> ()
  }) : () -> (!stencil.temp<1 : i64, f64>, !stencil.temp<2 : i64, f64>)
  return
}

// -----

func.func @apply_without_a_block() {
  // expected-error @+1 {{'stencil.apply' op expected one block, got 0}}
  %r = "stencil.apply"() ({
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @apply_with_two_blocks(%k: f64) {
  // expected-error @+1 {{'stencil.apply' op expected one block, got 2}}
  %r = "stencil.apply"() ({
    cf.br ^next
  ^next:
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @apply_with_block_arguments() {
  // expected-error @+1 {{'stencil.apply' op expected no block arguments (values are captured), got 1}}
  %r = "stencil.apply"() ({
  ^bb0(%k: f64):
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @apply_with_operands(%t: !stencil.temp<1 : i64, f64>, %k: f64) {
  // expected-error @+1 {{expects exactly 0 operands, but got 1}}
  %r = "stencil.apply"(%t) ({
    "stencil.return"(%k) : (f64) -> ()
  }) : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @apply_without_return() {
  // expected-error @+1 {{'stencil.apply' op expected a region that ends with 'stencil.return'}}
  %r = "stencil.apply"() ({
    llvm.unreachable
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// stencil.access

func.func @access_outside_an_apply(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.access' op expected to be inside 'stencil.apply'}}
  %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!stencil.temp<1 : i64, f64>) -> f64
  return
}

// -----

func.func @access_offset_of_another_rank(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected an offset of rank 1, got [0, 1]}}
    %a = "stencil.access"(%t) {offset = array<i64: 0, 1>} : (!stencil.temp<1 : i64, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @access_offset_of_another_width(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected offset as integers, got array<i32: 0>}}
    %a = "stencil.access"(%t) {offset = array<i32: 0>} : (!stencil.temp<1 : i64, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @access_of_another_type(%t: !stencil.temp<1 : i64, f32>, %k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected result type f32, got f64}}
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!stencil.temp<1 : i64, f32>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @access_of_lower_rank(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected a temp of rank 2 or an offset_mapping, got rank 1}}
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!stencil.temp<1 : i64, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @access_by_decreasing_axes(%t: !stencil.temp<2 : i64, f64>) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected 2 strictly increasing axes below 3 in offset_mapping, got [1, 0]}}
    %a = "stencil.access"(%t) {offset = array<i64: 0, 0>, offset_mapping = array<i64: 1, 0>} : (!stencil.temp<2 : i64, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<3 : i64, f64>
  return
}

// -----

func.func @access_by_an_axis_too_many(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected 1 strictly increasing axes below 2 in offset_mapping, got [0, 1]}}
    %a = "stencil.access"(%t) {offset = array<i64: 0>, offset_mapping = array<i64: 0, 1>} : (!stencil.temp<1 : i64, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @access_by_an_unknown_axis(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected 1 strictly increasing axes below 2 in offset_mapping, got [2]}}
    %a = "stencil.access"(%t) {offset = array<i64: 0>, offset_mapping = array<i64: 2>} : (!stencil.temp<1 : i64, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @access_by_no_axes(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected offset_mapping as integers, got "x"}}
    %a = "stencil.access"(%t) {offset = array<i64: 0>, offset_mapping = "x"} : (!stencil.temp<1 : i64, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @access_too_far(%t: !stencil.temp<#stencil.bounds<[0, 0], [4, 4]>, f64>) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected the temp's bounds to cover [0,4]x[-1,3], got [0,4]x[0,4]}}
    %a = "stencil.access"(%t) {offset = array<i64: 0, -1>} : (!stencil.temp<#stencil.bounds<[0, 0], [4, 4]>, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<#stencil.bounds<[0, 0], [4, 4]>, f64>
  return
}

// -----

func.func @access_too_far_in_lower_rank(%t: !stencil.temp<#stencil.bounds<[0], [4]>, f64>) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected the temp's bounds to cover [1,5], got [0,4]}}
    %a = "stencil.access"(%t) {offset = array<i64: 1>, offset_mapping = array<i64: 1>} : (!stencil.temp<#stencil.bounds<[0], [4]>, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<#stencil.bounds<[0, 0], [9, 4]>, f64>
  return
}

// -----

// stencil.index

func.func @index_outside_an_apply() {
  // expected-error @+1 {{'stencil.index' op expected to be inside 'stencil.apply'}}
  %i = "stencil.index"() {dim = 0 : i64, offset = array<i64: 0>} : () -> index
  return
}

// -----

func.func @index_of_another_rank(%k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.index' op expected an offset of rank 2, got [0]}}
    %i = "stencil.index"() {dim = 0 : i64, offset = array<i64: 0>} : () -> index
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @index_of_an_unknown_axis(%k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.index' op expected a dim below 1, got 1}}
    %i = "stencil.index"() {dim = 1 : i64, offset = array<i64: 0>} : () -> index
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @index_of_a_negative_axis(%k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.index' op expected a dim below 1, got -1}}
    %i = "stencil.index"() {dim = -1 : i64, offset = array<i64: 0>} : () -> index
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// stencil.store_result

func.func @store_result_of_another_type(%k: f64) {
  // expected-error @+1 {{'stencil.store_result' op expected a value of type f32, got f64}}
  %s = "stencil.store_result"(%k) : (f64) -> !stencil.result<f32>
  return
}

// -----

// stencil.return

func.func @return_outside_an_apply(%k: f64) {
  // expected-error @+1 {{'stencil.return' op expected to end the region of 'stencil.apply'}}
  "stencil.return"(%k) : (f64) -> ()
}

// -----

func.func @return_of_too_few(%k: f64) {
  %r, %s = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.return' op expected 2 values, got 1}}
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> (!stencil.temp<1 : i64, f64>, !stencil.temp<1 : i64, f64>)
  return
}

// -----

func.func @return_of_another_type(%k: f32) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.return' op expected a value of type f64, got f32}}
    "stencil.return"(%k) : (f32) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @return_of_another_result_type(%k: f32) {
  %r = "stencil.apply"() ({
    %s = "stencil.store_result"(%k) : (f32) -> !stencil.result<f32>
    // expected-error @+1 {{'stencil.return' op expected a value of type f64, got f32}}
    "stencil.return"(%s) : (!stencil.result<f32>) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// stencil.weighted_sum

func.func @sum_to_another_rank(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected rank 2, got rank 1}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0, 0]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @sum_to_another_type(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected element type f32, got f64}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f32>
  return
}

// -----

func.func @sum_of_integers(%t: !stencil.temp<1 : i64, i32>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected a float element type, got i32}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, i32>) -> !stencil.temp<1 : i64, i32>
  return
}

// -----

func.func @sum_with_offsets_of_another_rank(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected offsets of rank 1, got [0, 0]}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0, 0]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_with_offsets_that_are_no_rows(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected offsets as integers, got 0 : i64}}
  %r = "stencil.weighted_sum"(%t) {offsets = [0], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_with_offsets_of_floats(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected offsets as integers, got [5.000000e-01]}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0.5]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_without_terms(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected at least one weight that is not zero, got none}}
  %r = "stencil.weighted_sum"(%t) {offsets = [], weights = array<f64>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_with_too_many_offsets(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected 1 offsets, got 2}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0], [1]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_with_an_offset_twice(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected distinct offsets, got [[1], [1]]}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[1], [1]], weights = array<f64: 1.0, 2.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_with_weights_of_another_type(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected weights as 'array<f64: ...>', got array<f32: 1.000000e+00>}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[1]], weights = array<f32: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_with_nan(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected finite weights, got nan}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[1]], weights = array<f64: 0x7FF8000000000000>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_with_a_weight_that_f32_rounds(%t: !stencil.temp<1 : i64, f16>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected weights representable in float32, got 0.1}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[1]], weights = array<f64: 0.1>} : (!stencil.temp<1 : i64, f16>) -> !stencil.temp<1 : i64, f16>
  return
}

// -----

func.func @sum_with_a_constant_that_f32_rounds(%t: !stencil.temp<1 : i64, f32>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected weights representable in float32, got 0.1}}
  %r = "stencil.weighted_sum"(%t) {constant = 0.1 : f64, offsets = [[1]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f32>) -> !stencil.temp<1 : i64, f32>
  return
}

// -----

func.func @sum_with_an_integer_constant(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected a float constant, got 1 : i64}}
  %r = "stencil.weighted_sum"(%t) {constant = 1, offsets = [[1]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_that_reads_outside(%t: !stencil.temp<#stencil.bounds<[0], [5]>, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected the source's bounds to cover [-1,5], got [0,5]}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 1.0, 1.0>} : (!stencil.temp<#stencil.bounds<[0], [5]>, f64>) -> !stencil.temp<#stencil.bounds<[0], [4]>, f64>
  return
}

// -----

func.func @sum_with_an_addend_of_another_type(%t: !stencil.temp<1 : i64, f64>, %a: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected rank 1, got rank 2}}
  %r = "stencil.weighted_sum"(%t, %a) {offsets = [[1]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>, !stencil.temp<2 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_with_an_addend_outside(%t: !stencil.temp<1 : i64, f64>, %a: !stencil.temp<#stencil.bounds<[0], [3]>, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected the addend's bounds to cover [0,4], got [0,3]}}
  %r = "stencil.weighted_sum"(%t, %a) {offsets = [[1]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>, !stencil.temp<#stencil.bounds<[0], [3]>, f64>) -> !stencil.temp<#stencil.bounds<[0], [4]>, f64>
  return
}

// -----

func.func @sum_with_an_offset_of_many_bits(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected offsets of 64 bits, got 9223372036854775808}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[9223372036854775808 : i128]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @sum_with_offsets_of_text(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{expected base attribute 'builtin.array' but got 'builtin.string'}}
  %r = "stencil.weighted_sum"(%t) {offsets = "x", weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// Ops inside an apply without results are reported before the apply itself.

func.func @access_in_an_apply_without_results(%t: !stencil.temp<1 : i64, f64>) {
  "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected an apply with results around it}}
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!stencil.temp<1 : i64, f64>) -> f64
    "stencil.return"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Ops on whole grids do not stand in the region of an apply, which computes one point.

func.func @load_in_an_apply(%u: !stencil.field<1 : i64, f64>, %k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.load' op expected to be outside of 'stencil.apply'}}
    %x = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @store_in_an_apply(%u: !stencil.field<1 : i64, f64>, %t: !stencil.temp<1 : i64, f64>, %k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.store' op expected to be outside of 'stencil.apply'}}
    "stencil.store"(%t, %u) {bounds = #stencil.bounds<[0], [4]>} : (!stencil.temp<1 : i64, f64>, !stencil.field<1 : i64, f64>) -> ()
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @cast_in_an_apply(%u: !stencil.field<1 : i64, f64>, %k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.cast' op expected to be outside of 'stencil.apply'}}
    %x = "stencil.cast"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.field<1 : i64, f64>
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @external_load_in_an_apply(%m: memref<4xf64>, %k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.external_load' op expected to be outside of 'stencil.apply'}}
    %x = "stencil.external_load"(%m) : (memref<4xf64>) -> !stencil.field<1 : i64, f64>
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @external_store_in_an_apply(%u: !stencil.field<1 : i64, f64>, %m: memref<4xf64>, %k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.external_store' op expected to be outside of 'stencil.apply'}}
    "stencil.external_store"(%u, %m) : (!stencil.field<1 : i64, f64>, memref<4xf64>) -> ()
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @buffer_in_an_apply(%t: !stencil.temp<1 : i64, f64>, %k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.buffer' op expected to be outside of 'stencil.apply'}}
    %x = "stencil.buffer"(%t) : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @weighted_sum_in_an_apply(%t: !stencil.temp<1 : i64, f64>, %k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.weighted_sum' op expected to be outside of 'stencil.apply'}}
    %x = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @apply_in_an_apply(%t: !stencil.temp<1 : i64, f64>, %k: f64) {
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.apply' op expected to be outside of 'stencil.apply'}}
    %x = "stencil.apply"() ({
      "stencil.return"(%k) : (f64) -> ()
    }) : () -> !stencil.temp<1 : i64, f64>
    "stencil.return"(%k) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// An op that the dialect does not have.

func.func @unknown_op() {
  // expected-error @+1 {{unregistered operation 'stencil.frobnicate' found in dialect ('stencil') that does not allow unknown operations}}
  "stencil.frobnicate"() : () -> ()
  return
}
