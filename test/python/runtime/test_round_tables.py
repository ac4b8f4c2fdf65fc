# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tables the rounds of a run take: plain ones, and those of rounds that are skewed."""

from dataclasses import replace
from types import SimpleNamespace

from round_cases import FAR, MANY, in_place, square
from twofour.runtime.rounds import round_tables
from twofour.runtime.rounds.round_tables import BoundRounds, RoundTables
from twofour.runtime.rounds.step_tables import Index
from twofour.runtime.rounds.strips import Strip


class Stretches:
    """Tables that say which of their rounds run."""

    def __init__(self, name):
        self._name = name

    def bind(self, arrays):
        return self

    def stretch(self, first, count):
        return self._name, first, count


def test_runs_begin_and_end_where_skewed_rounds_do(monkeypatch):
    """Round 0 does not come again, and rounds 1 and 2 do."""
    monkeypatch.setattr(round_tables, "caches", lambda: FAR)
    there, back = in_place(4096), in_place(4096)[::-1]
    code, buffers = SimpleNamespace(planes=1), [square(4096)] * 2
    tables = RoundTables(code, buffers, [there, there, back], 1, None, 2, MANY)
    depth = tables.skewed_rounds.depth
    assert depth % 2 == 0 and tables.threads == 2
    # As many as come before others in the order of these.
    begin = tables.first_rounds
    assert begin.depth == 1 + depth - 2 and begin.rounds[0] == begin.rounds[1]
    assert begin.rounds[1:] == tables.skewed_rounds.rounds[:-2]
    rounds = BoundRounds(tables, [])
    assert rounds.at_once(0, 100, 50) == rounds.at_once(0, 100, 1) == depth - 1
    assert rounds.at_once(0, 3, 50) == 3
    # They are a chain of their own, of which threads may have too small parts.
    tables.first_rounds = replace(begin, strips=(Strip((), replace(begin.chain, least_part=4096)),))
    tables.run_on(2)
    assert tables.skewed_rounds is not None and tables.first_rounds is None
    assert rounds.at_once(0, 100, 50) == 1
    assert rounds.at_once(1, 99, 50) == 50 // depth * depth
    assert rounds.at_once(1, 99, 1) == depth
    assert rounds.at_once(1, 3, 50) == 3
    # Two are few.
    tables.first_rounds = replace(tables.skewed_rounds, fewest=3)
    tables.skewed_rounds = replace(tables.skewed_rounds, fewest=3)
    for name in ("plain", "first", "skewed"):
        setattr(tables, name, Stretches(name))
    assert rounds.stretches(0, 2) == ("plain", 0, 2)
    assert rounds.stretches(0, 3) == ("first", 2, 1)
    assert rounds.stretches(1, 2) == ("plain", 1, 2)
    assert rounds.stretches(1, 3) == ("skewed", 2, 1)
    whole = ("skewed", depth - 1, 2)
    assert rounds.stretches(1, 2 * depth + 1) == (*whole, "plain", 1 + 2 * depth, 1)
    assert rounds.stretches(1, 2 * depth + 3) == (*whole, "skewed", 2, 1)
    plain = RoundTables(code, buffers, [there, there, back], 1, Index(2, 0, 1), 2, MANY)
    assert plain.skewed_rounds is None
    assert BoundRounds(plain, []).at_once(0, 100, 50) == 50


def test_more_threads_than_rounds_are_worth(monkeypatch):
    """Where other rounds of a program are worth more, parts may be too small for seams."""
    monkeypatch.setattr(round_tables, "caches", lambda: FAR)
    tables = RoundTables(SimpleNamespace(planes=1), [square(4096)] * 2, [in_place(4096)], 0,
                         None, 2, MANY)  # fmt: skip
    least = tables.skewed_rounds.chain.least_part
    tables.run_on(4096 // least)
    assert tables.skewed_rounds is not None
    tables.run_on(4096 // least + 1)
    assert tables.skewed_rounds is None and tables.skewed is None
