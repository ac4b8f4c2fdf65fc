# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bundles on the simulated device: whole programs, their profile, and what does not fit."""

import copy

import numpy as np
import pytest

import fake_arrays
from ptx_cases import HEADER, THREADS, kernel_entry, linear_bundle, manifest
from runtime_reference import reference
from twofour.cli.profile import profile_text
from twofour.errors import TwofourError
from twofour.runtime import (
    Bundle,
    bf16_to_float32,
    float32_to_bf16,
    from_bundle,
    load,
    parse_boundary,
)
from twofour.runtime.devices.simulated import SimulatedDevice

ASYMMETRIC_2D = {(-2, 1): 0.5, (0, 0): 0.25, (1, 0): -0.25, (0, 3): 0.125}
STAR_1D = {(-1,): 0.25, (0,): 0.5, (1,): 0.25}
BOUNDARIES = ("fixed", "zero", "constant(2.5)", "periodic", "reflect", "nearest")


def integers(shape, seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float64)


@pytest.mark.parametrize("fused", [None, 2, 3])
@pytest.mark.parametrize("element", ["f64", "f32"])
def test_linear_programs(element, fused):
    program = from_bundle(linear_bundle(ASYMMETRIC_2D, element, fused), "sim")
    for boundary in (*BOUNDARIES, "fixed,periodic", "reflect,fixed"):
        for shape in ((1, 1), (7, 5), (19, 43)):
            u = integers(shape).astype(program.element_type.storage)
            result = program(u, 4, boundary=boundary)
            expected = reference(u, ASYMMETRIC_2D, parse_boundary(boundary, 2), 4)
            np.testing.assert_array_equal(result, expected)
            assert result.dtype == u.dtype
    # Every call gives back what it took.
    assert not list(program.device.gpu.memory)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_types_of_16_bits(element):
    program = from_bundle(linear_bundle(STAR_1D, element), "sim:sm_90")
    values = integers(40)
    stored = values.astype(np.float16)
    if element == "bf16":
        stored = float32_to_bf16(values.astype(np.float32))
    result = program(stored, boundary="periodic")
    expected = reference(values, STAR_1D, parse_boundary("periodic", 1), 1)
    numbers = bf16_to_float32(result) if element == "bf16" else result
    np.testing.assert_array_equal(numbers, expected)


def field(position, shape, loaded, stored, interior):
    return {
        "position": position,
        "element": "f64",
        "shape": list(shape),
        "loaded": loaded,
        "stored": stored,
        "interior": interior and [list(corner) for corner in interior],
    }


def test_the_field_of_a_file_holds_its_halo():
    interior = ((3, 1), (18, 30))
    fields = [
        field(0, (20, 34), True, False, interior),
        field(1, (20, 34), False, True, interior),
    ]
    program = from_bundle(linear_bundle(ASYMMETRIC_2D, fused=2, fields=fields), "sim")
    u = integers((20, 34))
    for boundary in BOUNDARIES:
        result = program(u, steps=3, boundary=boundary)
        entries = parse_boundary(boundary, 2)
        np.testing.assert_array_equal(result, reference(u, ASYMMETRIC_2D, entries, 3, interior))
    with pytest.raises(TwofourError, match=r"input 0: expected an array of shape \(20, 34\)"):
        program(integers((20, 33)))
    with pytest.raises(TwofourError, match="expected 1 input field, got 2"):
        program(u, u)


# next = f * (left + right of now) - old, one thread a point.
LEAPFROG = (
    HEADER.format(target="sm_80")
    + """.visible .entry leapfrog(
  .param .u64 o0, .param .u64 o1, .param .u64 o2, .param .u64 o3, .param .u64 o4,
  .param .u64 u0, .param .u64 u1, .param .u64 u2, .param .u64 u3, .param .u64 u4,
  .param .f64 factor,
  .param .u64 n0, .param .u64 n1, .param .u64 n2, .param .u64 n3, .param .u64 n4
)
{
  .reg .b64 %x, %o, %u, %n, %size;
  .reg .b32 %r, %t;
  .reg .pred %out;
  .reg .f64 %f, %a, %b, %c;
  mov.u32 %r, %ctaid.x;
  mov.u32 %t, %tid.x;
  mad.lo.u32 %r, %r, 32, %t;
  cvt.u64.u32 %x, %r;
  ld.param.u64 %size, [n3];
  setp.ge.u64 %out, %x, %size;
  @%out bra DONE;
  ld.param.u64 %o, [o1];
  ld.param.u64 %u, [u1];
  ld.param.u64 %n, [n1];
  ld.param.f64 %f, [factor];
  mad.lo.u64 %o, %x, 8, %o;
  mad.lo.u64 %u, %x, 8, %u;
  mad.lo.u64 %n, %x, 8, %n;
  ld.global.f64 %a, [%u];
  ld.global.f64 %b, [%u+16];
  ld.global.f64 %c, [%o];
  add.f64 %a, %a, %b;
  mul.f64 %a, %a, %f;
  sub.f64 %a, %a, %c;
  st.global.f64 [%n], %a;
DONE:
  ret;
}
"""
)


def leapfrog_bundle(cells):
    """Three time levels that rotate, of `cells` points and one halo cell at each end."""
    shape, inside = (cells + 2,), ((1,), (cells + 1,))
    program = {
        "kind": "fields",
        "name": "leapfrog",
        "fields": [
            field(0, shape, True, False, inside),
            field(2, shape, True, False, inside),
            field(3, shape, False, True, inside),
        ],
        "rotation": [2, 1, 3, 0],
        "scalars": ["f64"],
        "steps": [
            {
                "kind": "launch",
                "kernel": "leapfrog",
                "inputs": [
                    {"buffer": 0, "slices": [[1, cells + 1]]},
                    {"buffer": 2, "slices": None},
                ],
                "scalars": [1],
                "outputs": [{"buffer": 3, "slices": [[1, cells + 1]]}],
            }
        ],
        "workspaces": [],
        "time_loop": False,
        "boundary_kernels": [],
    }
    kernels = {"leapfrog": kernel_entry(1, 8, inputs=2, scalars=["f64"])}
    return Bundle(manifest("f64", ["periodic"], kernels, program), LEAPFROG)


def test_a_program_of_several_fields(monkeypatch):
    torch = fake_arrays.install(monkeypatch, "torch")
    cells = THREADS + 5
    program = from_bundle(leapfrog_bundle(cells), "sim")
    old, now = integers(cells + 2, 1), integers(cells + 2, 2)
    a, b = old[1:-1], now[1:-1]
    for _ in range(5):
        a, b = b, 0.5 * (np.roll(b, 1) + np.roll(b, -1)) - a
    expected = np.concatenate([b[-1:], b, b[:1]])
    np.testing.assert_array_equal(program(old, now, steps=5, scalars=[0.5]), expected)
    result = program(torch.Tensor(old), torch.Tensor(now), steps=5, scalars=["0.5"])
    assert type(result) is torch.Tensor
    np.testing.assert_array_equal(result.values, expected)
    with pytest.raises(TwofourError, match="expected 1 scalar argument, got 0"):
        program(old, now)
    with pytest.raises(TwofourError, match="expected 2 input fields, got 1"):
        program(old, scalars=[0.5])
    with pytest.raises(TwofourError, match="input 1: expected f64"):
        program(old, now.astype(np.float32), scalars=[0.5])


def test_the_boundary_of_the_bundle_is_used():
    bundle = linear_bundle(STAR_1D).with_boundary(parse_boundary("constant(2.5)", 1))
    u = integers(9)
    expected = reference(u, STAR_1D, parse_boundary("constant(2.5)", 1), 2)
    np.testing.assert_array_equal(from_bundle(bundle, "sim")(u, 2), expected)


def test_the_profile_adds_launches_up():
    program = from_bundle(linear_bundle(STAR_1D), "sim")
    program(np.zeros(64), 3, boundary="zero")
    profile = program.device.profiles["single"]
    assert profile.launches == 3 and profile.points == 3 * 64
    # 2 warps write 8 sectors each; they read one sector more for each neighbour.
    assert profile.counters.global_store_bytes == 3 * 64 * 8
    text = profile_text(program.device, program.bundle)
    assert "single: 3 launches, 192 output points" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["global", "store", "bytes", "1536", "8.0000"] in rows
    assert "st.global.f64 [%p1], %sum;" in text


@pytest.mark.parametrize(
    "target, device, message",
    [
        ("sm_90", "sim:sm_80", "compute capability 9.0 or higher for sm_90, got 8.0"),
        ("sm_80", "sim:sm_10", "expected a chip of"),
        ("sm_80", "sim:x", "expected a chip of"),
        ("sm_80", 5, "expected a device cuda, cuda:N, sim or sim:sm_XX, got 5"),
    ],
)
def test_chips_that_do_not_fit(tmp_path, target, device, message):
    linear_bundle(STAR_1D, target=target).save(tmp_path / "x.tfb")
    with pytest.raises(TwofourError, match=message):
        load(tmp_path / "x.tfb", device)


def test_ptx_without_the_kernel_of_the_manifest(tmp_path):
    bundle = linear_bundle(STAR_1D)
    Bundle(bundle.manifest, bundle.ptx.replace("single", "other")).save(tmp_path / "x.tfb")
    with pytest.raises(TwofourError, match="expected PTX with an entry single, got none"):
        load(tmp_path / "x.tfb", "sim")


def test_ptx_with_an_instruction_that_is_not_known():
    bundle = linear_bundle(STAR_1D)
    ptx = bundle.ptx.replace("ret;", "frob.sync;\n ret;", 1)
    program = from_bundle(Bundle(bundle.manifest, ptx), "sim")
    line = ptx[: ptx.index("frob")].count("\n") + 1
    with pytest.raises(TwofourError, match=rf"ptx:{line}:\d+: error: unsupported instruction frob"):
        program(integers(40))
    assert not list(program.device.gpu.memory)


def test_views_that_break_the_alignment_are_a_mistake_of_the_runtime():
    device = SimulatedDevice("sm_80")
    kernel = device.load(linear_bundle(STAR_1D, alignment=32))["single"]
    buffer = device.zeros(40, np.float64)
    bound = kernel.aligned_for(1).bind([buffer[3:13]], [buffer[20:28]])
    bound.run(0, 8)
    with pytest.raises(ValueError, match="expected rows that begin at multiples of 32 bytes"):
        kernel.aligned_for(1).bind([buffer[4:14]], [buffer[20:28]])
    with pytest.raises(ValueError, match="expected an inner stride of 1, got 2"):
        kernel.aligned_for(1).bind([buffer[3:23:2]], [buffer[20:28]])
    with pytest.raises(ValueError, match="expected 1 inputs, 0 numbers and 1 outputs, got 2"):
        kernel.bind([buffer, buffer], [buffer])


@pytest.mark.parametrize("loops", [False, True])
def test_calls_with_loops_are_not_recorded_as_a_whole(monkeypatch, loops):
    """Their loops are recorded by themselves, and recordings hold no others."""
    recorded = []
    monkeypatch.setattr(SimulatedDevice, "record", lambda self, calls: recorded.append(calls))
    cells = 5
    old, now = integers(cells + 2, 1), integers(cells + 2, 2)
    bundle = leapfrog_bundle(cells).with_boundary(parse_boundary("fixed", 1))
    expected = from_bundle(bundle, "sim")(old, now, steps=100, scalars=[0.5])
    assert len(recorded) == 1
    recorded.clear()
    changed = copy.deepcopy(bundle.manifest)
    program = changed["program"]
    if loops:
        (launch,) = program["steps"]
        bounds = {"lower": 0, "upper": 1, "step": 1}
        program["steps"] = [{"kind": "loop", "index": 4, **bounds, "carried": [], "body": [launch]}]
    got = from_bundle(Bundle(changed, bundle.ptx), "sim")(old, now, steps=100, scalars=[0.5])
    np.testing.assert_array_equal(got, expected)
    assert len(recorded) == (not loops)
