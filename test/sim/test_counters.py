# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counters of kernels whose costs are known by hand."""

import numpy as np
import pytest

from ptx_text import PROLOGUE, Run
from twofour import sim


@pytest.mark.parametrize(
    "stride, offset, kind, sectors",
    [
        # 32 lanes of 4 bytes are 128 bytes: four sectors of 32.
        (4, 0, "u32", 4),
        (4, 4, "u32", 5),
        (4, 16, "u32", 5),
        (8, 0, "u32", 8),
        (32, 0, "u32", 32),
        (128, 0, "u32", 32),
        (0, 0, "u32", 1),
        (2, 0, "u16", 2),
        (2, 30, "u16", 3),
        (1, 0, "u8", 1),
        (8, 0, "u64", 8),
        (8, 0, "v2.u32", 8),
        (16, 0, "v4.u32", 16),
        (16, 16, "v4.u32", 17),
        (32, 0, "v8.u32", 32),
        (-4, 124, "u32", 4),
    ],
)
def test_sectors_of_loads(stride, offset, kind, sectors):
    count = int(kind[1]) if kind[0] == "v" else 1
    registers = {"u8": "%h0", "u16": "%h0", "u64": "%d9"}.get(kind, "%r5")
    if count > 1:
        registers = "{" + ", ".join(f"%r{5 + i}" for i in range(count)) + "}"
    run = (
        Run(
            f"mov.u32 %r15, {stride}; mul.wide.s32 %d8, %r0, %r15; add.u64 %d8, %d8, %d0;"
            f"\nld.global.{kind} {registers}, [%d8+{offset}];",
            threads=64,
            values=np.zeros(4096, np.uint32),
            blocks=1,
        )
        if stride >= 0
        else Run(
            f"mov.u32 %r15, {stride}; and.b32 %r14, %r0, 31; mul.wide.s32 %d8, %r14, %r15;"
            f"add.u64 %d8, %d8, %d0;\nld.global.{kind} {registers}, [%d8+{offset}];",
            threads=64,
        )
    )
    loads = run.counters.global_loads
    assert (loads.requests, loads.sectors, loads.bytes) == (2, 2 * sectors, 64 * sectors)
    assert run.counters.global_load_bytes == 64 * sectors
    (line,) = [line for line in run.counters.lines.values() if line.sectors]
    assert (line.executions, line.sectors) == (2, 2 * sectors)


def test_sectors_of_stores_and_of_parts_of_a_warp():
    run = Run("setp.gt.u32 %p0, %r0, 10; @%p0 exit; st.global.u32 [%d3], %r0;", 32, 3)
    # 11 words are two sectors; the blocks' words begin 128 bytes apart.
    assert run.counters.global_stores == sim.counters.GlobalAccesses(3, 6)
    assert run.counters.global_store_bytes == 192
    assert run.counters.global_load_bytes == 0


def shared_run(address: str, access: str, threads: int = 32) -> sim.Counters:
    """Counters of one access at %r6, which `address` sets from the thread %r0 and %r5."""
    fill = "mov.u32 %r5, buffer; mov.u32 %r7, %r0; FILL: shl.b32 %r8, %r7, 2;"
    fill += "add.u32 %r8, %r8, %r5; st.shared.u32 [%r8], %r7; add.u32 %r7, %r7, %r2;"
    fill += "setp.lt.u32 %p0, %r7, 2048; @%p0 bra FILL; bar.sync 0;"
    run = Run(f"{fill}\n{address}\n{access}\n", threads, shared=8192)
    lines = run.counters.lines.values()
    assert run.counters.shared_wavefronts == sum(line.wavefronts for line in lines)
    assert run.counters.shared_conflicts == sum(line.conflicts for line in lines)
    last = max(n for n, line in run.counters.lines.items() if line.wavefronts)
    return run.counters.lines[last]


@pytest.mark.parametrize(
    "stride, kind, wavefronts, conflicts",
    [
        (4, "u32", 1, 0),
        (0, "u32", 1, 0),
        (8, "u32", 2, 1),
        (12, "u32", 1, 0),
        (16, "u32", 4, 3),
        (128, "u32", 32, 31),
        (132, "u32", 1, 0),
        (2, "u16", 1, 0),
        (64, "u16", 16, 15),
        # Half a warp at a time.
        (8, "u64", 2, 0),
        (16, "v2.u32", 4, 2),
        (0, "u64", 2, 0),
        (128, "u64", 32, 30),
        # A quarter of a warp at a time.
        (16, "v4.u32", 4, 0),
        (32, "v4.u32", 8, 4),
        (64, "v4.u32", 16, 12),
        (144, "v4.u32", 4, 0),
        (128, "v4.u32", 32, 28),
    ],
)
def test_wavefronts_of_loads(stride, kind, wavefronts, conflicts):
    targets = {"u16": "%h0", "u64": "%d9", "v2.u32": "{%r9, %r10}"}
    target = targets.get(kind, "{%r9, %r10, %r11, %r12}" if kind == "v4.u32" else "%r9")
    line = shared_run(f"mad.lo.u32 %r6, %r0, {stride}, %r5;", f"ld.shared.{kind} {target}, [%r6];")
    assert (line.executions, line.wavefronts, line.conflicts) == (1, wavefronts, conflicts)


@pytest.mark.parametrize("stride, wavefronts", [(4, 1), (8, 2), (128, 32)])
def test_wavefronts_of_lanes_below_the_first(stride, wavefronts):
    address = f"mad.lo.s32 %r6, %r0, -{stride}, %r5; add.u32 %r6, %r6, {31 * stride};"
    line = shared_run(address, "ld.shared.u32 %r9, [%r6];")
    assert (line.executions, line.wavefronts) == (1, wavefronts)


def test_wavefronts_of_stores_and_of_parts_of_a_warp():
    # Lanes 0, 8, 16 and 24 are in different quarters.
    line = shared_run(
        "mad.lo.u32 %r6, %r0, 64, %r5; and.b32 %r7, %r0, 7; setp.ne.u32 %p1, %r7, 0; @%p1 exit;",
        "st.shared.v4.u32 [%r6], {%r0, %r0, %r0, %r0};",
    )
    assert (line.executions, line.wavefronts, line.conflicts) == (1, 4, 0)
    line = shared_run(
        "mad.lo.u32 %r6, %r0, 64, %r5; setp.gt.u32 %p1, %r0, 5; @%p1 exit;",
        "st.shared.u32 [%r6], %r0;",
    )
    # Words 0, 16, 32, 48, 64, 80: three in either of two banks.
    assert (line.executions, line.wavefronts, line.conflicts) == (1, 3, 2)


@pytest.mark.parametrize(
    "row, count, wavefronts, conflicts",
    [(16, 1, 1, 0), (16, 4, 4, 0), (32, 4, 8, 4), (128, 2, 16, 14), (144, 4, 4, 0)],
)
def test_wavefronts_of_matrices(row, count, wavefronts, conflicts):
    targets = ", ".join(["%r9", "%r10", "%r11", "%r12"][:count])
    line = shared_run(
        f"mad.lo.u32 %r6, %r0, {row}, %r5;",
        f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{targets}}}, [%r6];",
    )
    assert (line.wavefronts, line.conflicts) == (wavefronts, conflicts)


def test_copies_count_as_loads_and_stores():
    run = Run(
        "shl.b32 %r6, %r0, 4; mul.wide.u32 %d8, %r0, 16; add.u64 %d8, %d8, %d0;\n"
        "mov.u32 %r5, buffer; add.u32 %r6, %r6, %r5;\n"
        "cp.async.cg.shared.global [%r6], [%d8], 16;\ncp.async.wait_all;",
        values=np.zeros(128, np.uint32),
        shared=512,
    )
    assert run.counters.global_loads == sim.counters.GlobalAccesses(1, 16)
    assert run.counters.shared_stores == sim.counters.SharedAccesses(1, 4, 4)
    assert run.counters.shared_wavefronts == 4
    assert run.counters.shared_conflicts == 0


def test_instructions_by_class():
    run = Run(
        """
        mov.u32 %r5, buffer;
        add.u32 %r6, %r5, %r4;
        st.shared.u32 [%r6], %r0;
        bar.sync 0;
        ld.shared.u32 %r7, [%r6];
        add.f16x2 %r7, %r7, %r7;
        cvt.rn.f32.u32 %r8, %r0;
        setp.lt.u32 %p0, %r0, 32;
        @%p0 bra SKIP;
        shfl.sync.idx.b32 %r9, %r7, 0, 31, -1;
        SKIP: st.global.u32 [%d3], %r7;
        """,
        64,
        2,
        shared=256,
    )
    prologue = PROLOGUE.count(";")
    # Two blocks of two warps; one warp of a block takes the branch.
    expected = {
        "parameter": 8,
        "move": 16,
        "integer": 4 * (prologue - 5) + 4,
        "shared": 8,
        "barrier": 4,
        "float": 4,
        "convert": 4,
        "compare": 4,
        "control": 8,
        "warp": 2,
        "global": 4,
    }
    assert dict(run.counters.classes) == expected
    assert run.counters.instructions == sum(expected.values())


def test_tensor_instructions_by_opcode():
    four = "{%r5, %r6, %r7, %r8}"
    dense = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
    sparse = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
    run = Run(
        "mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0; mov.b32 %r8, 0; mov.b32 %r9, 0x44444444;\n"
        f"{dense} {four}, {{%r5, %r6}}, {{%r5}}, {four};\n"
        f"{dense} {four}, {{%r5, %r6}}, {{%r5}}, {four};\n"
        f"{sparse} {four}, {four}, {four}, {four}, %r9, 0;\n",
        64,
        3,
    )
    assert dict(run.counters.mma_kinds) == {dense: 12, sparse: 6}
    assert run.counters.mma == run.counters.classes["mma"] == 18


def test_sums_and_the_report():
    body = "\nld.global.u32 %r5, [%d2];\nst.global.u32 [%d3], %r5;"
    first, second = Run(body, 64).counters, Run(body, 32, 4).counters
    total = first + second
    assert total.instructions == first.instructions + second.instructions
    assert total.global_load_bytes == 256 + 512
    assert total.lines[max(total.lines)].executions == 2 + 4
    assert total.as_dict() == {
        "instructions": total.instructions,
        "mma": 0,
        "shared_wavefronts": 0,
        "shared_conflicts": 0,
        "global_load_bytes": 768,
        "global_store_bytes": 768,
    }
    source = "\n".join(f"line {n}" for n in range(1, 40))
    report = sim.report(total, 192, source)
    assert "global load bytes                    768      4.0000" in report
    load = min(n for n, line in total.lines.items() if line.sectors)
    assert f"line {load}" in report
    assert any(row.split()[:4] == [str(load), "6", "24", "0"] for row in report.splitlines())


@pytest.mark.parametrize(
    "chip, registers, threads, shared_bytes, expected",
    [
        ("sm_80", 32, 128, 0, 1.0),
        ("sm_80", 64, 256, 0, 0.5),
        ("sm_90", 128, 128, 0, 0.25),
        ("sm_80", 32, 128, 80 << 10, 0.125),
        ("sm_90", 32, 128, 80 << 10, 0.125),
        ("sm_90", 32, 128, 56 << 10, 0.25),
        ("sm_89", 32, 128, 99 << 10, 4 / 48),
        ("sm_90", 32, 32, 0, 0.5),
    ],
)
def test_occupancy(chip, registers, threads, shared_bytes, expected):
    assert sim.occupancy(sim.CHIPS[chip], registers, threads, shared_bytes) == expected
