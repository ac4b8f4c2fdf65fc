# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No instruction of the simulator is without a test of what it computes."""

import re

import test_asynchronous
import test_atomics
import test_barriers
import test_bits
import test_comparison
import test_convert
import test_float
import test_integer
import test_matrix_moves
import test_memory_instructions
import test_mma
import test_mma_sp
import test_warp
from twofour.sim.decode import DECODERS

FAMILIES = [
    test_asynchronous,
    test_atomics,
    test_barriers,
    test_bits,
    test_comparison,
    test_convert,
    test_float,
    test_integer,
    test_matrix_moves,
    test_memory_instructions,
    test_mma,
    test_mma_sp,
    test_warp,
]


def test_every_instruction_has_a_test():
    bodies = [snippet.body for family in FAMILIES for snippet in family.all_snippets()]
    words = {word for body in bodies for word in re.findall(r"(?:^|[;\s])([a-z]\w*)", body)}
    assert set(DECODERS) - words == set()
