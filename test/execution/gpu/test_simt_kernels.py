# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain GPU kernels on the PTX simulator, compared with NumPy and with the CPU's bits."""

from pathlib import Path

import numpy as np
import pytest

import kernel_cases as cases
import numpy_stencil
import reference
import twofour
from file_cases import NONLINEAR
from gpu_programs import STORAGE, GpuProgram, program_of
from spills import check_resources
from twofour.accuracy import sweep_error
from twofour.context import make_context
from twofour.errors import TwofourError
from twofour.frontend.weights import kernel_module
from twofour.mlir import ir
from xdsl_suite import Program, random_arguments

CHIPS = ("sm_80", "sm_90")
BOUNDARY = ("periodic", "nearest", "zero")
# Several blocks on every axis, with threads that have all, some and none of their points.
SHAPES = {1: (2500,), 2: (37, 131), 3: (9, 13, 67)}
SMALL_SHAPES = {1: (2500,), 2: (19, 67), 3: (5, 9, 33)}
REPOSITORY = Path(__file__).parents[3]
PROGRAMS = sorted(
    [*REPOSITORY.glob("docs/examples/*.mlir"), *Path(__file__).parents[1].glob("programs/*.mlir")]
)


def gpu_kernel(name: str, dtype: str, chip: str) -> GpuProgram:
    with make_context(), ir.Location.unknown():
        return GpuProgram(kernel_module(cases.KERNELS[name], dtype, 1), chip)


def check_kernel(name: str, dtype: str, chip: str, shape) -> None:
    """One sweep, within the error bound and with the bits of the CPU's direct kernel."""
    kernel, boundary = cases.KERNELS[name], BOUNDARY[: cases.KERNELS[name].rank]
    values_of = "f16" if dtype == "bf16" else dtype
    states, sums = cases.exact_run(kernel, values_of, shape, boundary, 1, seed=1)
    u = cases.stored(states[0], dtype)
    padded, columns = u, list(zip(*kernel.offsets, strict=True))
    for axis, (mode, column) in enumerate(zip(boundary, columns, strict=True)):
        # Cut to the reach of the offsets, which may lie on one side only.
        below, above = max(0, -min(column)), max(0, max(column))
        padded = reference.pad(padded, axis, mode, below, above)
        window = range(below + min(column), below + max(column) + shape[axis])
        padded = padded.take(window, axis)
    program = gpu_kernel(name, dtype, chip)
    (entry,) = program.shapes
    got, _ = program.sweep(entry, [padded], [], shape, u.dtype)
    bound = cases.error_bounds(states, sums, dtype, kernel, boundary)[1]
    assert cases.within(got, states[1], bound)
    expected = cases.stepper(kernel, dtype, cases.TERM_BY_TERM, boundary).advance(u, 1)
    cases.assert_same_bits(got, expected)


SAMPLE = [
    (name, cases.DTYPES[number % 4], CHIPS[number // 4 % 2])
    for number, name in enumerate(
        name for name, kernel in cases.KERNELS.items() if len(kernel.weights) < 30
    )
]


@pytest.mark.parametrize(("name", "dtype", "chip"), SAMPLE[::5])
def test_kernel(name, dtype, chip):
    check_kernel(name, dtype, chip, SMALL_SHAPES[cases.KERNELS[name].rank])


@pytest.mark.full
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("name", cases.KERNELS)
def test_every_kernel(name, dtype, chip):
    shapes = SMALL_SHAPES if dtype == "f64" else SHAPES
    check_kernel(name, dtype, chip, shapes[cases.KERNELS[name].rank])
    check_resources(gpu_kernel(name, dtype, chip).ptx, chip)


# Random weighted sums, as text.


def weighted_sums(random, rank: int, dtype: str) -> tuple[str, list, list, float, tuple]:
    """A program that adds up sums over several fields, an addend and a constant.

    Also the offsets and weights of every field, their smallest and largest offsets per axis, the
    constant, and the extents of the output; the last field is the addend.
    """
    # Sums in f64 are slow on the simulator.
    most, widest = (5, 70) if dtype == "f64" else (9, 150)
    extents = {1: [12 * widest], 2: [6 * most, widest], 3: [2 * most, most, widest]}
    shape = tuple(random.integers(1, extents.get(rank, [most, 3, most, widest])).tolist())
    lower = tuple(random.integers(-9, 9, rank).tolist())
    terms, boxes = [], []
    for _ in range(random.integers(1, 4)):
        low = random.integers(-4, 3, rank)
        offsets = low + random.integers(0, 4, (int(random.integers(1, 20)), rank))
        offsets = np.unique(offsets, axis=0)
        weights = np.float32(random.uniform(-1, 1, len(offsets))).astype(float)
        terms.append((offsets.tolist(), weights.tolist()))
        boxes.append((offsets.min(axis=0), offsets.max(axis=0)))
    boxes.append((np.zeros(rank, int), np.zeros(rank, int)))
    constant = float(random.choice([0.0, 0.75]))

    def bounds(low, high) -> str:
        lows = [a + int(b) for a, b in zip(lower, low, strict=True)]
        highs = [a + n + int(b) for a, n, b in zip(lower, shape, high, strict=True)]
        return f"#stencil.bounds<{lows}, {highs}>"

    spelled = [bounds(low, high) for low, high in boxes]
    output = spelled[-1]
    temps = [f"!stencil.temp<{box}, {dtype}>" for box in spelled]
    fields = [f"!stencil.field<{box}, {dtype}>" for box in [*spelled, output]]
    arguments = ", ".join(f"%f{n}: {field}" for n, field in enumerate(fields))
    lines = [f"func.func @sums({arguments}) {{"]
    lines += [
        f'  %t{n} = "stencil.load"(%f{n}) : ({fields[n]}) -> {temp}' for n, temp in enumerate(temps)
    ]
    last, result = f"%t{len(terms)}", f"!stencil.temp<{output}, {dtype}>"
    for number, (offsets, weights) in enumerate(terms):
        start = f", constant = {constant} : f64" if constant and number == 0 else ""
        spelled_weights = ", ".join(map(repr, weights))
        lines.append(
            f'  %r{number} = "stencil.weighted_sum"(%t{number}, {last}) {{offsets = {offsets}, '
            f"weights = array<f64: {spelled_weights}>{start}}} : ({temps[number]}, {result}) -> "
            f"{result}"
        )
        last = f"%r{number}"
    lines.append(
        f'  "stencil.store"({last}, %f{len(temps)}) {{bounds = {output}}} : '
        f"({result}, {fields[-1]}) -> ()"
    )
    lines += ["  func.return", "}"]
    return "\n".join(lines), terms, boxes, constant, shape


def check_weighted_sums(seed: int) -> None:
    random = np.random.default_rng(seed)
    dtype, rank = cases.DTYPES[seed % 4], 1 + seed // 4 % 4
    text, terms, boxes, constant, shape = weighted_sums(random, rank, dtype)
    values = [
        cases.random_values(seed + number, tuple(np.add(shape, high - low).tolist()), dtype)
        for number, (low, high) in enumerate(boxes)
    ]
    exact, sizes = values[-1] + constant, np.abs(values[-1]) + constant
    for field, (offsets, weights), (low, _) in zip(values, terms, boxes, strict=False):
        for offset, weight in zip(offsets, weights, strict=True):
            start = np.subtract(offset, low)
            window = field[tuple(slice(s, s + n) for s, n in zip(start, shape, strict=True))]
            exact = exact + weight * window
            sizes = sizes + np.abs(weight * window)
    stored = [cases.stored(field, dtype) for field in values]
    arguments = [*stored, np.zeros(shape, stored[0].dtype)]
    got = program_of(text, CHIPS[seed % 2]).run("sums", arguments)[-1]
    count = 2 + sum(len(weights) for _, weights in terms)
    bound = 2 * sweep_error(dtype, count, np.abs(exact), sizes)
    assert cases.within(got, exact, bound)


@pytest.mark.parametrize("seed", range(16, 29))
def test_random_sums(seed):
    check_weighted_sums(seed)


@pytest.mark.full
def test_five_hundred_random_sums():
    for seed in range(100, 600):
        check_weighted_sums(seed)


# Programs of any kind.

FEATURES = """
!field = !stencil.field<[-2,21]x[3,75]xf64>
!marks = !stencil.field<[-1,20]x[4,74]xi32>
!temp = !stencil.temp<?x?xf64>
func.func @features(%u: !field, %marks: !marks, %line: !stencil.field<[4,74]xf64>, %k: f64,
    %few: i32, %flag: i1, %out: !field, %counts: !marks) {
  %ut = stencil.load %u : !field -> !temp
  %mt = stencil.load %marks : !marks -> !stencil.temp<?x?xi32>
  %lt = stencil.load %line : !stencil.field<[4,74]xf64> -> !stencil.temp<?xf64>
  %half = arith.constant 0.5 : f64
  %k_half = arith.mulf %k, %half : f64
  %k_squared = arith.mulf %k_half, %k_half : f64
  %r, %c = stencil.apply(%a = %ut : !temp, %m = %mt : !stencil.temp<?x?xi32>,
      %l = %lt : !stencil.temp<?xf64>, %k0 = %k_squared : f64, %few0 = %few : i32,
      %flag0 = %flag : i1) -> (!temp, !stencil.temp<?x?xi32>) {
    %x = stencil.access %a[0, 0] : !temp
    %n = stencil.access %a[-1, 1] : !temp
    %s = stencil.access %a[1, -1] : !temp
    %mark = stencil.access %m[0, 0] : !stencil.temp<?x?xi32>
    %level = stencil.access %l[_, 0] : !stencil.temp<?xf64>
    %row = stencil.index 0 <[2, 0]>
    %begin = arith.constant 0 : index
    %three = arith.constant 3 : index
    %one = arith.constant 1 : index
    %power = scf.for %i = %begin to %three step %one iter_args(%p = %x) -> (f64) {
      %q = arith.mulf %p, %k0 : f64
      %t = arith.addf %q, %level : f64
      scf.yield %t : f64
    }
    %odd = arith.andi %mark, %few0 : i32
    %is = arith.cmpi ne, %odd, %few0 : i32
    %side = scf.if %is -> (f64) {
      %d = arith.divf %n, %power : f64
      scf.yield %d : f64
    } else {
      %d = arith.mulf %s, %power : f64
      %e = arith.maximumf %d, %level : f64
      scf.yield %e : f64
    }
    %low = arith.cmpi slt, %row, %three : index
    %chosen = arith.select %low, %x, %side : f64
    %root = math.sqrt %power : f64
    %y = arith.addf %chosen, %root : f64
    %z = arith.select %flag0, %y, %x : f64
    %sum = arith.addi %mark, %few0 : i32
    stencil.return %z, %sum : f64, i32
  }
  stencil.store %r to %out(<[-1, 4], [20, 74]>) : !temp to !field
  stencil.store %c to %counts(<[-1, 4], [20, 74]>) : !stencil.temp<?x?xi32> to !marks
  return
}
"""


@pytest.mark.parametrize(
    ("number", "text"),
    list(enumerate([FEATURES, NONLINEAR, *(path.read_text() for path in PROGRAMS)])),
    ids=["features", "nonlinear", *(path.stem for path in PROGRAMS)],
)
def test_program(number, text):
    functions = [op for op in numpy_stencil.parse(text).walk() if op.name == "func.func"]
    name = functions[0].sym_name.data
    arguments = random_arguments(Program("program.mlir", name, text))
    expected = numpy_stencil.evaluate(text, name, arguments).arguments
    got = program_of(text, CHIPS[number % 2]).run(name, arguments)
    for one, other in zip(got, expected, strict=True):
        tolerance = 1e-5 if "f32" in text else 1e-12
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_applies_give_the_bits_of_the_cpu(dtype):
    path = REPOSITORY / "docs/examples/gray_scott.mlir"
    random = np.random.default_rng(5)
    u, v = (cases.stored(random.integers(0, 129, (130, 130)) / 128, dtype) for _ in range(2))
    chip = CHIPS[cases.DTYPES.index(dtype) % 2]
    program = program_of(path.read_text(), chip, dtype)
    got = program.run("gray_scott", [u, v, np.zeros_like(u), np.zeros_like(u)])[2:]
    expected = twofour.compile(str(path), dtype=dtype)(u, v)
    for one, other in zip(got, expected, strict=True):
        inner = np.s_[1:-1, 1:-1]
        cases.assert_same_bits(one[inner], other[inner])


FUNCTIONS = {
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.round": lambda x: np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x),
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    "math.copysign": np.copysign,
    "math.fma": lambda x, y, z: x * y + z,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.divf": np.divide,
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_functions_give_the_bits_of_numpy(dtype, chip):
    counts = {
        name: function.nin if isinstance(function, np.ufunc) else function.__code__.co_argcount
        for name, function in FUNCTIONS.items()
    }
    body = [
        f"    %r{n} = {name} {', '.join(['%x', '%y', '%z'][:count])} : {dtype}"
        for n, (name, count) in enumerate(counts.items())
    ]
    results = [f"%r{n}" for n in range(len(FUNCTIONS))]
    random = np.random.default_rng(3)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5]
    numbers = np.concatenate([special, random.integers(-64, 65, 90) / 8])
    x, y, z = (random.permutation(numbers).astype(STORAGE[dtype]) for _ in range(3))
    got = program_of(pointwise(body, results, dtype, 3), chip).run(
        "f", [x, y, z, *(np.zeros_like(x) for _ in results)]
    )[3:]
    with np.errstate(all="ignore"):
        for (name, function), values in zip(FUNCTIONS.items(), got, strict=True):
            expected = function(*[x, y, z][: counts[name]])
            np.testing.assert_array_equal(values, expected, err_msg=name)
            zeros = expected == 0
            np.testing.assert_array_equal(
                np.signbit(values[zeros]), np.signbit(expected[zeros]), err_msg=name
            )


def pointwise(body, results, dtype: str, inputs: int) -> str:
    """A program over `inputs` fields of 100 points each: %x, %y, %z are their values."""
    box = "#stencil.bounds<[0], [100]>"
    field, temp = f"!stencil.field<{box}, {dtype}>", f"!stencil.temp<{box}, {dtype}>"
    names = "xyz"[:inputs]
    arguments = [f"%f{name}: {field}" for name in names]
    arguments += [f"%o{n}: {field}" for n in range(len(results))]
    temps = [temp] * len(results)
    return "\n".join(
        [
            f"func.func @f({', '.join(arguments)}) {{",
            *(f'  %t{n} = "stencil.load"(%f{n}) : ({field}) -> {temp}' for n in names),
            f'  %a:{len(results)} = "stencil.apply"() ({{',
            *(
                f'    %{n} = "stencil.access"(%t{n}) {{offset = array<i64: 0>}} : '
                f"({temp}) -> {dtype}"
                for n in names
            ),
            *body,
            f'    "stencil.return"({", ".join(results)}) : '
            f"({', '.join([dtype] * len(results))}) -> ()",
            f"  }}) : () -> ({', '.join(temps)})",
            *(
                f'  "stencil.store"(%a#{n}, %o{n}) {{bounds = {box}}} : ({temp}, {field}) -> ()'
                for n in range(len(results))
            ),
            "  func.return",
            "}",
        ]
    )


@pytest.mark.parametrize(
    "body",
    [
        ["%i = arith.fptosi %x : f64 to i64", "%v = math.ipowi %i, %i : i64"],
        ["%v = vector.broadcast %x : f64 to vector<2xf64>"],
        ["%v = arith.extf %x : f64 to f128"],
        ["%i = arith.fptosi %x : f64 to i64", "%v = arith.extsi %i : i64 to i80"],
        ["%v = memref.alloca() : memref<2xf64>"],
    ],
)
def test_what_has_no_code_is_refused_at_the_op(body):
    lines = ["%r = arith.mulf %x, %x : f64", *body]
    with pytest.raises(TwofourError, match="op expected .* GPU") as caught:
        program_of(pointwise(lines, ["%r"], "f64", 1))
    assert caught.value.location.line == 4 + len(lines)
