# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was measured: every raw sample, and what follows from them."""

from __future__ import annotations

import math
import os
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from twofour.cost.explore import about_fastest
from twofour.tune.plan import TuningPlan
from twofour.tuned.documents import (
    MAX_COUNT,
    check_format,
    count,
    positive,
    read_document,
    text,
    write_document,
)

FORMAT = 1
NAME = "result.json"
WHAT = "a result of twofour tune"
MEASURED, SIMULATED = "measured", "simulated"
MIN_ROUNDS = 9


@dataclass
class Samples:
    """What is known of one candidate.

    `checked` tells whether its results are right, `wrong` why they are not. `launches` are those of
    one sample; `seconds` holds a sample a round, each the time of all its launches. Simulated times
    are one sample of one launch.
    """

    checked: bool = False
    wrong: str | None = None
    launches: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass
class Result:
    """The samples of a plan's candidates on one device.

    `plan` is the SHA-256 of the plan's file, `basis` measured or simulated, `date` that of the last
    sample (YYYY-MM-DD), `sets` the number of input sets.
    """

    plan: str
    basis: str
    device: str
    date: str
    sets: int
    samples: list[Samples]

    def as_json(self) -> dict:
        """The result as its file holds it."""
        return {**vars(self), "format": FORMAT, "samples": [dict(vars(s)) for s in self.samples]}

    @classmethod
    def from_json(cls, content: dict) -> Result:
        """What `as_json` gave; raises KeyError, TypeError or ValueError."""
        check_format(content, FORMAT)
        if content["basis"] not in (MEASURED, SIMULATED):
            raise ValueError(f"it has basis {content['basis']!r}")
        names = {name: text(content[name]) for name in ("plan", "basis", "device", "date")}
        return cls(**names, sets=count(content["sets"]), samples=[*map(_read, content["samples"])])

    def is_complete(self, rounds: int = MIN_ROUNDS) -> bool:
        """Whether every candidate that is right has so many samples (simulated: one)."""
        wanted = rounds if self.basis == MEASURED else 1
        return all(
            s.checked and (s.wrong is not None or len(s.seconds) >= wanted) for s in self.samples
        )

    def seconds_per_point(self, plan: TuningPlan) -> list[float | None]:
        """The median of each candidate, by point and true step; None for wrong ones."""
        points = math.prod(plan.shape) * plan.key.steps
        return [
            statistics.median(s.seconds) / (s.launches * points)
            if s.seconds and s.wrong is None
            else None
            for s in self.samples
        ]

    def fastest(self, plan: TuningPlan) -> int | None:
        """The number of the fastest candidate, of those about as fast the first; None: no right."""
        found = self.seconds_per_point(plan)
        right = [number for number, seconds in enumerate(found) if seconds is not None]
        return about_fastest(right, found.__getitem__)[0] if right else None

    def save(self, folder: str | os.PathLike) -> None:
        """Write the file; raises TwofourError where that is not possible."""
        write_document(Path(folder) / NAME, self.as_json())


def read_result(folder: str | os.PathLike) -> Result | None:
    """The result in a folder, None where there is none yet; raises TwofourError for a bad file."""
    path = Path(folder) / NAME
    return read_document(path, WHAT, Result.from_json) if path.exists() else None


def _rate(seconds_per_point: float) -> str:
    rate = 1e-9 / seconds_per_point
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"


def report(plan: TuningPlan, result: Result) -> str:
    """The candidates for people, the fastest first."""
    seconds = result.seconds_per_point(plan)
    steps = f", {plan.key.steps} steps in one sweep" if plan.key.steps > 1 else ""
    rounds = max((len(s.seconds) for s in result.samples), default=0)
    how = f"medians of {rounds} rounds" if result.basis == MEASURED else "by counters and the model"
    lines = [
        f"{plan.name}: {plan.key.arithmetic}{steps} on {result.device}, {result.basis} ({how})"
    ]
    order = sorted(range(len(seconds)), key=lambda n: seconds[n] or math.inf)
    for number in order:
        planned, samples = plan.candidates[number], result.samples[number]
        expected = f"predicted {_rate(planned.seconds_per_point)}"
        untuned = ", untuned" if number == 0 else ""
        if seconds[number] is None:
            lines.append(f"  {planned.choice}: left out: {samples.wrong}")
        else:
            lines.append(
                f"  {planned.choice}: {_rate(seconds[number])} GStencil/s ({expected}{untuned})"
            )
    return "\n".join(lines)


def _read(entry: dict) -> Samples:
    seconds = [positive(value) for value in entry["seconds"]]
    launches, wrong = entry["launches"], entry["wrong"]
    known = type(launches) is int and 0 <= launches < MAX_COUNT
    if not known or (seconds and not launches):
        raise ValueError(f"it has {launches!r} launches for {len(seconds)} samples")
    if wrong is not None:
        text(wrong)
    return Samples(bool(entry["checked"]), wrong, launches, seconds)
