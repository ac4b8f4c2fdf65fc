// RUN: twofour-opt %S/Inputs/sum.mlir --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC
// GENERIC: "func.func"() <{
// GENERIC: "func.return"() : () -> ()

// RUN: twofour-opt %S/Inputs/sum.mlir --mlir-print-debuginfo | filecheck %s --check-prefix=LOCATIONS
// LOCATIONS: "stencil.weighted_sum"(%{{.*}} loc(#{{.*}})
// LOCATIONS: loc("{{.*}}/Inputs/sum.mlir":2:8)

// The IR goes to standard error, after each pass, with the options that the pass ran with.

// RUN: twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --canonicalize --nm-crush=tile=2 --mlir-print-ir-after-all -o %t 2>&1 | filecheck %s --check-prefix=AFTER
// AFTER: IR Dump After {{.*}}convert-stencil-to-nm
// AFTER: "nm.patch_matmul"
// AFTER: IR Dump After {{.*}}canonicalize
// AFTER: IR Dump After {{.*}}nm-crush{tile=2}

// RUN: twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --nm-crush=tile=2 --mlir-print-ir-before-all -o %t 2>&1 | filecheck %s --check-prefix=BEFORE
// BEFORE: IR Dump Before {{.*}}convert-stencil-to-nm
// BEFORE: "stencil.weighted_sum"
// BEFORE: IR Dump Before {{.*}}nm-crush{tile=2}
// BEFORE: "nm.patch_matmul"

// With --mlir-print-ir-after-change, passes that change nothing stay silent.

// RUN: twofour-opt %S/Inputs/sum.mlir --nm-compress --convert-stencil-to-nm --mlir-print-ir-after-all --mlir-print-ir-after-change -o %t 2>&1 | filecheck %s --check-prefix=CHANGE
// CHANGE-NOT: nm-compress
// CHANGE: IR Dump After {{.*}}convert-stencil-to-nm

// After a failure: the IR that the failing pass left.

// RUN: not twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --nm-compress --mlir-print-ir-after-failure 2>&1 | filecheck %s --check-prefix=FAILURE
// FAILURE: IR Dump After {{.*}}nm-compress
// FAILURE: 'nm.patch_matmul' op expected a multiple of 16 columns, got 2

// RUN: twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --canonicalize --mlir-timing -o %t 2>&1 | filecheck %s --check-prefix=TIMING
// TIMING: Execution time report
// TIMING: {{ConvertStencilToNm|convert-stencil-to-nm}}
// TIMING: Canonicalizer
