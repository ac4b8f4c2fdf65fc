func.func @next(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{expected rank 1, got rank 2}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @below(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @below {{'stencil.load' op expected rank 1, got rank 2}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @above(%u: !stencil.field<1 : i64, f64>) {
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  // expected-error @above {{'stencil.load' op expected rank 1, got rank 2}}
  return
}

// -----

func.func @same_line(%u: !stencil.field<1 : i64, f64>) {
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<2 : i64, f64> // expected-error {{got rank 2}}
  return
}

// -----

func.func @regular_expression(%u: !stencil.field<1 : i64, f64>) {
  // expected-error-re @+1 {{expected rank {{[0-9]+}}, got rank {{[0-9]+}}}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

// A part that does not parse.

func.func @syntax() {
  // expected-error @+1 {{expected operation name in quotes}}
  return 1
}
