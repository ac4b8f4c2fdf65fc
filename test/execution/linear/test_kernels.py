# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 79 kernels on both CPU routes against the float64 reference.

By default each kernel runs once, with boundaries, extents, element types and schedules taken in
turn; the tests marked `full` run all of them.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import kernel_cases as cases
from turns import in_turn


@dataclass(frozen=True)
class Case:
    """A kernel in one element type on an array of one shape, for several numbers of steps."""

    kernel: str
    dtype: str
    shape: tuple[int, ...]
    boundary: tuple[str, ...]

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"{self.kernel}-{self.dtype}-{shape}-{','.join(self.boundary)}"


def check(case: Case, schedules, steps=cases.STEPS, bounded: bool = True) -> dict[str, float]:
    """Compare all schedules with the reference and with each other, bit for bit.

    The error bound of f64 and f32 is compared where `bounded`, that of the 16-bit types always.
    Returns the largest relative error and the largest share of the bound over the step counts.
    """
    kernel = cases.KERNELS[case.kernel]
    values_of = "f16" if case.dtype == "bf16" else case.dtype
    seed = len(case.kernel) + sum(case.shape)
    states, sums = cases.exact_run(kernel, values_of, case.shape, case.boundary, max(steps), seed)
    bounds = None
    if bounded or case.dtype not in cases.TOLERANCE:
        pairs = schedules[0] == "direct" and cases.rows_in_pairs(kernel)
        bounds = cases.error_bounds(states, sums, case.dtype, kernel, case.boundary, pairs=pairs)
    u = cases.stored(states[0], case.dtype)
    steppers = [
        cases.stepper(kernel, case.dtype, schedule, case.boundary) for schedule in schedules
    ]
    largest = {"relative": 0.0, "bound": 0.0}
    for count in steps:
        if not cases.holds(kernel, case.dtype, count):
            continue
        what = f"{case}, {count} steps"
        first, *others = [stepper.advance(u, count) for stepper in steppers]
        for other in others:
            cases.assert_same_bits(other, first, what)
        error = np.abs(cases.numbers(first) - states[count])
        if bounds is not None:
            bound = bounds[count]
            assert cases.within(first, states[count], bound), f"{what}: error {error.max()}"
            share = (error[bound > 0] / bound[bound > 0]).max(initial=0.0)
            largest["bound"] = max(largest["bound"], share)
        if case.dtype in cases.TOLERANCE:
            relative = cases.relative_error(error, states[: count + 1], kernel, case.boundary)
            assert relative <= cases.TOLERANCE[case.dtype], f"{what}: relative error {relative}"
            largest["relative"] = max(largest["relative"], relative)
    return largest


def sample() -> list[tuple[Case, str]]:
    """Each kernel once; boundaries, extents, dtypes and schedules rotate at coprime paces."""
    chosen = []
    for number, (name, kernel) in enumerate(cases.KERNELS.items()):
        shapes, boundaries = cases.shapes(kernel.rank), cases.boundaries(kernel.rank)
        case = Case(
            name,
            cases.DTYPES[number % 4],
            shapes[11 * number % len(shapes)],
            boundaries[5 * number % len(boundaries)],
        )
        chosen.append((case, cases.SCHEDULES[number // 4 % 2]))
    return chosen


SAMPLE = sample()


def test_sample_has_every_kernel_mode_extent_dtype_and_schedule():
    found = [case for case, _ in SAMPLE]
    assert {case.kernel for case in found} == set(cases.KERNELS) and len(cases.KERNELS) == 79
    assert {(case.dtype, schedule) for case, schedule in SAMPLE} == {
        (dtype, schedule) for dtype in cases.DTYPES for schedule in cases.SCHEDULES
    }
    for rank in (1, 2, 3):
        of_rank = [case for case in found if len(case.shape) == rank]
        assert {mode for case in of_rank for mode in case.boundary} >= set(cases.MODES)
        assert {extent for case in of_rank for extent in case.shape} == set(cases.EXTENTS)
    assert any(len(set(case.boundary)) > 1 for case in found)


@pytest.mark.parametrize(("case", "schedule"), SAMPLE, ids=lambda value: str(value))
def test_kernel(case, schedule):
    check(case, [schedule])


LOPSIDED = ["ddx_upwind3", "advect2d_ctu", "acoustic_iso2d_o16", "elastic_staggered_div3d_o4"]


@pytest.mark.parametrize("name, dtype", list(in_turn(zip(LOPSIDED), [*zip(cases.DTYPES)], 2)))
def test_boundaries_and_extents(name, dtype):
    """Every boundary meets every extent, on both routes, for lopsided kernels and a wide one."""
    rank = cases.KERNELS[name].rank
    shapes = cases.shapes(rank)
    for number, boundary in enumerate(cases.boundaries(rank)):
        for shape in shapes[number % 7 :: 7] if rank > 1 else shapes:
            check(Case(name, dtype, shape, boundary), cases.SAME_BITS, steps=[1, 2])


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("name", ["sobel5x5_x", "kumar_isotropic27"])
def test_sums_of_rows(name, dtype):
    """Kernels that add inputs of a row first, some of them subtracted, under every boundary."""
    rank = cases.KERNELS[name].rank
    shapes = cases.shapes(rank)
    for number, boundary in enumerate(cases.boundaries(rank)):
        for shape in shapes[number % 12 :: 12]:
            check(Case(name, dtype, shape, boundary), ["direct"], steps=[1, 2])


@pytest.mark.full
@pytest.mark.parametrize("name", cases.KERNELS)
def test_kernel_everywhere(name):
    """All boundaries, shapes and dtypes, both routes, 1, 2 and 10 steps."""
    rank = cases.KERNELS[name].rank
    largest = {dtype: {"relative": 0.0, "bound": 0.0} for dtype in cases.DTYPES}
    for boundary in cases.boundaries(rank):
        for shape in cases.shapes(rank):
            for dtype, most in largest.items():
                case = Case(name, dtype, shape, boundary)
                for schedules in (cases.SAME_BITS, ["direct"]):
                    found = check(case, schedules, bounded=False)
                    for key in found:
                        most[key] = max(most[key], found[key])
    print(name, *(f"{d} {k} {v:.3g}" for d, m in largest.items() for k, v in m.items() if v))
