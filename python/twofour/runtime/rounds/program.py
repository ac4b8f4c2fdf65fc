# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with loops as rounds of phases, which native code repeats on its own.

An innermost loop becomes rounds, one for each iteration that carries other buffers. What stands
between loops is one round. Loops around others are walked from here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from twofour.runtime.loops import (
    Course,
    Launch,
    Loop,
    Places,
    Recurring,
    Step,
    View,
    place_of,
    range_of,
    round_of,
)
from twofour.runtime.rounds.actions import Buffer, Copy, Round
from twofour.runtime.rounds.round_tables import BoundRounds, RoundTables
from twofour.runtime.rounds.step_tables import STRETCH_WORDS, Index, StepCode, stretches_of
from twofour.runtime.threads import waking_threads

# Copies that need nothing of each other.
Copies = tuple[Copy, ...]
NO_COPIES: Recurring[tuple[Copies, ...]] = Recurring(((),))
# Stretches that native code is given at once.
MOST_STRETCHES = 4096


@dataclass(frozen=True, eq=False)
class Stretch:
    """`count` rounds of tables."""

    tables: RoundTables
    count: int

    def times(self, count: int) -> "Stretch":
        """So many rounds."""
        return Stretch(self.tables, count)


@dataclass(frozen=True, eq=False)
class Turns:
    """A loop of `count` iterations around others; after the last of `bodies` follows `start`."""

    bodies: tuple[tuple["Node", ...], ...]
    start: int
    count: int
    index: Index | None

    def times(self, count: int) -> "Turns":
        """So many iterations."""
        return Turns(self.bodies, self.start, count, self.index)


Node = Stretch | Turns


@dataclass(frozen=True)
class Setting:
    """The index of a loop around others becomes `value`, in its buffer."""

    buffer: int
    value: int


class Program:
    """Calls of a program: `calls` is a loop over them, on their arguments, to any number.

    Before each of them come `copies`, in phases.
    `bounds` are the arguments at which loops of the program begin or end, `cells` the buffers of
    the indices that launches read, and `given` those of other values that copies read, among all
    `buffers`. There are `most_threads`.
    It is worth `threads` of these; `points` are those of the largest round.
    """

    def __init__(
        self,
        code: StepCode,
        calls: Loop,
        copies: Recurring[tuple[Copies, ...]],
        bounds: Mapping[int, int],
        cells: Mapping[int, int],
        given: Mapping[int, int],
        buffers: Sequence[Buffer],
        most_threads: int,
    ):
        self._code, self._buffers, self._most_threads = code, buffers, most_threads
        self._bounds, self._cells = bounds, cells
        self._tables: list[RoundTables] = []
        places = {value: View(number, ()) for value, number in {**cells, **given}.items()}
        self._nodes = self._loop(calls, places, copies)
        self.points = max((tables.points for tables in self._tables), default=1)
        self.threads = max((tables.threads for tables in self._tables), default=1)
        for tables in self._tables:
            tables.run_on(self.threads)

    def bind(self, arrays: Sequence[np.ndarray], calls: int) -> "Run":
        """So many calls on these arrays."""
        bound = {tables: BoundRounds(tables, arrays) for tables in self._tables}
        nodes = [node.times(calls) for node in self._nodes]
        return Run(self._code, nodes, arrays, bound)

    def get_ready(self) -> None:
        """Make the tables that most runs take."""
        for tables in self._tables:
            tables.get_ready()

    def _range(self, loop: Loop) -> range:
        return range_of(loop, self._bounds)

    def _loop(
        self, loop: Loop, places: Places, copies: Recurring[tuple[Copies, ...]] = NO_COPIES
    ) -> tuple[Node, ...]:
        """The node of a loop, none if nothing happens in it; `places` is brought up to date.

        Before each iteration come `copies`.
        """
        course = Course(loop, places, self._range)
        start = max(course.start, copies.start)
        distinct = start + math.lcm(course.distinct - course.start, copies.period)
        numbers = range(min(distinct, course.count))
        states = [{**places, **course.at(number)} for number in numbers]
        bodies = [(*copies.at(number), *loop.body) for number in numbers]
        places.update(course.at(course.count))
        # A loop may end before what it carries repeats.
        start = min(start, max(0, len(states) - 1))
        index = None
        if loop.index in self._cells:
            index = Index(self._cells[loop.index], course.rounds.start, loop.step)
        if any(isinstance(step, Loop) for step in loop.body):
            nodes = tuple(map(self._body, bodies, states))
            return (Turns(nodes, start, course.count, index),) if any(nodes) else ()
        rounds = list(map(phases_of, bodies, states))
        return self._stretch(rounds, start, course.count, index)

    def _body(self, steps: Sequence[Step | Copies], places: Places) -> tuple[Node, ...]:
        nodes, straight = [], []
        for step in steps:
            if isinstance(step, Loop):
                nodes += self._stretch([phases_of(straight, places)], 0, 1)
                nodes += self._loop(step, places)
                straight = []
            else:
                straight.append(step)
        nodes += self._stretch([phases_of(straight, places)], 0, 1)
        return tuple(nodes)

    def _stretch(
        self, rounds: Sequence[Round], start: int, count: int, index: Index | None = None
    ) -> tuple[Node, ...]:
        if not any(rounds):
            return ()
        tables = RoundTables(
            self._code, self._buffers, rounds, start, index, self._most_threads, count
        )
        self._tables.append(tables)
        return (Stretch(tables, count),)


class Run:
    """The rounds of nodes in order, some at a time, on the buffers of a run."""

    def __init__(
        self,
        code: StepCode,
        nodes: Sequence[Node],
        arrays: Sequence[np.ndarray],
        bound: Mapping[RoundTables, BoundRounds],
    ):
        self.rounds, self._code = _count(nodes), code
        self._arrays, self._bound, self._rest = arrays, bound, _walk(nodes)
        self._now: tuple[BoundRounds, int, int] | None = None

    def advance(self, most: int, points: int, threads: int) -> int:
        """Run the rounds that come next, and return how many they are.

        These are about `most`, of which there must be as many left: all that are skewed together.
        They run on as many of `threads` threads as rounds of so many points are worth.
        """
        rounds, words = 0, []
        while rounds < most and len(words) < MOST_STRETCHES * STRETCH_WORDS:
            if self._now is None:
                item = next(self._rest)
                if isinstance(item, Setting):
                    words += (0, self._arrays[item.buffer].ctypes.data, item.value, 0, 0)
                    continue
                self._now = self._bound[item.tables], 0, item.count
            tables, first, left = self._now
            part = tables.at_once(first, left, most - rounds)
            words += tables.stretches(first, part)
            self._now = (tables, first + part, left - part) if part < left else None
            rounds += part
        self._code.run(stretches_of(words), waking_threads(points * rounds, threads))
        return rounds


def phases_of(steps: Sequence[Launch | Copies], places: Places) -> Round:
    """Steps in order, launches in runs of those that need nothing of each other."""
    phases = []
    launches: list[Launch] = []
    for step in steps:
        if not isinstance(step, Launch):
            phases.append([_placed_copy(copy, places) for copy in step])
            continue
        launch = replace(
            step,
            inputs=tuple(place_of(view, places) for view in step.inputs),
            outputs=tuple(place_of(view, places) for view in step.outputs),
        )
        if any(_depend(launch, other) for other in launches):
            phases.append(launches)
            launches = []
        launches.append(launch)
    return [phase for phase in (*phases, launches) if phase]


def _placed_copy(copy: Copy, places: Places) -> Copy:
    read = None if copy.read is None else places[copy.read].buffer
    return replace(copy, written=places[copy.written].buffer, read=read)


def _depend(one: Launch, other: Launch) -> bool:
    """Whether two launches must not change places."""
    written = [{view.buffer for view in launch.outputs} for launch in (one, other)]
    touched = [
        {view.buffer for view in (*launch.inputs, *launch.outputs)} for launch in (one, other)
    ]
    return bool(written[0] & touched[1] or written[1] & touched[0])


def _count(nodes: Sequence[Node]) -> int:
    """How many rounds nodes come to."""
    total = 0
    for node in nodes:
        if isinstance(node, Stretch):
            total += node.count
            continue
        bodies = [_count(body) for body in node.bodies]
        first, cycle = bodies[: node.count], bodies[node.start :]
        turns, rest = divmod(node.count - len(first), len(cycle))
        total += sum(first) + turns * sum(cycle) + sum(cycle[:rest])
    return total


def _walk(nodes: Sequence[Node]) -> Iterator[Stretch | Setting]:
    """What nodes come to, in order."""
    for node in nodes:
        if isinstance(node, Stretch):
            yield node
            continue
        for number in range(node.count):
            if node.index is not None:
                yield Setting(node.index.buffer, node.index.lower + number * node.index.step)
            yield from _walk(node.bodies[round_of(number, node.start, len(node.bodies))])
