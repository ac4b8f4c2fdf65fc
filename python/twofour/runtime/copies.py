# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In which order native code copies the cells of a box."""

from collections.abc import Sequence

# Cells of a row from which on it is copied as one.
SHORT_ROW = 8


def row_axes(shape: Sequence[int]) -> list[int]:
    """The axes of a box in the order of its copy: cells along the last one are copied as a row.

    Columns of a few cells are copied along the axis before: a row takes longer to begin.
    """
    axes = list(range(len(shape)))
    if len(axes) > 1 and shape[-1] < SHORT_ROW:
        axes[-2:] = axes[:-3:-1]
    return axes
