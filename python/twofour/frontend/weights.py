# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from weights: a kernel as the module that a file with it would hold."""

import math
from collections.abc import Sequence

from twofour.box import MAX_POINTS
from twofour.errors import TwofourError
from twofour.identifiers import identifier
from twofour.kernels import Kernel
from twofour.mlir import ir, passmanager
from twofour.reach import halo_of

NOMINAL_EXTENT = 64
MOST_AXES = int(math.log(MAX_POINTS, NOMINAL_EXTENT))


def kernel_module(kernel: Kernel, dtype: str, steps: int = 1) -> ir.Module:
    """A module with one function `@NAME(%in, %out)` that applies the kernel once.

    Its extents are nominal: large enough for `steps` fused steps. The sweep kernels compiled from
    it run on arrays of any extents. Sums of 16-bit types are written in f32, as they are computed.
    Ops have no locations.
    """
    rank = kernel.rank
    if rank > MOST_AXES:
        raise TwofourError(f"expected offsets of at most {MOST_AXES} axes, got {rank}")
    low, high = halo_of(kernel.offsets)
    extents = [max(NOMINAL_EXTENT, 2 * steps * (lo + hi)) for lo, hi in zip(low, high, strict=True)]
    points = math.prod(lo + e + hi for lo, e, hi in zip(low, extents, high, strict=True))
    if points > MAX_POINTS:
        raise TwofourError(f"expected offsets that reach at most {MAX_POINTS} points, got {points}")
    outer = [e + hi for e, hi in zip(extents, high, strict=True)]
    field_bounds = f"#stencil.bounds<{[-lo for lo in low]}, {outer}>"
    store_bounds = f"#stencil.bounds<{[0] * rank}, {extents}>"
    field = f"!stencil.field<{field_bounds}, {dtype}>"
    temp = f"!stencil.temp<{rank} : i64, {dtype}>"
    body = _weighted_sum(kernel.offsets, kernel.weights, temp, dtype)
    module = ir.Module.parse(f"""
func.func @{identifier(kernel.name)}(%in: {field}, %out: {field}) {{
  %t = "stencil.load"(%in) : ({field}) -> {temp}
  %r = "stencil.apply"() ({{
    {body}
  }}) : () -> {temp}
  "stencil.store"(%r, %out) {{bounds = {store_bounds}}} : ({temp}, {field}) -> ()
  return
}}""")
    # Nobody sees this text: no error shall point into it.
    passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
    return module


def _weighted_sum(
    offsets: Sequence[Sequence[int]], weights: Sequence[float], temp: str, dtype: str
) -> str:
    """The lines of an apply's region."""
    narrow = dtype in ("f16", "bf16")
    total = "f32" if narrow else dtype
    lines = []
    for i, (offset, weight) in enumerate(zip(offsets, weights, strict=True)):
        lines.append(
            f'%a{i} = "stencil.access"(%t) {{offset = array<i64: {", ".join(map(str, offset))}>}}'
            f" : ({temp}) -> {dtype}"
        )
        value = f"%a{i}"
        if narrow:
            lines.append(f"%x{i} = arith.extf %a{i} : {dtype} to f32")
            value = f"%x{i}"
        lines.append(f"%w{i} = arith.constant {weight:.17e} : {total}")
        lines.append(f"%p{i} = arith.mulf {value}, %w{i} : {total}")
        if i:
            lines.append(f"%s{i} = arith.addf {'%p0' if i == 1 else f'%s{i - 1}'}, %p{i} : {total}")
    result = "%p0" if len(weights) == 1 else f"%s{len(weights) - 1}"
    if narrow:
        lines.append(f"%r16 = arith.truncf {result} : f32 to {dtype}")
        result = "%r16"
    lines.append(f'"stencil.return"({result}) : ({dtype}) -> ()')
    return "\n    ".join(lines)
