# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which contestants are timed."""

from collections.abc import Sequence


def in_turn(items: Sequence, number: int) -> list:
    """The items in the order of a round: another one first, and each second round backwards.

    What runs before a contestant shows in its time; nobody is always behind the same one.
    """
    first = number // 2 % max(1, len(items))
    order = [*items[first:], *items[:first]]
    return order[::-1] if number % 2 else order
