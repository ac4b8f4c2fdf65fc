# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of whole vectors, from the GNU C library, for ops that may be approximated.

    %y = math.exp %x fastmath<afn> : vector<8xf64>

becomes a call of `_ZGVeN8v_exp` on a processor with AVX-512. Its results are within four units in
the last place. Numbers and shorter vectors are in some lanes of a whole one, so that the function
is the same, and a point has the same bits, wherever it is computed.
"""

import ctypes
import platform
import re
from collections.abc import Iterable
from functools import cache

from twofour.codegen.cpu.vector_unit import vector_unit
from twofour.codegen.math_functions import CALLED_FUNCTIONS
from twofour.mlir import func, ir, vector
from twofour.runtime.processor import has_flags

_LIBRARY = "libmvec.so.1"
# The flags of fastmath that allow approximations.
_APPROXIMATE = {"afn", "fast"}
# Names of the processor's registers, by their bytes, in names of functions.
_LETTERS = {64: "e", 32: "d", 16: "b"}


def call_vector_library(module: ir.Module, ops: Iterable) -> list:
    """Replace those of the ops that may be approximated, where the library has the function.

    Returns the ops that are left.
    """
    left, declared = [], {}
    for op in ops:
        found = _function_of(op) if op.operation.name in CALLED_FUNCTIONS else None
        if found is None:
            left.append(op)
            continue
        name, whole = found
        declared[name] = ir.FunctionType.get([whole] * len(op.operands), [whole])
        with ir.InsertionPoint(op), op.location:
            operands = [_widened(operand, whole) for operand in op.operands]
            value = _narrowed(func.call([whole], name, operands), op.results[0].type)
        op.results[0].replace_all_uses_with(value)
        op.operation.erase()
    with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
        for name, kind in declared.items():
            func.FuncOp(name, kind, visibility="private")
    return left


def _function_of(op) -> tuple[str, ir.VectorType] | None:
    """The function that an op may be, and the type of its vectors."""
    if not _may_be_approximated(op) or (library := _library()) is None:
        return None
    kind = op.results[0].type
    is_vector = isinstance(kind, ir.VectorType)
    if is_vector and (kind.rank != 1 or kind.scalable):
        return None
    element = kind.element_type if is_vector else kind
    if not isinstance(element, ir.F32Type | ir.F64Type):
        return None
    size = vector_unit("host").bytes
    lanes = 8 * size // element.width
    if is_vector and kind.shape[0] > lanes:
        return None
    function = {"powf": "pow"}.get(base := op.operation.name.removeprefix("math."), base)
    suffix = "f" if element.width == 32 else ""
    name = f"_ZGV{_LETTERS[size]}N{lanes}{'v' * len(op.operands)}_{function}{suffix}"
    return (name, ir.VectorType.get([lanes], element)) if hasattr(library, name) else None


def _may_be_approximated(op) -> bool:
    if "fastmath" not in op.attributes:
        return False
    flags = re.findall(r"\w+", str(op.attributes["fastmath"]).partition("<")[2])
    return not _APPROXIMATE.isdisjoint(flags)


@cache
def _library() -> ctypes.CDLL | None:
    """The library, for all of the process; None where there is none for this processor."""
    if platform.machine() != "x86_64":
        return None
    if vector_unit("host").bytes == 64 and not has_flags("avx512dq"):
        return None
    try:
        return ctypes.CDLL(_LIBRARY, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return None


def _widened(value: ir.Value, whole: ir.VectorType) -> ir.Value:
    """A value in all lanes, over and over."""
    if not isinstance(value.type, ir.VectorType):
        return vector.broadcast(whole, value)
    (count,), (lanes,) = value.type.shape, whole.shape
    if count == lanes:
        return value
    return vector.shuffle(value, value, [lane % count for lane in range(lanes)])


def _narrowed(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The first lanes."""
    if not isinstance(kind, ir.VectorType):
        return vector.extract(value, [], [0])
    return value if kind == value.type else vector.shuffle(value, value, range(kind.shape[0]))
