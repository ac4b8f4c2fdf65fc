# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour run`: read fields, advance them, write them, and say in one line what was done."""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import numpy as np

from twofour.api import FieldProgram, Stencil, compile
from twofour.cli.arrays import (
    bump,
    check_array_names,
    load_array,
    output_paths,
    result_paths,
)
from twofour.cli.compile_options import compile_options
from twofour.cli.plot import check_plot, plot
from twofour.cli.results import check_results, write_results
from twofour.errors import TwofourError
from twofour.files import STANDARD_STREAM
from twofour.runtime import Progress

MAX_POINTS = 2**59
SHORT_RUN = 1.0  # seconds
DEFAULT_SHAPES = {1: (1 << 20,), 2: (1024, 1024), 3: (128, 128, 128)}


def run(options: argparse.Namespace) -> None:
    """Run the command; raises TwofourError before anything is written."""
    if options.steps < 0:
        raise TwofourError(f"expected a number of steps >= 0, got '{options.steps}'")
    if options.profile and not options.target.startswith("sim:"):
        raise TwofourError(
            f"expected --profile with a target such as sim:sm_90, got '{options.target}'"
        )
    if options.threads is not None and options.target != "cpu":
        raise TwofourError(f"expected target 'cpu' for --threads, got '{options.target}'")
    wanted = asdict(compile_options(options))
    program = compile(
        options.source,
        boundary=options.boundary,
        threads=options.threads,
        device=options.device,
        **wanted,
    )
    is_kernel = isinstance(program, Stencil)
    inputs = _kernel_input(options, program) if is_kernel else _field_inputs(options, program)
    ranks = [program.rank] if is_kernel else [len(field.shape) for field in program.outputs]
    paths = output_paths(options.output, len(ranks)) if options.output is not None else []
    pictures = result_paths(options.plot, len(ranks)) if options.plot is not None else []
    for path, rank in zip(pictures, ranks, strict=False):
        check_plot(path, rank)
    check_results([*paths, *pictures], options.source)
    check_array_names(paths)
    results, times = _advance(options, program, inputs)
    files = [
        (path, partial(np.save, arr=result)) for path, result in zip(paths, results, strict=False)
    ]
    for number, (path, result) in enumerate(zip(pictures, results, strict=False)):
        element = program.element_type if is_kernel else program.outputs[number].element
        title = program.name if len(results) == 1 else f"{program.name}, result {number}"
        files.append((path, partial(plot, result, element, title)))
    write_results(files)
    report = sys.stderr if STANDARD_STREAM in paths else sys.stdout
    print(_report(program, inputs, options.steps, times), file=report)
    if options.profile:
        # The simulator is loaded where it is used only.
        from twofour.cli.profile import profile_text

        print(profile_text(program.device, program.bundle), file=report)


def _advance(
    options: argparse.Namespace, program: Stencil | FieldProgram, inputs: list[np.ndarray]
) -> tuple[list[np.ndarray], list[float]]:
    """The results, and the seconds that each run took.

    The first one also compiles what it is the first to need, and is the first to touch its memory:
    one that is short is made once more, so that its rate is that of the steps.
    Simulated ones are not: theirs says nothing of a GPU.
    """
    results, first = _timed(options, program, inputs)
    if first > SHORT_RUN or (program.device and program.device.name.startswith("sim:")):
        return results, [first]
    # Their memory is for the other run.
    del results
    results, seconds = _timed(options, program, inputs)
    return results, [first, seconds]


def _timed(
    options: argparse.Namespace, program: Stencil | FieldProgram, inputs: list[np.ndarray]
) -> tuple[list[np.ndarray], float]:
    with Progress("running") as progress:
        started = time.perf_counter()
        if isinstance(program, Stencil):
            results = [program(inputs[0], options.steps, progress=progress)]
        else:
            scalars = options.scalar or ()
            found = program(*inputs, steps=options.steps, scalars=scalars, progress=progress)
            results = list(found) if isinstance(found, tuple) else [found]
        return results, time.perf_counter() - started


def _kernel_input(options: argparse.Namespace, program: Stencil) -> list[np.ndarray]:
    """The domain: an array from a file, or a smooth bump on the extents asked for."""
    if options.scalar:
        raise TwofourError("expected --scalar with a file only, got a kernel")
    if options.input:
        if len(options.input) > 1:
            raise TwofourError(f"expected 1 input, got {len(options.input)}")
        if options.shape is not None:
            raise TwofourError("expected --input or --shape, got both")
        return [load_array(options.input[0], program.element_type, rank=program.rank)]
    shape = DEFAULT_SHAPES.get(program.rank, (32,) * program.rank)
    if options.shape is not None:
        shape = _parse_shape(options.shape, program.rank)
    return [bump(shape, program.element_type)]


def _parse_shape(text: str, rank: int) -> tuple[int, ...]:
    try:
        shape = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise TwofourError(f"expected extents as N,N,..., got '{text}'") from None
    if len(shape) != rank or min(shape) < 1:
        raise TwofourError(f"expected {rank} positive extents, got '{text}'")
    if math.prod(shape) > MAX_POINTS:
        raise TwofourError(f"expected at most {MAX_POINTS} points, got '{text}'")
    return shape


def _field_inputs(options: argparse.Namespace, program: FieldProgram) -> list[np.ndarray]:
    """The loaded fields: arrays from files, or the same bump in each."""
    if options.shape is not None:
        raise TwofourError("expected --shape with a kernel only: a file gives its extents")
    fields = program.inputs
    if options.input and len(options.input) != len(fields):
        raise TwofourError(f"expected {len(fields)} inputs, got {len(options.input)}")
    if options.input:
        return [
            load_array(path, field.element, shape=field.shape)
            for path, field in zip(options.input, fields, strict=True)
        ]
    return [bump(field.shape, field.element) for field in fields]


def _report(
    program: Stencil | FieldProgram,
    inputs: list[np.ndarray],
    steps: int,
    times: Sequence[float],
) -> str:
    if program.device is None:
        where = f"{program.threads} thread{'s' if program.threads > 1 else ''}"
    else:
        where = program.device.name
    how = f"({program.schedule}, {_arithmetic(program)}, {where})"
    seconds = times[-1]
    took = f"{seconds:.3g} s" + (f" ({times[0]:.3g} s the first time)" if times[1:] else "")
    if isinstance(program, FieldProgram) and program.has_time_loop:
        # How many points such a call updates is the program's own business.
        return f"{program.name}: {steps} calls of its time loop in {took} {how}"
    points = (
        program.updated_points(inputs[0].shape)
        if isinstance(program, Stencil)
        else program.updated_points
    )
    rate = points * steps / seconds / 1e9 if seconds > 0 else math.inf
    return f"{program.name}: {points} points x {steps} steps in {took}, {rate:.3g} GStencil/s {how}"


def _arithmetic(program: Stencil | FieldProgram) -> str:
    """The type of the arrays, or the one that tensor cores multiply them in."""
    on_tensor_cores = program.schedule in ("sparse", "dense")
    if program.bundle is not None and on_tensor_cores:
        return program.bundle.manifest["arithmetic"]
    return program.element_type.name
