# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Boundary kernels in the simulator: the bits that refreshing axis by axis leaves, nothing else."""

import copy
import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofour
from twofour.analysis import run_passes
from twofour.codegen.gpu.boundary_kernel import THREADS
from twofour.context import make_context
from twofour.dialects.stencil.transforms.add_boundary_kernels import AddBoundaryKernelsPass
from twofour.mlir import ir
from twofour.runtime import Bundle, element_type, from_bundle, parse_boundary
from twofour.runtime.boundary import HaloRefresh
from twofour.runtime.box import Box
from twofour.runtime.devices.device import DeviceKernel
from twofour.runtime.devices.halo_kernels import HaloKernels, KernelRefresh, bind_cells
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.dtypes import field_element_type
from twofour.runtime.halos import HaloSlices
from twofour.runtime.manifest import read_kernels
from twofour.sim import parse
from twofour.targets.gpu.entries import kernel_entries
from twofour.targets.gpu.lowering import to_llvm_ir, to_nvvm
from twofour.targets.gpu.ptx import to_ptx

BOUNDARIES = ("fixed", "zero", "constant(-2.5)", "periodic", "reflect", "nearest")
ELEMENTS = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "index")
SIZES = (8, 16, 32, 64)


@cache
def compiled(rank):
    """The entries and the PTX of the boundary kernels of a rank."""
    context = make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse("module {}")
        run_passes(module, [AddBoundaryKernelsPass("sm_90", rank, SIZES)], "test")
        specs = read_kernels({"kernels": kernel_entries(module)})
        to_nvvm(module, "test")
        ptx = to_ptx(to_llvm_ir(module, "test"), "sm_90")
    return specs, parse(ptx, name="test.ptx").kernels


def halos_on(device, rank):
    specs, code = compiled(rank)
    return HaloKernels(DeviceKernel(device, spec, code[name]) for name, spec in specs.items())


def random_bits(shape, element, seed):
    """Any patterns, those of NaNs too."""
    rng = np.random.default_rng(seed)
    if element.name == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    raw = rng.integers(0, 256, (*shape, element.itemsize), np.uint8)
    return raw.view(element.storage).reshape(shape)


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def loose(device, shape, element, seed):
    """A buffer of a device, and a view of `shape` in it with cells around on every side."""
    buffer = device.zeros([n + 3 for n in shape], element.storage)
    buffer[...] = random_bits(buffer.shape, element, seed)
    return buffer, buffer[tuple(slice(2, 2 + n) for n in shape)]


def check_refresh(element, shape, interior, boundary, seed=0):
    element, entries = field_element_type(element), parse_boundary(boundary, len(shape))
    device = SimulatedDevice("sm_90")
    buffer, view = loose(device, shape, element, seed)
    expected = np.array(buffer)
    inner = expected[tuple(slice(2, 2 + n) for n in shape)]
    HaloRefresh(shape, interior, entries, element)(inner)
    refresh = halos_on(device, len(shape)).refresh(shape, interior, entries, element)
    assert isinstance(refresh, KernelRefresh)
    refresh.bind(view)()
    np.testing.assert_array_equal(bits(buffer), bits(expected))
    return device


def box(sizes):
    """The shape and interior of (below, extent, above) an axis."""
    lower = tuple(below for below, _, _ in sizes)
    upper = tuple(below + extent for below, extent, _ in sizes)
    return tuple(map(sum, sizes)), (lower, upper)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_every_kind_and_element(element, boundary):
    boundary = boundary.replace("-2.5", "1") if element.startswith("i") else boundary
    check_refresh(element, *box([(2, 5, 3)]), boundary)
    check_refresh(element, *box([(1, 4, 2), (3, 7, 1)]), boundary)


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, repeat=2)))
def test_two_axes(boundary):
    # A halo deeper than the interior, one side without, and several blocks.
    check_refresh("f16", *box([(5, 2, 7), (4, 3, 11)]), boundary)
    check_refresh("f16", *box([(2, 1, 0), (0, 1, 3)]), boundary)
    device = check_refresh("f16", *box([(2, 40, 3), (3, 67, 5)]), boundary)
    profile = device.profiles["refresh_halo_16_2d"] if device.profiles else None
    cells = 45 * 75
    for extent, inside, mode in ((45, 40, boundary[0]), (75, 67, boundary[1])):
        cells = cells if mode == "fixed" else cells // extent * inside
    written = 45 * 75 - cells
    assert (profile.launches, profile.points) == (1, written) if written else profile is None
    assert written == 0 or written > THREADS


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, repeat=3)))
def test_three_axes(boundary):
    check_refresh("f32", *box([(1, 2, 3), (2, 3, 1), (4, 3, 2)]), boundary)


@st.composite
def halos(draw):
    rank = draw(st.integers(1, 4))
    most = {1: 300, 2: 40, 3: 9, 4: 4}[rank]
    side, extent = st.integers(0, most // 2 + 1), st.integers(1, most)
    sizes = [(draw(side), draw(extent), draw(side)) for _ in range(rank)]
    boundary = [draw(st.sampled_from(BOUNDARIES)) for _ in range(rank)]
    return draw(st.sampled_from(ELEMENTS[:4])), *box(sizes), boundary, draw(st.integers(0, 99))


@given(halos())
@settings(max_examples=150, deadline=None)
def test_random_halos(case):
    check_refresh(*case)


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, repeat=2)))
def test_no_thread_reads_what_another_one_writes(boundary):
    """With a source of its own, whatever is in the cells to be written makes no difference."""
    element, entries = element_type("f32"), parse_boundary(boundary, 2)
    shape, interior = box([(3, 4, 5), (6, 5, 2)])
    device = SimulatedDevice("sm_90")
    refresh = halos_on(device, 2).refresh(shape, interior, entries, element)
    written = np.zeros(shape, np.bool_)
    for axis, entry in enumerate(entries):
        if entry.mode != "fixed":
            at = np.arange(shape[axis])
            outside = (at < interior[0][axis]) | (at >= interior[1][axis])
            written |= np.moveaxis(outside[:, None], 0, axis)
    expected = random_bits(shape, element, 1)
    source, target = device.array(expected), device.array(expected)
    source[written] = np.nan
    specs, code = compiled(2)
    kernel = DeviceKernel(device, specs["refresh_halo_32_2d"], code["refresh_halo_32_2d"])
    bind_cells(kernel, refresh.axes, source, target)()
    HaloRefresh(shape, interior, entries, element)(expected)
    np.testing.assert_array_equal(bits(target), bits(expected))


@pytest.mark.parametrize("sizes", [[(2, 5, 3)], [(2, 9, 1), (0, 4, 3)], [(1, 2, 1)] * 3])
@pytest.mark.parametrize("element", ["i8", "f16", "f64"])
@pytest.mark.parametrize("on_all_axes", [True, False])
def test_halos_that_are_taken_over(sizes, element, on_all_axes):
    """As a whole, or where they are outside on the last axis only."""
    element = field_element_type(element)
    shape, interior = box(sizes)
    cells = Box.whole(shape)
    if not on_all_axes:
        cells = Box((*interior[0][:-1], 0), (*interior[1][:-1], shape[-1]))
    device = SimulatedDevice("sm_90")
    source, from_view = loose(device, shape, element, 1)
    target, to_view = loose(device, shape, element, 2)
    before, expected = np.array(source), np.array(target)
    views = [array[tuple(slice(2, 2 + n) for n in shape)] for array in (before, expected)]
    HaloSlices().copy(cells, interior, element).bind(*views)()
    halos_on(device, len(shape)).copy(cells, interior, element).bind(from_view, to_view)()
    np.testing.assert_array_equal(bits(source), bits(before))
    np.testing.assert_array_equal(bits(target), bits(expected))


def test_a_step_refreshes_by_one_launch():
    weights = {(0, 0): 0.5, (0, 2): 0.25, (-1, 0): 0.25}
    step = twofour.stencil(weights, boundary="periodic,zero", dtype="f32", target="sim:sm_90")
    step(np.zeros((9, 70), np.float32), steps=3)
    assert step.device.profiles["refresh_halo_32_2d"].launches == 3


PROGRAM = """
!field = !stencil.field<[-2,12]x[-1,10]xELEMENT>
!temp = !stencil.temp<?x?xELEMENT>
func.func @f(%u: !field, %v: !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[-2, 1] : !temp
    %c = stencil.access %a[0, 0] : !temp
    %s = arith.OP %l, %c : ELEMENT
    stencil.return %s : ELEMENT
  }
  stencil.store %r to %v(<[0, 0], [12, 9]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("element, op", [("f64", "mulf"), ("i32", "addi"), ("i8", "addi")])
@pytest.mark.parametrize("boundary", ["periodic", "reflect,fixed", "constant(3),nearest", "fixed"])
def test_a_program_of_fields(tmp_path, element, op, boundary):
    """The result's halo comes from the field whose place it takes, and is refreshed at the end."""
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM.replace("ELEMENT", element).replace("OP", op))
    entries, kind = parse_boundary(boundary, 2), field_element_type(element)
    now = np.random.default_rng(0).integers(-3, 4, (14, 11)).astype(kind.storage)
    u = now.copy()
    program = twofour.compile(str(path), target="sim:sm_90", boundary=boundary)
    result = program(u, steps=3)
    refresh = HaloRefresh(u.shape, ((2, 1), (14, 10)), entries, kind)
    for _ in range(3):
        refresh(now)
        new = now.copy()
        left, centre = now[:-2, 2:], now[2:, 1:-1]
        new[2:, 1:-1] = left * centre if op == "mulf" else left + centre
        now = new
    refresh(now)
    np.testing.assert_array_equal(bits(result), bits(now))
    profiles = program.device.profiles
    name = f"refresh_halo_{8 * kind.itemsize}_2d"
    launches = profiles[name].launches if name in profiles else 0
    # The halo of the field that is only stored is that of the first input at first.
    assert launches == 1 + (0 if boundary == "fixed" else 3 + 1)


def with_and_without(bundle, *inputs, **options):
    """Results of a bundle with its boundary kernels, and of one that names none; the device."""
    manifest = copy.deepcopy(bundle.manifest)
    assert manifest["program"].pop("boundary_kernels")
    manifest["program"]["boundary_kernels"] = []
    device = SimulatedDevice("sm_90")
    programs = (from_bundle(bundle, device), from_bundle(Bundle(manifest, bundle.ptx), "sim"))
    return *(program(*inputs, **options) for program in programs), device


@pytest.mark.parametrize(
    "boundary, launches",
    [("fixed", 1 + 1), ("fixed,periodic", 1 + 1 + 5 + 1), ("reflect", 1 + 5 + 1)],
)
def test_three_time_levels(boundary, launches):
    """The halo of the newest field is refreshed once, and that of the oldest one is not read.

    The array of the oldest one takes over a halo once, that of the new one at first.
    """
    bundle = twofour.compile("docs/examples/wave2d.mlir", target="sim:sm_90").bundle
    shapes = [field.shape for field in bundle.program.fields if field.loaded]
    rng, dtype = np.random.default_rng(0), bundle.program.fields[0].element.storage
    fields = [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]
    got, expected, device = with_and_without(bundle, *fields, steps=5, boundary=boundary)
    np.testing.assert_array_equal(bits(got), bits(expected))
    (name,) = bundle.program.boundary_kernels
    if boundary == "fixed":
        kept, now = got.copy(), fields[1].copy()
        kept[1:-1, 1:-1] = now[1:-1, 1:-1] = 0
        np.testing.assert_array_equal(kept, now)
    assert device.profiles[name].launches == launches


@pytest.mark.parametrize("fuse_steps", [1, 3])
@pytest.mark.parametrize("boundary", ["periodic", "reflect,zero", "nearest,fixed", "fixed"])
def test_fused_steps(fuse_steps, boundary):
    weights = {(0, 0): 0.5, (0, 2): 0.25, (-1, 0): 0.25}
    step = twofour.stencil(weights, dtype="f32", target="sim:sm_90", fuse_steps=fuse_steps)
    u = np.random.default_rng(0).uniform(-1, 1, (17, 45)).astype(np.float32)
    got, expected, device = with_and_without(step.bundle, u, 7, boundary=boundary)
    np.testing.assert_array_equal(bits(got), bits(expected))
    launches = {name: profile.launches for name, profile in device.profiles.items()}
    refreshes = launches.pop("refresh_halo_32_2d", 0)
    if boundary == "fixed":
        # The rim is copied to the second buffer.
        assert refreshes == 1
    elif boundary == "periodic":
        # One before each sweep: two of three steps and one of a single step.
        assert refreshes == sum(launches.values()) == (7 if fuse_steps == 1 else 3)
