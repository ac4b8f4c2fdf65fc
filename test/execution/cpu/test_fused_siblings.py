# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neighbouring computations in one kernel: the bits of kernels of their own, in place."""

import itertools

import numpy as np
import pytest

import twofour
from twofour.dialects.stencil import large_arrays
from twofour.dialects.stencil.transforms import fuse_siblings
from twofour.options import CompileOptions
from twofour.targets.cpu.build import compile_cpu

HALO = 2
NUMPY = {"f64": np.float64, "f32": np.float32}
TERMS = {"f64": 1e-14, "f32": 1e-6}


def at(rank, **places):
    """An offset of so many axes, zero along those that are not given."""
    return tuple(places.get(axis, 0) for axis in "xyz"[:rank])


# Updates one after another, those of a tuple by applies that stand side by side: the field that is
# written, and terms (weight, field, offset) that are added up; with a fourth entry, a field whose
# value at the point multiplies the term.
FDTD = (
    (
        (0, [(1, 0, at(2)), (-0.5, 2, at(2, x=-1)), (0.5, 2, at(2))]),
        (1, [(1, 1, at(2)), (0.5, 2, at(2, y=-1)), (-0.5, 2, at(2))]),
    ),
    ((2, [(1, 2, at(2)), (0.3, 0, at(2, x=1)), (-0.3, 0, at(2)), (0.7, 1, at(2, y=1))]),),
)
MAXWELL = tuple(
    tuple(
        (
            first + a,
            [
                (1, first + a, at(3)),
                (0.3, other + (a + 2) % 3, at(3)),
                (-0.3, other + (a + 2) % 3, at(3, **{"xyz"[(a + 1) % 3]: step})),
                (-0.2, other + (a + 1) % 3, at(3)),
                (0.2, other + (a + 1) % 3, at(3, **{"xyz"[(a + 2) % 3]: step})),
            ],
        )
        for a in range(3)
    )
    for first, other, step in ((0, 3, -1), (3, 0, 1))
)
# Two tracers, which the third field carries, and a sum of all that none of them waits for.
TRACERS = (
    (
        (0, [(1, 0, at(1)), (0.1, 0, at(1), 2)]),
        (1, [(1, 1, at(1)), (0.2, 1, at(1), 2), (0.1, 2, at(1, x=-2))]),
        (3, [(0.5, 0, at(1)), (0.25, 1, at(1)), (0.125, 2, at(1, x=1))]),
    ),
)
PROGRAMS = {"fdtd": (2, 3, FDTD), "maxwell": (3, 6, MAXWELL), "tracers": (1, 4, TRACERS)}
EXTENTS = {1: [(37,), (8,)], 2: [(5, 19), (9, 40), (1, 1)], 3: [(3, 4, 21)]}


def text_of(rank, count, sweeps, extents, element):
    """The program, with an apply and a store behind it for each update."""
    field = f"!stencil.field<{'x'.join(f'[-2,{n + 2}]' for n in extents)}x{element}>"
    temp = f"!stencil.temp<{'?x' * rank}{element}>"
    box = f"<{[0] * rank}, {list(extents)}>"
    numbers = itertools.count()
    arguments = ", ".join(f"%f{n} : {field}" for n in range(count))
    lines = [f"func.func @program({arguments}) {{"]
    for sweep in sweeps:
        loaded = {}
        for target, terms in sweep:
            used = sorted({n for _, *fields in terms for n in (fields[0], *fields[2:])})
            for n in used:
                if n not in loaded:
                    loaded[n] = f"%t{next(numbers)}"
                    lines.append(f"{loaded[n]} = stencil.load %f{n} : {field} -> {temp}")
            captured = ", ".join(f"%a{n} = {loaded[n]} : {temp}" for n in used)
            result, total = f"%r{next(numbers)}", None
            lines.append(f"{result} = stencil.apply({captured}) -> ({temp}) {{")
            for weight, source, offset, *factor in terms:
                w, v, p, s = (f"%v{next(numbers)}" for _ in range(4))
                lines += [
                    f"{w} = arith.constant {float(weight)} : {element}",
                    f"{v} = stencil.access %a{source}{list(offset)} : {temp}",
                    f"{p} = arith.mulf {w}, {v} : {element}",
                ]
                for other in factor:
                    m, q = (f"%v{next(numbers)}" for _ in range(2))
                    lines.append(f"{m} = stencil.access %a{other}{[0] * rank} : {temp}")
                    lines.append(f"{q} = arith.mulf {p}, {m} : {element}")
                    p = q
                if total is not None:
                    lines.append(f"{s} = arith.addf {total}, {p} : {element}")
                total = p if total is None else s
            lines += [f"stencil.return {total} : {element}", "}"]
            lines.append(f"stencil.store {result} to %f{target}({box}) : {temp} to {field}")
    return "\n".join([*lines, "return", "}"])


def run(sweeps, arrays, extents):
    """One call on arrays of float64, which are changed: a sweep reads what was there before it."""

    def part(array, offset):
        return array[
            tuple(slice(HALO + o, HALO + o + n) for o, n in zip(offset, extents, strict=True))
        ]

    for sweep in sweeps:
        before = [array.copy() for array in arrays]
        for target, terms in sweep:
            total = 0
            for weight, source, offset, *factor in terms:
                value = weight * part(before[source], offset)
                for other in factor:
                    value = value * part(before[other], [0] * len(extents))
                total = total + value
            part(arrays[target], [0] * len(extents))[...] = total


def fields(step, arrays):
    """The arguments of a call: those arrays that are loaded."""
    return [arrays[field.position] for field in step.inputs]


@pytest.mark.parametrize(
    ("name", "element"),
    [
        *itertools.product(("fdtd", "tracers"), ("f64", "f32")),
        ("maxwell", "f64"),
        pytest.param("maxwell", "f32", marks=pytest.mark.full),
    ],
)
def test_bits_of_kernels_of_their_own(tmp_path, monkeypatch, name, element):
    monkeypatch.setattr("twofour.runtime.threads.WAKING_POINTS", 1)
    rank, count, sweeps = PROGRAMS[name]
    for extents in EXTENTS[rank]:
        path = tmp_path / "program.mlir"
        path.write_text(text_of(rank, count, sweeps, extents, element))
        shape = [n + 2 * HALO for n in extents]
        draws = np.random.default_rng(0)
        arrays = [draws.uniform(-1, 1, shape).astype(NUMPY[element]) for _ in range(count)]
        found = []
        for ops in (fuse_siblings.MAX_OPS, 0):
            with monkeypatch.context() as limit:
                limit.setattr(fuse_siblings, "MAX_OPS", ops)
                step = twofour.compile(path, threads=3, reassociate=False)
            found.append(step(*fields(step, arrays)))
        expected = [array.astype(np.float64) for array in arrays]
        run(sweeps, expected, extents)
        inner = tuple(slice(HALO, -HALO) for _ in extents)
        for field, fused, alone in zip(step.outputs, *found, strict=True):
            assert np.array_equal(fused[inner], alone[inner])
            np.testing.assert_allclose(
                fused[inner], expected[field.position][inner], rtol=0, atol=TERMS[element]
            )


@pytest.mark.parametrize(
    "name, kernels, allocations", [("fdtd", 2, 0), ("maxwell", 2, 0), ("tracers", 1, 0)]
)
def test_each_sweep_is_one_kernel_that_works_in_place(tmp_path, name, kernels, allocations):
    rank, count, sweeps = PROGRAMS[name]
    path = tmp_path / "program.mlir"
    path.write_text(text_of(rank, count, sweeps, EXTENTS[rank][0], "f64"))
    text = str(compile_cpu(str(path), CompileOptions()).module)
    assert text.count("call @program_kernel") == kernels
    assert text.count("memref.alloc()") == allocations


def test_sums_past_the_caches(tmp_path, monkeypatch):
    """Sums of one image to two fields of their own, in rows that begin anywhere."""
    monkeypatch.setattr("twofour.runtime.threads.WAKING_POINTS", 1)
    monkeypatch.setattr(large_arrays, "past_caches", lambda *_: True)
    sweeps = (
        (
            (1, [(0.5, 0, at(2, x=1)), (-0.5, 0, at(2, x=-1))]),
            (2, [(0.5, 0, at(2, y=2)), (-0.5, 0, at(2, y=-1)), (0.25, 0, at(2))]),
        ),
    )
    for extents in [(7, 41), (3, 16)]:
        path = tmp_path / "program.mlir"
        path.write_text(text_of(2, 3, sweeps, extents, "f64"))
        image = np.random.default_rng(0).uniform(-1, 1, [n + 2 * HALO for n in extents])
        arrays = [image.copy() for _ in range(3)]
        run(sweeps, arrays, extents)
        inner = (slice(HALO, -HALO),) * 2
        found = twofour.compile(path, threads=2)(image)
        for got, expected in zip(found, arrays[1:], strict=True):
            np.testing.assert_allclose(got[inner], expected[inner], rtol=0, atol=1e-14)
