# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour compile --target cpu`: stages of the CPU's compiler, and object files that link."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bad_input import refused
from twofour.cli.main import main

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
#include <stdint.h>
#include <stdio.h>
#define ROWS 7
#define COLUMNS 45

typedef struct {
  TYPE *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} view;

void _mlir_ciface_heat_kernel0(view *in, view *out, int64_t begin, int64_t end);

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


@pytest.mark.skipif(not shutil.which("cc"), reason="expected a C compiler cc on the path")
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
    assert capsys.readouterr().out.startswith(f"heat.o: object, {len(data)} bytes\n")
    assert (tmp_path / "again.o").read_bytes() == data
    (tmp_path / "main.c").write_text(PROGRAM.replace("TYPE", kind))
    subprocess.run(["cc", "-fPIE", "-pie", "main.c", "heat.o", "-lm", "-o", "main"], check=True)
    u = np.random.default_rng(1).uniform(-1, 1, (9, 46)).astype(dtype)
    done = subprocess.run(["./main"], input=u.tobytes(), capture_output=True, check=True)
    got = np.frombuffer(done.stdout, dtype).reshape(9, 47)
    expected = np.zeros((9, 47))
    expected[1:-1, 1:-1] = 0.3 * (u[:-2, :-1].astype(float) + u[2:, 1:])
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


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
