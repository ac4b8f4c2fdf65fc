# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of the CPU carried out in NumPy: stencils, domains, and what actions read and write."""

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from twofour.runtime.box import Box
from twofour.runtime.tiles.steps import SOURCE, TARGET, Geometry, Repeat, Sweep

BOUNDARIES = ("fixed", "zero", "constant(2.5)", "periodic", "reflect", "nearest")
STAR_2D = {(0, 0): 0.5, (0, 1): 0.25, (0, -1): 0.125, (1, 0): -0.5, (-1, 0): 0.75}
ASYMMETRIC_2D = {(-2, 1): 0.5, (0, 0): 0.25, (1, 0): -0.25, (0, 3): 0.125}
LOPSIDED_2D = {(1, -3): 0.5, (2, -1): 0.25}
STAR_3D = dict.fromkeys([(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)], 0.25)


# Stencils, shapes of domains, and extents of tiles.
CASES_2D = [
    (weights, shape, extents)
    for weights in (STAR_2D, ASYMMETRIC_2D, LOPSIDED_2D)
    for shape, extents in (((11, 14), (4, 5)), ((3, 2), (1, 1)), ((5, 9), (9, 3)))
]
OFFSETS = st.integers(-3, 3)


@st.composite
def random_cases(draw, rank):
    """Weights, a boundary, the shape of a domain, and extents of tiles."""
    points = draw(st.lists(st.tuples(*[OFFSETS] * rank), min_size=1, max_size=5, unique=True))
    weights = {point: 0.25 * (1 + n) * (-1) ** n for n, point in enumerate(points)}
    shape = draw(st.tuples(*[st.integers(1, 12 if rank < 3 else 6)] * rank))
    extents = draw(st.tuples(*[st.integers(1, 6)] * rank))
    boundary = draw(st.tuples(*[st.sampled_from(BOUNDARIES)] * rank))
    return weights, ",".join(boundary), shape, extents


def geometry_of(weights, boundary, shape, interior=None, planes=1) -> Geometry:
    """The domain that is an array of `shape`, or the interior of one."""
    columns = list(zip(*weights, strict=True))
    lo = tuple(-min(column) for column in columns)
    hi = tuple(max(column) for column in columns)
    if interior is None:
        rim = [entry.mode == "fixed" for entry in boundary]
        lower = tuple(max(0, r) * f for r, f in zip(lo, rim, strict=True))
        upper = tuple(n - max(0, r) * f for n, r, f in zip(shape, hi, rim, strict=True))
        interior = lower, upper
    return Geometry(Box(*interior), lo, hi, tuple(boundary), planes)


class Arrays:
    """The arrays of one tile, source and target from an origin on; what nobody wrote is NaN."""

    def __init__(self, source, target, origins=None):
        self.whole = {SOURCE: source, TARGET: target}
        nowhere = (0,) * source.ndim
        self.origins = dict(zip((SOURCE, TARGET), origins or (nowhere, nowhere), strict=True))
        self.scratch = {}

    def at(self, cells, shape):
        """A view of cells, as native code addresses them."""
        array = self.whole.get(cells.array)
        if array is None:
            points = math.prod(cells.extents)
            flat = self.scratch.setdefault(cells.array, np.full(points, np.nan))
            if flat.size < points:
                flat = self.scratch[cells.array] = np.resize(flat, points)
            array = flat[:points].reshape(cells.extents)
        origin = self.origins.get(cells.array, (0,) * len(shape))
        index = [
            [start - begin + step * x for x in range(n)]
            for start, begin, step, n in zip(cells.start, origin, cells.steps, shape, strict=True)
        ]
        assert all(0 <= x < n for line, n in zip(index, array.shape, strict=True) for x in line), (
            cells,
            shape,
        )
        return array, np.ix_(*index)


def one_by_one(actions):
    """The actions, those that are repeated as often as that."""
    for action in actions:
        if not isinstance(action, Repeat):
            yield action
            continue
        for number, repeated in itertools.product(range(action.times), action.actions):
            source, target = (
                cells
                and cells._replace(
                    start=(
                        cells.start[0] + number * action.planes * (cells.array in (SOURCE, TARGET)),
                        *cells.start[1:],
                    ),
                )
                for cells in (repeated.source, repeated.target)
            )
            yield repeated._replace(source=source, target=target)


def carry_out(tile, arrays, weights, geometry):
    for action in one_by_one(tile.actions):
        target, where = arrays.at(action.target, action.shape)
        if isinstance(action, Sweep):
            grown = [
                n + lo + hi
                for n, lo, hi in zip(
                    action.shape, geometry.reach_lo, geometry.reach_hi, strict=True
                )
            ]
            source, region = arrays.at(action.source, grown)
            view = source[region]
            total = np.zeros(action.shape)
            for offset, weight in weights.items():
                begin = [o + lo for o, lo in zip(offset, geometry.reach_lo, strict=True)]
                part = tuple(slice(b, b + n) for b, n in zip(begin, action.shape, strict=True))
                total += weight * view[part]
            target[where] = total
        elif action.source is None:
            target[where] = action.value
        else:
            source, region = arrays.at(action.source, action.shape)
            target[where] = source[region].copy()
