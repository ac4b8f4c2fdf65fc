# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refills of halos as copies that native code makes, in phases."""

import itertools
from collections.abc import Iterable

from twofour.runtime.boundary import HaloRefresh
from twofour.runtime.box import Box
from twofour.runtime.rounds.actions import Copy


def copied(source: int, target: int, boxes: Iterable[Box]) -> list[Copy]:
    """The copies of boxes from one buffer to the same cells of another one."""
    return [Copy(target, box.slices, source, box.slices) for box in boxes]


def refreshed(refreshes: Iterable[tuple[int, HaloRefresh]]) -> list[list[Copy]]:
    """The copies that refresh the halos of these buffers, axis by axis."""
    buffers, by_axis = [], []
    for buffer, refresh in refreshes:
        buffers.append(buffer)
        by_axis.append(refresh.by_axis)
    return [
        [
            Copy(buffer, target, None if source is None else buffer, source, value)
            for buffer, operations in zip(buffers, axis, strict=True)
            for target, source, value in operations
        ]
        for axis in itertools.zip_longest(*by_axis, fillvalue=())
    ]
