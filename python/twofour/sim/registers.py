# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which registers an instruction reads and writes, and where the simulator keeps them.

PTX of LLVM is in SSA form with thousands of registers. Those that are never live together share
one array, which keeps the simulator in the processor's caches.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from twofour.sim.flow import Segment
from twofour.sim.ptx import (
    Address,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Pair,
    Register,
    Vector,
)
from twofour.sim.special import SPECIAL_REGISTERS
from twofour.sim.variables import SIZES

# Roots without a destination; `mbarrier` and `cp` have one only where their first operand is one.
_NO_RESULT = {
    *("st", "red", "bra", "brx", "membar", "fence", "cp", "prefetch"),
    *("prefetchu", "stmatrix", "griddepcontrol", "nanosleep", "ret", "exit", "trap", "discard"),
    *("applypriority", "setmaxnreg"),
}


def results(instruction: Instruction) -> int:
    """How many leading operands are written."""
    if instruction.root in _NO_RESULT or not instruction.operands:
        return 0
    if instruction.root in ("bar", "barrier"):
        return 1 if "red" in instruction.modifiers else 0
    if instruction.root == "mbarrier":
        return 0 if isinstance(instruction.operands[0], Address) else 1
    return 1


def named(operand: Operand) -> Iterator[str]:
    """The names of the registers in an operand."""
    if isinstance(operand, Register):
        if operand.name not in SPECIAL_REGISTERS and operand.name != "_":
            yield operand.name
    elif isinstance(operand, Negated):
        yield from named(operand.register)
    elif isinstance(operand, Vector):
        for element in operand.elements:
            yield from named(element)
    elif isinstance(operand, Pair):
        yield from named(operand.first)
        yield from named(operand.second)
    elif isinstance(operand, Address):
        yield from named(operand.base)
        if operand.coordinates:
            yield from named(operand.coordinates)


def written(instruction: Instruction) -> list[str]:
    count = results(instruction)
    return [name for operand in instruction.operands[:count] for name in named(operand)]


def read(instruction: Instruction) -> list[str]:
    count = results(instruction)
    names = [name for operand in instruction.operands[count:] for name in named(operand)]
    if instruction.guard:
        names += named(instruction.guard)
    if instruction.operands[:count] and isinstance(instruction.operands[0], Address):
        names += named(instruction.operands[0])
    return names


def passed(instruction: Instruction) -> set[str]:
    """The register whose value a shuffle passes on, where it is read for nothing else."""
    if instruction.root != "shfl":
        return set()
    value, *others = instruction.operands[1:]
    return {*named(value)} - {name for operand in others for name in named(operand)}


@dataclass
class Allocation:
    """`slots`: array of every register; `kinds`: bytes of a value in every array, 0 for predicates.

    `tracked` are the registers that some path reads before it writes them: whether each lane has
    written one is recorded while the kernel runs.
    """

    slots: dict[str, int]
    kinds: list[int]
    tracked: set[str]


def allocate(kernel: Kernel, segments: list[Segment]) -> Allocation:
    """Arrays for the registers of a kernel whose segments are in execution order."""
    names = list(kernel.registers)
    bit = {name: 1 << i for i, name in enumerate(names)}
    uses, certain = [], []
    for segment in segments:
        used = sure = 0
        for instruction in kernel.body[segment.start : segment.end]:
            for name in read(instruction):
                used |= bit[name] & ~sure
            if instruction.guard is None:
                for name in written(instruction):
                    sure |= bit[name]
        uses.append(used)
        certain.append(sure)
    live_out = _live(segments, uses, certain)
    tracked = _maybe_undefined(kernel, segments, certain, bit) - _dropped(kernel)
    return _share(kernel, segments, uses, certain, live_out, tracked)


def _live(segments: list[Segment], uses: list[int], certain: list[int]) -> list[int]:
    live_in = list(uses)
    live_out = [0] * len(segments)
    changed = True
    while changed:
        changed = False
        for i in range(len(segments) - 1, -1, -1):
            out = 0
            for successor in segments[i].successors:
                out |= live_in[successor]
            into = uses[i] | (out & ~certain[i])
            if out != live_out[i] or into != live_in[i]:
                live_out[i], live_in[i], changed = out, into, True
    return live_out


def _maybe_undefined(
    kernel: Kernel, segments: list[Segment], certain: list[int], bit: dict[str, int]
) -> set[str]:
    everything = (1 << len(bit)) - 1
    entering = [0] + [everything] * (len(segments) - 1)
    changed = True
    while changed:
        changed = False
        for i, segment in enumerate(segments):
            leaving = entering[i] | certain[i]
            for successor in segment.successors:
                if entering[successor] & ~leaving:
                    entering[successor] &= leaving
                    changed = True
    tracked = set()
    for i, segment in enumerate(segments):
        sure = entering[i]
        for instruction in kernel.body[segment.start : segment.end]:
            for name in read(instruction):
                if not sure & bit[name]:
                    tracked.add(name)
            if instruction.guard is None:
                for name in written(instruction):
                    sure |= bit[name]
    return tracked


def _dropped(kernel: Kernel) -> set[str]:
    """Registers that nothing writes, and of packed ones that parts which nothing takes.

    LLVM writes its `undef` like that: `mov.b64 %rd1, {%r1, %r2}; mov.b64 {_, %r3}, %rd1;`.
    """
    ever = {name for instruction in kernel.body for name in written(instruction)}
    readers: dict[str, list[Instruction]] = {}
    for instruction in kernel.body:
        for name in dict.fromkeys(read(instruction)):
            readers.setdefault(name, []).append(instruction)

    def is_dropped(name: str, reader: Instruction) -> bool:
        if reader.root != "mov" or not isinstance(reader.operands[1], Vector):
            return False
        target, parts = reader.operands[0], reader.operands[1].elements
        places = [place for place, part in enumerate(parts) if part == Register(name)]
        return isinstance(target, Register) and all(
            _drops(user, len(parts), places) for user in readers.get(target.name, ())
        )

    return {
        name
        for name in readers
        if name not in ever and all(is_dropped(name, reader) for reader in readers[name])
    }


def _drops(instruction: Instruction, count: int, places: list[int]) -> bool:
    """Whether it takes a register of so many parts apart, and leaves those at some places."""
    target = instruction.operands[0]
    return (
        instruction.root == "mov"
        and isinstance(target, Vector)
        and len(target.elements) == count
        and all(target.elements[place] == Register("_") for place in places)
    )


def _share(
    kernel: Kernel,
    segments: list[Segment],
    uses: list[int],
    certain: list[int],
    live_out: list[int],
    tracked: set[str],
) -> Allocation:
    names = list(kernel.registers)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    position = 0

    def touch(name: str, at: int) -> None:
        first.setdefault(name, at)
        last[name] = at

    for i, segment in enumerate(segments):
        start = position
        # Registers live at either end of the segment are live there whatever it does with them.
        entering = uses[i] | (live_out[i] & ~certain[i])
        for name in _members(entering, names):
            touch(name, start)
        for instruction in kernel.body[segment.start : segment.end]:
            position += 1
            for name in (*read(instruction), *written(instruction)):
                touch(name, position)
        position += 1
        for name in _members(live_out[i], names):
            touch(name, position)
    slots: dict[str, int] = {}
    kinds: list[int] = []
    free: dict[int, list[int]] = {}
    active: list[tuple[int, int]] = []
    for name in sorted(first, key=first.__getitem__):
        while active and active[0][0] < first[name]:
            _, slot = heapq.heappop(active)
            free.setdefault(kinds[slot], []).append(slot)
        kind = kernel.registers[name]
        size = 0 if kind == "pred" else SIZES[kind]
        available = free.get(size)
        if available and name not in tracked:
            slot = available.pop()
        else:
            slot = len(kinds)
            kinds.append(size)
        slots[name] = slot
        if name not in tracked:
            heapq.heappush(active, (last[name], slot))
    return Allocation(slots, kinds, tracked)


def _members(bits: int, names: list[str]) -> Iterator[str]:
    while bits:
        low = bits & -bits
        yield names[low.bit_length() - 1]
        bits ^= low
