# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which halos are refilled before each call of a program: those that do not hold it already.

A halo that a call does not read is left to a later one that does. A refresh depends on the cells
inside, on all axes that it fills, and these change only where a call writes to them, or the halo of
other axes is taken over. A halo that is taken over is the same for as long as nobody takes over
another one. Buffers change places from call to call, so that what is left to do becomes periodic.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from twofour.runtime.loops import Recurring


@dataclass(frozen=True)
class Refill:
    """Before a call, the halos of arguments `refreshed` are filled from their interior.

    Then, for each (source, target) of `inherited` in order, that of the target is taken over.
    """

    refreshed: tuple[int, ...] = ()
    inherited: tuple[tuple[int, int], ...] = ()

    @property
    def filled(self) -> set[int]:
        """The arguments that it writes to."""
        return {*self.refreshed, *(target for _, target in self.inherited)}


def refills_of_calls(
    every: Refill,
    alike: Iterable[tuple[int, int]],
    written: Collection[int],
    rotation: Sequence[int],
    read: Collection[int] | None = None,
) -> Recurring[Refill]:
    """What of `every` each call needs, one after the other.

    Pairs of arguments have `alike` halos at first, calls write to the interior of those `written`,
    read the halos of those `read` (None: of any), and after each of them argument i takes over the
    buffer of argument rotation[i].
    """
    needed = [place for place in every.refreshed if read is None or place in read]
    places = range(len(rotation))
    halos = [*places]
    for source, target in alike:
        halos[target] = halos[source]
    fresh: set[int] = set()
    calls: list[Refill] = []
    seen: dict[tuple, int] = {}
    while (state := (*places, *_renumbered(halos), *sorted(fresh))) not in seen:
        seen[state] = len(calls)
        refreshed = [argument for argument in needed if places[argument] not in fresh]
        fresh.update(places[argument] for argument in refreshed)
        inherited = []
        for pair in every.inherited:
            source, target = (places[argument] for argument in pair)
            if halos[source] != halos[target]:
                halos[target] = halos[source]
                fresh.discard(target)
                inherited.append(pair)
        calls.append(Refill(tuple(refreshed), tuple(inherited)))
        fresh.difference_update(places[argument] for argument in written)
        places = [places[source] for source in rotation]
    return Recurring(tuple(calls), seen[state]).simplest()


def _renumbered(halos: Sequence[int]) -> list[int]:
    """Numbers that are the same for the same halos, whatever these were called."""
    return [halos.index(halo) for halo in halos]
