# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour tune --measure`: check and time the candidates of a plan, with NumPy and CuPy only.

Every candidate is checked first. Then come rounds: in each of them every candidate gets one sample,
the time of so many launches that it lasts SAMPLE_SECONDS, on input sets that take turns and do not
fit into the second-level cache together. Samples are written after every round; another call goes
on with what is missing. On the simulator nothing is timed: the instructions that it counts replace
those of the plan, and the cost model makes a time of them.
"""

import datetime
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from twofour.cost import find, predict
from twofour.errors import DeviceFailure, SourceLocation, TwofourError, Unsuitable
from twofour.runtime.bundle import Bundle
from twofour.runtime.devices.device import BoundLaunch, Device
from twofour.runtime.devices.opening import open_device
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.tune.checks import difference, expected, magnitude, tolerance, wrong_result
from twofour.tune.launches import InputSets, main_kernel
from twofour.tune.plan import Planned, TuningPlan, read_bundles, read_plan
from twofour.tune.result import (
    MEASURED,
    MIN_ROUNDS,
    NAME,
    SIMULATED,
    Result,
    Samples,
    read_result,
)

SAMPLE_SECONDS = 0.01
MAX_LAUNCHES = 256  # of a sample
# Input sets hold so many times the second-level cache together, but are this many at most.
CACHES, MAX_SETS = 4, 16

Report = Callable[[int, int], None]


def measure(
    folder: str | os.PathLike,
    device: Device | str | None = None,
    *,
    rounds: int = MIN_ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
    today: Callable[[], datetime.date] = datetime.date.today,
    progress: Report | None = None,
) -> tuple[TuningPlan, Result]:
    """Measure what is missing in a folder that was prepared, up to `rounds` samples a candidate.

    `device` is as for twofour.runtime.load. `clock` returns seconds. Raises TwofourError for a
    folder without a plan, a result of another plan or device, a device that is not there or of
    another architecture, and fewer than MIN_ROUNDS rounds.
    """
    check_rounds(rounds)
    plan, digest = read_plan(folder)
    bundles = read_bundles(folder, plan)
    opened = open_for(plan.key.target, device)
    is_simulated = isinstance(opened, SimulatedDevice)
    basis = SIMULATED if is_simulated else MEASURED
    new = Result(digest, basis, opened.name, "", 1, [Samples() for _ in bundles])
    result = _resumed(folder, new)
    save = partial(_save, folder, result, today)
    with opened.active():
        _check(plan, bundles, opened, result, save)
        if is_simulated:
            _simulate(plan, bundles, opened, result, save, progress)
        elif not result.is_complete(rounds):
            result.sets = _set_count(plan)
            _Timing(plan, bundles, opened, result, clock, save).run(rounds, progress)
    return plan, result


def check_rounds(rounds: int) -> None:
    """Raise TwofourError for fewer rounds than medians need."""
    if rounds < MIN_ROUNDS:
        raise TwofourError(f"expected at least {MIN_ROUNDS} rounds, got {rounds}")


def open_for(target: str, device: Device | str | None) -> Device:
    """The device to tune for `target` on; raises TwofourError where it is none of that chip."""
    opened = open_device(device, target)
    if not isinstance(opened, SimulatedDevice) and target != f"sm_{opened.capability}":
        raise TwofourError(
            f"expected a device of {target} to tune for it, got sm_{opened.capability} "
            f"({opened.name})"
        )
    return opened


def _resumed(folder: str | os.PathLike, new: Result) -> Result:
    """What was measured before, or the new result."""
    found = read_result(folder)
    if found is None:
        return new
    for what in ("plan", "device"):
        expected, got = getattr(new, what), getattr(found, what)
        if expected != got:
            raise TwofourError(
                f"expected what was measured for {what} {expected}, got {got}; remove the file to "
                "begin anew",
                SourceLocation(str(Path(folder) / NAME)),
            )
    if len(found.samples) != len(new.samples):
        raise TwofourError(
            f"expected samples of {len(new.samples)} layouts, got {len(found.samples)}; remove the "
            "file to begin anew",
            SourceLocation(str(Path(folder) / NAME)),
        )
    return found


def _save(folder: str | os.PathLike, result: Result, today: Callable[[], datetime.date]) -> None:
    result.date = today().isoformat()
    result.save(folder)


def _check(
    plan: TuningPlan,
    bundles: Sequence[Bundle],
    device: Device,
    result: Result,
    save: Callable[[], None],
) -> None:
    """Run every candidate on a small domain; those that are wrong are left out."""
    for number, (samples, bundle) in enumerate(zip(result.samples, bundles, strict=True)):
        if not samples.checked:
            with _failures(plan, number, device, samples, save):
                samples.wrong = wrong_result(plan, bundle, device)
            samples.checked = True
            save()


@contextmanager
def _failures(
    plan: TuningPlan, number: int, device: Device, samples: Samples, save: Callable[[], None]
) -> Iterator[None]:
    """Leave out a candidate that the device cannot take, or on which it fails.

    After a failure nothing runs in this process any more, so it ends the call.
    """

    def leave_out(reason: str) -> None:
        samples.wrong, samples.checked = reason, True
        save()

    try:
        yield
    except Unsuitable as refusal:
        leave_out(refusal.message)
    except (RuntimeError, DeviceFailure) as failure:
        reason = failure.__cause__ or failure
        leave_out(" ".join(str(reason).split()) or type(reason).__name__)
        raise TwofourError(
            f"expected {plan.candidates[number].choice} to run on {device.name}, got: "
            f"{samples.wrong}; another call goes on without it"
        ) from None


class _Timing:
    """The candidates that are right, bound to common input sets."""

    def __init__(
        self,
        plan: TuningPlan,
        bundles: Sequence[Bundle],
        device: Device,
        result: Result,
        clock: Callable[[], float],
        save: Callable[[], None],
    ):
        self.plan, self.device, self.clock, self.save = plan, device, clock, save
        self.samples = dict(enumerate(result.samples))
        self.sets = InputSets(bundles, device, plan.shape, magnitude(plan), result.sets)
        self.bound: dict[int, list[BoundLaunch]] = {}
        for n in self._right():
            with self._failures(n):
                self.bound[n] = self.sets.bind(bundles[n])

    def _right(self) -> list[int]:
        return [n for n, samples in self.samples.items() if samples.wrong is None]

    def run(self, rounds: int, progress: Report | None) -> None:
        """Check all results on the large domain, then take samples, round by round."""
        self._check()
        timed: dict[int, Callable[[], None]] = {}
        for n in self._right():
            with self._failures(n):
                timed[n] = self._warmed_up(n)
        if not timed:
            self.save()
            return
        try:
            for number in range(rounds):
                # Another candidate begins each round, so that none profits from its place.
                turn = number % len(timed)
                for n in [*timed][turn:] + [*timed][:turn]:
                    seconds = self.samples[n].seconds
                    if len(seconds) <= number:
                        with self._failures(n):
                            seconds.append(self._seconds(timed[n]))
                    if progress is not None:
                        done = sum(len(self.samples[m].seconds) for m in timed)
                        progress(done, rounds * len(timed))
                self.save()
        finally:
            # Whoever interrupts keeps the samples of the round that was begun.
            self.save()

    def _failures(self, n: int) -> AbstractContextManager:
        return _failures(self.plan, n, self.device, self.samples[n], self.save)

    def _check(self) -> None:
        """Leave out the candidates whose results on the large domain are wrong."""
        exact: dict[int, np.ndarray] = {}
        for n in self._right():
            with self._failures(n):
                self.sets.clear()
                self.bound[n][0].run(0, self.plan.shape[0])
                self.device.synchronize()
                self.samples[n].wrong = self._wrong(exact)

    def _wrong(self, exact: dict[int, np.ndarray]) -> str | None:
        """What is wrong with the first output; `exact` keeps its slabs by their first rows."""
        for rows, values, got in self.sets.slabs():
            if rows.start not in exact:
                exact[rows.start] = expected(values, self.plan, self.plan.key.steps)
            wrong = difference(got, exact[rows.start], tolerance(self.plan))
            if wrong is not None:
                return f"from row {rows.start} of the domain to measure on {wrong}"
        return None

    def _warmed_up(self, n: int) -> Callable[[], None]:
        """The launches of one sample, after all of them ran once."""
        bound, samples = self.bound[n], self.samples[n]
        trial = self.sets.launcher(bound, len(bound))
        trial()
        if not samples.launches:
            seconds = self._seconds(trial) / len(bound)
            wanted = math.ceil(SAMPLE_SECONDS / max(seconds, SAMPLE_SECONDS / MAX_LAUNCHES))
            # Whole turns of the sets.
            samples.launches = math.ceil(wanted / len(bound)) * len(bound)
        launches = self.sets.launcher(bound, samples.launches)
        launches()
        return launches

    def _seconds(self, launches: Callable[[], None]) -> float:
        self.device.synchronize()
        begin = self.clock()
        launches()
        self.device.synchronize()
        return self.clock() - begin


def _set_count(plan: TuningPlan) -> int:
    one = 2 * ELEMENT_TYPES[plan.key.element].itemsize * math.prod(plan.shape)
    return min(MAX_SETS, max(2, math.ceil(CACHES * find(plan.gpu).l2_bytes / one)))


def _simulate(
    plan: TuningPlan,
    bundles: Sequence[Bundle],
    device: Device,
    result: Result,
    save: Callable[[], None],
    progress: Report | None,
) -> None:
    for number, (samples, bundle) in enumerate(zip(result.samples, bundles, strict=True)):
        if samples.wrong is None and not samples.seconds:
            samples.seconds = [_simulated(plan, plan.candidates[number], bundle, device)]
            samples.launches = 1
            save()
        if progress is not None:
            progress(number + 1, len(bundles))


def _simulated(plan: TuningPlan, planned: Planned, bundle: Bundle, device: Device) -> float:
    """Seconds of a launch by the model, from counters of a launch on whole blocks."""
    name = main_kernel(bundle).name
    device.profiles.pop(name, None)
    sets = InputSets([bundle], device, planned.counted_on, magnitude(plan), 1)
    sets.bind(bundle)[0].run(0, planned.counted_on[0])
    profile = device.profiles.pop(name)
    counters, expected = profile.counters, planned.costs
    share = counters.mma / profile.points / sum(expected.mma.values()) if expected.mma else 0
    costs = replace(
        expected,
        instructions=counters.instructions / profile.points,
        mma={kind: share * number for kind, number in expected.mma.items()},
    )
    points = math.prod(plan.shape)
    return predict(find(plan.gpu), costs, points).seconds_per_point * points * plan.key.steps
