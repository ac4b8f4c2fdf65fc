# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel bound to a batch of blocks: its memories laid out, its instructions decoded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from twofour.errors import TwofourError
from twofour.sim import (
    access,
    asynchronous,
    atomics,
    barriers,
    bits,
    convert,
    copy_groups,
    floating,
    flow,
    integer,
    matrix,
    mbarrier,
    moves,
    registers,
    warp,
)
from twofour.sim.constant import ConstantSpace
from twofour.sim.counters import Counters
from twofour.sim.decode import DECODERS, Binder, Step, Value, integer_of
from twofour.sim.globals import GlobalSpace
from twofour.sim.local import LocalSpace
from twofour.sim.machine import Active, Machine
from twofour.sim.memory import Memory
from twofour.sim.module_variables import ModuleVariables
from twofour.sim.ptx import Address, Instruction, Kernel, Operand, Symbol, Variable, Vector
from twofour.sim.shared import SharedSpace
from twofour.tensor_map import ITEMSIZES

# Modules that are needed for the decoders which they register.
_FAMILIES = (asynchronous, atomics, bits, convert, floating, matrix, moves, warp)
_MEMORY_ROOTS = ("ld", "ldu", "st", "atom", "red")


@dataclass
class LaunchState:
    """What a launch hands to the decoded instructions."""

    counters: Counters
    parameters: bytes


@dataclass
class BoundSegment:
    """A segment with its decoded steps; `last` is what the executor does at its end."""

    kind: str
    steps: list[Step]
    successors: list[int]
    instruction: Instruction | None
    condition: tuple[Value, bool] | None = None
    arrival: barriers.Arrival | None = None
    wait: mbarrier.Wait | None = None
    index: Value | None = None


@dataclass
class _Layout:
    """Offsets of variables in one state space, and its size."""

    offsets: dict[str, int]
    size: int


@dataclass(frozen=True)
class _Analysis:
    """What follows from a kernel's text alone: its parts, where its registers lie, its accesses.

    `symbols` are the names that its instructions use; `global_granule` and `shared_granule` the
    bytes of the smallest accesses.
    """

    segments: list[flow.Segment]
    allocation: registers.Allocation
    symbols: frozenset[str]
    global_granule: int
    shared_granule: int


@lru_cache(maxsize=64)
def _analysis(kernel: Kernel) -> _Analysis:
    segments = flow.segments_of(kernel)
    return _Analysis(
        segments,
        registers.allocate(kernel, segments),
        frozenset(name for i in kernel.body for o in i.operands for name in _symbols(o)),
        _granule(kernel, _is_global_store, 32),
        _granule(kernel, _is_shared, 16),
    )


class Program:
    """The kernel on `blocks` blocks at a time. Raises TwofourError for what is not supported."""

    def __init__(
        self,
        kernel: Kernel,
        blocks: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        dynamic_bytes: int,
        memory: Memory,
        variables: ModuleVariables,
    ):
        self.kernel = kernel
        analysis = _analysis(kernel)
        self.segments = analysis.segments
        self.machine = Machine(kernel, blocks, grid, block)
        binder = self.binder = Binder(self.machine, kernel, analysis.allocation)
        shared, local = shared_layout(kernel, dynamic_bytes), _layout(_of_space(kernel, "local"))
        self.machine.shared_bytes, self.machine.dynamic_bytes = shared.size, dynamic_bytes
        binder.symbols = dict(variables.symbols)
        binder.symbols |= {name: ("shared", at) for name, at in shared.offsets.items()}
        binder.symbols |= {name: ("local", at) for name, at in local.offsets.items()}
        binder.symbols |= {p.name: ("param", p.offset) for p in kernel.parameters}
        binder.globals = GlobalSpace(self.machine, memory, analysis.global_granule)
        binder.shared = SharedSpace(self.machine, shared.size, analysis.shared_granule)
        binder.local = LocalSpace(self.machine, local.size)
        binder.constants = ConstantSpace(self.machine, variables.constants)
        binder.launch = LaunchState(Counters(), b"")
        binder.asynchronous = copy_groups.Copies(binder)
        binder.bulk_reads = copy_groups.Reads(binder)
        binder.mbarriers = mbarrier.Mbarriers(binder)
        binder.barriers = barriers.Barriers(self.machine)
        self.bound = [self._bind(segment) for segment in self.segments]
        self.executions = np.zeros(len(self.segments), np.int64)

    def _bind(self, segment: flow.Segment) -> BoundSegment:
        body = self.kernel.body[segment.start : segment.end]
        last = body[-1] if body and flow.ending(body[-1]) else None
        steps = [self._step(instruction) for instruction in (body[:-1] if last else body)]
        bound = BoundSegment(segment.kind, steps, segment.successors, last)
        binder = self.binder
        if last is None:
            return bound
        if last.guard:
            if segment.kind in ("barrier", "wait"):
                binder.error(last, f"a guard of {last.opcode} is not supported")
            bound.condition = binder.predicate(last, last.guard)
        if self._checks(last):
            bound.steps.append(self._checked(last, lambda active: None))
        if segment.kind == "barrier":
            bound.arrival = barriers.decode(binder, last)
        elif segment.kind == "wait":
            bound.wait = mbarrier.decode_wait(binder, last)
        elif segment.kind == "brx":
            bound.index = binder.source(last, last.operands[0], "u32")
        elif segment.kind in ("exit", "trap") and (last.operands or set(last.modifiers) - {"uni"}):
            binder.error(last, f"unsupported form of {last.opcode}")
        return bound

    def _step(self, instruction: Instruction) -> Step:
        if instruction.root not in DECODERS:
            raise TwofourError(
                f"unsupported instruction {instruction.opcode}", instruction.location
            )
        decoder, _ = DECODERS[instruction.root]
        step = decoder(self.binder, instruction)
        if self._checks(instruction):
            step = self._checked(instruction, step)
        if instruction.guard is None:
            return step
        condition, inverted = self.binder.predicate(instruction, instruction.guard)
        undefined = self._undefined_guard(instruction)

        def guarded(active: Active) -> None:
            undefined(active)
            chosen = active.narrowed(~condition if inverted else condition)
            if chosen is not None:
                step(chosen)

        return guarded

    def _checks(self, instruction: Instruction) -> bool:
        if not self.binder.defined:
            return False
        names = (*registers.read(instruction), *registers.written(instruction))
        return any(name in self.binder.defined for name in names)

    def _undefined_guard(self, instruction: Instruction) -> Step:
        names = [n for n in registers.named(instruction.guard) if n in self.binder.defined]
        if not names:
            return lambda active: None
        return lambda active: self._require(instruction, names, active)

    def _require(self, instruction: Instruction, names: list[str], active: Active) -> None:
        for name in names:
            missing = active.here & ~self.binder.defined[name]
            if missing.any():
                lane = int(np.flatnonzero(missing)[0])
                self.machine.fault(instruction, "uninitialised register", f"{name} is read", lane)

    def _checked(self, instruction: Instruction, step: Step) -> Step:
        """The step, with a check that registers which may be undefined are not."""
        defined = self.binder.defined
        guard = set() if instruction.guard is None else set(registers.named(instruction.guard))
        # Of what a shuffle passes on, the lane that it comes from must have a value.
        passed = registers.passed(instruction)
        needed = [
            n
            for n in registers.read(instruction)
            if n in defined and n not in guard and n not in passed
        ]
        if instruction.guard and flow.ending(instruction):
            needed += [n for n in guard if n in defined]
        set_here = [defined[n] for n in registers.written(instruction) if n in defined]

        def run(active: Active) -> None:
            self._require(instruction, needed, active)
            step(active)
            for marks in set_here:
                marks |= active.here

        return run

    def start(self, first_block: int) -> None:
        """Prepare for a batch."""
        self.machine.start(first_block)
        self.binder.start()
        self.binder.asynchronous.start()
        self.binder.bulk_reads.start()
        self.binder.mbarriers.start()
        self.binder.shared.clear()
        self.binder.local.clear()
        self.binder.barriers.clear()

    def count(self, counters: Counters) -> None:
        """Add what was executed since the last call."""
        for segment, executions in zip(self.segments, self.executions.tolist(), strict=True):
            if not executions:
                continue
            for instruction in self.kernel.body[segment.start : segment.end]:
                kind = category(instruction)
                counters.classes[kind] += executions
                if kind == "mma":
                    counters.mma_kinds[instruction.opcode] += executions
                counters.line(instruction.location.line).executions += executions
        self.executions[:] = 0


_ENDINGS = {"barrier": "barrier", "wait": "barrier"}


def category(instruction: Instruction) -> str:
    """The class of an instruction in the counters."""
    if instruction.root in ("ld", "ldu", "st"):
        return access.category(instruction)
    ending = flow.ending(instruction)
    if ending:
        return _ENDINGS.get(ending, "control")
    kind = DECODERS[instruction.root][1]
    if kind == "arithmetic":
        return "integer" if integer.is_integer(instruction) else "float"
    return kind


def _of_space(kernel: Kernel, space: str) -> list[Variable]:
    return [v for v in kernel.variables.values() if v.space == space]


def _layout(variables: list[Variable]) -> _Layout:
    offsets, size = {}, 0
    for variable in variables:
        size = -(-size // variable.alignment) * variable.alignment
        offsets[variable.name] = size
        size += variable.size or 0
    return _Layout(offsets, size)


def shared_layout(kernel: Kernel, dynamic_bytes: int) -> _Layout:
    """Where the shared variables of a kernel lie: its own, the module's, then dynamic ones."""
    used = _analysis(kernel).symbols
    everywhere = [
        v for v in kernel.module.globals.values() if v.space == "shared" and v.name in used
    ]
    own = _of_space(kernel, "shared")
    fixed = _layout([v for v in (*own, *everywhere) if v.size is not None])
    open_ended = [v for v in (*own, *everywhere) if v.size is None]
    for variable in open_ended:
        alignment = max(variable.alignment, 16)
        fixed.offsets[variable.name] = -(-fixed.size // alignment) * alignment
    start = max([fixed.size, *(fixed.offsets[v.name] for v in open_ended)])
    return _Layout(fixed.offsets, start + dynamic_bytes)


def _symbols(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Symbol):
        yield operand.name
    elif isinstance(operand, Address):
        yield from _symbols(operand.base)
    elif isinstance(operand, Vector):
        for element in operand.elements:
            yield from _symbols(element)


def _spaces(instruction: Instruction) -> set[str]:
    return {m.split("::")[0] for m in instruction.modifiers}


def _is_copy(instruction: Instruction) -> bool:
    return instruction.root == "cp" and len(instruction.operands) > 2


def _is_tensor_store(instruction: Instruction) -> bool:
    return instruction.root == "cp" and {"tensor", "bulk_group"} <= set(instruction.modifiers)


def _is_global_store(instruction: Instruction) -> bool:
    if instruction.root == "st":
        return not {"shared", "local"} & _spaces(instruction)
    return _is_copy(instruction) or _is_tensor_store(instruction)


def _is_shared(instruction: Instruction) -> bool:
    elsewhere = {"global", "local", "const", "param"}
    plain = instruction.root in _MEMORY_ROOTS and not elsewhere & _spaces(instruction)
    return plain or _is_copy(instruction)


def _granule(kernel: Kernel, matches: Callable[[Instruction], bool], largest: int) -> int:
    """The smallest access of the kernel among those that match, in bytes."""
    return min([largest, *(_accessed(i) for i in kernel.body if matches(i))])


def _accessed(instruction: Instruction) -> int:
    """Bytes of one access: bulk copies are done 16 bytes at a time, which others divide.

    What tensor copies write to global memory ends with any element.
    """
    if instruction.root != "cp":
        return access.width(instruction)
    if _is_tensor_store(instruction):
        return min(ITEMSIZES.values())
    size = integer_of(instruction.operands[2])
    return size if size in (4, 8) else 16
