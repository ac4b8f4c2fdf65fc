# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bulk tensor copies against NumPy: boxes of one axis to three, at any coordinates, and faults."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from snippet import check_text_assembles
from twofour import sim
from twofour.errors import TwofourError
from twofour.sim.tensor_map import decode, encode
from twofour.tensor_map import BYTES, ITEMSIZES, TensorMap

DTYPES = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}
# Thread 0 loads a box; all threads copy it, 4096 bytes further on, which thread 0 stores.
KERNEL = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(
  .param .align 64 .b8 source[128], .param .align 64 .b8 target[128], {parameters})
{{
  .reg .pred %p<3>; .reg .b32 %r<10>; .reg .b64 %d<6>;
  .shared .align 128 .b8 memory[8256];
  {coordinates}
  mov.b64 %d0, source; cvta.param.u64 %d1, %d0;
  mov.b64 %d2, target; cvta.param.u64 %d3, %d2;
  mov.u32 %r0, memory; mov.u32 %r1, %tid.x; setp.ne.u32 %p0, %r1, 0;
  @%p0 bra MADE;
  mbarrier.init.shared.b64 [memory+8192], 1;
  fence.mbarrier_init.release.cluster;
MADE:
  bar.sync 0;
  @%p0 bra WAIT;
  mbarrier.arrive.expect_tx.shared.b64 _, [memory+8192], {size};
  cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [memory], [%d1, {{{at}}}], [memory+8192];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p1, [memory+8192], 0;
  @!%p1 bra WAIT;
  shl.b32 %r2, %r1, 2;
NEXT:
  setp.ge.u32 %p2, %r2, {size};
  @%p2 bra COPIED;
  add.u32 %r3, %r0, %r2;
  ld.shared.b32 %r4, [%r3];
  st.shared.b32 [%r3+4096], %r4;
  add.u32 %r2, %r2, 128;
  bra NEXT;
COPIED:
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p0 bra DONE;
  cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group
    [%d3, {{{at}}}], [memory+4096];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
DONE:
  ret;
}}
"""


def text_of(rank: int, size: int) -> str:
    """A kernel that copies boxes of `size` bytes."""
    places = [f"x{axis}" for axis in range(rank)]
    loads = [f"ld.param.u32 %r{5 + axis}, [{name}];" for axis, name in enumerate(places)]
    return KERNEL.format(
        parameters=", ".join(f".param .u32 {name}" for name in places),
        coordinates=" ".join(loads),
        at=", ".join(f"%r{5 + axis}" for axis in range(rank)),
        rank=rank,
        size=size,
    )


class Case:
    """A tensor within an array, both [outermost axis first], and a box."""

    def __init__(self, element: str, shape, box, pitch: int):
        self.gpu, self.element, self.box = sim.Gpu("sm_90"), element, box
        dtype = DTYPES[element]
        whole = (*shape[:-1], pitch)
        values = np.random.default_rng(1).integers(1, 1 << 15, whole).astype(dtype)
        self.source = self.gpu.memory.array(values)[..., : shape[-1]]
        self.target = self.gpu.memory.zeros(whole, dtype)[..., : shape[-1]]
        self.size = int(np.prod(box)) * ITEMSIZES[element]
        self.text = text_of(len(shape), self.size)

    def map_of(self, array) -> TensorMap:
        return TensorMap(
            array.__array_interface__["data"][0],
            self.element,
            array.shape[::-1],
            array.strides[-2::-1],
            self.box[::-1],
        )

    def run(self, at, text=None, maps=None):
        kernel = sim.parse(text or self.text, "k.ptx").kernels["k"]
        maps = maps or [encode(self.map_of(x)) for x in (self.source, self.target)]
        return self.gpu.launch(kernel, (1,), (32,), [*maps, *at[::-1]]).counters

    def expected(self, at) -> np.ndarray:
        """The target where the box at coordinates `at` was copied."""
        result = np.zeros(self.source.shape, self.source.dtype)
        axes = zip(at, self.box, self.source.shape, strict=True)
        region = tuple(slice(max(0, x), max(0, min(n, x + b))) for x, b, n in axes)
        result[region] = self.source[region]
        return result


CASES = [
    ("f16", (37,), (16,), 40),
    ("f64", (9,), (4,), 10),
    ("bf16", (5, 37), (4, 24), 48),
    ("f32", (6, 9), (3, 8), 12),
    ("f32", (3, 4, 11), (2, 3, 4), 12),
    ("f64", (2, 3, 5), (2, 2, 2), 6),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{len(case[1])}d")
def test_boxes_are_filled_with_zeros_and_cut_off(case):
    _, shape, box, _ = case
    for at in itertools.product(*[(-b // 2, 0, 1, n - 1) for n, b in zip(shape, box, strict=True)]):
        boxes = Case(*case)
        boxes.run(at)
        np.testing.assert_array_equal(boxes.target, boxes.expected(at), str(at))


@pytest.mark.parametrize(
    ("element", "row", "end"), [("f16", 37, 40), ("f32", 9, 12), ("f64", 9, 10), ("f64", 8, 8)]
)
def test_the_unit_in_which_a_row_ends_is_written_whole(element, row, end):
    pitch = 48
    boxes = Case(element, (3, row), (2, 8), pitch)
    beyond = np.lib.stride_tricks.as_strided(boxes.target, (3, pitch), boxes.target.strides)
    beyond[...] = 7
    boxes.run((1, row // 8 * 8))
    # What lies beyond the tensor was read as zeros.
    assert (beyond[1:, row:end] == 0).all() and (beyond[1:, end:] == 7).all()
    assert (beyond[0] == 7).all()


def test_counters():
    boxes = Case("f16", (5, 37), (4, 24), 48)
    inside, outside = boxes.run((0, 8)), boxes.run((2, 32))
    # Rows of 48 bytes, the first 16 of a sector before them; three rows of 10 bytes are left.
    assert (inside.global_loads.sectors, inside.global_stores.sectors) == (4 * 2, 4 * 2)
    assert (outside.global_loads.sectors, outside.global_stores.sectors) == (3, 3)
    # 192 bytes are two wavefronts, however much of the box exists.
    words = -(-192 // 128)
    assert inside.shared_stores.wavefronts == outside.shared_stores.wavefronts == 2 * words
    assert inside.shared_loads.wavefronts == 2 * words
    assert inside.classes["asynchronous"] == 4


WAIT = "  mbarrier.try_wait.parity.shared.b64 %p1, [memory+8192], 0;\n  @!%p1 bra WAIT;\n"
FAULTS = {
    "wait": (WAIT, "", "missing cp.async wait"),
    "fewer": ("[memory+8192], {size};", "[memory+8192], {less};", "deadlock"),
    "more": ("[memory+8192], {size};", "[memory+8192], {more};", "deadlock"),
    "fence": ("fence.proxy.async.shared::cta;", "", "missing proxy fence"),
    "init": ("fence.mbarrier_init.release.cluster;", "", "missing proxy fence"),
    "read": ("cp.async.bulk.wait_group.read 0;", "", "missing bulk wait"),
    "late": ("cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group.read 1;", "missing"),
    "overwritten": (
        "cp.async.bulk.wait_group.read 0;",
        "st.shared.b32 [memory+4096], %r1; cp.async.bulk.wait_group.read 0;",
        "missing bulk wait",
    ),
    "misaligned": ("[memory], [%d1", "[memory+64], [%d1", "misaligned"),
    "race": ("  bar.sync 0;\n  @%p0 bra DONE;", "  @%p0 bra DONE;", "race"),
    "rank": (".2d.shared", ".1d.shared", "expected 1 coordinates, got 2"),
    "no map": ("[%d1, ", "[%d0, ", "expected a tensor map in a parameter"),
    "beside": ("[%d1, ", "[%d1+16, ", "expected a tensor map in a parameter"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_mistakes_are_found(name):
    boxes = Case("f32", (6, 9), (3, 8), 12)
    old, new, message = FAULTS[name]
    size = boxes.size
    old, new = (x.replace("{size}", str(size)) for x in (old, new))
    new = new.replace("{less}", str(size - 16)).replace("{more}", str(size + 16))
    text = boxes.text.replace(old, new)
    assert text != boxes.text
    with pytest.raises(TwofourError, match=re.escape(message)):
        boxes.run((0, 0), text)


@pytest.mark.parametrize(
    "data", [bytes(BYTES), encode(TensorMap(0, "f32", (8,), (), (4,)))], ids=["none", "of one axis"]
)
def test_other_maps_are_refused(data):
    boxes = Case("f32", (6, 9), (3, 8), 12)
    with pytest.raises(sim.Fault, match="undefined operation: expected a tensor map"):
        boxes.run((0, 0), maps=[data, data])


GOOD = TensorMap(1 << 40, "f16", (2**32, 7, 5), (2**33, 2**39), (256, 3, 2))


def test_maps_survive_their_encoding():
    for tensor in (GOOD, replace(GOOD, element="f64", extents=(3,), strides=(), box=(2,))):
        data = encode(tensor)
        assert len(data) == BYTES and decode(data) == tensor


@pytest.mark.parametrize(
    "change, message",
    [
        ({"address": 8}, "a first element at a multiple of 16 bytes, got 0x8"),
        ({"element": "i8"}, "elements of f16, bf16, f32, f64, got i8"),
        ({"extents": (2, 2, 2, 2, 2, 2)}, "1 to 5 axes, got 6"),
        ({"extents": (2**32 + 1, 7, 5)}, "extents from 1 to 2^32"),
        ({"extents": (0, 7, 5)}, "extents from 1 to 2^32"),
        ({"strides": (64,)}, "2 strides"),
        ({"strides": (24, 48)}, "strides below 2^40 that are multiples of 16 bytes, got (24, 48)"),
        ({"strides": (16, 2**40)}, "strides below 2^40"),
        ({"box": (264, 3, 2)}, "boxes up to 256"),
        ({"box": (256, 3)}, "3 extents of a box"),
        ({"box": (4, 3, 2)}, "rows of a box of a multiple of 16 bytes, got 8"),
    ],
)
def test_limits_of_maps(change, message):
    with pytest.raises(TwofourError, match=re.escape(f"tensor map: expected {message}")):
        replace(GOOD, **change)


def test_kernels_assemble(tmp_path):
    for rank in (1, 2, 3):
        check_text_assembles(text_of(rank, 64), "sm_90", tmp_path)
