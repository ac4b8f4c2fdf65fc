# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that some threads of a warp execute: the others keep what they have."""

from dataclasses import replace

import numpy as np
import pytest

import test_atomics
import test_bits
import test_comparison
import test_convert
import test_float
import test_integer
import test_memory_instructions
from snippet import DTYPES, Snippet

FAMILIES = {
    "integer": test_integer,
    "bits": test_bits,
    "float": test_float,
    "comparison": test_comparison,
    "convert": test_convert,
    "memory": test_memory_instructions,
    "atomic": test_atomics,
}
THREADS = 64
MARK = 0x5A


def sampled() -> dict[str, Snippet]:
    """Every seventh instruction of the families, but for those that wait for other threads."""
    found = {}
    for name, family in FAMILIES.items():
        snippets = [s for s in family.all_snippets() if ".sync" not in s.body]
        found |= {f"{name} {i}": snippet for i, snippet in enumerate(snippets) if i % 7 == 3}
    return found


def among_some(snippet: Snippet) -> Snippet:
    """Threads whose last operand is odd execute the body; results start as a mark."""
    position = len(snippet.inputs)
    marks = "".join(
        f"mov.b{16 if kind == 'b8' else kind[1:]} %o{i}, {MARK};\n"
        for i, kind in enumerate(snippet.outputs)
    )
    body = (
        f"{marks}and.b32 %i{position}, %i{position}, 1;\nsetp.eq.u32 %p7, %i{position}, 0;\n"
        f"@%p7 bra REJOIN;\n{snippet.body}\nREJOIN:"
    )
    return replace(snippet, body=body, inputs=(*snippet.inputs, "b32"))


SNIPPETS = sampled()


@pytest.mark.parametrize("name", SNIPPETS)
def test_threads_elsewhere_keep_their_registers(name):
    snippet = SNIPPETS[name]
    generator = np.random.default_rng(1)
    operands = [
        generator.integers(1, np.iinfo(DTYPES[kind]).max, THREADS, DTYPES[kind])
        for kind in snippet.inputs
    ]
    who = generator.integers(0, 2, THREADS, dtype=np.uint32)
    everyone = snippet(*operands, block=THREADS)
    some = among_some(snippet)(*operands, who, block=THREADS)
    for result, partial in zip(everyone, some, strict=True):
        np.testing.assert_array_equal(partial, np.where(who == 1, result, MARK))
