# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moving the region of an apply into a kernel that computes one point."""

from collections import defaultdict
from collections.abc import Sequence

from twofour.box import Box
from twofour.codegen.cpu.kernel_abi import EntryConstants, shifted, view_type
from twofour.dialects.stencil.ops import ApplyOp
from twofour.dialects.stencil.sweep import SweepInput
from twofour.dialects.stencil.traversal import accesses, captured_values
from twofour.dialects.stencil.types import ResultType, TempType
from twofour.mlir import arith, ir, memref
from twofour.mlir_support import defining_op, is_inside, nested_ops
from twofour.reach import Extents, reach_of


class AppliedRegion:
    """The region of an apply, and the arguments of the kernel that it becomes.

    `inputs` are the temps that it reads (one read along different axes counts once for each);
    `scalars` are the captured values that are neither temps nor constants.
    """

    def __init__(self, apply: ApplyOp, domain: Box):
        self.apply, self.domain = apply, domain
        offsets = defaultdict(list)
        for access in accesses(apply):
            offsets[access.operands[0], access.axes].append(access.offset_tuple)
        self.inputs = [SweepInput(temp, list(at), axes) for (temp, axes), at in offsets.items()]
        self.scalars = [
            value
            for value in captured_values(apply)
            if not isinstance(value.type, TempType) and not is_constant(value)
        ]

    def argument_types(self) -> list[ir.Type]:
        """The types of the kernel's input views, scalars and output views."""
        results = self.apply.results
        return [
            *(view_type(len(i.axes), i.temp.type.element_type) for i in self.inputs),
            *(scalar.type for scalar in self.scalars),
            *(view_type(self.domain.rank, result.type.element_type) for result in results),
        ]

    def views(
        self, arguments: Sequence[ir.Value]
    ) -> dict[tuple[ir.Value, tuple[int, ...]], tuple[ir.Value, Extents]]:
        """Of each temp along some axes: its view among the kernel's arguments, its reach below."""
        return {
            (item.temp, item.axes): (view, reach_of(item.offsets)[0])
            for item, view in zip(self.inputs, arguments, strict=False)
        }

    def last_rows(self, arguments: Sequence[ir.Value]) -> list[tuple[ir.Value, tuple[int, ...]]]:
        """Of each input that has all axes: its view, and where the last row begins in it that the
        first output reads.
        """
        found = []
        for item, (view, lo) in zip(self.inputs, self.views(arguments).values(), strict=True):
            if len(item.axes) == self.domain.rank:
                last = max(at[:-1] for at in item.offsets)
                found.append((view, (*(a + b for a, b in zip(last, lo[:-1], strict=True)), 0)))
        return found

    def outputs(self, arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """The output views among the kernel's arguments."""
        first = len(self.inputs) + len(self.scalars)
        return list(arguments[first : first + len(self.apply.results)])

    def emit(
        self,
        arguments: Sequence[ir.Value],
        points: Sequence[list[ir.Value]],
        constants: EntryConstants,
    ) -> None:
        """Compute the region at the insertion point, inside the kernel, once for each of `points`.

        Points count from the start of the output views. Accesses become loads, and what
        `stencil.return` has is stored after all of them.
        """
        outputs = self.outputs(arguments)
        found = [_Copy(self, arguments, point, constants).run() for point in points]
        for point, values in zip(points, found, strict=True):
            for value, view in zip(values, outputs, strict=True):
                memref.store(value, view, point)


def is_constant(value: ir.Value) -> bool:
    """Whether a value is the result of `arith.constant`."""
    owner = defining_op(value)
    return owner is not None and owner.name == "arith.constant"


def sink_numbers(apply: ApplyOp) -> None:
    """Compute in the region what its function computes from numbers.

    What is left of the function are launches, which the runtime makes without running code of it.
    """
    while (outside := _computed_outside(apply)) is not None:
        with ir.InsertionPoint.at_block_begin(apply.block):
            copies = list(outside.clone().results)
        results = list(outside.results)
        for op in nested_ops(apply):
            for position, operand in enumerate(op.operands):
                if operand in results:
                    op.operation.operands[position] = copies[results.index(operand)]
        if not any(list(result.uses) for result in results):
            outside.erase()


def _computed_outside(apply: ApplyOp) -> ir.Operation | None:
    """An op before the apply that computes a number which its region uses, constants aside."""
    for value in captured_values(apply):
        owner = defining_op(value)
        if owner is None or is_constant(value):
            continue
        if owner.name.startswith(("arith.", "math.")):
            return owner
    return None


class _Copy:
    def __init__(
        self,
        region: AppliedRegion,
        arguments: Sequence[ir.Value],
        point: list[ir.Value],
        constants: EntryConstants,
    ):
        self.apply, self.domain = region.apply, region.domain
        self.views = region.views(arguments)
        scalars = arguments[len(region.inputs) :]
        self.scalars = dict(zip(region.scalars, scalars, strict=False))
        self.point, self.constants = point, constants
        self.kernel = region.outputs(arguments)[0].owner.owner.operation
        self.returned: list[ir.Value] = []

    def run(self) -> list[ir.Value]:
        """The values that the region returns."""
        clone = self.apply.operation.clone()
        moved = list(clone.opview.block.operations)
        for op in moved:
            op.operation.move_before(clone.operation)
        clone.erase()
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
                self._replace(inner)
        return self.returned

    def _copy_captured(self, op) -> None:
        """Scalars become arguments of the kernel; constants from outside are copied into it."""
        for position, operand in enumerate(op.operands):
            if operand in self.scalars:
                op.operation.operands[position] = self.scalars[operand]
            elif is_constant(operand) and not is_inside(operand, self.kernel):
                op.operation.operands[position] = self.constants.get(
                    operand, lambda operand=operand: defining_op(operand).clone().results[0]
                )

    def _replace(self, op) -> None:
        name, point = op.operation.name, self.point
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
                self.returned = list(op.operands)
        op.operation.erase()
