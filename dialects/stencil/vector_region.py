# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The region of an apply on many points at once: its ops on vectors along the innermost axis."""

from collections.abc import Callable, Sequence

from twofour.codegen.cpu.kernel_abi import EntryConstants, shifted
from twofour.codegen.cpu.lanes import Width, read_lanes, write_lanes
from twofour.codegen.cpu.row_sums import Rows
from twofour.codegen.math_functions import CALLED_FUNCTIONS
from twofour.dialects.stencil.ops import AccessOp, ApplyOp
from twofour.dialects.stencil.regions import AppliedRegion, is_constant
from twofour.dialects.stencil.types import ResultType
from twofour.mlir import arith, ir, memref, vector
from twofour.mlir_support import defining_op, is_inside, nested_ops

# Ops that LLVM has vectors of instructions for. Not so quotients of integers: in lanes that a mask
# leaves out they would divide by zero.
INSTRUCTIONS = {
    f"{dialect}.{name}"
    for dialect, names in {
        "arith": """addf addi andi cmpf cmpi divf extf extsi extui fptosi fptoui index_cast
            index_castui maximumf maxnumf maxsi maxui minimumf minnumf minsi minui mulf muli negf
            ori select shli shrsi shrui sitofp subf subi truncf trunci uitofp xori""",
        "math": "absf absi ceil copysign floor fma round roundeven rsqrt sqrt trunc",
    }.items()
    for name in names.split()
}
_STENCIL = {f"stencil.{name}" for name in ("access", "index", "store_result", "return")}
_NUMBERS = ("arith.", "math.", "memref.load")
# What ends the process with operands that a branch may be there to avoid.
_TRAPPING = {
    "memref.load",
    *(f"arith.{name}" for name in "ceildivsi ceildivui divsi divui floordivsi remsi remui".split()),
}
_INDEX_BITS = 64


def widest_bits(apply: ApplyOp) -> int | None:
    """The width of the widest number in the vectors of a region; None where it has no such form.

    It has one where it is a sequence of ops on single numbers, of 32 and 64 bits and i1, and of
    `scf.if`, both branches of which are computed. What does not depend on the innermost axis, and
    stays a number, may be any op on numbers, outside of branches also a quotient or a table's.
    """
    widths = [_stored_bits(result.type.element_type) for result in apply.results]
    varying = _varying(apply)
    for op in _ops(apply):
        name, varies = op.operation.name, any(operand in varying for operand in op.operands)
        if not _has_code(op, varies, op.operation.parent != apply.operation):
            return None
        if name == AccessOp.OPERATION_NAME:
            widths.append(_stored_bits(op.results[0].type))
        elif varies or name in _STENCIL or name == "scf.if":
            widths += [_bits(value.type) for value in (*op.operands, *op.results)]
    return None if None in widths else max(widths)


def _has_code(op, varies: bool, in_branch: bool) -> bool:
    """Whether an op, some operand of which `varies`, has a form on vectors, or stays a number."""
    name = op.operation.name
    if name in _STENCIL or name == "scf.yield":
        return True
    if name == "scf.if":
        return len(op.results) > 0
    if varies:
        return name in INSTRUCTIONS or (name in CALLED_FUNCTIONS and not in_branch)
    is_number = name.startswith(_NUMBERS) and len(op.results) == 1
    return is_number and not (in_branch and name in _TRAPPING)


def calls_functions(apply: ApplyOp) -> bool:
    """Whether a region computes something that there are no instructions for."""
    return any(op.operation.name in CALLED_FUNCTIONS for op in _ops(apply))


def _stored_bits(element: ir.Type) -> int | None:
    """The width of what temps hold; in memory i1 takes a byte, and an index has no fixed width."""
    width = _bits(element)
    return None if width == 1 or isinstance(element, ir.IndexType) else width


def _bits(kind: ir.Type) -> int | None:
    """The width of a number; None for one that vectors have no lanes for."""
    if isinstance(kind, ResultType):
        kind = kind.element_type
    if isinstance(kind, ir.IndexType):
        return _INDEX_BITS
    if isinstance(kind, ir.F32Type | ir.F64Type):
        return kind.width
    is_integer = isinstance(kind, ir.IntegerType) and kind.width in (1, 32, 64)
    return kind.width if is_integer else None


def _ops(apply: ApplyOp) -> list:
    return nested_ops(apply)[1:]


def _varying(apply: ApplyOp) -> set[ir.Value]:
    """The values of a region that depend on the place along the innermost axis."""
    innermost, found = apply.rank - 1, set()

    def visit(block: ir.Block) -> None:
        for op in block.operations:
            name, decisive = op.operation.name, list(op.operands)
            for inner in (inner for region in op.regions for inner in region.blocks):
                visit(inner)
                decisive += list(inner.operations)[-1].operands
            if name == AccessOp.OPERATION_NAME:
                varies = innermost in op.axes
            elif name == "stencil.index":
                varies = op.dim.value == innermost
            else:
                varies = any(operand in found for operand in decisive)
            if varies:
                found.update(op.results)

    visit(apply.block)
    return found


class VectorRegion:
    """The ops of a region for blocks of points, with the arguments of the kernel that holds them.

    Numbers that do not depend on the innermost axis stay numbers.
    """

    def __init__(
        self, region: AppliedRegion, arguments: Sequence[ir.Value], constants: EntryConstants
    ):
        self.region, self.constants = region, constants
        self.views, self.outputs = region.views(arguments), region.outputs(arguments)
        scalars = arguments[len(region.inputs) :]
        self.scalars = dict(zip(region.scalars, scalars, strict=False))
        self.kernel = self.outputs[0].owner.owner.operation

    def emit(self, rows: Rows, bases: list[ir.Value], width: Width) -> None:
        """Some vectors of every row: all of them are read before the first one is written."""
        reads: dict[tuple, ir.Value] = {}
        results = []
        for output in rows.outputs:
            for column in width.columns:
                shift = (*output[:-1], output[-1] + column)
                results.append((shift, _Points(self, bases, shift, width, reads).values()))
        for shift, values in results:
            place = shifted(self.constants, bases, shift)
            for value, view in zip(values, self.outputs, strict=True):
                write_lanes(value, view, place, width)


class _Points:
    """The values of a region at the points of one vector, `shift` from some bases."""

    def __init__(
        self,
        region: VectorRegion,
        bases: list[ir.Value],
        shift: tuple[int, ...],
        width: Width,
        reads: dict[tuple, ir.Value],
    ):
        self.region, self.constants = region, region.constants
        self.bases, self.shift, self.width, self.reads = bases, shift, width, reads
        self.known: dict[ir.Value, ir.Value] = dict(region.scalars)

    def values(self) -> list[ir.Value]:
        """A vector of each result."""
        return [self._vector(value) for value in self._run(self.region.region.apply.block)]

    def _run(self, block: ir.Block) -> list[ir.Value]:
        """What the terminator of a block has as operands."""
        *operations, terminator = block.operations
        for op in operations:
            name = op.operation.name
            if name == "scf.if":
                self.known.update(zip(op.results, self._branches(op), strict=True))
            elif name != "arith.constant":
                self.known[op.results[0]] = _CODE.get(name, _Points._cloned)(self, op)
        return [self._value(value) for value in terminator.operands]

    def _branches(self, op) -> list[ir.Value]:
        """The results of an `scf.if`, both branches of which are computed."""
        condition = self._value(op.operands[0])
        found = []
        for pair in zip(*(self._run(region.blocks[0]) for region in op.regions), strict=True):
            if any(isinstance(value.type, ir.VectorType) for value in (condition, *pair)):
                pair = map(self._vector, pair)
            found.append(arith.select(condition, *pair))
        return found

    def _value(self, operand: ir.Value) -> ir.Value:
        if operand in self.known:
            return self.known[operand]
        # A constant, of the region or from outside.
        return self.constants.get(operand, lambda: defining_op(operand).clone().results[0])

    def _vector(self, value: ir.Value) -> ir.Value:
        """A number in every lane."""
        if isinstance(value.type, ir.VectorType):
            return value
        kind = self._kind(value.type)
        if not (is_constant(value) and is_inside(value, self.region.kernel)):
            return vector.broadcast(kind, value)
        splat = ir.DenseElementsAttr.get_splat(kind, defining_op(value).attributes["value"])
        return self.constants.get(
            ("splat", value, kind), lambda: arith.ConstantOp(kind, splat).result
        )

    def _kind(self, element: ir.Type) -> ir.VectorType:
        return ir.VectorType.get([self.width.lanes], element)

    def _cloned(self, op) -> ir.Value:
        """An op on numbers, or on the vectors that they are."""
        operands = [self._value(operand) for operand in op.operands]
        vectors = any(isinstance(value.type, ir.VectorType) for value in operands)
        if vectors:
            operands = [self._vector(value) for value in operands]
        copy = op.operation.clone()
        for position, value in enumerate(operands):
            copy.operands[position] = value
        if vectors:
            copy.results[0].set_type(self._kind(copy.results[0].type))
        return copy.results[0]

    def _access(self, op: AccessOp) -> ir.Value:
        view, lo = self.region.views[op.operands[0], op.axes]
        shift = [
            self.shift[axis] + a + b
            for axis, a, b in zip(op.axes, op.offset_tuple, lo, strict=True)
        ]
        return self._read(view, op.axes, tuple(shift))

    def _read(self, view: ir.Value, axes: tuple[int, ...], shift: tuple[int, ...]) -> ir.Value:
        """What a view holds along some axes, so far from the bases; each vector is read once."""

        def make() -> ir.Value:
            place = shifted(self.constants, [self.bases[axis] for axis in axes], shift)
            if len(self.bases) - 1 in axes:
                return read_lanes(view, place, self.width, self.constants)
            return memref.load(view, place)

        if (view, shift) not in self.reads:
            self.reads[view, shift] = make()
        return self.reads[view, shift]

    def _index(self, op) -> ir.Value:
        dim = op.dim.value
        first = self.region.region.domain.lower[dim] + list(op.offset)[dim]
        [value] = shifted(self.constants, [self.bases[dim]], [first + self.shift[dim]])
        if dim < len(self.bases) - 1:
            return value
        kind = self._kind(ir.IndexType.get())
        lanes = self.constants.get(("lanes", kind), lambda: vector.step(kind))
        return arith.addi(vector.broadcast(kind, value), lanes)

    def _same(self, op) -> ir.Value:
        return self._value(op.operands[0])


_CODE: dict[str, Callable[[_Points, object], ir.Value]] = {
    "stencil.access": _Points._access,
    "stencil.index": _Points._index,
    "stencil.store_result": _Points._same,
}
