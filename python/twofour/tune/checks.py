# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a candidate computes its stencil: domains small and large against NumPy, in float64."""

import math
from dataclasses import replace

import numpy as np

from twofour.accuracy import error_bound, sweep_error
from twofour.reach import halo_of
from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.bundle import Bundle
from twofour.runtime.calls import advance_array
from twofour.runtime.devices.device import Device
from twofour.runtime.devices.stepping import linear_stepper
from twofour.runtime.dtypes import field_element_type, from_storage, to_storage
from twofour.swept import swept
from twofour.tune.plan import TuningPlan

# Points of the small domain by rank, beside what fused steps reach: more than one block, and
# neither rows nor columns of whole ones.
SMALL = {1: (5003,), 2: (37, 603), 3: (9, 13, 203)}


def checked_steps(plan: TuningPlan) -> int:
    """Steps that a candidate is checked by: one sweep, and where it is fused, a single step."""
    return plan.key.steps + (plan.key.steps > 1)


def magnitude(plan: TuningPlan) -> float:
    """The largest input, a power of two, whose results stay below 1 in all steps of a check."""
    gain = sum(map(abs, plan.weights)) ** checked_steps(plan)
    return 2.0 ** -max(0, math.ceil(math.log2(gain))) if gain > 0 else 1.0


def tolerance(plan: TuningPlan, singles: int = 0) -> float:
    """How far results may be from the exact ones after a sweep, and so many single steps.

    Inputs are those of `magnitude`; twofour.accuracy has the formulas.
    """
    dtype, largest, steps = plan.key.arithmetic, magnitude(plan), plan.key.steps
    gain = sum(map(abs, plan.weights))
    one_by_one = error_bound(dtype, plan.weights, largest, steps + singles, matrix=True)
    grown = largest * gain**steps
    at_once = float(sweep_error(dtype, plan.fused_terms, grown, grown, matrix=True))
    for _ in range(singles):
        grown = gain * (grown + at_once)
        single = float(sweep_error(dtype, len(plan.terms), grown, grown, matrix=True))
        at_once = gain * at_once + single
    # The constant is one more term of every step.
    constant = float(sweep_error(dtype, 1, plan.constant, abs(plan.constant), matrix=True))
    return max(one_by_one, at_once) + (steps + singles) * max(1, gain) ** steps * constant


def wrong_result(plan: TuningPlan, bundle: Bundle, device: Device) -> str | None:
    """Why a candidate's results on a small periodic domain are wrong; None where they are right."""
    steps, rank = checked_steps(plan), len(plan.shape)
    program = replace(bundle.program, fields=None)
    halo = list(zip(*halo_of(plan.offsets), strict=True))
    shape = [n + 2 * steps * sum(sides) for n, sides in zip(SMALL[rank], halo, strict=True)]
    element = field_element_type(bundle.manifest["element"])
    random = np.random.default_rng(0)
    values = magnitude(plan) * random.integers(-128, 129, shape) / 128
    stored = to_storage(values, element)
    boundary = [AxisBoundary("periodic")] * rank
    stepper = linear_stepper(program, device.load(bundle), device, element, boundary)
    got = from_storage(np.asarray(advance_array(stepper, stored, steps)), element)
    width = [(steps * below, steps * above) for below, above in halo]
    around = np.pad(from_storage(stored, element), width, mode="wrap")
    return difference(got, expected(around, plan, steps), tolerance(plan, steps - plan.key.steps))


def expected(values: np.ndarray, plan: TuningPlan, steps: int) -> np.ndarray:
    """The exact results of some steps, without the halo that they read; float64."""
    return swept(values, plan.offsets, plan.weights, steps, plan.constant)


def difference(got: np.ndarray, exact: np.ndarray, allowed: float) -> str | None:
    """What is wrong with `got`, in words; None where it is within `allowed` of `exact`."""
    apart = np.abs(got - exact)
    # A NaN is not within anything.
    wrong = ~(apart <= allowed)
    if not wrong.any():
        return None
    return (
        f"{int(wrong.sum())} of {wrong.size} points differ from a NumPy reference by more than "
        f"{allowed:.3g}, the first at {[int(n) for n in np.argwhere(wrong)[0]]}"
    )
