# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulated GPU: its memory, and launches of kernels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.errors import TwofourError
from twofour.sim import chips
from twofour.sim.counters import Counters
from twofour.sim.executor import Executor
from twofour.sim.memory import Memory
from twofour.sim.module_variables import ModuleVariables, module_variables
from twofour.sim.program import Program, shared_layout
from twofour.sim.ptx import Kernel, Module, Parameter

# A number, or the bytes of a parameter that is an array.
Argument = int | float | np.number | np.bool_ | bytes | bytearray

# So many lanes at a time keep the registers of a kernel in the caches.
_LANES = 16384
_BATCH_BYTES = 512 << 20
_PROGRAMS = 8


@dataclass(frozen=True)
class Launch:
    """A launch that ended without a finding."""

    counters: Counters


class Gpu:
    """A simulated GPU of a chip such as "sm_90". Its memory is that of the process."""

    def __init__(self, chip: str):
        self.chip = chips.find(chip)
        self.name = chip
        self.memory = Memory()
        self._variables: dict[int, tuple[Module, ModuleVariables]] = {}
        self._programs: dict[tuple, Program] = {}

    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Argument],
        shared_bytes: int = 0,
        max_steps: int = 1_000_000,
    ) -> Launch:
        """Run a kernel to its end.

        `grid` and `block` have up to three extents. `arguments` are Python or NumPy numbers, one
        for each parameter (bytes for one that is an array); a pointer is the address of a byte in
        an array of `memory`. `shared_bytes` of dynamic shared memory follow the kernel's own.
        `max_steps` bounds the instructions that a batch of blocks executes.

        Raises Fault for what PTX leaves undefined, TwofourError for a launch that no such chip
        could run.
        """
        grid, block = _extents(grid, "grid"), _extents(block, "block")
        threads = int(np.prod(block))
        self._check(kernel, block, threads, shared_bytes)
        parameters = pack(kernel, arguments)
        blocks = int(np.prod(grid, dtype=np.int64))
        counters = Counters()
        batch = self._batch(kernel, blocks, threads, shared_bytes)
        program = self._program(kernel, batch, grid, block, shared_bytes)
        launch = program.binder.launch
        launch.counters, launch.parameters = counters, parameters
        program.machine.trace[1:] = []
        program.binder.globals.start()
        executor = Executor(program, blocks, max_steps)
        for first in range(0, blocks, batch):
            executor.run(first)
        program.count(counters)
        program.binder.globals.finish()
        return Launch(counters)

    def _check(
        self, kernel: Kernel, block: tuple[int, int, int], threads: int, shared_bytes: int
    ) -> None:
        where = kernel.location
        if threads > self.chip.block_threads:
            raise TwofourError(
                f"expected at most {self.chip.block_threads} threads in a block, got {threads}",
                where,
            )
        required = kernel.directives.get("reqntid")
        if required and tuple(required) + (1,) * (3 - len(required)) != block:
            raise TwofourError(f"expected blocks of {required} threads, got {block}", where)
        most = kernel.directives.get("maxntid")
        if most and threads > int(np.prod(most)):
            raise TwofourError(
                f"expected at most {int(np.prod(most))} threads in a block, got {threads}", where
            )
        size = shared_layout(kernel, shared_bytes).size
        if size > self.chip.block_shared:
            raise TwofourError(
                f"expected at most {self.chip.block_shared} bytes of shared memory on {self.name}, "
                f"got {size}",
                where,
            )

    def _batch(self, kernel: Kernel, blocks: int, threads: int, shared_bytes: int) -> int:
        """How many blocks run together: all batches get about the same number."""
        lanes = -(-threads // 32) * 32
        most = max(1, _LANES // lanes)
        shared = max(shared_layout(kernel, shared_bytes).size, 1)
        most = max(1, min(most, _BATCH_BYTES // (shared * 4)))
        return -(-blocks // -(-blocks // most))

    def _program(
        self,
        kernel: Kernel,
        batch: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
    ) -> Program:
        key = (id(kernel), batch, grid, block, shared_bytes)
        program = self._programs.pop(key, None)
        if program is None or program.kernel is not kernel:
            variables = self._module_variables(kernel.module)
            program = Program(kernel, batch, grid, block, shared_bytes, self.memory, variables)
        self._programs[key] = program
        while len(self._programs) > _PROGRAMS:
            del self._programs[next(iter(self._programs))]
        return program

    def _module_variables(self, module: Module) -> ModuleVariables:
        """The module's variables in global and constant memory, made on first use."""
        if id(module) not in self._variables:
            self._variables[id(module)] = (module, module_variables(module, self.memory))
        return self._variables[id(module)][1]


def pack(kernel: Kernel, arguments: Sequence[Argument]) -> bytes:
    """The bytes of a kernel's parameters."""
    if len(arguments) != len(kernel.parameters):
        raise TwofourError(
            f"expected {len(kernel.parameters)} arguments of {kernel.name}, got {len(arguments)}",
            kernel.location,
        )
    last = kernel.parameters[-1] if kernel.parameters else None
    data = bytearray(last.offset + last.size if last else 0)
    for parameter, value in zip(kernel.parameters, arguments, strict=True):
        data[parameter.offset : parameter.offset + parameter.size] = _packed(parameter, value)
    return bytes(data)


def _packed(parameter: Parameter, value: Argument) -> bytes:
    if isinstance(value, bytes | bytearray):
        if len(value) != parameter.size:
            raise TwofourError(
                f"expected {parameter.size} bytes for {parameter.name}, got {len(value)}"
            )
        return bytes(value)
    kind, size = parameter.kind, parameter.size
    is_float = isinstance(value, float | np.floating)
    if is_float or kind in ("f16", "f32", "f64"):
        # A float for an untyped parameter has the width of the parameter.
        formats = {2: np.float16, 4: np.float32, 8: np.float64}
        if size not in formats or kind[0] in "us":
            raise TwofourError(f"expected an integer for {parameter.name}, got {value!r}")
        return formats[size](value).tobytes()
    if isinstance(value, bool | np.bool_):
        value = int(value)
    if isinstance(value, int | np.integer):
        if not -(1 << 8 * size - 1) <= int(value) < 1 << 8 * size:
            raise TwofourError(f"expected {size} bytes for {parameter.name}, got {value}")
        return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    raise TwofourError(f"expected a number for {parameter.name}, got {value!r}")


def _extents(extents: Sequence[int], what: str) -> tuple[int, int, int]:
    result = tuple(int(n) for n in extents)
    if not 1 <= len(result) <= 3 or any(n < 1 for n in result):
        raise TwofourError(f"expected one to three positive extents of the {what}, got {result}")
    return (result + (1, 1))[:3]


def validate(module: Module) -> None:
    """Decode every kernel of a module once, on one warp: raises TwofourError where it cannot."""
    memory = Memory()
    variables = module_variables(module, memory)
    for kernel in module.kernels.values():
        Program(kernel, 1, (1, 1, 1), (32, 1, 1), 0, memory, variables)
