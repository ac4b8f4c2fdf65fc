# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of steps for arrays larger than the caches, which are made when they are needed."""

import pytest

from twofour.codegen.cpu.kernel_abi import PAST_CACHES, PAST_CACHES_ATTRIBUTE
from twofour.kernels import built_in_kernels
from twofour.options import CompileOptions
from twofour.targets.cpu.build import compile_cpu

KERNELS = built_in_kernels()
AFFINE = """
func.func @affine(%u: !stencil.field<[0,99]xf64>, %v: !stencil.field<[0,99]xf64>) {
  %t = stencil.load %u : !stencil.field<[0,99]xf64> -> !stencil.temp<[0,99]xf64>
  %r = stencil.apply(%x = %t : !stencil.temp<[0,99]xf64>) -> (!stencil.temp<[1,98]xf64>) {
    %a = stencil.access %x[-1] : !stencil.temp<[0,99]xf64>
    %b = stencil.access %x[1] : !stencil.temp<[0,99]xf64>
    %c = arith.constant 1.5 : f64
    %s = arith.addf %a, %b : f64
    %sum = arith.addf %s, %c : f64
    stencil.return %sum : f64
  }
  stencil.store %r to %v(<[1],[98]>) : !stencil.temp<[1,98]xf64> to !stencil.field<[0,99]xf64>
  return
}
"""


def source_of(name, folder):
    if name in KERNELS:
        return KERNELS[name]
    path = folder / "affine.mlir"
    path.write_text(AFFINE)
    return str(path)


def kernel_functions(module):
    """The text of each kernel of a module for arrays larger than the caches, by its name."""
    return {
        op.sym_name.value: str(op)
        for op in module.body.operations
        if PAST_CACHES_ATTRIBUTE in op.attributes
    }


@pytest.mark.parametrize("reassociate", [False, True])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("name", ["affine", "heat2d_ftcs", "emboss3x3", "heat3d_ftcs"])
def test_they_are_those_of_whole_modules(tmp_path, name, steps, reassociate):
    source = source_of(name, tmp_path)
    options = CompileOptions(fuse_steps=steps, reassociate=reassociate)
    compiled = compile_cpu(source, options)
    assert not kernel_functions(compiled.module)
    found = {}
    for sweep in filter(None, (compiled.single, compiled.fused)):
        if compiled.has_kernel_past_caches(sweep):
            ((kernel, text),) = kernel_functions(compiled.kernel_past_caches(sweep)).items()
            beside = kernel + PAST_CACHES
            found[beside] = text.replace(f"@{kernel}(", f"@{beside}(")
    whole = compile_cpu(source, options, whole=True)
    assert found == kernel_functions(whole.module) != {}


@pytest.mark.parametrize(
    "name, options",
    [
        ("heat2d_ftcs", {"schedule": "sparse"}),
        ("heat2d_ftcs", {"schedule": "outer"}),
        ("gauss7x7_binomial", {}),
        ("heat2d_ftcs", {"dtype": "f16"}),
    ],
)
def test_steps_without_them(name, options):
    compiled = compile_cpu(KERNELS[name], CompileOptions(**options))
    assert not compiled.has_kernel_past_caches(compiled.single)
    whole = compile_cpu(KERNELS[name], CompileOptions(**options), whole=True)
    assert not kernel_functions(whole.module)
