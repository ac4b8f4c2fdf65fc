# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several fields of two axes that are timed (see FieldExample)."""

from twofour.bench.field_example import FieldExample


def _laplacian(field: str, name: str) -> str:
    """MLIR of the sum of four neighbours less four times the point, which is %{name}c."""
    return f"""\
%{name}n = stencil.access {field}[-1, 0] : !t
%{name}s = stencil.access {field}[1, 0] : !t
%{name}w = stencil.access {field}[0, -1] : !t
%{name}e = stencil.access {field}[0, 1] : !t
%{name}c = stencil.access {field}[0, 0] : !t
%{name}0 = arith.addf %{name}n, %{name}s : f64
%{name}1 = arith.addf %{name}w, %{name}e : f64
%{name}2 = arith.addf %{name}0, %{name}1 : f64
%{name}3 = arith.mulf %{name}c, %four : f64
%{name}lap = arith.subf %{name}2, %{name}3 : f64
"""


WAVE = FieldExample(
    "wave",
    "wave equation",
    (0, 1),
    (2,),
    (1, 2, 0),
    """\
%ot = stencil.load %f0 : !f -> !t
%ut = stencil.load %f1 : !f -> !t
%r = stencil.apply(%o = %ot : !t, %u = %ut : !t) -> (!t) {
%four = arith.constant 4.0 : f64
%quarter = arith.constant 0.25 : f64
%two = arith.constant 2.0 : f64
"""
    + _laplacian("%u", "u")
    + """\
%old = stencil.access %o[0, 0] : !t
%pull = arith.mulf %ulap, %quarter : f64
%ahead = arith.mulf %uc, %two : f64
%moved = arith.addf %ahead, %pull : f64
%new = arith.subf %moved, %old : f64
stencil.return %new : f64
}
stencil.store %r to %f2({box}) : !t to !f
""",
    ((
        "const double lap = a[1][x - p] + a[1][x + p] + a[1][x - 1] + a[1][x + 1] - 4 * a[1][x];",
        "a[2][x] = 2 * a[1][x] + 0.25 * lap - a[0][x];",
    ),),
)  # fmt: skip

MEDIUM = FieldExample(
    "medium",
    "waves in a medium",
    (0, 1, 2),
    (3,),
    (1, 3, 2, 0),
    """\
%ot = stencil.load %f0 : !f -> !t
%ut = stencil.load %f1 : !f -> !t
%ct = stencil.load %f2 : !f -> !t
%r = stencil.apply(%o = %ot : !t, %u = %ut : !t, %c = %ct : !t) -> (!t) {
%four = arith.constant 4.0 : f64
%quarter = arith.constant 0.25 : f64
%two = arith.constant 2.0 : f64
"""
    + _laplacian("%u", "u")
    + """\
%old = stencil.access %o[0, 0] : !t
%speed = stencil.access %c[0, 0] : !t
%scaled = arith.mulf %ulap, %quarter : f64
%pull = arith.mulf %scaled, %speed : f64
%ahead = arith.mulf %uc, %two : f64
%moved = arith.addf %ahead, %pull : f64
%new = arith.subf %moved, %old : f64
stencil.return %new : f64
}
stencil.store %r to %f3({box}) : !t to !f
""",
    ((
        "const double lap = a[1][x - p] + a[1][x + p] + a[1][x - 1] + a[1][x + 1] - 4 * a[1][x];",
        "a[3][x] = 2 * a[1][x] + 0.25 * a[2][x] * lap - a[0][x];",
    ),),
)  # fmt: skip

GRAY_SCOTT = FieldExample(
    "gray_scott",
    "Gray-Scott",
    (0, 1),
    (2, 3),
    (2, 3, 0, 1),
    """\
%ut = stencil.load %f0 : !f -> !t
%vt = stencil.load %f1 : !f -> !t
%ur, %vr = stencil.apply(%u = %ut : !t, %v = %vt : !t) -> (!t, !t) {
%four = arith.constant 4.0 : f64
%one = arith.constant 1.0 : f64
%du = arith.constant 0.16 : f64
%dv = arith.constant 0.08 : f64
%feed = arith.constant 0.035 : f64
%drain = arith.constant 0.1 : f64
"""
    + _laplacian("%u", "u")
    + _laplacian("%v", "v")
    + """\
%square = arith.mulf %vc, %vc : f64
%react = arith.mulf %uc, %square : f64
%left = arith.subf %one, %uc : f64
%fed = arith.mulf %left, %feed : f64
%lost = arith.mulf %vc, %drain : f64
%ud = arith.mulf %ulap, %du : f64
%vd = arith.mulf %vlap, %dv : f64
%u4 = arith.addf %uc, %ud : f64
%u5 = arith.subf %u4, %react : f64
%u6 = arith.addf %u5, %fed : f64
%v4 = arith.addf %vc, %vd : f64
%v5 = arith.addf %v4, %react : f64
%v6 = arith.subf %v5, %lost : f64
stencil.return %u6, %v6 : f64, f64
}
stencil.store %ur to %f2({box}) : !t to !f
stencil.store %vr to %f3({box}) : !t to !f
""",
    ((
        "const double u = a[0][x], v = a[1][x], react = u * (v * v);",
        "const double ul = a[0][x - p] + a[0][x + p] + a[0][x - 1] + a[0][x + 1] - 4 * u;",
        "const double vl = a[1][x - p] + a[1][x + p] + a[1][x - 1] + a[1][x + 1] - 4 * v;",
        "a[2][x] = u + 0.16 * ul - react + 0.035 * (1 - u);",
        "a[3][x] = v + 0.08 * vl + react - 0.1 * v;",
    ),),
)  # fmt: skip

FDTD = FieldExample(
    "fdtd",
    "FDTD, in place",
    (0, 1, 2),
    (0, 1, 2),
    (0, 1, 2),
    """\
%xt = stencil.load %f0 : !f -> !t
%yt = stencil.load %f1 : !f -> !t
%ht = stencil.load %f2 : !f -> !t
%xr, %yr = stencil.apply(%x = %xt : !t, %y = %yt : !t, %h = %ht : !t) -> (!t, !t) {
%half = arith.constant 0.5 : f64
%xc = stencil.access %x[0, 0] : !t
%yc = stencil.access %y[0, 0] : !t
%hc = stencil.access %h[0, 0] : !t
%hw = stencil.access %h[0, -1] : !t
%hn = stencil.access %h[-1, 0] : !t
%dx = arith.subf %hc, %hn : f64
%dy = arith.subf %hc, %hw : f64
%mx = arith.mulf %half, %dx : f64
%my = arith.mulf %half, %dy : f64
%xn = arith.addf %xc, %mx : f64
%yn = arith.subf %yc, %my : f64
stencil.return %xn, %yn : f64, f64
}
stencil.store %xr to %f0({box}) : !t to !f
stencil.store %yr to %f1({box}) : !t to !f
%xl = stencil.load %f0 : !f -> !t
%yl = stencil.load %f1 : !f -> !t
%hr = stencil.apply(%x = %xl : !t, %y = %yl : !t, %h = %ht : !t) -> (!t) {
%half = arith.constant 0.5 : f64
%xc = stencil.access %x[0, 0] : !t
%xs = stencil.access %x[1, 0] : !t
%yc = stencil.access %y[0, 0] : !t
%ye = stencil.access %y[0, 1] : !t
%hc = stencil.access %h[0, 0] : !t
%dx = arith.subf %xs, %xc : f64
%dy = arith.subf %ye, %yc : f64
%curl = arith.subf %dx, %dy : f64
%m = arith.mulf %half, %curl : f64
%hn = arith.addf %hc, %m : f64
stencil.return %hn : f64
}
stencil.store %hr to %f2({box}) : !t to !f
""",
    (
        (
            "a[0][x] = a[0][x] + 0.5 * (a[2][x] - a[2][x - p]);",
            "a[1][x] = a[1][x] - 0.5 * (a[2][x] - a[2][x - 1]);",
        ),
        (
            "const double curl = (a[0][x + p] - a[0][x]) - (a[1][x + 1] - a[1][x]);",
            "a[2][x] = a[2][x] + 0.5 * curl;",
        ),
    ),
)

# Two velocities and three stresses on a staggered grid.
ELASTIC = FieldExample(
    "elastic",
    "elastic waves, in place",
    (0, 1, 2, 3, 4),
    (0, 1, 2, 3, 4),
    (0, 1, 2, 3, 4),
    """\
%ut = stencil.load %f0 : !f -> !t
%vt = stencil.load %f1 : !f -> !t
%xt = stencil.load %f2 : !f -> !t
%yt = stencil.load %f3 : !f -> !t
%st = stencil.load %f4 : !f -> !t
%ur, %vr = stencil.apply(
  %u = %ut : !t, %v = %vt : !t, %x = %xt : !t, %y = %yt : !t, %s = %st : !t
) -> (!t, !t) {
%third = arith.constant 0.3 : f64
%uc = stencil.access %u[0, 0] : !t
%vc = stencil.access %v[0, 0] : !t
%xc = stencil.access %x[0, 0] : !t
%xe = stencil.access %x[0, 1] : !t
%yc = stencil.access %y[0, 0] : !t
%ys = stencil.access %y[1, 0] : !t
%sc = stencil.access %s[0, 0] : !t
%sw = stencil.access %s[0, -1] : !t
%sn = stencil.access %s[-1, 0] : !t
%xd = arith.subf %xe, %xc : f64
%yd = arith.subf %ys, %yc : f64
%sx = arith.subf %sc, %sw : f64
%sy = arith.subf %sc, %sn : f64
%uf = arith.addf %xd, %sy : f64
%vf = arith.addf %sx, %yd : f64
%um = arith.mulf %third, %uf : f64
%vm = arith.mulf %third, %vf : f64
%un = arith.addf %uc, %um : f64
%vn = arith.addf %vc, %vm : f64
stencil.return %un, %vn : f64, f64
}
stencil.store %ur to %f0({box}) : !t to !f
stencil.store %vr to %f1({box}) : !t to !f
%ul = stencil.load %f0 : !f -> !t
%vl = stencil.load %f1 : !f -> !t
%xr, %yr, %sr = stencil.apply(
  %u = %ul : !t, %v = %vl : !t, %x = %xt : !t, %y = %yt : !t, %s = %st : !t
) -> (!t, !t, !t) {
%third = arith.constant 0.3 : f64
%tenth = arith.constant 0.1 : f64
%uc = stencil.access %u[0, 0] : !t
%uw = stencil.access %u[0, -1] : !t
%us = stencil.access %u[1, 0] : !t
%vc = stencil.access %v[0, 0] : !t
%vn = stencil.access %v[-1, 0] : !t
%ve = stencil.access %v[0, 1] : !t
%xc = stencil.access %x[0, 0] : !t
%yc = stencil.access %y[0, 0] : !t
%sc = stencil.access %s[0, 0] : !t
%ux = arith.subf %uc, %uw : f64
%vy = arith.subf %vc, %vn : f64
%uy = arith.subf %us, %uc : f64
%vx = arith.subf %ve, %vc : f64
%x0 = arith.mulf %third, %ux : f64
%x1 = arith.mulf %tenth, %vy : f64
%y0 = arith.mulf %tenth, %ux : f64
%y1 = arith.mulf %third, %vy : f64
%shear = arith.addf %uy, %vx : f64
%x2 = arith.addf %x0, %x1 : f64
%y2 = arith.addf %y0, %y1 : f64
%s2 = arith.mulf %tenth, %shear : f64
%xn = arith.addf %xc, %x2 : f64
%yn = arith.addf %yc, %y2 : f64
%sn = arith.addf %sc, %s2 : f64
stencil.return %xn, %yn, %sn : f64, f64, f64
}
stencil.store %xr to %f2({box}) : !t to !f
stencil.store %yr to %f3({box}) : !t to !f
stencil.store %sr to %f4({box}) : !t to !f
""",
    (
        (
            "a[0][x] += 0.3 * ((a[2][x + 1] - a[2][x]) + (a[4][x] - a[4][x - p]));",
            "a[1][x] += 0.3 * ((a[4][x] - a[4][x - 1]) + (a[3][x + p] - a[3][x]));",
        ),
        (
            "const double ux = a[0][x] - a[0][x - 1], vy = a[1][x] - a[1][x - p];",
            "a[2][x] += 0.3 * ux + 0.1 * vy;",
            "a[3][x] += 0.1 * ux + 0.3 * vy;",
            "a[4][x] += 0.1 * ((a[0][x + p] - a[0][x]) + (a[1][x + 1] - a[1][x]));",
        ),
    ),
)

PLANE_EXAMPLES = (WAVE, MEDIUM, GRAY_SCOTT, FDTD, ELASTIC)
