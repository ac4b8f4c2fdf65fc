# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results go to arrays of callers: the values of a call without, wherever these arrays lie."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import twofour
from field_programs import TEXTS
from native_cases import fill_new_buffers, share_small_work
from turns import in_turn
from twofour.bench.plane_programs import FDTD
from twofour.errors import TwofourError
from twofour.runtime.buffer_pool import BufferPool
from twofour.runtime.fields.call_plan import Ends
from twofour.runtime.fields.single_calls import Kind
from twofour.runtime.rounds.actions import Copy

SHAPE = 37, 41
WEIGHTS = {(0, 0): 0.5, (0, 1): 0.25, (-1, 0): 0.125, (1, -2): 0.125}
STEPS = (0, 1, 2, 3, 60)


def random(shape=SHAPE, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).random(shape).astype(dtype)


def misaligned(u):
    space = np.empty(u.nbytes + 1, np.uint8)
    return np.ndarray(u.shape, u.dtype, space, 1)


def every_other(u):
    return np.empty((2 * u.shape[0], *u.shape[1:]), u.dtype)[::2]


def shifted(u):
    """An array that begins in the second row of `u`, in whose memory it lies."""
    space = np.empty((u.shape[0] + 1, *u.shape[1:]), u.dtype)
    space[:-1] = u
    return space[:-1], space[1:]


# Of an array: one like it and another, which shares memory with it or not.
PAIRS = {
    "another": lambda u: (u, np.empty_like(u)),
    "other order": lambda u: (u, np.empty_like(u, order="F")),
    "other strides": lambda u: (u, every_other(u)),
    "misaligned": lambda u: (u, misaligned(u)),
    "the same": lambda u: (u, u),
    "turned round": lambda u: (u, u[::-1]),
    "shifted": shifted,
}


BOUNDARIES = [("fixed",), ("periodic",), ("constant(2),reflect",)]


@pytest.mark.parametrize("pair, boundary", list(in_turn(zip(PAIRS, strict=True), BOUNDARIES, 2)))
def test_steps_of_a_stencil(pair, boundary, monkeypatch):
    pair = PAIRS[pair]
    fill_new_buffers(monkeypatch)
    for schedule, dtype in (("auto", "f64"), ("direct", "f32"), ("outer", "f32")):
        step = twofour.stencil(WEIGHTS, boundary=boundary, dtype=dtype, schedule=schedule)
        values = random(dtype=step.element_type.storage)
        for steps in STEPS:
            # The second call is one like the first one.
            for _ in range(2):
                expected = step(values, steps)
                u, out = pair(values.copy())
                assert step(u, steps, out=out) is out
                np.testing.assert_array_equal(out, expected)
                if not np.shares_memory(u, out):
                    np.testing.assert_array_equal(u, values)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_bits_of_bfloat16(target):
    """Arrays of its bits, or of the type that ml_dtypes has: one for inputs, any for results."""
    step = twofour.stencil(WEIGHTS, dtype="bf16", target=target)
    values = np.random.default_rng(1).integers(0, 0x4000, SHAPE).astype(np.uint16)
    for steps in (0, 1, 3):
        expected = step(values, steps)
        for given, wanted in itertools.product((np.uint16, ml_dtypes.bfloat16), repeat=2):
            for name in ("another", "other strides", "the same"):
                u, out = PAIRS[name](values.copy())
                assert step(u.view(given), steps, out=out.view(wanted)).dtype == wanted
                np.testing.assert_array_equal(out, expected)


def leases(monkeypatch):
    """The sizes of all memory that a pool gives from now on."""
    found, lease = [], BufferPool.lease

    def counted(pool, size):
        found.append(size)
        return lease(pool, size)

    monkeypatch.setattr(BufferPool, "lease", counted)
    return found


def test_single_steps_take_no_memory(monkeypatch):
    step, u = twofour.stencil(WEIGHTS, dtype="f64"), random()
    made, out = leases(monkeypatch), np.empty_like(u)
    for _ in range(2):
        u, out = step(u, out=out), u
    assert not made
    step(u, out=u)
    assert len(made) == 1


def test_an_array_mapped_from_a_file(tmp_path):
    step, u = twofour.stencil(WEIGHTS, dtype="f64"), random()
    out = np.memmap(tmp_path / "u", np.float64, "w+", shape=SHAPE)
    assert step(u, out=out) is out
    out.flush()
    np.testing.assert_array_equal(np.fromfile(tmp_path / "u").reshape(SHAPE), step(u))


def program(text, folder, **options):
    path = folder / "program.mlir"
    path.write_text(text)
    return twofour.compile(str(path), **options)


def inputs_of(one):
    """Random arrays, of numbers that stay small."""
    rng = np.random.default_rng(3)
    return [rng.uniform(-1, 1, f.shape).astype(f.element.storage) for f in one.inputs]


def like(fields):
    return [np.full(field.shape, 3).astype(field.element.storage) for field in fields]


def choices(inputs, fields):
    """Arrays for results: new ones, inputs in their order and the other way round, one of them."""
    yield like(fields)
    for order in (inputs, inputs[::-1], inputs[1:] + inputs[:1]):
        fitting = list(order)
        out = []
        for field in fields:
            array = next((a for a in fitting if a.shape == field.shape), None)
            if array is None or array.dtype != field.element.storage:
                array = like([field])[0]
            else:
                # By identity: arrays compare cell by cell.
                fitting = [one for one in fitting if one is not array]
            out.append(array)
        yield out
    yield [*like(fields[:-1]), *out[-1:]]


@pytest.mark.parametrize("text", [*TEXTS.values(), FDTD.mlir(21)], ids=[*TEXTS, "fdtd"])
def test_steps_of_programs(text, tmp_path, monkeypatch):
    fill_new_buffers(monkeypatch)
    share_small_work(monkeypatch)
    for boundary in ("fixed", "periodic", "nearest"):
        one = program(text, tmp_path, boundary=boundary)
        values = inputs_of(one)
        numbers = [2] * len(one._scalars)
        for steps, resume in itertools.product((0, 1, 2, 5), (False, True)):
            fields = one.inputs if resume else one.outputs
            expected = one(*values, steps=steps, scalars=numbers, resume=resume)
            expected = [expected] if len(fields) == 1 else expected
            for choice in range(5):
                inputs = [value.copy() for value in values]
                out = list(choices(inputs, fields))[choice]
                got = one(*inputs, steps=steps, scalars=numbers, resume=resume, out=out)
                got = [got] if len(fields) == 1 else got
                for array, wanted, given in zip(got, expected, out, strict=True):
                    assert array is given
                    np.testing.assert_array_equal(array, wanted)
                for array, value in zip(inputs, values, strict=True):
                    if not any(array is given for given in out):
                        np.testing.assert_array_equal(array, value)


CROSSED = """
!field = !stencil.field<[0,40]xf64>
!temp = !stencil.temp<?xf64>
func.func @crossed(%a : !field, %b : !field, %c : !field) {
  %at = stencil.load %a : !field -> !temp
  %bt = stencil.load %b : !field -> !temp
  %s, %d = stencil.apply(%x = %at : !temp, %y = %bt : !temp) -> (!temp, !temp) {
    %p = stencil.access %x[0] : !temp
    %q = stencil.access %y[0] : !temp
    %0 = arith.addf %p, %q : f64
    %1 = arith.subf %p, %q : f64
    stencil.return %0, %1 : f64, f64
  }
  stencil.store %s to %b(<[0], [40]>) : !temp to !field
  stencil.store %d to %c(<[0], [40]>) : !temp to !field
  return
}
"""


def test_results_and_next_inputs_in_the_same_arrays(tmp_path):
    """Stored are b and c; the next call takes c for a, and b."""
    one = program(CROSSED, tmp_path)
    a, b = inputs_of(one)
    arrays = np.empty_like(a), np.empty_like(b)
    for _ in range(3):
        for resume, expected in ((False, (a + b, a - b)), (True, (a - b, a + b))):
            one(a, b, out=arrays, resume=resume)
            np.testing.assert_array_equal(arrays, expected)


def test_results_in_overlapping_arrays(tmp_path):
    """They are assigned in order."""
    one = program(TEXTS["gray_scott"], tmp_path)
    inputs = inputs_of(one)
    expected = one(*inputs)
    for _ in range(2):
        space = np.empty((expected[0].shape[0] + 1, *expected[0].shape[1:]))
        one(*inputs, out=(space[1:], space[:-1]))
        np.testing.assert_array_equal(space[:-1], expected[1])
        np.testing.assert_array_equal(space[-1], expected[0][-1])


def test_fields_that_cannot_be_written_to(tmp_path):
    one = program(FDTD.mlir(21), tmp_path)
    fields = inputs_of(one)
    for _ in range(3):
        one(*fields, out=fields)
    fields[1].flags.writeable = False
    with pytest.raises(TwofourError, match="^error: out 1: expected an array that can be written"):
        one(*fields, out=fields)


def test_an_input_given_twice_is_not_updated_while_it_is_read(tmp_path):
    one = program(FDTD.mlir(21), tmp_path)
    values = random(one.inputs[0].shape)
    expected = one(*[values] * len(one.inputs))
    array = values.copy()
    for _ in range(3):
        array[...] = values
        got = one(*[array] * len(expected), out=[array, *map(np.empty_like, expected[1:])])
        for result, wanted in zip(got, expected, strict=True):
            np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_fields_in_place_are_updated_without_copies(boundary, tmp_path, monkeypatch):
    one = program(FDTD.mlir(100), tmp_path, boundary=boundary)
    fields = inputs_of(one)
    expected = [array.copy() for array in fields]
    made = leases(monkeypatch)
    for _ in range(2):
        one(*fields, out=fields)
    assert not made
    plan = one._fields.single_calls.get(Kind(Ends.STORED, frozenset(range(len(fields))))).plan
    copies = [action for phase in plan.round for action in phase if isinstance(action, Copy)]
    cells = [plan.buffers[copy.written].model()[copy.target].size for copy in copies]
    assert sum(cells) <= (0 if boundary == "fixed" else fields[0].size // 4)
    for _ in range(2):
        expected = one(*expected)
    for array, wanted in zip(fields, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


def read_only(u):
    out = np.empty_like(u)
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (read_only, "out: expected an array that can be written to, got one of numpy.ndarray: "),
        (lambda u: u[1:], "out: expected an array of shape .37, 41., got shape .36, 41."),
        (lambda u: u.astype("f4"), "out: expected f64 .float64., got float32"),
        (lambda u: u.tolist(), "out: expected an array of NumPy or another library, got list"),
        (lambda u: True, "out: expected an array of NumPy or another library, got bool"),
        (
            lambda u: np.lib.stride_tricks.as_strided(np.zeros(41), u.shape, (0, 8)),
            "out: expected an array with a place for every element, got one with strides .0, 8.",
        ),
        (
            lambda u: np.lib.stride_tricks.as_strided(np.zeros(400), u.shape, (40, 8)),
            "out: expected an array with a place for every element, got one with strides .40, 8.",
        ),
    ],
)
def test_an_array_that_takes_no_result_is_refused(out, message):
    step, u = twofour.stencil(WEIGHTS, dtype="f64"), random()
    for _ in range(2):
        with pytest.raises(TwofourError, match=f"^error: {message}"):
            step(u, out=out(u))
        step(u)


def test_as_many_arrays_as_results(tmp_path):
    one = program(TEXTS["gray_scott"], tmp_path)
    inputs = inputs_of(one)
    one(*inputs)
    for out in (inputs[0], inputs[:1], [*inputs, inputs[0]], []):
        count = len(out) if isinstance(out, list) else 1
        with pytest.raises(TwofourError, match=f"^error: out: expected 2 arrays, got {count}$"):
            one(*inputs, out=out)
    with pytest.raises(TwofourError, match="^error: out 1: expected an array of shape "):
        one(*inputs, out=[inputs[0], inputs[1][1:]])


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_one_array_in_a_tuple(target):
    program = twofour.compile("docs/examples/heat1d.mlir", target=target)
    u = np.ones(program.inputs[0].shape, program.element_type.storage)
    out = np.empty_like(u)
    assert program(u, out=(out,)) is out
    with pytest.raises(TwofourError, match="^error: out: expected 1 array, got 2$"):
        program(u, out=[out, u])
    with pytest.raises(TwofourError, match="^error: expected 1 input field, got 2$"):
        program(u, u)


def test_simulated_devices(tmp_path):
    step = twofour.stencil(WEIGHTS, dtype="f32", target="sim:sm_80", boundary="periodic")
    u = random(dtype=np.float32)
    expected, out = step(u, 2), np.empty_like(u)
    assert step(u, 2, out=out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(step(u, 2, out=u), expected)
    one = program(TEXTS["in_place"], tmp_path, target="sim:sm_80")
    fields = inputs_of(one)
    expected, out = one(*fields, steps=2), [fields[0], np.empty_like(fields[0])]
    for array, given, wanted in zip(one(*fields, steps=2, out=out), out, expected, strict=True):
        assert array is given
        np.testing.assert_array_equal(array, wanted)
