# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Boundaries: how the halo, the cells around the interior, is refilled before each step.

`periodic`, `reflect` and `nearest` are scipy.ndimage's modes wrap (grid-wrap), reflect and nearest:

    periodic   a b c d | a b c d | a b c d
    reflect    d c b a | a b c d | d c b a
    nearest    a a a a | a b c d | d d d d

`zero` and `constant(c)` fill with one value; `fixed` leaves the halo as it is.
"""

import itertools
import math
import numbers
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from twofour.errors import SourceLocation, TwofourError
from twofour.runtime.box import Box
from twofour.runtime.dtypes import (
    ElementType,
    choices,
    element_type_of,
    from_storage,
    storage_view,
    to_storage,
)

MODES = ("fixed", "zero", "constant", "periodic", "reflect", "nearest")
# As they are written.
FORMS = tuple("constant(c)" if mode == "constant" else mode for mode in MODES)


@dataclass(frozen=True)
class AxisBoundary:
    """The boundary at both ends of one axis; `value` counts for the mode `constant` only.

    Of an axis that others were folded into, `group` cells lie side by side that were one before:
    images are of whole groups. Raises TwofourError for a misspelt mode or a value that is not
    finite.
    """

    mode: str
    value: float = 0.0
    group: int = 1

    def __post_init__(self):
        if self.mode not in MODES:
            raise TwofourError(f"expected a boundary out of {choices(FORMS, self.mode)}")
        if self.mode == "constant":
            if not isinstance(self.value, numbers.Real) or not math.isfinite(self.value):
                raise TwofourError(f"expected a finite boundary constant, got {self.value!r}")

    def __str__(self) -> str:
        return f"constant({self.value!r})" if self.mode == "constant" else self.mode

    def sources(self, extent: int, coordinates: np.ndarray) -> np.ndarray:
        """Where in [0, extent) the cells at `coordinates` take their value from."""
        groups, places = np.divmod(coordinates, self.group)
        return source_index(self.mode, extent // self.group, groups) * self.group + places


def parse_boundary(
    boundary: str | AxisBoundary | Sequence[str | AxisBoundary],
    rank: int,
    location: SourceLocation | None = None,
) -> tuple[AxisBoundary, ...]:
    """Return one AxisBoundary per axis, slowest axis first.

    `boundary` is a text such as 'periodic', 'periodic,fixed' or 'constant(2.5),zero', or a
    sequence of such entries; a single entry counts for all axes. Raises TwofourError for a
    misspelt mode, a constant that is missing or not finite, or another count than `rank`.
    """
    try:
        if isinstance(boundary, str):
            entries = [_parse_axis(text) for text in boundary.split(",")]
        elif isinstance(boundary, AxisBoundary):
            entries = [boundary]
        elif isinstance(boundary, Sequence):
            entries = [e if isinstance(e, AxisBoundary) else _parse_axis(e) for e in boundary]
        else:
            got = type(boundary).__name__
            raise TwofourError(f"expected a boundary as text or a sequence of texts, got {got}")
        if len(entries) == 1:
            entries *= rank
        if len(entries) != rank:
            wanted = f"1 or {rank} boundaries" if rank > 1 else "1 boundary"
            # The command line locates what stands in quotes.
            got = f"'{boundary}'" if isinstance(boundary, str) else len(entries)
            raise TwofourError(f"expected {wanted}, got {got}")
    except TwofourError as error:
        raise TwofourError(error.message, location) from None
    return tuple(entries)


def check_fixed(boundary: Sequence[AxisBoundary], loop: SourceLocation | None = None) -> None:
    """Raise TwofourError where a program with a time loop, written at `loop`, would need more."""
    if any(entry.mode != "fixed" for entry in boundary):
        raise TwofourError(
            "expected boundary 'fixed' for a program with a time loop of its own: halos can be "
            "refreshed between calls only",
            loop,
        )


def _parse_axis(text: str) -> AxisBoundary:
    if not isinstance(text, str):
        raise TwofourError(f"expected a boundary out of {choices(FORMS, text)}")
    text = text.strip()
    match = re.fullmatch(r"constant\s*\((.*)\)", text)
    if match:
        try:
            return AxisBoundary("constant", float(match[1]))
        except ValueError:
            raise TwofourError(f"expected a number in constant(...), got {text!r}") from None
    if text == "constant":
        raise TwofourError("expected a value as in 'constant(2.5)', got 'constant'")
    return AxisBoundary(text)


def source_index(mode: str, extent: int, coordinates: np.ndarray) -> np.ndarray:
    """Return where in [0, extent) the cells at `coordinates` (integers) take their value from.

    `mode` is periodic, reflect or nearest; any extent >= 1 and any distance.
    """
    coordinates = np.asarray(coordinates, np.int64)
    if mode == "periodic":
        return coordinates % extent
    if mode == "nearest":
        return np.clip(coordinates, 0, extent - 1)
    if mode == "reflect":
        folded = coordinates % (2 * extent)
        return np.minimum(folded, 2 * extent - 1 - folded)
    raise ValueError(f"boundary {mode} has no source cells")


class HaloRefresh:
    """Refills the halo of arrays of one shape in place, prepared once for many calls.

    `interior` = (lower, upper) are the index tuples of the half-open interior box in an array of
    `shape`. Axis by axis, first to last, every cell outside the interior on that axis is refilled
    over the full cross-section of the other axes. Hence corners come out right, cells next to the
    rim of a `fixed` axis hold images of that rim, and where a cell is out of range on two axes
    the later axis decides (for the modes with source cells the order makes no difference).
    `fixed` axes are left alone.

    Calls take arrays in the storage dtype of `element` (bf16 as uint16). Raises TwofourError
    where a constant is out of the range of `element` or the interior is empty or out of bounds.
    """

    def __init__(
        self,
        shape: Sequence[int],
        interior: tuple[Sequence[int], Sequence[int]],
        boundary: Sequence[AxisBoundary],
        element: ElementType,
    ):
        lower, upper = interior
        # The (target, source, value) of each axis with a halo, first to last; of one in any order.
        self.by_axis = []
        # The cells that are left as they are.
        self.inside = Box.whole(shape)
        for axis, (extent, lo, up, entry) in enumerate(
            zip(shape, lower, upper, boundary, strict=True)
        ):
            if not 0 <= lo < up <= extent:
                raise TwofourError(
                    f"expected an interior within [0, {extent}) on axis {axis}, got [{lo}, {up})"
                )
            if entry.mode != "fixed" and (lo, up) != (0, extent):
                self.by_axis.append(_axis_operations(axis, extent, lo, up, entry, element))
                self.inside = self.inside.with_axis(axis, lo, up)
        self._operations = list(itertools.chain(*self.by_axis))
        # Nothing to refill: calls return at once and callers may skip them.
        self.empty = not self._operations

    @property
    def far(self) -> Box:
        """Cells inside, farther from all refilled ends than those that halos take values from."""
        far = self.inside
        for _, source, _ in self._operations:
            if source is not None:
                axis = len(source) - 1
                begin, end = self.inside.lower[axis], self.inside.upper[axis]
                images = range(end)[source[axis]]
                depth = max(min(cell - begin + 1, end - cell) for cell in images)
                low, high = max(far.lower[axis], begin + depth), min(far.upper[axis], end - depth)
                far = far.with_axis(axis, low, high)
        return far

    def bind(self, array: np.ndarray) -> Callable[[], None]:
        """Return a callable that refills the halo of `array`."""
        return partial(_refill, self._operations, array)

    def __call__(self, array: np.ndarray) -> None:
        self.bind(array)()


def _refill(operations: list[tuple], array: np.ndarray) -> None:
    for target, source, value in operations:
        array[target] = value if source is None else array[source]


def _axis_operations(
    axis: int, extent: int, lower: int, upper: int, entry: AxisBoundary, element: ElementType
) -> list[tuple]:
    """Return (target, source, value) index expressions that refill both sides of one axis."""

    def index(run: slice) -> tuple[slice, ...]:
        return (slice(None),) * axis + (run,)

    sides = [(a, b) for a, b in ((0, lower), (upper, extent)) if a < b]
    if entry.mode in ("zero", "constant"):
        value = storage_constant(entry, element)
        return [(index(slice(a, b)), None, value) for a, b in sides]
    operations = []
    for begin, end in sides:
        sources = lower + entry.sources(upper - lower, np.arange(begin, end) - lower)
        for first, last, step in index_runs(sources.tolist()):
            target = index(slice(begin + first, begin + last))
            source = index(cells(sources[first].item(), step, last - first))
            operations.append((target, source, None))
    return operations


def cells(first: int, step: int, count: int) -> slice:
    """The cells first, first + step, ... of an axis; one for all where the step is zero."""
    if step == 0:
        return slice(first, first + 1)
    end = first + step * count
    # A descending slice that ends at element 0 has no integer stop.
    return slice(first, end if end >= 0 else None, step)


def index_runs(sources: list[int]) -> list[tuple[int, int, int]]:
    """Split `sources` into maximal runs (first, last, step) whose step is 1, -1 or 0."""
    runs = []
    first = 0
    while first < len(sources):
        last, step = first + 1, 1
        if last < len(sources) and abs(sources[last] - sources[first]) <= 1:
            step = sources[last] - sources[first]
            while last < len(sources) and sources[last] - sources[last - 1] == step:
                last += 1
        runs.append((first, last, step))
        first = last
    return runs


def check_constants(boundary: Sequence[AxisBoundary], element: ElementType) -> None:
    """Raise TwofourError for a constant that is out of the range of `element`."""
    for entry in boundary:
        storage_constant(entry, element)


def storage_constant(entry: AxisBoundary, element: ElementType) -> np.generic:
    """Return what a `zero` or `constant` axis fills with, in the storage dtype of `element`.

    Raises TwofourError where it is out of the range of `element`.
    """
    if element.storage.kind in "bi":
        return _integer_constant(entry, element)
    value = to_storage(np.float64(entry.value if entry.mode == "constant" else 0.0), element)
    if not np.isfinite(from_storage(value, element)):
        raise TwofourError(
            f"expected a boundary constant in the range of {element.name}, got {entry.value}"
        )
    return value[()]


def _integer_constant(entry: AxisBoundary, element: ElementType) -> np.generic:
    value = entry.value if entry.mode == "constant" else 0
    bits = 1 if element.storage.kind == "b" else 8 * element.itemsize
    low, high = (0, 1) if bits == 1 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if value != int(value) or not low <= int(value) <= high:
        raise TwofourError(
            f"expected an integer from {low} to {high} ({element.name}) as boundary constant, got "
            f"{value:g}"
        )
    return element.storage.type(int(value))


def refresh_halo(
    array: np.ndarray,
    interior: tuple[Sequence[int], Sequence[int]],
    boundary: Sequence[AxisBoundary],
) -> None:
    """Refill the halo of `array` (f16, f32, f64, or bf16 as bfloat16 or uint16) once, in place.

    See HaloRefresh for `interior`, the order of the axes and the errors.
    """
    element = element_type_of(array)
    refresh = HaloRefresh(array.shape, interior, boundary, element)
    refresh(storage_view(array, element))
