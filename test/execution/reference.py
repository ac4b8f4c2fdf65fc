# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear stencils in float64 by explicit index arithmetic: what compiled kernels are compared with.

Shares no code with the compiler or its runtime. Boundaries are given as one text an axis, such as
'periodic' or 'constant(0.75)'.
"""

import re
from collections.abc import Sequence

import numpy as np

Boundary = Sequence[str]


def constants(boundary: Boundary) -> list[float]:
    """The values that boundaries bring in from outside."""
    return [float(text[9:-1]) for text in boundary if text.startswith("constant(")]


def absolute(boundary: Boundary) -> tuple[str, ...]:
    """The same boundary for the absolute values of a field."""
    return tuple(re.sub(r"\(-", "(", text) for text in boundary)


def without_constants(boundary: Boundary) -> tuple[str, ...]:
    """The same boundary for a field's errors: constants have none."""
    return tuple("zero" if text.startswith("constant(") else text for text in boundary)


def pad(u: np.ndarray, axis: int, boundary: str, below: int, above: int) -> np.ndarray:
    """`u` with `below` and `above` more cells on one axis; none on a `fixed` one."""
    extent = u.shape[axis]
    cells = np.arange(-below, extent + above)
    if boundary == "fixed":
        return u
    if boundary == "periodic":
        return u.take(cells % extent, axis)
    if boundary == "reflect":
        # d c b a | a b c d | d c b a, and so on with period 2 * extent.
        folded = cells % (2 * extent)
        return u.take(np.where(folded < extent, folded, 2 * extent - 1 - folded), axis)
    inside = u.take(np.clip(cells, 0, extent - 1), axis)
    if boundary == "nearest":
        return inside
    value = 0.0 if boundary == "zero" else constants([boundary])[0]
    shape = [-1 if a == axis else 1 for a in range(u.ndim)]
    return np.where(((cells < 0) | (cells >= extent)).reshape(shape), value, inside)


def reach(offsets) -> tuple[list[int], list[int]]:
    """How far the offsets reach below and above a point on each axis, 0 if they do not."""
    columns = list(zip(*offsets, strict=True))
    return [max(0, -min(c)) for c in columns], [max(0, max(c)) for c in columns]


def updated(shape: tuple[int, ...], offsets, boundary: Boundary) -> tuple[slice, ...]:
    """The points that a step updates: on a `fixed` axis, those with all neighbours inside."""
    ranges = zip(shape, boundary, *reach(offsets), strict=True)
    return tuple(
        slice(b, max(b, extent - a)) if text == "fixed" else slice(0, extent)
        for extent, text, b, a in ranges
    )


def step(u: np.ndarray, offsets, weights: Sequence[float], boundary: Boundary) -> np.ndarray:
    """One step: out[x] = sum_i weights[i] * u[x + offsets[i]], slowest axis first.

    Axes are padded from the first to the last, so that in corners the last one decides. Points
    that are not updated keep their value.
    """
    below, above = reach(offsets)
    source = u
    for axis, text in enumerate(boundary):
        source = pad(source, axis, text, below[axis], above[axis])
    box = updated(u.shape, offsets, boundary)
    result = u.copy()
    total = np.zeros_like(result[box])
    if total.size:
        for offset, weight in zip(offsets, weights, strict=True):
            # The first updated point has the coordinates `below` in `source`, padded or not.
            start = [b + o for b, o in zip(below, offset, strict=True)]
            window = zip(start, total.shape, strict=True)
            total += weight * source[tuple(slice(s, s + extent) for s, extent in window)]
        result[box] = total
    return result


def run(
    u: np.ndarray, offsets, weights: Sequence[float], boundary: Boundary, steps: int
) -> list[np.ndarray]:
    """The states after 0, 1, ... `steps` steps."""
    states = [np.asarray(u, np.float64)]
    for _ in range(steps):
        states.append(step(states[-1], offsets, weights, boundary))
    return states


def symbol(offsets, weights: Sequence[float]) -> float:
    """The largest growth of any periodic mode in one step, up to the sampling of frequencies."""
    rank = len(offsets[0])
    grid = np.zeros((32 if rank == 3 else 128,) * rank)
    for offset, weight in zip(offsets, weights, strict=True):
        grid[tuple(c % len(grid) for c in offset)] += weight
    return float(np.abs(np.fft.fftn(grid)).max())
