# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Applies that are no weighted sums: their vector kernels against plain loops, bit by bit."""

import numpy as np
import pytest

import twofour
from twofour.codegen.cpu.register_tile import RegisterTile
from twofour.dialects.stencil import large_arrays
from twofour.dialects.stencil.transforms import apply_to_vector
from twofour.options import CompileOptions
from twofour.targets.cpu.build import compile_cpu

DTYPES = {"f64": np.float64, "f32": np.float32, "i32": np.int32, "i64": np.int64}

# What a region computes of its reads %x and %y and the constant %seven, by the type of the result.
FLOATS = """addf mulf subf divf maximumf maxnumf minimumf minnumf"""
INTEGERS = """addi subi muli andi ori xori maxsi maxui minsi minui"""
BINARY_MATH = "atan2 copysign powf"
UNARY_MATH = """absf ceil floor round roundeven rsqrt sqrt trunc
    acos acosh asin asinh atan atanh cbrt cos cosh erf exp exp2 expm1
    log log10 log1p log2 sin sinh tan tanh"""
SHIFTS = "shli shrsi shrui"


def float_ops(element):
    for name in FLOATS.split():
        yield [f"%z# = arith.{name} %x, %y : {element}"]
    for name in BINARY_MATH.split():
        yield [f"%z# = math.{name} %x, %y : {element}"]
    for name in UNARY_MATH.split():
        yield [f"%z# = math.{name} %x : {element}"]
    yield [f"%z# = arith.negf %x : {element}"]
    yield [f"%z# = math.fma %x, %y, %x : {element}"]
    yield [
        f"%c# = arith.cmpf olt, %x, %y : {element}",
        f"%z# = arith.select %c#, %x, %y : {element}",
    ]


def integer_ops(element):
    for name in INTEGERS.split():
        yield [f"%z# = arith.{name} %x, %y : {element}"]
    for name in SHIFTS.split():
        yield [
            f"%k# = arith.andi %y, %seven : {element}",
            f"%z# = arith.{name} %x, %k# : {element}",
        ]
    yield [f"%z# = math.absi %x : {element}"]
    yield [
        f"%c# = arith.cmpi slt, %x, %y : {element}",
        f"%z# = arith.select %c#, %x, %y : {element}",
    ]
    for name in ("extui", "extsi"):
        yield [
            f"%c# = arith.cmpi slt, %x, %y : {element}",
            f"%z# = arith.{name} %c# : i1 to {element}",
        ]
    yield [
        f"%n# = arith.index_cast %x : {element} to index",
        "%i# = stencil.index 1 <[0, 2]>",
        "%j# = stencil.index 0 <[-5, 2]>",
        "%k# = arith.muli %i#, %j# : index",
        "%l# = arith.addi %k#, %n# : index",
        f"%z# = arith.index_cast %l# : index to {element}",
    ]


CASES = {
    **{("f64", "f64"): list(float_ops("f64")), ("f32", "f32"): list(float_ops("f32"))},
    **{("i64", "i64"): list(integer_ops("i64")), ("i32", "i32"): list(integer_ops("i32"))},
    ("f32", "f64"): [["%z# = arith.extf %x : f32 to f64"]],
    ("f64", "f32"): [["%z# = arith.truncf %x : f64 to f32"]],
    ("i32", "i64"): [[f"%z# = arith.{name} %x : i32 to i64"] for name in ("extsi", "extui")],
    ("i64", "i32"): [["%z# = arith.trunci %x : i64 to i32"]],
    **{
        (one, other): [[f"%z# = arith.{name} %x : {one} to {other}"] for name in names]
        for names, ones, others in (
            (("fptosi", "fptoui"), ("f32", "f64"), ("i32", "i64")),
            (("sitofp", "uitofp"), ("i32", "i64"), ("f32", "f64")),
        )
        for one in ones
        for other in others
    },
}


def program(element, result, bodies, rows=5, columns=19):
    """A function with a result for each body, lines that compute %z# of %x and %y.

    Each # is replaced by the number of the body.
    """
    field, out = (
        f"!stencil.field<[-1,{rows + 1}]x[-1,{columns + 1}]x{e}>" for e in (element, result)
    )
    temp, made = (f"!stencil.temp<?x?x{e}>" for e in (element, result))
    count = range(len(bodies))
    lines = [line.replace("#", str(n)) for n, body in enumerate(bodies) for line in body]
    if element.startswith("i"):
        lines.insert(0, f"%seven = arith.constant 7 : {element}")
    stores = [
        f"stencil.store %r{n} to %o{n}(<[0, 0], [{rows}, {columns}]>) : {made} to {out}"
        for n in count
    ]
    return "\n".join(
        [
            f"func.func @program(%u : {field}{''.join(f', %o{n} : {out}' for n in count)}) {{",
            f"%t = stencil.load %u : {field} -> {temp}",
            f"{', '.join(f'%r{n}' for n in count)} = stencil.apply(%a = %t : {temp}) -> "
            f"({', '.join(made for _ in count)}) {{",
            f"%x = stencil.access %a[0, 0] : {temp}",
            f"%y = stencil.access %a[1, 0] : {temp}",
            *lines,
            f"stencil.return {', '.join(f'%z{n}' for n in count)} : "
            f"{', '.join(result for _ in count)}",
            "}",
            *stores,
            "return",
            "}",
        ]
    )


@pytest.fixture
def vectors_and_loops(monkeypatch, tmp_path):
    """Compile and call a program twice, the second time without vector kernels."""
    original = apply_to_vector.widest_bits
    path = tmp_path / "program.mlir"

    def run(text, *arguments, steps=1, threads=1):
        path.write_text(text)
        found = []
        for use_vectors in (True, False):

            def width(apply, use_vectors=use_vectors):
                bits = original(apply)
                assert bits is not None
                return bits if use_vectors else None

            monkeypatch.setattr(apply_to_vector, "widest_bits", width)
            result = twofour.compile(path, threads=threads)(*arguments, steps=steps)
            found.append(result if isinstance(result, tuple) else (result,))
        return found

    return run


def assert_same_bits(found):
    first, second = found
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


@pytest.mark.parametrize("element, result", CASES, ids="-".join)
def test_ops_on_vectors(vectors_and_loops, element, result):
    draws = np.random.default_rng(0)
    shape = (7, 21)
    if element.startswith("i"):
        values = draws.integers(-100, 100, shape).astype(DTYPES[element])
    else:
        values = draws.uniform(0.1, 4, shape).astype(DTYPES[element])
        if not result.startswith("i"):
            values[::3] *= -1
    found = vectors_and_loops(program(element, result, CASES[element, result]), values)
    assert_same_bits(found)
    assert len({one[1:-1, 1:-1].tobytes() for one in found[0]}) >= len(found[0]) / 2


def test_contracted_operations_round_once_at_every_point(vectors_and_loops):
    """Or twice, where the processor has no fused multiply-adds; the same for all."""
    body = [
        "%p# = arith.mulf %x, %y fastmath<contract> : f32",
        "%z# = arith.addf %p#, %x fastmath<contract> : f32",
    ]
    # Products of so few bits, and their sums, are exact in f64.
    bits = np.random.default_rng(1).integers(2**13, 2**14, (35, 81))
    u = (bits / 2**13).astype(np.float32)
    for threads in (1, 2):
        found = vectors_and_loops(program("f32", "f32", [body], 33, 79), u, threads=threads)
        x, y = u[1:-1, 1:-1], u[2:, 1:-1]
        once = (x.astype(float) * y + x).astype(np.float32)
        twice = x * y + x
        assert (once != twice).any()
        for (result,) in found:
            inside = result[1:-1, 1:-1]
            assert np.array_equal(inside, once) or np.array_equal(inside, twice)
        assert_same_bits(found)


BRANCHES = """\
%zero = arith.constant 0.0 : f64
%two = arith.constant 2 : index
%yes = arith.constant true
%row = stencil.index 0 <[0, 0]>
%low = arith.cmpi slt, %row, %two : index
%left = arith.cmpf olt, %x, %zero : f64
%p = scf.if %left -> (f64) {
  %q = scf.if %low -> (f64) {
    %0 = arith.mulf %x, %y : f64
    scf.yield %0 : f64
  } else {
    scf.yield %zero : f64
  }
  scf.yield %q : f64
} else {
  %1 = arith.divf %y, %x : f64
  scf.yield %1 : f64
}
%s = scf.if %low -> (f64) {
  scf.yield %p : f64
} else {
  scf.yield %y : f64
}
%both = arith.andi %left, %yes : i1
%z# = arith.select %both, %s, %p : f64
"""


def test_branches(vectors_and_loops):
    values = np.random.default_rng(0).uniform(-1, 1, (7, 21))
    found = vectors_and_loops(program("f64", "f64", [BRANCHES.splitlines()]), values)
    assert_same_bits(found)
    x, y = values[1:-1, 1:-1], values[2:, 1:-1]
    low = (np.arange(5) < 2)[:, None]
    p = np.where(x < 0, np.where(low, x * y, 0), y / x)
    expected = np.where(x < 0, np.where(low, p, y), p)
    np.testing.assert_allclose(found[0][0][1:-1, 1:-1], expected, rtol=1e-15)


LOOPS = {
    "a quotient of integers": """\
%s = arith.fptosi %x : f64 to i64
%q = arith.divsi %s, %s : i64
%z# = arith.sitofp %q : i64 to f64
""",
    "numbers of 16 bits": """\
%s = arith.truncf %x : f64 to f16
%m = arith.maximumf %s, %s : f16
%z# = arith.extf %m : f16 to f64
""",
    "a quotient that a branch avoids": """\
%zero = arith.constant 0 : index
%row = stencil.index 0 <[0, 0]>
%first = arith.cmpi eq, %row, %zero : index
%n = scf.if %first -> (index) {
  scf.yield %zero : index
} else {
  %q = arith.divsi %row, %row : index
  scf.yield %q : index
}
%i = arith.index_cast %n : index to i64
%f = arith.sitofp %i : i64 to f64
%z# = arith.mulf %f, %x : f64
""",
    "a call in a branch": """\
%no = arith.constant false
%z# = scf.if %no -> (f64) {
  %e = math.exp %x : f64
  scf.yield %e : f64
} else {
  scf.yield %x : f64
}
""",
}


@pytest.mark.parametrize("what", LOOPS)
def test_what_stays_a_loop(tmp_path, what):
    path = tmp_path / "program.mlir"
    path.write_text(program("f64", "f64", [LOOPS[what].splitlines()]))
    assert "vector." not in str(compile_cpu(str(path), CompileOptions()).module)
    values = np.random.default_rng(0).uniform(1, 2, (7, 21))
    x = values[1:-1, 1:-1]
    expected = {
        "a quotient of integers": np.ones_like(x),
        "numbers of 16 bits": np.float16(x),
        "a quotient that a branch avoids": x * (np.arange(5) > 0)[:, None],
        "a call in a branch": x,
    }
    assert np.array_equal(twofour.compile(path)(values)[1:-1, 1:-1], expected[what])


# Every output is stored over what is read at the point itself; %h is read around it.
IN_PLACE = """
!f = !stencil.field<[0,{rows}]x[{lo},{columns}]xf64>
!g = !stencil.field<[0,{rows}]x[-3,{more}]xf64>
!t = !stencil.temp<?x?xf64>
func.func @program(%a : !f, %b : !g, %h : !f) {{
  %at = stencil.load %a : !f -> !t
  %bt = stencil.load %b : !g -> !t
  %ht = stencil.load %h : !f -> !t
  %ar, %br = stencil.apply(%x = %at : !t, %y = %bt : !t, %z = %ht : !t) -> (!t, !t) {{
    %xc = stencil.access %x[0, 0] : !t
    %yc = stencil.access %y[0, 0] : !t
    %w = stencil.access %z[0, -1] : !t
    %s = stencil.access %z[1, 0] : !t
    %p = arith.mulf %xc, %w : f64
    %q = arith.mulf %yc, %s : f64
    %r = arith.addf %p, %yc : f64
    stencil.return %r, %q : f64, f64
  }}
  stencil.store %ar to %a(<[0, 0], [{n}, {m}]>) : !t to !f
  stencil.store %br to %b(<[0, 0], [{n}, {m}]>) : !t to !g
  return
}}
"""


@pytest.mark.parametrize("large, threads", [(False, 1), (True, 3)])
@pytest.mark.parametrize("lo, more", [(-1, 0), (-3, 0), (-3, 1)])
@pytest.mark.parametrize("n, m", [(1, 1), (5, 19), (9, 40)])
def test_results_over_what_is_read_at_the_same_points(
    tmp_path, monkeypatch, large, threads, lo, more, n, m
):
    """Past the caches too, from lines on that all rows of the outputs have in common or not."""
    monkeypatch.setattr("twofour.runtime.threads.WAKING_POINTS", 1)
    monkeypatch.setattr(large_arrays, "past_caches", lambda *_: large)
    monkeypatch.setattr(apply_to_vector, "are_stored_over_inputs", lambda *_: False)
    draws = np.random.default_rng(0)
    a, h = (draws.random((n + 1, m + 1 - lo)) for _ in range(2))
    b = draws.random((n + 1, m + 4 + more))
    text = IN_PLACE.format(rows=n + 1, columns=m + 1, more=m + 1 + more, lo=lo, n=n, m=m)
    path = tmp_path / "program.mlir"
    path.write_text(text)
    found = twofour.compile(path, threads=threads)(a, b, h, steps=2)
    inner, other = (slice(None, -1), slice(-lo, -1)), (slice(None, -1), slice(3, -1 - more))
    for _ in range(2):
        x, y = a[inner].copy(), b[other].copy()
        a[inner] = x * h[:-1, -lo - 1 : -2] + y
        b[other] = y * h[1:, -lo:-1]
    for got, expected in zip(found, (a, b), strict=True):
        assert np.array_equal(got, expected)


SHAPES = [(77,), (1, 1), (6, 37), (3, 5, 21)]
TILES = [
    RegisterTile(1, 1),
    RegisterTile(3, 2),
    RegisterTile(4, 1, 32),
    RegisterTile(2, 1, planes=2),
]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.planes}x{t.rows}x{t.vectors}")
@pytest.mark.parametrize("element", ["f64", "f32"])
def test_blocks_and_what_they_leave(tmp_path, monkeypatch, large, tile, element):
    monkeypatch.setattr("twofour.runtime.threads.WAKING_POINTS", 1)
    monkeypatch.setattr(large_arrays, "past_caches", lambda *_: large)
    monkeypatch.setattr(apply_to_vector, "_tile", lambda *_: tile)
    monkeypatch.setattr(apply_to_vector, "FOLLOWED", 1)
    for shape in SHAPES:
        rank = len(shape)
        field = f"!stencil.field<{'x'.join(f'[-1,{n + 1}]' for n in shape)}x{element}>"
        temp = f"!stencil.temp<{'?x' * rank}{element}>"
        ends = (0,) * (rank - 1)
        box = f"<{[0] * rank}, {list(shape)}>"
        text = f"""
func.func @program(%u : {field}, %v : {field}, %w : {field}) {{
  %t = stencil.load %u : {field} -> {temp}
  %r, %s = stencil.apply(%a = %t : {temp}) -> ({temp}, {temp}) {{
    %x = stencil.access %a{[*ends, -1]} : {temp}
    %y = stencil.access %a{[*ends, 1]} : {temp}
    %z = stencil.access %a{[1] * rank} : {temp}
    %p = arith.mulf %x, %y : {element}
    %q = arith.mulf %p, %z : {element}
    stencil.return %p, %q : {element}, {element}
  }}
  stencil.store %r to %v({box}) : {temp} to {field}
  stencil.store %s to %w({box}) : {temp} to {field}
  return
}}
"""
        values = np.random.default_rng(0).random([n + 2 for n in shape]).astype(DTYPES[element])
        path = tmp_path / "program.mlir"
        path.write_text(text)
        inside = tuple(slice(1, -1) for _ in shape)
        west, east = (values[(*inside[1:], slice(*ends))] for ends in ((None, -2), (2, None)))
        product = west * east
        expected = product, product * values[(slice(2, None),) * rank]
        for got, numbers in zip(twofour.compile(path, threads=2)(values), expected, strict=True):
            assert np.array_equal(got[inside], numbers)
