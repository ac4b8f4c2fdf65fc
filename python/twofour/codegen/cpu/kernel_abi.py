# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calling convention of sweep kernels, as the code generators see it.

A kernel takes input views, output views and a range [begin, end) of the outermost axis of the
outputs. An output view covers exactly the region to be written; an input view covers the same
region grown by the reach of that input's offsets, so that point x of the output reads index
x + offset + reach_lo. Kernels know no extents: they run on any view.

A kernel NAME_past_caches is the kernel NAME for arrays larger than the caches, and says so in an
attribute: functions of the user may have such names as well.

Kernels of two axes may sum up rows in pairs, from an even row of the view on. Any range gives the
bits of the whole. Where a part of an array is to have them, its view begins at an even row of the
array, one before the range if need be; that row is neither read for nor written.
"""

from collections.abc import Callable, Sequence

from twofour.mlir import arith, func, ir, scf


def view_type(rank: int, element: ir.Type) -> ir.MemRefType:
    """The memref type of every view: any shape, any strides, unit stride on the innermost axis."""
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(unknown, [unknown] * (rank - 1) + [1])
    return ir.MemRefType.get([ir.ShapedType.get_dynamic_size()] * rank, element, layout)


INPUTS_ATTRIBUTE = "stencil.kernel_inputs"
# On kernels whose outputs may be inputs that they read at the same points only: they write each
# point once, after all that they read there.
IN_PLACE_ATTRIBUTE = "stencil.in_place"
# On kernels whose results depend on the coordinates of points: their views must not be cut along
# inner axes.
USES_INDEX_ATTRIBUTE = "stencil.uses_index"
# On kernels with inputs that they read anywhere, whatever point they compute: which these are.
TABLES_ATTRIBUTE = "stencil.tables"
PAST_CACHES = "_past_caches"
PAST_CACHES_ATTRIBUTE = "stencil.past_caches"


def kernel_function(name: str, arguments: Sequence[ir.Type], inputs: int) -> func.FuncOp:
    """A function callable from C, with `arguments` and then the range of the outermost axis.

    The first `inputs` arguments are input views, the rest output views, and the function says so in
    an attribute.
    """
    index = ir.IndexType.get()
    function = func.FuncOp(name, ir.FunctionType.get([*arguments, index, index], []))
    function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), inputs)
    function.attributes[INPUTS_ATTRIBUTE] = count
    function.add_entry_block()
    return function


class EntryConstants:
    """Constants made once, at the start of a function's entry block."""

    def __init__(self, entry: ir.Block):
        self._entry = entry
        self._made: dict[object, ir.Value] = {}

    def get(self, key: object, make: Callable[[], ir.Value]) -> ir.Value:
        """The constant for `key`, made by `make()` when it is not there yet."""
        if key not in self._made:
            with ir.InsertionPoint.at_block_begin(self._entry):
                self._made[key] = make()
        return self._made[key]

    def index(self, value: int) -> ir.Value:
        return self.get(value, lambda: arith.ConstantOp(ir.IndexType.get(), value).result)


def strided_loop(
    constants: EntryConstants,
    begin: ir.Value,
    end: ir.Value,
    step: int,
    body: Callable[[ir.Value], None],
) -> ir.Value:
    """`body(base)` for base = begin, begin + step, ... while base + step <= end.

    Returns where the loop stops: the start of what is left.
    """
    stop = end
    if step > 1:
        rest = arith.remsi(arith.subi(end, begin), constants.index(step))
        stop = arith.subi(end, rest)
    for base in scf.for_(begin, stop, constants.index(step)):
        body(base)
        scf.yield_([])
    return stop


def shifted(
    constants: EntryConstants, bases: Sequence[ir.Value], shift: Sequence[int]
) -> list[ir.Value]:
    """The indices bases + shift."""
    return [
        base if s == 0 else arith.addi(base, constants.index(s))
        for base, s in zip(bases, shift, strict=True)
    ]
