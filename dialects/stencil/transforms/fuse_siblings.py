# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-fuse-siblings`: computations that read a temp in common become one apply.

    %x = "stencil.weighted_sum"(%h, %a) {offsets = [[-1, 0], [0, 0]], weights = ...} : ...
    %y = "stencil.weighted_sum"(%h, %b) {offsets = [[0, -1], [0, 0]], weights = ...} : ...

becomes

    %x, %y = "stencil.apply"() ({
      %0 = "stencil.access"(%a) {offset = array<i64: 0, 0>} : ...
      %1 = "stencil.access"(%h) {offset = array<i64: -1, 0>} : ...
      %2 = math.fma %weight, %1, %0 : f64
      ...
      "stencil.return"(%4, %9) : (f64, f64) -> ()
    }) : () -> ...

so that one kernel reads %h once. Siblings compute the same points, none of them reads what another
one computes, and nothing but loads, stores of their results and numbers stands between them.
Weighted sums add their terms in the order in which their own kernels would.

Where one reads a field around a point that the other one is stored to, the two stay apart: each
may be written in place, and both together could not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from twofour.codegen.cpu.direct_kernel import MOST_TERMS
from twofour.dialects.stencil.aliases import is_memory, may_alias
from twofour.dialects.stencil.chains import Chain, chain_ending_at
from twofour.dialects.stencil.linear_ops import WeightedSumOp
from twofour.dialects.stencil.ops import AccessOp, ApplyOp, ReturnOp
from twofour.dialects.stencil.sweep import known_domain
from twofour.dialects.stencil.traversal import accesses, captured_values
from twofour.dialects.stencil.vector_region import calls_functions, widest_bits
from twofour.mlir import arith, ir, math
from twofour.mlir_support import defining_op, nested_ops
from twofour.passes import ModulePass

# Ops of regions that are fused: of more, arithmetic takes the time, and registers run short.
MAX_OPS = 100

Offset = tuple[int, ...]


@dataclass(frozen=True)
class _Member:
    """An apply, or a chain of weighted sums, that may become a part of an apply.

    `ops` ends with the one that has the results; `bits` is the width of the widest number.
    """

    ops: Sequence
    bits: int
    reads: Sequence[tuple[ir.Value, Offset]]
    captured: Sequence[ir.Value]
    chain: Chain | None = None

    @property
    def last(self):
        return self.ops[-1]

    @cached_property
    def kind(self) -> tuple:
        """What siblings have in common."""
        return known_domain(self.last), self.last.results[0].type.element_type, self.bits

    @cached_property
    def size(self) -> int:
        """The ops of the region."""
        return 2 * len(self.reads) if self.chain else len(nested_ops(self.last))

    @cached_property
    def temps(self) -> set[ir.Value]:
        return {temp for temp, _ in self.reads}

    @cached_property
    def stores(self) -> list[ir.Operation]:
        """The ops that store results."""
        uses = [use.owner.operation for result in self.last.results for use in result.uses]
        return [op for op in uses if _is(op, "stencil.store")]

    @cached_property
    def read_around(self) -> list[ir.Value]:
        """The memory that is read elsewhere than at the point that is computed."""
        loads = [defining_op(temp) for temp, offset in self.reads if any(offset)]
        fields = [load.operands[0] for load in loads if load and _is(load, "stencil.load")]
        return [*fields, *filter(is_memory, self.captured)]

    def emit(self, block: ir.Block) -> list[ir.Value]:
        """Append the ops of the region to a block; its results."""
        if self.chain is not None:
            return [_emit_sum(self.chain, self.kind[1])]
        *operations, terminator = self.last.block.operations
        for op in operations:
            block.append(op)
        return list(terminator.operands)


def _is(op, *names: str) -> bool:
    return op.operation.name in names


def _emit_sum(chain: Chain, element: ir.Type) -> ir.Value:
    total = None
    if chain.has_addend:
        total = _access(chain.inputs[-1].temp, chain.inputs[-1].offsets[0])
    if chain.constant:
        constant = arith.ConstantOp(element, chain.constant).result
        total = constant if total is None else arith.addf(total, constant)
    for item, terms in zip(chain.inputs, chain.terms, strict=False):
        for offset, number in sorted(zip(terms.offsets, terms.weights, strict=True)):
            if number:
                value = _access(item.temp, offset)
                weight = arith.ConstantOp(element, number).result
                first = total is None
                total = arith.mulf(weight, value) if first else math.fma(weight, value, total)
    return total


def _access(temp: ir.Value, offset: Offset) -> ir.Value:
    return ir.Operation.create(
        AccessOp.OPERATION_NAME,
        results=[temp.type.element_type],
        operands=[temp],
        attributes={"offset": ir.DenseI64ArrayAttr.get(offset)},
    ).results[0]


def _sum_member(chain: Chain) -> _Member | None:
    """A chain as a member; None for long ones and for elements of 16 bits."""
    element = chain.links[-1].results[0].type.element_type
    reads = [(item.temp, at) for item in chain.inputs for at in item.offsets]
    if not isinstance(element, ir.F32Type | ir.F64Type) or len(reads) > MOST_TERMS:
        return None
    captured = [item.temp for item in chain.inputs]
    return _Member(chain.links, element.width, reads, captured, chain)


def _apply_member(apply: ApplyOp) -> _Member | None:
    """An apply as a member; None for what has no form on vectors, or calls functions."""
    bits = widest_bits(apply)
    if bits is None or calls_functions(apply):
        return None
    reads = [(access.operands[0], access.offset_tuple) for access in accesses(apply)]
    return _Member([apply], bits, reads, captured_values(apply))


class _Siblings:
    """Members of one block that become one apply, in the place of the first of them."""

    def __init__(self):
        self.members: list[_Member] = []

    def admits(self, new: _Member) -> bool:
        if not self.members:
            return True
        together = (*self.members, new)
        return (
            new.kind == self.members[0].kind
            and sum(member.size for member in together) <= MAX_OPS
            and any(new.temps & member.temps for member in self.members)
            and not any(_in_the_way(a, b) for a in together for b in together if a is not b)
            and all(self._is_available(value) for value in new.captured)
        )

    def may_be_passed(self, op) -> bool:
        """Whether members may stand on either side of an op."""
        if _is(op, "stencil.store"):
            owner = defining_op(op.operands[0])
            return any(owner == member.last.operation for member in self.members)
        return _is(op, "stencil.load", "stencil.cast") or _is_number(op)

    def fuse(self) -> None:
        first = self.members[0].last.operation
        for value in (value for member in self.members for value in member.captured):
            _hoist(value, first)
        results = [result for member in self.members for result in member.last.results]
        with ir.InsertionPoint(first), first.location:
            fused = ApplyOp.build([result.type for result in results])
            with ir.InsertionPoint(fused.block):
                ReturnOp.build([v for member in self.members for v in member.emit(fused.block)])
        for result, new in zip(results, fused.results, strict=True):
            result.replace_all_uses_with(new)
        for member in self.members:
            for op in reversed(member.ops):
                op.operation.erase()

    def _is_available(self, value: ir.Value) -> bool:
        """Whether a value is known before the first member, or may be computed there."""
        owner, first = defining_op(value), self.members[0].last.operation
        if owner is None or owner.block != first.block or owner.is_before_in_block(first):
            return True
        if _is(owner, "stencil.load"):
            stores = [store for member in self.members for store in member.stores]
            before = [s for s in stores if s.block == owner.block and s.is_before_in_block(owner)]
            if any(may_alias(owner.operands[0], store.operands[1]) for store in before):
                return False
        elif not (_is(owner, "stencil.cast") or _is_number(owner)):
            return False
        return all(map(self._is_available, owner.operands))


def _in_the_way(member: _Member, other: _Member) -> bool:
    """Whether one could not be written in place together with the other."""
    fields = [store.operands[1] for store in member.stores]
    return any(may_alias(a, b) for a in fields for b in other.read_around)


def _is_number(op) -> bool:
    return op.operation.name.startswith(("arith.", "math."))


def _hoist(value: ir.Value, before: ir.Operation) -> None:
    owner = defining_op(value)
    if owner is None or owner.block != before.block or owner.is_before_in_block(before):
        return
    for operand in owner.operands:
        _hoist(operand, before)
    owner.move_before(before)


def _siblings_in(block: ir.Block) -> list[_Siblings]:
    members: dict[ir.Operation, _Member | None] = {}
    links: set[ir.Operation] = set()
    for op in reversed(list(block.operations)):
        if _is(op, ApplyOp.OPERATION_NAME):
            members[op.operation] = _apply_member(op)
        elif _is(op, WeightedSumOp.OPERATION_NAME) and op.operation not in links:
            chain = chain_ending_at(op)
            members[op.operation] = _sum_member(chain)
            links.update(link.operation for link in chain.links[:-1])
    found = [_Siblings()]
    for op in block.operations:
        member = members.get(op.operation)
        if member is not None:
            if not found[-1].admits(member):
                found.append(_Siblings())
            found[-1].members.append(member)
        elif op.operation not in links and not found[-1].may_be_passed(op):
            found.append(_Siblings())
    return [siblings for siblings in found if len(siblings.members) > 1]


@dataclass(frozen=True)
class FuseSiblingsPass(ModulePass):
    """Fuse neighbouring applies and weighted sums that read a temp in common into one apply.

    What has no form in `convert-stencil-apply-to-vector` or calls functions stays as it is, and so
    do sums of more than 16 terms. A fused apply has about 100 ops at most.
    """

    name: ClassVar[str] = "stencil-fuse-siblings"

    def run(self, module: ir.Operation) -> None:
        parents = [op.operation for op in nested_ops(module, "func.func", "scf.for", "scf.if")]
        for block in (b for parent in parents for region in parent.regions for b in region.blocks):
            # The last ones first: they may read what earlier ones compute.
            for siblings in reversed(_siblings_in(block)):
                siblings.fuse()
