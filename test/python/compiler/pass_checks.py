# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every pass takes part in: programs, and checks of their results by explicit sums."""

import sys
from pathlib import Path

import numpy as np
import pytest

import twofour
from twofour.analysis import load_program, run_passes
from twofour.dialects.stencil.transforms import (
    time_tile,
)
from twofour.dialects.stencil.transforms.extract_weights import ExtractWeightsPass
from twofour.dialects.stencil.transforms.infer_bounds import InferBoundsPass
from twofour.dialects.stencil.transforms.to_nm import ConvertStencilToNmPass
from twofour.options import CompileOptions
from twofour.targets.cpu.build import compile_module
from twofour.targets.sme.build import compile_sme
from twofour.targets.sme.options import SmeOptions

LINEAR = """
!field = !stencil.field<[-1,20]x[-1,39]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @step(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %half = arith.constant 0.5 : f64
    %quarter = arith.constant 0.25 : f64
    %eighth = arith.constant 0.125 : f64
    %n = stencil.access %a[-1, 0] : !temp
    %c = stencil.access %a[0, 0] : !temp
    %e = stencil.access %a[0, 2] : !temp
    %s = stencil.access %a[1, -1] : !temp
    %0 = arith.mulf %c, %half : f64
    %1 = math.fma %e, %quarter, %0 : f64
    %2 = math.fma %s, %eighth, %1 : f64
    %3 = arith.subf %2, %n : f64
    %4 = arith.addf %3, %half : f64
    stencil.return %4 : f64
  }
  stencil.store %r to %v(<[0, 0], [19, 37]>) : !temp to !field
  return
}
"""

# Not a weighted sum.
GENERAL = """
!field = !stencil.field<[-1,33]xf64>
!temp = !stencil.temp<?xf64>
func.func @product(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[-1] : !temp
    %h = stencil.access %a[1] : !temp
    %p = arith.mulf %l, %h : f64
    stencil.return %p : f64
  }
  stencil.store %r to %v(<[0], [32]>) : !temp to !field
  return
}
"""


# Two sums of one field.
SIBLINGS = """
!field = !stencil.field<[-1,33]xf64>
!temp = !stencil.temp<?xf64>
func.func @both(%u : !field, %v : !field, %w : !field) {
  %t = stencil.load %u : !field -> !temp
  %p, %q = stencil.apply(%a = %t : !temp) -> (!temp, !temp) {
    %l = stencil.access %a[-1] : !temp
    %h = stencil.access %a[1] : !temp
    %sum = arith.addf %l, %h : f64
    %difference = arith.subf %h, %l : f64
    stencil.return %sum, %difference : f64, f64
  }
  stencil.store %p to %v(<[0], [32]>) : !temp to !field
  stencil.store %q to %w(<[0], [32]>) : !temp to !field
  return
}
"""


def linear_step(u: np.ndarray) -> np.ndarray:
    """One step of LINEAR; the halo keeps its values."""
    v = u.copy()
    v[1:20, 1:38] = (
        -u[:19, 1:38] + 0.5 * u[1:20, 1:38] + 0.25 * u[1:20, 3:40] + 0.125 * u[2:21, :37] + 0.5
    )
    return v


def check_linear(path, steps: int = 1, tolerance: float = 1e-13, **options) -> None:
    path.write_text(LINEAR)
    step = twofour.compile(str(path), **options)
    dtype = np.float32 if options.get("dtype") == "f32" else np.float64
    u = np.random.default_rng(0).random((21, 40)).astype(dtype)
    expected = u.astype(np.float64)
    for _ in range(steps):
        expected = linear_step(expected)
    got = step(u, steps=steps)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def check_direct(path) -> None:
    check_linear(path, schedule="direct")


def check_sparse(path) -> None:
    check_linear(path, schedule="sparse")


def check_operator(path) -> None:
    """A file whose sum is written as a patch operator."""
    path.write_text(LINEAR)
    module, filename = load_program(str(path), CompileOptions())
    run_passes(
        module, [InferBoundsPass(), ExtractWeightsPass(), ConvertStencilToNmPass()], filename
    )
    path.write_text(str(module))
    u = np.random.default_rng(0).random((21, 40))
    got = twofour.compile(path)(u)
    np.testing.assert_allclose(got[1:20, 1:38], linear_step(u)[1:20, 1:38], rtol=1e-13, atol=1e-13)


def check_outer(path) -> None:
    check_linear(path, schedule="outer")


def check_fused(path) -> None:
    check_linear(path, steps=6, tolerance=1e-11, fuse_steps=3)


def check_single_precision(path) -> None:
    check_linear(path, tolerance=1e-5, dtype="f32")


def check_sme(path) -> None:
    """Skipped where there is no emulator."""
    # The tests of Arm code have a folder of their own.
    sys.path.append(str(Path(__file__).parents[2] / "execution" / "sme"))
    from arm_machine import Program, Sweep, missing_tools

    if missing := missing_tools():
        pytest.skip(f"expected {', '.join(missing)} on the path")
    path.write_text(LINEAR)
    compiled = compile_sme(str(path), SmeOptions("parallel"))
    code, header = path.with_suffix(".o"), path.with_suffix(".h")
    code.write_bytes(compiled.data)
    header.write_text(compiled.header)
    sweep = Sweep("step_rows", "f64", before=(1, 1), after=(1, 2))
    u = np.random.default_rng(0).random((21, 40))
    got = Program(path.parent, sweep, header, [code]).run(u, vector_bits=128)
    np.testing.assert_allclose(got, linear_step(u)[1:20, 1:38], rtol=1e-13, atol=1e-13)


def check_matrix(path) -> None:
    check_linear(path, schedule="dense", target="sim:sm_90")


def check_general(path, **options) -> None:
    path.write_text(GENERAL)
    u = np.random.default_rng(0).random(34)
    got = twofour.compile(str(path), **options)(u)
    np.testing.assert_allclose(got[1:33], u[:32] * u[2:], rtol=1e-13)


def check_siblings(path) -> None:
    path.write_text(SIBLINGS)
    u = np.random.default_rng(0).random(34)
    total, difference = twofour.compile(str(path))(u)
    np.testing.assert_allclose(total[1:33], u[:32] + u[2:], rtol=1e-13)
    np.testing.assert_allclose(difference[1:33], u[2:] - u[:32], atol=1e-15)


def check_loops(path) -> None:
    """Half precision has no vector kernels."""
    path.write_text(GENERAL.replace("f64", "f16"))
    u = np.random.default_rng(0).random(34).astype(np.float16)
    np.testing.assert_array_equal(twofour.compile(str(path))(u)[1:33], u[:32] * u[2:])


def check_points(path) -> None:
    check_general(path, target="sim:sm_90")


def check_copies(path, **options) -> None:
    """A field in place: the result is formed beside it, and copied."""
    path.write_text(GENERAL.replace("to %v", "to %u"))
    u = np.random.default_rng(0).random(34)
    expected = u.copy()
    expected[1:-1] = u[:-2] * u[2:]
    got = twofour.compile(str(path), **options)(u)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def check_copies_by_blocks(path) -> None:
    check_copies(path, target="sim:sm_90")


def check_halos(path) -> None:
    path.write_text(LINEAR)
    u = np.random.default_rng(0).random((21, 40))
    expected = twofour.compile(path, boundary="reflect,periodic")(u, steps=2)
    got = twofour.compile(path, boundary="reflect,periodic", target="sim:sm_90")(u, steps=2)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def check_time_tile(path) -> None:
    path.write_text(LINEAR)
    module, filename = load_program(str(path), CompileOptions())
    passes = [InferBoundsPass(), ExtractWeightsPass(), time_tile.TimeTilePass(3, (7, 11))]
    with module.context:
        run_passes(module, passes, filename)
    assert compile_module(module, filename, CompileOptions()).time_tile == (3, (7, 11))
