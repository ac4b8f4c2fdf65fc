# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that may be approximated: vectors of the GNU C library, the same bits everywhere."""

import platform
import re
from ctypes.util import find_library

import numpy as np
import pytest

import twofour
from twofour.codegen.cpu import vector_unit
from twofour.options import CompileOptions
from twofour.targets.cpu import vector_functions
from twofour.targets.cpu.stages import emit

PROGRAM = """
func.func @f(%a: FIELD, %b: FIELD) {
  %t = stencil.load %a : FIELD -> TEMP
  %r = stencil.apply(%u = %t : TEMP) -> (TEMP) {
    %x = stencil.access %u[0, 0] : TEMP
    BODY
    stencil.return %y : KIND
  }
  stencil.store %r to %b(<[0, 0], [ROWS, COLUMNS]>) : TEMP to FIELD
  return
}
"""
EXP = "%y = math.exp %x fastmath<afn> : KIND"
POWER = "%c = arith.constant 0.75 : KIND\n%y = math.powf %x, %c fastmath<contract,afn> : KIND"
# An integer of eight bits has no lanes: every point is computed on its own.
ALONE = """
    %i = arith.fptosi %x : KIND to i8
    %n = arith.sitofp %i : i8 to KIND
    %zero = arith.constant 0.0 : KIND
    %nothing = arith.mulf %n, %zero : KIND
    %z = arith.addf %x, %nothing : KIND
    %y = math.exp %z fastmath<afn> : KIND"""
# Numbers of 64 bits have half as many lanes as those of 32.
WIDER = """
    %d = arith.extf %x : KIND to f64
    %s = arith.truncf %d : f64 to KIND
    %y = math.exp %s fastmath<afn> : KIND"""
STORED = {"f32": np.float32, "f64": np.float64}
needs_library = pytest.mark.skipif(
    platform.machine() != "x86_64" or find_library("mvec") is None,
    reason="there is no libmvec for this processor",
)


def text_of(body, kind, shape):
    rows, columns = map(str, shape)
    words = {
        "BODY": body,
        "FIELD": "!stencil.field<[0,ROWS]x[0,COLUMNS]xKIND>",
        "TEMP": "!stencil.temp<?x?xKIND>",
        "KIND": kind,
        "ROWS": rows,
        "COLUMNS": columns,
    }
    text = PROGRAM
    for word, value in words.items():
        text = text.replace(word, value)
    return text


@pytest.fixture
def compiled(tmp_path):
    def compile_text(body, kind, shape, **options):
        path = tmp_path / "f.mlir"
        path.write_text(text_of(body, kind, shape))
        return twofour.compile(path, **options)

    return compile_text


@needs_library
@pytest.mark.parametrize("machine, lanes", [("avx512", "eN8"), ("avx2", "dN4"), ("sse", "bN2")])
def test_the_library_is_called(tmp_path, monkeypatch, machine, lanes):
    monkeypatch.setattr(vector_unit, "_host", lambda: machine)
    path = tmp_path / "f.mlir"
    for body, name in (
        (EXP, "v_exp"),
        (POWER, "vv_pow"),
        (EXP.replace("afn", "fast"), "v_exp"),
        (EXP.replace("afn", "contract"), None),
        (EXP.replace(" fastmath<afn>", ""), None),
    ):
        path.write_text(text_of(body, "f64", (3, 5)))
        found = set(re.findall(r"@_ZGV(\w+)\(", emit(str(path), CompileOptions(), "llvm")))
        assert found == ({f"{lanes}{name}"} if name else set())


@needs_library
@pytest.mark.parametrize("machine", ["host", "avx2", "sse"])
@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("body", [EXP, POWER])
def test_the_same_bits_wherever_a_point_lies(compiled, body, kind, machine, monkeypatch):
    """In whole vectors, in what rows leave over, on any thread and in rows of any length."""
    if machine != "host":
        monkeypatch.setattr(vector_unit, "_host", lambda: machine)
    values = np.random.default_rng(0).uniform(0.1, 3, 4096).astype(STORED[kind])
    expected = compiled(body, kind, (1, 4096))(values[np.newaxis])[0]
    for columns in (1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 100):
        shape = 4000 // columns, columns
        part = values[: shape[0] * columns]
        for threads in (1, 2):
            got = compiled(body, kind, shape, threads=threads)(part.reshape(shape))
            np.testing.assert_array_equal(got.ravel(), expected[: part.size])


@needs_library
def test_the_same_bits_of_numbers_and_shorter_vectors(compiled, tmp_path):
    values = np.random.default_rng(0).uniform(-3, 3, (7, 41))
    for kind in STORED:
        u = values.astype(STORED[kind])
        expected = compiled(EXP, kind, u.shape)(u)
        np.testing.assert_array_equal(compiled(ALONE, kind, u.shape)(u), expected)
    np.testing.assert_array_equal(
        compiled(WIDER, "f32", values.shape)(values.astype(np.float32)),
        compiled(EXP, "f32", values.shape)(values.astype(np.float32)),
    )


def test_values_at_the_ends(compiled):
    body = EXP.replace("exp", "log")
    values = np.array([[0.0, -1.0, np.inf, np.nan, 1.0, 5e-324, -0.0]])
    with np.errstate(all="ignore"):
        expected = np.log(values)
    got = compiled(body, "f64", values.shape)(values)
    np.testing.assert_allclose(got, expected, rtol=1e-15)


def test_without_the_library(compiled, monkeypatch):
    values = np.random.default_rng(0).uniform(-3, 3, (3, 50))
    monkeypatch.setattr(vector_functions, "_library", lambda: None)
    got = compiled(EXP, "f64", values.shape)(values)
    exact = compiled(EXP.replace(" fastmath<afn>", ""), "f64", values.shape)(values)
    np.testing.assert_array_equal(got, exact)
