# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How one linear step is executed: the schedule, and what its kernels leave open."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from twofour.errors import TwofourError

SCHEDULES = ("stream", "sparse", "dense", "simt")


@dataclass(frozen=True)
class Choice:
    """What is None is left to the compiler.

    Attributes:
        schedule: stream, sparse, dense or simt.
        tile: outputs of a patch operator per axis (sparse, dense).
        block: outputs of a thread block per axis, in one step of its march; of sparse and dense
            kernels of rank 1 also (segments, outputs of each).
        stages: halo tiles in shared memory (sparse, dense), fragments of inputs in registers, or
            steps in a ring.
        march: steps of a thread block along the slowest axis.
        levels: whether fused steps follow each other in the kernel (stream and rolling simt),
            rather than be one larger stencil.
        rolling: whether plain threads march (simt), which alone have a layout.
        ring: whether kernels that march (stream and rolling simt) read inputs ahead to a ring in
            shared memory, rather than to registers.

    Raises TwofourError for members that do not belong together.
    """

    schedule: str | None = None
    tile: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    stages: int | None = None
    march: int | None = None
    levels: bool | None = None
    rolling: bool | None = None
    ring: bool | None = None

    def __post_init__(self):
        if self.schedule is not None and self.schedule not in SCHEDULES:
            known = ", ".join(SCHEDULES)
            raise TwofourError(f"expected a schedule out of {known}, got {self.schedule!r}")
        if self.rolling is not None and self.schedule != "simt":
            raise TwofourError(f"expected schedule 'simt' for rolling, got {self}")
        layout = len(self.as_json().keys() - {"schedule", "rolling"})
        if self.schedule == "simt" and ((layout and not self.rolling) or self.tile is not None):
            raise TwofourError(f"expected no layout but that of rolling 'simt', got {self}")
        if self.levels and self.schedule not in (None, "stream", "simt"):
            raise TwofourError(f"expected schedule 'stream' or 'simt' for levels, got {self}")
        if self.ring and self.schedule not in ("stream", "simt"):
            raise TwofourError(f"expected schedule 'stream' or 'simt' for a ring, got {self}")

    def __str__(self) -> str:
        """The members that are set, such as `stream stages=5 march=128`."""
        words = [self.schedule or "auto"]
        for name, value in self.as_json().items():
            if name != "schedule":
                shown = "x".join(map(str, value)) if isinstance(value, list) else str(value)
                words.append(f"{name}={shown.lower()}")
        return " ".join(words)

    def as_json(self) -> dict:
        """The members that are set, as plain values."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        return {name: value for name, value in plain.items() if value is not None}

    @classmethod
    def from_json(cls, value: object) -> Choice:
        """What `as_json` gave; raises TwofourError for anything else."""
        if not isinstance(value, dict):
            raise TwofourError(f"expected a choice as an object, got {value!r}")
        unknown = sorted(value.keys() - {field.name for field in fields(cls)})
        if unknown:
            raise TwofourError(f"expected members of a choice, got '{unknown[0]}'")
        for name, item in value.items():
            if not _FITS[name](item):
                raise TwofourError(f"expected {_KIND[name]} as {name} of a choice, got {item!r}")
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in value.items()})


def _count(value: object) -> bool:
    return type(value) is int and value > 0


def _extents(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_count, value))


_KIND = {
    "schedule": "a name",
    "tile": "positive extents",
    "block": "positive extents",
    "stages": "a positive number",
    "march": "a positive number",
    "levels": "true or false",
    "rolling": "true or false",
    "ring": "true or false",
}
_FITS = {
    "schedule": lambda value: isinstance(value, str),
    "tile": _extents,
    "block": _extents,
    "stages": _count,
    "march": _count,
    "levels": lambda value: isinstance(value, bool),
    "rolling": lambda value: isinstance(value, bool),
    "ring": lambda value: isinstance(value, bool),
}
