# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers to rows, made before the inner loops over them.

    scf.for %row ... { scf.for %x ... { vector.load %view[%row + 1, %x] } }

becomes

    scf.for %row ... {
      %rows = (a descriptor of %view that begins at [%row, 0])
      scf.for %x ... { vector.load %rows[1, %x] }
    }

LLVM's loop strength reduction tries the sum that an address is in all combinations, which was most
of the time of compiling kernels that take several rows in turn. It does not see through the
pointer.
"""

from typing import NamedTuple

from twofour.mlir import arith, builtin, ir, llvm
from twofour.mlir_support import defining_op, is_inside, nested_ops

_LOOP = "scf.for"
# The operand that is the view; its indices follow.
_ACCESSES = {
    "memref.load": 0,
    "memref.store": 1,
    "vector.load": 0,
    "vector.maskedload": 0,
    "vector.maskedstore": 0,
    "vector.store": 1,
}
_START, _OFFSET, _STRIDES = 1, 2, 4
# An index of getelementptr that is an operand.
_DYNAMIC = -(2**31)


class _Index(NamedTuple):
    """An index outside of a loop, or none, and what is added to it."""

    base: ir.Value | None
    further: int


def point_at_rows(function) -> None:
    """Let every loop of a function that holds no other begin with pointers to its rows.

    It adds up what an access adds to them once a row: worth it where rows are long.
    """
    for loop in nested_ops(function, _LOOP):
        body = [op.operation for op in loop.regions[0].blocks[0].operations]
        if not any(op.name == _LOOP for op in body):
            _point_from(loop.operation, [op for op in body if op.name in _ACCESSES])


def _point_from(loop: ir.Operation, accesses: list[ir.Operation]) -> None:
    rows: dict[tuple, ir.Value] = {}
    numbers: dict[int, ir.Value] = {}
    with ir.InsertionPoint(loop):
        for access in accesses:
            place = _ACCESSES[access.name]
            view = access.operands[place]
            indices = [_index(access.operands[place + n], loop) for n in range(1, view.type.rank)]
            if not indices or None in indices or is_inside(view, loop):
                continue
            bases = tuple(index.base for index in indices)
            if (view, bases) not in rows:
                rows[view, bases] = _view_from(view, bases)
            access.operands[place] = rows[view, bases]
            for n, index in enumerate(indices, place + 1):
                if index.further not in numbers:
                    numbers[index.further] = arith.constant(ir.IndexType.get(), index.further)
                access.operands[n] = numbers[index.further]


def _index(value: ir.Value, loop: ir.Operation) -> _Index | None:
    """An index as a sum; None where it changes in the loop."""
    further = 0
    while (op := defining_op(value)) is not None:
        if op.name == "arith.constant":
            return _Index(None, further + op.attributes["value"].value)
        last = defining_op(op.operands[1]) if op.name == "arith.addi" else None
        if last is None or last.name != "arith.constant":
            break
        further += last.attributes["value"].value
        value = op.operands[0]
    return None if is_inside(value, loop) else _Index(value, further)


def _view_from(view: ir.Value, bases: tuple[ir.Value | None, ...]) -> ir.Value:
    """A view that begins where the leading indices of another one are `bases`, 0 for None."""
    rank, i64 = view.type.rank, ir.IntegerType.get_signless(64)
    pointer = ir.Type.parse("!llvm.ptr")
    array = f"array<{rank} x i64>"
    descriptor = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64, {array}, {array})>")
    old = builtin.unrealized_conversion_cast([descriptor], [view])
    offset = llvm.extractvalue(i64, old, [_OFFSET])
    for axis, base in enumerate(bases):
        if base is not None:
            stride = llvm.extractvalue(i64, old, [_STRIDES, axis])
            offset = arith.addi(offset, arith.muli(arith.index_cast(i64, base), stride))
    start = llvm.extractvalue(pointer, old, [_START])
    start = llvm.getelementptr(
        pointer, start, [offset], [_DYNAMIC], view.type.element_type, no_wrap_flags=None
    )
    # This is what LLVM does not see through.
    start = llvm.intr_launder_invariant_group(start)
    zero = llvm.mlir_constant(ir.IntegerAttr.get(i64, 0))
    new = llvm.insertvalue(llvm.insertvalue(old, start, [_START]), zero, [_OFFSET])
    return builtin.unrealized_conversion_cast([view.type], [new])
