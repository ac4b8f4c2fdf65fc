# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The variables of a module in global and constant memory."""

import struct
from dataclasses import dataclass

import numpy as np

from twofour.errors import TwofourError
from twofour.sim.machine import CONSTANT_WINDOW
from twofour.sim.memory import Memory
from twofour.sim.ptx import Module, Relocation


@dataclass(frozen=True)
class ModuleVariables:
    """`symbols`: state space and address in it by name; `constants`: the constant memory."""

    symbols: dict[str, tuple[str, int]]
    constants: np.ndarray


def module_variables(module: Module, memory: Memory) -> ModuleVariables:
    """Reserve and initialise the variables of a module.

    Those in constant memory have addresses of their own from 0 on, which fit 32 bits.
    """
    symbols: dict[str, tuple[str, int]] = {}
    places: dict[str, np.ndarray] = {}
    constant_size = 0
    for variable in module.globals.values():
        if variable.space == "const":
            constant_size = -(-constant_size // variable.alignment) * variable.alignment
            symbols[variable.name] = ("const", constant_size)
            constant_size += variable.size
    constants = np.zeros(-(-constant_size // 32) * 32, np.uint8)
    for variable in module.globals.values():
        if variable.space == "const":
            start = symbols[variable.name][1]
            place = constants[start : start + variable.size]
        elif variable.space == "global":
            allocation = memory.reserve(variable.size, variable.alignment)
            symbols[variable.name] = ("global", allocation.start)
            place = allocation.bytes
        else:
            continue
        place[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        places[variable.name] = place
    for name, place in places.items():
        for relocation in module.globals[name].relocations:
            at = slice(relocation.offset, relocation.offset + 8)
            address = struct.pack("<Q", _address(relocation, symbols))
            place[at] = np.frombuffer(address, np.uint8)
    return ModuleVariables(symbols, constants)


def _address(relocation: Relocation, symbols: dict[str, tuple[str, int]]) -> int:
    if relocation.symbol not in symbols:
        raise TwofourError(f"expected a global variable, got {relocation.symbol}")
    space, start = symbols[relocation.symbol]
    window = CONSTANT_WINDOW if space == "const" and relocation.generic else 0
    return window + start + relocation.addend
