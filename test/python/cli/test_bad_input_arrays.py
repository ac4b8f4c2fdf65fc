# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python interface refuses what it cannot use by TwofourError; nothing is converted."""

import re

import numpy as np
import pytest

import twofour
from bad_input import INPUTS

MEAN = {(0, -1): 0.5, (0, 1): 0.5}
FIELD = np.zeros((8, 8), np.float32)


def raises(message: str):
    """The text of the exception is that of the command line: one line, with its location first."""
    return pytest.raises(twofour.TwofourError, match=rf"\A.*error: .*{re.escape(message)}.*\Z")


@pytest.mark.parametrize(
    "weights, message",
    [
        ({}, "expected weights as a dict {offset: weight} with at least one entry"),
        (None, "expected weights as a dict"),
        ([((0,), 1.0)], "expected weights as a dict"),
        ({(0,): 1.0, (0, 0): 1.0}, "expected offsets of one rank, got ranks [1, 2]"),
        ({(): 1.0}, "expected offsets of one rank, got ranks [0]"),
        ({(0,): float("nan")}, "expected finite weights, got nan at offset (0,)"),
        ({(0,): float("inf")}, "expected finite weights, got inf at offset (0,)"),
        ({(0,): "0.5"}, "numbers as weights, got (0,): '0.5'"),
        ({(0,): b"0.5"}, "numbers as weights, got (0,): b'0.5'"),
        ({(0,): None}, "numbers as weights, got (0,): None"),
        ({(0,): 1j}, "numbers as weights, got (0,): 1j"),
        ({(0,): np.ones(3)}, "numbers as weights"),
        ({(0,): 10**400}, "numbers as weights"),
        ({(0.5,): 1.0}, "expected integer offsets"),
        ({"ab": 1.0}, "expected integer offsets"),
        ({(0,): 0.0}, "expected at least one weight that is not zero"),
        ({(2**70,): 1.0}, "expected offsets that reach at most"),
        ({(0,): 1.0, 0: 2.0}, "expected distinct offsets, got (0,) twice"),
        ({(0,) * 40: 1.0}, "expected offsets of at most 9 axes, got 40"),
        ({(0,): 1e300}, "expected weights in the range of f32"),
        ({(0,): 1e-300}, "expected at least one weight that is not zero in f32"),
    ],
)
def test_weights(weights, message):
    with raises(message):
        twofour.stencil(weights)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dtype": "f23"}, "got 'f23' (did you mean 'f32'?)"),
        ({"dtype": np.float32}, "expected a dtype out of f16, bf16, f32, f64"),
        (
            {"boundary": "constant(1e9)", "dtype": "f16"},
            "expected a boundary constant in the range of f16, got 1000000000.0",
        ),
        ({"boundary": "periodik"}, "did you mean 'periodic'?"),
        ({"boundary": 3}, "expected a boundary as text or a sequence of texts, got int"),
        ({"boundary": ["fixed"] * 3}, "expected 1 or 2 boundaries, got 3"),
        ({"boundary": []}, "expected 1 or 2 boundaries, got 0"),
        ({"boundary": ["fixed", None]}, "expected a boundary out of"),
        ({"target": "gpu"}, "unknown target 'gpu'"),
        ({"reassociate": np.int64(1)}, "expected reassociate to be a bool, got "),
        ({"reassociate": "no"}, "expected reassociate to be a bool, got 'no'"),
        ({"target": None}, "unknown target 'None'"),
        ({"schedule": "sparce"}, "did you mean 'sparse'?"),
        ({"threads": 0}, "expected a positive number of threads, got 0"),
        ({"threads": "2"}, "expected a positive number of threads, got '2'"),
        ({"threads": True}, "expected a positive number of threads, got True"),
        ({"fuse_steps": 0}, "expected at least 1 fused step, got 0"),
        ({"fuse_steps": "2"}, "expected at least 1 fused step, got '2'"),
        ({"fuse_steps": 1.5}, "expected at least 1 fused step, got 1.5"),
        ({"fuse_steps": 10**9}, "expected at most 4096 fused steps"),
    ],
)
def test_options(options, message):
    with raises(message):
        twofour.stencil(MEAN, **options)


@pytest.fixture(scope="module")
def step():
    return twofour.stencil(MEAN)


@pytest.mark.parametrize(
    "array, message",
    [
        ([[1.0]], "expected an array of NumPy or another library, got list"),
        (None, "expected an array of NumPy or another library, got NoneType"),
        (3.0, "expected an array of NumPy or another library, got float"),
        (np.ma.array(FIELD), "expected a NumPy array without a mask, got a masked array"),
        (FIELD.astype(np.float64), "got float64; convert it, or ask for dtype f64"),
        (FIELD.astype(np.int32), "expected f32 (float32), got int32"),
        (FIELD.astype(np.uint16), "expected f32 (float32), got uint16"),
        (FIELD.astype(np.complex64), "expected f32 (float32), got complex64"),
        (FIELD.astype(object), "expected f32 (float32), got object"),
        (FIELD.astype(">f4"), "in native byte order, got dtype '>f4'"),
        (FIELD[0], "expected an array of rank 2, got rank 1"),
        (np.zeros((1,) * 32, np.float32), "expected an array of rank 2, got rank 32"),
        (FIELD[:, :0], "expected an array with at least one element, got shape (8, 0)"),
    ],
)
def test_arrays(step, array, message):
    with raises(message):
        step(array)


@pytest.mark.parametrize("steps", [-1, 1.5, "2", None, True, np.float32(2)])
def test_steps(step, steps):
    with raises(f"expected a number of steps >= 0, got {steps!r}"):
        step(FIELD, steps=steps)


@pytest.mark.parametrize(
    "source, options, message",
    [
        ("heat2d_ftc", {}, "unknown kernel 'heat2d_ftc'; did you mean 'heat2d_ftcs'?"),
        ("", {}, "unknown kernel ''"),
        (None, {}, "expected the path of a file or a kernel's name, got None"),
        (3, {}, "expected the path of a file or a kernel's name, got 3"),
        ("nope.mlir", {}, "cannot read the file: no such file or directory"),
        ("no\0pe.mlir", {}, "cannot read the file"),
        ("heat2d_ftcs", {"function": "f"}, "expected --function with a file only"),
        (INPUTS / "average_pretty.mlir", {"function": "f"}, "expected a function @f, got @average"),
        (INPUTS / "average_pretty.mlir", {"dtype": "tf64"}, "expected a dtype out of"),
        (INPUTS / "average_pretty.mlir", {"boundary": "zero,zero"}, "1 boundary, got 'zero,zero'"),
    ],
)
def test_sources(source, options, message):
    with raises(message):
        twofour.compile(source, **options)


def test_the_exception_has_the_location():
    with pytest.raises(twofour.TwofourError) as caught:
        twofour.compile("nope.mlir")
    location = caught.value.location
    assert (location.file, location.line, location.column) == ("nope.mlir", 1, 1)
    assert str(caught.value).startswith("nope.mlir:1:1: error: ")


@pytest.mark.parametrize("function", [["average"], {}, 3])
def test_functions_that_are_no_names(function):
    with raises(f"expected the name of a function, got {function!r}"):
        twofour.compile(INPUTS / "average_generic.mlir", function=function)


@pytest.fixture(scope="module")
def program():
    return twofour.compile(INPUTS / "average_generic.mlir")


@pytest.mark.parametrize(
    "inputs, options, message",
    [
        ([], {}, "expected 1 input field, got 0"),
        ([np.zeros(66)] * 2, {}, "expected 1 input field, got 2"),
        ([np.zeros(66)], {"scalars": [1.0]}, "expected 0 scalar arguments, got 1"),
        ([np.zeros(66)], {"scalars": 5}, "expected a sequence of scalar arguments, got 5"),
        ([np.zeros(65)], {}, "expected an array of shape (66,), got shape (65,)"),
        ([np.zeros(66, np.float32)], {}, "expected f64 (float64), got float32"),
        ([np.ma.zeros(66)], {}, "expected a NumPy array without a mask"),
        ([[0.0] * 66], {}, "expected an array of NumPy or another library, got list"),
        ([np.zeros(66)], {"steps": -1}, "expected a number of steps >= 0, got -1"),
    ],
)
def test_fields_of_a_program(program, inputs, options, message):
    with raises(message):
        program(*inputs, **options)


def test_boundaries_of_kernels_are_read_before_compiling(monkeypatch):
    monkeypatch.setattr("twofour.api.compile_cpu", lambda *arguments: pytest.fail("compiled"))
    with raises("did you mean 'periodic'?"):
        twofour.compile("heat2d_ftcs", boundary="periodik")
    with raises("did you mean 'periodic'?"):
        twofour.stencil(MEAN, boundary="periodik")


def test_measured_choices_have_a_file():
    message = "^missing.json:1:1: error: cannot read the file: no such file or directory$"
    with pytest.raises(twofour.TwofourError, match=message):
        twofour.stencil(MEAN, tuned="missing.json", target="sim:sm_90", dtype="f16")


def test_weights_have_no_file():
    with pytest.raises(twofour.TwofourError, match="^error: .*expected at most") as caught:
        twofour.stencil(MEAN, fuse_steps=4096 * 2)
    assert caught.value.location is None
    with pytest.raises(twofour.TwofourError, match="^error: .*keep in range") as caught:
        twofour.stencil({(0,): 1.0, (1,): 2.0}, fuse_steps=700)
    assert caught.value.location is None


SCALARS = """func.func @f(%n: i64, %b: i8, %t: i1, %x: f32, %y: f64, %u: memref<4xf64>) {
  %i = arith.constant 0 : index
  %0 = arith.sitofp %n : i64 to f64
  %1 = arith.sitofp %b : i8 to f64
  %2 = arith.uitofp %t : i1 to f64
  %3 = arith.extf %x : f32 to f64
  %4 = arith.addf %0, %1 : f64
  %5 = arith.addf %2, %3 : f64
  %6 = arith.addf %4, %5 : f64
  %7 = arith.addf %6, %y : f64
  %s = "stencil.external_load"(%u) : (memref<4xf64>) -> !stencil.field<#stencil.bounds<[0], [4]>, f64>
  %r = "stencil.apply"() ({
    "stencil.return"(%7) : (f64) -> ()
  }) : () -> !stencil.temp<#stencil.bounds<[0], [4]>, f64>
  "stencil.store"(%r, %s) {bounds = #stencil.bounds<[0], [4]>} : (!stencil.temp<#stencil.bounds<[0], [4]>, f64>, !stencil.field<#stencil.bounds<[0], [4]>, f64>) -> ()
  return
}
"""  # noqa: E501


@pytest.fixture(scope="module")
def sum_of_scalars(tmp_path_factory):
    path = tmp_path_factory.mktemp("scalars") / "sum.mlir"
    path.write_text(SCALARS)
    return twofour.compile(path)


@pytest.mark.parametrize(
    "scalars, total",
    [
        ([3, -128, True, 0.5, 0.25], -123.25),
        ([np.int64(-3), np.uint8(127), np.True_, np.float32(0.5), 2], 127.5),
        (np.zeros(5, int), 0.0),
        (["3", "-128", "1", "0.5", "25e-2"], -123.25),
        ([-(2**63), 0, 0, 0, 0], -(2.0**63)),
        ([0, 0, 0, 0, float("inf")], float("inf")),
    ],
)
def test_scalars(sum_of_scalars, scalars, total):
    assert sum_of_scalars(scalars=scalars).tolist() == [total] * 4


INTEGER = "expected an integer from"


@pytest.mark.parametrize(
    "position, value, message",
    [
        (0, 2**63, f"{INTEGER} -9223372036854775808 to 9223372036854775807 (i64), got 92233720368"),
        (0, 2**70, INTEGER),
        (0, 3.0, "(i64), got 3.0"),
        (0, "3.0", "(i64), got '3.0'"),
        (0, "x", "(i64), got 'x'"),
        (0, None, "(i64), got None"),
        (1, 128, f"{INTEGER} -128 to 127 (i8), got 128"),
        (1, -129, f"{INTEGER} -128 to 127 (i8), got -129"),
        (2, 2, f"{INTEGER} 0 to 1 (i1), got 2"),
        (2, -1, f"{INTEGER} 0 to 1 (i1), got -1"),
        (3, 1e39, "expected a number in the range of f32, got 1e+39"),
        (3, "x", "expected a number in the range of f32, got 'x'"),
        (4, b"1", "expected a number in the range of f64, got b'1'"),
        (4, 10**400, "expected a number in the range of f64, got 1000"),
        (4, 1j, "expected a number in the range of f64, got 1j"),
        (4, [1.0], "expected a number in the range of f64, got [1.0]"),
    ],
)
def test_scalars_that_do_not_fit(sum_of_scalars, position, value, message):
    scalars = [0] * 5
    scalars[position] = value
    with raises(message) as caught:
        sum_of_scalars(scalars=scalars)
    assert caught.value.message.startswith(f"scalar {position}: expected")


@pytest.mark.parametrize("scalars", [5, None, "12345", b"12345"])
def test_scalars_that_are_no_sequence(sum_of_scalars, scalars):
    with raises(f"expected a sequence of scalar arguments, got {scalars!r}"):
        sum_of_scalars(scalars=scalars)


def test_the_number_of_scalars(sum_of_scalars):
    with raises("expected 5 scalar arguments, got 0"):
        sum_of_scalars()
