# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Short kernels in PTX, and launches of them on arrays."""

import numpy as np

from twofour import sim

REGISTERS = ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<16>;"
# Addresses of the arrays in %d0 and %d1, and in %d2 and %d3 those of this thread's words in them.
PROLOGUE = """
ld.param.u64 %d0, [p0];
ld.param.u64 %d1, [p1];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mad.lo.u32 %r3, %r1, %r2, %r0;
mul.wide.u32 %d4, %r3, 4;
add.u64 %d2, %d0, %d4;
add.u64 %d3, %d1, %d4;
shl.b32 %r4, %r0, 2;
"""


def parse(body: str, shared: int = 0, prologue: str = PROLOGUE) -> sim.Module:
    """Kernel `k` with array parameters p0 and p1, and `buffer` of `shared` bytes if any."""
    memory = f".shared .align 16 .b8 buffer[{shared}];" if shared else ""
    text = (
        ".version 8.6\n.target sm_90\n.address_size 64\n"
        f".visible .entry k(.param .u64 p0, .param .u64 p1)\n{{\n{REGISTERS} {memory}\n"
        f"{prologue}{body}\nret;\n}}\n"
    )
    return sim.parse(text, "k.ptx")


class Run:
    """What a launch of a kernel made of its arrays: `out` of uint32, and its counters."""

    def __init__(
        self,
        body: str,
        threads: int = 32,
        blocks: int = 1,
        shared: int = 0,
        values: np.ndarray | None = None,
        words: int | None = None,
        fill: bool = True,
        max_steps: int = 100_000,
    ):
        gpu = sim.Gpu("sm_90")
        words = threads * blocks if words is None else words
        if values is None:
            values = np.arange(threads * blocks, dtype=np.uint32)
        source = gpu.memory.array(values)
        make = gpu.memory.zeros if fill else gpu.memory.empty
        self.out = make(words, np.uint32)
        addresses = [array.__array_interface__["data"][0] for array in (source, self.out)]
        kernel = parse(body, shared).kernels["k"]
        launch = gpu.launch(kernel, (blocks,), (threads,), addresses, max_steps=max_steps)
        self.counters = launch.counters
