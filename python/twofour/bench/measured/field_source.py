# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plain CUDA kernels that programs over several fields are compared with: one point a thread.

Each loop over all points is a kernel of its own, with the statements of twofour.bench's C loops.
Arrays have their halo, so that rows begin anywhere: no access is of more than an element.
"""

import re
from collections.abc import Sequence

THREADS = (64, 4, 1)  # of a block along x, y and z
_TYPES = {"f32": "float", "f64": "double"}
_ARRAY = re.compile(r"a\[(\d+)\]\[")
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d*(?:e[+-]?\d+)?")


def kernel_name(loop: int) -> str:
    """The name of the kernel of a loop."""
    return f"plain_loop{loop}"


def grid(shape: Sequence[int]) -> tuple[int, int, int]:
    """Blocks along x, y and z for an interior of `shape`, of two or three axes."""
    depth, height, width = (1,) * (3 - len(shape)) + tuple(shape)
    return -(-width // THREADS[0]), -(-height // THREADS[1]), depth


def source_text(dtype: str, rank: int, halo: int, loops: Sequence[Sequence[str]]) -> str:
    """The source of one kernel a loop, over arrays of f32 or f64.

    A kernel takes the addresses of all arrays, in order, and the extents of the interior along x
    and y. Statements are those of twofour.bench.field_example.
    """
    count = 1 + max(int(number) for loop in loops for s in loop for number in _ARRAY.findall(s))
    kernels = [_kernel(number, rank, halo, loop, count) for number, loop in enumerate(loops)]
    return "\n".join([f"typedef {_TYPES[dtype]} real;", *kernels])


def moved(loops: Sequence[Sequence[str]]) -> int:
    """Fields that are read or written in a step, those of each loop once."""
    total = 0
    for loop in loops:
        sides = [statement.split("=", 1) for statement in loop]
        written = {n for target, _ in sides for n in _ARRAY.findall(target)}
        read = {n for _, value in sides for n in _ARRAY.findall(value)}
        # Of `+=` and the like.
        read |= {n for target, _ in sides if target[-1] in "+-*/" for n in _ARRAY.findall(target)}
        total += len(written) + len(read)
    return total


def _kernel(number: int, rank: int, halo: int, loop: Sequence[str], count: int) -> str:
    written = {n for s in loop for n in _ARRAY.findall(s.split("=", 1)[0])}
    arrays = [
        f"{'' if str(i) in written else 'const '}real* __restrict__ a{i}" for i in range(count)
    ]
    place = "j * p + i" if rank == 2 else "(k * h + j) * p + i"
    statements = [f"  {_adapted(statement)}" for statement in loop]
    return "\n".join(
        [
            f'extern "C" __global__ void __launch_bounds__({THREADS[0] * THREADS[1]})',
            f"{kernel_name(number)}({', '.join(arrays)}, long long width, long long height)",
            "{",
            f"  const long long p = width + {2 * halo}, h = height + {2 * halo}, q = p * h;",
            f"  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x + {halo};",
            f"  const long long j = (long long)blockIdx.y * blockDim.y + threadIdx.y + {halo};",
            f"  const long long k = (long long)blockIdx.z + {halo};",
            f"  if (i >= width + {halo} || j >= height + {halo})",
            "    return;",
            f"  const long long x = {place};",
            "  (void)k, (void)q;",
            *statements,
            "}",
        ]
    )


def _adapted(statement: str) -> str:
    """A statement of C in the type of the arrays, which are arguments."""
    statement = _NUMBER.sub(lambda found: f"real({found[0]})", statement)
    return _ARRAY.sub(r"a\1[", statement.replace("double", "real"))
