# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stencils to compile for Arm SME, what they must compute, and plain C that computes the same."""

import itertools
from pathlib import Path

import numpy as np

from arm_machine import C_TYPES, COMPILER, OUT_PADDING, Program, Sweep, run_tool
from twofour.kernels import Kernel
from twofour.targets.sme.build import compile_sme
from twofour.targets.sme.options import SmeOptions

TOLERANCE = {"f64": 5e-15, "f32": 5e-6}
VECTOR_BITS = (128, 256, 512, 1024, 2048)
BASELINE_FLAGS = ("-O3", "-ffast-math", "-march=armv8.5-a+sve")


def weighted(name: str, offsets: list[tuple[int, ...]]) -> Kernel:
    """Offsets with weights that are all different, so that every mix-up shows."""
    weights = np.random.default_rng(len(offsets)).uniform(0.1, 1, len(offsets))
    weights *= np.where(np.arange(len(offsets)) % 3, 1, -1)
    return Kernel(name, tuple(offsets), tuple(weights.tolist()))


def box(rank: int, radius: int) -> Kernel:
    offsets = itertools.product(range(-radius, radius + 1), repeat=rank)
    return weighted(f"box{rank}d{radius}", list(offsets))


def star(rank: int, radius: int) -> Kernel:
    offsets = [o for o in box(rank, radius).offsets if sum(map(bool, o)) <= 1]
    return weighted(f"star{rank}d{radius}", offsets)


def cross(radius: int) -> Kernel:
    """The two diagonals."""
    offsets = [o for o in box(2, radius).offsets if abs(o[0]) == abs(o[1])]
    return weighted(f"cross2d{radius}", offsets)


def mirrored(kernel: Kernel) -> Kernel:
    """The kernel with weights that depend on the distance along each axis alone.

    C compilers keep these few numbers in registers, and so do better than with as many numbers as
    terms.
    """
    weights = [
        0.01 + sum(abs(o) * 0.013 * 7**axis for axis, o in enumerate(offset))
        for offset in kernel.offsets
    ]
    return Kernel(kernel.name, kernel.offsets, tuple(weights))


def reach(kernel: Kernel) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How far a kernel reads before and after a point."""
    columns = list(zip(*kernel.offsets, strict=True))
    return tuple(-min(c) for c in columns), tuple(max(c) for c in columns)


def random_input(kernel: Kernel, extents: tuple[int, ...], element: str) -> np.ndarray:
    """Values for outputs of these extents, halo included."""
    before, after = reach(kernel)
    shape = [b + e + a for b, e, a in zip(before, extents, after, strict=True)]
    values = np.random.default_rng(7).uniform(-1, 1, shape)
    return values.astype(np.float32) if element == "f32" else values


def expected_output(kernel: Kernel, values: np.ndarray, constant: float = 0.0) -> np.ndarray:
    """The sweep over these values, in the longest type that NumPy has."""
    before, after = reach(kernel)
    extents = [n - b - a for n, b, a in zip(values.shape, before, after, strict=True)]
    total = np.full(extents, constant, np.longdouble)
    # Weights are rounded to the elements' type.
    weights = np.array(kernel.weights).astype(values.dtype).astype(np.longdouble)
    for offset, weight in zip(kernel.offsets, weights, strict=True):
        window = [slice(b + o, b + o + e) for b, o, e in zip(before, offset, extents, strict=True)]
        total += weight * values[tuple(window)]
    return total


def check(got: np.ndarray, expected: np.ndarray, element: str) -> None:
    """Every value right relative to the largest."""
    error = float(np.abs(got - expected).max() / np.abs(expected).max())
    assert error <= TOLERANCE[element], f"expected an error of at most {TOLERANCE}, got {error:.2g}"


def build(folder: Path, kernel: Kernel, cover: str = "auto", element: str = "f64") -> Program:
    """An executable of a kernel compiled for Arm SME."""
    compiled = compile_sme(kernel, SmeOptions(cover, element))
    return link(folder, kernel, element, compiled.data, compiled.header)


def link(folder: Path, kernel: Kernel, element: str, data: bytes, header: str) -> Program:
    """An executable of an object and its header."""
    paths = [folder / f"{kernel.name}.{ending}" for ending in ("o", "h")]
    paths[0].write_bytes(data)
    paths[1].write_text(header)
    sweep = Sweep(f"{kernel.name}_rows", element, *reach(kernel))
    return Program(folder, sweep, paths[1], paths[:1])


def kernel_functions(kernel: Kernel) -> str:
    """A pattern of the functions of an object that run during a sweep."""
    return rf"(_mlir_ciface_)?{kernel.name}_kernel0"


def build_plain(
    folder: Path, kernel: Kernel, extents: tuple[int, ...], element: str = "f64"
) -> Program:
    """An executable of plain loops over the terms, vectorised by the C compiler.

    Extents are constants, which lets it do its best.
    """
    source, header, compiled = (folder / f"plain.{ending}" for ending in "cho")
    kind = C_TYPES[element]
    signature = (
        f"void plain(const {kind} *restrict first, {kind} *restrict target, "
        "const int64_t *extents, const int64_t *in_strides, const int64_t *out_strides, "
        "int64_t begin, int64_t end)"
    )
    header.write_text(f"#include <stdint.h>\n{signature};\n")
    loops = _plain_loops(kernel, extents, kind)
    source.write_text(f'#include "plain.h"\n{signature} {{\n{loops}}}\n')
    run_tool([COMPILER, *BASELINE_FLAGS, "-c", source, "-o", compiled])
    sweep = Sweep("plain", element, *reach(kernel))
    return Program(folder, sweep, header, [compiled], streams=False)


def _plain_loops(kernel: Kernel, extents: tuple[int, ...], kind: str) -> str:
    axes = "ijk"[: kernel.rank]
    widths = [
        b + e + a for b, e, a in zip(reach(kernel)[0], extents, reach(kernel)[1], strict=True)
    ]
    dimensions = "".join(f"[{width}]" for width in widths[1:])
    padded = "".join(f"[{n}]" for n in (*extents[1:-1], extents[-1] + OUT_PADDING))
    lines = [
        f"  const {kind} (*restrict in){dimensions} = (const void *)first;",
        f"  {kind} (*restrict out){padded} = (void *)target;",
        "  (void)extents, (void)in_strides, (void)out_strides, (void)begin, (void)end;",
        *(
            f"  for (int64_t {axis} = 0; {axis} < {extent}; ++{axis})"
            for axis, extent in zip(axes, extents, strict=True)
        ),
    ]
    terms = []
    for offset, weight in zip(kernel.offsets, kernel.weights, strict=True):
        place = "".join(f"[{axis} + {o}]" for axis, o in zip(axes, offset, strict=True))
        terms.append(f"{weight!r} * in{place}")
    here = "".join(f"[{axis}]" for axis in axes)
    lines.append(f"    out{here} =\n      " + " +\n      ".join(terms) + ";")
    return "\n".join(lines) + "\n"
