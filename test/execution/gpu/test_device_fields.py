# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the fields of programs lie on a device: inputs that stay where they are, rows on lines."""

import numpy as np
import pytest

import twofour
from field_programs import CHAIN, TEXTS
from twofour.bench.plane_programs import FDTD, GRAY_SCOTT, MEDIUM, WAVE
from twofour.runtime.devices.field_stepping import MANY_STEPS
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.fields.refills import Refill
from twofour.runtime.programs import from_bundle

EXAMPLES = (WAVE, MEDIUM, GRAY_SCOTT, FDTD)
EDGE = 61


class KeepingDevice(SimulatedDevice):
    """Gives its own buffers away, as GPUs do."""

    def result(self, buffer):
        return buffer


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """By name: a program for the CPU, by boundary, and its bundle for a GPU."""
    found = {}
    for example in EXAMPLES:
        path = tmp_path_factory.mktemp(example.name) / "program.mlir"
        path.write_text(example.mlir(EDGE).replace("f64", "f32"))
        found[example.name] = (
            {name: twofour.compile(path, boundary=name) for name in ("fixed", "periodic")},
            twofour.compile(path, target="sim:sm_90").bundle,
        )
    return found


def inputs_of(example):
    draws = np.random.default_rng(3)
    shape = (EDGE + 2 * example.halo,) * example.rank
    return [draws.random(shape, np.float32) for _ in example.loaded]


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize("steps", [0, 1, 2, MANY_STEPS + 1])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
@pytest.mark.parametrize("resume", [False, True])
def test_fields_on_the_device_are_those_of_the_cpu(programs, example, steps, boundary, resume):
    on_cpu, bundle = programs[example.name]
    device = KeepingDevice("sm_90")
    program = from_bundle(bundle, device)
    inputs = [device.array(array) for array in inputs_of(example)]
    before = [array.copy() for array in inputs]
    results = as_tuple(program(*inputs, steps=steps, boundary=boundary, resume=resume))
    on_cpu = on_cpu[boundary](*before, steps=steps, resume=resume)
    for got, expected in zip(results, as_tuple(on_cpu), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6)
        is_input = resume and any(got is array for array in inputs)
        assert is_input or not any(np.may_share_memory(got, array) for array in inputs)
        assert got.flags.c_contiguous
    for array, values in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(array, values)


def test_values_that_others_take_over_from_inside(tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text(CHAIN)
    device = KeepingDevice("sm_90")
    on_device = from_bundle(twofour.compile(path, target="sim:sm_90").bundle, device)
    on_cpu, values = twofour.compile(path), np.random.default_rng(4).random((16, 34))
    for steps in (1, 2, 3):
        results = on_device(device.array(values), steps=steps)
        for got, expected in zip(results, on_cpu(values, steps=steps), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_levels_that_calls_store_as_a_whole_take_over_nothing(programs):
    program = from_bundle(programs[WAVE.name][1], SimulatedDevice("sm_90"))
    assert program.stepper("fixed").halos.refills.at(100) == Refill()


def copies_of(programs, example, steps, monkeypatch, held=()):
    """How many arrays a run copies as a whole, with these inputs in the device's memory."""
    device, copied = SimulatedDevice("sm_90"), []
    program = from_bundle(programs[example.name][1], device)
    inputs = inputs_of(example)
    for number in held:
        inputs[number] = device.array(inputs[number])
    make = device.array
    monkeypatch.setattr(device, "array", lambda values: (copied.append(1), make(values))[1])
    program(*inputs, steps=steps)
    return len(copied)


def test_inputs_that_no_call_writes_to_are_not_copied(programs, monkeypatch):
    # Of the three inputs the speed is never written to; the others are after a call or two.
    assert copies_of(programs, MEDIUM, 5, monkeypatch) == 3
    assert copies_of(programs, MEDIUM, 5, monkeypatch, held=(0, 1, 2)) == 2
    assert copies_of(programs, MEDIUM, 1, monkeypatch, held=(0, 1, 2)) == 0
    # Whatever is written to in place is copied.
    assert copies_of(programs, FDTD, 1, monkeypatch, held=(0, 1, 2)) == 3


SPARE = """
!field = !stencil.field<[-1,5]xf64>
!temp = !stencil.temp<?xf64>
func.func @next(%next : !field, %spare : !field, %now : !field, %c : !field)
    attributes {stencil.rotation = array<i64: 1, 2, 0, 3>} {
  %t = stencil.load %now : !field -> !temp
  %s = stencil.load %c : !field -> !temp
  %r = stencil.apply(%a = %t : !temp, %b = %s : !temp) -> (!temp) {
    %0 = stencil.access %a[1] : !temp
    %1 = stencil.access %b[0] : !temp
    %2 = arith.mulf %0, %1 : f64
    stencil.return %2 : f64
  }
  stencil.store %r to %next(<[0], [4]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("inputs", [1, 2])
def test_a_level_that_no_call_stores_to_is_not_the_arrays_of_the_caller(tmp_path, inputs):
    """Its values are taken over, in a run of two calls only by the second one."""
    path = tmp_path / "spare.mlir"
    path.write_text(SPARE)
    device = SimulatedDevice("sm_90")
    program = from_bundle(twofour.compile(str(path), target="sim:sm_90").bundle, device)
    on_cpu, values = twofour.compile(str(path)), np.arange(1.0, 7.0)
    for steps in (1, 2, 3, 4):
        u, c = device.array(values), device.array(values / 2)
        if inputs == 1:
            c = u
        expected = on_cpu(u, c, steps=steps)
        before = u.copy(), c.copy()
        np.testing.assert_array_equal(program(u, c, steps=steps), expected)
        assert np.array_equal(u, before[0]) and np.array_equal(c, before[1])


def test_rows_of_many_steps_begin_on_lines(programs):
    """A warp stores 128 bytes in four sectors, where it touched five."""
    device = SimulatedDevice("sm_90")
    program, stored = from_bundle(programs["fdtd"][1], device), []
    for steps in (MANY_STEPS - 1, MANY_STEPS):
        device.profiles.clear()
        program(*inputs_of(FDTD), steps=steps)
        counted = device.profiles["fdtd_kernel0"].counters.global_stores.sectors
        stored.append(counted / steps)
    rows, sectors = EDGE, -(-EDGE * 4 // 32)
    assert stored[1] == rows * sectors < 0.95 * stored[0]


def squares(count, edge=40):
    """A program whose apply adds the squares of so many neighbours along the slow axis."""
    field, temp = f"!stencil.field<[-{count},{edge}]x[0,{edge}]xf64>", "!stencil.temp<?x?xf64>"
    lines = []
    for n in range(count):
        lines += [
            f"%x{n} = stencil.access %u[-{n}, 0] : {temp}",
            f"%y{n} = arith.mulf %x{n}, %x{n} : f64",
            f"%s{n + 1} = arith.addf %s{n}, %y{n} : f64",
        ]
    body = "\n".join(lines)
    return f"""
func.func @squares(%a: {field}, %b: {field}) {{
  %t = stencil.load %a : {field} -> {temp}
  %r = stencil.apply(%u = %t : {temp}) -> ({temp}) {{
    %s0 = arith.constant 0.0 : f64
    {body}
    stencil.return %s{count} : f64
  }}
  stencil.store %r to %b(<[0, 0], [{edge}, {edge}]>) : {temp} to {field}
  return
}}"""


@pytest.mark.parametrize(
    "count, rows, blocks",
    # Four rows hold count + 3 numbers of eight bytes: 512 bytes are 64 of them. An apply of 128
    # ops, three a neighbour and three more, has 64 registers a thread.
    [(41, 4, 4), (42, 4, 1), (61, 4, 1), (62, 2, 1), (63, 2, 1), (64, 1, 1)],
)
def test_threads_hold_as_many_rows_as_fit(count, rows, blocks, tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text(squares(count))
    bundle = twofour.compile(path, target="sim:sm_90").bundle
    assert bundle.kernels["squares_kernel0"].tile == (4 * rows, 64)
    _, kernel = bundle.ptx.split(".entry squares_kernel0(")
    assert kernel.partition(".minnctapersm ")[2].startswith(f"{blocks}\n")


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_inputs_with_a_halo_to_refresh_are_not_given_back(boundary, tmp_path):
    """No call reads it, so that the inputs are used where they lie."""
    path = tmp_path / "program.mlir"
    path.write_text(TEXTS["pointwise"])
    device = KeepingDevice("sm_90")
    program = from_bundle(twofour.compile(path, target="sim:sm_90").bundle, device)
    on_cpu = twofour.compile(str(path), boundary=boundary)
    draws = np.random.default_rng(5)
    inputs = [device.array(draws.random(field.shape)) for field in program.inputs]
    before = [array.copy() for array in inputs]
    results = program(*inputs, boundary=boundary, resume=True)
    assert (results[0] is inputs[1]) == (boundary == "fixed")
    for got, expected in zip(results, on_cpu(*before, resume=True), strict=True):
        np.testing.assert_array_equal(got, expected)
    for array, values in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(array, values)
