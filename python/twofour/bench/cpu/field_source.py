# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plain loops in C that programs over several fields are compared with."""

from functools import reduce

from twofour.bench.cpu.c_source import THREADS
from twofour.bench.field_example import FieldExample


def source_text(example: FieldExample, n: int) -> str:
    """C with `void run(double **arrays, long calls, int threads)`, one region for all calls."""
    count = len(example.rotation)
    takes = "\n".join(f"    a[{i}] = b[{source}];" for i, source in enumerate(example.rotation))
    sweeps = "\n".join(f"    sweep{i}(a);" for i in range(len(example.loops)))
    return "\n".join(
        [
            THREADS,
            *(_sweep(example, i, n) for i in range(len(example.loops))),
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


def _sweep(example: FieldExample, number: int, n: int) -> str:
    arrays = [
        f"  {'' if i in example.stored else 'const '}double *restrict a{i} = arrays[{i}];"
        for i in range(len(example.rotation))
    ]
    statements = []
    for statement in example.loops[number]:
        for i in range(len(example.rotation)):
            statement = statement.replace(f"a[{i}]", f"a{i}")
        statements.append(f"    {statement}")
    counters = "ijk"[: example.rank]
    place = reduce(lambda behind, counter: f"({behind}) * p + {counter}", counters)
    return "\n".join(
        [
            f"static __attribute__((noinline)) void sweep{number}(double **arrays) {{",
            *arrays,
            f"  const long h = {example.halo}, n = {n}, p = n + 2 * h, q = p * p;",
            "  #pragma omp for schedule(static)",
            *(f"  for (long {c} = h; {c} < n + h; {c}++)" for c in counters),
            "  {",
            f"    const long x = {place};",
            *statements,
            "  }",
            "}",
        ]
    )
