# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plain CUDA kernel that others are compared with: a vector of outputs a thread.

A thread computes two outputs of f16 or f64, four of f32, along the last axis. It reads each row of
inputs by aligned vectors, once each, and sums in f32 (f64: f64), as all kernels here do; caches
serve what neighbouring threads share. Conversions of f16 are PTX: machines with CuPy alone may lack
the header that declares half2.
"""

import math
from collections import defaultdict
from collections.abc import Sequence

from twofour.reach import Extents

NAME = "plain_stencil"
THREADS = {1: (256, 1, 1), 2: (32, 8, 1), 3: (32, 8, 1)}
# dtype: vector, its elements, the type of sums.
_VECTORS = {
    "f16": ("unsigned int", 2, "float"),
    "f32": ("float4", 4, "float"),
    "f64": ("double2", 2, "double"),
}
_FIELDS = "xyzw"
_HALVES = """\
__device__ inline float2 unpacked(unsigned int halves)
{
  float2 pair;
  asm("{.reg .b16 lo, hi; mov.b32 {lo, hi}, %2; cvt.f32.f16 %0, lo; cvt.f32.f16 %1, hi;}"
      : "=f"(pair.x), "=f"(pair.y) : "r"(halves));
  return pair;
}

__device__ inline unsigned int packed(float lo, float hi)
{
  unsigned int halves;
  asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(halves) : "f"(lo), "f"(hi));
  return halves;
}

"""
_HEADER = """\
extern "C" __global__ void __launch_bounds__(256)
{name}(const {vector}* __restrict__ source, {vector}* __restrict__ target, long long width,
       long long height, long long source_row, long long source_plane, long long target_row,
       long long target_plane)
{{
  // Rows and planes are counted in vectors.
  const long long x = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long y = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  const long long z = blockIdx.z;
  if (x >= width || y >= height)
    return;
  const {vector}* at = source + z * source_plane + y * source_row + x;
"""


def vector_elements(dtype: str) -> int:
    """Outputs of a thread."""
    return _VECTORS[dtype][1]


def grid(dtype: str, shape: Extents) -> Extents:
    """Blocks along x, y and z for an output of `shape`."""
    depth, height, width = (1,) * (3 - len(shape)) + tuple(shape)
    across, down, _ = THREADS[len(shape)]
    vectors = -(-width // vector_elements(dtype))
    return (-(-vectors // across), -(-height // down), depth)


def source_text(dtype: str, offsets: Sequence[Extents], weights: Sequence[float]) -> str:
    """The source of the kernel; it takes f16, f32 and f64."""
    vector, count, sums = _VECTORS[dtype]
    rows = defaultdict(dict)
    for offset, weight in zip(offsets, weights, strict=True):
        rows[(0, 0, *offset[:-1])[-2:]][offset[-1]] = weight
    lines = [f"  {sums} sum{n} = 0;" for n in range(count)]
    for number, ((z, y), terms) in enumerate(sorted(rows.items())):
        row = f"row{number}"
        lines.append("  {")
        lines.append(f"    const {vector}* {row} = at + {z}LL * source_plane + {y}LL * source_row;")
        first, last = math.floor(min(terms) / count), (count - 1 + max(terms)) // count
        for place in range(first, last + 1):
            lines += _loaded(dtype, row, place)
        for x, weight in sorted(terms.items()):
            for n in range(count):
                lines.append(f"    sum{n} += {_number(weight, sums)} * {_value(x + n)};")
        lines.append("  }")
    sums_text = ", ".join(f"sum{n}" for n in range(count))
    made = "packed" if dtype == "f16" else f"make_{vector}"
    lines.append(f"  target[z * target_plane + y * target_row + x] = {made}({sums_text});")
    helpers = _HALVES if dtype == "f16" else ""
    return helpers + _HEADER.format(name=NAME, vector=vector) + "\n".join(lines) + "\n}\n"


def _loaded(dtype: str, row: str, place: int) -> list[str]:
    """A vector of inputs in the type of sums, an input a variable."""
    vector, count, sums = _VECTORS[dtype]
    name = _value(place, "pair" if dtype == "f16" else "vector")
    if dtype == "f16":
        lines = [f"    const float2 {name} = unpacked({row}[{place}]);"]
    else:
        lines = [f"    const {vector} {name} = {row}[{place}];"]
    return lines + [
        f"    const {sums} {_value(place * count + n)} = {name}.{_FIELDS[n]};" for n in range(count)
    ]


def _value(place: int, kind: str = "in") -> str:
    return f"{kind}_m{-place}" if place < 0 else f"{kind}_{place}"


def _number(weight: float, sums: str) -> str:
    return f"{weight!r}f" if sums == "float" else repr(weight)
