# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour.stencil` and `twofour.compile` on kernels: the same bits by whatever way."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kernel_cases as cases
import twofour
from twofour.errors import TwofourError
from twofour.runtime.devices.simulated import SimulatedDevice

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
NAME = "wrf_advection5_2d"
BOUNDARY = ("constant(0.75)", "periodic")


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("schedule", ["auto", *cases.SCHEDULES])
def test_weights_and_names(dtype, schedule):
    kernel = cases.KERNELS[NAME]
    u = cases.stored(cases.random_values(1, (31, 40), dtype), dtype)
    expected = cases.stepper(kernel, dtype, "direct", BOUNDARY).advance(u, 3)
    # In another order than the kernel's.
    weights = dict(reversed(list(zip(kernel.offsets, kernel.weights, strict=True))))
    options = {"dtype": dtype, "schedule": schedule, "threads": 1}
    from_weights = twofour.stencil(weights, boundary=BOUNDARY, **options)
    by_name = twofour.compile(NAME, boundary=",".join(BOUNDARY), **options)
    for step in (from_weights, by_name):
        cases.assert_same_bits(step(u, steps=3), expected)
        assert step.schedule == ("direct" if schedule == "auto" else schedule)


@pytest.mark.parametrize("name", ["shapiro_filter2d_n2", "kumar_isotropic27"])
def test_without_reassociation_terms_are_added_one_by_one(name):
    kernel = cases.KERNELS[name]
    u = cases.stored(cases.random_values(1, (23, 19, 24)[-kernel.rank :], "f32"), "f32")
    options = {"dtype": "f32", "boundary": "periodic"}
    sparse = twofour.compile(name, schedule="sparse", **options)(u, steps=2)
    one_by_one = twofour.compile(name, reassociate=False, **options)(u, steps=2)
    cases.assert_same_bits(one_by_one, sparse)
    together = twofour.compile(name, **options)(u, steps=2)
    assert together.tobytes() != sparse.tobytes()
    weights = dict(zip(kernel.offsets, kernel.weights, strict=True))
    for reassociate, expected in ((True, together), (False, sparse)):
        step = twofour.stencil(weights, reassociate=reassociate, **options)
        cases.assert_same_bits(step(u, steps=2), expected)


def test_any_layout_of_the_input():
    u = cases.random_values(1, (31, 40), "f64")
    step = twofour.compile(NAME, dtype="f64", boundary="reflect")
    expected = step(u)
    wide = np.repeat(np.repeat(u, 2, 0), 3, 1)
    frozen = u.copy()
    frozen.flags.writeable = False
    views = [np.asfortranarray(u), wide[::2, ::3], u[::-1, ::-1].copy()[::-1, ::-1], frozen]
    for view in views:
        cases.assert_same_bits(step(view), expected)
        np.testing.assert_array_equal(view, u)
    assert step(u).flags.c_contiguous


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_what_was_compiled_can_be_pickled_and_copied(target):
    dtype = "f64" if target == "cpu" else "f16"
    kernel = cases.KERNELS[NAME]
    weights = dict(zip(kernel.offsets, kernel.weights, strict=True))
    u = cases.stored(cases.random_values(1, (31, 40), dtype), dtype)
    step = twofour.stencil(weights, boundary=BOUNDARY, target=target, dtype=dtype)
    expected = step(u, steps=2)
    for other in (pickle.loads(pickle.dumps(step)), copy.deepcopy(step)):
        assert isinstance(other, twofour.Stencil) and repr(other) == repr(step)
        cases.assert_same_bits(other(u, steps=2), expected)


@pytest.mark.parametrize("device", ["sim", SimulatedDevice("sm_90")], ids=["name", "open"])
def test_what_was_loaded_can_be_pickled_and_copied(tmp_path, device):
    u = cases.stored(cases.random_values(1, (40,), "f16"), "f16")
    twofour.stencil({(0,): 0.5}, target="sm_80", dtype="f16").save(tmp_path / "half")
    step = twofour.runtime.load(tmp_path / "half", device=device)
    expected = step(u, steps=2)
    for other in (pickle.loads(pickle.dumps(step)), copy.deepcopy(step)):
        cases.assert_same_bits(other(u, steps=2), expected)


def test_programs_are_compiled_again_from_their_files(monkeypatch):
    program = twofour.compile(EXAMPLES / "gray_scott.mlir", boundary="periodic")
    assert isinstance(program, twofour.FieldProgram)
    fields = [cases.random_values(n, field.shape, "f64") for n, field in enumerate(program.inputs)]
    other = pickle.loads(pickle.dumps(program))
    for one, another in zip(program(*fields, steps=3), other(*fields, steps=3), strict=True):
        cases.assert_same_bits(one, another)
    monkeypatch.setattr(program, "_path", "-")
    with pytest.raises(TwofourError, match="expected a program from a file to pickle"):
        pickle.dumps(program)


COMPILE_IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import twofour

OPTIONS = {"schedule": "direct"}, {"schedule": "sparse"}, {"schedule": "outer"}

def run(number):
    weights = {(i, j, 0): (i + 2) * (j + 3) * number / 64 for i in (-1, 0, 1) for j in (-1, 0, 1)}
    twofour.stencil(weights, boundary="periodic", dtype="f32", **OPTIONS[number % 3])
    step = twofour.stencil(weights, boundary="periodic", dtype="f32")
    # Kernels of rows of so many channels are compiled when such an array comes.
    channels = number % 5 + 1
    u = np.arange(40 * channels, dtype=np.float32).reshape(5, 8, channels)
    expected = sum(w * np.roll(u, (-i, -j), (0, 1)) for (i, j, _), w in weights.items())
    return np.allclose(step(u), expected)

with ThreadPoolExecutor(6) as pool:
    print(all(pool.map(run, range(1, 7))))
"""


# Kernels for arrays larger than the caches are compiled when such an array comes.
CALL_IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor
import sys
import numpy as np
import twofour

step = twofour.stencil({(0, 0): 0.5, (0, 1): 0.25, (1, 0): 0.25}, dtype="f64", threads=1)
simulated = twofour.stencil({(0, 0): 0.5, (0, 1): 0.5}, dtype="f64", target="sim:sm_90")
large = np.ones((3000, 3000))
sys.setswitchinterval(1e-4)

def run(number):
    u = np.full((5, 8), float(number))
    return (step(large) == 1).all() and all((simulated(u, 2) == number).all() for _ in range(6))

with ThreadPoolExecutor(4) as pool:
    print(all(pool.map(run, range(4))))
"""


@pytest.mark.parametrize("program", [COMPILE_IN_THREADS, CALL_IN_THREADS])
def test_several_threads(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.stdout, done.stderr) == (b"True\n", b"")


def test_what_was_compiled_says_what_it_is():
    step = twofour.compile("heat2d_ftcs", dtype="f64", schedule="sparse")
    assert repr(step) == "<Stencil heat2d_ftcs: 2 axes of f64, sparse on cpu>"


def test_numbers_of_numpy_are_numbers():
    counts = {"fuse_steps": np.int64(2), "threads": np.int64(1)}
    step = twofour.stencil({(0,): 0.5, (1,): 0.25}, dtype="f64", boundary="periodic", **counts)
    u = np.arange(9.0)
    np.testing.assert_allclose(step(u, np.int64(2)), step(step(u)), rtol=1e-15)


def test_updated_points():
    step = twofour.stencil({(0, -1): 0.5, (2, 0): 0.5}, boundary=("fixed", "zero"))
    assert [step.updated_points(shape) for shape in ((5, 4), [2, 9], np.array([3, 1]))] == [
        12,
        0,
        1,
    ]
    for shape in ((3,), 5, (2, "x"), (-1, 3), (2, 3, 4)):
        with pytest.raises(TwofourError, match="expected a shape of 2 extents, got"):
            step.updated_points(shape)


def test_weights_that_are_zero_after_rounding_have_no_part():
    """Half of the least f32 is rounded to zero, anything more is not; and so is none in f64."""
    u = np.arange(1, 11, dtype=np.float32)
    for weight, dtype, updated in (
        (2.0**-150, "f32", 10),
        (1.5 * 2.0**-150, "f32", 5),
        (-(2.0**-150), "f64", 5),
    ):
        step = twofour.stencil({(0,): 0.5, (5,): weight}, dtype=dtype)
        values = u.astype(np.float64) if dtype == "f64" else u
        assert step.updated_points((10,)) == np.count_nonzero(step(values) != values) == updated
