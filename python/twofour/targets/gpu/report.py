# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels cost: counters of a simulated sweep, and what ptxas says they need."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from twofour.dialects.stencil.transforms.copy_to_gpu import is_copy_kernel
from twofour.options import CompileOptions
from twofour.runtime import AxisBoundary, Bundle, field_element_type
from twofour.runtime.calls import advance_fields
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.devices.stepping import linear_stepper
from twofour.runtime.dtypes import ElementType, to_storage
from twofour.runtime.loops import Loop, Step, nested_launches
from twofour.runtime.manifest import KernelSpec, LinearProgram
from twofour.runtime.programs import field_stepper
from twofour.sim import chips
from twofour.targets.gpu.ptx import Resources, assemble

BLOCKS = 2  # along the fastest axis of the domain that a sweep is simulated on
POINTS = 1 << 18  # of a simulated sweep, where blocks are not larger
MAX_POINTS = 1 << 20
MAX_CELLS = 1 << 27  # of an array, halo included


def gpu_report(bundle: Bundle, options: CompileOptions) -> dict:
    """Costs of a bundle's main kernel, as plain values for JSON.

    `counters` are those of one simulated sweep per output point, on a domain of whole blocks, with
    a halo around it; None where arrays would be too large. `registers` and
    `spills` (bytes) are None without ptxas; `occupancy` is the part of a multiprocessor's warps
    that registers, threads and shared memory let be resident, None without ptxas.
    """
    main = _main_kernel(bundle)
    found = assemble(bundle.ptx, options.chip)
    needed: Resources | None = found and found.resources[main.name]
    occupancy = None
    if needed is not None:
        chip = chips.find(options.chip)
        occupancy = chips.occupancy(chip, needed.registers, main.threads, main.shared_bytes)
    return {
        "counters": _counters(bundle, main, options.chip),
        "registers": needed and needed.registers,
        "spills": needed and needed.spill_bytes,
        "shared_bytes": main.shared_bytes,
        "occupancy": occupancy,
    }


def _main_kernel(bundle: Bundle) -> KernelSpec:
    """The kernel that most points of a run go through."""
    program = bundle.program
    if isinstance(program, LinearProgram):
        return bundle.kernels[program.fused or program.single]
    names = [launch.kernel for launch in nested_launches(program.steps)]
    return bundle.kernels[next((n for n in names if not is_copy_kernel(n)), names[0])]


def _counters(bundle: Bundle, main: KernelSpec, chip: str) -> dict[str, float] | None:
    device = SimulatedDevice(chip)
    program = bundle.program
    if isinstance(program, LinearProgram):
        shape = domain(main)
        reach = zip(program.reach_lo, program.reach_hi, strict=True)
        with_halo = [n + lo + hi for n, (lo, hi) in zip(shape, reach, strict=True)]
        if math.prod(with_halo) > MAX_CELLS:
            return None
        _sweep(bundle, shape, device)
    else:
        if sum(math.prod(field.shape) for field in program.fields) > MAX_POINTS:
            return None
        inputs = [_ones(f.element, f.shape) for f in program.fields if f.loaded]
        steps = tuple(map(_single_rounds, program.steps))
        boundary = [AxisBoundary("fixed")] * program.boundary_rank
        kernels = device.load(bundle)
        stepper = field_stepper(replace(program, steps=steps), kernels, device, boundary)
        advance_fields(stepper, inputs, 1, [1] * len(program.scalars))
    profile = device.profiles[main.name]
    totals = profile.counters.as_dict()
    return {name: total / profile.points for name, total in totals.items()}


def _single_rounds(step: Step) -> Step:
    """A step whose loops have one iteration each: counters are given per point."""
    if not isinstance(step, Loop):
        return step
    body = tuple(map(_single_rounds, step.body))
    return replace(step, lower=0, upper=1, step=1, body=body)


def domain(main: KernelSpec) -> list[int]:
    """The domain of whole blocks that a sweep is simulated on."""
    shape = [main.tile[0] * main.march, *main.tile[1:]]
    shape[-1] *= max(BLOCKS, POINTS // math.prod(shape))
    return shape


def _sweep(bundle: Bundle, shape: Sequence[int], device: SimulatedDevice) -> None:
    """Run the main kernel once, on a periodic domain."""
    program = replace(bundle.program, fields=None)
    element = field_element_type(bundle.manifest["element"])
    boundary = [AxisBoundary("periodic")] * program.rank
    stepper = linear_stepper(program, device.load(bundle), device, element, boundary)
    stepper.advance(_ones(element, shape), program.fused_steps)


def _ones(element: ElementType, shape: Sequence[int]) -> np.ndarray:
    return to_storage(np.ones(shape), element)
