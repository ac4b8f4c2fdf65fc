# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of linear applies: which of them become one sum, and that results stay the same."""

import numpy as np
import pytest

import numpy_stencil
from file_cases import close, random_field
from twofour.options import CompileOptions
from twofour.targets.cpu.stages import emit

EXTENTS, HALO = (9, 8, 17), 4
WEIGHTS = {(0, 0, 0): 0.5, (-1, 0, 0): 0.25, (1, 0, 0): 0.125, (0, -1, 0): -0.25, (0, 1, 0): 0.75}
WEIGHTS |= {(0, 0, -1): 0.375, (0, 0, 1): -0.625}
FIELD = "!stencil.field<[-4,13]x[-4,12]x[-4,21]xf64>"
TEMP = "!stencil.temp<?x?x?xf64>"


def chain(applies, buffered=()):
    """So many stars of three axes after each other, some of whose results are memory."""
    lines = [
        f"func.func @chain(%u : {FIELD}, %v : {FIELD}) {{",
        f"%t0 = stencil.load %u : {FIELD} -> {TEMP}",
    ]
    temp = "%t0"
    for number in range(1, applies + 1):
        lines += [
            f"%t{number} = stencil.apply(%a = {temp} : {TEMP}) -> ({TEMP}) {{",
            "%s0 = arith.constant 0.0 : f64",
        ]
        for term, (offset, weight) in enumerate(WEIGHTS.items()):
            lines += [
                f"%x{term} = stencil.access %a{list(offset)} : {TEMP}",
                f"%w{term} = arith.constant {weight} : f64",
                f"%p{term} = arith.mulf %x{term}, %w{term} : f64",
                f"%s{term + 1} = arith.addf %s{term}, %p{term} : f64",
            ]
        lines += [f"stencil.return %s{len(WEIGHTS)} : f64", "}"]
        temp = f"%t{number}"
        if number in buffered:
            lines.append(f"%b{number} = stencil.buffer {temp} : {TEMP} -> {TEMP}")
            temp = f"%b{number}"
    stored = f"<[0, 0, 0], {list(EXTENTS)}>"
    return "\n".join(
        [*lines, f"stencil.store {temp} to %v({stored}) : {TEMP} to {FIELD}", "return", "}"]
    )


def sums_of(path, **options):
    """How many sums a program becomes."""
    return emit(str(path), CompileOptions(**options), "stencil").count('"stencil.weighted_sum"')


@pytest.mark.parametrize("applies, buffered", [(2, ()), (3, (2,)), (4, (2,))])
def test_few_terms_are_added(compiled_for_cpu, applies, buffered):
    """Two stars have 25 points and three 63, for 14 and 32 of both on their own."""
    u = random_field([extent + 2 * HALO for extent in EXTENTS], seed=1)
    text = chain(applies)
    program = compiled_for_cpu(text)
    assert sums_of(compiled_for_cpu.path) == 1 + len(buffered)
    got = program(u)
    _, expected = numpy_stencil.evaluate(text, "chain", [u, u.copy()]).arguments
    close(got, expected)
    same = compiled_for_cpu(chain(applies, buffered))
    np.testing.assert_array_equal(got, same(u))


def test_a_step_that_is_fused_is_one_sum(compiled_for_cpu):
    compiled_for_cpu(chain(3))
    assert sums_of(compiled_for_cpu.path) == 2
    # The function of one step, and the one of two.
    assert sums_of(compiled_for_cpu.path, fuse_steps=2) == 2
