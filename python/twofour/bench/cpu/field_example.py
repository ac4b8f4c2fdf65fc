# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program over several fields that is timed, as MLIR and as the loops of C for it."""

from dataclasses import dataclass
from functools import reduce

from twofour.bench.cpu.c_source import THREADS


@dataclass(frozen=True)
class FieldExample:
    """A program: its arguments, which of them are loaded and stored, and what it computes.

    Its interior is a square or cube of an edge `n`, with `halo` cells around it that are never
    refreshed. After a call argument i takes over the array of argument rotation[i]. `body` is MLIR
    between the function's braces, where `!f` is a field, `!t` a temp and `{box}` the interior.
    `loops` are the statements of one point in C, a list for each loop over all points, where `a[i]`
    is the row-major array of argument i, `x` the place of a point, `p` the elements of a row, and
    `q` those of a plane.
    """

    name: str
    label: str
    loaded: tuple[int, ...]
    stored: tuple[int, ...]
    rotation: tuple[int, ...]
    body: str
    loops: tuple[tuple[str, ...], ...]
    rank: int = 2
    halo: int = 1

    def mlir(self, n: int) -> str:
        """The program on n points an edge."""
        bounds = "x".join([f"[-{self.halo},{n + self.halo}]"] * self.rank)
        field = f"!stencil.field<{bounds}xf64>"
        temp = f"!stencil.temp<{'?x' * self.rank}f64>"
        arguments = ", ".join(f"%f{i} : {field}" for i in range(len(self.rotation)))
        places = ", ".join(map(str, self.rotation))
        box = f"<{[0] * self.rank}, {[n] * self.rank}>"
        body = self.body.replace("{box}", box).replace("!f", field).replace("!t", temp)
        head = f"func.func @{self.name}({arguments})"
        return (
            f"{head} attributes {{stencil.rotation = array<i64: {places}>}} {{\n{body}return\n}}\n"
        )

    def c_source(self, n: int) -> str:
        """C with `void run(double **arrays, long calls, int threads)`, one region for all calls."""
        count = len(self.rotation)
        takes = "\n".join(f"    a[{i}] = b[{source}];" for i, source in enumerate(self.rotation))
        sweeps = "\n".join(f"    sweep{i}(a);" for i in range(len(self.loops)))
        return "\n".join(
            [
                THREADS,
                *(self._sweep(i, n) for i in range(len(self.loops))),
                "void run(double **arrays, long calls, int threads) {",
                "  #pragma omp parallel num_threads(threads)",
                "  {",
                f"  double *a[{count}], *b[{count}];",
                f"  for (int i = 0; i < {count}; i++) a[i] = arrays[i];",
                "  for (long s = 0; s < calls; s++) {",
                sweeps,
                f"    for (int i = 0; i < {count}; i++) b[i] = a[i];",
                takes,
                "  }",
                "  }",
                "}",
                "",
            ]
        )

    def _sweep(self, number: int, n: int) -> str:
        arrays = [
            f"  {'' if i in self.stored else 'const '}double *restrict a{i} = arrays[{i}];"
            for i in range(len(self.rotation))
        ]
        statements = []
        for statement in self.loops[number]:
            for i in range(len(self.rotation)):
                statement = statement.replace(f"a[{i}]", f"a{i}")
            statements.append(f"    {statement}")
        counters = "ijk"[: self.rank]
        place = reduce(lambda behind, counter: f"({behind}) * p + {counter}", counters)
        return "\n".join(
            [
                f"static __attribute__((noinline)) void sweep{number}(double **arrays) {{",
                *arrays,
                f"  const long h = {self.halo}, n = {n}, p = n + 2 * h, q = p * p;",
                "  #pragma omp for schedule(static)",
                *(f"  for (long {c} = h; {c} < n + h; {c}++)" for c in counters),
                "  {",
                f"    const long x = {place};",
                *statements,
                "  }",
                "}",
            ]
        )
