# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C that a programmer would write: OpenMP over plain loops, weights as literals.

A library holds, for one workload,

    void run(T *a, T *b, long sweeps, int threads)
    void prepare(const int *cpus, int threads)
    void rest(void)

where `run` sweeps from a to b, back, and so on, in one parallel region, with the halo refreshed
before each sweep on periodic axes. `prepare` puts each thread on a processor of its own: what
OMP_PROC_BIND does would tie the caller's thread, and all that it starts, to one processor as well.
`rest` ends the threads: those that OMP_WAIT_POLICY=active keeps spinning would take a core from
whatever is timed next.
"""

from twofour.bench.cpu.workload import Workload

TYPES = {"f64": "double", "f32": "float"}
THREADS = """\
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>

void prepare(const int *cpus, int threads) {
  #pragma omp parallel num_threads(threads)
  {
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[omp_get_thread_num()], &set);
    sched_setaffinity(0, sizeof set, &set);
#endif
  }
}

void rest(void) { omp_pause_resource_all(omp_pause_hard); }
"""


def sweep_source(workload: Workload) -> str:
    """The library of a workload."""
    kind = TYPES[workload.dtype]
    periodic = workload.boundary == "periodic"
    refresh = "refresh(from);" if periodic else ""
    return "\n".join(
        [
            THREADS,
            f"typedef {kind} T;",
            _refresh(workload) if periodic else "",
            _sweep(workload),
            "void run(T *a, T *b, long sweeps, int threads) {",
            "  #pragma omp parallel num_threads(threads)",
            "  for (long s = 0; s < sweeps; s++) {",
            "    T *from = s % 2 ? b : a, *to = s % 2 ? a : b;",
            f"    {refresh}",
            "    sweep(from, to);",
            "  }",
            "}",
            "",
        ]
    )


def _strides(workload: Workload) -> list[int]:
    strides = [1]
    for extent in reversed(workload.shape[1:]):
        strides.insert(0, strides[0] * extent)
    return strides


def _sweep(workload: Workload) -> str:
    """One step. Its loop is no region of its own, so that `restrict` still holds inside."""
    strides = _strides(workload)
    suffix = "f" if workload.dtype == "f32" else ""
    place = " + ".join(
        f"(x{axis} + {lo}) * {stride}L"
        for axis, (lo, stride) in enumerate(zip(workload.below, strides, strict=True))
    )
    terms = []
    for offset, weight in zip(workload.kernel.offsets, workload.kernel.weights, strict=True):
        shift = sum(o * s for o, s in zip(offset, strides, strict=True))
        terms.append(f"{weight.hex()}{suffix} * in[at + ({shift}L)]")
    loops = [
        f"  for (long x{axis} = 0; x{axis} < {extent}; x{axis}++)"
        for axis, extent in enumerate(workload.extents)
    ]
    return "\n".join(
        [
            "static __attribute__((noinline))",
            "void sweep(const T *restrict in, T *restrict out) {",
            "  #pragma omp for schedule(static)",
            *loops,
            "  {",
            f"    const long at = {place};",
            "    out[at] =",
            *(f"      {term} +" for term in terms[:-1]),
            f"      {terms[-1]};",
            "  }",
            "}",
        ]
    )


def _refresh(workload: Workload) -> str:
    """Fill the halo axis after axis; later axes read what earlier ones wrote."""
    strides = _strides(workload)
    lines = ["static void refresh(T *u) {"]
    for axis, (extent, below, above) in enumerate(
        zip(workload.extents, workload.below, workload.above, strict=True)
    ):
        others = [a for a in range(len(strides)) if a != axis]
        place = " + ".join(["0", *(f"y{a} * {strides[a]}L" for a in others)])
        # The longest loop is shared out: the halo's own is too short.
        lines.append("  #pragma omp for schedule(static)")
        for other in others:
            whole = f"y{other} < {workload.shape[other]}"
            lines.append(f"  for (long y{other} = 0; {whole}; y{other}++)")
        if not others:
            lines.append("  for (int once = 0; once < 1; once++)")
        lines += [
            "  {",
            f"    T *row = u + {place};",
            f"    for (long h = 0; h < {below}; h++)",
            f"      row[h * {strides[axis]}L] = row[(h + {extent}) * {strides[axis]}L];",
            f"    for (long h = {below + extent}; h < {below + extent + above}; h++)",
            f"      row[h * {strides[axis]}L] = row[(h - {extent}) * {strides[axis]}L];",
            "  }",
        ]
    return "\n".join([*lines, "}"])


ACCUMULATORS = 12  # 4 cycles of latency times 2 units need 8; AVX2 has 16 registers
CEILINGS = (
    THREADS
    + """
#include <string.h>
#if defined __x86_64__ || defined __i386__
#include <immintrin.h>
#endif

#if defined __AVX512F__
enum { VECTOR = 64, STREAMS = 1 };
typedef __m512i V;
#define STREAM(to, v) _mm512_stream_si512((void *)(to), v)
#elif defined __AVX__
enum { VECTOR = 32, STREAMS = 1 };
typedef __m256i V;
#define STREAM(to, v) _mm256_stream_si256(to, v)
#elif defined __SSE2__
enum { VECTOR = 16, STREAMS = 1 };
typedef __m128i V;
#define STREAM(to, v) _mm_stream_si128(to, v)
#else
enum { VECTOR = 16, STREAMS = 0 };
typedef long long V __attribute__((vector_size(16)));
#define STREAM(to, v) (*(to) = (v))
#endif

int vector_bytes(void) { return VECTOR; }
int has_streams(void) { return STREAMS; }

/* Bytes of a thread's part: whole vectors, so that stores are aligned wherever the target is. */
static long part(long vectors, int number, int threads) { return vectors * number / threads; }

#if defined __SSE2__
#define FENCE() _mm_sfence()
#else
#define FENCE()
#endif
#define STORE(to, v) (*(to) = (v))

#define COPY(name, STORE_ONE, AFTER) \\
  void name(char *a, char *b, long bytes, long sweeps, int threads) { \\
    _Pragma("omp parallel num_threads(threads)") \\
    for (long s = 0; s < sweeps; s++) { \\
      const V *from = (const V *)(s % 2 ? b : a); \\
      V *to = (V *)(s % 2 ? a : b); \\
      const int number = omp_get_thread_num(); \\
      const long begin = part(bytes / VECTOR, number, threads); \\
      const long end = part(bytes / VECTOR, number + 1, threads); \\
      for (long i = begin; i < end; i++) STORE_ONE(to + i, from[i]); \\
      AFTER; \\
      _Pragma("omp barrier") \\
    } \\
  }

COPY(copy, STORE, )
COPY(copy_stream, STREAM, FENCE())
"""
)


def peak_source(dtype: str) -> str:
    """`T peak_<dtype>(long rounds, int threads)`: independent chains of multiply-adds in registers.

    A round is ACCUMULATORS multiply-adds of whole vectors.
    """
    kind = TYPES[dtype]
    names = [f"s{number}" for number in range(ACCUMULATORS)]
    return "\n".join(
        [
            f"typedef {kind} vector_{dtype} __attribute__((vector_size(VECTOR)));",
            f"{kind} peak_{dtype}(long rounds, int threads) {{",
            f"  {kind} total = 0;",
            "  #pragma omp parallel num_threads(threads) reduction(+ : total)",
            "  {",
            f"    vector_{dtype} x = {{0}}, y = {{0}}, {', '.join(names)};",
            f"    const {kind} number = omp_get_thread_num();",
            # Vectors that are set element by element stay on the stack.
            f"    x += ({kind})0.5 + ({kind})0.01 * number;",
            "    y += 1 + number;",
            *(f"    {name} = y + {number};" for number, name in enumerate(names)),
            "    for (long r = 0; r < rounds; r++) {",
            *(f"      {name} = {name} * x + y;" for name in names),
            "    }",
            f"    x = {' + '.join(names)};",
            "    total += x[0];",
            "  }",
            "  return total;",
            "}",
            "",
        ]
    )


def ceilings_source() -> str:
    """Copies by regular and by non-temporal stores, and the peak of multiply-adds."""
    return "\n".join([CEILINGS, *map(peak_source, TYPES)])
