# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which fields may be views of one memory: through casts, and through the ops that carry fields.

The arguments of a function are distinct fields, and so are those that one `scf.for` carries (which
bufferization checks).
"""

from twofour.dialects.stencil.types import FieldType
from twofour.mlir import ir
from twofour.mlir_support import defining_op

_VIEWS = ("stencil.cast", "stencil.external_load", "memref.cast")


def root(value: ir.Value) -> ir.Value:
    """The value that a field is a view of."""
    owner = defining_op(value)
    while owner is not None and owner.name in _VIEWS:
        value = owner.operands[0]
        owner = defining_op(value)
    return value


def is_memory(value: ir.Value) -> bool:
    return isinstance(value.type, FieldType | ir.MemRefType)


def may_alias(first: ir.Value, second: ir.Value) -> bool:
    """Whether two fields may share memory."""
    first, second = root(first), root(second)
    if first == second:
        return True
    place = _place(first)
    if place[0].name in ("func.func", "scf.for") and place == _place(second):
        return False
    return not _origins(first, set()).isdisjoint(_origins(second, set()))


def _place(value: ir.Value) -> tuple[ir.Operation, bool]:
    """The op that brings a value forth, and whether the value lives inside its regions."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation, True
    return owner.operation, False


def _origins(value: ir.Value, seen: set[ir.Value]) -> set[ir.Value]:
    """The values that a field may come from: all that the ops around it carry."""
    value = root(value)
    if value in seen:
        return set()
    seen.add(value)
    op, _ = _place(value)
    if op.name == "func.func" or len(op.regions) == 0:
        return {value}
    ends = [list(block.operations)[-1] for region in op.regions for block in region.blocks]
    carried = [v for end in (op, *ends) for v in end.operands if is_memory(v)]
    return set().union(*(_origins(v, seen) for v in carried))
