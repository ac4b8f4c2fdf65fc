# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading the launch plan of a bufferized function: which kernels it runs, on which views.

The runtime runs such plans itself, on all threads of a CPU or on a GPU.
"""

from dataclasses import dataclass, field

from twofour.mlir import ir
from twofour.runtime import View


@dataclass(frozen=True)
class KernelCall:
    """A call of the kernel `name` over input and output views, the outputs of rank `rank`.

    `scalars` are the positions of the arguments of the function that it takes as numbers.
    """

    name: str
    rank: int
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    scalars: tuple[int, ...] = ()


class NoPlan(Exception):
    """A function that does anything besides sweeping; `op` is the first such op."""

    def __init__(self, op):
        super().__init__(op.operation.name)
        self.op = op


@dataclass
class CallSequence:
    """The sweeps of a function in order, and the (shape, element) of the buffers it allocates."""

    calls: list[KernelCall] = field(default_factory=list)
    workspaces: list[tuple[tuple[int, ...], str]] = field(default_factory=list)


def read_calls(function, kernel_inputs: dict[str, int]) -> CallSequence:
    """The sweeps of a function over memrefs.

    `kernel_inputs` gives the number of inputs of each kernel. Raises NoPlan at loops, copies and
    anything else that the runtime has no part for.
    """
    block = function.regions[0].blocks[0]
    sequence = CallSequence()
    views: dict[ir.Value, View] = {}
    for number, argument in enumerate(block.arguments):
        if isinstance(argument.type, ir.MemRefType):
            views[argument] = View(number, ())
    for op in block.operations:
        name = op.operation.name
        if name == "memref.alloc":
            kind = op.results[0].type
            buffer = len(block.arguments) + len(sequence.workspaces)
            sequence.workspaces.append((tuple(kind.shape), str(kind.element_type)))
            views[op.results[0]] = View(buffer, ())
        elif name == "memref.cast":
            views[op.results[0]] = views[op.operands[0]]
        elif name == "memref.subview" and len(op.operands) == 1:
            views[op.results[0]] = _subview(views[op.operands[0]], op)
        elif name == "func.call":
            # The last two arguments are the range of the outermost axis.
            arguments = list(op.operands)[:-2]
            call = op.attributes["callee"].value
            sequence.calls.append(_kernel_call(op, call, arguments, views, kernel_inputs))
        elif name == "gpu.launch_func":
            call = list(op.attributes["kernel"].value)[-1]
            arguments = list(op.kernelOperands)
            sequence.calls.append(_kernel_call(op, call, arguments, views, kernel_inputs))
        elif name not in ("arith.constant", "memref.dealloc", "func.return"):
            raise NoPlan(op)
    return sequence


def _subview(source: View, op) -> View:
    starts, sizes = list(op.attributes["static_offsets"]), list(op.attributes["static_sizes"])
    outer = source.slices or (slice(0, None),) * len(starts)
    return View(
        source.buffer,
        tuple(
            slice(o.start + start, o.start + start + size)
            for o, start, size in zip(outer, starts, sizes, strict=True)
        ),
    )


def _kernel_call(op, name: str, arguments, views, kernel_inputs: dict[str, int]) -> KernelCall:
    numbers = [value for value in arguments if not isinstance(value.type, ir.MemRefType)]
    found = [views.get(value) for value in arguments if isinstance(value.type, ir.MemRefType)]
    of_function = all(isinstance(value.owner, ir.Block) for value in numbers)
    if name not in kernel_inputs or None in found or not of_function:
        raise NoPlan(op)
    count = kernel_inputs[name]
    return KernelCall(
        name,
        arguments[-1].type.rank,
        tuple(found[:count]),
        tuple(found[count:]),
        tuple(ir.BlockArgument(value).arg_number for value in numbers),
    )
