# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-to-loops`: applies of any kind as plain loops (the general path).

    %r = "stencil.apply"() ({ ... }) : () -> !stencil.temp<...>

becomes a call of a function that is appended to the module: loops over the domain whose body is the
region, with accesses as `memref.load` and `stencil.return` as `memref.store`.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.stencil.box import Box
from twofour.dialects.stencil.ops import ApplyOp
from twofour.dialects.stencil.sweep import (
    SweepInput,
    kernel_name,
    known_domain,
    module_end,
    replace_by_sweep,
)
from twofour.dialects.stencil.traversal import accesses, captured_values, nested_ops
from twofour.dialects.stencil.types import ResultType, TempType
from twofour.mlir import arith, func, ir, memref, scf
from twofour.mlir_support import defining_op, is_inside
from twofour.passes import ModulePass
from twofour.targets.cpu.kernel_abi import EntryConstants, kernel_function, shifted, view_type


def _inputs(apply: ApplyOp) -> list[SweepInput]:
    """The temps that an apply reads; one read along different axes counts once for each."""
    offsets = defaultdict(list)
    for access in accesses(apply):
        offsets[access.operands[0], access.axes].append(access.offset_tuple)
    return [SweepInput(temp, list(at), axes) for (temp, axes), at in offsets.items()]


def _scalars(apply: ApplyOp) -> list[ir.Value]:
    """Captured values that are not temps and not constants."""
    return [
        value
        for value in captured_values(apply)
        if not isinstance(value.type, TempType) and not _is_constant(value)
    ]


def _is_constant(value: ir.Value) -> bool:
    owner = defining_op(value)
    return owner is not None and owner.name == "arith.constant"


def _convert(apply: ApplyOp) -> None:
    domain = known_domain(apply)
    inputs, scalars = _inputs(apply), _scalars(apply)
    name = kernel_name(apply)
    with module_end(apply), apply.location:
        arguments = [view_type(len(i.axes), i.temp.type.element_type) for i in inputs]
        arguments += [scalar.type for scalar in scalars]
        arguments += [view_type(domain.rank, r.type.element_type) for r in apply.results]
        function = kernel_function(name, arguments, None if scalars else len(inputs))
        with ir.InsertionPoint(function.entry_block):
            _Body(apply, inputs, scalars, function.entry_block, domain).emit()
            func.ReturnOp([])
    replace_by_sweep(apply, name, inputs, scalars)


class _Body:
    """The loops of a kernel; the region of the apply is moved into the innermost one."""

    def __init__(self, apply: ApplyOp, inputs, scalars, entry: ir.Block, domain: Box):
        values = list(entry.arguments)
        self.apply, self.domain = apply, domain
        self.views = {
            (item.temp, item.axes): (view, [-min(c) for c in zip(*item.offsets, strict=True)])
            for item, view in zip(inputs, values, strict=False)
        }
        self.scalars = dict(zip(scalars, values[len(inputs) :], strict=False))
        self.outputs = values[len(inputs) + len(scalars) : -2]
        self.begin, self.end = values[-2:]
        self.constants = EntryConstants(entry)
        self.kernel = entry.owner.operation

    def emit(self) -> None:
        self._loop([])

    def _loop(self, point: list[ir.Value]) -> None:
        axis = len(point)
        if axis == self.domain.rank:
            self._move_region(point)
            return
        begin, end = self.begin, self.end
        if axis > 0:
            begin = self.constants.index(0)
            end = memref.dim(self.outputs[0], self.constants.index(axis))
        for index in scf.for_(begin, end, self.constants.index(1)):
            self._loop([*point, index])
            scf.yield_([])

    def _move_region(self, point: list[ir.Value]) -> None:
        # An op that holds the place where the region's ops go, in their order.
        anchor = arith.ConstantOp(ir.IndexType.get(), 0).operation
        for op in list(self.apply.block.operations):
            op.operation.move_before(anchor)
        moved = [op for op in anchor.block.operations if op.operation != anchor]
        anchor.erase()
        for op in moved:
            for inner in nested_ops(op):
                self._copy_captured(inner)
        for op in moved:
            for inner in nested_ops(op):
                for result in inner.results:
                    if isinstance(result.type, ResultType):
                        # What `scf.if` yields is the value itself from here on.
                        result.set_type(result.type.element_type)
        for op in moved:
            for inner in nested_ops(op):
                self._replace(inner, point)

    def _copy_captured(self, op) -> None:
        """Scalars become arguments of the kernel; constants from outside are copied into it."""
        for position, operand in enumerate(op.operands):
            if operand in self.scalars:
                op.operation.operands[position] = self.scalars[operand]
            elif _is_constant(operand) and not is_inside(operand, self.kernel):
                op.operation.operands[position] = self.constants.get(
                    operand, lambda operand=operand: defining_op(operand).clone().results[0]
                )

    def _replace(self, op, point: list[ir.Value]) -> None:
        name = op.operation.name
        if not name.startswith("stencil."):
            return
        with ir.InsertionPoint(op), op.location:
            if name == "stencil.access":
                view, lo = self.views[op.operands[0], op.axes]
                shift = [a + b for a, b in zip(op.offset_tuple, lo, strict=True)]
                at = shifted(self.constants, [point[axis] for axis in op.axes], shift)
                op.results[0].replace_all_uses_with(memref.load(view, at))
            elif name == "stencil.index":
                dim = op.dim.value
                shift = self.domain.lower[dim] + list(op.offset)[dim]
                value = arith.addi(point[dim], self.constants.index(shift))
                op.results[0].replace_all_uses_with(value)
            elif name == "stencil.store_result":
                op.results[0].replace_all_uses_with(op.operands[0])
            elif name == "stencil.return":
                for value, view in zip(op.operands, self.outputs, strict=True):
                    memref.store(value, view, point)
        op.operation.erase()


@dataclass(frozen=True)
class ConvertStencilToLoopsPass(ModulePass):
    """Lower applies of any kind to plain loops over their domain (the general path)."""

    name: ClassVar[str] = "convert-stencil-to-loops"

    def run(self, module: ir.Operation) -> None:
        for apply in nested_ops(module, ApplyOp.OPERATION_NAME):
            _convert(apply)
