# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asynchronous copies: what arrives in shared memory, what is filled with zeros, and the waits."""

import numpy as np
import pytest

from snippet import Snippet, check_assembles
from twofour.errors import TwofourError

THREADS = 64
DATA = f".global .align 16 .b8 $_data[{16 * THREADS}];"
# %w1 and %t1 are the addresses of a thread's 16 bytes in global and in shared memory.
OWN = (
    "mov.u64 %w0, $_data;\nmad.wide.u32 %w1, %id2, 16, %w0;\nmov.u32 %t0, memory;\n"
    "mad.lo.u32 %t1, %id2, 16, %t0;\nst.global.v4.b32 [%w1], {%i0, %i1, %i2, %i3};\n"
)
CLEAR = "mov.b32 %t7, -1;\nst.shared.v4.b32 [%t1], {%t7, %t7, %t7, %t7};\n"
READ = "ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%t1];"
WAITS = {
    "all": "cp.async.wait_all;\n",
    "group": "cp.async.commit_group;\ncp.async.wait_group 0;\n",
}
SIZES = (4, 8, 16)
CACHES = [("ca", size) for size in SIZES] + [("cg", 16)]


def snippet(body: str, inputs: int = 4, **more) -> Snippet:
    registers = ("b32",) * inputs
    return Snippet(body, registers, ("b32",) * 4, shared=32 * THREADS, globals=DATA, **more)


def words(seed: int) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).integers(0, 1 << 32, (4, THREADS), dtype=np.uint32))


def byte_rows(columns: list[np.ndarray]) -> np.ndarray:
    """The 16 bytes of every thread."""
    return np.stack(columns, axis=1).view(np.uint8)


def copy(cache: str, size: int, wait: str = "group", space: str = "shared") -> Snippet:
    """The last `size` of 16 bytes are copied."""
    at = 16 - size
    return snippet(
        f"{OWN}{CLEAR}cp.async.{cache}.{space}.global [%t1+{at}], [%w1+{at}], {size};\n"
        f"{WAITS[wait]}{READ}"
    )


COPIES = [(cache, size, wait) for cache, size in CACHES for wait in WAITS]
COPIES += [("ca", 4, "group", "shared::cta"), ("cg", 16, "group", "shared::cta")]


@pytest.mark.parametrize("form", COPIES)
def test_copies(form):
    columns = words(1)
    found = byte_rows(copy(*form)(*columns, block=THREADS))
    expected = np.full((THREADS, 16), 0xFF, np.uint8)
    expected[:, 16 - form[1] :] = byte_rows(columns)[:, 16 - form[1] :]
    np.testing.assert_array_equal(found, expected)


def copy_of_part(cache: str, size: int) -> Snippet:
    """%i4 is how many bytes are read; the rest of the destination becomes zero."""
    return snippet(
        f"{OWN}{CLEAR}cp.async.{cache}.shared.global [%t1], [%w1], {size}, %i4;\n"
        f"{WAITS['all']}{READ}",
        5,
    )


@pytest.mark.parametrize(("cache", "size"), CACHES)
def test_zero_fill(cache, size):
    columns = words(2)
    sizes = np.random.default_rng(3).integers(0, size + 1, THREADS, dtype=np.uint32)
    sizes[:2] = 0, size
    found = byte_rows(copy_of_part(cache, size)(*columns, sizes, block=THREADS))
    expected = np.full((THREADS, 16), 0xFF, np.uint8)
    for thread, present in enumerate(sizes.tolist()):
        expected[thread, :size] = 0
        expected[thread, :present] = byte_rows(columns)[thread, :present]
    np.testing.assert_array_equal(found, expected)


IGNORE = snippet(
    f"{OWN}{CLEAR}and.b32 %t2, %i0, 1;\nsetp.eq.u32 %p0, %t2, 1;\n"
    f"cp.async.cg.shared.global.L2::128B [%t1], [%w1], 16, %p0;\n{WAITS['all']}{READ}"
)


def test_ignored_source():
    columns = words(4)
    found = byte_rows(IGNORE(*columns, block=THREADS))
    expected = np.where(columns[0][:, None] & 1, 0, byte_rows(columns))
    np.testing.assert_array_equal(found, expected)


# Nothing is read where the source size is zero: the address may lie anywhere.
NOWHERE = snippet(
    f"{OWN}{CLEAR}mov.u32 %t2, 0;\nadd.s64 %w1, %w1, 1073741824;\n"
    f"cp.async.cg.shared.global [%t1], [%w1], 16, %t2;\n{WAITS['all']}{READ}"
)


def test_nothing_is_read_for_a_source_size_of_zero():
    for column in NOWHERE(*words(5), block=THREADS):
        assert (column == 0).all()


def groups(allowed: int) -> Snippet:
    """Four groups of one word each; after the wait the words of all but `allowed` are read."""
    body = OWN + CLEAR
    for i in range(4):
        body += f"cp.async.ca.shared.global [%t1+{4 * i}], [%w1+{4 * i}], 4;\n"
        body += "cp.async.commit_group;\n"
    body += f"cp.async.wait_group {allowed};\n"
    for i in range(4):
        pending = i >= 4 - allowed
        body += f"mov.b32 %o{i}, 0;\n" if pending else f"ld.shared.b32 %o{i}, [%t1+{4 * i}];\n"
    return snippet(body)


@pytest.mark.parametrize("allowed", range(4))
def test_groups_complete_in_order(allowed):
    columns = words(6)
    found = groups(allowed)(*columns, block=THREADS)
    for i in range(4 - allowed):
        np.testing.assert_array_equal(found[i], columns[i])


def test_a_group_that_may_be_pending_is_not_read():
    complete = groups(1)
    body = complete.body.replace("mov.b32 %o3, 0;", "ld.shared.b32 %o3, [%t1+12];")
    with pytest.raises(TwofourError, match="missing cp.async wait"):
        snippet(body)(*words(7), block=THREADS)


# The copies of the other threads are visible after the wait of each thread and a barrier.
NEIGHBOUR = snippet(
    f"{OWN}cp.async.cg.shared.global [%t1], [%w1], 16;\n{WAITS['group']}bar.sync 0;\n"
    f"xor.b32 %t2, %id2, 33;\nmad.lo.u32 %t1, %t2, 16, %t0;\n{READ}"
)


def test_copies_of_other_threads():
    columns = words(8)
    found = NEIGHBOUR(*columns, block=THREADS)
    for before, after in zip(columns, found, strict=True):
        np.testing.assert_array_equal(after, before[np.arange(THREADS) ^ 33])


BARRIER = 16 * THREADS
# One thread makes an mbarrier behind the data and tells the others.
WITH_MBARRIER = (
    f"{OWN}setp.ne.u32 %p1, %id2, 0;\nadd.u32 %t4, %t0, {BARRIER};\n"
    "@%p1 bra MADE;\nmbarrier.init.shared.b64 [%t4], {count};\nMADE:\nbar.sync 0;\n"
)
TRY = (
    "AGAIN:\nmbarrier.try_wait.parity.shared.b64 %p2, [%t4], 0;\n@!%p2 bra AGAIN;\n"
    f"xor.b32 %t2, %id2, 33;\nmad.lo.u32 %t1, %t2, 16, %t0;\n{READ}"
)
# Each thread's copies arrive for it.
ARRIVING = snippet(
    WITH_MBARRIER.replace("{count}", str(THREADS))
    + "cp.async.cg.shared.global [%t1], [%w1], 16;\n"
    + "cp.async.mbarrier.arrive.noinc.shared.b64 [%t4];\n"
    + TRY,
    target="sm_90",
)
# Without .noinc the copies add an arrival of their own, and the thread arrives besides.
ADDING = snippet(
    WITH_MBARRIER.replace("{count}", str(THREADS))
    + "cp.async.cg.shared.global [%t1], [%w1], 16;\n"
    + "cp.async.mbarrier.arrive.shared.b64 [%t4];\n"
    + "mbarrier.arrive.shared.b64 %w2, [%t4];\n"
    + TRY,
    target="sm_90",
)
# One thread copies everything in bulk, and the barrier expects the bytes.
BULK = snippet(
    WITH_MBARRIER.replace("{count}", "1").replace("bar.sync", "fence.proxy.async;\nbar.sync")
    + "@%p1 bra WAIT;\n"
    + f"mbarrier.arrive.expect_tx.shared.b64 %w2, [%t4], {16 * THREADS};\n"
    + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
    + f"[%t0], [%w0], {16 * THREADS}, [%t4];\n"
    + "WAIT:\n"
    + TRY,
    target="sm_90",
)


@pytest.mark.parametrize("kernel", [ARRIVING, ADDING, BULK], ids=["noinc", "inc", "bulk"])
def test_copies_seen_through_an_mbarrier(kernel):
    columns = words(9)
    found = kernel(*columns, block=THREADS)
    for before, after in zip(columns, found, strict=True):
        np.testing.assert_array_equal(after, before[np.arange(THREADS) ^ 33])


# Shared memory goes back to other places of global memory, in bulk.
BULK_STORE = Snippet(
    "mov.u64 %w0, $_data;\nmov.u32 %t0, memory;\nmad.lo.u32 %t1, %id2, 16, %t0;\n"
    "st.shared.v4.b32 [%t1], {%i0, %i1, %i2, %i3};\nfence.proxy.async;\nbar.sync 0;\n"
    "setp.ne.u32 %p1, %id2, 0;\n@%p1 bra DONE;\n"
    f"cp.async.bulk.global.shared::cta.bulk_group [%w0+32], [%t0], {16 * THREADS};\n"
    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\ncp.async.bulk.wait_group 0;\n"
    "DONE:\nbar.sync 0;\nmad.wide.u32 %w1, %id2, 16, %w0;\n"
    "ld.global.v4.b32 {%o0, %o1, %o2, %o3}, [%w1+32];",
    ("b32",) * 4,
    ("b32",) * 4,
    "sm_90",
    16 * THREADS,
    f".global .align 16 .b8 $_data[{16 * THREADS + 32}];",
)


def test_bulk_copies_to_global_memory():
    columns = words(10)
    found = BULK_STORE(*columns, block=THREADS)
    for before, after in zip(columns, found, strict=True):
        np.testing.assert_array_equal(after, before)


def all_snippets() -> list[Snippet]:
    snippets = [copy(*form) for form in COPIES]
    snippets += [copy_of_part(*form) for form in CACHES]
    snippets += [groups(allowed) for allowed in range(4)]
    snippets += [IGNORE, NOWHERE, NEIGHBOUR, ARRIVING, ADDING, BULK, BULK_STORE]
    return snippets


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
