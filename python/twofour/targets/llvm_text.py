# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR as the MLIR bindings print it, rewritten for llvmlite's older LLVM.

Two differences were met so far. The newer printer gives floating-point constants as the shortest
decimal and spells infinities and NaNs out. And its intrinsics that load and store slices of SME
tiles have the address space in their names: an older LLVM would take these for functions, and call
them. Everything else is passed on; a construct that the older parser does not know is an error of
that parser, never a guess.
"""

import re

import numpy as np

from twofour.errors import TwofourError
from twofour.runtime.dtypes import float32_to_bf16

_NUMBER = r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?"
_SPECIAL = r"[+-](?:inf|qnan|s?nan\(0x[0-9A-Fa-f]+\))|f0x[0-9A-Fa-f]+"
_MAY_HOLD_NUMBER = re.compile(r"\d\.\d|f0x|[+-](?:inf|q?nan|snan)")
_TOKEN = re.compile(
    rf'(?P<text>"[^"]*")|(?<![\w.%@])(?P<type>half|bfloat|float|double)\b'
    rf"|(?<![\w.%@-])(?P<number>{_NUMBER}|{_SPECIAL})(?![\w.])"
)

_SLICE_ACCESS = re.compile(r"(@llvm\.aarch64\.sme\.(?:ld|st)1[bhwdq]\.(?:horiz|vert))\.p0\b")

# Bits of an infinity and of the first bit of a mantissa, by type.
_INFINITY = {"half": 0x7C00, "bfloat": 0x7F80, "float": 0x7F800000, "double": 0x7FF << 52}
_QUIET = {"half": 1 << 9, "bfloat": 1 << 6, "float": 1 << 22, "double": 1 << 51}
_SIGN = {"half": 1 << 15, "bfloat": 1 << 15, "float": 1 << 31, "double": 1 << 63}


def adapt(text: str) -> str:
    """The module with constants and names of intrinsics that every LLVM reads alike.

    Raises:
        TwofourError: a constant without a type before it on its line, or a signalling NaN of
            float, which has no spelling that the older LLVM keeps.
    """
    return "\n".join(map(_adapt_line, _SLICE_ACCESS.sub(r"\1", text).split("\n")))


def _adapt_line(line: str) -> str:
    if not _MAY_HOLD_NUMBER.search(line):
        return line
    kind = None

    def replace(match: re.Match) -> str:
        nonlocal kind
        if match["type"]:
            kind = match["type"]
        if not match["number"]:
            return match[0]
        if kind is None:
            raise TwofourError(f"expected a type before {match[0]} in LLVM IR, got: {line.strip()}")
        return _spell(_bits(match["number"], kind), kind)

    return _TOKEN.sub(replace, line)


def _bits(number: str, kind: str) -> int:
    if number.startswith("f0x"):
        return int(number[3:], 16)
    special = re.fullmatch(r"([+-])(inf|qnan|nan|snan)(?:\((0x[0-9A-Fa-f]+)\))?", number)
    if special:
        bits = _INFINITY[kind] | int(special[3] or "0", 16)
        if special[2] in ("qnan", "nan"):
            bits |= _QUIET[kind]
        return bits | (_SIGN[kind] if special[1] == "-" else 0)
    with np.errstate(over="ignore"):
        if kind == "bfloat":
            return int(float32_to_bf16(np.float32(number)))
        floating = {"half": np.float16, "float": np.float32, "double": np.float64}[kind]
        value = floating(number)
    return int(value.view(f"u{value.itemsize}"))


def _spell(bits: int, kind: str) -> str:
    if kind == "half":
        return f"0xH{bits:04X}"
    if kind == "bfloat":
        return f"0xR{bits:04X}"
    if kind == "float":
        # Written with the digits of the double of the same value.
        value = np.array(bits, np.uint32).view(np.float32)
        if np.isnan(value) and not bits & _QUIET["float"]:
            raise TwofourError(f"expected no signalling NaN of float in LLVM IR, got {bits:#x}")
        bits = int(value.astype(np.float64).view(np.uint64))
    return f"0x{bits:016X}"
