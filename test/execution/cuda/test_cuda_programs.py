# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from files on a GPU: fields with halos, several fields, rotation."""

import numpy as np
import pytest

import file_cases

BOUNDARIES = file_cases.BOUNDARIES
# f64 by plain code and by tensor cores rounds in another order than NumPy.
TOLERANCE = 1e-12


def inner(field):
    return field[1:-1, 1:-1]


def around(field):
    return field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]


def heat2d(steps, boundary, u):
    for _ in range(steps):
        u = file_cases.refilled(u, 1, boundary)
        new = u.copy()
        inner(new)[...] = 0.125 * around(u) + 0.5 * inner(u)
        u = new
    return file_cases.refilled(u, 1, boundary)


def wave2d(steps, boundary, old, now):
    for _ in range(steps):
        old, now = (file_cases.refilled(field, 1, boundary) for field in (old, now))
        new = now.copy()
        inner(new)[...] = inner(now) + 0.25 * around(now) - inner(old)
        old, now = now, new
    return file_cases.refilled(now, 1, boundary)


REFERENCES = {"heat2d": heat2d, "wave2d": wave2d}


@pytest.mark.parametrize("steps", [1, 3, 100])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_program(program_case, loaded, boundary, steps):
    program = loaded(program_case)
    inputs = [
        file_cases.random_field(field.shape, seed) for seed, field in enumerate(program.inputs)
    ]
    got = program(*inputs, steps=steps, boundary=boundary)
    expected = REFERENCES[program_case["program"]](steps, boundary, *inputs)
    scale = max(1.0, np.abs(expected).max())
    file_cases.close(got / scale, expected / scale, TOLERANCE * steps)
