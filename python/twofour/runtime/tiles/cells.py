# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the cells around a domain have their values from.

A box that reaches beyond the interior is cut into pieces. Cells of a piece lie alike: inside, in
the rim of a `fixed` axis, which keeps its values, in the image of cells inside, or where one value
stands. Every cell is resolved on its own, so that pieces come in no order and may be filled by
different threads; the values are those of twofour.runtime.boundary.HaloRefresh.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from twofour.runtime.boundary import AxisBoundary, index_runs
from twofour.runtime.box import Box


class Kind(Enum):
    """What the cells of a piece hold."""

    INSIDE = "inside"
    RIM = "rim"
    IMAGE = "image"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Run:
    """Cells [begin, end) of one axis, out of coordinates `source`, source + step, ...

    Constant cells have the number `value` instead.
    """

    begin: int
    end: int
    kind: Kind
    source: int
    step: int = 1
    value: float = 0.0


@dataclass(frozen=True)
class Piece:
    """The cells of `target`, read from `source` on with a step an axis, or `value` everywhere."""

    target: Box
    kind: Kind
    source: tuple[int, ...]
    steps: tuple[int, ...]
    value: float = 0.0


def pieces(region: Box, interior: Box, boundary: Sequence[AxisBoundary]) -> Iterator[Piece]:
    """Cut a box of cells around and inside an interior into pieces.

    An image or a rim may lie in the rim of another axis: its kind is then RIM, since such cells
    keep their values. Where several axes have constants, the last one decides.
    """
    limits = zip(region.lower, region.upper, interior.lower, interior.upper, boundary, strict=True)
    for runs in itertools.product(*(list(axis_runs(*limit)) for limit in limits)):
        kinds = [run.kind for run in runs]
        kind = next(k for k in (Kind.CONSTANT, Kind.RIM, Kind.IMAGE, Kind.INSIDE) if k in kinds)
        values = [run.value for run in runs if run.kind is Kind.CONSTANT]
        yield Piece(
            Box(tuple(run.begin for run in runs), tuple(run.end for run in runs)),
            kind,
            tuple(run.source for run in runs),
            tuple(run.step for run in runs),
            values[-1] if values else 0.0,
        )


def axis_runs(begin: int, end: int, lower: int, upper: int, entry: AxisBoundary) -> Iterator[Run]:
    """Cut the cells [begin, end) of an axis whose interior is [lower, upper) into runs."""
    for first, last in ((begin, min(end, lower)), (max(begin, upper), end)):
        if first >= last:
            continue
        if entry.mode == "fixed":
            yield Run(first, last, Kind.RIM, first)
        elif entry.mode in ("zero", "constant"):
            value = entry.value if entry.mode == "constant" else 0.0
            yield Run(first, last, Kind.CONSTANT, first, value=value)
        else:
            cells = np.arange(first, last) - lower
            sources = lower + entry.sources(upper - lower, cells)
            for one, two, step in index_runs(sources.tolist()):
                yield Run(first + one, first + two, Kind.IMAGE, int(sources[one]), step)
    first, last = max(begin, lower), min(end, upper)
    if first < last:
        yield Run(first, last, Kind.INSIDE, first)
