# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cp.async.bulk.tensor: boxes of a tensor, to shared memory and back (PTX ISA, tile mode).

A copy moves the box of a tensor map, at signed coordinates, innermost first. In shared memory the
box is dense, at a multiple of 128 bytes. Elements beyond the tensor are read as zeros. They are not
written either, but in units of 16 bytes: an H200 writes the whole of a unit in which a row of the
tensor ends. An mbarrier counts the bytes of the whole box.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from twofour.errors import TwofourError
from twofour.sim.chunks import CHUNK, lanes_of, read_chunks, shared_offsets, write_chunks
from twofour.sim.counting import Counting
from twofour.sim.decode import Binder, Modifiers, Step, over_lanes
from twofour.sim.machine import PARAMETER_WINDOW, Active
from twofour.sim.memory import UNSIGNED
from twofour.sim.ptx import Address, Instruction, Operand
from twofour.sim.tensor_map import decode as decode_map
from twofour.tensor_map import ALIGNMENT, BYTES, MAX_RANK, UNIT, TensorMap

BOX_ALIGNMENT = 128  # bytes, in shared memory


def decode(binder: Binder, instruction: Instruction, modifiers: Modifiers) -> Step:
    """The copies of boxes; gather, scatter and image modes are not supported."""
    rank = int(modifiers.need(*(f"{n}d" for n in range(1, MAX_RANK + 1)))[0])
    spaces = modifiers.left[:2]
    modifiers.left = modifiers.left[2:]
    modifiers.take("tile")
    if spaces == ["global", "shared::cta"]:
        make = _to_global
        modifiers.need("bulk_group")
    elif spaces in (["shared::cluster", "global"], ["shared::cta", "global"]):
        make = _to_shared
        modifiers.need("mbarrier::complete_tx::bytes")
    else:
        binder.error(instruction, f"unsupported instruction {instruction.opcode}")
    hint = modifiers.flag("L2::cache_hint")
    modifiers.done()
    binder.count_operands(instruction, (2 if make is _to_global else 3) + hint)
    return make(binder, instruction, rank)


class _Boxes:
    """Which boxes of which tensors the lanes mean by an operand `[map, {x, y}]`."""

    def __init__(self, binder: Binder, instruction: Instruction, operand: Operand, rank: int):
        if not isinstance(operand, Address) or operand.coordinates is None:
            binder.error(
                instruction, f"expected a tensor map and coordinates in {instruction.opcode}"
            )
        elements = operand.coordinates.elements
        if len(elements) != rank:
            binder.error(instruction, f"expected {rank} coordinates, got {len(elements)}")
        self._binder, self._instruction, self._rank = binder, instruction, rank
        self._maps = binder.address(instruction, replace(operand, coordinates=None))
        self._coordinates = [binder.source(instruction, e, "s32") for e in elements]

    def of(self, active: Active) -> Iterator[tuple[np.ndarray, TensorMap, list[np.ndarray]]]:
        """Groups of lanes with one map: (their places among the active, map, coordinates [n])."""
        addresses = self._maps(active)
        coordinates = [over_lanes(c, active).astype(np.int64) for c in self._coordinates]
        lanes = lanes_of(self._binder, active)
        for address in np.unique(addresses).tolist():
            chosen = np.flatnonzero(addresses == address)
            tensor = self._map(address, int(lanes[chosen[0]]))
            yield chosen, tensor, [c[chosen] for c in coordinates]

    def _map(self, address: int, lane: int) -> TensorMap:
        data = self._binder.launch.parameters
        offset = address - PARAMETER_WINDOW
        fault = self._binder.machine.fault
        if not 0 <= offset <= len(data) - BYTES or offset % ALIGNMENT:
            message = f"expected a tensor map in a parameter that is aligned to {ALIGNMENT} bytes"
            fault(self._instruction, "undefined operation", message, lane, address)
        try:
            tensor = decode_map(data[offset : offset + BYTES])
        except TwofourError as error:
            fault(self._instruction, "undefined operation", error.message, lane, address)
        if tensor.rank != self._rank:
            message = f"expected a tensor map of rank {self._rank}, got {tensor.rank}"
            fault(self._instruction, "undefined operation", message, lane, address)
        return tensor


def _written(tensor: TensorMap) -> TensorMap:
    """The tensor whose elements a copy to it writes: rows end with a unit."""
    unit = UNIT // tensor.itemsize
    row = -(-tensor.extents[0] // unit) * unit
    return replace(tensor, extents=(row, *tensor.extents[1:]))


def _elements(tensor: TensorMap, coordinates: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Addresses of the elements of boxes, int64 [boxes, rows, inner extent], and which exist."""
    (count,) = coordinates[0].shape
    address = np.full((count, 1), tensor.address, np.int64)
    inside = np.ones((count, 1), bool)
    axes = zip(
        coordinates, tensor.box, tensor.extents, (tensor.itemsize, *tensor.strides), strict=True
    )
    for start, extent, limit, stride in reversed(list(axes)):
        place = start[:, None] + np.arange(extent)
        address = address[:, :, None] + place[:, None, :] * stride
        inside = inside[:, :, None] & ((place >= 0) & (place < limit))[:, None, :]
        shape = address.shape
        address, inside = (x.reshape(count, -1) for x in (address, inside))
    return address.reshape(shape), inside.reshape(shape)


def _rows(
    tensor: TensorMap, address: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First byte and bytes of the parts of rows that exist: what the engine asks memory for."""
    present = inside.sum(axis=2)
    rows = present > 0
    first = np.take_along_axis(address, inside.argmax(axis=2)[..., None], axis=2)[..., 0]
    return first[rows], present[rows] * tensor.itemsize


def _places(
    binder: Binder, instruction: Instruction, offsets: np.ndarray, lanes: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of the chunks of boxes in shared memory, and their lanes: [boxes x chunks]."""
    bad = np.flatnonzero(offsets % BOX_ALIGNMENT)
    if bad.size:
        binder.machine.fault(
            instruction,
            "misaligned",
            f"expected a box at a multiple of {BOX_ALIGNMENT} bytes of shared memory",
            int(lanes[bad[0]]),
            int(offsets[bad[0]]),
        )
    chunks = offsets[:, None] + np.arange(0, size, CHUNK)
    return chunks.reshape(-1), np.repeat(lanes, chunks.shape[1])


def _to_shared(binder: Binder, instruction: Instruction, rank: int) -> Step:
    to = shared_offsets(binder, instruction, instruction.operands[0])
    boxes = _Boxes(binder, instruction, instruction.operands[1], rank)
    mbarrier = shared_offsets(binder, instruction, instruction.operands[2])
    loads, stores = Counting(binder, instruction, False), Counting(binder, instruction, True)
    mbarriers = binder.mbarriers

    def run(active: Active) -> None:
        everyone, offsets = lanes_of(binder, active), to(active)
        places = mbarriers.locate(instruction, mbarrier(active), active.lanes)
        for chosen, tensor, coordinates in boxes.of(active):
            lanes = everyone[chosen]
            address, inside = _elements(tensor, coordinates)
            data = np.zeros(address.shape, UNSIGNED[tensor.itemsize])
            if inside.any():
                readers = np.repeat(lanes, inside.sum(axis=(1, 2)))
                found = address[inside].view(np.uint64)
                data[inside] = binder.globals.load(instruction, found, readers, tensor.itemsize, 1)
            size = data[0].nbytes
            chunks, owners = _places(binder, instruction, offsets[chosen], lanes, size)
            values = data.reshape(len(lanes), -1).view(np.uint64).reshape(-1, 2)
            granules = write_chunks(binder, instruction, chunks, owners, values)
            loads.of_ranges(*_rows(tensor, address, inside), len(lanes))
            stores.of_box(size, len(lanes))
            for index, place in enumerate(places[chosen].tolist()):
                mbarriers.attach(place, granules[..., owners == lanes[index]])
            sizes = np.full(len(lanes), size, np.int64)
            mbarriers.complete_bytes(instruction, places[chosen], lanes, sizes)

    return run


def _to_global(binder: Binder, instruction: Instruction, rank: int) -> Step:
    boxes = _Boxes(binder, instruction, instruction.operands[0], rank)
    origin = shared_offsets(binder, instruction, instruction.operands[1])
    loads, stores = Counting(binder, instruction, False), Counting(binder, instruction, True)

    def run(active: Active) -> None:
        everyone, offsets = lanes_of(binder, active), origin(active)
        for chosen, tensor, coordinates in boxes.of(active):
            lanes = everyone[chosen]
            address, inside = _elements(_written(tensor), coordinates)
            size = address[0].size * tensor.itemsize
            chunks, owners = _places(binder, instruction, offsets[chosen], lanes, size)
            values = read_chunks(binder, instruction, chunks, owners)
            data = values.view(UNSIGNED[tensor.itemsize]).reshape(address.shape)
            if inside.any():
                writers = np.repeat(lanes, inside.sum(axis=(1, 2)))
                found = address[inside].view(np.uint64)
                binder.globals.store(instruction, found, writers, data[inside], tensor.itemsize, 1)
            loads.of_box(size, len(lanes))
            stores.of_ranges(*_rows(tensor, address, inside), len(lanes))

    return run
