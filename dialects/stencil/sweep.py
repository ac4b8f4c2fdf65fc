# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replacing an op that computes temps by a call of a sweep kernel.

Temps are turned into memrefs by `builtin.unrealized_conversion_cast`, as partial conversions do;
`stencil-bufferize` resolves these casts, together with loads and stores.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twofour.box import Box
from twofour.codegen.cpu.kernel_abi import view_type
from twofour.dialects.stencil.traversal import captured_values
from twofour.identifiers import identifier
from twofour.mlir import arith, func, ir, memref
from twofour.mlir_support import defining_op, error_at

CAST = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True)
class SweepInput:
    """A temp that a sweep reads: at which offsets, along which axes of the domain."""

    temp: ir.Value
    offsets: Sequence[tuple[int, ...]]
    axes: tuple[int, ...]

    @property
    def element(self) -> ir.Type:
        """The element type in memory: that of the buffer where a sweep has filled one."""
        owner = defining_op(self.temp)
        if owner is not None and owner.name == CAST:
            return owner.operands[0].type.element_type
        return self.temp.type.element_type


def temp_memref_type(box: Box, element: ir.Type) -> ir.MemRefType:
    """The memref type that a temp is cast to: static extents, any strides, inner stride 1."""
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(unknown, [unknown] * (box.rank - 1) + [1])
    return ir.MemRefType.get(list(box.extents), element, layout)


def has_rows(kind: ir.Type) -> bool:
    """Whether a type is that of memrefs with rows of neighbouring elements."""
    if not isinstance(kind, ir.MemRefType) or kind.rank == 0:
        return False
    try:
        strides, _ = kind.get_strides_and_offset()
    except RuntimeError:  # a layout that has none
        return False
    return strides[-1] == 1


def conversion_cast(value: ir.Value, kind: ir.Type) -> ir.Value:
    return ir.Operation.create(CAST, results=[kind], operands=[value]).results[0]


def subview(source: ir.Value, offsets: Sequence[int], sizes: Sequence[int]) -> ir.Value:
    """A box of a memref, unit steps."""
    strides, start = source.type.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if start != unknown:
        for offset, stride in zip(offsets, strides, strict=True):
            # An offset of 0 leaves the start known whatever the stride.
            start = (
                start if offset == 0 else unknown if stride == unknown else start + offset * stride
            )
            if start == unknown:
                break
    layout = ir.StridedLayoutAttr.get(start, strides)
    kind = ir.MemRefType.get(list(sizes), source.type.element_type, layout)
    ones = [1] * len(sizes)
    return memref.SubViewOp(kind, source, [], [], [], list(offsets), list(sizes), ones).result


def enclosing_function(op) -> func.FuncOp:
    parent = op.operation.parent
    while parent is not None and parent.operation.name != "func.func":
        parent = parent.operation.parent
    if parent is None:
        raise error_at(op, "expected to be inside 'func.func'")
    return parent.opview


def kernel_name(op) -> str:
    """A name for the kernel of an op, after its function, not yet taken in the module.

    It is an identifier: LLVM ends the process at other names of GPU kernels. Names are taken as
    well where others begin with them and `_`: those are for what stands beside the kernel.
    """
    function = enclosing_function(op)
    module = function.operation.parent
    taken = {
        symbol.attributes["sym_name"].value
        for other in module.regions[0].blocks[0].operations
        for symbol in (other, *_kernels_of(other))
        if "sym_name" in symbol.attributes
    }
    prefix = f"{identifier(function.attributes['sym_name'].value)}_kernel"
    names = (f"{prefix}{n}" for n in range(len(taken) + 1))
    return next(n for n in names if not any(t == n or t.startswith(f"{n}_") for t in taken))


def _kernels_of(op) -> list:
    if op.operation.name != "gpu.module":
        return []
    return list(op.regions[0].blocks[0].operations)


def module_end(op) -> ir.InsertionPoint:
    """Where new functions go."""
    return ir.InsertionPoint(enclosing_function(op).operation.parent.regions[0].blocks[0])


def known_domain(op) -> Box:
    """The bounds of an op's results.

    Raises TwofourError while these, or those of a temp that the op reads, are unknown.
    """
    for value in (*captured_values(op), *op.results):
        if getattr(value.type, "box", True) is None:
            raise error_at(op, f"expected known bounds, got {value.type}; run stencil-infer-bounds")
    return op.results[0].type.box


def replace_by_sweep(
    op,
    kernel: str,
    inputs: Sequence[SweepInput],
    scalars: Sequence[ir.Value] = (),
    element: ir.Type | None = None,
    call: Callable[[str, list[ir.Value], Box], None] | None = None,
) -> None:
    """Call `kernel` for the results of `op`, and erase `op`.

    The kernel's arguments are a view of each input, the scalars, and a view of each result;
    `call(kernel, arguments, domain)` emits the call, that of a CPU kernel unless it is given.
    `element` is the type of the results in memory where it is not that of the temps.
    """
    domain = known_domain(op)
    with ir.InsertionPoint(op), op.location:
        arguments = [_input_view(item, domain) for item in inputs]
        arguments += scalars
        buffers = []
        for result in op.results:
            stored = element or result.type.element_type
            kind = ir.MemRefType.get(list(domain.extents), stored)
            buffers.append(memref.AllocOp(kind, [], []).result)
            arguments.append(memref.cast(view_type(domain.rank, stored), buffers[-1]))
        (call or _call_on_cpu)(kernel, arguments, domain)
        for result, buffer in zip(op.results, buffers, strict=True):
            result.replace_all_uses_with(conversion_cast(buffer, result.type))
    op.operation.erase()


def _call_on_cpu(kernel: str, arguments: list[ir.Value], domain: Box) -> None:
    """Call a kernel for the whole range of the outermost axis."""
    index = ir.IndexType.get()
    limits = [arith.ConstantOp(index, n).result for n in (0, domain.extents[0])]
    func.CallOp([], ir.FlatSymbolRefAttr.get(kernel), [*arguments, *limits])


def _input_view(item: SweepInput, domain: Box) -> ir.Value:
    """The part of a temp that the sweep reads, as a view of any shape."""
    box, element = item.temp.type.box, item.element
    needed = domain.project(item.axes).reach(item.offsets)
    whole = conversion_cast(item.temp, temp_memref_type(box, element))
    starts = [lo - first for lo, first in zip(needed.lower, box.lower, strict=True)]
    return memref.cast(view_type(box.rank, element), subview(whole, starts, needed.extents))
