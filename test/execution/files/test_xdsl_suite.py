# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stencil programs of xDSL's own tests, on the CPU and a simulated GPU, against NumPy.

Runs where the environment variable TWOFOUR_XDSL_TESTS names a checkout of xDSL's repository.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable
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
from twofour.runtime.devices.simulated import SimulatedDevice  # noqa: E402
from twofour.runtime.manifest import LinearProgram  # noqa: E402
from twofour.runtime.programs import launch_plan  # noqa: E402
from twofour.targets.cpu.build import CompileOptions, compile_module  # noqa: E402
from twofour.targets.cpu.executable import CpuExecutable  # noqa: E402
from twofour.targets.gpu.build import compile_gpu  # noqa: E402
from xdsl_suite import Program, programs, random_arguments  # noqa: E402

MOST_SIMULATED = 2**21
# Relative to the largest value, by the size of the elements.
TOLERANCE = {2: 1e-2, 4: 1e-5, 8: 1e-12}


def run_compiled(text: str, filename: str, function: str, arguments: list) -> list:
    """The arguments after a run of the compiled program; the given ones are left alone."""
    with make_context():
        module = import_xdsl(text, filename)
    compiled = compile_module(module, filename, CompileOptions(function=function))
    values = [np.copy(value) if np.ndim(value) else value for value in arguments]
    CpuExecutable(compiled).function()(values)
    return values


def run_simulated(text: str, filename: str, function: str, arguments: list) -> list:
    """The same on a simulated GPU; UnsupportedProgram for what runs without a plan, or too long."""
    if sum(map(np.size, arguments)) > MOST_SIMULATED:
        raise UnsupportedProgram("arrays too large to simulate")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.mlir"
        path.write_text(text)
        bundle = compile_gpu(str(path), CompileOptions("sim:sm_90", function=function)).bundle
    if isinstance(bundle.program, LinearProgram):
        raise UnsupportedProgram("a linear step, which has tests of its own")
    device = SimulatedDevice("sm_90")
    with device.active():
        values = [device.array(value) if np.ndim(value) else value for value in arguments]
        launch_plan(bundle.program, device.load(bundle), device).prepare()(values)
        return [device.result(value) if np.ndim(value) else value for value in values]


def outcome(program: Program, run: Callable) -> tuple[str, str]:
    """What became of a program, and why; AssertionError where it computes something else."""
    try:
        with make_context():
            import_xdsl(program.text, str(program))
    except TwofourError as error:
        return "rejected", error.message
    try:
        arguments = random_arguments(program)
        expected = evaluate(program.text, program.function, arguments).arguments
    except (UnsupportedProgram, IndexError) as error:
        return "not evaluated", str(error)
    try:
        got = run(program.text, str(program), program.function, arguments)
    except UnsupportedProgram as error:
        return "not run", str(error)
    except TwofourError as error:
        return "not compiled", str(error)
    for reference, value in zip(expected, got, strict=True):
        if np.ndim(value):
            largest = max(1.0, float(np.abs(reference).max()))
            np.testing.assert_allclose(
                value / largest,
                reference / largest,
                rtol=0,
                atol=TOLERANCE[value.dtype.itemsize],
                err_msg=str(program),
            )
    return "agrees", ""


@pytest.mark.parametrize(("run", "least"), [(run_compiled, 30), (run_simulated, 20)])
def test_accepted_programs_agree_with_numpy(run, least):
    counts = Counter()
    for program in programs(Path(CHECKOUT)):
        verdict, reason = outcome(program, run)
        counts[verdict] += 1
        print(f"{verdict:14}{program} {reason}", flush=True)
    print(dict(counts))
    assert counts["agrees"] >= least
