# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stencils for tests of outer products, direct sums to compare with, schedules made by passes."""

import itertools
import math

import numpy as np

from outer_executor import Machine
from twofour.context import make_context
from twofour.layout.outer_schedule import Schedule
from twofour.mlir import ir
from twofour.mlir_support import nested_ops
from twofour.pipeline import parse_pipeline, run_pipeline


def box(rank: int, radius: int) -> tuple[list, list]:
    """A full box; no two weights are equal."""
    offsets = list(itertools.product(range(-radius, radius + 1), repeat=rank))
    return offsets, [1.0 + k for k in range(len(offsets))]


def star(rank: int, radius: int) -> tuple[list, list]:
    """The axes alone; no two weights are equal."""
    distances = [d for d in range(-radius, radius + 1) if d]
    offsets = [(0,) * rank]
    for axis, distance in itertools.product(range(rank), distances):
        offsets.append(tuple(distance if a == axis else 0 for a in range(rank)))
    return offsets, [1.0 + k for k in range(len(offsets))]


def random_stencil(rng, rank: int) -> tuple[list, list]:
    """Distinct offsets around any centre and asymmetric weights, from sparse to a full box."""
    extents = rng.integers(1, 6 if rank == 2 else 4, rank)
    corner = rng.integers(-4, 3, rank)
    points = [tuple(int(x) for x in p) for p in np.argwhere(np.ones(extents)) + corner]
    density = rng.choice([0.3, 0.7, 1.0])
    kept = [p for p in points if rng.random() < density] or points[:1]
    return kept, rng.uniform(0.5, 2, len(kept)).tolist()


def direct_sum(source, low, domain, offsets, weights) -> np.ndarray:
    """out[x] = sum_i weights[i] * in[x + offsets[i]] in float64; `low` halo points before 0."""
    result = np.zeros(domain)
    for offset, weight in zip(offsets, weights, strict=True):
        corner = [h + o for h, o in zip(low, offset, strict=True)]
        result += (
            weight * source[tuple(slice(c, c + e) for c, e in zip(corner, domain, strict=True))]
        )
    return result


def executed(plan: Schedule, offsets, weights, n: int, copies: int = 2):
    """(result, direct sum, counts by sweep) of a schedule on a domain of whole blocks."""
    rank = len(offsets[0])
    ui = math.lcm(*(sweep.block.unroll[0] for sweep in plan.sweeps))
    uk = math.lcm(*(sweep.block.unroll[1] for sweep in plan.sweeps))
    domain = [ui * n] * (rank - 1) + [copies * uk * n]
    if any(sweep.block.skew for sweep in plan.sweeps):
        domain[-1] += 4 * uk * n
    low = [max(0, -min(o[a] for o in offsets)) for a in range(rank)]
    high = [max(0, max(o[a] for o in offsets)) for a in range(rank)]
    shape = [lo + e + hi for lo, e, hi in zip(low, domain, high, strict=True)]
    source = np.random.default_rng(7).uniform(-1, 1, shape)
    machine = Machine(plan, source, low, domain, n)
    return machine.run(), direct_sum(source, low, domain, offsets, weights), machine.counts


def check_execution(plan: Schedule, offsets, weights, n: int, copies: int = 2) -> list:
    """The schedule's result equals the direct sum; returns the counts by sweep."""
    got, expected, counts = executed(plan, offsets, weights, n, copies)
    covered = ~np.isnan(got)
    assert covered.any()
    assert covered.all() or any(sweep.block.skew for sweep in plan.sweeps)
    bound = 5e-15 * sum(map(abs, weights))
    np.testing.assert_allclose(got[covered], expected[covered], rtol=0, atol=bound)
    return counts


def plan_by_passes(
    offsets, weights, *, cover="", block="", reorganize="by=load", element="f64"
) -> Schedule:
    """The schedule that the passes make of a weighted sum.

    The keywords are the options of stencil-select-cover, -block and -reorganize.
    """
    rank = len(offsets[0])
    rows = ", ".join(str(list(offset)) for offset in offsets)
    values = ", ".join(repr(float(weight)) for weight in weights)
    text = f"""
!temp = !stencil.temp<{rank} : i64, {element}>
func.func @step(%t: !temp) {{
  %r = "stencil.weighted_sum"(%t) {{
    offsets = [{rows}], weights = array<f64: {values}>}} : (!temp) -> !temp
  return
}}
"""
    passes = (
        f"stencil-to-scatter,stencil-select-cover{{{cover}}},stencil-block{{{block}}},"
        f"stencil-schedule-outer,stencil-reorganize{{{reorganize}}}"
    )
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, parse_pipeline(passes))
        return nested_ops(module.operation, "stencil.outer_sum")[0].plan()


def check_passes(path) -> None:
    """Asymmetric stencils of both ranks through all passes: verified after each, then run."""
    plane = [(-1, 0), (0, -2), (0, 0), (0, 1), (1, 1), (2, 0)]
    weights = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    for offsets, unroll in (
        (plane, "2"),
        ([(0, *offset) for offset in plane] + [(-1, 0, 0), (2, 0, 1)], "2,1"),
    ):
        for option in ("orthogonal", "diagonal"):
            plan = plan_by_passes(
                offsets,
                weights[: len(offsets)],
                cover=f"option={option}",
                block=f"unroll={unroll}",
                reorganize="by=splice",
            )
            assert plan.by == "splice"
            check_execution(plan, offsets, weights[: len(offsets)], 6, copies=1)
