# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several fields of three axes that are timed (see FieldExample)."""

from twofour.bench.field_example import FieldExample

# Weights of a second derivative of order eight, of a point and of those 1 to 4 away.
SECOND_DERIVATIVE = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
REACH = len(SECOND_DERIVATIVE) - 1


def _laplacian() -> str:
    """MLIR of %s4, the sum of second derivatives of %u along all axes; %uc is the point."""
    lines = [
        f"%w{distance} = arith.constant {weight!r} : f64"
        for distance, weight in enumerate(SECOND_DERIVATIVE)
    ]
    lines += [
        "%three = arith.constant 3.0 : f64",
        "%uc = stencil.access %u[0, 0, 0] : !t",
        "%center = arith.mulf %three, %w0 : f64",
        "%s0 = arith.mulf %uc, %center : f64",
    ]
    for distance in range(1, REACH + 1):
        ends = []
        for axis in range(3):
            for sign in (-1, 1):
                offset = [0, 0, 0]
                offset[axis] = sign * distance
                ends.append(f"%u{distance}_{len(ends)}")
                lines.append(f"{ends[-1]} = stencil.access %u{offset} : !t")
        total = ends[0]
        for number, end in enumerate(ends[1:]):
            lines.append(f"%t{distance}_{number} = arith.addf {total}, {end} : f64")
            total = f"%t{distance}_{number}"
        lines += [
            f"%m{distance} = arith.mulf {total}, %w{distance} : f64",
            f"%s{distance} = arith.addf %s{distance - 1}, %m{distance} : f64",
        ]
    return "\n".join([*lines, ""])


def _c_laplacian() -> str:
    """The same in C."""
    terms = [f"{3 * SECOND_DERIVATIVE[0]!r} * a[1][x]"]
    for distance, weight in list(enumerate(SECOND_DERIVATIVE))[1:]:
        ends = " + ".join(f"a[1][x {s} {distance} * {u}]" for u in ("q", "p", "1") for s in "-+")
        terms.append(f"{weight!r} * ({ends})")
    return " + ".join(terms)


ACOUSTIC = FieldExample(
    "acoustic",
    "acoustic waves of order 8",
    (0, 1, 2),
    (3,),
    (1, 3, 2, 0),
    """\
%ot = stencil.load %f0 : !f -> !t
%ut = stencil.load %f1 : !f -> !t
%ct = stencil.load %f2 : !f -> !t
%r = stencil.apply(%o = %ot : !t, %u = %ut : !t, %c = %ct : !t) -> (!t) {
%two = arith.constant 2.0 : f64
%fifth = arith.constant 0.2 : f64
"""
    + _laplacian()
    + """\
%old = stencil.access %o[0, 0, 0] : !t
%speed = stencil.access %c[0, 0, 0] : !t
%scaled = arith.mulf %s4, %fifth : f64
%pull = arith.mulf %scaled, %speed : f64
%ahead = arith.mulf %uc, %two : f64
%moved = arith.addf %ahead, %pull : f64
%new = arith.subf %moved, %old : f64
stencil.return %new : f64
}
stencil.store %r to %f3({box}) : !t to !f
""",
    ((
        f"const double lap = {_c_laplacian()};",
        "a[3][x] = 2 * a[1][x] + 0.2 * a[2][x] * lap - a[0][x];",
    ),),
    rank=3,
    halo=REACH,
)  # fmt: skip

# A pressure and three velocities on a staggered grid.
SOUND = FieldExample(
    "sound",
    "sound in three axes, in place",
    (0, 1, 2, 3),
    (0, 1, 2, 3),
    (0, 1, 2, 3),
    """\
%xt = stencil.load %f0 : !f -> !t
%yt = stencil.load %f1 : !f -> !t
%zt = stencil.load %f2 : !f -> !t
%pt = stencil.load %f3 : !f -> !t
%xr, %yr, %zr = stencil.apply(
  %x = %xt : !t, %y = %yt : !t, %z = %zt : !t, %p = %pt : !t
) -> (!t, !t, !t) {
%half = arith.constant 0.5 : f64
%xc = stencil.access %x[0, 0, 0] : !t
%yc = stencil.access %y[0, 0, 0] : !t
%zc = stencil.access %z[0, 0, 0] : !t
%pc = stencil.access %p[0, 0, 0] : !t
%px = stencil.access %p[1, 0, 0] : !t
%py = stencil.access %p[0, 1, 0] : !t
%pz = stencil.access %p[0, 0, 1] : !t
%dx = arith.subf %px, %pc : f64
%dy = arith.subf %py, %pc : f64
%dz = arith.subf %pz, %pc : f64
%mx = arith.mulf %half, %dx : f64
%my = arith.mulf %half, %dy : f64
%mz = arith.mulf %half, %dz : f64
%xn = arith.subf %xc, %mx : f64
%yn = arith.subf %yc, %my : f64
%zn = arith.subf %zc, %mz : f64
stencil.return %xn, %yn, %zn : f64, f64, f64
}
stencil.store %xr to %f0({box}) : !t to !f
stencil.store %yr to %f1({box}) : !t to !f
stencil.store %zr to %f2({box}) : !t to !f
%xl = stencil.load %f0 : !f -> !t
%yl = stencil.load %f1 : !f -> !t
%zl = stencil.load %f2 : !f -> !t
%pr = stencil.apply(%x = %xl : !t, %y = %yl : !t, %z = %zl : !t, %p = %pt : !t) -> (!t) {
%half = arith.constant 0.5 : f64
%xc = stencil.access %x[0, 0, 0] : !t
%xb = stencil.access %x[-1, 0, 0] : !t
%yc = stencil.access %y[0, 0, 0] : !t
%yb = stencil.access %y[0, -1, 0] : !t
%zc = stencil.access %z[0, 0, 0] : !t
%zb = stencil.access %z[0, 0, -1] : !t
%pc = stencil.access %p[0, 0, 0] : !t
%dx = arith.subf %xc, %xb : f64
%dy = arith.subf %yc, %yb : f64
%dz = arith.subf %zc, %zb : f64
%dxy = arith.addf %dx, %dy : f64
%out = arith.addf %dxy, %dz : f64
%m = arith.mulf %half, %out : f64
%pn = arith.subf %pc, %m : f64
stencil.return %pn : f64
}
stencil.store %pr to %f3({box}) : !t to !f
""",
    (
        (
            "a[0][x] -= 0.5 * (a[3][x + q] - a[3][x]);",
            "a[1][x] -= 0.5 * (a[3][x + p] - a[3][x]);",
            "a[2][x] -= 0.5 * (a[3][x + 1] - a[3][x]);",
        ),
        (
            "const double dx = a[0][x] - a[0][x - q], dy = a[1][x] - a[1][x - p];",
            "a[3][x] -= 0.5 * (dx + dy + (a[2][x] - a[2][x - 1]));",
        ),
    ),
    rank=3,
)

CUBE_EXAMPLES = (ACOUSTIC, SOUND)
