# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers over MLIR's Python bindings: verifiers, locations, walks, plain values of attributes."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from twofour.errors import SourceLocation, TwofourError
from twofour.mlir import ir


class VerificationFailure(TwofourError):
    """Raised inside a `verifier`: what the op expected and what it got."""


def expect(condition: bool, message: str | Callable[[], str]) -> None:
    """Raise `VerificationFailure(message)` unless `condition` holds.

    What verifiers check often gives the function that makes the message: printing types and
    attributes takes longer than checking them.
    """
    if not condition:
        raise VerificationFailure(message() if callable(message) else message)


def verifier(check: Callable) -> staticmethod:
    """Turn `check(op)`, which raises `VerificationFailure`, into the hook that the bindings call.

    The bindings run `verify_region_invariants` after the IRDL constraints (so operand types can be
    relied on) and want a bool; an exception of any other class would escape from the parser.
    """

    def verify(op) -> bool:
        try:
            check(op)
        except VerificationFailure as failure:
            op.location.emit_error(f"'{op.operation.name}' op {failure.message}")
            return False
        return True

    return staticmethod(verify)


def int_tuple(attribute: ir.Attribute, what: str) -> tuple[int, ...]:
    """The integers of an array attribute of integers (`[1, 2]` or `array<i64: 1, 2>`)."""
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return tuple(attribute)
    expect(
        isinstance(attribute, ir.ArrayAttr), lambda: f"expected {what} as integers, got {attribute}"
    )
    values = []
    for item in attribute:
        if not isinstance(item, ir.IntegerAttr):
            raise VerificationFailure(f"expected {what} as integers, got {attribute}")
        values.append(item.value)
    if values and max(map(abs, values)) >= 2**63:
        raise VerificationFailure(f"expected {what} of 64 bits, got {max(values, key=abs)}")
    return tuple(values)


def int_rows(attribute: ir.Attribute, rank: int, what: str) -> np.ndarray:
    """An int64 array of shape (rows, rank) from `[[..], [..]]`."""
    expect(isinstance(attribute, ir.ArrayAttr), f"expected {what} as rows of integers")
    rows = [int_tuple(row, what) for row in attribute]
    for row in rows:
        if len(row) != rank:
            raise VerificationFailure(f"expected {what} of rank {rank}, got {list(row)}")
    return np.array(rows, dtype=np.int64).reshape(len(rows), rank)


def float_rows(attribute: ir.Attribute, what: str) -> np.ndarray:
    """A float64 matrix from `[array<f64: ..>, ..]`; rows of one length."""
    is_array = isinstance(attribute, ir.ArrayAttr)
    arrays = list(attribute) if is_array else []
    expect(
        is_array and all(isinstance(row, ir.DenseF64ArrayAttr) for row in arrays),
        f"expected {what} as rows 'array<f64: ...>'",
    )
    rows = [list(row) for row in arrays]
    lengths = sorted({len(row) for row in rows})
    expect(len(lengths) == 1, f"expected {what} with rows of one length, got lengths {lengths}")
    return np.array(rows, dtype=np.float64)


def index_array(values: Iterable[int]) -> ir.ArrayAttr:
    """`[1, 2]` (64-bit integers)."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(i64, int(value)) for value in values])


def index_rows(rows: Iterable[Sequence[int]]) -> ir.ArrayAttr:
    """`[[1, 2], [3, 4]]` (64-bit integers)."""
    return ir.ArrayAttr.get([index_array(row) for row in rows])


def float_matrix(rows: Iterable[Sequence[float]]) -> ir.ArrayAttr:
    """`[array<f64: ..>, ..]`."""
    return ir.ArrayAttr.get([ir.DenseF64ArrayAttr.get([float(v) for v in row]) for row in rows])


def source_location(location: ir.Location, default: str = "-") -> SourceLocation:
    """The file position of an MLIR location (line 1, column 1 of `default` when it has none).

    MLIR calls the file of a parsed text "-"; that becomes `default`, too.
    """
    location = _downcast(location)
    if isinstance(location, ir.FileLineColLoc):
        file = default if location.filename == "-" else location.filename
        # A module that the text does not spell out stands at 0:0.
        return SourceLocation(file, max(1, location.start_line), max(1, location.start_col))
    if isinstance(location, ir.NameLoc):
        return source_location(location.child_loc, default)
    if isinstance(location, ir.CallSiteLoc):
        return _first_known((location.callee, location.caller), default)
    if isinstance(location, ir.FusedLoc):
        return _first_known(location.locations, default)
    return SourceLocation(default)


def _first_known(locations: Iterable[ir.Location], default: str) -> SourceLocation:
    found = (source_location(location, default) for location in locations)
    unknown = SourceLocation(default)
    return next((place for place in found if place != unknown), unknown)


def _downcast(location: ir.Location) -> ir.Location:
    # Locations of diagnostics arrive as the base class.
    for kind in (ir.FileLineColLoc, ir.NameLoc, ir.CallSiteLoc, ir.FusedLoc):
        try:
            return kind(location)
        except ValueError:
            continue
    return location


def location_of(place: SourceLocation) -> ir.Location:
    """The location of a place, in the context that is active."""
    return ir.Location.file(printable(place.file), place.line, place.column)


def printable(name: str) -> str:
    """The name of a file, which may be bytes of any kind, as characters."""
    return name.encode("utf-8", "backslashreplace").decode()


def error_at(op, message: str, kind: type[TwofourError] = TwofourError) -> TwofourError:
    """An error at the op's position, in the form of MLIR's `emitOpError`."""
    operation = op.operation
    return kind(f"'{operation.name}' op {message}", source_location(operation.location))


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The op that a value is a result of; None for block arguments."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def uncast_index(value: ir.Value) -> ir.Value:
    """The integer that a value is, whatever type it was cast to."""
    while (op := defining_op(value)) is not None and op.name == "arith.index_cast":
        value = op.operands[0]
    return value


def integer_constant(value: ir.Value) -> int | None:
    """The number that a value is, through casts of indices; None where it is no constant."""
    op = defining_op(uncast_index(value))
    return op.attributes["value"].value if op is not None and op.name == "arith.constant" else None


def is_inside(value: ir.Value, ancestor: ir.Operation) -> bool:
    """Whether a value is defined within the regions of an op."""
    owner = value.owner
    parent = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    while parent is not None:
        if parent.operation == ancestor.operation:
            return True
        parent = parent.operation.parent
    return False


def enclosing(op: ir.Operation, name: str) -> ir.Operation | None:
    """The innermost op of a name around another one."""
    parent = op.parent
    while parent is not None and parent.operation.name != name:
        parent = parent.operation.parent
    return None if parent is None else parent.operation


def _walk(root, visit: Callable) -> None:
    """Visit an op and every one inside, outermost first."""
    try:
        root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    except RuntimeError as failure:
        # The bindings pass on the text of what a callback raises, also of Ctrl-C.
        if KeyboardInterrupt.__name__ in str(failure):
            raise KeyboardInterrupt from None
        raise


def nested_ops(root, *names: str) -> list:
    """Every op inside `root` (of the given names, when there are any), outermost first."""
    found = []
    # Functions hold neither others nor modules: there is no need to look into them for these.
    are_outside = bool(names) and all(name.endswith((".func", ".module")) for name in names)

    def visit(op):
        if not names or op.name in names:
            found.append(op.opview)
        is_enough = are_outside and op.name.endswith(".func")
        return ir.WalkResult.SKIP if is_enough else ir.WalkResult.ADVANCE

    _walk(root, visit)
    return found


def op_names(root) -> set[str]:
    """The names of all ops inside `root`, itself included."""
    found = set()

    def visit(op):
        found.add(op.name)
        return ir.WalkResult.ADVANCE

    _walk(root, visit)
    return found


def functions(module) -> list:
    """The functions of a module that have a body, in order."""
    return [
        op
        for op in module.regions[0].blocks[0].operations
        if op.operation.name == "func.func" and len(op.regions[0].blocks) > 0
    ]


def nested_functions(root) -> list:
    """The functions inside `root` that have a body, those of modules in modules among them."""
    return [f for f in nested_ops(root, "func.func") if len(f.regions[0].blocks) > 0]


def replace_op(old, new) -> None:
    """Let the results of `new` take the place of those of `old`, and erase `old`."""
    for before, after in zip(old.operation.results, new.operation.results, strict=True):
        before.replace_all_uses_with(after)
    old.operation.erase()
