# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plan of a tuning: what is measured, written where the compiler is, read where the GPU is."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from twofour.cost import find
from twofour.cost.costs import Costs, Mma
from twofour.cost.explore import DOMAINS
from twofour.errors import SourceLocation, TwofourError
from twofour.runtime.bundle import Bundle
from twofour.runtime.manifest import LinearProgram
from twofour.tuned.choice import Choice
from twofour.tuned.database import Key
from twofour.tuned.documents import (
    amount,
    check_format,
    count,
    number,
    positive,
    read_document,
    text,
)

FORMAT = 1
NAME = "plan.json"
WHAT = "a plan of twofour tune"
# Members of the plan that are JSON as they are, and members of Costs that are not.
_PLAIN = ("name", "asked", "gpu", "constant", "fused_terms", "generator")
_KINDS = ("mma", "fma")
_FLAGS = ("reads_to_registers",)
_COUNTS = ("resident_warps", "resident_blocks", "blocks", "steps")
_POSITIVE = ("instructions", "bytes_in_flight")


@dataclass(frozen=True)
class Planned:
    """One candidate: the bundle of a choice, what it costs, and how fast that should be.

    `seconds_per_point` counts true steps and is predicted for a launch of `costs` on the domain of
    the plan; `counted_on` is a small domain of whole blocks, for the simulator.
    """

    file: str
    sha256: str
    choice: Choice
    costs: Costs
    seconds_per_point: float
    counted_on: tuple[int, ...]


@dataclass(frozen=True)
class TuningPlan:
    """What is tuned, and the candidates; the first is what the compiler takes untuned.

    `terms` are the offsets and weights of one step, `constant` is added to their sum.
    `fused_terms` counts the terms of a sweep. `asked` is the schedule that candidates have, or
    auto; `gpu` names the chip of twofour.cost.GPUS that was predicted for; `shape` is the domain to
    measure on.
    """

    name: str
    key: Key
    asked: str
    gpu: str
    shape: tuple[int, ...]
    terms: tuple[tuple[tuple[int, ...], float], ...]
    constant: float
    fused_terms: int
    candidates: tuple[Planned, ...]
    generator: str

    @property
    def offsets(self) -> list[tuple[int, ...]]:
        return [offset for offset, _ in self.terms]

    @property
    def weights(self) -> list[float]:
        return [weight for _, weight in self.terms]

    def as_json(self) -> dict:
        """The plan as its file holds it."""
        own = {name: getattr(self, name) for name in _PLAIN}
        return own | {
            "format": FORMAT,
            "key": self.key._asdict(),
            "shape": list(self.shape),
            "terms": [[*offset, weight] for offset, weight in self.terms],
            "candidates": [_planned_entry(planned) for planned in self.candidates],
        }

    @classmethod
    def from_json(cls, content: dict) -> TuningPlan:
        """What `as_json` gave; raises KeyError, TypeError, ValueError or TwofourError."""
        check_format(content, FORMAT)
        shape = tuple(map(count, content["shape"]))
        terms = tuple(
            (tuple(map(_integer, offset)), number(weight)) for *offset, weight in content["terms"]
        )
        candidates = tuple(map(_planned, content["candidates"]))
        if len(shape) not in DOMAINS or not terms or not candidates:
            raise ValueError("it has no domain of rank 1 to 3, no terms or no candidates")
        find(text(content["gpu"]))
        extents = [*(offset for offset, _ in terms), *(c.counted_on for c in candidates)]
        if any(len(each) != len(shape) for each in extents):
            raise ValueError(f"it has offsets or extents that do not fit rank {len(shape)}")
        return cls(
            name=text(content["name"]),
            key=Key.from_json(content["key"]),
            asked=text(content["asked"]),
            gpu=text(content["gpu"]),
            shape=shape,
            terms=terms,
            constant=number(content["constant"]),
            fused_terms=count(content["fused_terms"]),
            candidates=candidates,
            generator=text(content["generator"]),
        )


def read_plan(folder: str | os.PathLike) -> tuple[TuningPlan, str]:
    """The plan in a folder, and the SHA-256 of its file.

    Raises TwofourError, located at the file, where there is no plan that this version reads.
    """
    path = Path(folder) / NAME
    plan = read_document(path, WHAT, TuningPlan.from_json)
    return plan, hashlib.sha256(path.read_bytes()).hexdigest()


def read_bundles(folder: str | os.PathLike, plan: TuningPlan) -> list[Bundle]:
    """The bundles of a plan; raises TwofourError for one that is missing or not the plan's."""
    bundles = []
    for planned in plan.candidates:
        path = Path(folder) / planned.file
        bundle = Bundle.load(path)
        if bundle.sha256 != planned.sha256:
            raise TwofourError(
                f"expected the bundle of {NAME}, got another one", SourceLocation(str(path))
            )
        program = bundle.program
        what = (bundle.target, bundle.manifest["element"], bundle.manifest["arithmetic"])
        fits = isinstance(program, LinearProgram) and (
            what == (plan.key.target, plan.key.element, plan.key.arithmetic)
            and (program.rank, program.fused_steps) == (len(plan.shape), plan.key.steps)
        )
        if not fits:
            message = f"expected a bundle of the step that {NAME} is for, got another"
            raise TwofourError(message, SourceLocation(str(path)))
        bundles.append(bundle)
    return bundles


def _planned_entry(planned: Planned) -> dict:
    costs = asdict(replace(planned.costs, mma={}))
    costs["mma"] = [[*kind, each] for kind, each in planned.costs.mma.items()]
    return {
        "file": planned.file,
        "sha256": planned.sha256,
        "choice": planned.choice.as_json(),
        "costs": costs,
        "seconds_per_point": planned.seconds_per_point,
        "counted_on": list(planned.counted_on),
    }


def _planned(entry: dict) -> Planned:
    read = dict.fromkeys(_COUNTS, count) | dict.fromkeys(_POSITIVE, positive)
    read |= dict.fromkeys(_FLAGS, bool)
    costs = {
        name: read.get(name, amount)(value)
        for name, value in entry["costs"].items()
        if name not in _KINDS
    }
    costs["mma"] = {_mma(*kind): positive(each) for *kind, each in entry["costs"]["mma"]}
    costs["fma"] = {text(kind): positive(x) for kind, x in entry["costs"]["fma"].items()}
    file = text(entry["file"])
    if Path(file).name != file:
        raise ValueError(f"it has a bundle outside of its folder, {file!r}")
    return Planned(
        file=file,
        sha256=text(entry["sha256"]),
        choice=Choice.from_json(entry["choice"]),
        costs=Costs(**costs),
        seconds_per_point=positive(entry["seconds_per_point"]),
        counted_on=tuple(map(count, entry["counted_on"])),
    )


def _mma(operands: object, sparse: object, *extents: object) -> Mma:
    return Mma(text(operands), bool(sparse), *map(count, extents))


def _integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"it has {value!r} in the place of an offset")
    return value
