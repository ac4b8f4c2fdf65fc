# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which contestants are timed."""

from collections.abc import Sequence


def in_turn(items: Sequence, number: int) -> list:
    """The items in the order of a round; in each round another one runs before each of them.

    What runs before a contestant shows in its time. In as many rounds as there are items, each of
    an even number of them comes right after each other one once, and of an odd number so in twice
    as many rounds (E. J. Williams, Experimental designs balanced for the estimation of residual
    effects of treatments, 1949).
    """
    count = max(1, len(items))
    # 0, 1, -1, 2, -2, ...: neighbours differ by 1, -2, 3, -4, ...
    places = [(n + 1) // 2 * (1 if n % 2 else -1) + number for n in range(len(items))]
    order = [items[place % count] for place in places]
    return order[::-1] if count % 2 and number // count % 2 else order
