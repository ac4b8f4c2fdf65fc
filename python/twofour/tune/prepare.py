# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour tune --prepare`: rank all layouts, compile the best few, and write the plan."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from twofour import __version__
from twofour.analysis import Source, analyse, load_program
from twofour.cost import GpuModel
from twofour.cost.explore import DOMAINS, reference_gpu
from twofour.diagnostics import located_in
from twofour.errors import SourceLocation, TwofourError
from twofour.files import check_output, make_folder, write_files
from twofour.frontend.source import ProgramText
from twofour.kernels import Kernel
from twofour.mlir_support import error_at
from twofour.options import AUTO, CompileOptions
from twofour.program import select_function
from twofour.runtime.bundle import Bundle
from twofour.targets.gpu.build import compile_gpu
from twofour.targets.gpu.candidates import arithmetic_of, fastest
from twofour.targets.gpu.fusion_depth import best_depth, fusion_depths
from twofour.targets.gpu.report import domain
from twofour.tune.arguments import COUNT
from twofour.tune.exploration import Layout, Step, ranked_layouts, shortlist
from twofour.tune.plan import NAME, Planned, TuningPlan
from twofour.tune.result import NAME as RESULT
from twofour.tune.result import read_result
from twofour.tuned.choice import SCHEDULES
from twofour.tuned.documents import document_bytes
from twofour.tuned.lookup import key_of


def prepare(
    source: Source,
    options: CompileOptions,
    gpu: GpuModel,
    folder: str | os.PathLike,
    *,
    count: int = COUNT,
    shape: Sequence[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TuningPlan:
    """Write at most `count` bundles and the plan to measure them into a folder, which is made.

    Layouts are ranked for `gpu` on the domain `shape`, by default that of twofour.cost.explore.
    Bundles are compiled for `options`, whatever a database says. Raises TwofourError for a program
    that is not one linear step, for options that do not fit it, and where nothing can be written;
    no plan is written then.
    """
    source = source if isinstance(source, Kernel) else ProgramText.of(source)
    if options.fuse_steps == AUTO:
        steps = best_depth(fusion_depths(source, options))
        options = replace(options, fuse_steps=steps)
    module, filename = load_program(source, options)
    found = analyse(module, filename, options, is_kernel=isinstance(source, Kernel))
    if not found.is_step:
        with found.module.context, located_in(filename):
            function = select_function(found.module, found.program.name, filename)
            raise error_at(function, "expected one linear step of one field to tune")
    sweep, rank = found.fused or found.single, len(found.single.reach_lo)
    if shape is None:
        shape = DOMAINS.get(rank)
    if shape is None or len(shape) != rank:
        expected = f"rank {rank}" if rank in DOMAINS else f"rank 1 to {max(DOMAINS)}"
        got = f"rank {rank}" if shape is None else f"{len(shape)} extents"
        raise TwofourError(f"expected a domain of {expected} to tune, got {got}")
    arithmetic = arithmetic_of(found.element, options)
    step = Step(sweep, found.single, found.element, arithmetic, gpu, tuple(shape))
    usual, schedules = _schedules(step, options)
    layouts = shortlist(ranked_layouts(step, schedules), usual, count)
    if not layouts:
        raise TwofourError(f"expected a layout of schedule '{options.schedule}', got none")
    make_folder(folder)
    check_output(str(Path(folder) / NAME))
    candidates, files = [], []
    for number, layout in enumerate(layouts):
        bundle = compile_gpu(source, options, choice=layout.choice).bundle
        data = bundle.to_bytes()
        candidates.append(_planned(f"{number}.tfb", bundle, data, layout))
        files.append((str(Path(folder) / f"{number}.tfb"), partial(_write, data=data)))
        if progress is not None:
            progress(number + 1, len(layouts))
    plan = TuningPlan(
        name=found.program.name,
        key=key_of(found, arithmetic, options),
        asked=options.schedule,
        gpu=gpu.name,
        shape=step.shape,
        terms=tuple(zip(found.single.offsets, found.single.weights, strict=True)),
        constant=found.single.constant,
        fused_terms=len(sweep.offsets),
        candidates=tuple(candidates),
        generator=f"twofour {__version__}",
    )
    data = document_bytes(plan.as_json())
    _check_result(folder, hashlib.sha256(data).hexdigest())
    write_files([*files, (str(Path(folder) / NAME), partial(_write, data=data))])
    return plan


def _check_result(folder: str | os.PathLike, plan: str) -> None:
    """Raise TwofourError where another plan was measured in a folder: its result would be lost."""
    result = read_result(folder)
    if result is not None and result.plan != plan:
        raise TwofourError(
            "expected no result of another plan; remove it, or name another folder by --prepare",
            SourceLocation(str(Path(folder) / RESULT)),
        )


def _schedules(step: Step, options: CompileOptions) -> tuple[str, Sequence[str]]:
    """The schedule that the compiler takes, and those that are to be compared."""
    if options.schedule != "auto":
        asked = options.schedule
        asked = "dense" if (asked, step.element) == ("sparse", "f64") else asked
        return asked, (asked,)
    gpu = reference_gpu(options.chip)
    best, _ = fastest(step.sweep, step.element, step.arithmetic, gpu, step.single)
    return best.schedule if best else "simt", SCHEDULES


def _planned(file: str, bundle: Bundle, data: bytes, layout: Layout) -> Planned:
    program = bundle.program
    return Planned(
        file=file,
        sha256=bundle.sha256,
        choice=layout.choice,
        costs=layout.costs,
        seconds_per_point=layout.prediction.seconds_per_point,
        counted_on=tuple(domain(bundle.kernels[program.fused or program.single])),
    )


def _write(file: BinaryIO, data: bytes) -> None:
    file.write(data)
