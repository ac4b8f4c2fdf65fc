// Errors of the command line and of pipelines: one located line, exit status 1, no traceback.

// RUN: not twofour-opt %S/Inputs/sum.mlir --nm-crsh 2>&1 | filecheck %s --check-prefix=PASS
// PASS: <pass-pipeline>:1:16: error: 'nm-crsh' does not refer to a registered pass or pass pipeline; did you mean 'nm-crush'?
// PASS-NOT: {{.}}

// RUN: not twofour-opt %S/Inputs/sum.mlir --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush{tiles=4})' 2>&1 | filecheck %s --check-prefix=OPTION
// OPTION: <pass-pipeline>:1:38: error: pass 'nm-crush' has no option 'tiles'; did you mean 'tile'?
// OPTION-NOT: {{.}}

// RUN: not twofour-opt %S/Inputs/sum.mlir --nm-crush=tile=four 2>&1 | filecheck %s --check-prefix=VALUE
// VALUE: <pass-pipeline>:1:16: error: expected a list of int for option 'tile' of 'nm-crush', got 'four'

// RUN: not twofour-opt %S/Inputs/sum.mlir --nm-crush=tile=4,9223372036854775808 2>&1 | filecheck %s --check-prefix=LARGE
// LARGE: <pass-pipeline>:1:16: error: expected a list of int for option 'tile' of 'nm-crush', got '4,9223372036854775808'

// RUN: not twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-vector=tile=1000,1000 2>&1 | filecheck %s --check-prefix=TILE
// TILE: <pass-pipeline>:1:16: error: expected a tile of at most 512 vectors, got [1000, 1000]

// RUN: not twofour-opt %S/Inputs/sum.mlir --nm-crush=tile 2>&1 | filecheck %s --check-prefix=NO-VALUE
// NO-VALUE: <pass-pipeline>:1:16: error: expected 'tile=VALUE' in the options of pass 'nm-crush'

// RUN: not twofour-opt %S/Inputs/sum.mlir --stencil-fuse-steps=steps=0 2>&1 | filecheck %s --check-prefix=STEPS
// STEPS: <pass-pipeline>:1:16: error: expected a positive number of steps, got 0

// RUN: not twofour-opt %S/Inputs/sum.mlir --nm-compress=level=9 2>&1 | filecheck %s --check-prefix=NO-OPTIONS
// NO-OPTIONS: <pass-pipeline>:1:16: error: pass 'nm-compress' has no option 'level'

// RUN: not twofour-opt %S/Inputs/sum.mlir --canonicalize=nonsense=1 2>&1 | filecheck %s --check-prefix=UPSTREAM-OPTION
// UPSTREAM-OPTION: <pass-pipeline>:1:16: error: {{.*}}no such option nonsense

// RUN: not twofour-opt %S/Inputs/sum.mlir --pass-pipeline='builtin.module(func.func(nm-crush))' 2>&1 | filecheck %s --check-prefix=NESTED
// NESTED: <pass-pipeline>:1:16: error: pass 'nm-crush' runs on the module, not inside 'func.func(nm-crush)'

// RUN: not twofour-opt %S/Inputs/sum.mlir --pass-pipeline='builtin.module(cse' 2>&1 | filecheck %s --check-prefix=BRACKET
// BRACKET: <pass-pipeline>:1:{{[0-9]+}}: error: expected ')' at the end of 'builtin.module(cse'

// RUN: not twofour-opt %S/Inputs/sum.mlir --pass-pipeline='builtin.module(nm-crush{tile=4)' 2>&1 | filecheck %s --check-prefix=BRACE
// BRACE: <pass-pipeline>:1:{{[0-9]+}}: error: {{(expected|unexpected) '[})]'.*}}

// RUN: not twofour-opt %S/Inputs/sum.mlir --pass-pipeline='builtin.module(cse)' --cse 2>&1 | filecheck %s --check-prefix=BOTH
// BOTH: <command-line>:1:{{[0-9]+}}: error: expected --pass-pipeline or single passes, got both

// RUN: not twofour-opt %S/Inputs/nowhere.mlir 2>&1 | filecheck %s --check-prefix=MISSING
// MISSING: nowhere.mlir:1:1: error: cannot read the file: no such file or directory
// MISSING-NOT: {{.}}

// RUN: not twofour-opt %S/Inputs 2>&1 | filecheck %s --check-prefix=DIRECTORY
// DIRECTORY: Inputs:1:1: error: cannot read the file: is a directory

// RUN: not twofour-opt %S/Inputs/sum.mlir -o %t.d/nowhere/x.mlir 2>&1 | filecheck %s --check-prefix=OUTPUT
// OUTPUT: x.mlir:1:1: error: cannot write the file: no directory

// RUN: not twofour-opt %S/Inputs/sum.mlir %S/Inputs/sum.mlir 2>&1 | filecheck %s --check-prefix=TWO-FILES
// TWO-FILES: <command-line>:1:{{[0-9]+}}: error: unrecognized arguments: {{.*}}sum.mlir
