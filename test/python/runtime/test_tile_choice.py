# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How deep and large the model makes time tiles, on machines that are not this one."""

import math
from dataclasses import replace

import pytest

from twofour.runtime import parse_boundary
from twofour.runtime.box import Box
from twofour.runtime.processor import OVER_MESH, Caches
from twofour.runtime.tiles.choice import (
    BARRIER,
    SHOWN,
    WORTH_SKEWING,
    TileChoice,
    _of_depth,
    choose_residence,
    choose_tiles,
    is_skewing_faster,
    past_caches,
    worth_threads,
)
from twofour.runtime.tiles.costs import MULTIPLY_ADDS, STAYS
from twofour.runtime.tiles.extents import SHORTEST_TURN
from twofour.runtime.tiles.parts import cut
from twofour.runtime.tiles.steps import Geometry
from twofour.runtime.tiles.streamed import is_streamed

MACHINE = Caches(second=1 << 19, last=1 << 25)
# One whose last-level cache is far from its cores.
MESH = Caches(second=1 << 21, last=1 << 26, last_rate=OVER_MESH)


def domain(shape, reach=1, boundary="periodic"):
    rank = len(shape)
    entries = parse_boundary(boundary, rank)
    return Geometry(Box((0,) * rank, shape), (reach,) * rank, (reach,) * rank, entries)


def test_tiles_of_kernels_of_several_planes_have_several_rows():
    """Four for each plane that is computed at once."""
    for planes, least in ((1, 4), (4, 16)):
        geometry = replace(domain((256, 256, 256), boundary="fixed"), planes=planes)
        found = {c.extents[1] for c in _of_depth(geometry, 8, 7, 3, 2, MESH)}
        assert min(found) == least


def choose(shape, reach=1, terms=9, steps=100, threads=1, machine=MACHINE, boundary="periodic"):
    return choose_tiles(domain(shape, reach, boundary), 8, terms, steps, threads, machine)


def reside(shape, terms=9, threads=1, boundary="periodic"):
    return choose_residence(domain(shape, 1, boundary), 8, terms, threads, MACHINE)


@pytest.mark.parametrize("shape", [(1 << 24,), (4096, 4096)])
@pytest.mark.parametrize("threads", [1, 2])
def test_large_arrays_take_several_steps_within_the_caches(shape, threads):
    def scratch(machine):
        choice = choose(shape, terms=3 ** len(shape), threads=threads, machine=machine)
        assert choice.steps >= 2
        return 2 * math.prod(n + 2 * (choice.steps - 1) for n in choice.extents) * 8

    # A core's own cache, or the threads' part of the common one.
    assert scratch(MACHINE) <= MACHINE.last / 8 / threads
    assert scratch(Caches(1 << 19, 1 << 19)) <= 1 << 19
    assert scratch(Caches(1 << 22, 1 << 22)) <= 1 << 22


@pytest.mark.parametrize("shape", [(256, 256, 256), (64, 512, 512), (2000, 100, 100)])
@pytest.mark.parametrize("threads", [1, 2])
def test_large_arrays_of_three_axes_stream_through_the_last_cache(shape, threads):
    choice = choose(shape, terms=7, threads=threads)
    assert choice.steps >= 2 and choice.extents[0] >= shape[0] // threads
    # Windows of 12 planes, for every step but the last.
    section = math.prod(n + 2 * (choice.steps - 1) for n in choice.extents[1:])
    assert (choice.steps - 1) * 12 * section * 8 <= MACHINE.last / 2 / threads
    # Where that cache is small, windows or scratch arrays are.
    small = choose(shape, terms=7, threads=threads, machine=Caches(1 << 19, 1 << 19))
    planes = 2 * (small.extents[0] + 2 * (small.steps - 1))
    if is_streamed(domain(shape), small.extents[0], small.steps):
        planes = (small.steps - 1) * 12
    section = math.prod(n + 2 * (small.steps - 1) for n in small.extents[1:])
    assert small.steps >= 2 and planes * section * 8 <= 1 << 19


@pytest.mark.parametrize(
    "shape", [(8, 1000, 1000), (11, 1000, 1000), (3000, 7, 1000), (9, 200_000)]
)
@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("steps", [1, 4])
def test_thin_domains_have_tiles_for_all_threads(shape, threads, steps):
    """Parts are no shorter than the reach of a step: short axes have few, whatever is asked for."""
    choice = choose(shape, reach=3, terms=19, steps=steps, threads=threads, boundary="fixed")
    parts = cut(domain(shape, 3, "fixed"), choice.extents)
    assert math.prod(map(len, parts)) >= threads
    assert all(extent >= min(6, n) for extent, n in zip(choice.extents, shape, strict=True))


def test_arrays_that_stay_in_the_last_cache_take_one_step_at_a_time():
    assert choose((512, 512), boundary="fixed").steps == 1
    assert choose((512, 512), boundary="fixed", machine=Caches(1 << 18, 1 << 20)).steps > 1
    # A little more than fits it: a part stays.
    assert choose((128, 128, 128), terms=20, boundary="fixed").steps == 1
    assert choose((160, 160, 160), terms=20, boundary="fixed").steps > 1
    # Where halos are gathered in each tile, it is worth several steps.
    assert choose((64, 64, 64)).steps > 1


def test_arrays_that_stay_in_the_last_cache_hold_their_halo():
    for threads in (1, 2):
        least = reside((512, 512), threads=threads).least_steps
        assert least <= 8
        assert reside((64, 64, 64), threads=threads).least_steps <= 4
        # Nothing is gathered beside rims: aligned rows are all that is won.
        assert reside((512, 512), threads=threads, boundary="fixed").least_steps > least
        assert reside((64, 64, 64), threads=threads, boundary="fixed") is None
        for shape in ((1 << 24,), (4096, 4096), (256, 256, 256)):
            assert reside(shape, threads=threads) is None
    assert reside((64, 64, 64), threads=4).extents[0] <= 16


def test_several_steps_are_taken_within_the_cache_of_a_core_where_the_last_one_is_far():
    assert choose((512, 512), machine=MACHINE, boundary="fixed").steps == 1
    for shape in ((512, 512), (4096, 4096)):
        choice = choose(shape, machine=MESH, boundary="fixed")
        assert choice.steps >= 4
        scratch = 2 * math.prod(n + 2 * (choice.steps - 1) for n in choice.extents) * 8
        # Not all of it: arrays come and go beside them.
        assert scratch <= 0.7 * MESH.second


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_that_find_their_parts_in_their_own_caches_have_one_each(threads):
    """Those of MESH have room for 149 rows of 700 numbers in each of two arrays."""
    for rows, parts in ((140, 1), (160, 4)):
        geometry = domain((rows * threads, 700))
        found = {choice.extents[0] for choice in _of_depth(geometry, 8, 9, 1, threads, MESH)}
        # Beside those of sweeps that turn round.
        assert max(found) == rows // parts


def test_small_arrays_are_worth_threads_in_tiles_of_several_steps():
    """Single steps of 228 x 228 points are worth one thread."""
    found = choose((228, 228), steps=10, terms=5, threads=2, machine=MESH, boundary="fixed")
    assert found.steps > 1 and found.extents == (114, 228)
    # Much of what tiles of few planes read is in the other core's cache.
    cube = choose((28, 28, 28), steps=40, terms=7, threads=2, machine=MESH, boundary="fixed")
    assert cube.steps == 1


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize("shape", [(30, 30, 30), (120, 300), (40_000,)])
@pytest.mark.parametrize("depth", [1, 3, 8])
def test_a_tile_takes_no_less_time_where_other_threads_wait(shape, boundary, depth):
    def seconds(threads):
        found = _of_depth(domain(shape, 1, boundary), 8, 7, depth, threads, MESH)
        return min(choice.cycles / threads for choice in found if choice.extents == shape)

    assert seconds(2) >= 0.999999 * seconds(1)
    assert seconds(5) >= 0.999999 * seconds(1)


def test_single_steps_turn_round_in_the_cache_of_a_core():
    def extents(shape, machine):
        return choose(shape, steps=1, machine=machine, boundary="fixed").extents

    for shape in ((512, 512), (1 << 18,), (64, 64, 64)):
        part = extents(shape, MESH)
        assert part[1:] == shape[1:] and part[0] >= SHORTEST_TURN
        # Several parts of it are there when a sweep turns.
        assert 2 * math.prod(part) * 8 <= MESH.second / 4
    # What fits there is swept as a whole.
    assert extents((256, 256), MESH) == (256, 256)


def test_single_steps_leave_planes_in_the_cache_of_a_core():
    extents = choose((256, 256, 256), steps=1, terms=19, machine=MESH, boundary="fixed").extents
    assert extents[1] < 256 and 4 * math.prod(extents[1:]) * 8 <= MESH.second


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize("shape", [(750, 750, 32), (256, 128, 128), (1 << 19, 32)])
@pytest.mark.parametrize("machine", [MACHINE, MESH])
def test_single_steps_write_ends_of_rows_while_these_are_in_the_cache(shape, boundary, machine):
    extents = choose(shape, steps=1, machine=machine, boundary=boundary).extents
    assert extents[-1] == shape[-1] and extents[0] >= SHORTEST_TURN
    assert 2 * math.prod(extents) * 8 <= STAYS * machine.second


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_ends_of_long_rows_count_for_nothing(boundary):
    for shape in ((4096, 512), (4096, 4096)):
        assert choose(shape, steps=1, boundary=boundary).extents == shape


def test_runs_of_many_steps_write_ends_of_rows_in_few_of_them():
    """Long tiles, whose neighbours compute less of them as well, are worth it then."""
    shape = (750, 750, 32)
    few, many = (
        choose(shape, steps=steps, machine=MESH, boundary="fixed").extents for steps in (4, 16)
    )
    assert few[0] < shape[0] == many[0]


def test_short_runs_do_not_begin_to_hold_a_halo():
    assert reside((16, 16, 16)).least_steps > reside((96, 96, 96)).least_steps >= 2
    assert reside((32, 32)).least_steps > reside((64, 64)).least_steps
    # What it takes to begin, where a rim has to be copied.
    rimmed = reside((60, 60), boundary="periodic,fixed").least_steps
    assert rimmed > 100 > 20 > reside((60, 60)).least_steps


def test_short_runs_of_small_arrays_are_one_sweep():
    for steps in (2, 5, 10, 16):
        assert choose((32, 32), steps=steps).steps == steps
    # One more than a tile can have: another array is needed in any case.
    assert choose((128, 128), steps=17).steps < 16
    assert choose((512, 512), steps=16, boundary="fixed").steps == 1


def test_a_single_thread_waits_for_no_others():
    assert 1000 * choose((1000,), steps=1, terms=3).cycles < BARRIER


def test_sums_of_many_terms_take_fewer_steps():
    assert choose((4096, 4096), 3, terms=49).steps < choose((4096, 4096), 1, terms=5).steps


def test_no_more_steps_than_there_are():
    assert choose((4096, 4096), steps=3).steps <= 3
    assert choose((4096, 4096), steps=1).steps == 1


def test_threads_share_out_tiles():
    choice = choose((4096, 4096), threads=8)
    tiles = math.prod(-(-n // e) for n, e in zip((4096, 4096), choice.extents, strict=True))
    assert tiles >= 8
    assert choose((4096, 4096), steps=1, threads=8).extents[0] <= 512


def test_points_of_long_sums_are_worth_threads_sooner():
    short, long = (choose((100, 100), terms=terms, steps=1, threads=2) for terms in (5, 1000))
    assert short.extents[0] == 100 and long.extents[0] <= 50


def test_small_work_is_for_one_thread():
    assert worth_threads(1000, 8) == 1
    assert worth_threads(1 << 22, 8) == 8


def test_stores_go_past_caches_that_arrays_do_not_fit():
    assert past_caches((4096, 4096), 8, MACHINE)
    assert not past_caches((512, 512), 8, MACHINE)
    # Rows may begin anywhere, but are to have more whole lines than parts of lines.
    assert past_caches((4096, 4097), 8, MACHINE)
    assert past_caches((256, 256, 256), 4, MACHINE)
    assert not past_caches((500, 500, 200), 4, MACHINE)
    assert past_caches((1 << 24,), 4, MACHINE)
    # Three arrays may not fit where two do.
    most = int((MACHINE.last / 2 / 8) ** 0.5)
    assert not past_caches((most, most), 8, MACHINE)
    assert past_caches((most, most), 8, MACHINE, arrays=3)


def test_rows_are_read_one_by_one_where_arrays_do_not_fit_a_part_of_a_cache():
    most = round((0.4 * MACHINE.last / 2 / 8) ** (1 / 3))
    assert past_caches((most + 2,) * 3, 8, MACHINE, nontemporal=False)
    assert not past_caches((most - 2,) * 3, 8, MACHINE, nontemporal=False)
    assert not past_caches((most + 4,) * 3, 8, MACHINE)
    # Short rows are read one by one as well.
    assert past_caches((1 << 10, 1 << 10, 16), 8, MACHINE, nontemporal=False)


@pytest.mark.parametrize("data, multiply_adds", [(2.0, 7), (0.5, 27)])
def test_steps_are_skewed_where_that_is_more_than_a_little_faster(data, multiply_adds):
    """What takes longer shows in full, of the other a part: data or multiply-adds."""
    work = multiply_adds * 8 / MULTIPLY_ADDS
    cycles = max(work, data) + SHOWN * min(work, data)
    for part, is_faster in ((1.01, True), (0.99, False)):
        tiles = TileChoice(4, (9, 9, 9), part * cycles / WORTH_SKEWING)
        assert is_skewing_faster(tiles, data, multiply_adds, 8) == is_faster
