# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-infer-bounds`: give bounds to temps of unknown bounds, from the stores backwards.

    %t = "stencil.load"(%u) : ... -> !stencil.temp<2 : i64, f64>
    %r = "stencil.apply"() ({ ... offset = array<i64: -1, 0> ... }) : ...  (of the same type)
    "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [64, 64]>} : ...

becomes the same with `%r` on [0,64]x[0,64] and `%t` on [-1,64]x[0,64]: each temp is as large as its
uses need, no larger. Bounds that are already known are kept, unless other passes have removed uses
since and the pass is to shrink temps: what nobody reads need not be computed. Temps that nothing
reads at all have no bounds to infer, and what computes them is erased.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

from twofour.box import Box
from twofour.dialects.stencil.linear_ops import linear_terms
from twofour.dialects.stencil.traversal import accesses, check_blocks, erase_unused, is_linear_op
from twofour.dialects.stencil.types import TempType
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_functions, nested_ops
from twofour.passes import ModulePass


class _Needs:
    """The box that each temp must hold, and the ops that need it.

    With `shrink` known bounds become no larger than that.
    """

    def __init__(self, shrink: bool):
        self.shrink = shrink
        self._uses: dict[ir.Value, list[tuple[object, Box]]] = defaultdict(list)

    def add(self, temp: ir.Value, op, box: Box) -> None:
        self._uses[temp].append((op, box))

    def box(self, temp: ir.Value) -> Box | None:
        total = None
        for _, box in self._uses[temp]:
            total = box.union(total)
        return total

    def check(self, temp: ir.Value, available: Box, what: str) -> None:
        """Raise TwofourError at the first op that needs more than there is."""
        for op, box in self._uses[temp]:
            if not available.contains(box):
                raise error_at(op, f"expected {what} to cover {box}, got {available}")


def _infer_block(block: ir.Block, needs: _Needs) -> None:
    for op in reversed(list(block.operations)):
        name = op.operation.name
        if name == "stencil.store":
            needs.add(op.operands[0], op, op.bounds.box)
        elif name == "stencil.apply":
            _infer_results(op, needs)
            if op.domain is not None:
                for access in accesses(op):
                    box = op.domain.project(access.axes).reach([access.offset_tuple])
                    needs.add(access.operands[0], access, box)
        elif name == "stencil.buffer" or is_linear_op(op):
            _infer_results(op, needs)
            box = op.results[0].type.box
            if box is not None:
                reach = box.reach(linear_terms(op)[0]) if is_linear_op(op) else box
                needs.add(op.operands[0], op, reach)
                for addend in list(op.operands)[1:]:
                    needs.add(addend, op, box)
        elif name == "stencil.load":
            _infer_load(op, needs)
        else:
            for region in op.regions:
                for inner in region.blocks:
                    _infer_block(inner, needs)


def _infer_results(op, needs: _Needs) -> None:
    """Results of an op share one box: all that any of them is needed on."""
    needed = None
    for result in op.results:
        box = needs.box(result)
        needed = needed if box is None else box.union(needed)
    for result in op.results:
        known = result.type.box
        if known is not None:
            needs.check(result, known, "the temp's bounds")
        if needed is not None and (known is None or needs.shrink):
            result.set_type(result.type.with_box(needed))


def _infer_load(op, needs: _Needs) -> None:
    field, result = op.operands[0], op.results[0]
    needed = needs.box(result)
    if needed is None:
        return
    if field.type.box is None:
        raise error_at(op, f"expected a field with known bounds, got {field.type}")
    needs.check(result, field.type.box, "the field's bounds")
    if result.type.box is not None:
        needs.check(result, result.type.box, "the temp's bounds")
    if result.type.box is None or needs.shrink:
        result.set_type(TempType.of(needed, result.type.element_type))


def _check_inferred(function) -> None:
    """Raise TwofourError where bounds stayed unknown: at what uses a temp and is no stencil op."""
    for op in nested_ops(function):
        for temp in op.results:
            if isinstance(temp.type, TempType) and temp.type.box is None:
                for user in (op, *(use.owner for use in temp.uses)):
                    if not user.operation.name.startswith(("stencil.", "nm.")):
                        what = f"expected no temps outside of stencil ops, got {temp.type}"
                        raise error_at(user, what)


@dataclass(frozen=True)
class InferBoundsPass(ModulePass):
    """Give bounds to temps of unknown bounds, from the stores backwards.

    Each temp becomes as large as its uses need; bounds that are known are kept, or with `shrink`
    become no larger than that. What computes temps that nothing reads is erased. An access that
    reaches outside the field it reads is an error at the access, and so is a use of a temp that is
    not known to need any part of it.
    """

    name: ClassVar[str] = "stencil-infer-bounds"
    shrink: bool = False

    def run(self, module: ir.Operation) -> None:
        for function in nested_functions(module):
            check_blocks(function)
            erase_unused(function)
            needs = _Needs(self.shrink)
            for block in function.regions[0].blocks:
                _infer_block(block, needs)
            _check_inferred(function)
