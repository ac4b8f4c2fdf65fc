# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special registers of PTX, as functions of the lanes of a batch."""

from collections.abc import Callable

import numpy as np

from twofour.sim.machine import Machine

# The value of a special register in every lane.
SpecialRegister = Callable[[Machine], np.ndarray]

_AXES = ("x", "y", "z")


def _along(shape: tuple[int, int, int], axis: int) -> Callable[[np.ndarray], np.ndarray]:
    """The index along one axis of every member of a linear (x fastest) enumeration."""
    before = int(np.prod(shape[:axis], dtype=np.int64))
    return lambda linear: linear // before % shape[axis]


def _thread(axis: int) -> SpecialRegister:
    return lambda m: _along(m.block_shape, axis)(m.thread)


def _block(axis: int) -> SpecialRegister:
    return lambda m: _along(m.grid_shape, axis)(m.block)


def _lane_mask(compare: Callable[[int, int], bool]) -> SpecialRegister:
    """Per lane, the bits of the lanes that compare as wanted to it."""
    bits = np.array(
        [sum(1 << j for j in range(32) if compare(j, i)) for i in range(32)], dtype=np.int64
    )
    return lambda m: bits[m.thread % 32]


def _uniform(value: Callable[[Machine], int]) -> SpecialRegister:
    return lambda m: np.full(m.lanes, value(m), np.int64)


SPECIAL_REGISTERS: dict[str, SpecialRegister | None] = {
    "%laneid": lambda m: m.thread % 32,
    "%warpid": lambda m: m.thread // 32,
    "%nwarpid": _uniform(lambda m: -(-m.threads // 32)),
    "%smid": lambda m: m.block % 4,
    "%nsmid": _uniform(lambda m: 4),
    "%gridid": _uniform(lambda m: 0),
    "%lanemask_eq": _lane_mask(lambda j, i: j == i),
    "%lanemask_lt": _lane_mask(lambda j, i: j < i),
    "%lanemask_le": _lane_mask(lambda j, i: j <= i),
    "%lanemask_gt": _lane_mask(lambda j, i: j > i),
    "%lanemask_ge": _lane_mask(lambda j, i: j >= i),
    "%clusterid.x": _block(0),
    "%cluster_ctarank": _uniform(lambda m: 0),
    "%cluster_nctarank": _uniform(lambda m: 1),
    "%dynamic_smem_size": _uniform(lambda m: m.dynamic_bytes),
    "%total_smem_size": _uniform(lambda m: m.shared_bytes),
    # The number of executed steps stands in for time.
    **{name: None for name in ("%clock", "%clock_hi", "%clock64", "%globaltimer")},
    **{f"%tid.{a}": _thread(i) for i, a in enumerate(_AXES)},
    **{f"%ctaid.{a}": _block(i) for i, a in enumerate(_AXES)},
    **{f"%ntid.{a}": _uniform(lambda m, i=i: m.block_shape[i]) for i, a in enumerate(_AXES)},
    **{f"%nctaid.{a}": _uniform(lambda m, i=i: m.grid_shape[i]) for i, a in enumerate(_AXES)},
}
