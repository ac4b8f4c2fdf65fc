# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that load, sum up and store fields in any order, as texts and as NumPy runs them."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

# Targets, threads, and whether steps are skewed.
TARGETS = [
    ("cpu", 1, False),
    ("cpu", 3, False),
    ("cpu", 2, True),
    pytest.param("sim:sm_90", 1, False, marks=pytest.mark.full),
]
HALO, EXTENTS = 4, (81, 24)
FIELD = "!stencil.field<[-4,85]x[-4,28]xf64>"
TEMP = "!stencil.temp<?x?xf64>"
ARRAY = tuple(extent + 2 * HALO for extent in EXTENTS)
STORED = {
    "<[0, 0], [81, 24]>": (slice(4, 85), slice(4, 28)),
    "<[1, 2], [78, 24]>": (slice(5, 82), slice(6, 28)),
}
# Many at the point itself: results may then be written over what they are made from.
OFFSETS = st.just((0, 0)) | st.tuples(st.integers(-1, 1), st.integers(-1, 1))


@dataclass(frozen=True)
class Load:
    field: int


@dataclass(frozen=True)
class Apply:
    """One temp times a number or another temp, each at an offset, plus a third one."""

    temps: tuple[int, int]
    offsets: tuple[tuple[int, int], tuple[int, int]]
    is_linear: bool


@dataclass(frozen=True)
class Made:
    """A temp of an apply that reads none: a number, or the coordinate along an axis."""

    axis: int | None


@dataclass(frozen=True)
class Store:
    temp: int
    field: int
    box: str


@st.composite
def programs(draw):
    """Ops of a program over some fields, the last of which is a store."""
    fields = draw(st.integers(1, 3))
    ops, depths = [Load(0)], [0]
    for _ in range(draw(st.integers(1, 9))):
        kind = draw(st.sampled_from(["load", "apply", "apply", "siblings", "made", "store"]))
        shallow = [temp for temp, depth in enumerate(depths) if depth < HALO]
        if kind in ("apply", "siblings") and shallow:
            temps = draw(st.tuples(st.sampled_from(shallow), st.sampled_from(shallow)))
            box = draw(st.sampled_from([*STORED]))
            for _ in range(2 if kind == "siblings" else 1):
                ops.append(Apply(temps, draw(st.tuples(OFFSETS, OFFSETS)), draw(st.booleans())))
                depths.append(1 + max(depths[temp] for temp in temps))
                if kind == "siblings":
                    ops.append(Store(len(depths) - 1, draw(st.integers(0, fields - 1)), box))
        elif kind in ("load", "made"):
            is_load = kind == "load"
            made = st.builds(Made, st.none() | st.integers(0, 1))
            ops.append(draw(st.builds(Load, st.integers(0, fields - 1)) if is_load else made))
            depths.append(0)
        else:
            ops.append(draw(stores(len(depths), fields)))
    return fields, [*ops, draw(stores(len(depths), fields))]


def stores(temps, fields):
    return st.builds(
        Store, st.integers(0, temps - 1), st.integers(0, fields - 1), st.sampled_from([*STORED])
    )


def text_of(fields, ops):
    arguments = ", ".join(f"%f{n} : {FIELD}" for n in range(fields))
    lines, temps = [f"func.func @program({arguments}) {{"], 0
    for op in ops:
        if isinstance(op, Load):
            lines.append(f"%t{temps} = stencil.load %f{op.field} : {FIELD} -> {TEMP}")
            temps += 1
        elif isinstance(op, Made):
            value = ["%r = arith.constant 0.25 : f64"]
            if op.axis is not None:
                value = [
                    f"%i = stencil.index {op.axis} <[0, 0]>",
                    "%n = arith.index_cast %i : index to i64",
                    "%r = arith.sitofp %n : i64 to f64",
                ]
            lines.append(f"%t{temps} = stencil.apply() -> ({TEMP}) {{")
            lines += [*value, "stencil.return %r : f64", "}"]
            temps += 1
        elif isinstance(op, Store):
            lines.append(f"stencil.store %t{op.temp} to %f{op.field}({op.box}) : {TEMP} to {FIELD}")
        else:
            (one, other), (first, second) = op.temps, op.offsets
            factor = "%half" if op.is_linear else "%y"
            lines += [
                f"%t{temps} = stencil.apply(%a = %t{one} : {TEMP}, %b = %t{other} : {TEMP})"
                f" -> ({TEMP}) {{",
                "%half = arith.constant 0.5 : f64",
                f"%x = stencil.access %a[{first[0]}, {first[1]}] : {TEMP}",
                f"%y = stencil.access %b[{second[0]}, {second[1]}] : {TEMP}",
                f"%p = arith.mulf %x, {factor} : f64",
                "%r = arith.subf %p, %y : f64",
                "stencil.return %r : f64",
                "}",
            ]
            temps += 1
    return "\n".join([*lines, "return", "}"])


def shifted(values, offset):
    """Values at an offset; NaN where there are none."""
    found = np.full(values.shape, np.nan)
    places = [
        (slice(max(0, -o), n - max(0, o)), slice(max(0, o), n - max(0, -o)))
        for o, n in zip(offset, values.shape, strict=True)
    ]
    found[tuple(to for to, _ in places)] = values[tuple(at for _, at in places)]
    return found


def assert_stores(step, fields, run, seed=0):
    """Call a program on random arrays; `run(arrays)` changes them as it should.

    Where nothing is stored, a field that is not loaded may hold anything. Returns how many numbers
    of each result are known.
    """
    arrays = [np.random.default_rng((seed, n)).uniform(-1, 1, ARRAY) for n in range(fields)]
    loaded = [field.position for field in step.inputs]
    after = [
        array.copy() if n in loaded else np.full(ARRAY, np.nan) for n, array in enumerate(arrays)
    ]
    results = step(*(arrays[n] for n in loaded))
    results = results if isinstance(results, tuple) else (results,)
    run(after)
    counts = []
    for field, result in zip(step.outputs, results, strict=True):
        known = ~np.isnan(after[field.position])
        counts.append(known.sum())
        np.testing.assert_allclose(
            result[known], after[field.position][known], rtol=1e-12, atol=1e-12
        )
    return counts


def run(ops, arrays):
    """Evaluate ops on arrays, which they change."""
    temps = []
    for op in ops:
        if isinstance(op, Load):
            temps.append(arrays[op.field].copy())
        elif isinstance(op, Made):
            places = np.indices(ARRAY, dtype=float) - HALO
            temps.append(np.full(ARRAY, 0.25) if op.axis is None else places[op.axis])
        elif isinstance(op, Store):
            box = STORED[op.box]
            arrays[op.field][box] = temps[op.temp][box]
        else:
            x, y = (shifted(temps[t], o) for t, o in zip(op.temps, op.offsets, strict=True))
            temps.append(x * (0.5 if op.is_linear else y) - y)
