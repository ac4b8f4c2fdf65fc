# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The block of outputs that a CPU kernel sums up in registers."""

import itertools
from dataclasses import replace

import pytest

from twofour.codegen.cpu import register_tile
from twofour.codegen.cpu.direct_kernel import DirectKernel, Terms
from twofour.codegen.cpu.register_tile import FEW_OUTPUTS, MAX_MULTIPLY_ADDS, RegisterTile
from twofour.codegen.cpu.vector_unit import vector_unit
from twofour.kernels import built_in_kernels
from twofour.mlir import ir

MACHINES = ("avx512", "znver4", "avx2", "sse", "neon")
UNIT = vector_unit("avx2")


def box(radius: int, rank: int = 2):
    points = list(itertools.product(range(-radius, radius + 1), repeat=rank))
    return points, [1.0 + n for n in range(len(points))]


def choose_tile(inputs, unit, past_caches=False, reassociate=False, itemsize=8):
    kernel = DirectKernel("k", [Terms(*terms) for terms in inputs], reassociate=reassociate)
    return kernel.tile(unit, unit.bytes // itemsize, past_caches)


def tile_of(terms, machine, **options):
    tile = choose_tile([terms], vector_unit(machine), **options)
    return tile.rows, tile.vectors


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", built_in_kernels())
def test_tiles_fit(name, machine):
    kernel, unit = built_in_kernels()[name], vector_unit(machine)
    for reassociate in (False, True):
        terms = kernel.offsets, kernel.weights
        rows, vectors = tile_of(terms, machine, reassociate=reassociate)
        assert rows * vectors + vectors < unit.registers
        assert kernel.rank > 1 or rows == 1
        if not reassociate and rows * vectors > FEW_OUTPUTS:
            assert rows * vectors * len(kernel.weights) <= MAX_MULTIPLY_ADDS


def star(radius: int, rank: int):
    points = [(0,) * rank] + [
        tuple(sign * n if a == axis else 0 for a in range(rank))
        for axis in range(rank)
        for n in range(1, radius + 1)
        for sign in (-1, 1)
    ]
    return points, [1.0] * len(points)


@pytest.mark.parametrize("machine", MACHINES)
def test_rows_that_are_stored_past_the_caches_are_summed_up_alone(machine):
    for terms in (star(1, 2), star(3, 2), box(1)):
        tile = choose_tile([terms], vector_unit(machine), past_caches=True)
        assert tile.rows == 1 < choose_tile([terms], vector_unit(machine)).rows


@pytest.mark.parametrize("terms", [box(2), box(3), box(10), box(3, 3), box(60, 1)])
def test_long_sums_have_chains_enough(terms):
    rank = len(terms[0][0])
    for machine in MACHINES:
        tile, unit = choose_tile([terms], vector_unit(machine)), vector_unit(machine)
        # A register that a core works on by halves is two chains.
        chains = tile.rows * tile.vectors * (2 if unit.halved and not tile.vector_bytes else 1)
        assert (rank == 1 or tile.rows > 1) and chains >= (4 if rank == 1 else 8)


def test_weights_that_stay_leave_room_for_fewer_sums():
    # Nine weights and sixteen registers, or thirty-two.
    rows, vectors = tile_of(box(1), "avx2")
    assert rows > 1 and rows * vectors + vectors + 9 <= 16
    more = tile_of(box(1), "avx512")
    assert more[0] * more[1] > rows * vectors


def test_rows_are_summed_up_together_where_they_share_inputs():
    """Two rows of a star of three axes read 8 rows for 10; those of other shapes share a third."""
    for machine in MACHINES:
        if vector_unit(machine).halved:
            continue
        assert tile_of(star(1, 3), machine)[0] == tile_of(star(4, 3), machine)[0] == 1
        for terms in (star(1, 2), star(3, 2), box(1), box(1, 3)):
            assert tile_of(terms, machine)[0] > 1
        along = [(0, n) for n in range(8)], [1.0] * 8
        assert tile_of(along, machine)[0] == 1


def test_rows_of_a_diagonal_are_summed_up_alone():
    """They read the same rows, but no vector twice; those of a cross do, if they are two apart."""
    diagonal = [(n, n) for n in range(-4, 5)]
    cross = [(n, s * n) for n in range(-2, 3) for s in (-1, 1) if n or s > 0]
    rows = [tile_of((points, [1.0] * 9), "sapphirerapids")[0] for points in (diagonal, cross)]
    assert rows[0] == 1 < rows[1]


def test_long_sums_of_planes_that_are_added_first_are_fewer():
    """Eight of them take long to compile."""
    for machine in (*MACHINES, "sapphirerapids"):
        for name in ("yask_3plane_r3", "an5d_box3d2r"):
            kernel = built_in_kernels()[name]
            for reassociate in (False, True):
                terms = kernel.offsets, kernel.weights
                rows, vectors = tile_of(terms, machine, reassociate=reassociate)
                is_added_first = reassociate and name == "yask_3plane_r3"
                assert rows * vectors == (4 if is_added_first else 8)


def test_inputs_share_no_rows():
    """The same row of two inputs is two rows."""
    terms = star(1, 2)
    several = choose_tile([terms, ([(0, 0)], [1.0])] + [([(0, n)], [1.0]) for n in range(9)], UNIT)
    assert several.rows == 1 < choose_tile([terms], UNIT).rows


def test_inputs_count_together():
    one = choose_tile([box(1)], vector_unit("avx2"))
    many = choose_tile([box(1)] * 50, vector_unit("avx2"))
    assert many.rows * many.vectors <= FEW_OUTPUTS
    assert (one.rows, one.vectors) != (many.rows, many.vectors)


@pytest.mark.parametrize("machine", ["avx2", "avx512"])
@pytest.mark.parametrize("name", ["gauss7x7_binomial", "paper_box3d27p", "fem_q1_stiffness3d"])
def test_sums_that_rows_share_make_tiles_higher(name, machine):
    kernel = built_in_kernels()[name]
    terms = kernel.offsets, kernel.weights
    assert tile_of(terms, machine, reassociate=True)[0] == 4
    together = DirectKernel("k", [Terms(*terms)], reassociate=True).work(vector_unit(machine))
    alone = DirectKernel("k", [Terms(*terms)]).work(vector_unit(machine))
    assert alone == len(kernel.weights) and together < 0.7 * alone


def test_rows_that_share_sums_alone_are_summed_up_together():
    """Rows two apart: two rows of output share no input, four share sums of pairs of rows."""
    apart = [(row, column) for row in (-2, 0, 2) for column in range(-3, 4)], [0.1] * 21
    assert tile_of(apart, "avx2")[0] == 1 < tile_of(apart, "avx2", reassociate=True)[0]


def test_registers_that_a_core_halves_are_used_whole_where_instructions_are_short():
    """Loads that are not aligned take as long either way, with halves there are more of them."""
    unit = vector_unit("znver4")
    assert choose_tile([box(2)], unit).vector_bytes is None
    along = [(n,) for n in range(-4, 5)], [1.0 + n for n in range(9)]
    assert choose_tile([along], unit).vector_bytes == 32
    for machine in MACHINES[:1] + MACHINES[2:]:
        assert choose_tile([along], vector_unit(machine)).vector_bytes is None


def test_long_sums_of_a_core_that_fetches_enough_are_of_eight_rows():
    for terms in (star(3, 2), star(4, 2)):
        assert tile_of(terms, "znver4") == (8, 1)
        assert all(tile_of(terms, machine)[0] < 8 for machine in MACHINES if machine != "znver4")
    # Fewer than twelve points.
    assert tile_of(box(1), "znver4")[0] < 8 and tile_of(star(2, 2), "znver4")[0] < 8


def test_tiles_of_planes_are_narrow_where_a_core_halves_its_registers():
    """Rows of planes are short: what blocks of several vectors leave of them takes longer."""
    for terms in (star(1, 3), star(3, 3), star(8, 3), box(1, 3), box(2, 3)):
        assert tile_of(terms, "znver4")[1] == 1
    assert tile_of(star(1, 3), "znver4")[0] == 2
    across = [(0, 0, 0), (0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0)], [1.0, 2.0, 3.0, 4.0, 5.0]
    assert tile_of(across, "znver4") == (4, 1)
    along = [(0, 0, n) for n in range(4)], [1.0, 2.0, 3.0, 4.0]
    assert tile_of(along, "znver4") == (1, 1)
    assert choose_tile([along], vector_unit("znver4")).vector_bytes == 32
    assert tile_of(star(8, 3), "znver4")[0] == 4 and tile_of(box(1, 3), "znver4")[0] == 8
    # The model overrates them, where there are many weights; work is that of wide ones.
    assert DirectKernel("k", [Terms(*box(1, 3))]).work(vector_unit("znver4")) < 40
    # Not elsewhere, nor in two axes.
    assert tile_of(star(8, 3), "avx512")[1] > 1 and tile_of(star(1, 2), "znver4")[1] > 1
    assert tile_of(star(1, 2), "znver4")[0] == 4


def test_tiles_of_cores_that_start_six_instructions():
    def tile(terms):
        return tile_of(terms, "sapphirerapids", reassociate=True)

    # As high as it gets, but for the shortest sums.
    for terms in (box(1), star(2, 2), star(3, 2)):
        assert tile(terms) == (8, 1)
    assert tile(star(1, 2)) == (4, 2)
    along = [(n,) for n in range(3)], [1.0, 2.0, 3.0]
    assert tile(along) == (1, 4)


def test_rows_of_several_planes_are_summed_up_together():
    unit = vector_unit("sapphirerapids")
    for terms in (star(1, 3), star(8, 3), box(1, 3), star(1, 4)):
        assert choose_tile([terms], unit) == RegisterTile(2, 1, planes=4)
        assert choose_tile([terms], unit, past_caches=True) == RegisterTile(1, 1, planes=4)
    # What unrolls to too much is of one plane, or of one row.
    assert choose_tile([box(2, 3)], unit) == choose_tile([box(3, 3)], unit) == RegisterTile(8, 1)
    for machine in MACHINES:
        for past_caches in (False, True):
            assert choose_tile([star(1, 3)], vector_unit(machine), past_caches).planes == 1


@pytest.mark.parametrize(
    "terms, by_columns",
    [
        (box(2), True),
        (box(3), True),
        (box(4), True),
        (box(1), False),
        # In loops, row by row.
        (box(6), False),
        (star(3, 2), False),
        # All weights alike: sums of points, not points.
        ((box(2)[0], [1.0] * 25), False),
    ],
)
def test_boxes_of_weights_that_differ_are_summed_up_by_columns(terms, by_columns):
    unit = vector_unit("sapphirerapids")
    kernel = DirectKernel("k", [Terms(*terms)], reassociate=True)
    assert kernel.rows_of(unit)(2).by_columns == by_columns
    if by_columns:
        # Sixteen rows of 81 points would unroll to too much.
        rows = {25: 8, 49: 16, 81: 8}[len(terms[0])]
        assert kernel.tile(unit, 8) == RegisterTile(rows, 1)
        # Term by term, for the bits of GPUs.
        assert not replace(kernel, reassociate=False).rows_of(unit)(2).by_columns
        assert not kernel.rows_of(vector_unit("avx512"))(2).by_columns


def test_many_points_of_planes_are_summed_up_by_columns():
    unit = vector_unit("sapphirerapids")

    def tile(terms):
        kernel = DirectKernel("k", [Terms(*terms)], reassociate=True)
        assert kernel.rows_of(unit)(1).by_columns
        assert not kernel.rows_of(vector_unit("znver4"))(1).by_columns
        assert not replace(kernel, reassociate=False).rows_of(unit)(1).by_columns
        return kernel.tile(unit, 8)

    # The weights of a box would not stay in registers: more rows share them, of a star they do.
    assert tile(box(1, 3)) == RegisterTile(4, 1, planes=4)
    assert tile(box(2, 3)) == tile(box(3, 3)) == RegisterTile(8, 1)
    acoustic = built_in_kernels()["acoustic_iso3d_o8"]
    assert tile((acoustic.offsets, acoustic.weights)) == RegisterTile(2, 1, planes=4)
    for few_or_shared in (star(3, 3), (box(2, 3)[0], [1.0] * 125)):
        kernel = DirectKernel("k", [Terms(*few_or_shared)], reassociate=True)
        assert not kernel.rows_of(unit)(1).by_columns


def test_work_is_counted_for_cores_of_any_width():
    """About three cycles of a core of 64 bytes of multiply-adds each, for nine points."""
    kernel = DirectKernel("k", [Terms(*box(1))])
    narrow, wide = (kernel.work(vector_unit(m)) for m in ("znver4", "sapphirerapids"))
    assert 9 < narrow < 20 and 6 < wide < 12


def test_planes_past_the_caches_are_read_row_by_row():
    unit, alone = vector_unit("znver4"), RegisterTile(1, 1, 32)
    for terms in (star(1, 3), star(3, 3), star(4, 3)):
        assert choose_tile([terms], unit, past_caches=True) == alone
        assert choose_tile([terms], unit).rows > 1
    # Half registers would have too much to add.
    assert choose_tile([star(8, 3)], unit, past_caches=True) == RegisterTile(1, 2)
    # Boxes of weights that differ share most of what they read, and have much to add.
    assert choose_tile([box(1, 3)], unit, past_caches=True) == RegisterTile(4, 1)
    equal = box(1, 3)[0], [1.0] * 27
    assert choose_tile([equal], unit, past_caches=True, reassociate=True) == alone
    assert choose_tile([box(1, 3)], vector_unit("avx2"), past_caches=True).rows == 1


@pytest.mark.parametrize(
    ("machine", "element", "most"),
    [
        ("znver4", "f64", {1: 16, 2: 16, 3: 64}),
        ("znver4", "bf16", {1: 0, 2: 0, 3: 64}),
        ("avx2", "f32", {1: 16, 2: 16, 3: 16}),
        ("avx2", "f16", {1: 0, 2: 0, 3: 0}),
    ],
)
def test_kernels_that_wait_for_memory(machine, element, most):
    with ir.Context():
        kind = ir.Type.parse(element)
        for rank, terms in most.items():
            for count in (1, 16, 17, 64, 65):
                offsets = [(0,) * (rank - 1) + (n,) for n in range(count)]
                kernel = DirectKernel("k", [Terms(offsets, [1.0] * count)])
                found = kernel.waits_for_memory(kind, vector_unit(machine))
                assert found == (count <= terms), (rank, count)


def test_work_is_what_a_block_takes_where_the_model_has_a_scale():
    """Loads that are not aligned take longer than multiply-adds; elsewhere only these count."""
    offsets, weights = star(4, 3)
    kernel = DirectKernel("k", [Terms(offsets, [w + n for n, w in enumerate(weights)])])
    assert kernel.work(vector_unit("avx2")) == len(offsets)
    assert 1.2 * len(offsets) < kernel.work(vector_unit("znver4")) < 3 * len(offsets)


def test_vectors_along_the_only_axis_are_several_where_they_share_inputs():
    seven, two = (
        ([(n,) for n in range(count)], [1.0 + n for n in range(count)]) for count in (7, 2)
    )
    unit = vector_unit("znver4")
    # Four of f64 read 19 vectors of half a register for 28; those of f32, of eight elements, 28.
    together, apart = (choose_tile([seven], unit, itemsize=size) for size in (8, 4))
    assert (together.vectors, together.vector_bytes) == (4, 32)
    assert (apart.vectors, apart.vector_bytes) == (1, 32)
    # Short sums take as long to begin.
    assert choose_tile([two], unit, itemsize=4).vectors == 4


def test_loads_of_vectors_along_the_only_axis():
    """Seven neighbours, and two points that lie twice a vector apart; every input for itself."""
    inputs = [Terms([(n,) for n in range(7)], [1.0] * 7), Terms([(9,), (17,)], [1.0, 2.0])]
    work = register_tile._Work.of(DirectKernel("k", inputs).rows_of(UNIT)(1))
    assert [work.loads(vectors, 4) for vectors in (1, 2, 4)] == [7 + 2, 11 + 4, 19 + 6]
    assert work.loads(4, None) == 4 * 9


def test_vectors_of_rows_share_no_inputs():
    """Of rows the short loads and the long ones come mixed, however many vectors there are."""
    kernel = built_in_kernels()["motion_blur_diag9"]
    tile = choose_tile([(kernel.offsets, kernel.weights)], vector_unit("znver4"))
    assert (tile.rows, tile.vectors) == (4, 4)
