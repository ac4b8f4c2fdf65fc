# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What threads of a tile program have of their own, and that runs hand it on."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from tile_cases import STAR_2D, geometry_of
from twofour.runtime import element_type, parse_boundary
from twofour.runtime.page_offset import CACHE_LINE
from twofour.runtime.sweeps import LinearKernel
from twofour.runtime.tiles.program import MOST_IDLE, TileCode, TileProgram
from twofour.runtime.tiles.steps import Layout
from twofour.runtime.tiles.workspace import ARRAY_WORDS, Workspace


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("itemsize", [2, 8])
def test_scratch_arrays_lie_apart(threads, itemsize):
    points = {3: 1001, 2: 77, 5: 1}
    workspace = Workspace(points, {6: 1234}, itemsize, threads)
    begin = workspace._scratch.ctypes.data
    taken = []
    for number, row in enumerate(workspace._arrays.tolist()):
        assert row[6] == 1234 and row[ARRAY_WORDS - 1] == number
        place = workspace.of_threads + 8 * ARRAY_WORDS * number
        assert place == workspace._arrays[number].ctypes.data
        taken += [(row[array], row[array] + count * itemsize) for array, count in points.items()]
    assert all(first % CACHE_LINE == 0 for first, _ in taken)
    taken.sort()
    # Vectors at the ends of rows may reach over them by a cache line.
    assert begin <= taken[0][0] and taken[-1][1] + CACHE_LINE <= begin + workspace._scratch.size
    assert all(end + CACHE_LINE <= first for (_, end), (first, _) in pairwise(taken))


def test_scratch_arrays_are_written_before_they_are_used(monkeypatch):
    """Vectors under a mask are slow on pages that nobody has written."""
    empty = np.empty
    monkeypatch.setattr(np, "empty", lambda *kind: np.full_like(empty(*kind), 0xFF))
    assert not Workspace({3: 1001}, {}, 8, 2)._scratch.any()


def test_runs_hand_a_workspace_on():
    geometry = geometry_of(STAR_2D, parse_boundary("periodic", 2), (8, 16))
    program = TileProgram(
        LinearKernel(SimpleNamespace(address=1), geometry.reach_lo, geometry.reach_hi),
        TileCode(None, 2, None),
        geometry,
        (Layout.of_domain((8, 16)),) * 2,
        element_type("f64"),
        2,
        (8, 16),
    )
    first, second = program.take_workspace(2), program.take_workspace(2)
    assert first is not second
    program.give_back(first)
    # One for more threads will do.
    assert program.take_workspace(1) is first
    program.give_back(first)
    assert program.take_workspace(3) is not first
    for _ in range(2 * MOST_IDLE):
        program.give_back(Workspace({}, {}, 8, 1))
    assert len(program._idle) == MOST_IDLE
