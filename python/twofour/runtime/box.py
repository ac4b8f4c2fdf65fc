# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Half-open boxes of an array's cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add, sub


@dataclass(frozen=True)
class Box:
    """The half-open box [lower, upper)."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Box:
        """The box of all cells of an array."""
        return cls((0,) * len(shape), tuple(shape))

    @property
    def slices(self) -> tuple[slice, ...]:
        return tuple(map(slice, self.lower, self.upper))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(sub, self.upper, self.lower))

    @property
    def empty(self) -> bool:
        return min(self.shape) <= 0

    def with_axis(self, axis: int, lower: int, upper: int) -> Box:
        """Return the box with other limits on one axis."""
        return Box(
            (*self.lower[:axis], lower, *self.lower[axis + 1 :]),
            (*self.upper[:axis], upper, *self.upper[axis + 1 :]),
        )

    def grown(self, below: Sequence[int], above: Sequence[int]) -> Box:
        """Return the box grown by `below` and `above` cells an axis (negative: shrunk)."""
        return Box(tuple(map(sub, self.lower, below)), tuple(map(add, self.upper, above)))

    def margins(self, inner: Box) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how many cells an axis come before an inner box, and behind it."""
        below, above = map(sub, inner.lower, self.lower), map(sub, self.upper, inner.upper)
        return tuple(below), tuple(above)

    def without(self, below: Sequence[int], above: Sequence[int]) -> Box:
        """Return the box without so many cells an axis, as `margins` gives them."""
        return self.grown([-cells for cells in below], [-cells for cells in above])

    def within(self, other: Box) -> Box:
        """Return the cells that are in another box as well."""
        lower, upper = map(max, self.lower, other.lower), map(min, self.upper, other.upper)
        return Box(tuple(lower), tuple(upper))

    def relative_to(self, origin: Sequence[int]) -> Box:
        """Return the same box in coordinates that start at `origin`."""
        return self.grown(origin, [-o for o in origin])


def around(outer: Box, inner: Box) -> list[Box]:
    """Return disjoint boxes that cover `outer` without `inner`."""
    boxes = []
    for axis in range(len(outer.lower)):
        low, high = outer.lower[axis], outer.upper[axis]
        begin, end = inner.lower[axis], inner.upper[axis]
        boxes += [outer.with_axis(axis, low, begin), outer.with_axis(axis, end, high)]
        outer = outer.with_axis(axis, begin, end)
    return [box for box in boxes if not box.empty]
