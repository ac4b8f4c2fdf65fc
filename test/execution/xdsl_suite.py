# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stencil programs in the tests of a checkout of xDSL, one function each."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xdsl.dialects import builtin, stencil

from numpy_stencil import FLOAT_DTYPES, UnsupportedProgram, parse

_SPLIT = re.compile(r"^\s*// -----.*$", re.MULTILINE)
_COMMENT_LINE = re.compile(r"^\s*//.*$", re.MULTILINE)
_LONG_LOOP = re.compile(r"(arith\.constant) \d{3,} : index")

MOST_ELEMENTS = 2**24


@dataclass(frozen=True)
class Program:
    """A function that uses the stencil dialect, alone in its module."""

    path: str
    function: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.function}"


def programs(checkout: Path) -> list[Program]:
    """The distinct functions with stencil ops below `tests/filecheck`, less what xDSL refuses.

    Loops of hundreds of steps are cut to three.
    """
    found: dict[str, Program] = {}
    root = checkout / "tests" / "filecheck"
    for path in sorted(root.rglob("*.mlir")):
        text = path.read_text()
        if "stencil." not in text:
            continue
        for chunk in _SPLIT.split(text):
            for name, function in _functions(_COMMENT_LINE.sub("", chunk)):
                program = Program(str(path.relative_to(root)), name, function)
                found.setdefault(function, program)
    return list(found.values())


def _functions(chunk: str) -> list[tuple[str, str]]:
    if "stencil." not in chunk:
        return []
    try:
        module = parse(chunk)
    except Exception:  # noqa: BLE001 - a chunk that tests an error, of any class
        return []
    return [
        (op.sym_name.data, _LONG_LOOP.sub(r"\1 3 : index", str(op)))
        for op in module.walk()
        if op.name == "func.func" and any(inner.name.startswith("stencil.") for inner in op.walk())
    ]


def random_arguments(program: Program, seed: int = 0) -> list:
    """Random values for the arguments of a program: arrays for fields and memrefs, else numbers.

    Arrays of fields with unknown bounds get the extents that a cast gives them, or 8 an axis.
    Raises UnsupportedProgram for other arguments and for arrays of more than MOST_ELEMENTS.
    """
    random = np.random.default_rng(seed)
    function = next(op for op in parse(program.text).walk() if op.name == "func.func")
    values = []
    for argument in function.body.block.args:
        kind = argument.type
        if isinstance(kind, stencil.FieldType | builtin.MemRefType):
            values.append(_random_array(random, kind.element_type, _extents(argument)))
        else:
            values.append(_random_array(random, kind, ())[()])
    return values


def _random_array(random: np.random.Generator, kind, shape: tuple[int, ...]) -> np.ndarray:
    if math.prod(shape) > MOST_ELEMENTS:
        raise UnsupportedProgram(f"an array of shape {shape}")
    if type(kind) in FLOAT_DTYPES:
        return random.uniform(0.5, 1.5, shape).astype(FLOAT_DTYPES[type(kind)])
    if isinstance(kind, builtin.IndexType | builtin.IntegerType):
        return random.integers(0, 2, shape)
    raise UnsupportedProgram(f"an argument of type {kind}")


def _extents(value) -> tuple[int, ...]:
    """The extents of a field or memref, or those of the first use that knows them."""
    shape = value.type.get_shape()
    if builtin.DYNAMIC_INDEX not in shape:
        return tuple(shape)
    for use in value.uses:
        if use.operation.name in ("stencil.cast", "stencil.external_load"):
            return _extents(use.operation.results[0])
        if use.operation.name == "stencil.external_store" and use.index == 0:
            return _extents(use.operation.operands[1])
    return (8,) * len(shape)
