# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels cost: counters of a simulated sweep, and what ptxas says they need."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from twofour.options import CompileOptions
from twofour.runtime import AxisBoundary, Bundle, field_element_type
from twofour.runtime.device_stepping import linear_stepper
from twofour.runtime.dtypes import ElementType, to_storage
from twofour.runtime.manifest import KernelSpec, LinearProgram
from twofour.runtime.programs import from_bundle
from twofour.runtime.simulated import SimulatedDevice
from twofour.sim import chips
from twofour.targets.gpu.ptx import Resources, assemble

BLOCKS = 2  # along the fastest axis of the domain that a sweep is simulated on
MAX_POINTS = 1 << 20


def gpu_report(bundle: Bundle, options: CompileOptions) -> dict:
    """Costs of a bundle's main kernel, as plain values for JSON.

    `counters` are those of one simulated sweep per output point, on a domain of whole blocks, with
    a halo around it; None where a file's fields hold more than MAX_POINTS points. `registers` and
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
    return bundle.kernels[program.launches[0].kernel]


def _counters(bundle: Bundle, main: KernelSpec, chip: str) -> dict[str, float] | None:
    device = SimulatedDevice(chip)
    program = bundle.program
    if isinstance(program, LinearProgram):
        _sweep(bundle, main, device)
    else:
        if sum(math.prod(field.shape) for field in program.fields) > MAX_POINTS:
            return None
        inputs = [_ones(f.element, f.shape) for f in program.fields if f.loaded]
        from_bundle(bundle, device)(*inputs, steps=1, scalars=[1] * len(program.scalars))
    profile = device.profiles[main.name]
    totals = profile.counters.as_dict()
    return {name: total / profile.points for name, total in totals.items()}


def _sweep(bundle: Bundle, main: KernelSpec, device: SimulatedDevice) -> None:
    """Run the main kernel once, on a periodic domain of whole blocks."""
    shape = [main.tile[0] * main.march, *main.tile[1:]]
    shape[-1] *= BLOCKS
    program = replace(bundle.program, fields=None)
    element = field_element_type(bundle.manifest["element"])
    boundary = [AxisBoundary("periodic")] * program.rank
    stepper = linear_stepper(program, device.load(bundle), device, element, boundary)
    stepper.advance(_ones(element, shape), program.fused_steps)


def _ones(element: ElementType, shape: Sequence[int]) -> np.ndarray:
    return to_storage(np.ones(shape), element)
