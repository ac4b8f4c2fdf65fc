# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is to be measured: the file plan.json beside the bundles."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass

from twofour.errors import SourceLocation, TwofourError
from twofour.files import read_file, write_files
from twofour.reach import Extents, Reach, halo_of

FORMAT = 4
FILE = "plan.json"


def own_name(schedule: str, steps: int) -> str:
    """What a kernel of this project is called among others that execute its stencil."""
    return schedule if steps == 1 else f"{schedule} x {steps}"


@dataclass(frozen=True)
class Entry:
    """A kernel of this project: `steps` time steps a sweep by a schedule, in a bundle file.

    `sha256` is that of the file's bytes. `chosen` tells whether the compiler takes that schedule by
    itself.
    """

    schedule: str
    steps: int
    file: str
    sha256: str
    chosen: bool

    @property
    def name(self) -> str:
        """What it is called among others that execute the stencil."""
        return own_name(self.schedule, self.steps)


@dataclass(frozen=True)
class Group:
    """A stencil with everything that executes it; its rates are compared with each other.

    `label` is its name in tables, `shape` the outputs per axis, `offsets` and `weights` the terms
    of one step, `baselines` what it is compared with, of twofour.bench.measured.baselines.
    """

    kernel: str
    label: str
    domain: str
    dtype: str
    shape: Extents
    offsets: tuple[Extents, ...]
    weights: tuple[float, ...]
    baselines: tuple[str, ...]
    entries: tuple[Entry, ...]

    @property
    def key(self) -> str:
        """The name of its results."""
        return f"{self.kernel}-{self.dtype}"

    @property
    def steps(self) -> int:
        """The most time steps of a sweep."""
        return max((entry.steps for entry in self.entries), default=1)

    @property
    def reach(self) -> Reach:
        """How many cells one step needs below and above an output, per axis."""
        return halo_of(self.offsets)


@dataclass(frozen=True)
class FieldGroup:
    """A program over several fields, in a bundle file, and the loops that it is compared with.

    `label` is its name in tables, `shape` the points per axis that it computes, with `halo` cells
    around them that stay as they are. `loaded` and `stored` are positions of arguments; after a
    call argument i takes over the array of argument rotation[i]. `loops` are the statements of a
    point, a list for each loop over all points (twofour.bench.field_example).
    """

    program: str
    label: str
    dtype: str
    shape: Extents
    halo: int
    loaded: tuple[int, ...]
    stored: tuple[int, ...]
    rotation: tuple[int, ...]
    loops: tuple[tuple[str, ...], ...]
    file: str
    sha256: str

    @property
    def key(self) -> str:
        """The name of its results."""
        return f"{self.program}-{self.dtype}"


@dataclass(frozen=True)
class Plan:
    """Groups to measure on a chip that runs `target`, and what the plan was made with."""

    target: str
    versions: dict[str, str]
    groups: tuple[Group, ...]
    fields: tuple[FieldGroup, ...] = ()

    @property
    def sha256(self) -> str:
        """What tells this plan from others: the SHA-256 of its file."""
        return hashlib.sha256(self._bytes()).hexdigest()

    def save(self, folder: str) -> None:
        """Write the file; raises TwofourError where that is not possible."""
        write_files([(os.path.join(folder, FILE), lambda file: file.write(self._bytes()))])

    def _bytes(self) -> bytes:
        return (json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n").encode()


def load_plan(folder: str) -> Plan:
    """Read the plan of a folder; raises TwofourError where there is none that can be read."""
    path = os.path.join(folder, FILE)
    data = read_file(path)
    try:
        found = json.loads(data)
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}")
        groups, fields = tuple(map(_group, found["groups"])), tuple(map(_fields, found["fields"]))
        return Plan(found["target"], found["versions"], groups, fields)
    except (ValueError, KeyError, TypeError) as failure:
        raise TwofourError(
            f"expected what `twofour bench --prepare` writes, got: {failure}", SourceLocation(path)
        ) from None


def _group(found: dict) -> Group:
    return Group(
        **{
            **found,
            "shape": tuple(found["shape"]),
            "offsets": tuple(map(tuple, found["offsets"])),
            "weights": tuple(found["weights"]),
            "baselines": tuple(found["baselines"]),
            "entries": tuple(Entry(**entry) for entry in found["entries"]),
        }
    )


def _fields(found: dict) -> FieldGroup:
    numbers = {name: tuple(found[name]) for name in ("shape", "loaded", "stored", "rotation")}
    return FieldGroup(**{**found, **numbers, "loops": tuple(map(tuple, found["loops"]))})
