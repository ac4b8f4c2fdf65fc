# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs lowered to GPU kernels, run on the PTX simulator without the project's runtime.

The host's side is executed here, op by op: allocations, views, copies and launches.
"""

from collections.abc import Sequence

import numpy as np

from twofour import sim
from twofour.codegen.gpu.kernel_abi import BlockShape
from twofour.context import make_context
from twofour.dialects.stencil.transforms.bufferize import BufferizePass
from twofour.dialects.stencil.transforms.convert_element_type import ConvertElementTypePass
from twofour.dialects.stencil.transforms.extract_weights import ExtractWeightsPass
from twofour.dialects.stencil.transforms.infer_bounds import InferBoundsPass
from twofour.dialects.stencil.transforms.to_gpu import ConvertStencilToGpuPass
from twofour.frontend.source import parse_module
from twofour.mlir import ir
from twofour.mlir_support import nested_ops
from twofour.runtime.devices.launching import block_count
from twofour.targets.cpu.build import run_passes
from twofour.targets.gpu.lowering import to_llvm_ir, to_nvvm
from twofour.targets.gpu.ptx import to_ptx

STORAGE = {
    "bf16": np.uint16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}


class GpuProgram:
    """The kernels of a module for one chip, and its functions, which launch them."""

    def __init__(self, module: ir.Module, chip: str = "sm_90", dtype: str | None = None):
        passes = [InferBoundsPass(), ExtractWeightsPass()]
        if dtype is not None:
            passes.append(ConvertElementTypePass(to=dtype))
        passes.append(ConvertStencilToGpuPass(chip=chip))
        with module.context, ir.Location.unknown():
            run_passes(module, [*passes, BufferizePass()], "program.mlir")
            self.module = ir.Module.parse(str(module))
            kernels = nested_ops(self.module, "gpu.func")
            self.shapes = {k.attributes["sym_name"].value: BlockShape.of(k) for k in kernels}
            to_nvvm(module, "program.mlir")
            self.ptx = to_ptx(to_llvm_ir(module, "program.mlir"), chip)
        self.kernels = sim.read(self.ptx, name="program.ptx").kernels
        self.gpu = sim.Gpu(chip)

    def sweep(self, kernel: str, inputs: Sequence, scalars: Sequence, shape: Sequence[int], dtype):
        """The output of a kernel with one, of any extents, and the counters of its launch.

        Every row of inputs and output begins anywhere: one element more lies between rows.
        """
        views = [self._loose(u.shape, dtype) for u in inputs]
        for view, u in zip(views, inputs, strict=True):
            view[...] = u
        out = self._loose(shape, dtype, uninitialised=True)
        form = self.shapes[kernel]
        arguments = [*views, *scalars, out]
        launch = self._launch(
            kernel, block_count(form.tile, form.march, shape), form.threads, arguments
        )
        return out.copy(), launch.counters

    def _loose(self, shape: Sequence[int], dtype, uninitialised: bool = False) -> np.ndarray:
        shape = (*shape[:-1], shape[-1] + 1)
        make = self.gpu.memory.empty if uninitialised else self.gpu.memory.zeros
        return make(shape, dtype)[..., 1:]

    def run(self, name: str, arguments: Sequence) -> list:
        """The arguments as a function leaves them: arrays are copied, numbers are numbers."""
        memory = self.gpu.memory
        with self.module.context:
            functions = nested_ops(self.module, "func.func")
            function = next(f for f in functions if f.attributes["sym_name"].value == name)
            block = function.regions[0].blocks[0]
            given = [
                memory.array(a.astype(STORAGE[str(own.type.element_type)]))
                if isinstance(a, np.ndarray)
                else a
                for own, a in zip(block.arguments, arguments, strict=True)
            ]
            self.values = dict(zip(block.arguments, given, strict=True))
            self._block(block)
        return given

    def _block(self, block) -> list:
        """Run a block; what its terminator passes on."""
        *ops, last = block.operations
        for op in ops:
            self._step(op)
        return [self.values[operand] for operand in last.operands]

    def _step(self, op) -> None:
        name, values = op.operation.name, self.values
        operands = [values[operand] for operand in op.operands]
        if name == "arith.constant":
            values[op.results[0]] = op.attributes["value"].value
        elif name == "memref.alloc":
            kind = op.results[0].type
            dtype = STORAGE[str(kind.element_type)]
            values[op.results[0]] = self.gpu.memory.empty(tuple(kind.shape), dtype)
        elif name == "memref.cast":
            values[op.results[0]] = operands[0]
        elif name == "memref.subview":
            starts, sizes = list(op.static_offsets), list(op.static_sizes)
            box = tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))
            values[op.results[0]] = operands[0][box]
        elif name == "memref.copy":
            operands[1][...] = operands[0]
        elif name == "scf.for":
            body, carried = op.regions[0].blocks[0], operands[3:]
            for index in range(*operands[:3]):
                values.update(zip(body.arguments, [index, *carried], strict=True))
                carried = self._block(body)
            values.update(zip(op.results, carried, strict=True))
        elif name == "gpu.launch_func":
            blocks, _, _, threads, _, _, _, *arguments = operands
            self._launch(str(op.kernel).rpartition("@")[2], blocks, threads, arguments)
        else:
            assert name == "memref.dealloc", name

    def _launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence):
        words = []
        for argument in arguments:
            words += _descriptor(argument) if isinstance(argument, np.ndarray) else [argument]
        return self.gpu.launch(self.kernels[kernel], (blocks,), (threads,), words)


def _descriptor(view: np.ndarray) -> list[int]:
    address = view.__array_interface__["data"][0]
    return [address, address, 0, *view.shape, *(s // view.itemsize for s in view.strides)]


def program_of(text: str, chip: str = "sm_90", dtype: str | None = None) -> GpuProgram:
    """The program of a text in either syntax, its fields converted where `dtype` is given."""
    with make_context(), ir.Location.unknown():
        return GpuProgram(parse_module(text, "program.mlir"), chip, dtype)
