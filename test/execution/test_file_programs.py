# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from files, compiled and compared with the same computation written in NumPy."""

import numpy as np
import pytest

import reference
import twofour


@pytest.fixture
def compiled(tmp_path):
    """A function that compiles the text of a program."""

    def build(text: str, **options):
        path = tmp_path / "program.mlir"
        path.write_text(text)
        return twofour.compile(str(path), **options)

    return build


def random_field(shape, seed=0, low=-1.0, high=1.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape)


def refilled(field: np.ndarray, halo: int, boundary) -> np.ndarray:
    """The field with a halo of one width refilled, axis by axis; `fixed` axes keep theirs."""
    for axis, mode in enumerate(boundary):
        if mode != "fixed":
            inside = field.take(range(halo, field.shape[axis] - halo), axis)
            field = reference.pad(inside, axis, mode, halo, halo)
    return field


def close(got, expected, tolerance=1e-13):
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


BOUNDARIES = [
    ("fixed", "fixed"),
    ("periodic", "periodic"),
    ("reflect", "zero"),
    ("fixed", "nearest"),
    ("constant(0.5)", "fixed"),
]

# Two coupled fields; the first apply has two results, which the second reads around the point.
COUPLED = """
!field = !stencil.field<[-2,15]x[-2,18]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @coupled(%u : !field, %v : !field, %p : !field, %q : !field) {
  %ut = stencil.load %u : !field -> !temp
  %vt = stencil.load %v : !field -> !temp
  %l, %m = stencil.apply(%a = %ut : !temp, %b = %vt : !temp) -> (!temp, !temp) {
    %n = stencil.access %a[-1, 0] : !temp
    %s = stencil.access %a[1, 0] : !temp
    %e = stencil.access %b[0, 1] : !temp
    %c = stencil.access %b[0, 0] : !temp
    %x = arith.subf %s, %n : f64
    %y = arith.addf %e, %c : f64
    stencil.return %x, %y : f64, f64
  }
  %r, %t = stencil.apply(%a = %ut : !temp, %d = %l : !temp, %f = %m : !temp) -> (!temp, !temp) {
    %quarter = arith.constant 0.25 : f64
    %c = stencil.access %a[0, 0] : !temp
    %dn = stencil.access %d[-1, 0] : !temp
    %ds = stencil.access %d[1, 0] : !temp
    %fw = stencil.access %f[0, -1] : !temp
    %0 = arith.addf %dn, %ds : f64
    %1 = arith.mulf %0, %quarter : f64
    %2 = arith.addf %c, %1 : f64
    %3 = arith.mulf %quarter, %fw : f64
    stencil.return %2, %3 : f64, f64
  }
  stencil.store %r to %p(<[0, 0], [13, 16]>) : !temp to !field
  stencil.store %t to %q(<[0, 0], [13, 16]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=",".join)
def test_coupled_fields(compiled, boundary):
    u, v = random_field((17, 20), 1), random_field((17, 20), 2)
    program = compiled(COUPLED, boundary=boundary)
    states = [program(u, v, steps=steps) for steps in range(1, 5)]
    for got in states:
        u, v = refilled(u, 2, boundary), refilled(v, 2, boundary)
        slope, mean = u[2:] - u[:-2], v[:, 1:] + v[:, :-1]
        p, q = u.copy(), v.copy()
        p[2:-2, 2:-2] += 0.25 * (slope[:-2] + slope[2:])[:, 2:-2]
        q[2:-2, 2:-2] = 0.25 * mean[2:-2, 1:-2]
        u, v = p, q
        close(got[0], refilled(u, 2, boundary))
        close(got[1], refilled(v, 2, boundary))


WAVE = """
!field = !stencil.field<[-1,21]x[-1,10]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @wave(%old : !field, %now : !field, %next : !field)
    attributes {stencil.rotation = array<i64: 1, 2, 0>} {
  %ot = stencil.load %old : !field -> !temp
  %nt = stencil.load %now : !field -> !temp
  %r = stencil.apply(%o = %ot : !temp, %u = %nt : !temp) -> (!temp) {
    %speed = arith.constant 0.2 : f64
    %n = stencil.access %u[-1, 0] : !temp
    %s = stencil.access %u[1, 0] : !temp
    %w = stencil.access %u[0, -1] : !temp
    %e = stencil.access %u[0, 1] : !temp
    %c = stencil.access %u[0, 0] : !temp
    %b = stencil.access %o[0, 0] : !temp
    %four = arith.constant 4.0 : f64
    %two = arith.constant 2.0 : f64
    %0 = arith.addf %n, %s : f64
    %1 = arith.addf %w, %e : f64
    %2 = arith.addf %0, %1 : f64
    %3 = arith.mulf %c, %four : f64
    %4 = arith.subf %2, %3 : f64
    %5 = arith.mulf %4, %speed : f64
    %6 = arith.mulf %two, %c : f64
    %7 = arith.addf %6, %5 : f64
    %8 = arith.subf %7, %b : f64
    stencil.return %8 : f64
  }
  stencil.store %r to %next(<[0, 0], [20, 9]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=",".join)
def test_wave_with_three_time_levels(compiled, boundary):
    now = random_field((22, 11), 1)
    old = now.copy()
    old[1:-1, 1:-1] = random_field((20, 9), 2)
    program = compiled(WAVE, boundary=boundary)
    states = [program(old, now, steps=steps) for steps in range(1, 8)]
    for got in states:
        now = refilled(now, 1, boundary)
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        following = now.copy()
        following[1:-1, 1:-1] += now[1:-1, 1:-1] - old[1:-1, 1:-1]
        following[1:-1, 1:-1] += 0.2 * (around - 4 * now[1:-1, 1:-1])
        old, now = now, following
        close(got, refilled(now, 1, boundary), 1e-12)


def test_index_counts_from_the_origin_of_the_bounds(compiled):
    program = compiled("""
!field = !stencil.field<[-3,6]x[2,9]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @ramp(%u: !field, %v: !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %i = stencil.index 0 <[0, 0]>
    %j = stencil.index 1 <[0, -4]>
    %ten = arith.constant 10 : index
    %k = arith.muli %i, %ten : index
    %n = arith.addi %k, %j : index
    %w = arith.index_cast %n : index to i64
    %x = arith.sitofp %w : i64 to f64
    %c = stencil.access %a[0, 1] : !temp
    %y = arith.addf %x, %c : f64
    stencil.return %y : f64
  }
  stencil.store %r to %v(<[-2, 3], [5, 8]>) : !temp to !field
  return
}""")
    u = random_field((9, 7))
    expected = u.copy()
    i, j = np.mgrid[-2:5, 3:8]
    expected[1:8, 1:6] = 10 * i + (j - 4) + u[1:8, 2:7]
    close(program(u), expected)


def test_fields_of_lower_rank_and_scalars(compiled):
    program = compiled("""
!box = !stencil.field<[0,6]x[-1,8]x[0,5]xf64>
!temp = !stencil.temp<?x?x?xf64>
!line = !stencil.temp<?xf64>
!plane = !stencil.temp<?x?xf64>
func.func @layers(%k: f32, %u: !box, %y: !stencil.field<[-1,8]xf64>, %n: i32,
    %xz: !stencil.field<[0,7]x[0,5]xf64>, %g: f64, %out: !box) {
  %ut = stencil.load %u : !box -> !temp
  %yt = stencil.load %y : !stencil.field<[-1,8]xf64> -> !line
  %xzt = stencil.load %xz : !stencil.field<[0,7]x[0,5]xf64> -> !plane
  %r = stencil.apply(%a = %ut : !temp, %p = %yt : !line,
      %m = %xzt : !plane, %k0 = %k : f32, %n0 = %n : i32,
      %g0 = %g : f64) -> (!temp) {
    %0 = stencil.access %a[0, 1, 0] : !temp
    %1 = stencil.access %p[_, -1, _] : !line
    %2 = stencil.access %m[1, _, 0] : !plane
    %3 = arith.mulf %0, %1 : f64
    %4 = arith.divf %3, %2 : f64
    %5 = arith.extf %k0 : f32 to f64
    %6 = arith.mulf %4, %5 : f64
    %7 = arith.sitofp %n0 : i32 to f64
    %8 = arith.addf %6, %7 : f64
    %9 = arith.mulf %8, %g0 : f64
    stencil.return %9 : f64
  }
  stencil.store %r to %out(<[0, 0, 0], [6, 7, 5]>) : !temp to !box
  return
}""")
    u, y = random_field((6, 9, 5), 1), random_field(9, 2)
    xz = random_field((7, 5), 3, 1.0, 2.0)
    got = program(u, y, xz, scalars=[0.375, -3, 1.5])
    expected = u.copy()
    ratio = u[:, 2:] * y[None, :-2, None] / xz[1:, None, :]
    expected[:, 1:8] = (ratio * 0.375 - 3) * 1.5
    close(got, expected)


NONLINEAR = """
!field = !stencil.field<[-1,34]x[0,3]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @limited(%u: !field, %out: !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[-1, 0] : !temp
    %c = stencil.access %a[0, 0] : !temp
    %h = stencil.access %a[1, 0] : !temp
    %zero = arith.constant 0.0 : f64
    %below = arith.subf %c, %l : f64
    %above = arith.subf %h, %c : f64
    %product = arith.mulf %below, %above : f64
    %same = arith.cmpf ogt, %product, %zero : f64
    %small = math.absf %below : f64
    %root = math.sqrt %small : f64
    %limited = arith.select %same, %root, %zero : f64
    %new = arith.addf %c, %limited : f64
    stencil.return %new : f64
  }
  stencil.store %r to %out(<[0, 0], [33, 3]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("boundary", [("fixed", "fixed"), ("periodic", "zero")], ids=",".join)
def test_products_and_selections(compiled, boundary):
    program = compiled(NONLINEAR, boundary=boundary)
    assert program.schedule == "loops"
    u = random_field((35, 3))
    got = program(u, steps=3)
    for _ in range(3):
        below, above = np.diff(u, axis=0)[:-1], np.diff(u, axis=0)[1:]
        if boundary[0] == "periodic":
            u[0], u[-1] = u[-2], u[1]
            below, above = np.diff(u, axis=0)[:-1], np.diff(u, axis=0)[1:]
        u = u.copy()
        u[1:-1] += np.where(below * above > 0, np.sqrt(np.abs(below)), 0.0)
    if boundary[0] == "periodic":
        u[0], u[-1] = u[-2], u[1]
    close(got, u)


LOOP = """
!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @march(%a: !field, %b: !field, %count: index) -> !field {
  %begin = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last, %other = scf.for %i = %begin to %count step %one
      iter_args(%now = %a, %next = %b) -> (!field, !field) {
    %t = stencil.load %now : !field -> !temp
    %r = stencil.apply(%x = %t : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %h = stencil.access %x[1] : !temp
      %w = arith.constant 0.3 : f64
      %v = arith.constant 0.7 : f64
      %0 = arith.mulf %w, %l : f64
      %1 = math.fma %v, %h, %0 : f64
      stencil.return %1 : f64
    }
    stencil.store %r to %next(<[0], [40]>) : !temp to !field
    scf.yield %next, %now : !field, !field
  }
  return %last : !field
}
"""


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_time_loop_in_the_file(compiled, count):
    a, b = random_field(42, 1), random_field(42, 2)
    got = compiled(LOOP)(a, b, scalars=[count])
    for step in range(count):
        now, following = (a, b) if step % 2 == 0 else (b, a)
        following[1:-1] = 0.3 * now[:-2] + 0.7 * now[2:]
    close(got[0], a)
    close(got[1], b)


@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
def test_field_that_is_read_and_written(compiled, shift):
    """Loads take the values from before the store, whichever way the point looks."""
    program = compiled(f"""
!field = !stencil.field<[-2,202]x[0,3]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @inplace(%u: !field) {{
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {{
    %x = stencil.access %a[{shift}, 0] : !temp
    %y = stencil.access %a[0, 0] : !temp
    %half = arith.constant 0.5 : f64
    %z = arith.mulf %half, %y : f64
    %s = arith.addf %x, %z : f64
    stencil.return %s : f64
  }}
  stencil.store %r to %u(<[0, 0], [200, 3]>) : !temp to !field
  return
}}""")
    u = random_field((204, 3))
    expected = u.copy()
    for _ in range(3):
        expected[2:-2] = expected[2 + shift : 202 + shift] + 0.5 * expected[2:-2]
    close(program(u, steps=3), expected)


def test_store_before_a_later_load(compiled):
    """A field that one apply writes and a second one reads, in the order of the program."""
    program = compiled("""
!field = !stencil.field<[-1,19]xf64>
!temp = !stencil.temp<?xf64>
func.func @two(%u: !field, %v: !field) {
  %t = stencil.load %u : !field -> !temp
  %early = stencil.load %v : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[-1] : !temp
    %h = stencil.access %a[1] : !temp
    %0 = arith.addf %l, %h : f64
    stencil.return %0 : f64
  }
  stencil.store %r to %v(<[0], [18]>) : !temp to !field
  %late = stencil.load %v : !field -> !temp
  %s = stencil.apply(%a = %early : !temp, %b = %late : !temp) -> (!temp) {
    %0 = stencil.access %a[1] : !temp
    %1 = stencil.access %b[1] : !temp
    %2 = arith.subf %0, %1 : f64
    stencil.return %2 : f64
  }
  stencil.store %s to %u(<[0], [18]>) : !temp to !field
  return
}""")
    u, v = random_field(20, 1), random_field(20, 2)
    got = program(u, v)
    later = v.copy()
    later[1:-1] = u[:-2] + u[2:]
    first = u.copy()
    first[1:-1] = v[2:] - later[2:]
    close(got[0], first)
    close(got[1], later)


def test_memrefs_loaded_and_stored(compiled):
    program = compiled("""
!wide = !stencil.field<[0,8]x[-2,18]xf64>
!inner = !stencil.field<[0,8]x[0,16]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @outside(%in: memref<8x20xf64>, %out: memref<8x16xf64>, %copy: memref<8x16xf64>) {
  %u = stencil.external_load %in : memref<8x20xf64> -> !wide
  %v = stencil.external_load %out : memref<8x16xf64> -> !inner
  %t = stencil.load %u : !wide -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[0, -2] : !temp
    %h = stencil.access %a[0, 2] : !temp
    %x = arith.mulf %l, %h : f64
    stencil.return %x : f64
  }
  stencil.store %r to %v(<[0, 0], [8, 16]>) : !temp to !inner
  stencil.external_store %v to %copy : !inner to memref<8x16xf64>
  return
}""")
    u = random_field((8, 20))
    for result in program(u):
        close(result, u[:, :-4] * u[:, 4:])


# Linear in one field with hidden constants; in generic form.
LINEAR = """
!field = !stencil.field<#stencil.bounds<[-2, -3], [21, 38]>, f64>
!temp = !stencil.temp<2 : i64, f64>
func.func @linear(%u: !field, %v: !field) {
  %outer = arith.constant 0.5 : f64
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -2, 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 0, 3>} : (!temp) -> f64
    %c = "stencil.access"(%t) {offset = array<i64: 0, 3>} : (!temp) -> f64
    %d = "stencil.access"(%t) {offset = array<i64: 1, -1>} : (!temp) -> f64
    %four = arith.constant 4.0 : f64
    %0 = arith.mulf %outer, %a : f64
    %1 = arith.negf %b : f64
    %2 = arith.divf %c, %four : f64
    %3 = arith.subf %1, %2 : f64
    %4 = math.fma %d, %outer, %3 : f64
    %5 = arith.addf %4, %0 : f64
    "stencil.return"(%5) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [20, 35]>} : (!temp, !field) -> ()
  return
}
"""
LINEAR_WEIGHTS = {(-2, 0): 0.5, (0, 3): -1.25, (1, -1): 0.5}


@pytest.mark.parametrize("schedule", ["direct", "sparse"])
@pytest.mark.parametrize("fuse_steps", [1, 2])
@pytest.mark.parametrize("boundary", BOUNDARIES, ids=",".join)
def test_linear_program_in_generic_form(compiled, schedule, fuse_steps, boundary):
    """The halo is the field's own: wider than the stencil reaches, and never stale."""
    program = compiled(LINEAR, schedule=schedule, boundary=boundary, fuse_steps=fuse_steps)
    assert program.schedule == schedule
    u = random_field((23, 41))
    for steps in (0, 1, 2, 5):
        got = program(u, steps=steps)
        expected = u
        for _ in range(steps):
            source = halo_of_linear(expected, boundary)
            expected = source.copy()
            total = sum(
                weight * source[2 + i : 22 + i, 3 + j : 38 + j]
                for (i, j), weight in LINEAR_WEIGHTS.items()
            )
            expected[2:22, 3:38] = total
        if steps:
            expected = halo_of_linear(expected, boundary)
        close(got, expected)


def halo_of_linear(field: np.ndarray, boundary) -> np.ndarray:
    for axis, (mode, below, above) in enumerate(zip(boundary, (2, 3), (1, 3), strict=True)):
        if mode != "fixed":
            inside = field.take(range(below, field.shape[axis] - above), axis)
            field = reference.pad(inside, axis, mode, below, above)
    return field


@pytest.mark.parametrize(
    ("dtype", "kind", "tolerance"), [("f32", np.float32, 1e-6), ("f16", np.float16, 2e-3)]
)
@pytest.mark.parametrize("text", [LINEAR, NONLINEAR], ids=["linear", "nonlinear"])
def test_other_element_type_than_in_the_file(compiled, text, dtype, kind, tolerance):
    shape = (23, 41) if text is LINEAR else (35, 3)
    # Away from the jumps of the selection, which rounding could turn.
    u = np.linspace(0, 4, shape[0] * shape[1]).reshape(shape).astype(kind)
    got = compiled(text, dtype=dtype)(u)
    assert got.dtype == kind
    wide = compiled(text)(u.astype(np.float64))
    np.testing.assert_allclose(got.astype(np.float64), wide, rtol=tolerance, atol=tolerance)


def test_function_by_name_and_inputs_unchanged(compiled):
    second = LINEAR[LINEAR.index("func.func") :].replace("@linear", "@second")
    text = LINEAR + second.replace("%four = arith.constant 4.0", "%four = arith.constant 2.0")
    u = random_field((23, 41))
    kept = u.copy()
    one, two = (compiled(text, function=name)(u) for name in ("linear", "second"))
    np.testing.assert_array_equal(u, kept)
    close(one, compiled(LINEAR)(u))
    expected = one.copy()
    expected[2:22, 3:38] -= 0.25 * u[2:22, 6:41]
    close(two, expected)


def test_store_to_part_of_a_field_keeps_the_rest(compiled):
    text = LINEAR.replace("bounds<[0, 0], [20, 35]>}", "bounds<[4, 5], [9, 6]>}")
    u = random_field((23, 41))
    got = compiled(text)(u)
    expected = u.copy()
    expected[6:11, 8:9] = sum(
        weight * u[6 + i : 11 + i, 8 + j : 9 + j] for (i, j), weight in LINEAR_WEIGHTS.items()
    )
    close(got, expected)


def test_field_of_one_point(compiled):
    text = LINEAR.replace("<[-2, -3], [21, 38]>, f64", "<[-2, -3], [2, 4]>, f64")
    program = compiled(text.replace("<[0, 0], [20, 35]>}", "<[0, 0], [1, 1]>}"), boundary="reflect")
    u = np.full((4, 7), np.nan)
    u[2, 3] = 2.0
    close(program(u, steps=3), np.full((4, 7), 2.0 * (0.5 - 1.25 + 0.5) ** 3))
