# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of tile programs one after the other, on threads that are woken once for all of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from twofour.runtime.tiles.program import TileProgram


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


class LegAt(NamedTuple):
    """A leg between arrays at two addresses."""

    program: TileProgram
    source: int
    target: int
    sweeps: int
    whole: bool = False
    before: int = 0


def run_legs(legs: Sequence[Leg], threads: int) -> None:
    """Run legs one after the other on up to so many threads."""
    run_at(
        [
            LegAt(program, source.ctypes.data, target.ctypes.data, *rest)
            for program, source, target, *rest in legs
        ],
        threads,
    )


def run_at(legs: Sequence[LegAt], threads: int) -> None:
    """Run legs one after the other on up to so many threads."""
    program = legs[0].program
    threads = max(1, min(threads, max([leg.program.tiles for leg in legs])))
    # Legs of one program share its workspace: the scratch arrays are in the caches.
    workspaces = {leg.program: None for leg in legs}
    for one in workspaces:
        workspaces[one] = one.take_workspace(threads)
    program.code.run([leg.program.leg(workspaces[leg.program], *leg[1:]) for leg in legs], threads)
    for one, workspace in workspaces.items():
        one.give_back(workspace)
