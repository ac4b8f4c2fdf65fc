# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of programs over several fields, of one step and of many, against C."""

import ctypes
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import twofour
from twofour.bench.cpu import field_source
from twofour.bench.cpu.c_library import GCC, PinnedThreads, build
from twofour.bench.cpu.comparison import Comparison, LeftOut, checked
from twofour.bench.cpu.contest import compete
from twofour.bench.cpu.experiment import TIMES, Bench, Columns, ratio_plot
from twofour.bench.cpu.own import OWN
from twofour.bench.cpu.pinning import pin_pool
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.cpu.workload import SEED, extents
from twofour.bench.cube_programs import CUBE_EXAMPLES
from twofour.bench.field_example import FieldExample
from twofour.bench.plane_programs import PLANE_EXAMPLES
from twofour.bench.section import Column, Section, table
from twofour.files import temporary_folder
from twofour.runtime.page_offset import empty_at, page_offsets

EXAMPLES = (*PLANE_EXAMPLES, *CUBE_EXAMPLES)
INTO = "twofour, out"
COLUMNS = Columns((OWN, GCC), (GCC,), ())
# Calls of one step may also give their results in arrays that are there.
INTO_COLUMNS = Columns((OWN, INTO, GCC), (GCC,), ())
OUT_OVER_GCC = Column(f"out over {GCC}", "measured")
# How far two results of values of order one may be apart after a step, rounded differently.
STEP_BOUND = 1e-13
TEXT = f"""\
All steps in one call from Python, which leaves its input fields as they are and returns new ones;
f64, halos that stay zero. *Out*: calls of one step that give their results in arrays of the caller,
by `out`, which are those of the inputs where a program updates them in place, and else take turns
with these; as NumPy makes them. *gcc*: plain loops in C with OpenMP over arrays of its own, in one
parallel region for all steps and all calls. Arrays lie apart in a page, as those of twofour do. A
point of FDTD is one of each of its three fields, of elastic waves of five, and of sound of four, in
two sweeps that update them in place.
Results of both are within {STEP_BOUND:g} a step of each other.

{TIMES}"""


@dataclass(frozen=True)
class FieldWorkload:
    """A program on a square or a cube of points, and the threads."""

    example: FieldExample
    edge: int
    threads: int
    dtype: str = "f64"
    boundary: str = "fixed"
    terms: int | None = None

    @property
    def label(self) -> str:
        return self.example.label

    @property
    def extents(self) -> tuple[int, ...]:
        return (self.edge,) * self.example.rank

    @property
    def points(self) -> int:
        """Points that a step updates, in each field."""
        return math.prod(self.extents)

    @property
    def domain(self) -> str:
        return " x ".join(map(str, self.extents))

    def initial(self) -> list[np.ndarray]:
        """The arguments at first: random numbers inside those that are loaded, zeros elsewhere."""
        draws = np.random.default_rng(SEED)
        halo = self.example.halo
        found = [np.pad(np.zeros(self.extents), halo) for _ in self.example.rotation]
        for argument in self.example.loaded:
            inside = (slice(halo, -halo),) * self.example.rank
            found[argument][inside] = draws.random(self.extents)
        return found


class _Calls:
    """Calls of the compiled program, from Python."""

    name = OWN

    def __init__(self, workload: FieldWorkload, cpus: Sequence[int], steps: int):
        self.steps, self._cpus = steps, cpus[: workload.threads]
        with temporary_folder() as folder:
            path = folder / "program.mlir"
            path.write_text(workload.example.mlir(workload.edge), "utf-8")
            self._program = twofour.compile(path, threads=workload.threads)
        initial = workload.initial()
        self._inputs = [initial[i] for i in workload.example.loaded]

    def _call(self) -> np.ndarray | tuple[np.ndarray, ...]:
        return self._program(*self._inputs, steps=self.steps)

    def sample(self, sweeps: int) -> float:
        """Seconds of `sweeps` calls, after another one."""
        pin_pool(self._cpus)
        self._call()
        started = time.perf_counter()
        for _ in range(sweeps):
            self._call()
        return time.perf_counter() - started

    def result(self) -> np.ndarray:
        """The stored fields after one call, one behind the other."""
        found = self._call()
        return np.stack(found if isinstance(found, tuple) else [found])


class _CallsInto(_Calls):
    """Calls of one step, each on what the one before gave, with results in arrays that are there.

    A sample begins with the initial values.
    """

    name = INTO

    def __init__(self, workload: FieldWorkload, cpus: Sequence[int]):
        super().__init__(workload, cpus, 1)
        self._example, self._initial = workload.example, workload.initial()
        self._arrays = [one.copy() for one in self._initial]

    def _call(self) -> np.ndarray | tuple[np.ndarray, ...]:
        arrays, example = self._arrays, self._example
        found = self._program(
            *(arrays[i] for i in example.loaded), out=[arrays[i] for i in example.stored]
        )
        self._arrays = [arrays[source] for source in example.rotation]
        return found

    def sample(self, sweeps: int) -> float:
        self._begin()
        return super().sample(sweeps)

    def result(self) -> np.ndarray:
        self._begin()
        return super().result()

    def _begin(self) -> None:
        for array, values in zip(self._arrays, self._initial, strict=True):
            array[...] = values


class _Loops:
    """Loops in C; raises TwofourError where they cannot be compiled."""

    name = GCC

    def __init__(self, workload: FieldWorkload, cpus: Sequence[int], steps: int):
        self.steps, self._workload = steps, workload
        library = build(field_source.source_text(workload.example, workload.edge))
        pointer, number = ctypes.c_void_p, ctypes.c_long
        library.run.argtypes, library.run.restype = [pointer, number, ctypes.c_int], None
        self._run = library.run
        self._threads = PinnedThreads(library, cpus[: workload.threads])
        self._initial = workload.initial()
        begins = page_offsets(self._initial[0].strides[:-1], len(self._initial))
        self._arrays = [
            empty_at(begin, one.shape, one.dtype)
            for begin, one in zip(begins, self._initial, strict=True)
        ]
        places = [array.ctypes.data for array in self._arrays]
        self._places = (ctypes.c_void_p * len(places))(*places)

    def _begin(self) -> None:
        for array, values in zip(self._arrays, self._initial, strict=True):
            array[...] = values

    def sample(self, sweeps: int) -> float:
        """Seconds of `sweeps` times all steps, from the initial values on."""
        self._begin()
        self._threads.prepare()
        try:
            self._run(self._places, self.steps, self._workload.threads)
            started = time.perf_counter()
            self._run(self._places, sweeps * self.steps, self._workload.threads)
            return time.perf_counter() - started
        finally:
            self._threads.rest()

    def result(self) -> np.ndarray:
        """The stored fields after all steps, one behind the other."""
        self._begin()
        self._run(self._places, self.steps, self._workload.threads)
        self._threads.rest()
        example = self._workload.example
        places = list(range(len(self._arrays)))
        for _ in range(self.steps - 1):
            places = [places[source] for source in example.rotation]
        return np.stack([self._arrays[places[i]] for i in example.stored])


def workloads(setting: CpuSetting) -> list[FieldWorkload]:
    """Every program at every size; cubes have about as many points as squares."""
    return [
        FieldWorkload(example, extents(size, example.rank)[0], threads)
        for size, threads in setting.pairs
        for example in EXAMPLES
    ]


def _depths(setting: CpuSetting) -> list[int]:
    """The numbers of steps in a call."""
    return [*dict.fromkeys((1, setting.steps))]


def count(setting: CpuSetting) -> int:
    """The number of comparisons."""
    return len(workloads(setting)) * len(_depths(setting))


def compare_all(bench: Bench) -> Iterator[Comparison]:
    """Time every program."""
    cpus = bench.cpus
    for steps, one in itertools.product(_depths(bench.setting), workloads(bench.setting)):
        found = Comparison(one, steps)
        own = _Calls(one, cpus, steps)
        makers = {GCC: lambda one=one, steps=steps: _Loops(one, cpus, steps)}
        if steps == 1:
            makers = {INTO: lambda one=one: _CallsInto(one, cpus)} | makers
        right = checked(makers, own.result(), STEP_BOUND * steps, found)
        found.samples, failed = compete([own, *right], bench.setting.rounds)
        found.left_out += [LeftOut(name, reason) for name, reason in failed.items()]
        yield found


def section(made: Sequence[Comparison]) -> Section:
    """A table and a plot for each number of steps."""
    workload = [Column("program"), Column("domain"), Column("threads")]
    tables, plots = [], []
    for steps, group in itertools.groupby(made, lambda one: one.steps):
        found = list(group)
        columns = INTO_COLUMNS if steps == 1 else COLUMNS
        heads = [*workload, *columns.heads()]
        rows = [
            [one.workload.label, one.workload.domain, one.workload.threads, *columns.row(one)]
            for one in found
        ]
        if steps == 1:
            heads.append(OUT_OVER_GCC)
            rows = [[*row, one.over(GCC, INTO)] for row, one in zip(rows, found, strict=True)]
        title = f"{steps} step{'s' if steps > 1 else ''} in one call"
        tables.append(table(title, heads, rows, "measured"))
        labels = [f"{one.workload.label}\n{one.workload.edge}" for one in found]
        name = f"cpu-fields-{'steps' if steps > 1 else 'step'}"
        plots.append(ratio_plot(name, title, "program and edge", found, labels, (GCC,)))
    samples = [one.as_dict() for one in made]
    title = "Programs over several fields"
    return Section("fields", title, TEXT, tuple(tables), tuple(plots), samples)
