# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Object files of the CPU and their headers: programs in C that link with them."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bad_input import refused
from cpu_object_cases import write_heat
from twofour.cli.main import main
from twofour.runtime.dtypes import float32_to_bf16

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
    assert b".ltext" not in data
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
@pytest.mark.parametrize(
    "name, flags",
    [
        *((name, "") for name in ("exp", "printf", "malloc", "free", "main", "_mlir_ciface_exp")),
        # The function of vectors comes with the library as well.
        ("exp", " fastmath<afn>"),
    ],
)
def test_a_function_with_the_name_of_one_in_c(tmp_path, name, flags):
    text = EXPONENTIAL.replace("NAME", name).replace("math.exp %x", f"math.exp %x{flags}")
    Path("exp.mlir").write_text(text)
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
        (
            "i1",
            "i1",
            "i1",
            "%k",
            "bool _mlir_ciface_f(twofour_view1_i1 *argument0, bool argument1)",
        ),
        (
            "f16",
            "bf16",
            "bf16, f64",
            "%k, %c",
            "#if defined(__BFLT16_MAX__) __extension__ typedef struct { __bf16",
        ),
        (
            "f16",
            "f16",
            "f16, f64",
            "%k, %c",
            "__extension__ typedef struct { _Float16 result0; double result1; } f_results;",
        ),
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


STORE = """
%t = stencil.load %u : !field -> !temp
stencil.store %t to %v(<[0], [8]>) : !temp to !field
"""
LOOP = """
!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>
func.func @f(%u : !field, %n : index, %v : !field, %k : f16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %t = stencil.load %u : !field -> !temp
    %r = stencil.apply(%a = %t : !temp, %m = %i : index, %h = %k : f16) -> (!temp) {
      %x = stencil.access %a[0] : !temp
      %j = arith.index_cast %m : index to i64
      %y = arith.sitofp %j : i64 to f64
      %w = arith.extf %h : f16 to f64
      %z = arith.mulf %x, %y : f64
      %s = arith.mulf %z, %w : f64
      stencil.return %s : f64
    }
    stencil.store %r to %v(<[0], [8]>) : !temp to !field
  }
  WHERE
  return
}
"""


def test_the_header_of_a_function_with_a_loop():
    """Its number of f16 comes by value, which not all compilers know."""
    Path("loop.mlir").write_text(LOOP.replace("WHERE", ""))
    assert main(["compile", "loop.mlir", "--emit", "object", "-o", "loop.o"]) == 0
    text = " ".join(Path("loop.h").read_text().split())
    assert "in1: what a loop counts or carries * in2: argument 3 * out0" in text
    assert re.search(
        r"#if defined\(__FLT16_MAX__\) __extension__ void _mlir_ciface_f\([^)]*_Float16 arg",
        text,
    )


def test_the_header_of_a_function_that_does_more_than_sweep():
    """Nothing is said of its calls."""
    body = "%yes = arith.cmpi eq, %n, %c1 : index\nscf.if %yes {\nPRINT\n}"
    Path("more.mlir").write_text(LOOP.replace("WHERE", body.replace("PRINT", STORE)))
    assert main(["compile", "more.mlir", "--emit", "object", "-o", "more.o"]) == 0
    text = Path("more.h").read_text()
    assert "void _mlir_ciface_f_kernel0(" in text and "calls it on" not in text


@pytest.mark.parametrize(
    ("output", "message", "at"),
    [
        ("folder.o", "cannot write the file: it is a directory", "folder.h:1:1"),
        ("./x.h", "expected another name for the object than that of its header", None),
        ("heat.o", "expected another file than that of the program, got 'heat.h'", None),
    ],
)
def test_an_object_whose_header_has_no_place(capfd, output, message, at):
    write_heat(Path("heat.h"))
    Path("folder.h").mkdir()
    words = ["compile", "heat.h", "--emit", "object", "-o", output]
    refused(capfd, main, words, message, at or "<command-line>:1:")


BIT = """
func.func @bit(%u : !stencil.field<[0,8]xf64>, %k : i32) -> i1 {
  %odd = arith.trunci %k : i32 to i1
  return %odd : i1
}
"""
BITS = """
#include "bit.h"
int main(void) {
  for (int k = 0; k < 8; k++)
    if (_mlir_ciface_bit(0, k) != k % 2) return 1;
  return 0;
}
"""


@needs_cc
def test_an_object_has_no_assembly(tmp_path, capfd):
    """LLVM would end the process."""
    (tmp_path / "heat.mlir").write_text(
        """func.func @f(%a: memref<10xf64>, %b: memref<10xf64>) {
  llvm.inline_asm has_side_effects "nop", "" : () -> ()
  %u = "stencil.external_load"(%a) : (memref<10xf64>) -> !stencil.field<#b, f64>
  %v = "stencil.external_load"(%b) : (memref<10xf64>) -> !stencil.field<#b, f64>
  %t = "stencil.load"(%u) : (!stencil.field<#b, f64>) -> !stencil.temp<#b, f64>
  "stencil.store"(%t, %v) {bounds = #b} : (!stencil.temp<#b, f64>, !stencil.field<#b, f64>) -> ()
  return
}
""".replace("#b", "#stencil.bounds<[0], [10]>")
    )
    words = ["compile", "heat.mlir", "--emit", "object", "-o", "heat.o"]
    refused(capfd, main, words, "'llvm.inline_asm' op expected no assembly", "heat.mlir:2:3")


def test_a_bit_is_a_bool():
    Path("bit.mlir").write_text(BIT)
    assert main(["compile", "bit.mlir", "--emit", "object", "-o", "bit.o"]) == 0
    Path("main.c").write_text(BITS)
    link("main.c", "bit.o")
    subprocess.run(["./main"], check=True)
