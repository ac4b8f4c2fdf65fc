# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of tile programs one after the other, on threads that are woken once for all of them."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from twofour.runtime.crew import run_table, table_of
from twofour.runtime.tiles.program import LEG_SOURCE, LEG_TARGET, LEG_WORDS, TileProgram


class Leg(NamedTuple):
    """Sweeps of a program from `source` into `target`, then back and forth, `sweeps` in all.

    Both are C-contiguous arrays of the storage type; with more than one sweep both are written, and
    are laid out alike. Arrays of the domain are written as a `whole`, or the interior alone. The
    run made so many sweeps `before`: they go up and down in turn.
    """

    program: TileProgram
    source: np.ndarray
    target: np.ndarray
    sweeps: int
    whole: bool = False
    before: int = 0


class Hop(NamedTuple):
    """A leg between two of several arrays, by their numbers."""

    program: TileProgram
    source: int
    target: int
    sweeps: int
    whole: bool = False
    before: int = 0


class HopTable:
    """What native code is told of hops, and the workspaces that these take, for one run at a time.

    They are made one after the other, on up to so many `threads`. A run goes on where the one
    before it ended, up or down: what that wrote last is still in the near caches.
    """

    def __init__(self, hops: Sequence[Hop], threads: int):
        self._threads = max(1, min(threads, max(hop.program.tiles for hop in hops)))
        # Hops of one program share its workspace: the scratch arrays are in the caches.
        self._workspaces = {hop.program: None for hop in hops}
        for program in self._workspaces:
            self._workspaces[program] = program.take_workspace(self._threads)
        self._code = hops[0].program.code
        self._places = [
            (1 + LEG_WORDS * place + word, number)
            for place, hop in enumerate(hops)
            for word, number in ((LEG_SOURCE, hop.source), (LEG_TARGET, hop.target))
        ]
        self._turns = sum(hop.sweeps for hop in hops) % 2
        self._tables = [self._words(hops, before) for before in range(1 + self._turns)]
        self._next = 0

    def _words(self, hops: Sequence[Hop], before: int) -> ctypes.Array:
        words = [len(hops)]
        for hop in hops:
            workspace = self._workspaces[hop.program]
            words += hop.program.leg(workspace, hop.sweeps, hop.whole, hop.before + before)
        return table_of(words)

    def run(self, addresses: Sequence[int]) -> None:
        """Make the hops, between the arrays at these addresses."""
        table = self._tables[self._next]
        self._next ^= self._turns
        for word, number in self._places:
            table[word] = addresses[number]
        run_table(self._code.drive, table, self._threads, self._code.crew)

    def give_back(self) -> None:
        """Let other runs have the workspaces."""
        for program, workspace in self._workspaces.items():
            program.give_back(workspace)


def run_legs(legs: Sequence[Leg], threads: int) -> None:
    """Run legs one after the other on up to so many threads."""
    hops, addresses = [], []
    for program, source, target, *rest in legs:
        hops.append(Hop(program, len(addresses), len(addresses) + 1, *rest))
        addresses += source.ctypes.data, target.ctypes.data
    table = HopTable(hops, threads)
    table.run(addresses)
    table.give_back()
