# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of any name: they are told apart from kernels, whose names are made of theirs."""

import numpy as np
import pytest

from file_cases import random_field
from twofour.cli.main import main
from twofour.dialects.stencil import large_arrays
from twofour.identifiers import identifier
from twofour.options import CompileOptions
from twofour.targets.cpu.build import compile_cpu
from twofour.targets.cpu.executable import CpuExecutable
from twofour.targets.cpu.objects import compile_object
from twofour.targets.cpu.stages import emit

HEAD = """
!field = !stencil.field<[-1,16]x[-1,20]xf32>
!temp = !stencil.temp<?x?xf32>
"""
STEP = """
func.func @NAME(%u: !field, %v: !field) {
  CALL
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %w = arith.constant WEIGHT : f32
    %n = stencil.access %a[-1, 0] : !temp
    %e = stencil.access %a[0, 1] : !temp
    %sum = arith.addf %n, %e : f32
    %new = arith.mulf %sum, %w : f32
    stencil.return %new : f32
  }
  stencil.store %r to %v(<[0, 0], [15, 19]>) : !temp to !field
  return
}
"""
STAGES = [
    ["--emit", "stencil"],
    ["--emit", "llvm"],
    ["--emit", "object"],
    ["--target", "sme"],
    ["--target", "sme", "--emit", "llvm"],
    ["--target", "sm_90"],
    ["--target", "sm_90", "--emit", "gpu"],
    ["--target", "sm_90", "--emit", "ptx"],
]


def step(name: str, weight: float, called: str | None = None) -> str:
    """A function that adds neighbours up, after `called` has done so on the same fields."""
    call = f"func.call @{called}(%v, %u) : (!field, !field) -> ()" if called else ""
    return STEP.replace("NAME", name).replace("WEIGHT", str(weight)).replace("CALL", call)


def stepped(u: np.ndarray, v: np.ndarray, weight: float) -> None:
    v[1:-1, 1:-1] = np.float32(weight) * (u[:-2, 1:-1] + u[1:-1, 2:])


def check(program, weights) -> None:
    """Compare one call with the steps of the function that is called and its caller."""
    fields = [random_field((17, 21), seed).astype(np.float32) for seed in (1, 2)]
    got = program(*fields)
    u, v = fields
    stepped(v, u, weights[0])
    stepped(u, v, weights[1])
    for field, expected in zip(got, (u, v), strict=True):
        np.testing.assert_allclose(field, expected, rtol=1e-6, atol=1e-6)


def test_a_function_named_like_a_kernel_for_large_arrays(tmp_path):
    (tmp_path / "heat.mlir").write_text(HEAD + step("heat_past_caches", 0.25))
    compiled = compile_cpu(str(tmp_path / "heat.mlir"), CompileOptions())
    usual = CpuExecutable(compiled)._linear_kernel(compiled.single).native
    u = random_field((17, 20), 1).astype(np.float32)
    for kernel in (usual, usual.past_caches()):
        out = np.zeros((16, 19), np.float32)
        kernel.bind([u], [out]).run(0, 16)
        np.testing.assert_allclose(out, 0.25 * (u[:-1, :-1] + u[1:, 1:]), rtol=1e-6)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("called", ["heat_past_caches", "f_kernel0", "f_kernel0_past_caches"])
def test_functions_named_like_kernels(monkeypatch, compiled, called, large):
    monkeypatch.setattr(large_arrays, "past_caches", lambda *_: large)
    program = compiled(HEAD + step(called, 0.5) + step("f", 0.25, called), function="f")
    check(program, (0.5, 0.25))


@pytest.mark.parametrize("name", ["heat-2d", "é", "llvm.x", "kernels", "2d"])
def test_names_that_are_no_identifiers(compiled, name):
    text = HEAD + step("g", 0.5) + step(f'"{name}"', 0.25, "g")
    check(compiled(text, function=name), (0.5, 0.25))


def test_names_that_make_one_identifier(compiled):
    text = HEAD + step('"a b"', 0.5) + step('"a-b"', 0.25, '"a b"')
    check(compiled(text, function="a-b"), (0.5, 0.25))


@pytest.mark.parametrize("words", STAGES, ids=" ".join)
@pytest.mark.parametrize("name", ["a b", "llvm.x"])
def test_stages_of_a_name_that_is_no_identifier(tmp_path, name, words):
    (tmp_path / "x.mlir").write_text(HEAD + step(f'"{name}"', 0.25))
    out = tmp_path / "out"
    assert main(["compile", str(tmp_path / "x.mlir"), "-o", str(out), *words]) == 0
    expected = name if words[-1] == "stencil" else f"{identifier(name)}_kernel0"
    assert expected.encode() in out.read_bytes()


def test_functions_in_c_whose_names_make_one_identifier(tmp_path):
    text = HEAD + step('"a b"', 0.5) + step('"a-b"', 0.25, '"a b"')
    (tmp_path / "x.mlir").write_text(text)
    options = CompileOptions(function="a-b")
    found = emit(str(tmp_path / "x.mlir"), options, "llvm")
    for name in ("a_b", "a_b_0", "a_b_kernel0", "a_b_kernel1"):
        assert f"define void @_mlir_ciface_{name}(" in found


@pytest.mark.parametrize("called", ["_mlir_ciface_f", "_mlir-ciface-f"])
def test_a_function_named_as_the_interface_of_another(tmp_path, called):
    text = HEAD + step(f'"{called}"', 0.5) + step("f", 0.25, f'"{called}"')
    (tmp_path / "x.mlir").write_text(text)
    made = compile_object(str(tmp_path / "x.mlir"), CompileOptions(function="f"))
    for name in ("f", "_mlir_ciface_f"):
        assert f"void _mlir_ciface_{name}(" in made.header
