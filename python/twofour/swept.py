# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What sweeps have to give: sums in float64 by NumPy, which share no code with the compiler."""

from collections.abc import Sequence

import numpy as np

from twofour.reach import halo_of


def swept(
    values: np.ndarray,
    offsets: Sequence[Sequence[int]],
    weights: Sequence[float],
    steps: int,
    constant: float = 0.0,
) -> np.ndarray:
    """`values` after some steps of out[x] = constant + sum of weights[i] * in[x + offsets[i]].

    Float64 in and out. Each step takes the halo of `offsets` off every side: what is left are the
    points whose inputs are all there.
    """
    lo, hi = halo_of(offsets)
    for _ in range(steps):
        shape = [n - below - above for n, below, above in zip(values.shape, lo, hi, strict=True)]
        total = np.full(shape, constant)
        for offset, weight in zip(offsets, weights, strict=True):
            places = (below + o for below, o in zip(lo, offset, strict=True))
            part = tuple(slice(p, p + n) for p, n in zip(places, shape, strict=True))
            total += weight * values[part]
        values = total
    return values
