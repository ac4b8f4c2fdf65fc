# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bundles of plain kernels, one thread a point, written here as PTX: no compiler takes part."""

import struct

from runtime_reference import convolved, reach
from twofour.runtime import Bundle
from twofour.runtime.manifest import FORMAT

THREADS = 32
ITEMSIZE = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}


def stencil_ptx(name, element, weights):
    """The entry `name`: out[x] = sum of weights[o] * in[x + o], summed in f32 (f64: f64)."""
    lo, _ = reach(weights)
    rank = len(lo)
    wide = element == "f64"
    sums, prefix = ("f64", "0d") if wide else ("f32", "0f")
    lines = []

    def emit(text):
        lines.append(f"  {text};")

    def parameter(register, view, word):
        emit(f"ld.param.u64 {register}, [{name}_{view * (3 + 2 * rank) + word}]")

    for axis in range(rank):
        parameter(f"%n{axis}", 1, 3 + axis)
    emit("mov.u32 %r0, %ctaid.x")
    emit("cvt.u64.u32 %b, %r0")
    emit("mov.u32 %r0, %tid.x")
    emit("cvt.u64.u32 %t, %r0")
    # Blocks of THREADS points along the last axis, the first axis slowest.
    emit(f"add.u64 %q, %n{rank - 1}, {THREADS - 1}")
    emit(f"shr.u64 %q, %q, {THREADS.bit_length() - 1}")
    emit(f"rem.u64 %x{rank - 1}, %b, %q")
    emit("div.u64 %b, %b, %q")
    emit(f"mad.lo.u64 %x{rank - 1}, %x{rank - 1}, {THREADS}, %t")
    for axis in reversed(range(rank - 1)):
        emit(f"rem.u64 %x{axis}, %b, %n{axis}")
        emit(f"div.u64 %b, %b, %n{axis}")
    emit(f"setp.ge.u64 %out, %x{rank - 1}, %n{rank - 1}")
    lines.append("  @%out bra DONE;")
    emit(f"mov.{sums} %sum, {prefix}{'0' * (16 if wide else 8)}")
    for view in (0, 1):
        parameter(f"%p{view}", view, 1)
        emit(f"cvta.to.global.u64 %p{view}, %p{view}")
        for axis in range(rank):
            parameter("%s", view, 3 + rank + axis)
            emit(f"mul.lo.u64 %s{axis}, %s, {ITEMSIZE[element]}")
            emit(f"mad.lo.u64 %p{view}, %x{axis}, %s{axis}, %p{view}")
        if view == 1:
            break
        for offset, weight in weights.items():
            emit("mov.u64 %a, %p0")
            for axis in range(rank):
                emit(f"mad.lo.u64 %a, %s{axis}, {offset[axis] + lo[axis]}, %a")
            _load(emit, element)
            digits = struct.pack(">d" if wide else ">f", weight).hex().upper()
            emit(f"fma.rn.{sums} %sum, %v, {prefix}{digits}, %sum")
    _store(emit, element)
    words = 2 * (3 + 2 * rank)
    parameters = ",\n".join(f"  .param .u64 {name}_{word}" for word in range(words))
    registers = " ".join(f"%{kind}{axis}," for kind in "nxs" for axis in range(rank))
    return "\n".join(
        [
            f".visible .entry {name}(\n{parameters}\n)\n{{",
            f"  .reg .b64 {registers} %b, %t, %q, %s, %a, %p0, %p1;",
            "  .reg .pred %out;\n  .reg .b32 %r0;\n  .reg .b16 %h;",
            f"  .reg .{sums} %sum, %v;",
            *lines,
            "DONE:\n  ret;\n}\n",
        ]
    )


def _load(emit, element):
    if element in ("f32", "f64"):
        emit(f"ld.global.{element} %v, [%a]")
        return
    emit("ld.global.b16 %h, [%a]")
    if element == "f16":
        emit("cvt.f32.f16 %v, %h")
    else:
        emit("cvt.u32.u16 %r0, %h")
        emit("shl.b32 %r0, %r0, 16")
        emit("mov.b32 %v, %r0")


def _store(emit, element):
    if element in ("f32", "f64"):
        emit(f"st.global.{element} [%p1], %sum")
        return
    emit(f"cvt.rn.{element}.f32 %h, %sum")
    emit("st.global.b16 [%p1], %h")


HEADER = ".version 7.8\n.target {target}\n.address_size 64\n\n"


def kernel_entry(rank, alignment, inputs=1, outputs=1, scalars=(), shared_bytes=0):
    """A kernel of the manifest, of the geometry of `stencil_ptx`."""
    return {
        "rank": rank,
        "inputs": inputs,
        "outputs": outputs,
        "scalars": list(scalars),
        "threads": THREADS,
        "tile": [1] * (rank - 1) + [THREADS],
        "march": 1,
        "shared_bytes": shared_bytes,
        "alignment": alignment,
        "resident": None,
        "maps": [],
        "resources": None,
    }


def manifest(element, boundary, kernels, program, target="sm_80"):
    return {
        "format": FORMAT,
        "generator": "twofour 0",
        "target": target,
        "element": element,
        "arithmetic": element,
        "schedule": "simt",
        "source": {"name": "test", "text": ""},
        "pipeline": "",
        "boundary": boundary,
        "kernels": kernels,
        "program": program,
    }


def linear_bundle(
    weights,
    element="f64",
    fused=None,
    alignment=32,
    fields=None,
    target="sm_80",
    cubin=None,
    refresh=False,
):
    """A bundle of one linear stencil, with `fused` steps in one sweep where it is given.

    With `refresh` its manifest names a boundary kernel, which its PTX lacks.
    """
    lo, hi = reach(weights)
    rank = len(lo)
    own = ITEMSIZE[element]
    ptx = HEADER.format(target=target) + stencil_ptx("single", element, weights)
    kernels = {"single": kernel_entry(rank, alignment)}
    if fused:
        ptx += stencil_ptx("fused", element, convolved(weights, fused))
        ptx += stencil_ptx("edges", element, weights)
        kernels |= {"fused": kernel_entry(rank, alignment), "edges": kernel_entry(rank, own)}
    if refresh:
        numbers = ["i32", "index", "index", f"i{8 * own}"] * rank
        kernels["refresh"] = kernel_entry(rank, own, scalars=numbers)
    program = {
        "kind": "linear",
        "name": "test",
        "rank": rank,
        "single": "single",
        "fused": "fused" if fused else None,
        "edges": "edges" if fused else None,
        "fused_steps": fused or 1,
        "reach_lo": list(lo),
        "reach_hi": list(hi),
        "fields": fields,
        "scalars": [],
        "boundary_kernels": ["refresh"] if refresh else [],
    }
    boundary = ["fixed"] * rank
    return Bundle(manifest(element, boundary, kernels, program, target), ptx, cubin)
