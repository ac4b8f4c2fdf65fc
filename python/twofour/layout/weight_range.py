# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that f16 can hold: those outside of its range are scaled by a power of two."""

import math

import numpy as np

from twofour.errors import Unsuitable

SMALLEST, LARGEST = 2.0**-14, 65504.0
TARGET_EXPONENT = 15


def f16_scale(weights: np.ndarray) -> int:
    """The exponent of the power of two that brings weights into the range of f16; 0 inside of it.

    Zeros do not count. Raises Unsuitable for weights that no power of two brings there.
    """
    sizes = np.abs(weights[weights != 0])
    if not sizes.size:
        return 0
    smallest, largest = float(sizes.min()), float(sizes.max())
    if smallest >= SMALLEST and largest <= LARGEST:
        return 0
    scale = TARGET_EXPONENT - math.frexp(largest)[1]
    if math.ldexp(smallest, scale) < SMALLEST:
        raise Unsuitable(
            f"expected weights within a factor of 2^28 of each other for f16, got {smallest:g} and "
            f"{largest:g}"
        )
    return scale
