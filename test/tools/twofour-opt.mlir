// The ways to name passes: a pipeline, single passes in their order, with options, upstream's too.

// RUN: twofour-opt %S/Inputs/sum.mlir | filecheck %s --check-prefix=NONE
// RUN: twofour-opt %S/Inputs/sum.mlir --pass-pipeline='builtin.module()' | filecheck %s --check-prefix=NONE
// RUN: twofour-opt %S/Inputs/sum.mlir --pass-pipeline='builtin.module(convert-stencil-to-nm, nm-crush{tile=2})' | filecheck %s --check-prefix=CRUSH
// RUN: twofour-opt --pass-pipeline convert-stencil-to-nm,nm-crush{tile=2} %S/Inputs/sum.mlir | filecheck %s --check-prefix=CRUSH
// RUN: twofour-opt %S/Inputs/sum.mlir --pass-pipeline='convert-stencil-to-nm,nm-crush{tile=2}' | filecheck %s --check-prefix=CRUSH
// RUN: twofour-opt %S/Inputs/sum.mlir --pass-pipeline='any(convert-stencil-to-nm,nm-crush{tile=2})' | filecheck %s --check-prefix=CRUSH
// RUN: twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --nm-crush=tile=2 | filecheck %s --check-prefix=CRUSH
// RUN: twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --nm-crush="tile=2" | filecheck %s --check-prefix=CRUSH
// RUN: twofour-opt --convert-stencil-to-nm --nm-crush='{tile=2}' %S/Inputs/sum.mlir | filecheck %s --check-prefix=CRUSH
// RUN: twofour-opt --convert-stencil-to-nm --nm-crush=tile=2 < %S/Inputs/sum.mlir | filecheck %s --check-prefix=CRUSH
// RUN: twofour-opt --convert-stencil-to-nm --nm-crush=tile=2 - < %S/Inputs/sum.mlir | filecheck %s --check-prefix=CRUSH
// RUN: twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --nm-crush=tile=2 --nm-permute-2to4="strategy=blossom fragment=16" | filecheck %s --check-prefix=BLOSSOM

// NONE: "stencil.weighted_sum"
// NONE-NOT: nm.
// CRUSH: "nm.patch_matmul"
// CRUSH-SAME: tile = array<i64: 2>
// BLOSSOM: strategy = "blossom"

// Upstream's passes run among the project's own, on the module or on functions. The unused sum
// goes with the first of them.

// RUN: twofour-opt %S/Inputs/sum.mlir --canonicalize --convert-stencil-to-nm | filecheck %s --check-prefix=UPSTREAM
// RUN: twofour-opt %S/Inputs/sum.mlir --pass-pipeline='builtin.module(convert-stencil-to-nm,func.func(cse,canonicalize{test-convergence=true max-iterations=3}),nm-crush)' | filecheck %s --check-prefix=UPSTREAM
// RUN: twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --canonicalize="max-iterations=2" | filecheck %s --check-prefix=UPSTREAM

// RUN: twofour-opt --canonicalize=max-iterations=3 --canonicalize %S/Inputs/sum.mlir --convert-stencil-to-nm | filecheck %s --check-prefix=UPSTREAM
// RUN: twofour-opt --canonicalize --canonicalize=max-iterations=3 %S/Inputs/sum.mlir --convert-stencil-to-nm | filecheck %s --check-prefix=UPSTREAM
// RUN: twofour-opt --canonicalize --verify-each --cse %S/Inputs/sum.mlir | filecheck %s --check-prefix=UPSTREAM
// RUN: twofour-opt -verify-each -canonicalize -allow-unregistered-dialect -split-input-file %S/Inputs/sum.mlir | filecheck %s --check-prefix=UPSTREAM
// RUN: twofour-opt -pass-pipeline='builtin.module(canonicalize)' -verify-each=false %S/Inputs/sum.mlir | filecheck %s --check-prefix=UPSTREAM
// RUN: twofour-opt -canonicalize --canonicalize='{max-iterations=3}' -- %S/Inputs/sum.mlir | filecheck %s --check-prefix=UPSTREAM

// UPSTREAM-LABEL: func.func @sum(
// UPSTREAM-NEXT: return

// -o writes a file, and nothing else.

// RUN: rm -f %t && twofour-opt %S/Inputs/sum.mlir --convert-stencil-to-nm --nm-crush=tile=2 -o %t | filecheck %s --check-prefix=NOTHING --allow-empty
// RUN: filecheck %s --check-prefix=CRUSH < %t
// RUN: twofour-opt --convert-stencil-to-nm -o %t --nm-crush=tile=2 %S/Inputs/sum.mlir && filecheck %s --check-prefix=CRUSH < %t
// RUN: cd %S && twofour-opt --convert-stencil-to-nm -o%t --nm-crush=tile=2 Inputs/sum.mlir && filecheck %s --check-prefix=CRUSH < %t
// RUN: twofour-opt %S/Inputs/sum.mlir -o - | filecheck %s --check-prefix=NONE
// NOTHING-NOT: {{.}}

// An error leaves the file as it was.

// RUN: not twofour-opt %S/Inputs/sum.mlir --nm-crush=tile=0 --convert-stencil-to-nm --nm-compress -o %t
// RUN: filecheck %s --check-prefix=CRUSH < %t

// --list-passes names every pass of the project with the first line of its description, and its
// options as they are spelled.

// RUN: twofour-opt --list-passes | filecheck %s --check-prefix=LIST
// LIST: {{^}}stencil-infer-bounds {{ +}}Give bounds to temps of unknown bounds, from the stores backwards.
// LIST-NEXT: {{^}}    shrink=true|false (default false){{$}}
// LIST-DAG: {{^}}stencil-extract-weights {{ +}}{{.+}}
// LIST-DAG: {{^}}stencil-fuse-steps {{ +}}{{.+}}
// LIST-DAG: {{^}}stencil-convert-element-type {{ +}}{{.+}}
// LIST-DAG: {{^}}convert-stencil-to-nm {{ +}}{{.+}}
// LIST-DAG: {{^}}nm-crush {{ +}}{{.+}}
// LIST: {{^}}    tile=N,N,...{{$}}
// LIST-DAG: {{^}}nm-permute-2to4 {{ +}}{{.+}}
// LIST-DAG: {{^}}nm-compress {{ +}}{{.+}}
// LIST-DAG: {{^}}convert-nm-to-vector {{ +}}{{.+}}
// LIST-DAG: {{^}}convert-stencil-to-vector {{ +}}{{.+}}
// LIST-DAG: {{^}}convert-stencil-apply-to-vector {{ +}}{{.+}}
// LIST-DAG: {{^}}convert-stencil-to-loops {{ +}}{{.+}}
// LIST-DAG: {{^}}stencil-bufferize {{ +}}{{.+}}
// LIST-DAG: {{^}}convert-copy-to-gpu {{ +}}{{.+}}
