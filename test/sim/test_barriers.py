# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers of a block and mbarrier objects: who waits for whom, and what they count."""

import numpy as np
import pytest

from snippet import Snippet, check_assembles
from twofour.errors import TwofourError

THREADS = 128
# %t1 is the address of a thread's word, %t2 that of another one's, in another warp.
OWN = (
    "mov.u32 %t0, memory;\nmad.lo.u32 %t1, %id2, 4, %t0;\nxor.b32 %t2, %id2, 33;\n"
    "mad.lo.u32 %t2, %t2, 4, %t0;\n"
)
# Where an mbarrier lies, behind the words.
OBJECT = 4 * THREADS


def snippet(body: str, outputs: int = 1, target: str = "sm_80") -> Snippet:
    return Snippet(body, ("b32",), ("b32",) * outputs, target, shared=4 * THREADS + 16)


def words(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 32, THREADS, dtype=np.uint32)


BARRIERS = [
    "bar.sync 0;",
    "bar.cta.sync 3;",
    "barrier.sync 15;",
    "barrier.sync.aligned 1;",
    "barrier.cta.sync.aligned 2;",
    "bar.sync 0, 128;",
    "barrier.sync 7, 128;",
    "mov.u32 %t3, 5;\nbar.sync %t3;",
    "mov.u32 %t3, 5;\nmov.u32 %t4, 128;\nbar.sync %t3, %t4;",
    "bar.arrive 1, 256;\nbar.sync 1, 256;",
]


def exchange(barrier: str) -> Snippet:
    return snippet(f"{OWN}st.shared.b32 [%t1], %i0;\n{barrier}\nld.shared.b32 %o0, [%t2];")


@pytest.mark.parametrize("barrier", BARRIERS)
def test_words_of_other_threads(barrier):
    values = words(1)
    (found,) = exchange(barrier)(values, block=THREADS)
    np.testing.assert_array_equal(found, values[np.arange(THREADS) ^ 33])


@pytest.mark.parametrize("barrier", ["bar.sync 16;", "bar.sync -1;"])
def test_unknown_barriers(barrier):
    with pytest.raises(TwofourError, match="expected a barrier below 16, got"):
        exchange(barrier)(words(1), block=THREADS)


# Warps 0 and 1 meet at one barrier, warps 2 and 3 at another one, twice.
PAIRS = snippet(
    f"{OWN}shr.u32 %t3, %id2, 6;\nadd.u32 %t3, %t3, 1;\nst.shared.b32 [%t1], %i0;\n"
    "bar.sync %t3, 64;\nld.shared.b32 %t4, [%t2];\nbar.sync %t3, 64;\n"
    "st.shared.b32 [%t1], %t4;\nbar.sync %t3, 64;\nld.shared.b32 %o0, [%t2];"
)
# Warps 0 and 1 write and go on; warps 2 and 3 wait for them and read.
PRODUCERS = snippet(
    f"{OWN}setp.ge.u32 %p0, %id2, 64;\nmov.b32 %o0, %i0;\n@%p0 bra CONSUME;\n"
    "st.shared.b32 [%t1], %i0;\nbar.arrive 1, 128;\nbra DONE;\n"
    "CONSUME:\nbar.sync 1, 128;\nxor.b32 %t2, %id2, 97;\nmad.lo.u32 %t2, %t2, 4, %t0;\n"
    "ld.shared.b32 %o0, [%t2];\nDONE:"
)
# Threads of warps that have exited are not waited for.
EXITED = snippet(
    f"{OWN}mov.b32 %o0, %i0;\nsetp.lt.u32 %p0, %id2, 32;\n@%p0 bra DONE;\n"
    "st.shared.b32 [%t1], %i0;\nxor.b32 %t2, %id2, 1;\nmad.lo.u32 %t2, %t2, 4, %t0;\n"
    "bar.sync 0;\nld.shared.b32 %o0, [%t2];\nDONE:"
)


def test_pairs_of_warps():
    values = words(2)
    (found,) = PAIRS(values, block=THREADS)
    np.testing.assert_array_equal(found, values)


def test_producers_do_not_wait():
    values = words(3)
    (found,) = PRODUCERS(values, block=THREADS)
    np.testing.assert_array_equal(found[:64], values[:64])
    np.testing.assert_array_equal(found[64:], values[np.arange(64, 128) ^ 97])


def test_exited_threads_are_not_waited_for():
    values = words(4)
    (found,) = EXITED(values, block=THREADS)
    np.testing.assert_array_equal(found[:32], values[:32])
    np.testing.assert_array_equal(found[32:], values[np.arange(32, 128) ^ 1])


# Reductions of the predicate "%i0 is not zero", and what they give for all values of a block.
REDUCTIONS = {
    "bar.red.popc.u32 %o0, 0, %p0;": np.count_nonzero,
    "bar.red.popc.u32 %o0, 1, !%p0;": lambda values: np.count_nonzero(values == 0),
    "barrier.red.popc.u32 %o0, 0, 128, %p0;": np.count_nonzero,
    "bar.red.and.pred %p1, 0, %p0;\nselp.u32 %o0, 1, 0, %p1;": np.all,
    "bar.red.or.pred %p1, 0, %p0;\nselp.u32 %o0, 1, 0, %p1;": np.any,
    "barrier.cta.red.or.aligned.pred %p1, 0, !%p0;\nselp.u32 %o0, 1, 0, %p1;": (
        lambda values: not np.all(values)
    ),
}


def reduction(body: str) -> Snippet:
    return snippet(f"setp.ne.u32 %p0, %i0, 0;\n{body}")


@pytest.mark.parametrize("body", REDUCTIONS)
def test_reductions(body):
    mixed = words(5) % 2
    for values in (mixed, np.zeros_like(mixed), np.ones_like(mixed)):
        (found,) = reduction(body)(np.tile(values, 2), block=THREADS)
        assert (found == int(REDUCTIONS[body](values))).all()


def with_object(count: int, rest: str) -> str:
    """The first thread makes an mbarrier of that count, whose address is %t3."""
    return (
        f"{OWN}add.u32 %t3, %t0, {OBJECT};\nsetp.ne.u32 %p7, %id2, 0;\n"
        f"@%p7 bra MADE;\nmbarrier.init.shared.b64 [%t3], {count};\nMADE:\nbar.sync 0;\n{rest}"
    )


def wait_for(instruction: str, label: str = "AGAIN") -> str:
    return f"{label}:\n{instruction}\n@!%p0 bra {label};\n"


ARRIVE = "mbarrier.arrive.shared.b64 %w0, [%t3];\n"
STORE, READ = "st.shared.b32 [%t1], %i0;\n", "ld.shared.b32 %o0, [%t2];"
# Ways to arrive and to wait until all have: the count, the instructions, the chip.
MBARRIERS = {
    "state": (
        THREADS,
        ARRIVE + wait_for("mbarrier.test_wait.shared.b64 %p0, [%t3], %w0;"),
        "sm_80",
    ),
    "state, shared::cta": (
        THREADS,
        "mbarrier.arrive.shared::cta.b64 %w0, [%t3];\n"
        + wait_for("mbarrier.test_wait.shared::cta.b64 %p0, [%t3], %w0;"),
        "sm_80",
    ),
    "try_wait": (
        THREADS,
        ARRIVE + wait_for("mbarrier.try_wait.shared.b64 %p0, [%t3], %w0;"),
        "sm_90",
    ),
    "parity": (
        THREADS,
        ARRIVE + wait_for("mbarrier.test_wait.parity.shared.b64 %p0, [%t3], 0;"),
        "sm_80",
    ),
    "try_wait with a time": (
        THREADS,
        ARRIVE + wait_for("mbarrier.try_wait.parity.shared.b64 %p0, [%t3], 0, 100;"),
        "sm_90",
    ),
    "orderings": (
        THREADS,
        "mbarrier.arrive.release.cta.shared::cta.b64 %w0, [%t3];\n"
        + wait_for("mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [%t3], 0;"),
        "sm_90",
    ),
    "counts": (
        2 * THREADS,
        "mbarrier.arrive.shared.b64 %w0, [%t3], 2;\n"
        + wait_for("mbarrier.test_wait.parity.shared.b64 %p0, [%t3], 0;"),
        "sm_90",
    ),
    "bytes": (
        THREADS,
        "mbarrier.arrive.expect_tx.shared.b64 _, [%t3], 0;\n"
        + wait_for("mbarrier.test_wait.parity.shared.b64 %p0, [%t3], 0;"),
        "sm_90",
    ),
    "generic address": (
        THREADS,
        "cvt.u64.u32 %w1, %t3;\ncvta.shared.u64 %w1, %w1;\nmbarrier.arrive.b64 %w0, [%w1];\n"
        + wait_for("mbarrier.test_wait.b64 %p0, [%w1], %w0;"),
        "sm_80",
    ),
}


def through_object(name: str) -> Snippet:
    count, body, target = MBARRIERS[name]
    return snippet(with_object(count, f"{STORE}{body}{READ}"), target=target)


@pytest.mark.parametrize("name", MBARRIERS)
def test_words_through_an_mbarrier(name):
    values = words(6)
    (found,) = through_object(name)(values, block=THREADS)
    np.testing.assert_array_equal(found, values[np.arange(THREADS) ^ 33])


def phases(waits: list[str]) -> Snippet:
    """Words go to another thread, back, and there again, with a wait for each of three phases."""
    first, second, third = (
        ARRIVE + wait_for(wait, label) for wait, label in zip(waits, ("A", "B", "C"), strict=True)
    )
    body = f"{STORE}{first}ld.shared.b32 %t4, [%t2];\n{second}st.shared.b32 [%t1], %t4;\n"
    return snippet(with_object(THREADS, body + third + READ))


# The parity of the phase changes with every completion; a state is that of one phase.
PHASES = {
    "parity": phases([f"mbarrier.test_wait.parity.shared.b64 %p0, [%t3], {i};" for i in (0, 1, 0)]),
    "state": phases(["mbarrier.test_wait.shared.b64 %p0, [%t3], %w0;"] * 3),
}
# The first warp leaves for good: later phases need the others alone.
DROP = snippet(
    with_object(
        THREADS,
        "mov.b32 %o0, %i0;\nsetp.lt.u32 %p1, %id2, 32;\n@!%p1 bra STAY;\n"
        "mbarrier.arrive_drop.shared.b64 %w0, [%t3];\nbra DONE;\nSTAY:\n"
        + ARRIVE
        + wait_for("mbarrier.test_wait.parity.shared.b64 %p0, [%t3], 0;", "FIRST")
        + STORE
        + ARRIVE
        + wait_for("mbarrier.test_wait.parity.shared.b64 %p0, [%t3], 1;", "SECOND")
        + "xor.b32 %t2, %id2, 1;\nmad.lo.u32 %t2, %t2, 4, %t0;\n"
        + READ
        + "\nDONE:",
    )
)
# Bytes that are expected hold up the phase until they are complete; %o0 counts the answers.
BYTES = snippet(
    with_object(
        1,
        "mov.u32 %o0, 0;\n@%p7 bra DONE;\n"
        "mbarrier.expect_tx.relaxed.cta.shared.b64 [%t3], 48;\n" + ARRIVE + "mov.u32 %t5, 0;\n"
        "mbarrier.complete_tx.relaxed.cta.shared.b64 [%t3], 16;\n"
        "mbarrier.complete_tx.relaxed.cta.shared.b64 [%t3], 32;\n"
        "mbarrier.test_wait.shared.b64 %p0, [%t3], %w0;\nselp.u32 %o0, 1, 0, %p0;\n"
        "mbarrier.inval.shared.b64 [%t3];\nDONE:",
    ),
    target="sm_90",
)
# A test of a phase that nobody completes is false, and does not wait.
PENDING = snippet(
    with_object(
        2,
        "mov.u32 %o0, 2;\n@%p7 bra DONE;\n"
        + ARRIVE
        + "mbarrier.test_wait.shared.b64 %p0, [%t3], %w0;\nselp.u32 %o0, 1, 0, %p0;\nDONE:",
    )
)


@pytest.mark.parametrize("kind", PHASES)
def test_phases(kind):
    values = words(7)
    (found,) = PHASES[kind](values, block=THREADS)
    np.testing.assert_array_equal(found, values)


def test_dropped_threads_are_not_expected_again():
    values = words(8)
    (found,) = DROP(values, block=THREADS)
    np.testing.assert_array_equal(found[:32], values[:32])
    np.testing.assert_array_equal(found[32:], values[np.arange(32, 128) ^ 1])


def test_bytes_that_are_expected():
    (found,) = BYTES(words(9), block=THREADS)
    assert found[0] == 1


def test_a_pending_phase_is_not_complete():
    (found,) = PENDING(words(10), block=THREADS)
    assert found[0] == 0


def all_snippets() -> list[Snippet]:
    snippets = [exchange(barrier) for barrier in BARRIERS]
    snippets += [reduction(body) for body in REDUCTIONS]
    snippets += [through_object(name) for name in MBARRIERS]
    snippets += [PAIRS, PRODUCERS, EXITED, *PHASES.values(), DROP, BYTES, PENDING]
    return snippets


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
