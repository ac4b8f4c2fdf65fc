# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When the memory of fields is read and written in a function whose sweeps are calls of kernels."""

from collections.abc import Iterator
from dataclasses import dataclass

from twofour.box import Box
from twofour.codegen.cpu.kernel_abi import IN_PLACE_ATTRIBUTE
from twofour.dialects.stencil.aliases import is_memory, may_alias, root
from twofour.dialects.stencil.sweep import CAST
from twofour.mlir import func, ir
from twofour.mlir_support import defining_op, nested_ops

# Ops that execute kernels: what the kernel is, and the attribute that names it.
KERNEL_CALLS = {"func.call": ("func.func", "callee"), "gpu.launch_func": ("gpu.func", "kernel")}
# Ops that carry memory around without reading or writing it.
_CARRIERS = ("func.return", "scf.for", "scf.yield", "memref.cast", CAST)


@dataclass(frozen=True)
class Load:
    """A load: the memory that it is of, and the ops that read its temp, each with its block."""

    op: ir.Operation
    field: ir.Value
    block: ir.Block
    readers: tuple[tuple[ir.Operation, ir.Block], ...]


def load_of(op) -> Load:
    """What is known of a load before ops around it are erased."""
    found = tuple((reader, reader.block) for reader in readers(op.results[0]))
    return Load(op.operation, root(op.operands[0]), op.operation.block, found)


def is_written_before_last_read(load) -> bool:
    """Whether the field of a load may be written before its temp is read for the last time."""
    source, here = load.operands[0], load.operation.block
    left = set()
    for reader in readers(load.results[0]):
        if reader.block != here:
            return True
        left.add(reader)
    operations = iter(here.operations)
    while next(operations).operation != load.operation:
        pass
    for op in operations:
        left.discard(op.operation)
        if not left:
            return False
        if any(may_alias(source, written) for written in _written(op)):
            return True
    return bool(left)


def readers(temp: ir.Value) -> Iterator[ir.Operation]:
    """The ops that read a temp, also through views of its memory."""
    for use in temp.uses:
        op = use.owner.operation
        if op.name in (CAST, "stencil.buffer", "memref.cast", "memref.subview"):
            for result in op.results:
                yield from readers(result)
        else:
            yield op


def views_read(call) -> list[tuple[ir.Value, Box]] | None:
    """The temps whose memory a kernel reads, and which part; None where that is not plain."""
    found = []
    for operand in call.operands:
        owner = defining_op(operand)
        if not is_memory(operand) or (owner is not None and owner.name == "memref.alloca"):
            continue
        if owner is None or owner.name != "memref.cast":
            return None
        part = defining_op(owner.operands[0])
        if part is not None and part.name == "memref.alloc":
            # What the kernel writes.
            continue
        if part is None or part.name != "memref.subview" or len(part.operands) != 1:
            return None
        whole = defining_op(part.operands[0])
        if whole is None or whole.name != CAST:
            return None
        temp, view = whole.operands[0], part.opview
        starts = [lo + at for lo, at in zip(temp.type.box.lower, view.static_offsets, strict=True)]
        ends = [lo + n for lo, n in zip(starts, view.static_sizes, strict=True)]
        found.append((_loaded_from(temp), Box(tuple(starts), tuple(ends))))
    return found


def _loaded_from(temp: ir.Value) -> ir.Value:
    """The temp that another one has its values from."""
    owner = defining_op(temp)
    while owner is not None and owner.name == "stencil.buffer":
        temp = owner.operands[0]
        owner = defining_op(temp)
    return temp


def works_in_place(call: ir.Operation) -> bool:
    """Whether a call or launch is of a kernel that reads all of a point before it writes it."""
    module = call
    while module.parent is not None:
        module = module.parent
    kind, callee = KERNEL_CALLS[call.name]
    name = call.attributes[callee].value
    name = name if isinstance(name, str) else name[-1]
    for function in nested_ops(module, kind):
        if function.attributes["sym_name"].value == name:
            return IN_PLACE_ATTRIBUTE in function.attributes
    return False


def copied_before_stores(function: func.FuncOp) -> set[ir.Value]:
    """Fields that a `stencil.external_store` reads or writes before a store to them."""
    copies, found = [], set()
    for op in nested_ops(function, "stencil.store", "stencil.external_store"):
        fields = [root(value) for value in op.operands if is_memory(value)]
        if op.operation.name == "stencil.store":
            found.update(f for f in fields if any(may_alias(f, other) for other in copies))
        elif fields[0] != fields[1]:
            copies += fields
    return found


def touched_memory(function: func.FuncOp) -> list[ir.Value]:
    """Memory that ops of other dialects may read and write, besides carrying it around."""
    return [
        root(operand)
        for op in nested_ops(function)
        if not op.operation.name.startswith("stencil.") and op.operation.name not in _CARRIERS
        for operand in op.operands
        if is_memory(operand)
    ]


def _written(op) -> Iterator[ir.Value]:
    """The memory that an op, or one inside it, may write."""
    for inner in nested_ops(op):
        name = inner.operation.name
        if name in ("stencil.store", "stencil.external_store"):
            yield inner.operands[1]
        elif not name.startswith("stencil.") and name not in _CARRIERS:
            yield from filter(is_memory, inner.operands)
