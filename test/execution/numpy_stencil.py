# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An evaluator of stencil programs in NumPy, on xDSL's own IR: the reference for compiled programs.

xDSL parses the text and infers unknown bounds; an apply is then run once, as whole-array operations
over its domain. It shares no code with the compiler.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from xdsl.context import Context
from xdsl.dialects import builtin, get_all_dialects, stencil
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.transforms.shape_inference import ShapeInferencePass

FLOAT_DTYPES = {
    builtin.Float16Type: np.float16,
    builtin.Float32Type: np.float32,
    builtin.Float64Type: np.float64,
}


class UnsupportedProgram(Exception):
    """The program does something that this evaluator does not know."""


class Evaluation(NamedTuple):
    """What a function leaves behind: its arguments as it changed them, and what it returns."""

    arguments: list
    results: list


@dataclass
class Grid:
    """A field (its array is shared) or a temp (its array is never written).

    The element at coordinate c lies at index c - lower; `lower` is None where it is unknown.
    """

    array: np.ndarray
    lower: tuple[int, ...] | None

    def window(self, lower: Sequence[int], upper: Sequence[int]) -> np.ndarray:
        """A view of the points lower <= x < upper; IndexError where they leave the grid."""
        if self.lower is None:
            raise UnsupportedProgram("a grid of unknown bounds is read")
        start = np.subtract(lower, self.lower)
        stop = np.subtract(upper, self.lower)
        if (start < 0).any() or (stop > self.array.shape).any():
            raise IndexError(f"{list(lower)} to {list(upper)} leaves the grid at {self.lower}")
        return self.array[tuple(map(slice, start, stop))]


def parse(text: str, name: str = "program.mlir") -> builtin.ModuleOp:
    """The verified xDSL module of `text`."""
    context = Context()
    for dialect, load in get_all_dialects().items():
        context.register_dialect(dialect, load)
    module = Parser(context, text, name).parse_module()
    module.verify()
    return module


def evaluate(
    text: str, function_name: str, arguments: Sequence, own_precision: bool = False
) -> Evaluation:
    """Run a function of a program in xDSL's syntax.

    A field or a memref is given as an array of its extents, a number as a number. Arrays are not
    changed: the changed copies are in the outcome. Floating-point arithmetic is in float64 or, with
    `own_precision`, in the types of the program. Raises UnsupportedProgram, ValueError for
    arguments that do not fit, and IndexError where an access leaves its grid.
    """
    module = parse(text)
    if any(op.name == "stencil.apply" and op.dest for op in module.walk()):
        raise UnsupportedProgram("stencil.apply with destinations")
    ShapeInferencePass().apply(Context(), module)
    functions = {
        op.sym_name.data: op for op in module.walk() if op.name == "func.func" and op.body.blocks
    }
    if function_name not in functions:
        raise UnsupportedProgram(f"no function '{function_name}' with a body")
    return _Evaluator(functions, own_precision).run(functions[function_name], arguments)


class _Evaluator:
    """Values of one program: grids, arrays and numbers; inside an apply, arrays over its domain."""

    def __init__(self, functions: dict[str, Operation], own_precision: bool):
        self.functions = functions
        self.own_precision = own_precision
        self.values: dict[SSAValue, object] = {}
        self.domain: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    def run(self, function: Operation, arguments: Sequence) -> Evaluation:
        block = function.body.block
        if len(arguments) != len(block.args):
            raise ValueError(f"expected {len(block.args)} arguments, got {len(arguments)}")
        given = [
            self.argument(argument.type, value)
            for argument, value in zip(block.args, arguments, strict=True)
        ]
        results = self.block(block, given)
        return Evaluation([_plain(value) for value in given], [_plain(value) for value in results])

    def argument(self, kind: Attribute, value):
        if isinstance(kind, stencil.FieldType):
            array = np.array(value, dtype=self.dtype(kind.element_type))
            lower, upper = _bounds(kind)
            if lower is not None and array.shape != tuple(np.subtract(upper, lower)):
                raise ValueError(f"expected an array for {kind}, got shape {array.shape}")
            return Grid(array, lower)
        if isinstance(kind, builtin.MemRefType):
            return np.array(value, dtype=self.dtype(kind.element_type))
        return self.dtype(kind)(value)

    def dtype(self, kind: Attribute):
        """The NumPy type in which values of an MLIR type are held."""
        if type(kind) in FLOAT_DTYPES:
            return FLOAT_DTYPES[type(kind)] if self.own_precision else np.float64
        if isinstance(kind, builtin.IndexType):
            return np.int64
        if isinstance(kind, builtin.IntegerType):
            widths = {1: np.bool_, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
            if kind.width.data in widths:
                return widths[kind.width.data]
        raise UnsupportedProgram(f"values of type {kind}")

    def block(self, block: Block, arguments: Sequence) -> list:
        """Run a block and return the operands of its terminator."""
        self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            operands = [self.values[operand] for operand in op.operands]
            if op is block.last_op and op.name in ("func.return", "scf.yield", "stencil.return"):
                return operands
            results = self.operation(op, operands)
            self.values.update(zip(op.results, results, strict=True))
        return []

    def operation(self, op: Operation, operands: list) -> list:
        special = getattr(self, "op_" + op.name.replace(".", "_"), None)
        if special is not None:
            return special(op, *operands)
        if op.name not in ELEMENTWISE:
            raise UnsupportedProgram(op.name)
        with np.errstate(all="ignore"):
            result = ELEMENTWISE[op.name](*operands)
        return [np.asarray(result).astype(self.dtype(op.results[0].type))[()]]

    # Fields and temps.

    def op_stencil_cast(self, op, field: Grid) -> list:
        lower, upper = _bounds(op.result.type)
        if lower is not None and field.array.shape != tuple(np.subtract(upper, lower)):
            raise ValueError(f"expected an array for {op.result.type}, got {field.array.shape}")
        return [Grid(field.array, lower)]

    def op_stencil_external_load(self, op, array: np.ndarray) -> list:
        return [Grid(array, _bounds(op.result.type)[0])]

    def op_stencil_external_store(self, op, field: Grid, array: np.ndarray) -> list:
        array[...] = field.array
        return []

    def op_stencil_load(self, op, field: Grid) -> list:
        lower, upper = _bounds(op.res.type)
        if lower is None:
            return [Grid(field.array.copy(), field.lower)]
        return [Grid(field.window(lower, upper).copy(), lower)]

    def op_stencil_store(self, op, temp: Grid, field: Grid) -> list:
        lower, upper = tuple(op.bounds.lb), tuple(op.bounds.ub)
        field.window(lower, upper)[...] = temp.window(lower, upper)
        return []

    def op_stencil_buffer(self, op, temp: Grid) -> list:
        return [temp]

    def op_stencil_apply(self, op, *operands) -> list:
        lower, upper = _bounds(op.res[0].type)
        if lower is None:
            if any(result.uses for result in op.res):
                raise UnsupportedProgram("a stencil.apply of unknown bounds")
            return [None] * len(op.res)
        self.domain = lower, upper
        shape = tuple(np.subtract(upper, lower))
        values = self.block(op.region.block, operands)
        self.domain = None
        if len(values) != len(op.res):
            raise UnsupportedProgram("stencil.return with 'unroll'")
        return [
            Grid(np.broadcast_to(value, shape).astype(self.dtype(result.type.element_type)), lower)
            for value, result in zip(values, op.res, strict=True)
        ]

    def op_stencil_access(self, op, temp: Grid) -> list:
        lower, upper = self.domain
        rank = len(lower)
        axes = list(range(rank)) if op.offset_mapping is None else list(op.offset_mapping)
        offset = np.array(list(op.offset))
        window = temp.window(np.take(lower, axes) + offset, np.take(upper, axes) + offset)
        missing = tuple(axis for axis in range(rank) if axis not in axes)
        return [np.expand_dims(window, missing)]

    def op_stencil_index(self, op) -> list:
        lower, upper = self.domain
        axis = op.dim.value.data
        shape = [1] * len(lower)
        shape[axis] = -1
        coordinates = np.arange(lower[axis], upper[axis], dtype=np.int64)
        return [(coordinates + list(op.offset)[axis]).reshape(shape)]

    def op_stencil_store_result(self, op, *value) -> list:
        if not value:
            raise UnsupportedProgram("an empty stencil.store_result")
        return list(value)

    # Control flow.

    def op_func_call(self, op, *operands) -> list:
        callee = op.callee.root_reference.data
        if callee not in self.functions:
            raise UnsupportedProgram(f"a call of '{callee}', which has no body")
        return self.block(self.functions[callee].body.block, operands)

    def op_scf_for(self, op, lower, upper, step, *carried) -> list:
        bounds = [np.unique(bound) for bound in (lower, upper, step)]
        if any(bound.size != 1 for bound in bounds):
            raise UnsupportedProgram("a loop whose bounds differ from point to point")
        for index in range(*(int(bound[0]) for bound in bounds)):
            carried = self.block(op.body.block, [np.int64(index), *carried])
        return list(carried)

    def op_scf_if(self, op, condition) -> list:
        if self.domain is None:
            region = op.true_region if condition else op.false_region
            return self.block(region.block, []) if region.blocks else []
        if not op.results:
            return []
        chosen = self.block(op.true_region.block, [])
        otherwise = self.block(op.false_region.block, [])
        return [np.where(condition, a, b) for a, b in zip(chosen, otherwise, strict=True)]

    # Arithmetic that depends on attributes or types.

    def op_arith_constant(self, op) -> list:
        if not isinstance(op.value, builtin.FloatAttr | builtin.IntegerAttr):
            raise UnsupportedProgram(f"a constant {op.value}")
        return [np.asarray(op.value.value.data).astype(self.dtype(op.result.type))[()]]

    def op_arith_cmpf(self, op, a, b) -> list:
        name = _FLOAT_PREDICATES[op.predicate.value.data]
        unordered = np.isnan(a) | np.isnan(b)
        match name:
            case "false" | "true":
                return [np.full(np.shape(unordered), name == "true")[()]]
            case "ord":
                return [~unordered]
            case "uno":
                return [unordered]
        compared = _COMPARISONS[name[1:]](a, b)
        return [compared & ~unordered if name[0] == "o" else compared | unordered]

    def op_arith_cmpi(self, op, a, b) -> list:
        name = _INTEGER_PREDICATES[op.predicate.value.data]
        if name[0] == "u":
            a, b = _unsigned(a), _unsigned(b)
        return [_COMPARISONS[name[-2:]](a, b)]

    def op_arith_bitcast(self, op, value) -> list:
        return [np.asarray(value).view(self.dtype(op.result.type))]

    def op_math_fma(self, op, a, b, c) -> list:
        if self.dtype(op.result.type) == np.float64:
            return [a * b + c]
        wide = np.float64
        exact = wide(a) * wide(b) + wide(c)
        return [np.asarray(exact).astype(self.dtype(op.result.type))[()]]


def _bounds(kind) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    if isinstance(kind.bounds, stencil.StencilBoundsAttr):
        return tuple(kind.bounds.lb), tuple(kind.bounds.ub)
    return None, None


def _plain(value):
    return value.array if isinstance(value, Grid) else value


def _unsigned(value):
    value = np.asarray(value)
    return value if value.dtype == np.bool_ else value.astype(f"u{value.dtype.itemsize}")


def _truncating_division(a, b):
    quotient = np.floor_divide(np.abs(a), np.maximum(np.abs(b), 1))
    return np.sign(a) * np.sign(b) * quotient


def _truncating_remainder(a, b):
    return a - _truncating_division(a, b) * b


_FLOAT_PREDICATES = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()
_INTEGER_PREDICATES = "eq ne slt sle sgt sge ult ule ugt uge".split()
_COMPARISONS: dict[str, Callable] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}

_SAME: Callable = lambda value: value  # noqa: E731 - conversions happen on the way out
ELEMENTWISE: dict[str, Callable] = {
    "arith.addf": operator.add,
    "arith.subf": operator.sub,
    "arith.mulf": operator.mul,
    "arith.divf": np.true_divide,
    "arith.negf": operator.neg,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _truncating_division,
    "arith.remsi": _truncating_remainder,
    "arith.floordivsi": np.floor_divide,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.select": np.where,
    "arith.index_cast": _SAME,
    "arith.extsi": _SAME,
    "arith.trunci": _SAME,
    "arith.sitofp": _SAME,
    "arith.fptosi": _SAME,
    "arith.extf": _SAME,
    "arith.truncf": _SAME,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda value: 1 / np.sqrt(value),
    "math.exp": np.exp,
    "math.log": np.log,
    "math.sin": np.sin,
    "math.tan": np.tan,
    "math.exp2": np.exp2,
    "math.log2": np.log2,
    "math.atan": np.arctan,
    "math.atan2": np.arctan2,
    "math.trunc": np.trunc,
    "math.cos": np.cos,
    "math.tanh": np.tanh,
    "math.powf": np.power,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.copysign": np.copysign,
    "math.erf": np.vectorize(math.erf, otypes=[np.float64]),
}
