// A failing pipeline prints the exact command that shows the failure again: run it.

// RUN: not twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --nm-crush="tile=2,2" 2>&1 | filecheck %s
// RUN: not twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --nm-crush="tile=2,2" 2>&1 | sed -n 's/^note: to reproduce: //p' > %t.sh
// RUN: not sh %t.sh 2>&1 | filecheck %s

// CHECK: sum.mlir:2:8: error: 'nm.patch_matmul' op expected a tile of 1 positive extents, got [2, 2]
// CHECK-NEXT: note: to reproduce: twofour-opt {{.*}}sum.mlir --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-crush{tile=2,2})'
// CHECK-NOT: {{.}}

// What the command line asked for besides passes belongs to it.

// RUN: not twofour-opt %S/Inputs/sum.mlir --allow-unregistered-dialect --verify-each=false --split-input-file --convert-stencil-to-nm --nm-compress 2>&1 | filecheck %s --check-prefix=FLAGS
// FLAGS: note: to reproduce: twofour-opt {{.*}}sum.mlir --split-input-file --allow-unregistered-dialect --verify-each=false --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-compress)'
// FLAGS-NOT: {{.}}

// A file name with a space is quoted.

// RUN: mkdir -p "%t dir" && cp %S/Inputs/sum.mlir "%t dir/a sum.mlir"
// RUN: not twofour-opt "%t dir/a sum.mlir" --convert-stencil-to-nm --nm-compress 2>&1 | sed -n 's/^note: to reproduce: //p' > %t.sh
// RUN: not sh %t.sh 2>&1 | filecheck %s --check-prefix=QUOTED
// QUOTED: a sum.mlir:2:8: error: 'nm.patch_matmul' op expected a multiple of 16 columns, got 2

// Errors of reading the file have no pipeline to blame.

// RUN: not twofour-opt %s --convert-stencil-to-nm 2>&1 | filecheck %s --check-prefix=PARSE
// PARSE: twofour-opt-reproducer.mlir:[[LINE:.*]]: error: unregistered operation 'stencil.frobnicate'
// PARSE-NOT: note

"stencil.frobnicate"() : () -> ()
