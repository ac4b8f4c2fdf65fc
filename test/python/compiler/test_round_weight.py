# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights are rounded once, to the nearest number of the accumulation type."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twofour.dialects.stencil.linear_ops import round_weight


def test_no_second_rounding():
    """Rounded to float64 first, this weight would lie in the middle and go to the even side."""
    weight = 1 + Fraction(1, 2**24) + Fraction(1, 2**60)
    assert round_weight(weight, np.float32) == 1 + 2**-23


@given(st.fractions(min_value=-1000, max_value=1000, max_denominator=10**12))
def test_nearest(weight):
    rounded = np.float32(round_weight(weight, np.float32))
    error = abs(Fraction(float(rounded)) - weight)
    for neighbour in (np.nextafter(rounded, np.float32(s)) for s in (-np.inf, np.inf)):
        assert error <= abs(Fraction(float(neighbour)) - weight)


def test_beyond_the_range():
    assert round_weight(Fraction(10) ** 39, np.float32) == math.inf
    assert round_weight(-(Fraction(10) ** 39), np.float32) == -math.inf
    assert round_weight(Fraction(10) ** 39, np.float64) == 1e39
