# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fields, steps over them and caches, for tests of how rounds are chosen."""

import numpy as np

from twofour.runtime import Launch
from twofour.runtime.loops import View
from twofour.runtime.processor import Caches
from twofour.runtime.rounds.actions import Buffer

# A last-level cache far away, and one that is near.
FAR, NEAR = Caches(1 << 21, 1 << 26, 12), Caches(1 << 20, 1 << 25, 30)
MANY = 1 << 30


def square(edge, halo=1):
    return Buffer((edge + 2 * halo,) * 2, np.dtype(np.float64))


def box(edge, below=0, above=0, halo=1):
    """The interior of a square, grown along both axes."""
    return (slice(halo - below, halo + edge + above),) * 2


def update(edge, target, **reaches):
    """A field is updated in place from others: their reaches below and above."""
    inputs = [View(target, box(edge))]
    inputs += [View(int(name[1:]), box(edge, *reach)) for name, reach in reaches.items()]
    return Launch(None, tuple(inputs), (View(target, box(edge)),))


def in_place(edge):
    """A step of two phases, like those of FDTD."""
    return [[update(edge, 0, f1=(0, 1))], [update(edge, 1, f0=(1, 0))]]
