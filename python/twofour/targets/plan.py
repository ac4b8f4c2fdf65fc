# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading the launch plan of a bufferized function: which kernels it runs, on which views.

The runtime runs such plans itself, on all threads of a CPU or on a GPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from twofour.mlir import ir
from twofour.mlir_support import defining_op, integer_constant, nested_ops, uncast_index
from twofour.runtime import Bound, Carried, Loop, View

_NOTHING_TO_DO = ("memref.dealloc", "func.return")
_INTEGER_BITS = (8, 16, 32, 64)


@dataclass(frozen=True)
class KernelCall:
    """A call of the kernel `name` over input and output views, the outputs of rank `rank`.

    `scalars` are the values that it takes as numbers: arguments of the function and loop indices.
    """

    name: str
    rank: int
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    scalars: tuple[int, ...] = ()


class NoPlan(Exception):
    """A function that does anything besides sweeping; `op` is the first such op.

    The text says what was expected of it, where that is not a sweep.
    """

    def __init__(self, op, expected: str = ""):
        super().__init__(expected)
        self.op = op


@dataclass
class CallSequence:
    """The sweeps of a function in order, and the (shape, element) of the buffers it allocates.

    The body of a Loop holds calls and loops, too.
    """

    steps: list[KernelCall | Loop] = field(default_factory=list)
    workspaces: list[tuple[tuple[int, ...], str]] = field(default_factory=list)


def read_calls(function, kernel_inputs: dict[str, int]) -> CallSequence:
    """The sweeps of a function over memrefs, and the loops around them.

    `kernel_inputs` gives the number of inputs of each kernel. Raises NoPlan at anything else, which
    the runtime has no part for.
    """
    return _Reader(function, kernel_inputs).read()


class _Reader:
    def __init__(self, function, kernel_inputs: dict[str, int]):
        self._block = function.regions[0].blocks[0]
        self._kernel_inputs = kernel_inputs
        self._sequence = CallSequence()
        self._views: dict[ir.Value, View] = {}
        self._numbers: dict[ir.Value, int] = {}
        # The buffers that a value may stand for, arguments and workspaces.
        self._origins: dict[int, frozenset[int]] = {}
        arguments = list(self._block.arguments)
        for number, argument in enumerate(arguments):
            if isinstance(argument.type, ir.MemRefType):
                self._views[argument] = View(number, ())
                self._origins[number] = frozenset([number])
            else:
                self._numbers[argument] = number
        self._arguments = dict(self._numbers)
        # Memory of single numbers.
        self._places: set[ir.Value] = set()
        self._first_workspace = len(arguments)
        # Values that loops bring forth are numbered after all workspaces.
        self._next = len(arguments) + len(nested_ops(function, "memref.alloc"))

    def read(self) -> CallSequence:
        self._sequence.steps = self._steps(self._block)
        return self._sequence

    def _steps(self, block: ir.Block) -> list[KernelCall | Loop]:
        """The sweeps and loops of a block, whose last op may be a terminator of `scf.for`."""
        steps = []
        for op in block.operations:
            name = op.operation.name
            if name == "memref.alloc":
                self._alloc(op)
            elif name == "memref.cast":
                self._views[op.results[0]] = self._view(op.operands[0], op)
            elif name == "memref.subview":
                self._subview(op)
            elif name == "memref.alloca":
                # A number, once it is stored there.
                self._places.add(op.results[0])
            elif name == "memref.store" and op.operands[1] in self._places:
                self._number_in_memory(op)
            elif name == "func.call":
                # The last two arguments are the range of the outermost axis.
                steps.append(self._call(op, op.callee.value, list(op.operands)[:-2]))
            elif name == "gpu.launch_func":
                kernel = list(op.attributes["kernel"].value)[-1]
                steps.append(self._call(op, kernel, list(op.kernelOperands)))
            elif name == "scf.for":
                steps.append(self._loop(op))
            elif name not in _NOTHING_TO_DO and name != "scf.yield":
                # Numbers are looked at where they are used.
                if not name.startswith("arith."):
                    raise NoPlan(op)
        return steps

    def _number_in_memory(self, op) -> None:
        """A store of a number, which calls then read as an input."""
        value, place = op.operands[0], op.operands[1]
        if value not in self._numbers:
            raise NoPlan(op, "expected an argument of the function or the index of a loop")
        number = self._numbers[value]
        self._views[place] = View(number, ())
        self._origins[number] = frozenset([number])

    def _view(self, value: ir.Value, op) -> View:
        if value not in self._views:
            raise NoPlan(op)
        return self._views[value]

    def _alloc(self, op) -> None:
        kind = op.results[0].type
        if not kind.has_static_shape:
            raise NoPlan(op, "expected a buffer of static extents")
        number = self._first_workspace + len(self._sequence.workspaces)
        self._sequence.workspaces.append((tuple(kind.shape), str(kind.element_type)))
        self._views[op.results[0]] = View(number, ())
        self._origins[number] = frozenset([number])

    def _subview(self, op) -> None:
        starts, sizes = list(op.static_offsets), list(op.static_sizes)
        whole = len(op.operands) == 1 and op.results[0].type.rank == len(starts)
        if not whole or any(step != 1 for step in op.static_strides):
            raise NoPlan(op, "expected a view of static offsets, extents, and strides 1")
        source = self._view(op.operands[0], op)
        box = tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))
        self._views[op.results[0]] = source.part(box)

    def _call(self, op, name: str, arguments: Sequence[ir.Value]) -> KernelCall:
        if name not in self._kernel_inputs:
            raise NoPlan(op)
        numbers, views = [], []
        for value in arguments:
            if isinstance(value.type, ir.MemRefType):
                views.append(self._view(value, op))
            elif value in self._numbers:
                numbers.append(self._numbers[value])
            else:
                raise NoPlan(defining_op(value) or op)
        count = self._kernel_inputs[name]
        rank = arguments[-1].type.rank
        return KernelCall(name, rank, tuple(views[:count]), tuple(views[count:]), tuple(numbers))

    def _loop(self, op) -> Loop:
        lower, upper, step, *initial = op.operands
        body = op.regions[0].blocks[0]
        index, *carried = body.arguments
        if not isinstance(index.type, ir.IndexType):
            raise NoPlan(op, f"expected a loop over values of type index, got {index.type}")
        if not all(isinstance(value.type, ir.MemRefType) for value in carried):
            raise NoPlan(op, "expected a loop that carries fields only")
        stride = self._bound(step, op)
        if not isinstance(stride, int) or stride < 1:
            raise NoPlan(op, "expected a loop with a constant positive step")
        ends = self._bound(lower, op), self._bound(upper, op)
        starts = [self._view(value, op) for value in initial]
        values = [self._number() for _ in carried]
        self._numbers[index] = self._number()
        outside = frozenset().union(*(self._origins[view.buffer] for view in starts))
        for argument, value in zip(carried, values, strict=True):
            self._views[argument] = View(value, ())
            self._origins[value] = outside
        allocated = self._first_workspace + len(self._sequence.workspaces)
        steps = tuple(self._steps(body))
        last = list(body.operations)[-1]
        following = [self._view(value, op) for value in last.operands]
        for view in following:
            # Each iteration would need such a buffer of its own.
            if any(origin >= allocated for origin in self._origins[view.buffer]):
                raise NoPlan(op, "expected a loop that carries fields from outside of it")
            outside |= self._origins[view.buffer]
        for result, value in zip(op.results, values, strict=True):
            self._views[result] = View(value, ())
            self._origins[value] = outside
        items = tuple(map(Carried, values, starts, following))
        return Loop(self._numbers[index], *ends, stride, items, steps)

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _bound(self, value: ir.Value, loop) -> int | Bound:
        """A constant, or an argument of the function."""
        constant = integer_constant(value)
        if constant is not None:
            return constant
        value = uncast_index(value)
        kind = value.type
        is_integer = isinstance(kind, ir.IndexType) or (
            isinstance(kind, ir.IntegerType) and kind.width in _INTEGER_BITS
        )
        if value not in self._arguments or not is_integer:
            raise NoPlan(loop, "expected constants or integer arguments as bounds of a loop")
        return Bound(self._arguments[value])
