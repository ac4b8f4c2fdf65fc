# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions across the lanes of a warp, by the pseudocode of the PTX ISA."""

from collections.abc import Callable

import numpy as np
import pytest

from integers import decoded
from snippet import Snippet, check_assembles
from twofour import sim

WARPS = 4
THREADS = 32 * WARPS
FULL = 0xFFFFFFFF
SHUFFLES = ("up", "down", "bfly", "idx")
# Third operands: the whole warp, and segments of 8 and 16 lanes, clamped in various ways.
CLAMPS = {
    "up": (0x0000, 0x1800, 0x1000),
    "down": (0x001F, 0x181F, 0x100F, 0x0013),
    "bfly": (0x001F, 0x181F, 0x100F, 0x0013),
    "idx": (0x001F, 0x181F, 0x100F, 0x0013),
}


def words(seed: int, high: int = 1 << 32) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, THREADS, dtype=np.uint32)


def shuffle(mode: str) -> Snippet:
    return Snippet(
        f"shfl.sync.{mode}.b32 %o0|%p0, %i0, %i1, %i2, -1;\nselp.u32 %o1, 1, 0, %p0;",
        ("b32",) * 3,
        ("b32",) * 2,
    )


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The lane that is read, and whether it is in range."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    most, least = lane & segment | clamp & ~segment, lane & segment
    if mode == "up":
        j = lane - b
        inside = j >= most
    elif mode == "idx":
        j = least | b & ~segment
        inside = j <= most
    else:
        j = lane + b if mode == "down" else lane ^ b
        inside = j <= most
    return (j if inside else lane), inside


@pytest.mark.parametrize("mode", SHUFFLES)
def test_shuffles(mode):
    a = words(1)
    for c in CLAMPS[mode]:
        for b in (words(2, 32), np.full(THREADS, 1, np.uint32), np.full(THREADS, 37, np.uint32)):
            found, inside = shuffle(mode)(a, b, np.full(THREADS, c, np.uint32))
            for thread in range(THREADS):
                lane, expected = source_lane(mode, thread % 32, int(b[thread]), c)
                assert inside[thread] == expected
                assert found[thread] == a[thread // 32 * 32 + lane]


# The lanes whose %i1 is odd take the instruction, with a mask of just those lanes.
SOME = "and.b32 %t0, %i1, 1;\nsetp.eq.u32 %p1, %t0, 1;\nmov.u32 %o0, 0xDEAD;\n@!%p1 bra SKIP;\n"
DONE = "\nSKIP:"


def among(instruction: str, inputs: tuple[str, ...] = ("b32", "b32", "b32")) -> Snippet:
    """%i0 is the value, %i1 says who takes part, %i2 is the mask of those."""
    return Snippet(f"{SOME}{instruction}{DONE}", inputs)


def membership(odd: np.ndarray) -> np.ndarray:
    """Masks of the lanes with odd numbers, for every thread those of its warp."""
    bits = (odd.reshape(WARPS, 32) & 1).astype(np.uint64) << np.arange(32, dtype=np.uint64)
    return np.repeat(bits.sum(axis=1).astype(np.uint32), 32)


def check_among(
    snippet: Snippet, values: np.ndarray, function: Callable[[list[int], int, list[int]], int]
) -> None:
    """`function` gets the values of the lanes that take part, the own value, and those lanes."""
    odd = words(3)
    odd[32:64] |= 1
    odd[64:96] = np.arange(32) == 19
    (found,) = snippet(values, odd, membership(odd))
    for thread in range(THREADS):
        if odd[thread] % 2 == 0:
            assert found[thread] == 0xDEAD
            continue
        first = thread // 32 * 32
        lanes = [lane for lane in range(32) if odd[first + lane] % 2]
        members = [int(values[first + lane]) for lane in lanes]
        assert found[thread] == function(members, int(values[thread]), lanes) & FULL


# Every lane reads the first one that takes part.
SHUFFLE_AMONG = among(
    "brev.b32 %t1, %i2;\nclz.b32 %t1, %t1;\nshfl.sync.idx.b32 %o0, %i0, %t1, 31, %i2;"
)


def test_shuffle_among_some():
    check_among(SHUFFLE_AMONG, words(4), lambda members, own, lanes: members[0])


VOTES = {
    "all": lambda members: all(members),
    "any": lambda members: any(members),
    "uni": lambda members: len(set(members)) == 1,
}


def vote(mode: str) -> Snippet:
    return among(
        f"setp.ne.u32 %p2, %i0, 0;\nvote.sync.{mode}.pred %p3, %p2, %i2;\nselp.u32 %o0, 1, 0, %p3;"
    )


BALLOT = among("setp.ne.u32 %p2, %i0, 0;\nvote.sync.ballot.b32 %o0, %p2, %i2;")
NEGATED_BALLOT = among("setp.ne.u32 %p2, %i0, 0;\nvote.sync.ballot.b32 %o0, !%p2, %i2;")


def flags() -> list[np.ndarray]:
    ones = np.ones(THREADS, dtype=np.uint32)
    mixed = words(5, 2)
    mixed[:32] = 0
    mixed[32:64] = 1
    return [ones, 0 * ones, mixed]


@pytest.mark.parametrize("mode", VOTES)
def test_votes(mode):
    for values in flags():
        check_among(vote(mode), values, lambda members, own, lanes: VOTES[mode](members))


def test_ballots():
    for values in flags():
        check_among(
            BALLOT,
            values,
            lambda members, own, lanes: sum(
                bool(m) << lane for m, lane in zip(members, lanes, strict=True)
            ),
        )
        check_among(
            NEGATED_BALLOT,
            values,
            lambda members, own, lanes: sum(
                (not m) << lane for m, lane in zip(members, lanes, strict=True)
            ),
        )


def signed(function: Callable[[list[int]], int]) -> Callable[[list[int]], int]:
    return lambda members: function([decoded(m, "s32") for m in members])


def folded(operation: Callable[[int, int], int]) -> Callable[[list[int]], int]:
    def function(members: list[int]) -> int:
        found = members[0]
        for member in members[1:]:
            found = operation(found, member)
        return found

    return function


REDUCTIONS = {
    "add.u32": sum,
    "add.s32": sum,
    "min.u32": min,
    "max.u32": max,
    "min.s32": signed(min),
    "max.s32": signed(max),
    "and.b32": folded(lambda a, b: a & b),
    "or.b32": folded(lambda a, b: a | b),
    "xor.b32": folded(lambda a, b: a ^ b),
}


def reduction(name: str) -> Snippet:
    return among(f"redux.sync.{name} %o0, %i0, %i2;")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    check_among(reduction(name), words(6), lambda members, own, lanes: REDUCTIONS[name](members))


MATCH_ANY = among("match.any.sync.b32 %o0, %i0, %i2;")
MATCH_ANY_64 = among(
    "mov.b64 %w0, {%i0, %i0};\nmatch.any.sync.b64 %o0, %w0, %i2;",
)
MATCH_ALL = among(
    "match.all.sync.b32 %t1|%p2, %i0, %i2;\nselp.u32 %t2, 1, 0, %p2;\nshl.b32 %t2, %t2, 31;\n"
    "xor.b32 %o0, %t1, %t2;"
)


@pytest.mark.parametrize("snippet", [MATCH_ANY, MATCH_ANY_64], ids=["b32", "b64"])
def test_match_any(snippet):
    check_among(
        snippet,
        words(7, 3),
        lambda members, own, lanes: sum(
            (m == own) << lane for m, lane in zip(members, lanes, strict=True)
        ),
    )


def test_match_all():
    same, different = np.full(THREADS, 5, dtype=np.uint32), words(8)

    def expected(members, own, lanes):
        equal = len(set(members)) == 1
        return sum(1 << lane for lane in lanes) ^ 1 << 31 if equal else 0

    check_among(MATCH_ALL, same, expected)
    check_among(MATCH_ALL, different, expected)


def bits_of(lanes) -> int:
    return sum(1 << lane for lane in lanes)


# What each lane gets of the lanes that share its mask: their values, its own value, their numbers.
AMONG_GROUPS = {
    "shfl": (SHUFFLE_AMONG, lambda members, own, lanes: members[0]),
    "vote.any": (vote("any"), lambda members, own, lanes: any(members)),
    "vote.all": (vote("all"), lambda members, own, lanes: all(members)),
    "vote.uni": (vote("uni"), lambda members, own, lanes: len(set(map(bool, members))) == 1),
    "vote.ballot": (
        BALLOT,
        lambda members, own, lanes: bits_of(
            lane for lane, m in zip(lanes, members, strict=True) if m
        ),
    ),
    "redux.add": (reduction("add.u32"), lambda members, own, lanes: sum(members)),
    "redux.min": (reduction("min.s32"), lambda members, own, lanes: signed(min)(members)),
    "match.any": (
        MATCH_ANY,
        lambda members, own, lanes: bits_of(
            lane for lane, m in zip(lanes, members, strict=True) if m == own
        ),
    ),
    "match.all": (
        MATCH_ALL,
        lambda members, own, lanes: bits_of(lanes) ^ 1 << 31 if len(set(members)) == 1 else 0,
    ),
    "elect": (
        among("elect.sync %o0|%p0, %i2;"),
        lambda members, own, lanes: lanes[0],
    ),
}


@pytest.mark.parametrize("name", AMONG_GROUPS)
def test_lanes_with_different_masks_are_groups_of_their_own(name):
    snippet, function = AMONG_GROUPS[name]
    # Lanes 0 to 7 agree, and the three groups of other lanes are interleaved.
    group = np.where(np.arange(THREADS) % 32 < 8, 3, np.arange(THREADS) % 3)
    values = np.where(group == 3, np.uint32(1), words(14, 3)).astype(np.uint32)
    lanes_of = {
        thread: [lane for lane in range(32) if group[thread // 32 * 32 + lane] == group[thread]]
        for thread in range(THREADS)
    }
    masks = np.array([bits_of(lanes) for lanes in lanes_of.values()], np.uint32)
    (found,) = snippet(values, np.ones(THREADS, np.uint32), masks)
    for thread, lanes in lanes_of.items():
        members = [int(values[thread // 32 * 32 + lane]) for lane in lanes]
        assert found[thread] == function(members, int(values[thread]), lanes) & FULL


def test_members_have_the_same_mask():
    masks = np.full(THREADS, FULL, np.uint32)
    masks[5] = 1 << 5
    with pytest.raises(sim.Fault, match="expected the threads of mask 0xffffffff at vote.sync.any"):
        vote("any")(words(15), np.ones(THREADS, np.uint32), masks)


ACTIVE = among("activemask.b32 %o0;")
ELECT = Snippet(
    "elect.sync %o0|%p0, -1;\nselp.u32 %o1, 1, 0, %p0;", ("b32",), ("b32",) * 2, "sm_90"
)


def test_active_mask():
    check_among(ACTIVE, words(9), lambda members, own, lanes: sum(1 << lane for lane in lanes))


def test_one_lane_is_elected():
    leader, elected = ELECT(words(10))
    for warp in range(WARPS):
        part = slice(32 * warp, 32 * warp + 32)
        assert elected[part].sum() == 1
        assert (leader[part] == np.argmax(elected[part])).all()


# Lanes exchange values through shared memory, with nothing but the barrier of the warp between.
EXCHANGE = Snippet(
    "mov.u32 %t0, %tid.x;\nmov.u32 %t1, memory;\nmad.lo.u32 %t2, %t0, 4, %t1;\n"
    "st.shared.b32 [%t2], %i0;\nbar.warp.sync -1;\nxor.b32 %t0, %t0, 5;\n"
    "mad.lo.u32 %t2, %t0, 4, %t1;\nld.shared.b32 %o0, [%t2];",
    ("b32",),
    shared=4 * THREADS,
)


def test_warp_barrier_orders_shared_memory():
    values = words(11)
    (found,) = EXCHANGE(values, block=THREADS)
    np.testing.assert_array_equal(found, values[np.arange(THREADS) ^ 5])


MASKS = {
    "eq": lambda i, lane: i == lane,
    "lt": lambda i, lane: i < lane,
    "le": lambda i, lane: i <= lane,
    "gt": lambda i, lane: i > lane,
    "ge": lambda i, lane: i >= lane,
}


@pytest.mark.parametrize("name", MASKS)
def test_lane_masks(name):
    (found,) = lane_mask(name)(words(12))
    for thread in range(THREADS):
        lane = thread % 32
        assert found[thread] == sum(1 << i for i in range(32) if MASKS[name](i, lane))


def lane_mask(name: str) -> Snippet:
    return Snippet(f"mov.u32 %o0, %lanemask_{name};", ("b32",))


PLACES = Snippet("mov.u32 %o0, %laneid;\nmov.u32 %o1, %warpid;", ("b32",), ("b32",) * 2)


def test_lane_and_warp():
    lane, warp = PLACES(words(13), block=64)
    np.testing.assert_array_equal(lane, np.arange(THREADS) % 32)
    np.testing.assert_array_equal(warp, np.arange(THREADS) % 64 // 32)


def all_snippets() -> list[Snippet]:
    snippets = [shuffle(mode) for mode in SHUFFLES]
    snippets += [vote(mode) for mode in VOTES]
    snippets += [reduction(name) for name in REDUCTIONS]
    snippets += [lane_mask(name) for name in MASKS]
    snippets += [
        SHUFFLE_AMONG,
        BALLOT,
        NEGATED_BALLOT,
        MATCH_ANY,
        MATCH_ANY_64,
        MATCH_ALL,
        ACTIVE,
        ELECT,
    ]
    return [*snippets, EXCHANGE, PLACES]


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
