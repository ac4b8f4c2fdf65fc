# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the steps of programs over several fields consist of: sweeps, and copies of cells."""

import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from twofour.runtime.loops import Launch, View
from twofour.runtime.rounds.time_skewing import Footprint, Touch


@dataclass(frozen=True)
class Buffer:
    """An array of a run, C-contiguous: that of an argument at first, or a workspace."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in bytes."""
        cells = itertools.accumulate(self.shape[:0:-1], operator.mul, initial=self.dtype.itemsize)
        return tuple(cells)[::-1] if self.shape else ()

    def model(self) -> np.ndarray:
        """An array of that shape without memory of its own: its cells must not be used."""
        one = np.empty(1, self.dtype)
        return np.lib.stride_tricks.as_strided(one, self.shape, self.strides)


@dataclass(frozen=True)
class Copy:
    """Cells [source] of buffer `read`, or the number `value`, go to cells [target] of `written`.

    Where a source has one cell on an axis, all cells of the target there get it.
    """

    written: int
    target: tuple[slice, ...]
    read: int | None
    source: tuple[slice, ...] = ()
    value: np.generic | None = None


Action = Copy | Launch
# Rows that the source of a copy of more may be away for it to go over them with sweeps, as to an
# array that holds a halo.
NEAR_ROWS = 16
# Actions of a phase need nothing of each other; the phases of a round come one after the other.
Round = Sequence[Sequence[Action]]


def sweep_points(actions: Iterable[Action], buffers: Sequence[Buffer]) -> int:
    """The points of all sweeps among actions."""
    outputs = (action.outputs[0] for action in actions if isinstance(action, Launch))
    return sum(buffers[view.buffer].model()[view.slices].size for view in outputs)


def part_of(
    action: Action, buffers: Sequence[Buffer], below: Sequence[int], above: Sequence[int]
) -> Action:
    """The points of an action but the first `below` and the last `above` along its first axes.

    It reads as many cells around them as around all. Its views are of these axes, or of none.
    """
    if not any((*below, *above)):
        return action

    def part(view: View) -> View:
        shape = buffers[view.buffer].shape
        if not shape:
            return view
        slices = [*view.slices, *[slice(None)] * (len(shape) - len(view.slices))]
        for axis, (first, last) in enumerate(zip(below, above, strict=True)):
            if first or last:
                cells = range(shape[axis])[slices[axis]]
                slices[axis] = slice(cells.start + first, cells.stop - last)
        return View(view.buffer, tuple(slices))

    if isinstance(action, Launch):
        inputs, outputs = (tuple(map(part, views)) for views in (action.inputs, action.outputs))
        return replace(action, inputs=inputs, outputs=outputs)
    target, source = part(View(action.written, action.target)).slices, action.source
    if action.read is not None:
        source = part(View(action.read, source)).slices
    return replace(action, target=target, source=source)


def footprint(action: Action, buffers: Sequence[Buffer], axis: int = 0) -> Footprint:
    """The rows that an action touches, those along an axis, of buffers which have all its axes."""
    if isinstance(action, Copy):
        return _footprint_of_copy(action, buffers, axis)
    by_rows, _ = _inputs(action, buffers)
    views = [(view, False) for view in by_rows] + [(view, True) for view in action.outputs]
    target, touches = _rows(action.outputs[0], buffers, axis), []
    for view, written in views:
        rows = _rows(view, buffers, axis)
        first, last = rows.start - target.start, rows.stop - target.stop
        touches.append(Touch(view.buffer, first, last, written))
    return Footprint(target.start, target.stop, tuple(touches))


def pass_on_whole(actions: Sequence[Action], buffers: Sequence[Buffer]) -> bool:
    """Whether an action reads a buffer as a whole that one of them writes."""
    launches = [action for action in actions if isinstance(action, Launch)]
    whole = {view.buffer for one in launches for view in _inputs(one, buffers)[1]}
    written = {view.buffer for one in launches for view in one.outputs}
    written |= {action.written for action in actions if isinstance(action, Copy)}
    return bool(whole & written)


def _inputs(launch: Launch, buffers: Sequence[Buffer]) -> tuple[list[View], list[View]]:
    """The inputs that are read near the rows that are written, and those that are as a whole.

    The latter are tables, and buffers of fewer axes.
    """
    axes = len(buffers[launch.outputs[0].buffer].shape)
    by_rows, whole = [], []
    for number, view in enumerate(launch.inputs):
        fewer = len(buffers[view.buffer].shape) < axes
        (whole if fewer or number in launch.tables else by_rows).append(view)
    return by_rows, whole


def _footprint_of_copy(copy: Copy, buffers: Sequence[Buffer], axis: int) -> Footprint:
    """A copy between rows that are the same or near is a sweep; any other one is anchored."""
    touched = [(View(copy.written, copy.target), True)]
    if copy.read is not None:
        touched.append((View(copy.read, copy.source), False))
    rows = [_rows(view, buffers, axis) for view, _ in touched]
    target, source = rows[0], rows[-1]
    alike = (len(source), source.step) == (len(target), target.step)
    near = alike and abs(source.start - target.start) <= NEAR_ROWS < len(target)
    anchored = not near and source != target
    touches = (
        # Rows of a mirrored source go down.
        Touch(view.buffer, min(one), max(one), written)
        if anchored
        else Touch(view.buffer, *[one.start - target.start] * 2, written)
        for (view, written), one in zip(touched, rows, strict=True)
    )
    return Footprint(target.start, target.stop, tuple(touches), anchored)


def _rows(view: View, buffers: Sequence[Buffer], axis: int) -> range:
    """The rows of a view in its buffer."""
    rows = range(buffers[view.buffer].shape[axis])
    return rows[view.slices[axis]] if axis < len(view.slices) else rows
