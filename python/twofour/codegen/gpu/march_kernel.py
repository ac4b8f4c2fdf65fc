# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The march of a warp along the slowest axis (see layout.march), whatever computes its sums.

The sums of the rows of outputs that are not complete stay in registers, and the rows of inputs that
were read ahead as well, unless they wait in shared memory (targets.gpu.ring):

    read the first rows of inputs
    for the first `lead` rows:          they meet the first rows of outputs only
        add; read one row more
    for all rows but the last:          unrolled
        add; read one row more; write the row of outputs that is complete
    for the rows that were read ahead:  nothing is left to read
        add to the rows of outputs that will be complete; write

A loop of one row a round, for what whole rounds leave, moves what was read ahead from register to
register, and waits for it: marches of whole rounds and the rows read ahead do without. A looped
march is nothing but such a loop, its first rows of outputs are not written.

With several levels, a row of outputs that is complete is a row of inputs of the next level; what a
lane reads of it is in other lanes, some shuffles away. The next level takes it in the next step:
so the levels of one step do not wait for each other. Outputs at the ends of a strip, which would
need inputs of other strips, are not written.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twofour.codegen.cpu.kernel_abi import view_type
from twofour.codegen.gpu.code import Index
from twofour.codegen.gpu.kernel_abi import BlockShape, gpu_function
from twofour.codegen.gpu.matrix_ops import i32
from twofour.codegen.gpu.ring import Ring
from twofour.codegen.gpu.strip import Strip
from twofour.codegen.gpu.vector_access import elements
from twofour.codegen.rolled_loops import keep_rolled
from twofour.layout.fragments import LANES
from twofour.layout.march import SECTOR, March, Meeting
from twofour.mlir import arith, gpu, ir, scf, vector


@dataclass(frozen=True)
class MarchKernel:
    """What kernels that march have in common: constant + the sums of a layout.

    `element` is the spelling of the type in memory, such as f16.
    """

    name: str
    layout: March
    element: str
    constant: float = 0.0

    @property
    def launch(self) -> BlockShape:
        """How the kernel is launched."""
        layout = self.layout
        shape = (layout.threads, layout.tile, layout.march, SECTOR, layout.shared_bytes)
        return BlockShape(*shape, resident=layout.resident)


def build_march_kernel(
    kernel: MarchKernel, emitter: Callable[[ir.Block], "MarchEmitter"]
) -> gpu.GPUFuncOp:
    """Insert a kernel's function at the current insertion point.

    `emitter` makes what emits its body, from the entry block.
    """
    view = view_type(kernel.layout.rank, ir.Type.parse(kernel.element))
    function = gpu_function(kernel.name, [view, view], 1, kernel.launch)
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint(entry):
        march = emitter(entry)
        march.strip.when_working(march.emit)
        gpu.ReturnOp([])
    return function


@dataclass
class _State:
    """What a warp carries from step to step.

    `sums` holds, for each level, the rows of outputs that are begun, the oldest first: by row along
    the axis between, four numbers each. `completed` holds, for each level but the last, the words
    of the row that the step before completed, None where there is none. `queue` holds the words of
    the fragments of B that were read, the next one first. `source` is where the row of inputs lies
    that the next fragment is read from, `target` where the next row of outputs is written, `step`
    the number of the step. Where inputs wait in a ring, the queue is empty, and `slots` holds where
    the next step lies in the ring, and where the one before it lay.
    """

    sums: list[list[list[list[ir.Value]]]]
    completed: list[list[list[ir.Value]] | None]
    queue: list[list[ir.Value]]
    source: Index
    target: Index
    step: Index
    slots: tuple[ir.Value, ...] = ()

    def values(self) -> list[Index]:
        """All of it, as a loop carries it."""
        sums = [x for level in self.sums for row in level for numbers in row for x in numbers]
        words = [x for level in self.completed for row in level or () for x in row]
        words += [x for fragment in self.queue for x in fragment]
        return [*sums, *words, self.source, self.target, self.step, *self.slots]

    def like(self, values: Sequence[ir.Value]) -> "_State":
        """A state of the same shape from what `values` of it became."""
        left = iter(values)
        sums = [
            [[[next(left) for _ in numbers] for numbers in row] for row in level]
            for level in self.sums
        ]
        completed = [
            level and [[next(left) for _ in words] for words in level] for level in self.completed
        ]
        queue = [[next(left) for _ in fragment] for fragment in self.queue]
        source, target, step, *slots = left
        return _State(sums, completed, queue, source, target, step, tuple(slots))


class MarchEmitter(ABC):
    """Emits the march of a warp; subclasses say how fragments add to rows of outputs."""

    def __init__(self, layout: March, element: str, entry: ir.Block, masked: bool):
        self.layout, self.element = layout, ir.Type.parse(element)
        self.strip = Strip(layout, self.element, entry, masked)
        self.code = self.strip.code
        self.ring = Ring(self.strip) if layout.ring else None

    @abstractmethod
    def start(self) -> list[ir.Value]:
        """The numbers that this lane's sums of a row of outputs start from."""

    def unwanted(self) -> list[ir.Value]:
        """Any numbers, for this lane's sums of a row of outputs that is not written."""
        return self.start()

    @abstractmethod
    def unpack(self, words: list[ir.Value]) -> list[ir.Value]:
        """The words of a fragment as they are computed with."""

    @abstractmethod
    def contribute(
        self, meeting: Meeting, values: list[ir.Value], sums: list[ir.Value], level: int
    ) -> list[ir.Value]:
        """The sums of a row of outputs of a level after a fragment that it meets, unpacked."""

    @abstractmethod
    def complete(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The words of this lane's neighbouring outputs of a row that is complete."""

    def emit(self, is_inside: bool) -> None:
        """Advance from the first step to the last."""
        self.is_inside = is_inside
        code, layout, steps = self.code, self.layout, self.strip.steps
        self.last = code.add(steps, layout.levels * layout.depth - 1)
        state = self._begin()
        if layout.looped:
            self._emit_looped(state)
            return
        for _ in range(layout.lead):
            self._step(state, checked=True)
        if layout.compact and not is_inside:
            self._loop(state, steps, 1, checked=True)
            if self.ring is not None:
                self.ring.wait(0)
            return
        # Of these steps every one has a fragment to read ahead.
        left = code.maximum(code.sub(steps, layout.drained), 0)
        rounds = code.div(left, layout.unroll)
        state = self._loop(state, rounds, layout.unroll, checked=False)
        left = code.sub(left, code.mul(rounds, layout.unroll))
        state = self._loop(state, left, 1, checked=False)
        for number in range(layout.drained):
            row = self._step(state, checked=True, steps_left=layout.drained - number)
            # A march may have fewer steps than are read ahead.
            self._write(state, row, code.less(number, steps) if number else None)

    def _emit_looped(self, state: _State) -> None:
        """All steps as one loop.

        Rows of outputs that lie before the first are begun as well, but not written.
        """
        code, layout = self.code, self.layout
        for _ in range(layout.depth):
            state.sums[0].append([self.unwanted() for _ in range(layout.rows)])
        state.target = code.sub(state.target, code.mul(self.strip.pitch_out, layout.lead))
        self._loop(state, code.add(self.strip.steps, layout.lead), 1, checked=True)
        self.ring.wait(0)

    def _begin(self) -> _State:
        """Read the first fragments."""
        sums, completed = [[] for _ in range(self.layout.levels)], [None] * (self.layout.levels - 1)
        places = self.strip.begin_of_inputs(), self.strip.begin_of_outputs()
        state = _State(sums, completed, [], *places, 0)
        if self.ring is not None:
            state.slots = self.ring.first_slots()
            for number in range(self.layout.steps_ahead):
                self._copy(state, number, self.ring.slot(number), checked=True)
            return state
        for number in range(self.layout.stages - 1):
            self._read(state, number, checked=True)
        return state

    def _loop(self, state: _State, rounds: Index, steps: int, checked: bool) -> _State:
        """`rounds` times so many steps, each of which completes a row of outputs.

        Those of the first `lead` steps of a looped march are none.
        """
        code = self.code
        begin = [code.value(value) for value in state.values()]
        loop = scf.ForOp(code.value(0), code.value(rounds), code.value(1), begin)
        keep_rolled(loop)
        with ir.InsertionPoint(loop.body):
            inner = state.like(list(loop.inner_iter_args))
            exists = self._has_rows_beyond(inner, steps) if steps > 1 else None
            for _ in range(steps):
                if exists is not None:
                    self._prefetch(inner, exists)
                row = self._step(inner, checked)
                wanted = code.less(self.layout.lead, inner.step) if self.layout.looped else None
                self._write(inner, row, wanted)
            scf.yield_([code.value(value) for value in inner.values()])
        return state.like(list(loop.results))

    def _has_rows_beyond(self, state: _State, steps: int) -> ir.Value | None:
        """Whether the march needs all rows that so many steps prefetch; None where none do."""
        layout, code = self.layout, self.code
        if not (layout.prefetched and self.is_inside):
            return None
        last = layout.steps_ahead + layout.prefetched + steps - 1
        return code.less(code.add(state.step, last - 1), self.last)

    def _prefetch(self, state: _State, exists: ir.Value) -> None:
        """Begin to bring a row beyond those that were read to the second-level cache."""
        code = self.code
        beyond = code.mul(self.strip.pitch_in, self.layout.prefetched)
        code.when(exists, lambda: self.strip.prefetch(code.add(state.source, beyond)))

    def _step(
        self, state: _State, checked: bool, steps_left: int | None = None
    ) -> list[list[ir.Value]] | None:
        """Add the fragments of a step to the rows of outputs that they meet, of all levels.

        Levels begin when the one before them has completed a row. Near the end `steps_left` are the
        steps from this one on: all fragments that they need have been read or will be, levels
        before the last end earlier, and rows that will not be complete are not added to. Returns
        the row of outputs of the last level that is complete, None where there is none.
        """
        levels, completed = self.layout.levels, [None] * self.layout.levels
        for level in range(levels):
            left = None if steps_left is None else steps_left - (levels - 1 - level)
            passed = state.completed[level - 1] if level else None
            if (level and passed is None) or (left is not None and left <= 0):
                continue
            self._begin_row(state.sums[level])
            if level:
                for fragment in self.layout.reads:
                    words = self.passed(passed[fragment[0]], fragment[1])
                    self._add(state, level, fragment, words, left)
            elif self.ring is None:
                self._add_from_queue(state, checked, left)
            else:
                self._add_from_ring(state, checked, left)
        state.step = self.code.add(state.step, 1)
        for level, sums in enumerate(state.sums):
            if len(sums) > self.layout.depth:
                completed[level] = [self.complete(numbers) for numbers in sums.pop(0)]
        state.completed = completed[:-1]
        return completed[-1]

    def _add_from_queue(self, state: _State, checked: bool, steps_left: int | None) -> None:
        """Add the fragments of a step that were read to registers, and read as many ahead."""
        layout = self.layout
        for number, fragment in enumerate(layout.reads):
            self._add(state, 0, fragment, state.queue.pop(0), steps_left)
            ahead = number + layout.stages - 1
            if steps_left is None or ahead < steps_left * len(layout.reads):
                self._read(state, ahead, checked)

    def _add_from_ring(self, state: _State, checked: bool, steps_left: int | None) -> None:
        """Add the fragments of a step that lies in the ring, and begin to copy one ahead."""
        layout, ring, (slot, free) = self.layout, self.ring, state.slots
        ahead = layout.steps_ahead
        ring.wait((ahead if steps_left is None else steps_left) - 1)
        if steps_left is None:
            self._copy(state, ahead, free, checked)
        for fragment in layout.reads:
            words = ring.read(fragment, slot, state.step, self.is_inside)
            self._add(state, 0, fragment, words, steps_left)
        state.slots = (ring.following(slot), slot)

    def _begin_row(self, sums: list) -> None:
        """Begin the row of outputs that meets its first row of inputs now."""
        sums.append([self.start() for _ in range(self.layout.rows)])

    def _add(
        self,
        state: _State,
        level: int,
        fragment: tuple[int, int],
        words: list[ir.Value],
        steps_left: int | None,
    ) -> None:
        """Add a fragment to all rows of outputs that it meets, of which the last begins with it."""
        layout, (between, start), sums = self.layout, fragment, state.sums[level]
        values, newest = self.unpack(words), len(sums) - 1
        # Where rows change registers in every step, the oldest one frees that of the next.
        for meeting in sorted(layout.meetings, reverse=layout.looped):
            row, y = newest - (meeting.along - layout.first), between - meeting.across
            needed = steps_left is None or row < steps_left
            if start == meeting.start and needed and 0 <= row and 0 <= y < layout.rows:
                sums[row][y] = self.contribute(meeting, values, sums[row][y], level)

    def passed(self, words: list[ir.Value], start: int) -> list[ir.Value]:
        """A fragment of a row that the level before completed, from all lanes' words of it.

        Neighbouring inputs are outputs of one lane or of two.
        """
        code, layout = self.code, self.layout
        lanes = layout.chunk // layout.written
        if lanes == 1 and start == 0:
            return words
        first = code.div(code.add(self.strip.lane_in, start, layout.strip), layout.written)
        found = []
        for number in range(lanes):
            lane = code.rem(code.add(first, number), LANES)
            place = arith.index_cast(i32(), code.value(lane))
            found += [self.of_lane(word, place) for word in words]
        return found

    def of_lane(self, word: ir.Value, lane: ir.Value) -> ir.Value:
        """Another lane's word."""
        width = self.code.constants.get(
            ("shuffle", 0), lambda: arith.ConstantOp(i32(), LANES).result
        )
        if self.layout.itemsize < 8:
            return gpu.shuffle(word, lane, width, gpu.ShuffleMode.IDX)[0]
        halves = vector.bitcast(ir.VectorType.get([2], i32()), _single(word))
        moved = [gpu.shuffle(h, lane, width, gpu.ShuffleMode.IDX)[0] for h in elements(halves)]
        pair = vector.from_elements(ir.VectorType.get([2], i32()), moved)
        return elements(vector.bitcast(ir.VectorType.get([1], word.type), pair))[0]

    def _read(self, state: _State, number: int, checked: bool) -> None:
        """Read fragment `number`, counted from the first of the current step."""
        code, reads = self.code, self.layout.reads
        later, place = divmod(number, len(reads))
        step = code.add(state.step, later)
        state.queue.append(self.strip.read(reads[place], state.source, step, self.is_inside))
        if place == len(reads) - 1:
            self._advance(state, step, checked)

    def _copy(self, state: _State, later: int, slot: ir.Value, checked: bool) -> None:
        """Begin to copy what a later step reads to a slot of the ring."""
        step = self.code.add(state.step, later)
        self.ring.copy(slot, state.source, step, self.is_inside)
        self._advance(state, step, checked)

    def _advance(self, state: _State, step: Index, checked: bool) -> None:
        """Go on to the row of inputs after that of a step."""
        code = self.code
        following = code.add(state.source, self.strip.pitch_in)
        if checked:
            # Beyond the last row the last one is read again.
            following = code.select(code.less(step, self.last), following, state.source)
        state.source = following

    def _write(
        self, state: _State, row: list[list[ir.Value]], condition: ir.Value | None = None
    ) -> None:
        """Write a row of outputs."""
        code, layout = self.code, self.layout
        outputs = [self._outputs(words) for words in row]
        target = state.target
        number = code.sub(state.step, layout.lead + 1)
        state.target = code.add(target, self.strip.pitch_out)

        def write() -> None:
            self.strip.write(outputs, target, number, self.is_inside)

        if condition is None:
            write()
        else:
            code.when(condition, write)

    def _outputs(self, words: list[ir.Value]) -> ir.Value:
        """Words as they are stored."""
        values = vector.from_elements(ir.VectorType.get([len(words)], words[0].type), words)
        kind = ir.VectorType.get([self.layout.written], self.element)
        return values if values.type == kind else vector.bitcast(kind, values)


def _single(word: ir.Value) -> ir.Value:
    return vector.from_elements(ir.VectorType.get([1], word.type), [word])
