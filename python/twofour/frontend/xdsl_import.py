# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading the pretty (and the generic) syntax of xDSL's stencil dialect into MLIR.

xDSL parses and verifies the text; every one of its operations is then built again through MLIR's
bindings, at its position in the user's file. Three things change on the way: fields and temps get
our spelling of bounds, `stencil.index` attributes become `array<i64: ..>`, and `stencil.apply`
loses its operands, since its body captures them. An apply with results of several element types is
split into one apply an element type.

xDSL is imported when a text is read, since that alone takes longer than `twofour-opt` may start.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from twofour.box import Box
from twofour.diagnostics import errors_of
from twofour.dialects.stencil.types import BoundsAttr, FieldType, ResultType, TempType
from twofour.errors import TwofourError
from twofour.frontend.xdsl_text import XdslProgram, parse_xdsl
from twofour.mlir import ir
from twofour.mlir_support import location_of

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

ACCEPTED_STENCIL_OPS = frozenset(
    f"stencil.{name}"
    for name in (
        "access apply buffer cast external_load external_store index load return store store_result"
    ).split()
)

_INT64 = range(-(2**63), 2**63)
_Made = TypeVar("_Made")


def import_xdsl(text: str, filename: str) -> ir.Module:
    """Build the MLIR module of `text`, a program in xDSL's syntax, in the current MLIR context.

    The stencil dialect must be loaded there. The module is verified. Operations carry their
    positions in `filename`. Raises TwofourError, located in `filename`, for text that xDSL rejects
    and for what lies outside the accepted subset.
    """
    program = parse_xdsl(text, filename)
    module = _Importer(program).module()
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise errors_of(error, filename)[0] from None
    return module


class _Importer:
    """Builds MLIR operations from the xDSL operations of one program."""

    def __init__(self, program: XdslProgram):
        self.program = program
        self.values: dict[SSAValue, ir.Value] = {}
        self.blocks: dict[Block, ir.Block] = {}

    def module(self) -> ir.Module:
        source = self.program.module
        module = ir.Module.create(loc=self.location(source))
        for name, attribute in self.attributes(source).items():
            module.operation.attributes[name] = attribute
        if source.body.blocks:
            self.fill(source.body.block, module.body)
        return module

    def fill(self, source: "Block", target: ir.Block) -> None:
        with ir.InsertionPoint(target):
            for op in source.ops:
                self.operation(op)

    def region(self, source: "Region", target: ir.Region, op: "Operation") -> None:
        location = self.location(op)
        for block in source.blocks:
            types = [self.type(argument.type, op) for argument in block.args]
            self.blocks[block] = target.blocks.append(*types, arg_locs=[location] * len(types))
            self.values.update(zip(block.args, self.blocks[block].arguments, strict=True))
        for block in source.blocks:
            self.fill(block, self.blocks[block])

    def operation(self, op: "Operation") -> None:
        self.check_accepted(op)
        if op.name == "stencil.apply":
            self.apply(op)
            return
        created = self.create(
            op,
            results=[self.type(result.type, op) for result in op.results],
            operands=[self.operand(operand, op) for operand in op.operands],
            attributes=self.attributes(op),
            successors=[self.blocks[block] for block in op.successors],
            regions=len(op.regions),
        )
        self.values.update(zip(op.results, created.results, strict=True))
        for source, target in zip(op.regions, created.regions, strict=True):
            self.region(source, target, op)

    def create(self, op: "Operation", name: str | None = None, **parts) -> ir.Operation:
        try:
            created = ir.Operation.create(name or op.name, loc=self.location(op), **parts)
        except ir.MLIRError as error:
            diagnostic = error.error_diagnostics[0].message if error.error_diagnostics else error
            raise self.error(op, f"expected properties that MLIR accepts: {diagnostic}") from None
        except ValueError as error:
            raise self.error(op, f"expected an op that MLIR accepts: {error}") from None
        # A property of another kind is left out without a word, and its null ends the process.
        for given, value in parts.get("attributes", {}).items():
            if given not in created.attributes:
                raise self.error(op, f"expected '{given}' of another kind, got {value}")
        return created

    def apply(self, op: Any) -> None:
        """Build one capturing apply for each element type of the results of `op`."""
        terminator = self.check_apply(op)
        body = op.region.block
        captured = {
            argument: self.operand(operand, op)
            for argument, operand in zip(body.args, op.args, strict=True)
        }
        groups: dict[Attribute, list[int]] = {}
        for index, result in enumerate(op.res):
            groups.setdefault(result.type.element_type, []).append(index)
        attributes = self.attributes(op)
        for group in groups.values():
            created = self.create(
                op,
                results=[self.type(op.res[index].type, op) for index in group],
                attributes=attributes,
                regions=1,
            )
            self.values.update(captured)
            with ir.InsertionPoint(created.regions[0].blocks.append()):
                for inner in body.ops:
                    if inner is not terminator:
                        self.operation(inner)
                self.apply_return(terminator, group)
            for index, value in zip(group, created.results, strict=True):
                self.values[op.res[index]] = value

    def apply_return(self, terminator: "Operation", group: list[int]) -> None:
        """Return the operands of `group`; where some are results, all become results."""
        values = [self.operand(terminator.operands[index], terminator) for index in group]
        if any(isinstance(value.type, ResultType) for value in values):
            values = [self.as_result(value, terminator) for value in values]
        self.create(terminator, operands=values, attributes=self.attributes(terminator))

    def as_result(self, value: ir.Value, op: "Operation") -> ir.Value:
        if isinstance(value.type, ResultType):
            return value
        stored = self.create(
            op, "stencil.store_result", results=[ResultType.get(value.type)], operands=[value]
        )
        return stored.results[0]

    def check_accepted(self, op: "Operation") -> None:
        """Reject what the stencil dialect here or upstream MLIR does not have."""
        dialect = op.name.split(".")[0]
        if dialect == "stencil":
            if op.name not in ACCEPTED_STENCIL_OPS:
                known = ", ".join(sorted(name.split(".")[1] for name in ACCEPTED_STENCIL_OPS))
                got = op.name.split(".")[1]
                raise self.error(op, f"expected a supported stencil op ({known}), got {got}")
            if op.name == "stencil.store_result" and not op.operands:
                raise self.error(op, "expected a value to store, got an empty store_result")
            if op.name in ("stencil.access", "stencil.buffer"):
                # xDSL's bufferised form reads and makes fields here.
                for value in (op.operands[0], *op.results):
                    if value.type.name == "stencil.field":
                        raise self.error(op, f"expected a temp, got {value.type}")
        else:
            context = ir.Context.current
            try:
                context.get_dialect_descriptor(dialect)
            except ValueError:
                raise self.error(
                    op,
                    f"expected an op of the stencil dialect or of MLIR, got one of '{dialect}'",
                ) from None
            if not context.is_registered_operation(op.name):
                raise self.error(
                    op, f"expected an op that MLIR's '{dialect}' dialect has, got '{op.name}'"
                )

    def check_apply(self, op: Any) -> "Operation":
        """Reject what xDSL lets an apply be, but not this compiler; its terminator."""
        if op.dest:
            raise self.error(op, "expected results, got destination fields ('outs')")
        body = op.region.block
        if len(body.args) != len(op.args):
            raise self.error(
                op, f"expected {len(op.args)} body arguments, one an operand, got {len(body.args)}"
            )
        if op.bounds is not None and op.bounds != op.res[0].type.bounds:
            raise self.error(
                op,
                f"expected the bounds of its results, {op.res[0].type}, got 'to' {op.bounds}",
            )
        terminator = body.last_op
        if terminator is None or terminator.name != "stencil.return":
            got = "nothing" if terminator is None else terminator.name
            raise self.error(op, f"expected a body that ends in stencil.return, got {got}")
        if terminator.properties.get("unroll") is not None:
            raise self.error(terminator, "expected one value a result, got 'unroll'")
        return terminator

    def operand(self, operand: "SSAValue", op: "Operation") -> ir.Value:
        value = self.values.get(operand)
        if value is None:
            name = f" '%{operand.name_hint}'" if operand.name_hint else ""
            raise self.error(op, f"expected operands defined before it, got{name} defined later")
        return value

    def attributes(self, op: "Operation") -> dict[str, ir.Attribute]:
        """The properties and attributes of `op` as MLIR spells them."""
        source = {**op.properties, **op.attributes}
        if op.name == "stencil.apply":
            source.pop("operandSegmentSizes", None)
            source.pop("bounds", None)
        elif op.name == "stencil.access":
            # The pretty syntax always has a mapping; over all axes it says nothing.
            mapping = source.get("offset_mapping")
            if mapping is not None and len(mapping) == op.get_apply().get_rank():
                del source["offset_mapping"]
        elif op.name == "func.func" and not op.regions[0].blocks:
            from xdsl.dialects.builtin import StringAttr

            source["sym_visibility"] = StringAttr("private")
        attributes = {name: self.attribute(value, op) for name, value in source.items()}
        if op.name == "stencil.index":
            i64 = ir.IntegerType.get_signless(64)
            attributes["dim"] = ir.IntegerAttr.get(i64, op.dim.value.data)
        return attributes

    def attribute(self, source: "Attribute", op: "Operation") -> ir.Attribute:
        from xdsl.dialects import builtin, stencil
        from xdsl.ir import TypeAttribute

        match source:
            case stencil.IndexAttr():
                return ir.DenseI64ArrayAttr.get(self.int64s(source, op))
            case stencil.StencilBoundsAttr():
                return self.checked(op, BoundsAttr.of, self.box(source, op))
            case builtin.StringAttr():
                return ir.StringAttr.get(source.data)
            case builtin.ArrayAttr():
                return ir.ArrayAttr.get([self.attribute(item, op) for item in source])
            case builtin.DictionaryAttr():
                return ir.DictAttr.get(
                    {name: self.attribute(item, op) for name, item in source.data.items()}
                )
            case TypeAttribute():
                return ir.TypeAttr.get(self.type(source, op))
        try:
            return ir.Attribute.parse(str(source))
        except (ir.MLIRError, ValueError):
            raise self.error(op, f"expected attributes that MLIR has, got {source}") from None

    def type(self, source: "Attribute", op: "Operation") -> ir.Type:
        from xdsl.dialects import builtin, stencil

        match source:
            case stencil.FieldType() | stencil.TempType():
                cls = FieldType if isinstance(source, stencil.FieldType) else TempType
                if isinstance(source.element_type, builtin.TensorType):
                    raise self.error(op, f"expected elements that are no tensors, got {source}")
                box, element = self.box(source.bounds, op), self.type(source.element_type, op)
                return self.checked(op, cls.of, box, element)
            case stencil.ResultType():
                return ResultType.get(self.type(source.elem, op))
            case builtin.FunctionType():
                return ir.FunctionType.get(
                    [self.type(item, op) for item in source.inputs],
                    [self.type(item, op) for item in source.outputs],
                )
        try:
            return ir.Type.parse(str(source))
        except (ir.MLIRError, ValueError):
            raise self.error(op, f"expected types that MLIR has, got {source}") from None

    def checked(self, op: "Operation", make: Callable[..., _Made], *arguments: Any) -> _Made:
        """What `make` gives; what it refuses is said at the op."""
        try:
            return make(*arguments)
        except TwofourError as error:
            raise self.error(op, error.message) from None

    def box(self, bounds: Any, op: "Operation") -> Box | int:
        """The box of xDSL bounds, or the rank where they are unknown."""
        from xdsl.dialects.builtin import IntAttr

        if isinstance(bounds, IntAttr):
            return bounds.data
        return Box(tuple(self.int64s(bounds.lb, op)), tuple(self.int64s(bounds.ub, op)))

    def int64s(self, source: Any, op: "Operation") -> list[int]:
        values = list(source)
        for value in values:
            if value not in _INT64:
                raise self.error(op, f"expected 64-bit integers, got {value}")
        return values

    def location(self, op: "Operation") -> ir.Location:
        return location_of(self.program.location(op))

    def error(self, op: "Operation", message: str) -> TwofourError:
        return self.program.error(op, message)
