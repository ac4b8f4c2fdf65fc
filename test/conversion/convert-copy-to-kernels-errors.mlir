// RUN: twofour-opt %s --split-input-file --convert-copy-to-kernels --verify-diagnostics

func.func @unranked(%a: memref<*xf32>, %b: memref<*xf32>) {
  // expected-error @+1 {{'memref.copy' op expected memrefs of known rank, got memref<*xf32> to memref<*xf32>}}
  memref.copy %a, %b : memref<*xf32> to memref<*xf32>
  return
}
