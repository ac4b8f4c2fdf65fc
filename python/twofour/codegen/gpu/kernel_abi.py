# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calling convention of GPU kernels, and what stands beside them in a `gpu.module`.

A kernel takes input views, scalars and output views, as a CPU kernel does
(`twofour.codegen.cpu.kernel_abi`), without a range: an output view is exactly what it writes. Views
are lowered to MLIR's descriptors (allocated, aligned, offset, sizes, strides). Tensor maps are no
arguments: a kernel takes the addresses of globals, which lowering turns into parameters after all
others, 128 bytes each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from twofour.box import Box
from twofour.codegen.cpu.kernel_abi import IN_PLACE_ATTRIBUTE, INPUTS_ATTRIBUTE
from twofour.identifiers import free_name
from twofour.mlir import arith, gpu, ir, llvm, memref
from twofour.mlir_support import enclosing, error_at
from twofour.runtime.devices.launching import block_count

MODULE = "builtin.module"
LAUNCH_ATTRIBUTE = "stencil.launch"
KERNELS = "kernels"  # the gpu.module that holds them, where that name is free
GLOBAL, CONSTANT = 1, 4  # memory spaces of tables
# Of a global that stands for a tensor map: the kernel that takes it.
MAP_ATTRIBUTE = "stencil.tensor_map_of"
MAP_BYTES, MAP_ALIGNMENT = 128, 64


@dataclass(frozen=True)
class MapShape:
    """A tensor map that a kernel takes: of view number `view` (inputs first), and its box.

    The tensor begins `lead` elements before the view on the last axis; a box has `box` elements per
    axis, slowest first.
    """

    view: int
    lead: int
    box: tuple[int, ...]

    def to_attribute(self) -> ir.Attribute:
        """The shape as an array of integers."""
        return ir.DenseI64ArrayAttr.get([self.view, self.lead, *self.box])

    @classmethod
    def of(cls, attribute: ir.Attribute) -> "MapShape":
        """The shape of an array of integers."""
        view, lead, *box = ir.DenseI64ArrayAttr(attribute)
        return cls(view, lead, tuple(box))


@dataclass(frozen=True)
class BlockShape:
    """What one block of a kernel writes, and what it needs.

    `tile` holds the outputs of a block per axis, `march` how many tiles it writes along axis 0;
    `alignment` is the number of bytes that rows start on, `shared_bytes` its shared memory.
    `resident` blocks fit on a multiprocessor, of kernels whose blocks share axis 0 evenly, however
    many there are; it is None for all others. `maps` are the tensor maps that the kernel takes.
    """

    threads: int
    tile: tuple[int, ...]
    march: int
    alignment: int
    shared_bytes: int = 0
    resident: int | None = None
    maps: tuple[MapShape, ...] = ()

    def to_attribute(self) -> ir.DictAttr:
        """The shape, but for the threads, which the function itself names."""
        i64 = ir.IntegerType.get_signless(64)
        names = ("march", "alignment", "shared_bytes", "resident")
        maps = [shape.to_attribute() for shape in self.maps]
        numbers = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return ir.DictAttr.get(
            {
                "tile": ir.DenseI64ArrayAttr.get(list(self.tile)),
                **{name: ir.IntegerAttr.get(i64, number) for name, number in numbers.items()},
                **({"maps": ir.ArrayAttr.get(maps)} if maps else {}),
            }
        )

    @classmethod
    def of(cls, function: gpu.GPUFuncOp) -> "BlockShape":
        """The shape that a kernel carries."""
        found = function.attributes[LAUNCH_ATTRIBUTE]
        return cls(
            threads=list(ir.DenseI32ArrayAttr(function.attributes["known_block_size"]))[0],
            tile=tuple(ir.DenseI64ArrayAttr(found["tile"])),
            march=found["march"].value,
            alignment=found["alignment"].value,
            shared_bytes=found["shared_bytes"].value,
            resident=found["resident"].value if "resident" in found else None,
            maps=tuple(map(MapShape.of, found["maps"])) if "maps" in found else (),
        )


def kernel_module(op: ir.Operation, chip: str) -> ir.Block:
    """The block of the `gpu.module` of a module, or of the innermost one around another op.

    It is made at the module's end when it is not there yet. Raises TwofourError, at the op, where
    its kernels are for another chip.
    """
    module = op if op.name == MODULE else enclosing(op, MODULE)
    if (found := _kernels(module)) is not None:
        known = list(found.attributes["targets"]) if "targets" in found.attributes else []
        if known and not any(f'chip = "{chip}"' in str(target) for target in known):
            raise error_at(op, f"expected kernels for {known[0]} as before, got chip {chip}")
        return found.regions[0].blocks[0]
    block = module.regions[0].blocks[0]
    symbols = (op.attributes for op in block.operations if "sym_name" in op.attributes)
    name = free_name(KERNELS, {attributes["sym_name"].value for attributes in symbols})
    module.attributes["gpu.container_module"] = ir.UnitAttr.get()
    with ir.InsertionPoint(block), ir.Location.unknown():
        made = gpu.GPUModuleOp(name, targets=ir.Attribute.parse(f'[#nvvm.target<chip = "{chip}">]'))
    return made.regions[0].blocks.append()


def _kernels(module: ir.Operation) -> ir.OpView | None:
    """The `gpu.module` of a module, None where it has none yet."""
    operations = module.regions[0].blocks[0].operations
    return next((op for op in operations if op.operation.name == "gpu.module"), None)


def gpu_function(
    name: str,
    arguments: Sequence[ir.Type],
    inputs: int,
    shape: BlockShape,
    in_place: bool = False,
    room_for: int | None = None,
) -> gpu.GPUFuncOp:
    """A kernel with an empty entry block, at the current insertion point.

    The first `inputs` arguments are input views; numbers and output views follow. Of a kernel that
    works `in_place`, outputs may be inputs that it reads at the same points only. Its threads leave
    registers for so many blocks on a multiprocessor, those that are resident unless given.
    """
    kind = ir.FunctionType.get(list(arguments), [])
    function = gpu.GPUFuncOp(ir.TypeAttr.get(kind), name, known_block_size=[shape.threads, 1, 1])
    # The op's own attribute; `kernel=True` would set another one beside it.
    function.attributes["kernel"] = ir.UnitAttr.get()
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), inputs)
    function.attributes[INPUTS_ATTRIBUTE] = count
    function.attributes[LAUNCH_ATTRIBUTE] = shape.to_attribute()
    if in_place:
        function.attributes[IN_PLACE_ATTRIBUTE] = ir.UnitAttr.get()
    # It bounds the registers of a thread. Without it ptxas spills to make room for more blocks than
    # shared memory does.
    i32 = ir.IntegerType.get_signless(32)
    function.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(i32, room_for or shape.resident or 1)
    function.regions[0].blocks.append(*arguments)
    return function


def tensor_map(kernel: str, number: int) -> ir.Value:
    """The address of tensor map `number` of the kernel that is being built, at the insertion point.

    Maps are taken once each, in the order of their numbers.
    """
    name = f"{kernel}_map{number}"
    with ir.InsertionPoint(_enclosing("gpu.func")):
        kind = ir.Type.parse(f"!llvm.array<{MAP_BYTES} x i8>")
        linkage = ir.Attribute.parse("#llvm.linkage<external>")
        made = llvm.GlobalOp(kind, name, linkage, alignment=MAP_ALIGNMENT)
        made.attributes[MAP_ATTRIBUTE] = ir.FlatSymbolRefAttr.get(kernel)
    return llvm.mlir_addressof(ir.Type.parse("!llvm.ptr"), ir.FlatSymbolRefAttr.get(name))


def workgroup() -> ir.Attribute:
    """The memory space of shared memory."""
    return ir.Attribute.parse("#gpu.address_space<workgroup>")


def shared_type(elements: int, element: ir.Type) -> ir.MemRefType:
    """The type of a part of shared memory."""
    return ir.MemRefType.get([elements], element, memory_space=workgroup())


def table(name: str, values: np.ndarray, element: ir.Type, space: int = GLOBAL) -> ir.Value:
    """A constant table before the function that is being built, read at the insertion point.

    `values` is int32 or float64 of any rank; `element` its type in the IR.
    """
    kind = ir.MemRefType.get(
        list(values.shape),
        element,
        memory_space=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), space),
    )
    with ir.InsertionPoint(_enclosing("gpu.func")):
        memref.global_(
            name,
            kind,
            sym_visibility="private",
            initial_value=ir.DenseElementsAttr.get(np.ascontiguousarray(values), type=element),
            constant=True,
            alignment=16,
        )
    return memref.get_global(kind, name)


def _enclosing(name: str) -> ir.OpView:
    """The op of this name around the current insertion point."""
    op = ir.InsertionPoint.current.block.owner
    while op.operation.name != name:
        op = op.operation.parent
    return op


def launch(shape: BlockShape) -> Callable[[str, list[ir.Value], Box], None]:
    """What `replace_by_sweep` calls to launch a kernel of this shape."""

    def call(kernel: str, arguments: list[ir.Value], domain: Box) -> None:
        def index(number: int) -> ir.Value:
            return arith.ConstantOp(ir.IndexType.get(), number).result

        kernels = _kernels(_enclosing(MODULE)).attributes["sym_name"].value
        one = index(1)
        shared = arith.ConstantOp(ir.IntegerType.get_signless(32), shape.shared_bytes).result
        gpu.LaunchFuncOp(
            [kernels, kernel],
            (index(block_count(shape.tile, shape.march, domain.extents)), one, one),
            (index(shape.threads), one, one),
            arguments,
            dynamic_shared_memory_size=shared,
        )

    return call
