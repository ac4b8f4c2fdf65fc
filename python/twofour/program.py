# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a stencil function reads and writes, and how its fields rotate between steps."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from twofour.box import Box
from twofour.dialects.stencil.aliases import is_memory
from twofour.dialects.stencil.ops import ApplyOp
from twofour.dialects.stencil.sweep import enclosing_function
from twofour.dialects.stencil.types import FieldType
from twofour.errors import SourceLocation, TwofourError
from twofour.mlir import func, ir
from twofour.mlir_support import (
    VerificationFailure,
    defining_op,
    error_at,
    functions,
    int_tuple,
    nested_ops,
    source_location,
)
from twofour.runtime.dtypes import field_element_type
from twofour.runtime.native import MAX_RANK

ROTATION_ATTRIBUTE = "stencil.rotation"
_LOOPS = "scf.for", "scf.while", "scf.forall", "scf.parallel"


@dataclass(frozen=True)
class Argument:
    """One argument of a stencil function.

    `element` is the spelling of its element type; `box` its bounds, None for scalars; `interior`
    the box that the function stores to, None where it stores nothing.
    """

    index: int
    element: str
    box: Box | None
    loaded: bool = False
    interior: Box | None = None

    @property
    def is_field(self) -> bool:
        return self.box is not None

    @property
    def stored(self) -> bool:
        return self.interior is not None


@dataclass(frozen=True)
class Program:
    """A function that advances fields by one call.

    After a call, argument i takes over the buffer that argument rotation[i] held.
    """

    name: str
    arguments: tuple[Argument, ...]
    rotation: tuple[int, ...]
    results: int
    time_loop: SourceLocation | None

    @property
    def fields(self) -> list[Argument]:
        return [a for a in self.arguments if a.is_field]

    @property
    def inputs(self) -> list[Argument]:
        """The fields whose values the program needs."""
        return [a for a in self.fields if a.loaded]

    @property
    def outputs(self) -> list[Argument]:
        return [a for a in self.fields if a.stored]

    def evolving_interior(self, argument: Argument) -> Box | None:
        """The box that steps update in a field, following the rotation; None where nothing does."""
        index = argument.index
        for _ in self.rotation:
            if self.arguments[index].stored:
                return self.arguments[index].interior
            index = self.rotation[index]
        return None


def select_function(module: ir.Module, name: str | None, filename: str) -> func.FuncOp:
    """The function to run: the one of that name, with or without `@`, or the only one with a body.

    Raises TwofourError when there is none, or several and no name.
    """
    found = {f.attributes["sym_name"].value: f for f in functions(module.operation)}
    name = name if name in found or name is None else name.removeprefix("@")
    location = source_location(module.operation.location, filename)
    if name is not None:
        if name not in found:
            raise TwofourError(f"expected a function @{name}, got {_names(found)}", location)
        return found[name]
    if len(found) != 1:
        hint = "; name one (--function NAME, function=NAME)" if found else ""
        raise TwofourError(f"expected one function, got {_names(found)}{hint}", location)
    return next(iter(found.values()))


def _names(found: Iterable[str]) -> str:
    return ", ".join(f"@{name}" for name in found) or "none"


def describe(function: func.FuncOp, filename: str) -> Program:
    """Read a function whose temps have bounds (after stencil-infer-bounds).

    Raises TwofourError for arguments that are no fields, memrefs or numbers, for fields without
    bounds, for a rotation that does not fit the arguments, for functions that call themselves,
    and for calls of functions that are values.
    """
    return _describe(function, filename, ())


def _describe(function: func.FuncOp, filename: str, callers: tuple[str, ...]) -> Program:
    name = function.attributes["sym_name"].value
    calls = [
        (call, _describe(_callee(call, (*callers, name)), filename, (*callers, name)))
        for call in nested_ops(function, "func.call", "func.call_indirect")
    ]
    values = list(function.regions[0].blocks[0].arguments)
    arguments = [_argument(function, index, value) for index, value in enumerate(values)]
    roots = _Roots(values)
    for op in nested_ops(function, "stencil.load"):
        for index in roots.of(op.operands[0]):
            arguments[index] = replace(arguments[index], loaded=True)
    for op in nested_ops(function, "stencil.store"):
        for index in roots.of(op.operands[1]):
            interior = op.bounds.box.union(arguments[index].interior)
            arguments[index] = replace(arguments[index], interior=interior)
    for op in nested_ops(function, "stencil.external_store"):
        source, target = roots.of(op.operands[0]), roots.of(op.operands[1])
        for index in target - source:
            arguments[index] = replace(arguments[index], interior=arguments[index].box)
    for call, callee in calls:
        for operand, touched in zip(call.operands, callee.arguments, strict=True):
            for index in roots.of(operand):
                arguments[index] = _touched_by_call(arguments[index], touched)
    for op in nested_ops(function, "memref.load", "memref.store", "memref.copy"):
        for operand in filter(is_memory, op.operands):
            for index in roots.of(operand):
                arguments[index] = replace(arguments[index], loaded=True)
    loops = [op for op in nested_ops(function, *_LOOPS) if not _is_in_apply(op)]
    storing = {callee.name for _, callee in calls if callee.outputs}
    carried = [loop.location for loop in loops if _holds_store(loop, storing)]
    carrying = [
        *carried,
        *(call.location for call, callee in calls if callee.time_loop is not None),
    ]
    rotation = _rotation(function, arguments, bool(carried))
    _mark_parked(arguments, rotation)
    rotation = _among_inputs(rotation, arguments)
    return Program(
        name=name,
        arguments=tuple(arguments),
        rotation=rotation,
        results=len(function.type.results),
        time_loop=source_location(carrying[0], filename) if carrying else None,
    )


def _mark_parked(arguments: list[Argument], rotation: Sequence[int]) -> None:
    """Count as loaded what this call leaves alone and a later one loads, in another's place."""
    waiting = [argument.index for argument in arguments if argument.loaded]
    while waiting:
        source = arguments[rotation[waiting.pop()]]
        if not (source.loaded or source.stored):
            arguments[source.index] = replace(source, loaded=True)
            waiting.append(source.index)


def _among_inputs(rotation: Sequence[int], arguments: Sequence[Argument]) -> tuple[int, ...]:
    """The rotation, but of arguments that no input ever takes the place of.

    What a call does not store of these is zero in every call.
    """
    found = list(range(len(rotation)))
    for start in found:
        cycle = [start]
        while (source := rotation[cycle[-1]]) != start:
            cycle.append(source)
        if any(arguments[place].loaded for place in cycle):
            found[start] = rotation[start]
    return tuple(found)


def _is_in_apply(op) -> bool:
    """Whether an op computes points of an apply: a loop there does not carry fields."""
    parent = op.operation.parent
    while parent.name not in ("func.func", ApplyOp.OPERATION_NAME):
        parent = parent.operation.parent
    return parent.name == ApplyOp.OPERATION_NAME


def _callee(call, callers: tuple[str, ...]) -> func.FuncOp:
    """The function that is called by the last one of `callers`."""
    if not isinstance(call, func.CallOp):
        raise error_at(call, "expected a call of a function by its name")
    found = {
        f.attributes["sym_name"].value: f
        for f in functions(enclosing_function(call).operation.parent)
    }
    name = call.callee.value
    if name in callers:
        raise error_at(call, f"expected no function that calls itself, got @{name}")
    return found[name]


def _touched_by_call(argument: Argument, touched: Argument) -> Argument:
    """An argument that is passed to a function as `touched`, whose bounds may count from others."""
    loaded = argument.loaded or touched.loaded
    if not touched.stored:
        return replace(argument, loaded=loaded)
    shift = [a - b for a, b in zip(argument.box.lower, touched.box.lower, strict=True)]
    interior = touched.interior.reach([shift]).union(argument.interior)
    return replace(argument, loaded=loaded, interior=interior)


def _holds_store(loop, storing: Collection[str]) -> bool:
    """Whether a field is stored to in a loop, or in a function of these that it calls."""
    calls = nested_ops(loop, "func.call")
    return bool(nested_ops(loop, "stencil.store", "stencil.external_store")) or any(
        call.callee.value in storing for call in calls
    )


def _argument(function: func.FuncOp, index: int, value: ir.Value) -> Argument:
    kind = value.type
    if isinstance(kind, FieldType | ir.MemRefType):
        element = kind.element_type
        box = kind.box if isinstance(kind, FieldType) else None
        if box is None:
            box = _given_bounds(function, index, value)
        if box is None and isinstance(kind, ir.MemRefType) and kind.has_static_shape:
            box = Box((0,) * kind.rank, tuple(kind.shape))
        if box is None:
            raise error_at(function, f"expected known bounds for argument {index}, got {kind}")
        if box.rank > MAX_RANK:
            raise error_at(function, f"expected fields of rank at most {MAX_RANK}, got {box.rank}")
        try:
            field_element_type(str(element))
        except TwofourError as error:
            raise error_at(function, f"{error.message} in argument {index}") from None
        return Argument(index, str(element), box)
    if isinstance(kind, ir.FloatType | ir.IntegerType | ir.IndexType):
        return Argument(index, str(kind), None)
    raise error_at(
        function, f"expected fields, memrefs or numbers as arguments, got {kind} for {index}"
    )


def _given_bounds(function: func.FuncOp, index: int, value: ir.Value) -> Box | None:
    """The bounds that the program gives to an argument whose type has none."""
    boxes = {
        use.owner.operation.results[0].type.box
        for use in value.uses
        if use.owner.operation.name in ("stencil.cast", "stencil.external_load")
    }
    if len(boxes) > 1:
        given = " and ".join(sorted(map(str, boxes)))
        raise error_at(function, f"expected one set of bounds for argument {index}, got {given}")
    return next(iter(boxes), None)


class _Roots:
    """Which arguments a field value may be, through casts and the arguments of loops."""

    def __init__(self, arguments: list[ir.Value]):
        self.arguments = {value: index for index, value in enumerate(arguments)}

    def of(self, value: ir.Value) -> set[int]:
        found, waiting, seen = set(), [value], set()
        while waiting:
            value = waiting.pop()
            if value in self.arguments:
                found.add(self.arguments[value])
            elif value not in seen:
                seen.add(value)
                waiting += _carried(value)
        return found


def _carried(value: ir.Value) -> list[ir.Value]:
    """The values that a field is at first, and after each iteration of the loop that carries it."""
    owner = defining_op(value)
    if owner is None:
        block = value.owner
        loop = block.owner
        if loop.operation.name != "scf.for":
            return []
        # The first argument is the index.
        return _ends(loop, block, list(block.arguments).index(value) - 1)
    if owner.name in ("stencil.cast", "stencil.external_load"):
        return [owner.operands[0]]
    if owner.name == "scf.for":
        return _ends(owner, owner.regions[0].blocks[0], list(owner.results).index(value))
    return []


def _ends(loop, body: ir.Block, position: int) -> list[ir.Value]:
    return [loop.operands[3 + position], list(body.operations)[-1].operands[position]]


def _rotation(function: func.FuncOp, arguments: list[Argument], loops: bool) -> tuple[int, ...]:
    count = len(arguments)
    if ROTATION_ATTRIBUTE in function.attributes:
        try:
            rotation = int_tuple(function.attributes[ROTATION_ATTRIBUTE], ROTATION_ATTRIBUTE)
        except VerificationFailure as failure:
            raise error_at(function, failure.message) from None
        if sorted(rotation) != list(range(count)):
            raise error_at(
                function,
                f"expected {ROTATION_ATTRIBUTE} to permute {count} arguments, got {list(rotation)}",
            )
        for index, source in enumerate(rotation):
            if _shape(arguments[index]) != _shape(arguments[source]):
                raise error_at(
                    function,
                    f"expected arguments {index} and {source} of one type for the rotation",
                )
        return rotation
    rotation = list(range(count))
    if loops:
        return tuple(rotation)
    inputs = [a for a in arguments if a.loaded and not a.stored]
    for target in (a for a in arguments if a.stored and not a.loaded):
        source = next((a for a in inputs if _shape(a) == _shape(target)), None)
        if source is not None:
            inputs.remove(source)
            rotation[source.index], rotation[target.index] = target.index, source.index
    return tuple(rotation)


def _shape(argument: Argument) -> tuple[str, Box | None]:
    return argument.element, argument.box
