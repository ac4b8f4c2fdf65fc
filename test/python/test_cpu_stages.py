# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour compile --target cpu`: stages of the CPU's compiler, and object files that link."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bad_input import refused
from twofour.cli.main import main
from twofour.runtime.dtypes import float32_to_bf16

HEAT = """
!field = !stencil.field<[-1,10]x[-1,33]xELEMENT>
!temp = !stencil.temp<?x?xELEMENT>
func.func @heat(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %quarter = arith.constant 0.3 : ELEMENT
    %n = stencil.access %a[-1, 0] : !temp
    %s = stencil.access %a[1, 1] : !temp
    %sum = arith.addf %n, %s : ELEMENT
    %new = arith.mulf %sum, %quarter : ELEMENT
    stencil.return %new : ELEMENT
  }
  stencil.store %r to %v(<[0, 0], [9, 32]>) : !temp to !field
  return
}
"""
# The kernel's views: an input of ROWS + 2 by COLUMNS + 1 and an output inside of an array of
# ROWS + 2 by COLUMNS + 2, whose rim keeps its value.
PROGRAM = """
#include <stdio.h>
#include "heat.h"
#define ROWS 7
#define COLUMNS 45

typedef twofour_view2_ELEMENT view;

int main(void) {
  static TYPE u[ROWS + 2][COLUMNS + 1], v[ROWS + 2][COLUMNS + 2];
  if (fread(u, sizeof u, 1, stdin) != 1) return 1;
  view in = {&u[0][0], &u[0][0], 0, {ROWS + 2, COLUMNS + 1}, {COLUMNS + 1, 1}};
  view out = {&v[0][0], &v[0][0], COLUMNS + 3, {ROWS, COLUMNS}, {COLUMNS + 2, 1}};
  _mlir_ciface_heat_kernel0(&in, &out, 0, 4);
  _mlir_ciface_heat_kernel0(&in, &out, 4, ROWS);
  return fwrite(v, sizeof v, 1, stdout) != 1;
}
"""


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_heat(path, element="f64"):
    path.write_text(HEAT.replace("ELEMENT", element))


needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="expected a C compiler cc on the path")


def link(*parts):
    """Make the program `main` of C and objects."""
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIE", "-pie"]
    subprocess.run(["cc", *flags, *parts, "-lm", "-o", "main"], check=True)


@needs_cc
@pytest.mark.parametrize("schedule", ["direct", "sparse"])
@pytest.mark.parametrize(
    ("dtype", "kind", "tolerance"), [(np.float64, "double", 1e-15), (np.float32, "float", 1e-6)]
)
def test_an_object_file_links_with_a_program_in_c(
    tmp_path, capsys, dtype, kind, tolerance, schedule
):
    write_heat(tmp_path / "heat.mlir", f"f{8 * np.dtype(dtype).itemsize}")
    words = ["compile", "heat.mlir", "--emit", "object", "--schedule", schedule]
    assert main([*words, "-o", "heat.o"]) == 0
    assert main([*words, "-o", "again.o"]) == 0
    data = (tmp_path / "heat.o").read_bytes()
    said = f"heat.o: object, {len(data)} bytes; heat.h: its header\n"
    assert capsys.readouterr().out.startswith(said)
    assert (tmp_path / "again.o").read_bytes() == data
    element = f"f{8 * np.dtype(dtype).itemsize}"
    text = PROGRAM.replace("TYPE", kind).replace("ELEMENT", element)
    (tmp_path / "main.c").write_text(text)
    link("main.c", "heat.o")
    u = np.random.default_rng(1).uniform(-1, 1, (9, 46)).astype(dtype)
    done = subprocess.run(["./main"], input=u.tobytes(), capture_output=True, check=True)
    got = np.frombuffer(done.stdout, dtype).reshape(9, 47)
    expected = np.zeros((9, 47))
    expected[1:-1, 1:-1] = 0.3 * (u[:-2, :-1].astype(float) + u[2:, 1:])
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


# A function of a name that C's library has, of one of its functions, with a buffer for %t.
EXPONENTIAL = """
!field = !stencil.field<[-1,9]xf64>
!half = !stencil.field<[-1,9]xbf16>
!temp = !stencil.temp<?xf64>
func.func @NAME(%u : !field, %k : f64, %v : !half) {
  %t = stencil.load %u : !field -> !temp
  %s = stencil.apply(%a = %t : !temp) -> (!temp) {
    %x = stencil.access %a[0] : !temp
    %y = math.exp %x : f64
    stencil.return %y : f64
  }
  %r = stencil.apply(%f = %k : f64, %a = %s : !temp) -> (!stencil.temp<?xbf16>) {
    %x = stencil.access %a[-1] : !temp
    %y = stencil.access %a[1] : !temp
    %z = arith.mulf %x, %y : f64
    %w = arith.mulf %z, %f : f64
    %b = arith.truncf %w : f64 to bf16
    stencil.return %b : bf16
  }
  stencil.store %r to %v(<[0], [8]>) : !stencil.temp<?xbf16> to !half
  return
}
"""
CALL = """
#include <math.h>
#include <stdio.h>
#include "NAME.h"

int main(void) {
  double u[10] = {0}, between[10], k = 3;
  uint16_t v[10] = {0}, w[10] = {0};
  for (int i = 0; i < 10; i++) u[i] = log(i + 1);
  twofour_view1_f64 all = {u, u, 0, {10}, {1}}, buffer = {between, between, 0, {10}, {1}};
  twofour_view1_bf16 out = {v, v, 0, {10}, {1}}, inner = {w, w, 1, {8}, {1}};
  twofour_view0_f64 number = {&k, &k, 0};
  _mlir_ciface_NAME(&all, k, &out);
  _mlir_ciface_NAME_kernel0(&all, &buffer, 0, 10);
  _mlir_ciface_NAME_kernel1(&buffer, &number, &inner, 0, 8);
  for (int i = 0; i < 10; i++) printf("%d %d\\n", v[i], w[i]);
  return 0;
}
"""


@needs_cc
@pytest.mark.parametrize("name", ["exp", "printf", "malloc", "free", "main", "_mlir_ciface_exp"])
def test_a_function_with_the_name_of_one_in_c(tmp_path, name):
    Path("exp.mlir").write_text(EXPONENTIAL.replace("NAME", name))
    assert main(["compile", "exp.mlir", "--emit", "object", "-o", f"{name}.o"]) == 0
    # Another object of the program rounds to bf16 as well.
    Path("other.mlir").write_text(EXPONENTIAL.replace("NAME", "other"))
    assert main(["compile", "other.mlir", "--emit", "object", "-o", "other.o"]) == 0
    Path("main.c").write_text(CALL.replace("NAME", name))
    link("main.c", f"{name}.o", "other.o")
    done = subprocess.run(["./main"], capture_output=True, check=True)
    got = np.array(done.stdout.split(), int).reshape(10, 2)
    points = np.arange(1, 9)
    expected = np.zeros(10, np.uint16)
    expected[1:-1] = float32_to_bf16(np.float32(3 * points * (points + 2)))
    np.testing.assert_array_equal(got, np.stack([expected, expected], 1))


def test_a_header_says_what_kernels_are_called_on():
    Path("exp.mlir").write_text(EXPONENTIAL.replace("NAME", "e"))
    assert main(["compile", "exp.mlir", "--emit", "object", "-o", "e.o"]) == 0
    assert """\
/* _mlir_ciface_e calls it on
 *   in0: elements [0, 10) of a buffer of 10
 *   in1: argument 1
 *   out0: elements [1, 9) of argument 2 */
void _mlir_ciface_e_kernel1(
    twofour_view1_f64 *in0,
    twofour_view0_f64 *in1,
    twofour_view1_bf16 *out0,
    int64_t begin,
    int64_t end);
""" in Path("e.h").read_text()


TYPES = """
!F = !stencil.field<[0,8]xFIELD>
func.func @f(%u : !F, %k : NUMBER) -> (RESULTS) {
  %c = arith.constant 1.5 : f64
  return VALUES : RESULTS
}
"""
INTERFACE = "void _mlir_ciface_f("


@needs_cc
@pytest.mark.parametrize(
    ("field", "number", "results", "values", "declared"),
    [
        ("f32", "i1", "f64", "%c", "double _mlir_ciface_f(twofour_view1_f32 *argument0, bool arg"),
        ("i1", "f32", "!F", "%u", f"{INTERFACE}twofour_view1_i1 *result, twofour_view1_i1 *arg"),
        ("i8", "index", "!F, f64", "%u, %c", f"{INTERFACE}f_results *results, twofour_view1_i8 *"),
        ("f16", "i37", "f64", "%c", "/* _mlir_ciface_f takes i37, which C has no type for. */"),
    ],
)
def test_types_in_c(field, number, results, values, declared):
    words = {"FIELD": field, "NUMBER": number, "RESULTS": results, "VALUES": values}
    Path("f.mlir").write_text(re.sub("[A-Z]{5,}", lambda word: words[word[0]], TYPES))
    assert main(["compile", "f.mlir", "--emit", "object", "-o", "f.o"]) == 0
    assert declared in " ".join(Path("f.h").read_text().split()).replace("( ", "(")
    Path("main.c").write_text('#include "f.h"\n#include "f.h"\nint main(void) { return 0; }\n')
    link("main.c", "f.o")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="expected an x86 processor")
def test_stores_past_the_caches_end_with_a_fence(capfd):
    write_heat(Path("heat.mlir"))
    assert main(["compile", "heat.mlir", "--emit", "llvm"]) == 0
    text = capfd.readouterr().out
    interface = text[text.index("define void @_mlir_ciface_heat_kernel0_past_caches(") :]
    assert "call void @llvm.x86.sse.sfence()" in interface[: interface.index("\n}")]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["stencil"], "stencil.weighted_sum"),
        (["nm", "--schedule", "sparse"], "nm.sparse_patch_matmul"),
        (["llvm"], "define void @_mlir_ciface_heat_kernel0("),
    ],
)
def test_a_stage_as_text(tmp_path, capfd, words, text):
    write_heat(tmp_path / "heat.mlir")
    assert main(["compile", "heat.mlir", "--emit", *words]) == 0
    assert text in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--emit", "object"], "expected -o FILE to write the object to"),
        (
            ["--emit", "object", "-o", "-"],
            "expected -o FILE to write the object to, and its header",
        ),
        (
            ["--emit", "object", "-o", "x.h"],
            "expected another name for the object than that of its",
        ),
        (["--emit", "nm"], "expected a stage that schedule 'direct' has, got 'nm'"),
        (["--emit", "ptx"], "expected a GPU target such as sm_90 to compile for (--emit ptx)"),
        (["--emit", "bundle", "-o", "x"], "or one of --emit stencil, nm, llvm, object for the CPU"),
        (
            ["--emit", "object", "-o", "x", "--target", "sm_90"],
            "expected target 'cpu' for --emit object, got 'sm_90'",
        ),
    ],
)
def test_what_a_target_does_not_have(tmp_path, capfd, words, message):
    write_heat(tmp_path / "heat.mlir")
    refused(capfd, main, ["compile", "heat.mlir", *words], message)


def test_a_stage_that_plain_loops_do_not_have(capfd):
    program = Path(__file__).parents[2] / "docs" / "examples" / "gray_scott.mlir"
    message = "expected a stage that schedule 'loops' has, got 'nm'"
    refused(capfd, main, ["compile", program, "--emit", "nm"], message)
