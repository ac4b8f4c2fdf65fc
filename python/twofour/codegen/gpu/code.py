# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index arithmetic for generated kernels: numbers known at compile time never reach the IR."""

from collections.abc import Callable, Sequence

from twofour.codegen.cpu.kernel_abi import EntryConstants
from twofour.mlir import arith, ir, scf

Index = ir.Value | int


class IndexCode:
    """Emits arithmetic of `index` values at the current insertion point; operands may be ints."""

    def __init__(self, entry: ir.Block):
        self.constants = EntryConstants(entry)

    def value(self, number: Index) -> ir.Value:
        """An SSA value, a constant where the number is known."""
        return self.constants.index(number) if isinstance(number, int) else number

    def add(self, *terms: Index) -> Index:
        """The sum of the terms."""
        known = sum(term for term in terms if isinstance(term, int))
        total = None
        for term in terms:
            if not isinstance(term, int):
                total = term if total is None else arith.addi(total, term)
        if total is None:
            return known
        return arith.addi(total, self.value(known)) if known else total

    def sub(self, a: Index, b: Index) -> Index:
        """The difference of a and b."""
        if isinstance(b, int):
            return self.add(a, -b)
        return arith.subi(self.value(a), b)

    def mul(self, a: Index, b: Index) -> Index:
        """The product of a and b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int) and b in (0, 1):
            return a if b else 0
        return arith.muli(a, self.value(b))

    def div(self, a: Index, b: Index) -> Index:
        """The quotient of a and b rounded down, for a >= 0 and b > 0."""
        if b == 1 and isinstance(b, int):
            return a
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        return arith.divui(self.value(a), self.value(b))

    def rem(self, a: Index, b: Index) -> Index:
        """What division of a by b leaves, for a >= 0 and b > 0."""
        if isinstance(b, int) and b == 1:
            return 0
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        return arith.remui(self.value(a), self.value(b))

    def ceil_div(self, a: Index, b: int) -> Index:
        """The quotient of a and b rounded up, for a >= 0."""
        return self.div(self.add(a, b - 1), b)

    def minimum(self, a: Index, b: Index) -> ir.Value:
        """The smaller one."""
        return arith.minsi(self.value(a), self.value(b))

    def maximum(self, a: Index, b: Index) -> ir.Value:
        """The larger one."""
        return arith.maxsi(self.value(a), self.value(b))

    def select(self, condition: ir.Value, a: Index, b: Index) -> ir.Value:
        """One of two numbers: a where the condition holds."""
        return arith.select(condition, self.value(a), self.value(b))

    def split(self, number: Index, count: Index) -> tuple[Index, Index]:
        """Quotient and rest of the number of a block, which has 32 bits."""
        word, index = ir.IntegerType.get_signless(32), ir.IndexType.get()
        # Divisions of 64 bits are slow.
        a, b = (arith.index_castui(word, self.value(x)) for x in (number, count))
        return (
            arith.index_castui(index, arith.divui(a, b)),
            arith.index_castui(index, arith.remui(a, b)),
        )

    def less(self, a: Index, b: Index) -> ir.Value:
        """Whether a < b."""
        return arith.cmpi(arith.CmpIPredicate.slt, self.value(a), self.value(b))

    def dot(self, a: Sequence[Index], b: Sequence[Index]) -> Index:
        """The sum of products."""
        return self.add(*(self.mul(x, y) for x, y in zip(a, b, strict=True)))

    def when(self, condition: ir.Value, body: Callable[[], None]) -> None:
        """`body()` where the condition holds."""
        with ir.InsertionPoint(scf.IfOp(condition).then_block):
            body()
            scf.yield_([])

    def loop(self, begin: Index, end: Index, step: int, body: Callable[[Index], None]) -> None:
        """`body(i)` for i = begin, begin + step, ... below end; no loop for a single round."""
        if isinstance(begin, int) and isinstance(end, int) and begin < end <= begin + step:
            body(begin)
            return
        for index in scf.for_(self.value(begin), self.value(end), self.value(step)):
            body(index)
            scf.yield_([])


def conjunction(conditions: Sequence[ir.Value]) -> ir.Value | None:
    """All of the conditions, None where there are none."""
    result = None
    for condition in conditions:
        result = condition if result is None else arith.andi(result, condition)
    return result
