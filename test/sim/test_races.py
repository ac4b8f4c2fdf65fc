# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Races in shared memory, against a check of every pair of accesses."""

import numpy as np
import pytest

from ptx_text import Run, parse
from twofour import sim

THREADS = 64
BYTES = 512
SIZES = {"u16": 2, "u32": 4, "v2.u32": 8}
VALUES = {"u16": "%h0", "u32": "%r10", "v2.u32": "{%r10, %r11}"}


def program(rng: np.random.Generator):
    """Steps ("ld", "st" or "red", type, offsets of the threads), or the name of a barrier."""
    steps = []
    for _ in range(rng.integers(2, 8)):
        what = rng.choice(["ld", "st", "ld", "st", "red", "block", "warp"])
        if what in ("block", "warp"):
            steps.append(what)
            continue
        kind = "u32" if what == "red" else rng.choice(list(SIZES))
        size = SIZES[kind]
        # Few threads leave their own place, or most programs would race at the first access.
        offsets = np.arange(THREADS) * 8 + rng.integers(8 // size) * size
        for thread in rng.integers(THREADS, size=rng.choice([0, 1, 2])):
            other = rng.integers(THREADS) if rng.random() < 0.5 else thread ^ 1
            offsets[thread] = 8 * other if what == "st" else offsets[other]
        if rng.random() < 0.1 and what != "st":
            offsets[:] = offsets[rng.integers(THREADS)]
        steps.append((what, kind, offsets))
    return steps


def first_race(steps) -> int | None:
    """The number of the first step that is in a race with an earlier one or with itself."""
    past = []
    for number, step in enumerate(steps):
        if step == "block":
            past = []
            continue
        if step == "warp":
            past = [(*access[:4], True) for access in past]
            continue
        what, kind, offsets = step
        here = [(t, int(o), SIZES[kind], what, False) for t, o in enumerate(offsets)]
        for access in here:
            if any(conflict(access, other) for other in (*past, *here)):
                return number
        past += here
    return None


def conflict(a, b) -> bool:
    thread, offset, size, what, _ = a
    other, start, extent, before, synchronised = b
    if thread == other or (what == before and what != "st"):
        return False
    if synchronised and thread // 32 == other // 32:
        return False
    return offset < start + extent and start < offset + size


def text(steps) -> str:
    lines = ["mov.u32 %r5, buffer; shl.b32 %r6, %r0, 3; add.u32 %r6, %r6, %r5; mov.u16 %h0, 1;"]
    lines.append("mov.u32 %r10, 1; mov.u32 %r11, 2; st.shared.v2.u32 [%r6], {%r10, %r11};")
    lines.append("bar.sync 0;")
    for number, step in enumerate(steps):
        if step == "block":
            lines.append("bar.sync 0;")
        elif step == "warp":
            lines.append("bar.warp.sync -1;")
        else:
            what, kind, _ = step
            lines.append(f"ld.global.u32 %r7, [%d2+{4 * THREADS * number}];")
            lines.append("add.u32 %r7, %r7, %r5;")
            operands = ("[%r7]", VALUES[kind])
            if what == "ld":
                operands = operands[::-1]
            root = "red.shared.add" if what == "red" else f"{what}.shared"
            lines.append(f"{root}.{kind} {', '.join(operands)}; // step {number}")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(60))
def test_a_race_is_found_where_it_is(seed):
    steps = program(np.random.default_rng(seed))
    table = [np.zeros(THREADS) if isinstance(s, str) else s[2] for s in steps]
    values = np.concatenate(table).astype(np.uint32)
    body, expected = text(steps), first_race(steps)
    if expected is None:
        Run(body, THREADS, shared=BYTES, values=values)
        return
    with pytest.raises(sim.Fault) as caught:
        Run(body, THREADS, shared=BYTES, values=values)
    assert caught.value.kind == "shared-memory race"
    head = caught.value.location.line
    lines = body.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith(f"// step {expected}"))
    source = parse(body, BYTES).text.splitlines()
    assert source[head - 1] == lines[at]
