# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program's sweeps on views of buffers, loops over them, and what these loops carry along.

Values are numbered: the arguments, then the workspaces, then what loops bring forth.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from twofour.runtime.box import Box


@dataclass(frozen=True)
class View:
    """A box of a buffer; no slices stand for the whole of it."""

    buffer: int
    slices: tuple[slice, ...]

    def of(self, buffers: Sequence[np.ndarray]) -> np.ndarray:
        return buffers[self.buffer][self.slices]

    def box(self, shape: Sequence[int]) -> Box:
        """Its cells, in a buffer of that shape."""
        if not self.slices:
            return Box.whole(shape)
        return Box(*zip(*((axis.start, axis.stop) for axis in self.slices), strict=True))

    def part(self, slices: tuple[slice, ...]) -> "View":
        """A box of this view."""
        if not slices or not self.slices:
            return View(self.buffer, slices or self.slices)
        return View(
            self.buffer,
            tuple(
                slice(outer.start + inner.start, outer.start + inner.stop)
                for outer, inner in zip(self.slices, slices, strict=True)
            ),
        )


@dataclass(frozen=True)
class Launch:
    """One sweep over the whole of its output views.

    `kernel` has `bind(views_in, views_out)`, or is the name of one that has. Where it takes
    numbers, `scalars` say which values these are, and they follow the views. With `uses_index`
    results depend on where points are in the views. Inputs whose positions are in `tables` are read
    anywhere.
    """

    kernel: object
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    scalars: tuple[int, ...] = ()
    uses_index: bool = False
    tables: tuple[int, ...] = ()

    def reading(self, numbers: Mapping[int, int]) -> "Launch":
        """The launch where it reads other buffers instead of some."""
        views = (View(numbers.get(one.buffer, one.buffer), one.slices) for one in self.inputs)
        return replace(self, inputs=tuple(views))


@dataclass(frozen=True)
class Carried:
    """A field that a loop carries along, as value `value`.

    It is `initial` at first, then what `following` was at the end of the iteration before.
    """

    value: int
    initial: View
    following: View


@dataclass(frozen=True)
class Bound:
    """Where a loop begins or ends: at an argument of the program that is a number."""

    argument: int


@dataclass(frozen=True)
class Loop:
    """Steps for value `index` = lower, lower + step, ... below upper (step > 0).

    Its `body` may use what it carries and the index, later steps the last of what it carried.
    """

    index: int
    lower: int | Bound
    upper: int | Bound
    step: int
    carried: tuple[Carried, ...]
    body: tuple["Step", ...]


Step = Launch | Loop


def nested_launches(steps: Sequence[Step]) -> Iterator[Launch]:
    """All launches among steps and in their loops."""
    for step in steps:
        if isinstance(step, Loop):
            yield from nested_launches(step.body)
        else:
            yield step


def used_indices(steps: Sequence[Step]) -> tuple[int, ...]:
    """The loops whose index a launch reads as an input, by the numbers of these indices."""
    inner = [step for step in steps if isinstance(step, Loop)]
    read = {view.buffer for launch in nested_launches(inner) for view in launch.inputs}
    found = {loop.index for loop in inner} & read
    return tuple(sorted(found.union(*(used_indices(loop.body) for loop in inner))))


def range_of(loop: Loop, numbers: Mapping[int, int] | Sequence[int]) -> range:
    """The values of a loop's index, where arguments are these numbers."""
    lower, upper = (
        int(numbers[bound.argument]) if isinstance(bound, Bound) else bound
        for bound in (loop.lower, loop.upper)
    )
    return range(lower, upper, loop.step)


def bound_arguments(steps: Sequence[Step]) -> tuple[int, ...]:
    """The arguments at which loops begin or end."""
    found: set[int] = set()
    for step in steps:
        if isinstance(step, Loop):
            bounds = step.lower, step.upper
            found |= {bound.argument for bound in bounds if isinstance(bound, Bound)}
            found |= set(bound_arguments(step.body))
    return tuple(sorted(found))


# What carried values are now, as views of buffers.
Places = dict[int, View]


def place_of(view: View, places: Places) -> View:
    outer = places.get(view.buffer)
    return view if outer is None else outer.part(view.slices)


def round_of(number: int, start: int, distinct: int) -> int:
    """Which of `distinct` rounds comes as that number: after the last one, `start` follows."""
    if number < distinct:
        return number
    return start + (number - start) % (distinct - start)


T, U = TypeVar("T"), TypeVar("U")


@dataclass(frozen=True)
class Recurring(Generic[T]):
    """Items one after the other; after the last one, item `start` follows again."""

    items: tuple[T, ...]
    start: int = 0

    @property
    def period(self) -> int:
        """After how many items the same ones come again, in the end."""
        return len(self.items) - self.start

    def at(self, number: int) -> T:
        """Item `number`, counted without an end."""
        return self.items[round_of(number, self.start, len(self.items))]

    def map(self, function: Callable[[T], U]) -> "Recurring[U]":
        """What a function makes of each of them."""
        return Recurring(tuple(map(function, self.items)), self.start)

    def beginning(self, first: T) -> "Recurring[T]":
        """The same items but for the first one."""
        start = max(self.start, 1)
        rest = (self.at(number) for number in range(1, start + self.period))
        return Recurring((first, *rest), start)

    def simplest(self) -> "Recurring[T]":
        """The same items with the shortest period, which starts as early as possible."""
        first, cycle = self.items[: self.start], self.items[self.start :]
        period = next(
            period
            for period in range(1, len(cycle) + 1)
            if len(cycle) % period == 0 and cycle[:period] * (len(cycle) // period) == cycle
        )
        items, start = first + cycle[:period], self.start
        while start and items[start - 1] == items[-1]:
            items, start = items[:-1], start - 1
        return Recurring(items, start)


class Course:
    """Which views a loop carries in each of its iterations.

    They come from the ones before, so that they repeat: iterations `distinct`, `distinct` + 1, ...
    carry what iterations `start`, `start` + 1, ... did.
    """

    def __init__(self, loop: Loop, places: Places, range_of: Callable[[Loop], range]):
        self.rounds = range_of(loop)
        self._range_of = range_of
        self._states: list[Places] = []
        self.start = 0
        state = {item.value: place_of(item.initial, places) for item in loop.carried}
        while state not in self._states and len(self._states) <= self.count:
            self._states.append(state)
            inner = {**places, **state}
            self._pass_loops(loop.body, inner)
            state = {item.value: place_of(item.following, inner) for item in loop.carried}
        if state in self._states:
            self.start = self._states.index(state)

    def _pass_loops(self, steps: Sequence[Step], places: Places) -> None:
        """Bring `places` to what it is after these steps."""
        for step in steps:
            if isinstance(step, Loop):
                course = Course(step, places, self._range_of)
                places.update(course.at(course.count))

    @property
    def count(self) -> int:
        """The number of iterations; len() has none for ranges beyond its own."""
        begin, end, step = self.rounds.start, self.rounds.stop, self.rounds.step
        return max(0, -(-(end - begin) // step))

    @property
    def distinct(self) -> int:
        return len(self._states)

    def at(self, number: int) -> Places:
        """What is carried into iteration `number`; behind the last one, what is left."""
        return self._states[round_of(number, self.start, self.distinct)]
