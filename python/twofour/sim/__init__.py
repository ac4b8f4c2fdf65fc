# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A simulator of PTX: whole grids in NumPy, with checks and counters.

    from twofour import sim

    module = sim.parse(text, name="add.ptx")
    gpu = sim.Gpu("sm_90")
    a = gpu.memory.array(numpy.arange(1000, dtype=numpy.float32))
    out = gpu.memory.empty(1000, numpy.float32)
    launch = gpu.launch(
        module.kernels["add"],
        grid=(8,),
        block=(128,),
        arguments=[a.ctypes.data, out.ctypes.data, 1000],
    )
    launch.counters.global_load_bytes

Global addresses are addresses of bytes of the arrays that `gpu.memory` makes. A launch raises
`Fault` at the first thing that PTX leaves undefined: accesses out of bounds or misaligned, reads of
memory or registers that nobody wrote, races in shared memory, missing waits for asynchronous
copies, two threads that write one byte of global memory, barriers that not all threads reach. What
the simulator does not know is a `TwofourError` with its line when the text is parsed.
"""

from functools import lru_cache

from twofour.sim.chips import CHIPS, Chip, occupancy
from twofour.sim.counters import Counters
from twofour.sim.faults import Fault, Place
from twofour.sim.gpu import Gpu, Launch, validate
from twofour.sim.memory import Memory
from twofour.sim.parser import parse_module
from twofour.sim.profile import report
from twofour.sim.ptx import Kernel, Module

__all__ = [
    "CHIPS",
    "Chip",
    "Counters",
    "Fault",
    "Gpu",
    "Kernel",
    "Launch",
    "Memory",
    "Module",
    "Place",
    "occupancy",
    "parse",
    "read",
    "report",
]


@lru_cache(maxsize=8)
def read(text: str, name: str = "<ptx>") -> Module:
    """The module of a PTX text, whose instructions are decoded where they are launched.

    The same one again for a text that was read a short while ago. Raises TwofourError with the
    place of what is malformed.
    """
    return parse_module(text, name)


def parse(text: str, name: str = "<ptx>") -> Module:
    """The module of a PTX text; `name` is the file name that locations show.

    Every instruction is decoded: raises TwofourError with the place of the first one that is
    malformed or not supported.
    """
    module = read(text, name)
    validate(module)
    return module
