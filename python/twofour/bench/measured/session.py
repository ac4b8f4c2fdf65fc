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
from twofour.bench.measured.fields import Fields
from twofour.bench.measured.measurements import (
    COMMAND,
    FILE,
    append,
    open_results,
    read_results,
)
from twofour.bench.measured.plan import FILE as PLAN
from twofour.bench.measured.plan import Entry, Group, Plan, load_plan
from twofour.bench.report import versions
from twofour.errors import SourceLocation, TwofourError
from twofour.runtime import Bundle
from twofour.runtime.devices.cuda import CudaDevice
from twofour.runtime.devices.device import Device
from twofour.runtime.progress import Progress

Baselines = Mapping[str, Callable[[Fields], Contestant]]


def measure_folder(folder: str, index: int = 0) -> None:
    """Measure what `twofour bench --prepare` wrote, on the CUDA device of this number.

    Raises TwofourError where there is no plan, no CuPy or no such device.
    """
    load_plan(folder)
    device = CudaDevice(index)
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
    are not the plan's, and those that the device cannot run.
    """
    plan = load_plan(folder)
    path = os.path.join(folder, FILE)
    header, found = read_results(folder, plan) if os.path.exists(path) else (None, {})
    if header is not None and header["device"] != device.name:
        raise TwofourError(
            f"expected device {header['device']} as before, got {device.name}", SourceLocation(path)
        )
    left = [group for group in plan.groups if group.key not in found]
    for group in left:
        for entry in group.entries:
            _bundle(folder, entry)
    with Progress("measuring", "groups") as progress, open_results(folder) as file:
        if header is None:
            append(file, _header(plan, device, rounds))
        for done, group in enumerate(left, len(plan.groups) - len(left)):
            progress(done, len(plan.groups))
            append(file, _measured(folder, group, device, clock, baselines, rounds))
        progress(len(plan.groups), len(plan.groups))
    return len(plan.groups)


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
    folder: str, group: Group, device: Device, clock: Clock, baselines: Baselines, rounds: int
) -> dict:
    """The results of one group; what is absent or wrong is named, and not timed."""
    right: list[Contestant] = []
    left_out: list[dict] = []

    def admit(contestant: Contestant) -> None:
        error, bound = _error(contestant, fields)
        if error <= bound:
            right.append(contestant)
        else:
            leave_out(contestant.name, f"wrong by {error:.3g}, more than {bound:.3g}")

    def leave_out(name: str, reason: str) -> None:
        left_out.append({"name": name, "reason": reason})

    try:
        fields = Fields(group, device)
    except MemoryError as failure:
        leave_out("all", f"arrays do not fit: {_one_line(failure)}")
        return {"group": group.key, "sets": 0, "timed": [], "left_out": left_out}
    for name, make in baselines.items():
        if name not in group.baselines:
            continue
        try:
            admit(make(fields))
        except Exception as failure:
            # Libraries raise what they like; everything else can still be measured.
            leave_out(name, _one_line(failure))
    for entry in group.entries:
        admit(_own(folder, group, entry, fields))
    samples = compete(right, device, clock, fields.sets, rounds)
    timed = [{"name": c.name, "steps": c.steps, **asdict(samples[c.name])} for c in right]
    return {"group": group.key, "sets": fields.sets, "timed": timed, "left_out": left_out}


def _one_line(failure: Exception) -> str:
    return " ".join(str(failure).split()) or type(failure).__name__


def _bundle(folder: str, entry: Entry) -> Bundle:
    """The bundle of an entry; raises TwofourError where it is missing or another one."""
    path = os.path.join(folder, entry.file)
    bundle = Bundle.load(path)
    if bundle.sha256 != entry.sha256:
        raise TwofourError(f"expected the bundle of {PLAN}, got another one", SourceLocation(path))
    return bundle


def _own(folder: str, group: Group, entry: Entry, fields: Fields) -> Contestant:
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
    rows = group.shape[0]
    return Contestant(entry.name, entry.steps, lambda number: bound[number].run(0, rows))


def _error(contestant: Contestant, fields: Fields) -> tuple[float, float]:
    """The error of a contestant's first sweep, and what it may be."""
    if not contestant.checked:
        return 0.0, 0.0
    fields.clear(0)
    contestant.sweep(0)
    fields.device.synchronize()
    return fields.error(0, contestant.steps)
