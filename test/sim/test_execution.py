# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow, barriers and the state spaces."""

import numpy as np
import pytest

from ptx_text import Run, parse
from twofour import sim
from twofour.errors import TwofourError

THREAD = np.arange(64, dtype=np.uint32)


def test_branches_meet_again():
    run = Run(
        """
        and.b32 %r5, %r0, 1;
        setp.eq.u32 %p0, %r5, 0;
        @%p0 bra EVEN;
        mul.lo.u32 %r6, %r0, 3;
        bra JOIN;
        EVEN: add.u32 %r6, %r0, 100;
        JOIN: add.u32 %r6, %r6, 1;
        st.global.u32 [%d3], %r6;
        """,
        64,
    )
    assert (run.out == np.where(THREAD % 2, 3 * THREAD, THREAD + 100) + 1).all()
    lines = run.counters.lines
    joined = [n for n, line in lines.items() if line.sectors]
    # Both paths are issued by both warps, what follows once each.
    assert [lines[n].executions for n in joined] == [2]
    assert run.counters.global_stores.requests == 2


COLLATZ = """
mov.u32 %r5, 0;
add.u32 %r6, %r3, 1;
LOOP: setp.eq.u32 %p0, %r6, 1;
@%p0 bra DONE;
and.b32 %r7, %r6, 1;
add.u32 %r5, %r5, 1;
setp.eq.u32 %p1, %r7, 0;
@%p1 bra EVEN;
mad.lo.u32 %r6, %r6, 3, 1;
bra LOOP;
EVEN: shr.u32 %r6, %r6, 1;
bra LOOP;
DONE: st.global.u32 [%d3], %r5;
"""


def collatz(value: int) -> int:
    steps = 0
    while value != 1:
        value = 3 * value + 1 if value & 1 else value >> 1
        steps += 1
    return steps


def test_loops_of_different_length():
    run = Run(COLLATZ, 96, 3)
    expected = [collatz(i) for i in range(1, 289)]
    assert run.out.tolist() == expected
    # Whoever goes round waits for the other path: a warp takes as many rounds as its longest lane.
    warps = np.array(expected).reshape(-1, 32).max(axis=1)
    loop = min(n for n, line in run.counters.lines.items() if line.executions > 9)
    assert run.counters.lines[loop].executions == warps.sum() + len(warps)
    assert run.counters.global_stores.requests == 9


def test_a_loop_in_a_loop_with_a_way_out():
    run = Run(
        """
        mov.u32 %r5, 0;
        mov.u32 %r6, 0;
        OUTER: mov.u32 %r7, 0;
        INNER: add.u32 %r6, %r6, 1;
        setp.gt.u32 %p2, %r6, 20;
        @%p2 bra OUT;
        add.u32 %r7, %r7, 1;
        setp.lt.u32 %p0, %r7, %r0;
        @%p0 bra INNER;
        add.u32 %r5, %r5, 1;
        setp.lt.u32 %p1, %r5, 4;
        @%p1 bra OUTER;
        OUT: st.global.u32 [%d3], %r6;
        """,
        32,
    )
    assert run.out.tolist() == [min(21, 4 * max(t, 1)) for t in range(32)]
    assert run.counters.global_stores.requests == 1


def test_indexed_branch():
    run = Run(
        """
        and.b32 %r5, %r0, 3;
        brx.idx %r5, TARGETS;
        TARGETS: .branchtargets ZERO, ONE, TWO, ONE;
        ZERO: mov.u32 %r6, 7;
        bra JOIN;
        ONE: mov.u32 %r6, 8;
        bra JOIN;
        TWO: mov.u32 %r6, 9;
        JOIN: st.global.u32 [%d3], %r6;
        """
    )
    assert run.out.tolist() == [7, 8, 9, 8] * 8
    assert run.counters.global_stores.requests == 1


def test_guards_and_early_exits():
    run = Run(
        """
        setp.ge.u32 %p0, %r0, 40;
        @%p0 exit;
        setp.lt.u32 %p1, %r0, 10;
        mov.u32 %r5, 1;
        @%p1 mov.u32 %r5, 2;
        @!%p1 add.u32 %r5, %r5, 4;
        bar.sync 0;
        st.global.u32 [%d3], %r5;
        """,
        64,
    )
    assert run.out.tolist() == [2] * 10 + [5] * 30 + [0] * 24


def test_a_barrier_hands_over_shared_memory():
    body = """
        mov.u32 %r5, buffer;
        add.u32 %r6, %r5, %r4;
        ld.global.u32 %r7, [%d2];
        st.shared.u32 [%r6], %r7;
        bar.sync 0;
        xor.b32 %r8, %r4, 252;
        add.u32 %r8, %r8, %r5;
        ld.shared.u32 %r9, [%r8];
        st.global.u32 [%d3], %r9;
    """
    run = Run(body, 64, 5, shared=256)
    assert (run.out.reshape(5, 64) == np.arange(320).reshape(5, 64)[:, ::-1]).all()


def test_warps_arrive_at_different_barrier_instructions():
    run = Run(
        """
        mov.u32 %r5, buffer;
        add.u32 %r6, %r5, %r4;
        setp.lt.u32 %p0, %r0, 32;
        @%p0 bra FIRST;
        st.shared.u32 [%r6], %r0;
        bar.sync 0;
        bra DONE;
        FIRST: bar.sync 0;
        ld.shared.u32 %r7, [%r6+128];
        st.global.u32 [%d3], %r7;
        DONE: exit;
        """,
        64,
        2,
        shared=256,
    )
    assert (run.out.reshape(2, 64)[:, :32] == np.arange(32, 64)).all()


def test_named_barriers_order_a_producer_and_a_consumer():
    run = Run(
        """
        mov.u32 %r5, buffer;
        add.u32 %r6, %r5, %r4;
        setp.lt.u32 %p0, %r0, 32;
        @%p0 bra CONSUME;
        st.shared.u32 [%r6], %r0;
        bar.arrive 1, 64;
        exit;
        CONSUME: bar.sync 1, 64;
        ld.shared.u32 %r7, [%r6+128];
        st.global.u32 [%d3], %r7;
        """,
        64,
        shared=256,
    )
    assert run.out[:32].tolist() == list(range(32, 64))


@pytest.mark.parametrize(
    "operation, kind, expected", [("popc", "u32", 40), ("and", "pred", 0), ("or", "pred", 1)]
)
def test_reductions_at_barriers(operation, kind, expected):
    target = "%r5" if kind == "u32" else "%p1"
    select = "" if kind == "u32" else "selp.u32 %r5, 1, 0, %p1;"
    run = Run(
        f"""
        setp.lt.u32 %p0, %r0, 40;
        barrier.cta.red.{operation}.aligned.{kind} {target}, 0, %p0;
        {select}
        st.global.u32 [%d3], %r5;
        """,
        64,
        2,
    )
    assert (run.out == expected).all()


def test_generic_addresses_reach_every_space():
    run = Run(
        """
        .local .align 4 .b8 own[8];
        mov.u64 %d5, buffer;
        cvta.shared.u64 %d6, %d5;
        mul.wide.u32 %d7, %r0, 4;
        add.u64 %d6, %d6, %d7;
        st.u32 [%d6], %r0;
        mov.u64 %d8, own;
        cvta.local.u64 %d9, %d8;
        add.u32 %r5, %r0, 1000;
        st.u32 [%d9+4], %r5;
        ld.local.u32 %r6, [%d8+4];
        setp.lt.u32 %p0, %r0, 10;
        setp.lt.u32 %p1, %r0, 20;
        selp.b64 %d10, %d6, %d2, %p0;
        add.u64 %d9, %d9, 4;
        selp.b64 %d10, %d10, %d9, %p1;
        ld.u32 %r7, [%d10];
        st.u32 [%d3], %r7;
        """,
        shared=128,
        values=np.arange(500, 532, dtype=np.uint32),
    )
    assert run.out.tolist() == [t if t < 10 else t + 500 if t < 20 else t + 1000 for t in range(32)]


def test_module_variables():
    module = sim.parse(
        """
        .version 8.6
        .target sm_80
        .address_size 64
        .const .align 4 .b32 table[4] = {3, -1, 0x10, 7};
        .global .align 8 .u64 pointer[1] = {generic(table)+8};
        .global .align 4 .u32 total;
        .visible .entry k(.param .u64 .ptr .global .align 4 out) {
          .reg .b32 %r<9>; .reg .b64 %d<9>;
          mov.u32 %r1, %tid.x;
          mul.wide.u32 %d1, %r1, 4;
          mov.u64 %d2, table;
          add.u64 %d2, %d2, %d1;
          ld.const.u32 %r2, [%d2];
          red.global.add.u32 [total], %r1;
          ld.param.u64 %d3, [out];
          add.u64 %d3, %d3, %d1;
          ld.global.u64 %d4, [pointer];
          ld.u32 %r3, [%d4];
          add.u32 %r2, %r2, %r3;
          st.global.u32 [%d3], %r2;
          ld.global.u32 %r4, [total];
          st.global.u32 [%d3+16], %r4;
          ret;
        }
        """
    )
    gpu = sim.Gpu("sm_80")
    out = gpu.memory.empty(8, np.int32)
    for total in (6, 12):
        gpu.launch(module.kernels["k"], (1,), (4,), [out.ctypes.data])
        assert out.tolist() == [19, 15, 32, 23] + [total] * 4


def test_many_blocks_run_in_batches():
    run = Run("st.global.u32 [%d3], %r3;", 100, 700)
    assert (run.out == np.arange(70000)).all()


def test_three_dimensional_indices():
    module = parse(
        """
        ld.param.u64 %d1, [p1];
        mov.u32 %r5, %tid.y;
        mov.u32 %r6, %tid.z;
        mov.u32 %r7, %ctaid.y;
        mov.u32 %r8, %nctaid.x;
        mov.u32 %r9, %ctaid.z;
        mov.u32 %r10, %nctaid.y;
        mad.lo.u32 %r9, %r9, %r10, %r7;
        mov.u32 %r11, %ctaid.x;
        mad.lo.u32 %r9, %r9, %r8, %r11;
        mad.lo.u32 %r9, %r9, 6, 0;
        mad.lo.u32 %r6, %r6, 3, %r5;
        add.u32 %r9, %r9, %r6;
        mul.wide.u32 %d4, %r9, 4;
        add.u64 %d4, %d4, %d1;
        st.global.u32 [%d4], %r9;
        """,
        prologue="",
    )
    gpu = sim.Gpu("sm_90")
    out = gpu.memory.empty(144, np.uint32)
    gpu.launch(module.kernels["k"], (4, 3, 2), (1, 3, 2), [0, out.ctypes.data])
    assert (out == np.arange(144)).all()


def test_shared_registers_keep_values_apart():
    # More values than can share arrays are live across the loop.
    body = "".join(f"add.u32 %r{i}, %r0, {i};" for i in range(5, 16))
    body += "mov.b32 %r4, 0; L: add.u32 %r4, %r4, 1;"
    body += "setp.le.u32 %p0, %r4, %r0; @%p0 bra L;"
    body += "".join(f"add.u32 %r4, %r4, %r{i};" for i in range(5, 16))
    run = Run(body + "st.global.u32 [%d3], %r4;")
    assert run.out.tolist() == [t + 1 + sum(t + i for i in range(5, 16)) for t in range(32)]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"grid": (0,)}, "positive extents of the grid"),
        ({"block": (2048,)}, "at most 1024 threads"),
        ({"arguments": [1]}, "expected 2 arguments of k, got 1"),
        ({"arguments": [1.5, 2]}, "expected an integer for p0"),
        ({"arguments": [1 << 64, 2]}, "expected 8 bytes for p0"),
        ({"shared_bytes": 228 << 10}, "bytes of shared memory on sm_90"),
    ],
)
def test_launches_that_no_chip_could_run(changes, message):
    options = {"grid": (1,), "block": (32,), "arguments": [0, 0]} | changes
    with pytest.raises(TwofourError, match=message):
        sim.Gpu("sm_90").launch(parse("").kernels["k"], **options)
