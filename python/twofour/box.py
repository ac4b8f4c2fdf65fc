# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Half-open boxes of grid points: the bounds of fields, temps and stores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from twofour.reach import reach_of

MAX_POINTS = 2**59


@dataclass(frozen=True)
class Box:
    """The points x with lower[d] <= x[d] < upper[d] on every axis d."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.lower)

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(u - lo for lo, u in zip(self.lower, self.upper, strict=True))

    def contains(self, other: "Box") -> bool:
        return all(a <= b for a, b in zip(self.lower, other.lower, strict=True)) and all(
            a >= b for a, b in zip(self.upper, other.upper, strict=True)
        )

    def is_apart(self, other: "Box") -> bool:
        """Whether the boxes have no point in common."""
        lower = map(max, self.lower, other.lower)
        upper = map(min, self.upper, other.upper)
        return any(lo >= up for lo, up in zip(lower, upper, strict=True))

    def union(self, other: "Box | None") -> "Box":
        """The smallest box that holds both; `None` holds nothing."""
        if other is None:
            return self
        return Box(
            tuple(map(min, self.lower, other.lower)), tuple(map(max, self.upper, other.upper))
        )

    def reach(self, offsets: Iterable[Sequence[int]]) -> "Box":
        """The box read by accesses at `offsets` from every point of this one."""
        below, above = reach_of(offsets)
        return Box(
            tuple(lo - r for lo, r in zip(self.lower, below, strict=True)),
            tuple(up + r for up, r in zip(self.upper, above, strict=True)),
        )

    def project(self, axes: Sequence[int]) -> "Box":
        """The box of the given axes alone, for arrays of lower rank."""
        return Box(tuple(self.lower[a] for a in axes), tuple(self.upper[a] for a in axes))

    def __str__(self) -> str:
        return "x".join(f"[{lo},{up}]" for lo, up in zip(self.lower, self.upper, strict=True))
