// RUN: twofour-opt %S/Inputs/outer_sum.mlir --stencil-reorganize=by=splice | filecheck %s --check-prefix=SPLICE
// RUN: twofour-opt %S/Inputs/outer_sum.mlir --stencil-reorganize=by=splice --stencil-reorganize=by=load | filecheck %s --check-prefix=LOAD
// RUN: twofour-opt %S/Inputs/outer_sum.mlir --stencil-reorganize | filecheck %s --check-prefix=LOAD
// RUN: not twofour-opt %S/Inputs/outer_sum.mlir --stencil-reorganize=by=gather 2>&1 | filecheck %s --check-prefix=OTHER

// A splice takes two neighbouring vectors, so a vector has to span the shifts -1 to 1. The products
// stay as they are.

// SPLICE-LABEL: func.func @three_shifts(
// SPLICE: by = "splice"
// SPLICE-SAME: smallest_length = 2 : i64
// SPLICE-SAME: products = {{\[\[}}2, 0, 0, 0, -1], [2, 0, 1, 0, -1], [1, 0, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 1, 0, 1]]

// LOAD-LABEL: func.func @three_shifts(
// LOAD: by = "load"
// LOAD-SAME: smallest_length = 1 : i64

// OTHER: error: expected one of load, splice for option 'by' of 'stencil-reorganize', got 'gather'
