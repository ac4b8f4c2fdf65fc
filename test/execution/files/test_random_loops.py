# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs with loops that carry fields, one in the other, compared with NumPy.

Fields have names: those of arguments, and in a loop and after it those of what it carries, which
are the same arrays in another order.
"""

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twofour
from native_cases import share_small_work, skew_small_arrays
from random_programs import (
    FIELD,
    HALO,
    OFFSETS,
    STORED,
    TARGETS,
    TEMP,
    assert_stores,
    shifted,
)

# How many ops there are in the body of a loop, and around loops.
BODY, BETWEEN = (3, 8), (0, 4)


@dataclass(frozen=True)
class Load:
    temp: str
    field: str


@dataclass(frozen=True)
class Apply:
    """0.5 x - 0.25 y of two temps at offsets, or 0.5 x y - 0.25 y, plus an index over 100."""

    temp: str
    temps: tuple[str, str]
    offsets: tuple[tuple[int, int], tuple[int, int]]
    is_linear: bool
    index: str | None


@dataclass(frozen=True)
class Store:
    temp: str
    field: str
    box: str


@dataclass(frozen=True)
class Loop:
    """Iterations from `lower` below `upper`; they carry `fields` along as `inside`.

    What field `yielded[n]` is at the end becomes `inside[n]`, and `after[n]` in the end.
    """

    index: str
    lower: int
    upper: int
    step: int
    fields: tuple[str, ...]
    inside: tuple[str, ...]
    body: tuple
    yielded: tuple[str, ...]
    after: tuple[str, ...]


class Names:
    """Names that no other value has, and whether iterations of loops are skewed."""

    def __init__(self, skews: bool):
        self._count, self.skews = 0, skews

    def new(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"


@st.composite
def programs(draw, skews):
    """Arguments and ops: a loop, perhaps with one in it, between others; the last one stores.

    Some ops in loops use their index. Where iterations are to be skewed none does, and there are
    many.
    """
    names = Names(skews)
    fields = [names.new("f") for _ in range(draw(st.integers(1, 3)))]
    ops, depths = draw(sweeps(names, fields, {}, None))
    loop = draw(loops(names, fields, fields, depths, inner=draw(st.booleans())))
    rest, _ = draw(sweeps(names, [*fields, *loop.after], depths, None))
    # Something is stored in any case.
    first = Load(names.new("t"), fields[0])
    last = Store(first.temp, draw(st.sampled_from(fields)), next(iter(STORED)))
    return tuple(fields), (*ops, loop, *rest, first, last)


@st.composite
def loops(draw, names, fields, candidates, depths, inner):
    carried = draw(st.permutations(candidates))[: draw(st.integers(1, len(candidates)))]
    index, inside = names.new("i"), [names.new("c") for _ in carried]
    known = [*fields, *inside]
    body, depths = draw(sweeps(names, known, depths, index, BODY))
    ends = inside
    if inner:
        # Fields of two loops might be the same ones, and none may be carried twice.
        inmost = draw(loops(names, known, inside, depths, inner=False))
        if len(inmost.fields) == len(inside):
            rest, _ = draw(sweeps(names, [*known, *inmost.after], depths, index))
            body, ends = (*body, inmost, *rest), inmost.after
    after = [names.new("r") for _ in carried]
    lower, step = draw(st.integers(-2, 2)), draw(st.integers(1, 2))
    upper = draw(st.integers(6, 12) if names.skews else st.integers(-3, 7))
    yielded = tuple(draw(st.permutations(list(ends))))
    return Loop(
        index, lower, upper, step, tuple(carried), tuple(inside), tuple(body), yielded, tuple(after)
    )


@st.composite
def sweeps(draw, names, fields, depths, index, count=BETWEEN):
    """Some ops on these fields, and the temps that there are, with how far they are from loads."""
    ops, depths = [], dict(depths)
    for _ in range(draw(st.integers(*count))):
        shallow = [temp for temp, depth in depths.items() if depth < HALO]
        kind = draw(st.sampled_from(["load", "apply", "store"]))
        if kind == "load" or not shallow:
            ops.append(Load(names.new("t"), draw(st.sampled_from(fields))))
            depths[ops[-1].temp] = 0
        elif kind == "apply":
            temps = draw(st.tuples(st.sampled_from(shallow), st.sampled_from(shallow)))
            counts = draw(st.sampled_from([None, None if names.skews else index]))
            form = draw(st.tuples(OFFSETS, OFFSETS)), draw(st.booleans()), counts
            ops.append(Apply(names.new("t"), temps, *form))
            depths[ops[-1].temp] = 1 + max(depths[temp] for temp in temps)
        else:
            temp = draw(st.sampled_from([*depths]))
            box = draw(st.sampled_from([*STORED]))
            ops.append(Store(temp, draw(st.sampled_from(fields)), box))
    return tuple(ops), depths


def text_of(fields, ops):
    arguments = ", ".join(f"%{name} : {FIELD}" for name in fields)
    lines = [f"func.func @program({arguments}) {{"]
    for op in ops:
        lines += lines_of(op)
    return "\n".join([*lines, "return", "}"])


def lines_of(op):
    if isinstance(op, Load):
        return [f"%{op.temp} = stencil.load %{op.field} : {FIELD} -> {TEMP}"]
    if isinstance(op, Store):
        return [f"stencil.store %{op.temp} to %{op.field}({op.box}) : {TEMP} to {FIELD}"]
    return loop_lines(op) if isinstance(op, Loop) else apply_lines(op)


def apply_lines(op):
    (one, other), (first, second) = op.temps, op.offsets
    inputs = [f"%a = %{one} : {TEMP}", f"%b = %{other} : {TEMP}"]
    before, result = [], "%d"
    if op.index is not None:
        before = [
            f"%n{op.temp} = arith.index_cast %{op.index} : index to i64",
            f"%s{op.temp} = arith.sitofp %n{op.temp} : i64 to f64",
        ]
        inputs.append(f"%s = %s{op.temp} : f64")
        result = "%e"
    return [
        *before,
        f"%{op.temp} = stencil.apply({', '.join(inputs)}) -> ({TEMP}) {{",
        "%half = arith.constant 0.5 : f64",
        "%quarter = arith.constant 0.25 : f64",
        f"%x = stencil.access %a[{first[0]}, {first[1]}] : {TEMP}",
        f"%y = stencil.access %b[{second[0]}, {second[1]}] : {TEMP}",
        "%hx = arith.mulf %x, %half : f64",
        "%p = arith.mulf %hx, %y : f64",
        "%q = arith.mulf %y, %quarter : f64",
        f"%d = arith.subf {'%hx' if op.is_linear else '%p'}, %q : f64",
        *(
            ["%hundredth = arith.constant 0.01 : f64"]
            + ["%g = arith.mulf %s, %hundredth : f64", "%e = arith.addf %d, %g : f64"]
            if op.index is not None
            else []
        ),
        f"stencil.return {result} : f64",
        "}",
    ]


def loop_lines(op):
    carried = ", ".join(f"%{i} = %{f}" for i, f in zip(op.inside, op.fields, strict=True))
    kinds = ", ".join([FIELD] * len(op.fields))
    bounds = [f"%b{n}{op.index}" for n in range(3)]
    return [
        *(
            f"{name} = arith.constant {value} : index"
            for name, value in zip(bounds, (op.lower, op.upper, op.step), strict=True)
        ),
        f"{', '.join(f'%{name}' for name in op.after)} = scf.for %{op.index} = {bounds[0]} to"
        f" {bounds[1]} step {bounds[2]} iter_args({carried}) -> ({kinds}) {{",
        *(line for inner in op.body for line in lines_of(inner)),
        f"scf.yield {', '.join(f'%{name}' for name in op.yielded)} : {kinds}",
        "}",
    ]


def run(ops, fields, temps, indices):
    """Evaluate ops on arrays, which they change; `fields` learns what loops leave."""
    for op in ops:
        if isinstance(op, Load):
            temps[op.temp] = fields[op.field].copy()
        elif isinstance(op, Store):
            fields[op.field][STORED[op.box]] = temps[op.temp][STORED[op.box]]
        elif isinstance(op, Apply):
            x, y = (shifted(temps[t], o) for t, o in zip(op.temps, op.offsets, strict=True))
            value = 0.5 * x * (1 if op.is_linear else y) - 0.25 * y
            temps[op.temp] = value + 0.01 * indices.get(op.index, 0)
        else:
            carried = [fields[name] for name in op.fields]
            for index in range(op.lower, op.upper, op.step):
                inner = {**fields, **dict(zip(op.inside, carried, strict=True))}
                run(op.body, inner, dict(temps), {**indices, op.index: index})
                carried = [inner[name] for name in op.yielded]
            fields.update(zip(op.after, carried, strict=True))


@pytest.mark.parametrize("target, threads, skews", TARGETS)
def test_what_a_program_stores(tmp_path, monkeypatch, target, threads, skews):
    share_small_work(monkeypatch)
    depths = skew_small_arrays(monkeypatch, rows=40) if skews else []
    path = tmp_path / "program.mlir"

    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs(skews))
    def check(program):
        fields, ops = program
        path.write_text(text_of(fields, ops))
        step = twofour.compile(str(path), target=target, threads=threads)
        counts = assert_stores(
            step,
            len(fields),
            lambda arrays: run(ops, dict(zip(fields, arrays, strict=True)), {}, {}),
        )
        # What only a loop stores to that never runs is not known.
        assert any(counts)

    check()
    assert any(depth > 1 for depth in depths) == skews
