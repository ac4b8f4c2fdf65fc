# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs that are read ahead to shared memory, where they wait in a ring (see layout.march).

A slot of the ring holds what one step reads, its rows one after the other, without what lanes would
read twice. Lanes copy neighbouring accesses, warps of a block that share a ring every so many rows,
and each lane reads the fragments that it needs. So all who share a ring meet before they read a
step: then all copies of it are there, and none still reads the step before, whose slot is free.
Copies of a step are a group; registers hold none of them on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofour.codegen.gpu.block_code import shared_address
from twofour.codegen.gpu.code import Index, conjunction
from twofour.codegen.gpu.kernel_abi import workgroup
from twofour.codegen.gpu.matrix_ops import i32
from twofour.layout.fragments import LANES
from twofour.layout.march import ACCESS
from twofour.mlir import arith, gpu, ir, nvvm

if TYPE_CHECKING:
    from twofour.codegen.gpu.strip import Strip


class Ring:
    """Emits the copies and reads of a ring, at the insertion point.

    Slots are places in the ring, in bytes from its begin: words of 32 bits.
    """

    def __init__(self, strip: Strip):
        self.strip, self.layout, self.code = strip, strip.layout, strip.code
        byte, unknown = ir.IntegerType.get_signless(8), ir.ShapedType.get_dynamic_size()
        memory = gpu.dynamic_shared_memory(
            ir.MemRefType.get([unknown], byte, memory_space=workgroup())
        )
        code, layout = self.code, self.layout
        self.row_bytes = ACCESS * layout.row_accesses
        self.size = layout.stages * layout.slot_bytes
        self.is_shared = layout.ring_warps > 1
        # Of a ring that warps share: the rows that this one copies and reads begin at the first.
        row = self.row_bytes if self.is_shared else self.size
        rows = layout.rows * self.row_bytes if self.is_shared else self.size
        copied = code.add(code.mul(strip.warp, row), code.mul(strip.lane, ACCESS))
        read = code.add(code.mul(strip.warp, rows), code.mul(strip.lane_in, layout.itemsize))
        base = shared_address(memory)
        self.copied, self.read_from = (
            arith.addi(base, arith.index_cast(i32(), code.value(at))) for at in (copied, read)
        )

    def slot(self, number: int) -> ir.Value:
        """A slot by its number."""
        return self._word(number * self.layout.slot_bytes)

    def first_slots(self) -> tuple[ir.Value, ir.Value]:
        """Those of the first step and of the one before it."""
        return self.slot(0), self.slot(self.layout.stages - 1)

    def following(self, slot: ir.Value) -> ir.Value:
        """The slot after another."""
        further = arith.addi(slot, self._word(self.layout.slot_bytes))
        at_end = arith.cmpi(arith.CmpIPredicate.eq, further, self._word(self.size))
        return arith.select(at_end, self._word(0), further)

    def wait(self, groups: int) -> None:
        """Until all but the last groups of copies are there, of all who share the ring."""
        nvvm.cp_async_wait_group(groups)
        if self.is_shared:
            gpu.barrier()
        else:
            nvvm.bar_warp_sync(self._word(-1))

    def copy(self, slot: ir.Value, source: Index, step: Index, is_inside: bool) -> None:
        """Begin to copy what a step reads, as a group; its first row of inputs is at `source`."""
        layout, code = self.layout, self.code
        to, rows = arith.addi(self.copied, slot), len(layout.ring_rows)
        for first in range(0, rows, layout.ring_warps):
            across: Index = layout.ring_rows[first]
            if self.is_shared:
                across = code.add(self.strip.warp, across)
            begin = self.strip.row_at(source, across, is_inside)
            left = rows - first
            exists = code.less(self.strip.warp, left) if left < layout.ring_warps else None
            for access in range(0, layout.row_accesses, LANES):
                place = first * self.row_bytes + access * ACCESS
                self._copy(begin, access, to, place, exists, step, is_inside)
        nvvm.cp_async_commit_group()

    def _copy(
        self,
        row: Index,
        first: int,
        to: ir.Value,
        place: int,
        exists: ir.Value | None,
        step: Index,
        is_inside: bool,
    ) -> None:
        """Lanes copy the accesses of a row from number `first` on, one each."""
        code, layout = self.code, self.layout
        start = layout.first_start + first * layout.chunk
        at = code.mul(self.strip.lane, layout.chunk)
        if not is_inside:
            at = self.strip.existing(code.add(at, start), step)
            start = 0
        address, offset = self.strip.address(code.add(row, at)), start * layout.itemsize
        copy = (
            f"cp.async.ca.shared.global.L2::256B [{{$r0}}+{place}], [{{$r1}}+{offset}], {ACCESS};"
        )
        conditions = [] if exists is None else [exists]
        if layout.row_accesses - first < LANES:
            conditions.append(code.less(self.strip.lane, layout.row_accesses - first))
        nvvm.inline_ptx([], [to, address], [], copy, predicate=conjunction(conditions))

    def read(
        self, fragment: tuple[int, int], slot: ir.Value, step: Index, is_inside: bool
    ) -> list[ir.Value]:
        """This lane's words of a fragment of the step in a slot."""
        layout, (across, start) = self.layout, fragment
        place = (across - layout.ring_rows[0]) * self.row_bytes
        place += (start - layout.first_start) * layout.itemsize
        types = self.strip.fragment_types
        words = ", ".join(f"{{$w{number}}}" for number in range(len(types)))
        bits = 8 * ACCESS // len(types)
        load = f"ld.shared.v{len(types)}.b{bits} {{{words}}}, [{{$r0}}+{place}];"
        loaded = list(nvvm.inline_ptx(types, [arith.addi(self.read_from, slot)], [], load))
        return loaded if is_inside else self.strip.without_missing(loaded, start, step)

    def _word(self, number: int) -> ir.Value:
        return self.code.constants.get(
            ("word", number), lambda: arith.ConstantOp(i32(), number).result
        )
