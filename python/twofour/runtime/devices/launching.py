# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launching kernels of a bundle: the grid, the arguments, and what views have to be like.

Parameters are the input views, then numbers, then the output views. A view is MLIR's memref
descriptor, flattened: address, address, offset (0), sizes, strides in elements, all 64 bits. An
output view is the region to write, an input view the same region grown by that input's reach.
Threads count along x only, blocks too; the first axis is the slowest of the blocks. Tensor maps of
some of the views come last, 128 bytes each.

`alignment` bytes of a kernel: the first element of an output view, the element of an input view
that its first output point is aligned with (its reach below on the last axis further on), and all
strides but the last are multiples of it, and memory from the start of each row, rounded down, to
its end, rounded up, is readable. Views are made by the runtime: where one breaks this, it is a
ValueError and the runtime's own mistake.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.errors import TwofourError
from twofour.runtime.dtypes import float32_to_bf16
from twofour.runtime.manifest import KernelSpec, MapSpec
from twofour.tensor_map import UNIT, TensorMap

# What the driver admits along x.
MAX_BLOCKS = 2**31 - 1
# Coordinates of the copy engine are signed numbers of 32 bits.
MAX_COORDINATE = 2**31 - 1
# A last wave that is not full counts little after so many others.
MANY_WAVES = 4
# What the start of a march costs, in steps of it.
START_STEPS = 12

_SCALAR_STORAGE = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.uint8,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}


@dataclass(frozen=True)
class LaunchShape:
    """The blocks and threads along x, and the dynamic shared memory in bytes, of one launch.

    `points` is the size of its output region.
    """

    blocks: int
    threads: int
    shared_bytes: int
    points: int


def block_count(tile: Sequence[int], march: int, shape: Sequence[int]) -> int:
    """Blocks that write an output of `shape`, each `march` tiles along the first axis."""
    covered = (tile[0] * march, *tile[1:])
    return math.prod(-(-n // c) for n, c in zip(shape, covered, strict=True))


def balanced_block_count(
    tile: Sequence[int], march: int, shape: Sequence[int], at_once: int
) -> int:
    """Blocks that write an output of `shape`: as many as the march asks for where that is many.

    Fewer are whole waves of `at_once` blocks, which share the first axis evenly, in marches between
    an eighth and twice of `march`.
    """
    steps = -(-shape[0] // tile[0])
    side_by_side = block_count(tile[1:], 1, shape[1:]) if len(tile) > 1 else 1
    if not steps or not side_by_side:
        return 0
    asked = side_by_side * -(-steps // march)
    if asked >= MANY_WAVES * at_once:
        return asked

    def waves(segments: int) -> int:
        return -(-side_by_side * segments // at_once)

    def cost(segments: int) -> tuple[int, int]:
        return waves(segments) * (-(-steps // segments) + START_STEPS), segments

    fewest = -(-steps // (2 * march))
    most = min(max(fewest, 8 * steps // march), steps)
    # Of as many waves as few segments as give marches as short as the most do.
    fullest = [
        min(max(count * at_once // side_by_side, fewest), most)
        for count in range(waves(fewest), waves(most) + 1)
    ]
    shortest = {max(fewest, -(-steps // -(-steps // segments))) for segments in fullest}
    return side_by_side * min(shortest, key=cost)


def launch_shape(
    spec: KernelSpec, shape: Sequence[int], multiprocessors: int | None = None
) -> LaunchShape | None:
    """How to launch a kernel on an output view of `shape`; None where there is nothing to write.

    Kernels that take any number of blocks get whole waves of them on so many multiprocessors.
    """
    if spec.resident is None or multiprocessors is None:
        blocks = block_count(spec.tile, spec.march, shape)
    else:
        at_once = spec.resident * multiprocessors
        blocks = balanced_block_count(spec.tile, spec.march, shape, at_once)
    if blocks > MAX_BLOCKS:
        raise ValueError(f"kernel {spec.name}: expected at most {MAX_BLOCKS} blocks, got {blocks}")
    if not blocks:
        return None
    return LaunchShape(blocks, spec.threads, spec.shared_bytes, math.prod(shape))


def pack_arguments(
    spec: KernelSpec,
    views_in: Sequence,
    scalars: Sequence[float | int],
    views_out: Sequence,
    addresses: Sequence[int],
    reach_below: int = 0,
) -> list[np.generic]:
    """The kernel's parameters as NumPy scalars of their sizes.

    Views are arrays of NumPy or CuPy; `addresses` are those of their first elements, inputs first.
    `reach_below` is the reach below of the inputs on the last axis, for the check of alignment.
    Raises ValueError for views that do not fit the kernel.
    """
    views = [*views_in, *views_out]
    if (len(views_in), len(scalars), len(views_out)) != (
        spec.inputs,
        len(spec.scalars),
        spec.outputs,
    ):
        raise ValueError(
            f"kernel {spec.name}: expected {spec.inputs} inputs, {len(spec.scalars)} numbers and "
            f"{spec.outputs} outputs, got {len(views_in)}, {len(scalars)} and {len(views_out)}"
        )
    for view in views_out:
        if view.ndim != spec.rank or view.shape != views_out[0].shape:
            raise ValueError(
                f"kernel {spec.name}: expected outputs of rank {spec.rank} and one shape, got "
                f"{view.shape}"
            )
    words: list[np.generic] = []
    for number, (view, address) in enumerate(zip(views, addresses, strict=True)):
        is_input = number < spec.inputs
        if number == spec.inputs:
            words += map(_scalar, scalars, spec.scalars)
        _check_alignment(spec, view, address, reach_below if is_input else 0)
        words += _descriptor(spec, view, address)
    return words


def tensor_maps(spec: KernelSpec, views: Sequence, addresses: Sequence[int]) -> list[TensorMap]:
    """The tensor maps of a kernel for these views, inputs first, at `addresses`.

    Raises TwofourError for views that are beyond the limits of the copy engine.
    """
    return [
        _tensor_map(wanted, views[wanted.view], addresses[wanted.view], wanted.view >= spec.inputs)
        for wanted in spec.maps
    ]


def _tensor_map(wanted: MapSpec, view, address: int, is_output: bool) -> TensorMap:
    *outer, last = view.shape
    if is_output:
        # The copy engine writes whole units; kernels write the elements of the last one themselves.
        unit = UNIT // view.dtype.itemsize
        last = max(unit, last // unit * unit)
    extents = (*outer, last + wanted.lead)
    if max(extents) > MAX_COORDINATE:
        raise TwofourError(
            f"expected extents up to 2^31 - 1 for bulk tensor copies, got {list(view.shape)}"
        )
    itemsize = view.dtype.itemsize
    return TensorMap(
        address - wanted.lead * itemsize,
        wanted.element,
        extents[::-1],
        _strides(outer, view.strides[:-1], -(-extents[-1] * itemsize // UNIT) * UNIT)[::-1],
        wanted.box[::-1],
    )


def _strides(extents: Sequence[int], strides: Sequence[int], row: int) -> tuple[int, ...]:
    """The strides of the outer axes of a tensor whose rows take `row` bytes, the slowest first.

    That of an axis with one element is arbitrary in an array, but has to be a divisor of the next
    slower one in a tensor map.
    """
    known = [stride for extent, stride in zip(extents, strides, strict=True) if extent > 1]
    slowest = max([row, *known])
    found = []
    for extent, stride in zip(extents, strides, strict=True):
        slowest = stride if extent > 1 else slowest
        found.append(slowest)
    return tuple(found)


def _descriptor(spec: KernelSpec, view, address: int) -> list[np.generic]:
    itemsize = view.dtype.itemsize
    if address % itemsize or any(stride % itemsize for stride in view.strides):
        raise ValueError(
            f"kernel {spec.name}: expected aligned elements, got address {address:#x} and strides "
            f"{view.strides}"
        )
    strides = [stride // itemsize for stride in view.strides]
    if view.shape[-1] == 1:
        # The stride of an axis with one element is arbitrary.
        strides[-1] = 1
    if strides[-1] != 1:
        raise ValueError(f"kernel {spec.name}: expected an inner stride of 1, got {strides[-1]}")
    pointer = np.uint64(address)
    return [pointer, pointer, *map(np.int64, (0, *view.shape, *strides))]


def _check_alignment(spec: KernelSpec, view, address: int, reach_below: int) -> None:
    region = address + reach_below * view.dtype.itemsize
    strides = [s for s, n in zip(view.strides[:-1], view.shape[:-1], strict=True) if n > 1]
    if region % spec.alignment or any(stride % spec.alignment for stride in strides):
        raise ValueError(
            f"kernel {spec.name}: expected rows that begin at multiples of {spec.alignment} bytes, "
            f"got address {region:#x} and strides {view.strides}"
        )


def _scalar(value: float | int, element: str) -> np.generic:
    if element == "bf16":
        return np.uint16(float32_to_bf16(np.float32(value)))
    return _SCALAR_STORAGE[element](value)
