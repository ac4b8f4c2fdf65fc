# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stencils and random patterns for the layout tests."""

import itertools
import json
from collections import defaultdict
from importlib import resources

import numpy as np
import pytest
from hypothesis import strategies as st

from twofour.layout.patch import PatchOperator


def star(rank, radius):
    """Offsets and weights of a star, weights in eighths."""
    offsets = [(0,) * rank]
    for axis, distance, sign in itertools.product(range(rank), range(1, radius + 1), (-1, 1)):
        offsets.append(tuple(sign * distance * (axis == other) for other in range(rank)))
    return sorted(offsets), [(place + 1) / 8 for place in range(len(offsets))]


def box_stencil(*extents):
    """Offsets and weights of a box, weights in eighths."""
    offsets = list(itertools.product(*(range(-(k // 2), k - k // 2) for k in extents)))
    return offsets, [(place + 1) / 8 for place in range(len(offsets))]


def fused(offsets, weights, steps):
    """Self-convolution: the stencil of several steps."""
    sums = dict(zip(offsets, weights, strict=True))
    for _ in range(steps - 1):
        longer = defaultdict(float)
        for (a, x), (b, y) in itertools.product(sums.items(), zip(offsets, weights, strict=True)):
            longer[tuple(i + j for i, j in zip(a, b, strict=True))] += x * y
        sums = longer
    return list(sums), list(sums.values())


def built_in_kernels():
    """The built-in kernels as pytest parameters (offsets, weights)."""
    files = [
        path for path in resources.files("twofour.kernels").iterdir() if path.name.endswith(".json")
    ]
    kernels = [kernel for path in files for kernel in json.loads(path.read_text())]
    return [
        pytest.param(
            [tuple(offset) for offset in kernel["offsets"]], kernel["weights"], id=kernel["name"]
        )
        for kernel in kernels
    ]


def pattern_operator(pattern):
    """A patch operator with nonzeros where the pattern is true and inputs in a line."""
    pattern = np.asarray(pattern, dtype=bool)
    rows, columns = pattern.shape
    values = 1.0 + np.arange(pattern.size).reshape(pattern.shape)
    inputs = np.arange(columns)[:, None]
    return PatchOperator(pattern * values, np.arange(rows)[:, None], inputs, (rows,))


@st.composite
def stencils(draw, max_rank=3):
    """Random offsets and nonzero weights."""
    rank = draw(st.integers(1, max_rank))
    reach = {1: 7, 2: 3, 3: 2}[rank]
    offset = st.tuples(*[st.integers(-reach, reach)] * rank)
    offsets = draw(st.lists(offset, min_size=1, max_size=20, unique=True))
    weight = st.floats(-8, 8, allow_nan=False).filter(bool)
    return offsets, draw(st.lists(weight, min_size=len(offsets), max_size=len(offsets)))


@st.composite
def patterns(draw, max_rows=8, max_columns=20):
    """Random sparsity patterns; most are no staircase."""
    shape = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    density = draw(st.floats(0.05, 0.95))
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).random(shape) < density
