# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random stencils: offsets with holes, on one side or both, and weights of any sign and size."""

import itertools

from hypothesis import strategies as st

from twofour.kernels import Kernel


@st.composite
def ranges(draw, farthest) -> tuple[int, int]:
    """The range of offsets on one axis, on one side of the point or both."""
    widths = [width for width in (16, 8, 5, 3, 2, 1, 0) if width <= 2 * farthest]
    width = draw(st.sampled_from(widths))
    low = draw(st.integers(-farthest, farthest - width))
    return low, low + width


@st.composite
def kernels(draw, ranks=(1, 2, 3), farthest=8) -> Kernel:
    """A stencil of one of the ranks, with up to 40 points at most `farthest` cells away an axis."""
    rank = draw(st.sampled_from(ranks))
    limits = [draw(ranges(farthest)) for _ in range(rank)]
    points = list(itertools.product(*(range(low, high + 1) for low, high in limits)))
    terms = draw(st.sampled_from((40, 24, 16, 12, 9, 7, 5, 4, 3, 2, 1)))
    # Drawn one by one, points would rarely be this many distinct ones.
    random = draw(st.randoms(use_true_random=True))
    offsets = sorted(random.sample(points, min(terms, max(1, 2 * len(points) // 3))))
    sizes = (0.125, 0.25, 0.5, 1.0, random.uniform(2.0**-10, 1.5), random.uniform(0.5, 1.0))
    weights = [random.choice((-1.0, 1.0)) * random.choice(sizes) for _ in offsets]
    return Kernel("random", tuple(offsets), tuple(weights))
