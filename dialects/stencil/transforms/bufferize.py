# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-bufferize`: fields and temps as memrefs, once every sweep is a call of a kernel.

    func.func @heat(%in: !stencil.field<#stencil.bounds<[-1], [65]>, f64>, %out: ...) {
      %t = "stencil.load"(%in) : ...
      %m = builtin.unrealized_conversion_cast %t : ... to memref<66xf64, ...>
      ...
      %alloc = memref.alloc() : memref<64xf64>
      call @heat_kernel0(%m_view, %alloc_view, %c0, %c64)
      %r = builtin.unrealized_conversion_cast %alloc : memref<64xf64> to !stencil.temp<...>
      "stencil.store"(%r, %out) {bounds = #stencil.bounds<[0], [64]>} : ...

becomes

    func.func @heat(%in: memref<66xf64>, %out: memref<66xf64>) {
      %out_view = memref.subview %out[1] [64] [1] ...
      call @heat_kernel0(%in_view, %out_view, %c0, %c64)

A kernel writes straight into the field that its result is stored to, also where it reads the field
at the same points only, unless the function may read that field in another way, or write these
points; then the result is copied. A temp keeps the value it was loaded with: it is a copy where its
field may be written before the temp is read for the last time.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from twofour.box import Box
from twofour.dialects.stencil.aliases import is_memory, may_alias, root
from twofour.dialects.stencil.memory_uses import (
    KERNEL_CALLS,
    copied_before_stores,
    is_written_before_last_read,
    load_of,
    touched_memory,
    views_read,
    works_in_place,
)
from twofour.dialects.stencil.sweep import CAST, subview
from twofour.dialects.stencil.traversal import check_blocks
from twofour.dialects.stencil.types import FieldType, TempType
from twofour.mlir import func, ir, memref
from twofour.mlir_support import defining_op, error_at, nested_ops, op_names
from twofour.passes import ModulePass


def _memref_type(field: FieldType) -> ir.MemRefType:
    """The memref of a field: row-major, static where the bounds are known."""
    if field.box is None:
        dynamic = ir.ShapedType.get_dynamic_size()
        return ir.MemRefType.get([dynamic] * field.rank, field.element_type)
    return ir.MemRefType.get(list(field.box.extents), field.element_type)


def _converted(kind: ir.Type) -> ir.Type:
    return _memref_type(kind) if isinstance(kind, FieldType) else kind


@dataclass(frozen=True)
class _Buffer:
    """A memref that holds a temp, and the temp's bounds."""

    memref: ir.Value
    box: Box

    def view(self, box: Box) -> ir.Value:
        """The part of the buffer that holds `box`."""
        if box == self.box:
            return self.memref
        starts = [lo - first for lo, first in zip(box.lower, self.box.lower, strict=True)]
        return subview(self.memref, starts, box.extents)


@dataclass(frozen=True)
class _Stored:
    """A store to a box of a field, and the field or argument that this is a view of."""

    op: ir.Operation
    field: ir.Value
    root: ir.Value
    box: Box

    def is_apart(self, other: "_Stored") -> bool:
        """Whether it is another part of the same field."""
        return self.field == other.field and self.box.is_apart(other.box)


class _Function:
    """Bufferization of one function."""

    def __init__(self, function: func.FuncOp):
        self.function = function
        self.boxes: dict[ir.Value, Box | None] = {}
        self.temps: dict[ir.Value, _Buffer] = {}
        self.allocated: list[ir.Value] = []  # in the current block
        # As they were: views are replaced by others.
        self.stores = [
            _Stored(op.operation, op.operands[1], root(op.operands[1]), op.bounds.box)
            for op in nested_ops(function, "stencil.store")
        ]
        self.copied = copied_before_stores(function)
        self.touched = touched_memory(function)
        # Known before ops are erased, block by block.
        self.loads = [load_of(op) for op in nested_ops(function, "stencil.load")]
        self.views_read = {
            call.operation: views_read(call) for call in nested_ops(function, *KERNEL_CALLS)
        }

    def run(self) -> None:
        for value in _values(self.function):
            if isinstance(value.type, FieldType):
                self.boxes[value] = value.type.box
        for block in self.function.regions[0].blocks:
            self._block(block)
        for value in _values(self.function):
            value.set_type(_converted(value.type))

    def _block(self, block: ir.Block) -> None:
        outer, self.allocated = self.allocated, []
        done = []
        for op in list(block.operations):
            name = op.operation.name
            with ir.InsertionPoint(op), op.location:
                if name in _HANDLERS and (name != CAST or _is_conversion(op)):
                    _HANDLERS[name](self, op)
                    done.append(op)
                elif name.startswith(("stencil.", "nm.")):
                    raise error_at(op, "expected to be lowered to a kernel before bufferization")
                else:
                    _check_other(op)
                    for region in op.regions:
                        for inner in region.blocks:
                            self._block(inner)
        for op in reversed(done):
            self._erase(op.operation)
        terminator = list(block.operations)[-1]
        with ir.InsertionPoint(terminator), terminator.location:
            for buffer in self.allocated:
                memref.DeallocOp(buffer)
        self.allocated = outer

    def _erase(self, op: ir.Operation) -> None:
        results = list(op.results)
        self.touched = [value for value in self.touched if value not in results]
        op.erase()

    def _load(self, op) -> None:
        source, temp = op.operands[0], op.results[0]
        box = temp.type.box or self.boxes[source]
        if not list(temp.uses):
            return
        view = _Buffer(self._memref(source), self._box(source, op)).view(box)
        if not is_written_before_last_read(op):
            self.temps[temp] = _Buffer(view, box)
            return
        kind = ir.MemRefType.get(list(box.extents), temp.type.element_type)
        copy = memref.AllocOp(kind, [], []).result
        memref.copy(view, copy)
        self.temps[temp] = _Buffer(copy, box)
        self.allocated.append(copy)

    def _store(self, op) -> None:
        temp, field = op.operands
        box, buffer = op.bounds.box, self._buffer_of(temp, op)
        target = _Buffer(self._memref(field), self._box(field, op))
        allocation = defining_op(buffer.memref)
        if self._can_write_through(op, buffer, box):
            with ir.InsertionPoint(allocation):
                view = target.view(box)
            self.allocated.remove(buffer.memref)
            written = _Buffer(view, box)
            # Other temps may be in the same buffer.
            sharing = [one for one, other in self.temps.items() if other == buffer]
            self.temps.update((one, written) for one in sharing)
            buffer.memref.replace_all_uses_with(view)
            self._erase(allocation)
        else:
            memref.copy(buffer.view(box), target.view(box))

    def _can_write_through(self, store, buffer: _Buffer, box: Box) -> bool:
        """Whether the kernel that fills `buffer` may write into the field instead."""
        field, allocation = store.operands[1], defining_op(buffer.memref)
        if buffer.memref not in self.allocated or buffer.box != box:
            return False
        this = next(one for one in self.stores if one.op == store.operation)
        others = [other for other in self.stores if other is not this]
        stored = [other.root for other in others if not this.is_apart(other)]
        if any(may_alias(field, other) for other in (*stored, *self.touched)):
            return False
        if root(field) in self.copied or not self._is_read_before(store, allocation, box):
            return False
        if any(use.owner.operation.name == "memref.subview" for use in buffer.memref.uses):
            # A part of it, of its layout, was stored to another field.
            return False
        owner = defining_op(self._memref(field))
        return (
            owner is None or owner.block != allocation.block or owner.is_before_in_block(allocation)
        )

    def _is_read_before(self, store, allocation: ir.Operation, box: Box) -> bool:
        """Whether what a field holds before a store is read before the kernel runs that fills the
        allocation, or by this kernel only point by point.
        """
        here = store.operation.block
        loads = [load for load in self.loads if may_alias(store.operands[1], load.field)]
        if not loads:
            return True
        kernel = self._kernel_that_fills(allocation)
        views = self.views_read.get(kernel)
        if views is None or any(load.block != here for load in loads):
            return False
        before = [load for load in loads if load.op.is_before_in_block(store.operation)]
        for reader, block in itertools.chain(*(load.readers for load in before)):
            if block != here or (reader != kernel and not reader.is_before_in_block(kernel)):
                return False
        temps = [load.op.results[0] for load in before]
        return all(read == box for temp, read in views if temp in temps)

    def _kernel_that_fills(self, allocation: ir.Operation) -> ir.Operation | None:
        """The call of a kernel that may write to what it reads point by point."""
        for use in allocation.results[0].uses:
            if use.owner.operation.name != "memref.cast":
                continue
            for call in (inner.owner.operation for inner in use.owner.results[0].uses):
                if call.name in KERNEL_CALLS and works_in_place(call):
                    return call
        return None

    def _buffer(self, op) -> None:
        buffer, box = self._buffer_of(op.operands[0], op), op.results[0].type.box
        if list(op.results[0].uses):
            self.temps[op.results[0]] = _Buffer(buffer.view(box), box)

    def _conversion(self, op) -> None:
        """A cast between a temp and a memref, on either side of a sweep."""
        value, result = op.operands[0], op.results[0]
        if isinstance(value.type, ir.MemRefType):
            box, owner = result.type.box, defining_op(value)
            is_own = owner is not None and owner.name == "memref.alloc"
            is_own = is_own and owner.block == op.operation.block
            if not is_own or value in self.allocated or list(box.extents) != value.type.shape:
                raise error_at(op, f"expected memory allocated for {result.type}, got {value.type}")
            self.temps[result] = _Buffer(value, box)
            self.allocated.append(value)
            return
        buffer = self._buffer_of(value, op)
        result.replace_all_uses_with(memref.cast(result.type, buffer.view(value.type.box)))

    def _view(self, op) -> None:
        """A field that is another view of a field or memref."""
        source, result = op.operands[0], op.results[0]
        kind = _memref_type(result.type)
        view = self._memref(source)
        if view.type != kind:
            view = memref.cast(kind, view)
        self.boxes[view] = result.type.box
        result.replace_all_uses_with(view)

    def _external_store(self, op) -> None:
        source, target = op.operands
        if root(source) != root(target):
            memref.copy(self._memref(source), target)

    def _buffer_of(self, temp: ir.Value, op) -> _Buffer:
        if temp not in self.temps:
            raise error_at(op, f"expected a temp that the function computes, got {temp.type}")
        return self.temps[temp]

    def _memref(self, field: ir.Value) -> ir.Value:
        """The field itself, as a memref."""
        if isinstance(field.type, FieldType):
            field.set_type(_memref_type(field.type))
        return field

    def _box(self, field: ir.Value, op) -> Box:
        box = self.boxes.get(field)
        if box is None:
            raise error_at(op, "expected a field with known bounds; give them by stencil.cast")
        return box


_HANDLERS = {
    "stencil.load": _Function._load,
    "stencil.store": _Function._store,
    "stencil.buffer": _Function._buffer,
    "stencil.cast": _Function._view,
    "stencil.external_load": _Function._view,
    "stencil.external_store": _Function._external_store,
    CAST: _Function._conversion,
}


def _is_conversion(op) -> bool:
    """Whether a cast is from a temp of known bounds to a memref, or the other way round."""
    kinds = [value.type for value in (*op.operands, *op.results)]
    temps = [kind for kind in kinds if isinstance(kind, TempType) and kind.box is not None]
    return len(op.operands) == len(op.results) == len(temps) == 1 and any(
        isinstance(kind, ir.MemRefType) for kind in kinds
    )


def _check_other(op) -> None:
    """Temps are used by stencil ops only, and the fields that a loop carries stay distinct."""
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TempType):
            raise error_at(op, f"expected no temps outside of stencil ops, got {value.type}")
    if op.operation.name != "scf.for":
        return
    terminator = list(op.regions[0].blocks[0].operations)[-1]
    for values in (list(op.operands)[3:], list(terminator.operands)):
        fields = [v for v in values if is_memory(v)]
        if any(may_alias(a, b) for a, b in combinations(fields, 2)):
            raise error_at(op, "expected distinct fields in a time loop, got one field twice")


def _has_grids(function: func.FuncOp) -> bool:
    """Whether there may be fields or temps in a function: most are kernels, over memrefs."""
    kind = function.type
    if any(isinstance(value, FieldType | TempType) for value in (*kind.inputs, *kind.results)):
        return True
    return any(name.startswith(("stencil.", "nm.")) or name == CAST for name in op_names(function))


def _values(function: func.FuncOp) -> Iterator[ir.Value]:
    """Every value defined in a function."""
    for op in nested_ops(function):
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.arguments


def _update_signature(function: func.FuncOp) -> None:
    kind = function.type
    inputs, results = map(_converted, kind.inputs), map(_converted, kind.results)
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(list(inputs), list(results))
    )


@dataclass(frozen=True)
class BufferizePass(ModulePass):
    """Turn fields and temps into memrefs, after every sweep became a call of a kernel.

    Fields are row-major memrefs of the extents of their bounds, and copies between them are
    `memref.copy`. Functions get MLIR's C interface.
    """

    name: ClassVar[str] = "stencil-bufferize"

    def run(self, module: ir.Operation) -> None:
        for function in nested_ops(module, "func.func"):
            with function.location:
                if len(function.regions[0].blocks) > 0:
                    if _has_grids(function):
                        check_blocks(function)
                        _Function(function).run()
                    function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
                _update_signature(function)
