# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers to rows, which inner loops step through.

    scf.for %x ... {
      vector.load %view[%row, %x + 1]
      vector.load %view[%row + 1, %x]
    }

becomes

    %start = (where %view[%row, 0] is)
    %stride = (from row to row)
    scf.for %x ... {
      %p = (strip.invariant.group of %start + %x)
      llvm.load (%p + 1)
      %q = (strip.invariant.group of %p + %stride)
      llvm.load %q
    }

LLVM's loop strength reduction tries the sums that addresses are in all combinations, which was most
of the time of compiling a kernel. It does not see through these pointers. Few of them live at a
time, and a loop has little to add up before it begins.
"""

from collections.abc import Sequence
from functools import cache, cached_property
from typing import NamedTuple

from twofour.mlir import arith, builtin, ir, llvm
from twofour.mlir_support import defining_op, is_inside, nested_ops, op_names

_LOOP = "scf.for"
# The operand that is the view; its indices follow.
_ACCESSES = {
    "memref.load": 0,
    "memref.prefetch": 0,
    "memref.store": 1,
    "vector.load": 0,
    "vector.maskedload": 0,
    "vector.maskedstore": 0,
    "vector.store": 1,
}
# Of a descriptor.
_START, _OFFSET, _STRIDES = 1, 2, 4
# An index of getelementptr that is an operand.
_DYNAMIC = -(2**31)

# A row counted from another one, along all axes but the last.
_Row = tuple[int, ...]


class _Index(NamedTuple):
    """A value, None for 0, and what is added to it."""

    base: ir.Value | None
    further: int


def point_at_rows(function) -> None:
    """Let the loops of a function that hold no other step through rows, and end with LLVM's ops.

    A function without vectors stays as it is: LLVM makes vectors of its loops where it sees through
    addresses.
    """
    if not any(name.startswith("vector.") for name in op_names(function)):
        return
    for loop in nested_ops(function, _LOOP):
        body = [op.operation for op in loop.regions[0].blocks[0].operations]
        if not any(op.name == _LOOP for op in body):
            _point_in(loop.operation, [op for op in body if op.name in _ACCESSES])


def _point_in(loop: ir.Operation, accesses: Sequence[ir.Operation]) -> None:
    view_of = cache(lambda value: _View(value, loop))
    index_of = cache(_index)
    changes = cache(lambda value: value is not None and is_inside(value, loop))
    chains: dict[tuple, _Chain] = {}
    for access in accesses:
        operands = list(access.operands)
        place = _ACCESSES[access.name]
        view, first = view_of(operands[place]), place + 1
        *rows, column = map(index_of, operands[first : first + view.rank])
        bases = tuple(row.base for row in rows)
        if not rows or changes(operands[place]) or any(map(changes, bases)):
            continue
        # Not to keep the pointers of prefetches until the stores there.
        key = (view, bases, column.base, access.name == "memref.prefetch")
        if key not in chains:
            chains[key] = _Chain(view, bases, column.base)
        with ir.InsertionPoint(access):
            pointer = chains[key].pointer(tuple(row.further for row in rows))
            if column.further:
                pointer = view.beyond(pointer, column.further)
            _replace(access, pointer, operands[first + view.rank :])


def _index(value: ir.Value) -> _Index:
    further = 0
    while (op := defining_op(value)) is not None:
        if op.name == "arith.constant":
            return _Index(None, further + op.attributes["value"].value)
        last = defining_op(op.operands[1]) if op.name == "arith.addi" else None
        if last is None or last.name != "arith.constant":
            break
        further += last.attributes["value"].value
        value = op.operands[0]
    return _Index(value, further)


def _replace(access: ir.Operation, pointer: ir.Value, last: Sequence[ir.Value]) -> None:
    """Do at a pointer what an access does, whose `last` operands come after its indices."""
    attributes = access.attributes
    if access.name == "memref.prefetch":
        is_write, hint = attributes["isWrite"].value, attributes["localityHint"].value
        llvm.intr_prefetch(pointer, int(is_write), hint, int(attributes["isDataCache"].value))
    elif access.name == "vector.maskedstore":
        mask, value = last
        llvm.intr_masked_store(value, pointer, mask, _alignment(access, value.type))
    elif access.name.endswith("store"):
        value = access.operands[0]
        nontemporal = "nontemporal" in attributes and attributes["nontemporal"].value
        alignment = _alignment(access, value.type)
        llvm.store(value, pointer, alignment=alignment, nontemporal=nontemporal)
    else:
        kind = access.results[0].type
        if access.name == "vector.maskedload":
            mask, passed = last
            alignment = _alignment(access, kind)
            value = llvm.intr_masked_load(kind, pointer, mask, alignment, pass_thru=passed)
        else:
            value = llvm.load(kind, pointer, alignment=_alignment(access, kind))
        access.results[0].replace_all_uses_with(value)
    access.erase()


def _alignment(access: ir.Operation, kind: ir.Type) -> int:
    """What an access says, or else that of an element."""
    if "alignment" in access.attributes:
        return access.attributes["alignment"].value
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    return max(element.width // 8, 1)


class _View:
    """What a loop needs of a view; all but `at` and `beyond` insert it before the loop."""

    def __init__(self, view: ir.Value, loop: ir.Operation):
        self.rank = view.type.rank
        self._view, self._loop, self._element = view, loop, view.type.element_type
        self._i64 = ir.IntegerType.get_signless(64)
        self._pointer = ir.Type.parse("!llvm.ptr")
        self._strides: dict[int, ir.Value] = {}
        self._distances: dict[_Row, ir.Value] = {}

    @cached_property
    def _parts(self) -> ir.Value:
        array = f"array<{self.rank} x i64>"
        descriptor = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64, {array}, {array})>")
        with ir.InsertionPoint(self._loop):
            return builtin.unrealized_conversion_cast([descriptor], [self._view])

    def row(self, bases: Sequence[ir.Value | None], further: _Row) -> ir.Value:
        """Where the row begins that lies further than some indices."""
        with ir.InsertionPoint(self._loop):
            start = llvm.extractvalue(self._pointer, self._parts, [_START])
            offset = llvm.extractvalue(self._i64, self._parts, [_OFFSET])
            for axis, base in enumerate(bases):
                if base is not None:
                    product = arith.muli(arith.index_cast(self._i64, base), self._stride(axis))
                    offset = arith.addi(offset, product)
            start = self._moved(start, offset)
            return self._moved(start, self.distance(further)) if any(further) else start

    def distance(self, row: _Row) -> ir.Value:
        """Elements from a row to one so much further."""
        if row not in self._distances:
            with ir.InsertionPoint(self._loop):
                parts = [self._times(axis, count) for axis, count in enumerate(row) if count]
                total = parts[0]
                for part in parts[1:]:
                    total = arith.addi(total, part)
            self._distances[row] = total
        return self._distances[row]

    def knows(self, row: _Row) -> bool:
        """Whether a distance was asked for before."""
        return row in self._distances

    def at(self, row: ir.Value, column: ir.Value | None) -> ir.Value:
        """A place of a row, given where it begins."""
        return row if column is None else self._moved(row, arith.index_cast(self._i64, column))

    def stepped(self, pointer: ir.Value, row: _Row) -> ir.Value:
        """The same place so many rows further."""
        return self._moved(pointer, self.distance(row))

    def beyond(self, pointer: ir.Value, columns: int) -> ir.Value:
        """A place further in a row."""
        return llvm.getelementptr(
            self._pointer, pointer, [], [columns], self._element, no_wrap_flags=None
        )

    def _moved(self, pointer: ir.Value, elements: ir.Value) -> ir.Value:
        return llvm.getelementptr(
            self._pointer, pointer, [elements], [_DYNAMIC], self._element, no_wrap_flags=None
        )

    def _stride(self, axis: int) -> ir.Value:
        if axis not in self._strides:
            with ir.InsertionPoint(self._loop):
                stride = llvm.extractvalue(self._i64, self._parts, [_STRIDES, axis])
            self._strides[axis] = stride
        return self._strides[axis]

    def _times(self, axis: int, count: int) -> ir.Value:
        stride = self._stride(axis)
        return stride if count == 1 else arith.muli(stride, arith.constant(self._i64, count))


class _Chain:
    """Pointers to one column of rows of a view, each some rows from one before it."""

    def __init__(self, view: _View, bases: Sequence[ir.Value | None], column: ir.Value | None):
        self._view, self._bases, self._column = view, bases, column
        self._made: dict[_Row, ir.Value] = {}

    def pointer(self, row: _Row) -> ir.Value:
        """The pointer to a row, made at the insertion point where there is none."""
        if row not in self._made:
            pointer = self._next(row) if self._made else self._first(row)
            # This is what LLVM does not see through.
            self._made[row] = llvm.intr_strip_invariant_group(pointer)
        return self._made[row]

    def _first(self, row: _Row) -> ir.Value:
        return self._view.at(self._view.row(self._bases, row), self._column)

    def _next(self, row: _Row) -> ir.Value:
        """From a row of the same plane, the last one from which it is a step that others take.

        Planes begin from the first row of all: from plane to plane, steps would wait for each
        other.
        """
        of_plane = [other for other in self._made if other[:-1] == row[:-1]]
        others = of_plane[::-1] or [next(iter(self._made))]
        steps = [tuple(a - b for a, b in zip(row, other, strict=True)) for other in others]
        known = (n for n, step in enumerate(steps) if self._view.knows(step))
        chosen = next(known, 0)
        return self._view.stepped(self._made[others[chosen]], steps[chosen])
