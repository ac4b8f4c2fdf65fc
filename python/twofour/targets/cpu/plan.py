# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading the launch plan of a bufferized function, so that its sweeps can run on all threads."""

from dataclasses import dataclass, field

import numpy as np

from twofour.mlir import ir
from twofour.runtime import View, field_element_type


@dataclass(frozen=True)
class KernelCall:
    """A call of the kernel `name` over input and output views, the outputs of rank `rank`."""

    name: str
    rank: int
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]


@dataclass
class CallSequence:
    """The sweeps of a function in order, and the (shape, dtype) of the buffers it allocates."""

    calls: list[KernelCall] = field(default_factory=list)
    workspaces: list[tuple[tuple[int, ...], np.dtype]] = field(default_factory=list)


def read_calls(function, kernel_inputs: dict[str, int]) -> CallSequence | None:
    """The sweeps of a function over memrefs, or None when it does anything besides sweeping.

    `kernel_inputs` gives the number of inputs of each kernel. Loops, copies and kernels that take
    numbers are left to the compiled function itself.
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
            dtype = field_element_type(str(kind.element_type)).storage
            sequence.workspaces.append((tuple(kind.shape), dtype))
            views[op.results[0]] = View(buffer, ())
        elif name == "memref.cast":
            views[op.results[0]] = views[op.operands[0]]
        elif name == "memref.subview" and len(op.operands) == 1:
            views[op.results[0]] = _subview(views[op.operands[0]], op)
        elif name == "func.call":
            call = _kernel_call(op, views, kernel_inputs)
            if call is None:
                return None
            sequence.calls.append(call)
        elif name not in ("arith.constant", "memref.dealloc", "func.return"):
            return None
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


def _kernel_call(op, views, kernel_inputs: dict[str, int]) -> KernelCall | None:
    name = op.attributes["callee"].value
    arguments = list(op.operands)[:-2]
    if name not in kernel_inputs or any(value not in views for value in arguments):
        return None
    found = tuple(views[value] for value in arguments)
    count = kernel_inputs[name]
    return KernelCall(name, arguments[-1].type.rank, found[:count], found[count:])
