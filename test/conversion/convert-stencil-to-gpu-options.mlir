// RUN: not twofour-opt %s --convert-stencil-to-gpu=march=4 2>&1 | filecheck %s --check-prefix=MARCHES
// RUN: not twofour-opt %s --convert-stencil-to-gpu="rolling=true march=0" 2>&1 | filecheck %s --check-prefix=MARCH
// RUN: not twofour-opt %s --convert-stencil-to-gpu="rolling=true stages=1" 2>&1 | filecheck %s --check-prefix=STAGES
// RUN: not twofour-opt %s --convert-stencil-to-gpu="rolling=true block=4,0" 2>&1 | filecheck %s --check-prefix=BLOCK

// Wrong options are refused whatever there is to lower.

// MARCHES: <pass-pipeline>:1:16: error: expected rolling=true for march, which marches have
// MARCH: <pass-pipeline>:1:16: error: expected a march of 1 to 2147483647, got 0
// STAGES: <pass-pipeline>:1:16: error: expected 2 to 12 stages, got 1
// BLOCK: <pass-pipeline>:1:16: error: expected a block of positive extents, got [4, 0]
module {
}
