# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of tile programs one after the other, on threads that are woken once for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.runtime.tiles.program import TileProgram


@dataclass(frozen=True)
class Leg:
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


def run_legs(legs: Sequence[Leg], threads: int) -> None:
    """Run legs one after the other on up to so many threads."""
    if len(legs) == 1:
        (leg,) = legs
        ends = leg.source.ctypes.data, leg.target.ctypes.data
        run_sweeps(leg.program, *ends, leg.sweeps, threads, leg.whole, leg.before)
        return
    threads = max(1, min(threads, max(leg.program.tiles for leg in legs)))
    # Legs of one program share its workspace: the scratch arrays are in the caches.
    programs = {leg.program for leg in legs}
    workspaces = {program: program.take_workspace(threads) for program in programs}
    words = [
        leg.program.leg(
            workspaces[leg.program],
            leg.source.ctypes.data,
            leg.target.ctypes.data,
            leg.sweeps,
            leg.whole,
            leg.before,
        )
        for leg in legs
    ]
    legs[0].program.code.run(words, threads)
    for program, workspace in workspaces.items():
        program.give_back(workspace)


def run_sweeps(
    program: TileProgram,
    source: int,
    target: int,
    sweeps: int,
    threads: int,
    whole: bool = False,
    before: int = 0,
) -> None:
    """Run the leg between arrays at two addresses on up to so many threads."""
    threads = max(1, min(threads, program.tiles))
    workspace = program.take_workspace(threads)
    leg = program.leg(workspace, source, target, sweeps, whole, before)
    program.code.run([leg], threads)
    program.give_back(workspace)
