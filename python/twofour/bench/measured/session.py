# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A session of measuring: every group of a plan that has no results yet."""

import datetime
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict

from twofour.bench.measured.baselines import BASELINES
from twofour.bench.measured.contest import (
    ROUNDS,
    SAMPLE_SECONDS,
    WARM_UP,
    Clock,
    Contestant,
    EventClock,
    compete,
)
from twofour.bench.measured.entrants import Entrants, one_line
from twofour.bench.measured.field_contest import admit_fields
from twofour.bench.measured.fields import Fields
from twofour.bench.measured.measurements import (
    COMMAND,
    FILE,
    append,
    open_results,
    read_results,
)
from twofour.bench.measured.plan import FILE as PLAN
from twofour.bench.measured.plan import Entry, FieldGroup, Group, Plan, load_plan
from twofour.bench.report import versions
from twofour.errors import DeviceFailure, SourceLocation, TwofourError, Unsuitable
from twofour.runtime import Bundle, open_device
from twofour.runtime.devices.cuda import CudaDevice
from twofour.runtime.devices.device import Device
from twofour.runtime.progress import Progress

Baselines = Mapping[str, Callable[[Fields], Contestant]]


def measure_folder(folder: str, device: str | None = None) -> None:
    """Measure what `twofour bench --prepare` wrote, on a CUDA device, cuda:N or the first.

    Raises TwofourError where there is no plan, no CuPy or no such device, and where it fails.
    """
    plan = load_plan(folder)
    device = open_device(device, plan.target)
    if not isinstance(device, CudaDevice):
        raise TwofourError(f"expected a CUDA device to measure on, got '{device.name}'")
    with device.active():
        done = measure(folder, device, EventClock(device.array_module))
    print(f"{folder}: {done} groups measured on {device.name}")


def measure(
    folder: str,
    device: Device,
    clock: Clock,
    baselines: Baselines = BASELINES,
    rounds: int = ROUNDS,
) -> int:
    """Measure the groups of a folder that have no results yet; returns the number of all results.

    Raises TwofourError for a folder without a plan, results of another plan or device, bundles that
    are not the plan's or that the device cannot run, and for a device that fails: the group that it
    fails on is left out by the next call.
    """
    plan = load_plan(folder)
    path = os.path.join(folder, FILE)
    header, found = read_results(folder, plan) if os.path.exists(path) else (None, {})
    if header is not None and header["device"] != device.name:
        raise TwofourError(
            f"expected device {header['device']} as before, got {device.name}", SourceLocation(path)
        )
    every = (*plan.groups, *plan.fields)
    left = [group for group in every if group.key not in found]
    for group in left:
        for entry in (group,) if isinstance(group, FieldGroup) else group.entries:
            _bundle(folder, entry)
    with Progress("measuring", "groups") as progress, open_results(folder) as file:
        if header is None:
            append(file, _header(plan, device, rounds))
        for done, group in enumerate(left, len(every) - len(left)):
            progress(done, len(every))
            line, failure = _measured(folder, group, device, clock, baselines, rounds)
            append(file, line)
            if failure is not None:
                # Nothing runs in this process any more.
                raise TwofourError(
                    f"expected {group.key} to run on {device.name}, got: {failure}; another call "
                    "goes on without it"
                )
        progress(len(every), len(every))
    return len(every)


def _header(plan: Plan, device: Device, rounds: int) -> dict:
    found = versions()
    runtime = getattr(getattr(device.array_module, "cuda", None), "runtime", None)
    if runtime is not None:
        found["CUDA driver"] = str(runtime.driverGetVersion())
    return {
        "plan": plan.sha256,
        "device": device.name,
        "versions": found,
        "date": datetime.date.today().isoformat(),
        "command": f"{COMMAND} DIR",
        "protocol": f"{rounds} interleaved rounds; before them each sweep ran {WARM_UP} times on "
        f"every set of inputs; a sample takes {1e3 * SAMPLE_SECONDS:g} ms at least",
    }


def _measured(
    folder: str,
    group: Group | FieldGroup,
    device: Device,
    clock: Clock,
    baselines: Baselines,
    rounds: int,
) -> tuple[dict, str | None]:
    """The results of one group, and how the device failed.

    What is absent or wrong is named, and not timed; where the device failed, nothing was.
    """
    entrants = Entrants()
    try:
        if isinstance(group, FieldGroup):
            sets = admit_fields(entrants, group, device, _bundle(folder, group))
        else:
            sets = _admit(entrants, folder, group, device, baselines)
        samples = compete(entrants.right, device, clock, sets, rounds)
    except MemoryError as failure:
        entrants.leave_out("all", f"arrays do not fit: {one_line(failure)}")
        return entrants.line(group, 0, []), None
    except (RuntimeError, DeviceFailure) as failure:
        # CuPy's errors are of the first kind.
        reason = one_line(failure.__cause__ or failure)
        entrants.leave_out("all", f"the device failed: {reason}")
        return entrants.line(group, 0, []), reason
    timed = [{"name": c.name, "steps": c.steps, **asdict(samples[c.name])} for c in entrants.right]
    return entrants.line(group, sets, timed), None


def _admit(
    entrants: Entrants, folder: str, group: Group, device: Device, baselines: Baselines
) -> int:
    """Admit who executes a stencil; the number of sets of inputs."""
    fields = Fields(group, device)
    _admit_baselines(entrants, fields, baselines)
    _admit_own(entrants, fields, folder)
    return fields.sets


def _admit_baselines(entrants: Entrants, fields: Fields, baselines: Baselines) -> None:
    for name, make in baselines.items():
        if name not in fields.group.baselines:
            continue
        try:
            contestant = make(fields)
            entrants.admit(contestant, *_error(contestant, fields))
        except Exception as failure:
            # Libraries raise what they like; everything else can still be measured.
            entrants.leave_out(name, one_line(failure))


def _admit_own(entrants: Entrants, fields: Fields, folder: str) -> None:
    for entry in fields.group.entries:
        try:
            contestant = _own(folder, entry, fields)
            entrants.admit(contestant, *_error(contestant, fields))
        except Unsuitable as refusal:
            entrants.leave_out(entry.name, refusal.message)


def _bundle(folder: str, entry: Entry | FieldGroup) -> Bundle:
    """The bundle of an entry; raises TwofourError where it is missing or another one."""
    path = os.path.join(folder, entry.file)
    bundle = Bundle.load(path)
    if bundle.sha256 != entry.sha256:
        raise TwofourError(f"expected the bundle of {PLAN}, got another one", SourceLocation(path))
    return bundle


def _own(folder: str, entry: Entry, fields: Fields) -> Contestant:
    """A kernel of a bundle: the launch that advances the whole domain."""
    device = fields.device
    bundle = _bundle(folder, entry)
    program = bundle.program
    kernel = device.load(bundle)[program.fused or program.single]
    below, above = (
        tuple(entry.steps * reach for reach in side)
        for side in (program.reach_lo, program.reach_hi)
    )
    aligned = kernel.aligned_for(below[-1])
    bound = [
        aligned.bind([fields.source(number, below, above)], [fields.targets[number]])
        for number in range(fields.sets)
    ]
    rows = fields.group.shape[0]
    return Contestant(entry.name, entry.steps, lambda number: bound[number].run(0, rows))


def _error(contestant: Contestant, fields: Fields) -> tuple[float, float]:
    """The error of a contestant's first sweep, and what it may be."""
    if not contestant.checked:
        return 0.0, 0.0
    fields.clear(0)
    contestant.sweep(0)
    fields.device.synchronize()
    return fields.error(0, contestant.steps)
