# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""AArch64 object files from LLVM IR, for any machine with SME."""

import struct

import llvmlite.binding as llvmlite

from twofour.errors import TwofourError
from twofour.targets.object_file import to_object

TRIPLE = "aarch64-unknown-linux-gnu"
# SME without SVE would be refused for want of SVE's predicates outside of streaming mode.
FEATURES = "+sve,+sme,+sme-f64f64"
# What code that uses the matrix registers needs from the compiler's run-time library.
RUNTIME_FUNCTIONS = {"__arm_tpidr2_save"}


def to_arm_object(llvm_ir: str) -> bytes:
    """Optimised position-independent code.

    Raises:
        TwofourError: IR that llvmlite's LLVM does not read, or code that calls functions which
            nobody has, such as intrinsics that this LLVM does not know.
    """
    llvmlite.initialize_all_targets()
    llvmlite.initialize_all_asmprinters()
    data = to_object(llvm_ir, TRIPLE, features=FEATURES)
    if unknown := undefined_symbols(data) - RUNTIME_FUNCTIONS:
        raise TwofourError(f"expected code that calls nothing, got calls of {sorted(unknown)}")
    return data


def undefined_symbols(data: bytes) -> set[str]:
    """The names that a little-endian ELF64 object takes from elsewhere."""
    sections_at, size, count = (
        struct.unpack_from("<Q", data, 40)[0],
        *struct.unpack_from("<HH", data, 58),
    )
    # Fields of a section header: type, offset, size, link.
    sections = [
        struct.unpack_from("<4xI16xQQI20x", data, sections_at + size * i) for i in range(count)
    ]
    found = set()
    for kind, offset, length, link in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        names = sections[link][1]
        for at in range(offset, offset + length, 24):
            name, section = struct.unpack_from("<I2xH", data, at)
            if name and section == 0:  # SHN_UNDEF
                end = data.index(b"\0", names + name)
                found.add(data[names + name : end].decode())
    return found
