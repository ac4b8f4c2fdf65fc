# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far a stencil reads around a point, an axis each."""

from collections.abc import Iterable, Sequence

Extents = tuple[int, ...]
Reach = tuple[Extents, Extents]


def reach_of(offsets: Iterable[Sequence[int]]) -> Reach:
    """Minus the smallest and the largest offset per axis, of at least one offset.

    Either is negative where all offsets lie on one side.
    """
    columns = list(zip(*offsets, strict=True))
    return tuple(-min(column) for column in columns), tuple(max(column) for column in columns)


def halo_reach(reach: Sequence[int]) -> Extents:
    """Return the halo depth that a reach asks for: none where all offsets lie on the other side."""
    return tuple(max(0, extent) for extent in reach)


def halo_of(offsets: Iterable[Sequence[int]]) -> Reach:
    """The halo that offsets ask for below and above a domain, in cells per axis."""
    below, above = reach_of(offsets)
    return halo_reach(below), halo_reach(above)
