# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the cells around a domain have their values from.

A box that reaches beyond the interior is cut into pieces. Cells of a piece lie alike: inside, in
the rim of a `fixed` axis, which keeps its values, in the image of cells inside, or where one value
stands. Every cell is resolved on its own, so that pieces come in no order and may be filled by
different threads; the values are those of twofour.runtime.boundary.HaloRefresh.
"""

import itertools
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from twofour.runtime.boundary import AxisBoundary, index_runs
from twofour.runtime.box import Box


class Kind(IntEnum):
    """What the cells of a piece hold: the last one of these that an axis says.

    So an image in the rim of another axis is a rim, whose cells keep their values.
    """

    INSIDE = 0
    IMAGE = 1
    RIM = 2
    CONSTANT = 3


class Run(NamedTuple):
    """Cells [begin, end) of one axis, out of coordinates `source`, source + step, ..."""

    begin: int
    end: int
    kind: Kind
    source: int
    step: int = 1


class Piece(NamedTuple):
    """The cells of `target`, read from `source` on with a step an axis, or `value` everywhere."""

    target: Box
    kind: Kind
    source: tuple[int, ...]
    steps: tuple[int, ...]
    value: float = 0.0


def pieces(region: Box, interior: Box, boundary: Sequence[AxisBoundary]) -> Iterator[Piece]:
    """Cut a box of cells around and inside an interior into pieces.

    Where several axes have constants, the last one decides.
    """
    limits = zip(region.lower, region.upper, interior.lower, interior.upper, boundary, strict=True)
    for runs in itertools.product(*itertools.starmap(_axis_runs, limits)):
        begins, ends, kinds, sources, steps = zip(*runs, strict=True)
        kind, value = max(kinds), 0.0
        if kind is Kind.CONSTANT:
            decides = boundary[max(axis for axis, other in enumerate(kinds) if other is kind)]
            value = decides.value if decides.mode == "constant" else 0.0
        yield Piece(Box(begins, ends), kind, sources, steps, value)


# The boxes of a program have few different limits.
@lru_cache(maxsize=1024)
def _axis_runs(
    begin: int, end: int, lower: int, upper: int, entry: AxisBoundary
) -> tuple[Run, ...]:
    return tuple(axis_runs(begin, end, lower, upper, entry))


def axis_runs(begin: int, end: int, lower: int, upper: int, entry: AxisBoundary) -> Iterator[Run]:
    """Cut the cells [begin, end) of an axis whose interior is [lower, upper) into runs."""
    for first, last in ((begin, min(end, lower)), (max(begin, upper), end)):
        if first >= last:
            continue
        if entry.mode == "fixed":
            yield Run(first, last, Kind.RIM, first)
        elif entry.mode in ("zero", "constant"):
            yield Run(first, last, Kind.CONSTANT, first)
        else:
            cells = np.arange(first, last) - lower
            sources = lower + entry.sources(upper - lower, cells)
            for one, two, step in index_runs(sources.tolist()):
                yield Run(first + one, first + two, Kind.IMAGE, int(sources[one]), step)
    first, last = max(begin, lower), min(end, upper)
    if first < last:
        yield Run(first, last, Kind.INSIDE, first)
