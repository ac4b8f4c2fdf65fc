// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-convert-element-type=to=f16

// A constant that the new type cannot hold: it would become infinite.

func.func @constant(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{'arith.constant' op expected a constant in the range of f16, got 100000.0}}
  %c = arith.constant 1.0e5 : f64
  return
}

// -----

// Weights are numbers of f32, which holds this one.

func.func @weight(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0e5>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// And this one not.

func.func @large_weight(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.weighted_sum' op expected finite weights, got inf}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0e39>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// Infinity stays infinity.

func.func @infinity(%u: !stencil.field<1 : i64, f64>) {
  %c = arith.constant 0x7FF0000000000000 : f64
  return
}

// -----

// Scatter sums and what becomes of them leave out weights of zero: none may vanish.

func.func @scattered(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.scatter_sum' op expected element types to be converted before stencil-to-scatter}}
  %r = "stencil.scatter_sum"(%t) {
    scatter_offsets = [[0, 1]], scatter_weights = array<f64: 0.5>, offsets = [[0, -1]], weights = array<f64: 0.5>
  } : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}
