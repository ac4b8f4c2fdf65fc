# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that take the same few sweeps, again and again on arrays alike.

Those who step by hand make them, and those who look at every tenth step. A sweep leaves nothing in
the near caches of what Python needs: each function that the next call goes through comes back from
the last one. Hence everything that a call takes is looked up before, and it goes through few.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from twofour.runtime.arrays import is_ready
from twofour.runtime.buffer_pool import BufferPool
from twofour.runtime.memory import address_of
from twofour.runtime.page_offset import CACHE_LINE, PAGE, page_offset
from twofour.runtime.tiles.itinerary import Itinerary, Pair, Stage
from twofour.runtime.tiles.program import MOST_IDLE, TileProgram
from twofour.runtime.tiles.resident import Residence
from twofour.runtime.tiles.runs import Hop, HopTable, Leg
from twofour.runtime.tiles.steps import Layout

# The number of the first array of a residence.
HELD = 3


class Route:
    """The legs of sweeps of some programs, from an array that is not written to new ones.

    Arrays have numbers: 0 is that array, 1 and 2 are new ones, of which `last` has the result, and
    those from HELD on belong to a `residence`, if there is one. `stages` makes the stages out of a
    pair of new arrays and one of the residence's.
    """

    def __init__(
        self, stages: Callable[[Pair, Pair], list[Stage]], residence: Residence | None = None
    ):
        # What stands for them: a leg names the arrays that it goes between.
        start, first, second, *held = arrays = [np.empty(0) for _ in range(HELD + 2)]
        new = Pair(lambda: first, lambda _: second, empty=True)
        itinerary = Itinerary(stages(new, Pair.of(*held)), start)
        self.residence = residence
        self.steps = itinerary.left
        self.legs: list[Leg] = itinerary.legs(self.steps)
        numbers = {id(array): number for number, array in enumerate(arrays)}
        self.hops = [
            Hop(leg.program, numbers[id(leg.source)], numbers[id(leg.target)], *leg[3:])
            for leg in self.legs
        ]
        self.last = numbers[id(itinerary.current)]
        self.new = max(hop.target for hop in self.hops if hop.target < HELD)

    @classmethod
    def of_sweeps(cls, sweeps: Iterable[tuple[TileProgram, int]]) -> "Route":
        """Sweeps between new arrays."""
        return cls(lambda new, _: [Stage(program, count, new) for program, count in sweeps])

    @classmethod
    def of_residence(cls, residence: Residence, steps: int) -> "Route":
        """Steps in the arrays of a residence."""
        return cls(lambda new, held: residence.stages(steps, held, new), residence)


class RepeatedCall:
    """Legs on up to `threads` threads, from arrays of a shape to new ones.

    `dtype` is the storage type. `pool` has the memory of results, whose halo `refresh` brings up to
    date, if they hold one.
    """

    def __init__(
        self,
        route: Route,
        threads: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        pool: BufferPool,
        refresh: Callable[[np.ndarray], None] | None = None,
    ):
        self._route, self._steps, self._threads = route, route.steps, threads
        self._shape, self._dtype = shape, dtype
        self._pool, self._refresh = pool, refresh
        self._space = math.prod(shape) * dtype.itemsize + PAGE
        strides = [cells * dtype.itemsize for cells in Layout.of_domain(shape).strides]
        self._apart = page_offset(tuple(strides[:-1]))
        # More than one where several threads of Python call at the same time.
        self._idle: deque[HopTable] = deque(maxlen=MOST_IDLE)

    def fits(self, u: object, steps: int, place: object = None) -> bool:
        """Whether this makes so many steps of `u`, with nothing left to check or convert.

        `place` is where the result is to be, None for a new array.
        """
        if type(steps) is not int or steps != self._steps:
            return False
        if not is_ready(u, self._shape, self._dtype):
            return False
        return place is None or (
            is_ready(place, self._shape, self._dtype)
            and place.flags.writeable
            and abs(address_of(place) - address_of(u)) >= u.nbytes
        )

    def run(self, u: np.ndarray, place: np.ndarray | None = None) -> np.ndarray:
        """The values of `u`, an array that fits, after the steps: in a new array or in `place`.

        `place` is an array that fits as well, and shares no memory with `u`.
        """
        residence = self._route.residence
        if residence is None:
            return self._run(u, place, ())
        held = residence.take(u)
        result = self._run(u, place, held)
        residence.give_back(held)
        return result

    def _run(
        self, u: np.ndarray, place: np.ndarray | None, held: Sequence[np.ndarray]
    ) -> np.ndarray:
        route, leases, places = self._route, {}, [address_of(u), 0, 0, *map(address_of, held)]
        # As empty_beside does.
        for number in range(1, route.new + 1):
            if number == route.last and place is not None:
                places[number] = address_of(place)
                continue
            lease = leases[number] = self._pool.lease(self._space)
            begin = places[number - 1] // CACHE_LINE * CACHE_LINE + self._apart
            places[number] = lease.address + (begin - lease.address) % PAGE
        try:
            table = self._idle.pop()
        except IndexError:
            table = HopTable(route.hops, self._threads)
        table.run(places)
        self._idle.append(table)
        result = place
        if result is None:
            lease = leases[route.last]
            offset = places[route.last] - lease.address
            result = np.ndarray(self._shape, self._dtype, np.asarray(lease), offset)
        if self._refresh is not None:
            self._refresh(result)
        return result
