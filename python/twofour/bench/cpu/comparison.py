# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The project against baselines on one workload: results are checked, then sweeps are timed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.c_library import COPY_STREAM, PEAK, Ceilings
from twofour.bench.cpu.contest import Contestant, ContestantFailed, Samples, compete
from twofour.bench.cpu.own import OWN
from twofour.bench.cpu.workload import Workload
from twofour.errors import TwofourError

Makers = Mapping[str, Callable[[], Contestant]]


@dataclass(frozen=True)
class LeftOut:
    """Why a contestant was not timed; `wrong`: its result is not that of the stencil."""

    name: str
    reason: str
    wrong: bool = False


@dataclass
class Comparison:
    """Samples by contestant, `steps` time steps a sweep, with ceilings beside them."""

    workload: Workload
    steps: int
    samples: dict[str, Samples] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    copied_bytes: int = 0
    peak_flops: int = 0

    def picoseconds(self, name: str) -> float | None:
        """The median time of a point and step."""
        if name not in self.samples:
            return None
        return self.samples[name].median / self.workload.points / self.steps * 1e12

    def over(self, baseline: str, own: str = OWN) -> float | None:
        """The baseline's median time over the project's."""
        if baseline not in self.samples or own not in self.samples:
            return None
        return self.samples[baseline].median / self.samples[own].median

    def range_over(self, baseline: str) -> str | None:
        """The least and the most of that in one round."""
        if baseline not in self.samples or OWN not in self.samples:
            return None
        pairs = zip(self.samples[baseline].seconds, self.samples[OWN].seconds, strict=True)
        ratios = [b / o for b, o in pairs]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    def of_copy(self, kind: str = COPY_STREAM) -> float | None:
        """The project's bytes a second, each point read and written once a step, over a copy's."""
        if kind not in self.samples or OWN not in self.samples:
            return None
        own = self.workload.bytes * self.steps / self.samples[OWN].median
        return own / (self.copied_bytes / self.samples[kind].median)

    def of_peak(self) -> float | None:
        """The project's operations a second over those of multiply-adds in registers."""
        if PEAK not in self.samples or OWN not in self.samples:
            return None
        own = self.workload.flops * self.steps / self.samples[OWN].median
        return own / (self.peak_flops / self.samples[PEAK].median)

    def as_dict(self) -> dict:
        """All samples, and what they are of, as plain values for JSON."""
        w = self.workload
        return {
            "stencil": w.label,
            "dtype": w.dtype,
            "extents": list(w.extents),
            "threads": w.threads,
            "boundary": w.boundary,
            "steps": self.steps,
            "points": w.points,
            "terms": w.terms,
            "copied_bytes": self.copied_bytes,
            "peak_flops": self.peak_flops,
            "timed": {name: asdict(samples) for name, samples in self.samples.items()},
            "left_out": [asdict(one) for one in self.left_out],
        }


def compare(
    workload: Workload,
    arrays: Arrays,
    steps: int,
    own: Sequence[Contestant],
    baselines: Makers,
    rounds: int,
    ceilings: Ceilings | None,
    cpus: Sequence[int],
) -> Comparison:
    """Time the project's contestants and all baselines whose results agree with the first of them.

    Baselines are made here: those that cannot be are named. Without `ceilings` there are none.
    """
    found = Comparison(workload, steps)
    inside = arrays.interior
    first, *others = own
    reference = np.array(first.result()[inside])
    makers = {one.name: (lambda one=one: one) for one in others} | dict(baselines)
    timed = [first, *checked(makers, reference, workload.bound(steps), found, inside)]
    if ceilings is not None:
        timed += ceilings.contestants(arrays, workload.dtype, workload.threads, cpus)
        found.copied_bytes = 2 * arrays.both[0].nbytes
        found.peak_flops = ceilings.peak_flops(workload.dtype, workload.threads)
    found.samples, failed = compete(timed, rounds)
    found.left_out += [LeftOut(name, reason) for name, reason in failed.items()]
    return found


def checked(
    makers: Makers,
    reference: np.ndarray,
    bound: float,
    found: Comparison,
    inside: tuple[slice, ...] = (),
) -> list[Contestant]:
    """The contestants whose results are within `bound` of the reference; others are left out."""
    right = []
    for name, make in makers.items():
        try:
            one = make()
            result = one.result()[inside]
        except (TwofourError, ContestantFailed) as failure:
            reason = failure.message if isinstance(failure, TwofourError) else str(failure)
            found.left_out.append(LeftOut(name, reason))
            continue
        error = _distance(result, reference)
        if error <= bound:
            right.append(one)
        else:
            reason = f"wrong by {error:.3g}, more than {bound:.3g}"
            found.left_out.append(LeftOut(name, reason, wrong=True))
    return right


def _distance(result: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference; infinite for another shape, NaN where there is a NaN."""
    if result.shape != reference.shape:
        return float("inf")
    if result.ndim == 1:
        result, reference = result[None], reference[None]
    with np.errstate(invalid="ignore", over="ignore"):
        # Row by row: large arrays fit memory once only.
        rows = zip(result, reference, strict=True)
        return float(np.max([np.abs(np.subtract(a, b, dtype=float)).max() for a, b in rows]))
