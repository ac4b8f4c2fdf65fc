# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every finding: a kernel that has the fault, and its sibling that does not."""

import re

import numpy as np
import pytest

from ptx_text import Run, parse
from twofour import sim

STORE = "mov.u32 %r5, buffer; add.u32 %r6, %r5, %r4; st.shared.u32 [%r6], %r0;"
# The word that the last thread of the block writes first, the first last.
REVERSED = "sub.u32 %r7, %r2, %r0; shl.b32 %r7, %r7, 2; add.u32 %r7, %r7, %r5;"
RESULT = "st.global.u32 [%d3], %r9;"


def fault(body: str, kind: str, **options) -> sim.Fault:
    with pytest.raises(sim.Fault) as caught:
        Run(body, **options)
    assert caught.value.kind == kind, caught.value
    return caught.value


def line_of(body: str, text: str) -> int:
    """The line in the PTX of the n-th line of a body."""
    kernel = parse(body, 16).text.splitlines()
    return next(i for i, line in enumerate(kernel, 1) if text in line)


def test_a_finding_says_where_and_who():
    body = "\n\nld.global.u32 %r9, [%d2+256];\n"
    found = fault(body, "out of bounds", threads=40, blocks=3)
    assert found.location.file == "k.ptx"
    assert found.location.line == line_of(body, "[%d2+256]")
    # 120 words: 56 of the second block, 40 words long, are the first beyond them.
    assert found.place == sim.Place("k", (1, 0, 0), (16, 0, 0))
    assert re.search(r"out of bounds: 4 bytes .* at address 0x[0-9a-f]+", str(found))
    assert found.address % 4 == 0


def test_addresses_that_are_prefetched_exist():
    assert (
        fault("prefetch.global.L2 [%d2+4096];", "out of bounds", threads=32).location.file
        == "k.ptx"
    )


@pytest.mark.parametrize(
    "bad, good",
    [
        ("ld.global.u32 %r9, [%d2+4];", "ld.global.u32 %r9, [%d2];"),
        ("ld.global.u32 %r9, [%d2+-4];", "ld.global.u32 %r9, [%d2];"),
        ("st.global.u32 [%d3+4], %r0;", "st.global.u32 [%d3], %r0;"),
        ("ld.global.v2.u32 {%r9, %r10}, [%d0+124];", "ld.global.v2.u32 {%r9, %r10}, [%d0+120];"),
        ("ld.u32 %r9, [4096];", "ld.u32 %r9, [%d0];"),
        ("red.global.add.u32 [%d1+128], 1;", "red.global.add.u32 [%d1+124], 1;"),
        ("st.shared.u32 [%r5+128], %r0;", "st.shared.u32 [buffer+124], 0;"),
        ("st.shared.u32 [%r5+-4], %r0;", "st.shared.u32 [buffer], 0;"),
        ("st.local.u32 [own+8], %r0;", "st.local.u32 [own+4], %r0;"),
    ],
)
def test_bounds(bad, good):
    setup = ".local .align 8 .b8 own[8]; mov.u32 %r5, buffer;\n"
    found = fault(setup + bad, "misaligned" if "124" in bad else "out of bounds", shared=128)
    assert found.location.line == line_of(setup + bad, bad)
    single = "setp.ne.u32 %p0, %r0, 0; @%p0 exit;"
    Run(setup + single + good, shared=128)


@pytest.mark.parametrize(
    "access, offset",
    [
        ("ld.global.u32 %r9, [%d0+{}]", 2),
        ("ld.global.v4.u32 {{%r9, %r10, %r11, %r12}}, [%d0+{}]", 8),
        ("ld.global.u64 %d9, [%d0+{}]", 4),
        ("st.shared.u16 [buffer+{}], %h0", 1),
        ("cp.async.ca.shared.global [buffer], [%d0+{}], 8", 4),
        ("cp.async.cg.shared.global [buffer+{}], [%d0], 16", 8),
        ("atom.global.add.u32 %r9, [%d1+{}], 1", 1),
    ],
)
def test_alignment(access, offset):
    single = "mov.b16 %h0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 exit;"
    fault(single + access.format(offset) + ";", "misaligned", shared=64)
    Run(single + access.format(0) + ";", shared=64)


@pytest.mark.parametrize("more, kind", [(2, "misaligned"), (256, "out of bounds")])
def test_the_thread_at_fault_is_named(more, kind):
    setup = "mov.u32 %r5, buffer; add.u32 %r5, %r5, 16; setp.eq.u32 %p0, %r0, 5; "
    found = fault(
        setup + f"@%p0 add.u32 %r5, %r5, {more}; ld.shared.u32 %r9, [%r5];", kind, shared=128
    )
    assert found.place.thread == (5, 0, 0)


def test_uninitialised_memory():
    fault(STORE + "ld.shared.u32 %r9, [%r6+128];", "uninitialised read", shared=256)
    Run(STORE + "ld.shared.u32 %r9, [%r6];", shared=256)
    fault("ld.global.u32 %r9, [%d3];", "uninitialised read", fill=False)
    Run("st.global.u32 [%d3], %r0; ld.global.u32 %r9, [%d3];", fill=False)
    own = ".local .align 4 .b8 own[8]; st.local.u16 [own], %h0; mov.b16 %h1, %h0;"
    fault("mov.b16 %h0, 1;" + own + "ld.local.u32 %r9, [own];", "uninitialised read")
    Run("mov.b16 %h0, 1;" + own + "ld.local.u16 %h2, [own];")


def test_uninitialised_bytes_of_the_host():
    gpu = sim.Gpu("sm_90")
    body = "ld.global.u32 %r9, [%d2]; st.global.u32 [%d3], %r9;"
    kernel = parse(body).kernels["k"]
    source, out = gpu.memory.empty((4, 8), np.uint32), gpu.memory.empty(32, np.uint32)
    source[:, :4] = 7
    gpu.memory.initialised(source[:, :4])
    addresses = [source.ctypes.data, out.ctypes.data]
    with pytest.raises(sim.Fault, match="uninitialised read.*thread \\(4, 0, 0\\)"):
        gpu.launch(kernel, (1,), (32,), addresses)
    source[:, 4:] = 8
    gpu.memory.initialised(source[:, 4:])
    gpu.launch(kernel, (1,), (32,), addresses)
    assert (out.reshape(4, 8) == source).all()
    gpu.memory.release(source)
    with pytest.raises(sim.Fault, match="out of bounds"):
        gpu.launch(kernel, (1,), (32,), addresses)


def test_uninitialised_registers():
    branch = "setp.lt.u32 %p0, %r0, 8; {} bra USE; mov.u32 %r9, 1; USE:"
    found = fault(branch.format("@%p0") + RESULT, "uninitialised register")
    assert "%r9" in str(found) and found.place.thread == (0, 0, 0)
    Run("mov.u32 %r9, 3;" + branch.format("@%p0") + RESULT)
    guarded = "setp.lt.u32 %p0, %r0, 8; @%p0 mov.u32 %r9, 1; @{}%p0 st.global.u32 [%d3], %r9;"
    fault(guarded.format("!"), "uninitialised register")
    Run(guarded.format(""))


def test_undefined_parts_that_nothing_takes():
    """LLVM packs what it does not define, and takes the other part alone."""
    packed = "mov.b64 %d9, {%r8, %r0}; mov.b64 {_, %r9}, %d9;"
    Run(packed + RESULT)
    fault(packed.replace("{_, %r9}", "{%r9, _}") + RESULT, "uninitialised register")
    fault(packed + "st.global.u64 [%d3], %d9;" + RESULT, "uninitialised register")
    fault("add.u32 %r9, %r8, %r0;" + packed + RESULT, "uninitialised register")


@pytest.mark.parametrize("threads", [32, 64])
def test_a_read_needs_a_barrier_after_the_write(threads):
    body = STORE + REVERSED + "\n{}\nld.shared.u32 %r9, [%r7+-4];" + RESULT
    found = fault(body.format(""), "shared-memory race", threads=threads, shared=4 * threads)
    assert f"st.shared.u32 of another thread at line {line_of(body, 'buffer; add')}" in str(found)
    run = Run(body.format("bar.sync 0;"), threads, shared=4 * threads)
    assert run.out.tolist() == list(range(threads))[::-1]
    if threads == 32:
        Run(body.format("bar.warp.sync 0xffffffff;"), threads, shared=4 * threads)
    else:
        # Synchronised warps know nothing of each other.
        warp = body.format("bar.warp.sync 0xffffffff;")
        fault(warp, "shared-memory race", threads=threads, shared=4 * threads)


@pytest.mark.parametrize(
    "body",
    [
        # The read comes first: one reader, one warp of readers, two warps.
        STORE + "bar.sync 0; ld.shared.u32 %r9, [{read}]; {wait} st.shared.u32 [{write}], %r0;",
        STORE + "bar.sync 0; {wait} st.shared.u32 [{write}], %r0; ld.shared.u32 %r9, [{read}];",
    ],
)
@pytest.mark.parametrize("read", ["buffer", "%r7", "%r8"])
def test_reads_and_writes_between_barriers(body, read):
    prepare = "mov.u32 %r5, buffer; xor.b32 %r7, %r4, 4; add.u32 %r7, %r7, %r5;"
    prepare += "xor.b32 %r8, %r4, 128; add.u32 %r8, %r8, %r5;"
    bad = prepare + body.format(read=read, write="%r6", wait="")
    fault(bad, "shared-memory race", threads=64, shared=256)
    Run(prepare + body.format(read="%r6", write="%r6", wait=""), 64, shared=256)
    if "ld" in body.split("{wait}")[0]:
        Run(prepare + body.format(read=read, write="%r6", wait="bar.sync 0;"), 64, shared=256)


def test_two_writers():
    same = "mov.u32 %r5, buffer; {} st.shared.u32 [%r5], %r0;"
    fault(same.format(""), "shared-memory race", shared=128)
    Run(same.format("setp.ne.u32 %p0, %r0, 9; @%p0 exit;"), shared=128)


def test_part_of_a_vector_races():
    wide = "mov.u32 %r5, buffer; shl.b32 %r6, %r0, 4; add.u32 %r6, %r6, %r5;"
    wide += "xor.b32 %r7, %r6, 16; st.shared.v4.u32 [%r6], {%r0, %r0, %r0, %r0};"
    fault(wide + "ld.shared.u16 %h0, [%r7+14];", "shared-memory race", shared=512)
    Run(wide + "ld.shared.u16 %h0, [%r6+14];", shared=512)


def test_atomics_do_not_race_with_each_other():
    zero = "setp.ne.u32 %p0, %r0, 0; @!%p0 st.shared.u32 [buffer], 0; {}"
    body = zero + "atom.shared.add.u32 %r9, [buffer], 1; bar.sync 0; ld.shared.u32 %r9, [buffer];"
    fault(body.format(""), "shared-memory race", threads=64, shared=16)
    run = Run(body.format("bar.sync 0;") + RESULT, 64, shared=16)
    assert (run.out == 64).all()


COPY = "mov.u32 %r5, buffer; add.u32 %r6, %r5, %r4; xor.b32 %r7, %r4, 4; add.u32 %r7, %r7, %r5;"
COPY += "cp.async.ca.shared.global [%r6], [%d2], 4; cp.async.commit_group;"


@pytest.mark.parametrize(
    "after, kind",
    [
        ("bar.sync 0; ld.shared.u32 %r9, [%r6];", "missing cp.async wait"),
        ("st.shared.u32 [%r6], 1;", "missing cp.async wait"),
        ("cp.async.wait_group 1; ld.shared.u32 %r9, [%r6];", "missing cp.async wait"),
        ("cp.async.wait_group 0; ld.shared.u32 %r9, [%r7];", "shared-memory race"),
        ("bar.sync 0; cp.async.wait_all; ld.shared.u32 %r9, [%r7];", "shared-memory race"),
        ("cp.async.wait_group 0; ld.shared.u32 %r9, [%r6];", None),
        ("cp.async.wait_all; bar.sync 0; ld.shared.u32 %r9, [%r7];", None),
    ],
)
def test_asynchronous_copies(after, kind):
    if kind:
        fault(COPY + after, kind, shared=128)
    else:
        Run(COPY + after, shared=128)


def test_wait_counts_of_a_pipeline():
    # Two stages in flight: the wait must leave no more than one.
    body = "mov.u32 %r5, buffer; add.u32 %r6, %r5, %r4; mov.u32 %r9, 0; mov.u32 %r10, 0;"
    body += "mov.u64 %d5, %d2; cp.async.ca.shared.global [%r6], [%d5], 4; cp.async.commit_group;"
    body += """
    LOOP: add.u32 %r10, %r10, 1;
    add.u64 %d5, %d5, 128;
    xor.b32 %r11, %r6, 128;
    setp.lt.u32 %p0, %r10, 5;
    @%p0 cp.async.ca.shared.global [%r11], [%d5], 4;
    cp.async.commit_group;
    cp.async.wait_group {};
    ld.shared.u32 %r12, [%r6];
    add.u32 %r9, %r9, %r12;
    mov.u32 %r6, %r11;
    @%p0 bra LOOP;
    """
    fault(
        body.format(2) + RESULT,
        "missing cp.async wait",
        shared=256,
        words=32,
        values=np.arange(160, dtype=np.uint32),
    )
    run = Run(body.format(1) + RESULT, shared=256, values=np.arange(160, dtype=np.uint32))
    assert run.out.tolist() == np.arange(160).reshape(5, 32).sum(axis=0).tolist()


def test_conflicting_global_writes():
    found = fault("st.global.u32 [%d1], %r0;", "conflicting global writes")
    assert "same instruction" in str(found)
    overlap = "st.global.u32 [%d3], %r0; {} st.global.u32 [%d3+-4], %r0;"
    single = "setp.ne.u32 %p0, %r3, 33; @%p0 exit;"
    found = fault(overlap.format(single), "conflicting global writes", threads=32, blocks=2)
    assert "thread 0 of block 1 at line" in str(found)
    Run("st.global.u32 [%d3], %r0; st.global.u32 [%d3], %r1;", 64, 3)
    # Ordered by a barrier of the block it is none, between blocks it is.
    Run(overlap.format("bar.sync 0; setp.ne.u32 %p0, %r0, 1; @%p0 exit;"), 64, 3)
    first = overlap.format("bar.sync 0; setp.ne.u32 %p0, %r3, 64; @%p0 exit;")
    fault(first, "conflicting global writes", threads=64, blocks=3)
    Run("red.global.add.u32 [%d1], 1;", 64, 3)


def test_conflicts_between_batches_of_blocks():
    body = "and.b32 %r5, %r1, {}; mul.wide.u32 %d5, %r5, 4096; add.u64 %d5, %d5, %d1;"
    body += "mul.wide.u32 %d6, %r0, 4; add.u64 %d5, %d5, %d6; st.global.u32 [%d5], %r0;"
    fault(body.format(31), "conflicting global writes", threads=1024, blocks=40)
    Run(body.format(63), 1024, 40)


def test_barrier_divergence():
    half = "setp.lt.u32 %p0, %r0, {}; @%p0 bra SKIP; bar.sync 0; SKIP: mov.u32 %r9, 0;"
    found = fault(half.format(16), "barrier divergence", threads=64)
    assert "expected all threads of the warp, got 16 of 32" in str(found)
    # A whole warp that skips the barrier and leaves is out of the count.
    Run(half.format(32), 64)
    waits = "setp.lt.u32 %p0, %r0, 32; @%p0 bra SKIP; bar.sync 0; SKIP: bar.sync 1;"
    found = fault(waits, "barrier divergence", threads=64)
    assert "expected 64 threads of the block at the barrier, got 32" in str(found)


@pytest.mark.parametrize(
    "instruction",
    [
        "shfl.sync.bfly.b32 %r9, %r0, 1, 31, 0xffffffff;",
        "vote.sync.ballot.b32 %r9, %p0, 0xffffffff;",
        "bar.warp.sync 0xffffffff;",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [buffer];",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%r9,%r10,%r11,%r12}, {%r0,%r0}, {%r0}, {%r0,%r0,%r0,%r0};",
    ],
)
def test_warps_must_be_whole(instruction):
    body = "setp.lt.u32 %p0, %r0, {0}; @%p0 bra SKIP;" + instruction.replace("{", "{{").replace(
        "}", "}}"
    )
    fill = "shl.b32 %r5, %r0, 2; mov.u32 %r6, buffer; add.u32 %r5, %r5, %r6;"
    fill += "st.shared.u32 [%r5], 0; bar.sync 0;"
    end = "SKIP: mov.u32 %r9, 0;"
    fault(fill + body.format(8) + end, "divergent warp", threads=64, shared=256)
    Run(fill + body.format(32) + end, 64, shared=256)


def test_shuffles_of_registers_that_few_lanes_have():
    """Only the lane that a value comes from must have one."""
    body = "setp.ne.u32 %p0, %r0, {0}; @%p0 bra SKIP; mov.u32 %r8, 7; SKIP:"
    body += "shfl.sync.idx.b32 %r9, %r8, 3, 31, -1;" + RESULT
    assert (Run(body.format(3)).out == 7).all()
    found = fault(body.format(4), "uninitialised register")
    assert "%r8 of lane 3 is read" in str(found)
    # As the number of the lane it must be there.
    fault(body.format(3).replace("%r8, 3,", "%r8, %r8,"), "uninitialised register")


def test_addresses_of_32_bits_wrap():
    body = "mov.u32 %r5, buffer; add.u32 %r6, %r5, %r4; st.shared.u32 [%r6], %r0; bar.sync 0;"
    body += "sub.u32 %r7, %r6, 256; ld.shared.u32 %r9, [%r7+256];" + RESULT
    assert Run(body, 32, shared=128).out.tolist() == list(range(32))
    fault(body.replace("+256", "+384"), "out of bounds", shared=128)


def test_shuffles_from_absent_lanes():
    body = "setp.lt.u32 %p0, %r0, 16; @%p0 bra SKIP;"
    body += "shfl.sync.bfly.b32 %r9, %r0, {}, 31, 0xffff0000; SKIP: mov.u32 %r9, 0;"
    fault(body.format(16), "undefined operation")
    Run(body.format(8))


def test_bad_metadata():
    body = "mov.b32 %r9, {}; mov.b32 %r10, 0;"
    body += "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
    registers = ["%r10"] * 4
    four = "{" + ", ".join(registers) + "}"
    body += f"{{{{%r11, %r12, %r13, %r14}}}}, {{{four}}}, {{{four}}}, {{{four}}}, %r9, 0x0;"
    found = fault(body.format("0x44444445"), "undefined operation")
    assert found.place.thread == (0, 0, 0)
    Run(body.format("0x44444444"))


def test_mbarriers_and_bulk_copies():
    body = """
    mov.u32 %r5, buffer;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra READY;
    mbarrier.init.shared.b64 [buffer+256], 1;
    fence.mbarrier_init.release.cluster;
    READY: bar.sync 0;
    @%p0 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 %d5, [buffer+256], {size};
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
        [buffer], [%d0], 256, [buffer+256];
    WAIT: {wait}
    add.u32 %r6, %r5, %r4;
    ld.shared.u32 %r9, [%r6];
    st.global.u32 [%d3], %r9;
    """
    wait = "mbarrier.try_wait.parity.shared.b64 %p1, [buffer+256], {}; @!%p1 bra WAIT;"
    run = Run(body.format(size=256, wait=wait.format(0)), 64, shared=272)
    assert run.out.tolist() == list(range(64))
    assert run.counters.global_loads.bytes == 256
    fault(body.format(size=256, wait=""), "missing cp.async wait", threads=64, shared=272)
    fault(
        body.format(size=256, wait="bar.sync 0;"), "missing cp.async wait", threads=64, shared=272
    )
    fault(body.format(size=512, wait=wait.format(0)), "deadlock", threads=64, shared=272)
    # Copies take no time here, so that the parity of the phase after it is waited for in vain.
    fault(body.format(size=256, wait=wait.format(1)), "deadlock", threads=64, shared=272)
    without = body.replace("fence.mbarrier_init.release.cluster;", "")
    without = without.format(size=256, wait=wait.format(0))
    fault(without, "missing proxy fence", threads=64, shared=272)


def test_endless_loops_and_traps():
    found = fault("L: add.u32 %r0, %r0, 1; bra L;", "too many steps", max_steps=1000)
    assert found.location.line > 1
    fault("setp.eq.u32 %p0, %r0, 5; @%p0 trap;", "trap")
    Run("setp.eq.u32 %p0, %r0, 50; @%p0 trap;")
