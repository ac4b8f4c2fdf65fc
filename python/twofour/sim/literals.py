# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Literals of PTX: integers of every base, decimal floats, and floats given by their bits."""

import re
import struct

from twofour.sim.ptx import Immediate

_FLOAT32 = re.compile(r"(-?)0[fF]([0-9a-fA-F]{8})\Z")
_FLOAT64 = re.compile(r"(-?)0[dD]([0-9a-fA-F]{16})\Z")
_INTEGER = re.compile(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?\Z")
_DECIMAL = re.compile(r"-?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?\Z|-?\d+[eE][+-]?\d+\Z")


def parse_number(text: str) -> Immediate | None:
    """The literal that `text` spells, or None where it is not one or not of 64 bits."""
    if not text or text[0] not in "-.0123456789":
        return None
    if match := _INTEGER.match(text):
        digits = match.group(2)
        octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xXbB"
        value = int(digits, 8) if octal else int(digits, 0)
        value = -value if match.group(1) else value
        return Immediate(value) if -(2**63) <= value < 2**64 else None
    if match := _FLOAT32.match(text):
        (value,) = struct.unpack(">f", bytes.fromhex(match.group(2)))
        return Immediate(-value if match.group(1) else value, 32)
    if match := _FLOAT64.match(text):
        (value,) = struct.unpack(">d", bytes.fromhex(match.group(2)))
        return Immediate(-value if match.group(1) else value, 64)
    return Immediate(float(text)) if _DECIMAL.match(text) else None
