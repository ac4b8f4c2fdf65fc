# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The database of measured choices: JSON files that the compiler reads.

    {"format": 1, "entries": [{
      "name": "heat2d_ftcs", "fingerprint": "...", "element": "f16", "arithmetic": "f16",
      "steps": 1, "asked": "auto", "target": "sm_90", "device": "NVIDIA H200",
      "choice": {"schedule": "stream", "stages": 6, "march": 129, "ring": false},
      "basis": "measured",
      "seconds_per_point": 8.6e-13, "date": "2026-11-20", "version": "0.1.0"}]}

The package has one file a GPU in `data`; a user's own file is named by the environment variable
TWOFOUR_TUNED or an option, and comes first. `asked` is the schedule that the choice was the fastest
of, or auto for all of them. Only what was measured is in a database.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from twofour.errors import SourceLocation, TwofourError
from twofour.files import WRITE, system_errors
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.tuned.choice import Choice
from twofour.tuned.documents import (
    check_format,
    count,
    parse_document,
    positive,
    read_document,
    text,
    write_document,
)

FORMAT = 1
VARIABLE = "TWOFOUR_TUNED"
MEASURED = "measured"
WHAT = "a database of measured choices"


class Key(NamedTuple):
    """What a choice was measured for.

    `steps` are those of one sweep, `target` is an architecture such as sm_90.
    """

    fingerprint: str
    element: str
    arithmetic: str
    steps: int
    target: str

    @classmethod
    def from_json(cls, entry: dict) -> Key:
        """The key among the members of an object; raises KeyError, TypeError or ValueError."""
        names = ("fingerprint", "element", "arithmetic", "target")
        key = cls(steps=count(entry["steps"]), **{name: text(entry[name]) for name in names})
        if key.element not in ELEMENT_TYPES:
            raise ValueError(f"it has the unknown element type {key.element!r}")
        return key


@dataclass(frozen=True)
class Tuned:
    """One entry. `seconds_per_point` counts true time steps; `file` is where the entry stands."""

    name: str
    key: Key
    asked: str
    device: str
    choice: Choice
    seconds_per_point: float
    date: str
    version: str
    file: str = ""

    def answers(self, key: Key, schedule: str) -> bool:
        """Whether the entry is for `key`, of those that `schedule` (or auto) admits."""
        admitted = self.asked == schedule or (
            self.asked == "auto" and self.choice.schedule == schedule
        )
        return self.key == key and admitted

    def as_json(self) -> dict:
        """The entry as a file holds it."""
        own = {k: v for k, v in asdict(self).items() if k not in ("key", "file")}
        return own | self.key._asdict() | {"choice": self.choice.as_json(), "basis": MEASURED}

    @classmethod
    def from_json(cls, entry: dict, file: str) -> Tuned:
        """What `as_json` gave; raises KeyError, TypeError, ValueError or TwofourError."""
        if not isinstance(entry, dict):
            raise TypeError(f"it has {entry!r} in the place of an entry")
        if entry["basis"] != MEASURED:
            raise ValueError(f"it has an entry that was not measured but {entry['basis']!r}")
        choice = Choice.from_json(entry["choice"])
        if choice.schedule is None:
            raise ValueError("it has a choice without a schedule")
        return cls(
            name=text(entry["name"]),
            key=Key.from_json(entry),
            asked=text(entry["asked"]),
            device=text(entry["device"]),
            choice=choice,
            seconds_per_point=positive(entry["seconds_per_point"]),
            date=text(entry["date"]),
            version=text(entry["version"]),
            file=file,
        )

    def stale(self, reason: str) -> TwofourError:
        """The error of an entry whose choice the compiler cannot follow."""
        return TwofourError(
            f"expected a choice for {self.name} that twofour can compile, got {self.choice} of "
            f"version {self.version}: {reason}; tune it anew",
            SourceLocation(self.file),
        )


def find(key: Key, schedule: str, file: str | None = None, prefer: str = "") -> Tuned | None:
    """The entry for a key, None where there is none.

    `file` is the user's own, by default the one that TWOFOUR_TUNED names; its entries come before
    those of the package. Of several devices the first is the chip that `prefer` names (such as
    H200), then by name. Raises TwofourError for a file that is no database.
    """
    own = database_name(file)
    for entries in (read_entries(own) if own else (), shipped()):
        found = [entry for entry in entries if entry.answers(key, schedule)]
        # An entry of this very schedule before one of all schedules.
        found.sort(key=lambda x: (not _is(x.device, prefer), x.device, x.asked != schedule))
        if found:
            return found[0]
    return None


def _is(device: str, chip: str) -> bool:
    """Whether a device such as NVIDIA A100-SXM4-40GB, or one with RTX 4090, has a chip."""
    words = re.split(r"[\s-]+", device)
    return chip in words or chip in map("".join, zip(words, words[1:], strict=False))


def database_name(file: str | None = None) -> str | None:
    """The user's own database: the file given, or the one that TWOFOUR_TUNED names."""
    return file or os.environ.get(VARIABLE) or None


def read_entries(path: str) -> tuple[Tuned, ...]:
    """The entries of a file; raises TwofourError, located at it, where it is no database."""
    return read_document(path, WHAT, lambda content: _entries(content, path))


@cache
def shipped() -> tuple[Tuned, ...]:
    """The entries of the package."""
    folder = resources.files(__package__).joinpath("data")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".json")), key=lambda f: f.name)
    entries: list[Tuned] = []
    for file in files:
        name = str(file)
        entries += parse_document(
            file.read_bytes(), name, WHAT, lambda content, name=name: _entries(content, name)
        )
    return tuple(entries)


def store(path: str, entry: Tuned) -> None:
    """Add an entry to a file, in the place of one for the same key, schedule and device.

    The file is made where there is none. Raises TwofourError for one that is no database, and where
    it cannot be written.
    """
    with _alone_in(path):
        entries = list(read_entries(path)) if Path(path).exists() else []
        place = _place(entry)
        kept = [other for other in entries if _place(other) != place]
        write_entries(path, [*kept, entry])


@contextmanager
def _alone_in(path: str) -> Iterator[None]:
    """While others that store in the same folder wait."""
    # The file itself will be another one, and a second one beside it would stay.
    with system_errors(WRITE, path):
        folder = os.path.dirname(os.path.realpath(path))
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some file systems have no locks.
        with suppress(OSError):
            fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def write_entries(path: str, entries: Sequence[Tuned]) -> None:
    """Write a database; raises TwofourError where that is not possible."""
    ordered = sorted(entries, key=lambda entry: (entry.name, _place(entry)))
    write_document(path, {"format": FORMAT, "entries": [entry.as_json() for entry in ordered]})


def _place(entry: Tuned) -> tuple:
    return (*entry.key, entry.asked, entry.device)


def _entries(content: dict, file: str) -> tuple[Tuned, ...]:
    check_format(content, FORMAT)
    if not isinstance(content["entries"], list):
        raise TypeError("its entries are no list")
    return tuple(Tuned.from_json(entry, file) for entry in content["entries"])
