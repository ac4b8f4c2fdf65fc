# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of which every change tries a part, and the whole matrix all."""

from collections.abc import Iterable, Iterator, Sequence

import pytest


def in_turn(
    rows: Iterable[tuple], columns: Sequence[tuple], one_in: int, quick: int | None = None
) -> Iterator:
    """Every row with every column; one column in so many, in turn, for every change.

    Rows from the number `quick` on are left to the whole matrix.
    """
    for number, row in enumerate(rows):
        for turn, column in enumerate(columns):
            is_tried = (number + turn) % one_in == 0 and (quick is None or number < quick)
            marks = () if is_tried else (pytest.mark.full,)
            yield pytest.param(*row, *column, marks=marks)
