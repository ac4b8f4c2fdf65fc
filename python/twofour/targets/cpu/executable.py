# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled CPU programs, ready to run on NumPy arrays."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from twofour.analysis import LinearSweep
from twofour.codegen.cpu.kernel_abi import (
    INPUTS_ATTRIBUTE,
    PAST_CACHES,
    PAST_CACHES_ATTRIBUTE,
    TABLES_ATTRIBUTE,
    USES_INDEX_ATTRIBUTE,
)
from twofour.codegen.cpu.register_tile import VECTORS
from twofour.codegen.cpu.vector_unit import vector_unit
from twofour.errors import TwofourError
from twofour.kernels import Kernel
from twofour.mlir import func, ir
from twofour.mlir_support import nested_ops, uncast_index
from twofour.options import CompileOptions
from twofour.program import select_function
from twofour.runtime import (
    AxisBoundary,
    FieldStepper,
    HostFieldStepper,
    Launch,
    LinearKernel,
    LinearStepper,
    Loop,
    NativeFieldStepper,
    NativeFunction,
    NativeKernel,
    Step,
    TiledKernel,
    TiledStepper,
    check_fixed,
    element_type,
    field_element_type,
    resolve_threads,
)
from twofour.runtime.once import made_once
from twofour.runtime.tiles.folding import Folding
from twofour.targets.cpu.build import CompiledCpu, compile_cpu
from twofour.targets.cpu.crew import native_crew
from twofour.targets.cpu.jit import CompiledModule
from twofour.targets.cpu.step_driver import step_driver
from twofour.targets.cpu.tile_driver import tile_driver
from twofour.targets.fields import field_spec
from twofour.targets.plan import CallSequence, KernelCall, NoPlan, read_calls

_SCALAR_TYPES = {
    "f64": ctypes.c_double,
    "f32": ctypes.c_float,
    "index": ctypes.c_int64,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "i16": ctypes.c_int16,
    "i8": ctypes.c_int8,
    "i1": ctypes.c_bool,
}


class CpuExecutable:
    """Machine code of a compiled program.

    Programs that are one linear step run by `linear_stepper`, on arrays of any extents; all others
    by `field_stepper`, on arrays of the extents of their fields.
    """

    def __init__(self, compiled: CompiledCpu):
        self.compiled = compiled
        with compiled.module.context, ir.Location.unknown():
            name = compiled.program.name
            kernel_inputs = _kernel_inputs(compiled.module)
            main = select_function(compiled.module, name, compiled.filename)
            self._calls = _calls(main, kernel_inputs)
            self._kernel_inputs = kernel_inputs
            self._using_index = _kernels_using_index(compiled.module)
            self._tables = _tables_of_kernels(compiled.module)
            self._strides = _stride_arguments(main)
            if self._calls is None:
                _check_memory(main)
            rare = _split_off(compiled.module, PAST_CACHES_ATTRIBUTE)
        self._code = CompiledModule(compiled.module, compiled.filename)
        # Compiled when it is needed: by far not all arrays are larger than the caches.
        self._rare_code = made_once(lambda: CompiledModule(rare, compiled.filename))
        self._step_past_caches = made_once(
            lambda sweep: CompiledModule(compiled.kernel_past_caches(sweep), compiled.filename)
        )

    @property
    def is_linear(self) -> bool:
        """Whether the program is one linear step whose result becomes its input."""
        return self.compiled.is_step

    @property
    def is_threaded(self) -> bool:
        """Whether sweeps run on several threads: not where the function is called as it is."""
        return self.is_linear or self._calls is not None

    @property
    def _is_tiled(self) -> bool:
        """Whether steps run in time tiles: fused kernels bring their own."""
        return self.is_linear and self.compiled.fused is None

    def _kernel(self, name: str, rank: int, outputs: int) -> NativeKernel:
        beside = name + PAST_CACHES
        past_caches = None
        if beside in self._kernel_inputs:
            past_caches = made_once(
                lambda: self._kernel_of(self._rare_code(), beside, rank, outputs)
            )
        return self._kernel_of(self._code, name, rank, outputs, past_caches)

    def _kernel_of(
        self,
        code: CompiledModule,
        name: str,
        rank: int,
        outputs: int = 1,
        past_caches: Callable[[], NativeKernel] | None = None,
    ) -> NativeKernel:
        inputs = self._kernel_inputs[name]
        address = code.address(name)
        return NativeKernel(name, address, rank, inputs, outputs, code, past_caches, native_crew)

    def _linear_kernel(self, sweep: LinearSweep | None) -> LinearKernel | None:
        if sweep is None:
            return None
        name, rank, past_caches = sweep.kernel, len(sweep.reach_lo), None
        if self.compiled.has_kernel_past_caches(sweep):
            past_caches = made_once(
                lambda: self._kernel_of(self._step_past_caches(sweep), name, rank)
            )
        return LinearKernel(
            self._kernel_of(self._code, name, rank, past_caches=past_caches),
            sweep.reach_lo,
            sweep.reach_hi,
            sweep.steps,
        )

    def linear_stepper(
        self,
        boundary: Sequence[AxisBoundary],
        threads: int | None = None,
        interior: tuple[Sequence[int], Sequence[int]] | None = None,
        tile: tuple[int, Sequence[int]] | None = None,
        resident: Sequence[int] | None = None,
    ) -> LinearStepper | TiledStepper:
        """A stepper for arrays that are the domain, or hold it and its halo (`interior`).

        `tile` and `resident` are those of TiledStepper for unfused steps; the former is the
        program's own where it is None.
        """
        if self._is_tiled:
            tile = tile or self.compiled.time_tile
            return TiledStepper(self._tiled_kernel(), boundary, threads, interior, tile, resident)
        return LinearStepper(
            self._linear_kernel(self.compiled.single),
            element_type(self.compiled.element),
            boundary,
            fused=self._linear_kernel(self.compiled.fused),
            threads=threads,
            interior=interior,
        )

    def _tiled_kernel(self) -> TiledKernel:
        single, unit = self.compiled.single, vector_unit("host")
        element, rank = element_type(self.compiled.element), len(single.reach_lo)
        return TiledKernel(
            self._linear_kernel(single),
            element,
            tile_driver(rank, element.itemsize),
            self.compiled.direct_kernel(single).work(unit),
            nontemporal=rank <= unit.nontemporal_axes,
            block=max(VECTORS) * unit.bytes // element.itemsize,
            planes=unit.core.planes,
            skewing=lambda: step_driver(2),
            folded=self._folded_kernel if self._may_be_folded else None,
        )

    @property
    def _may_be_folded(self) -> bool:
        """Whether the step is a sum of weighted points, and no other schedule was asked for."""
        return self.compiled.schedule == "direct" and not self.compiled.single.constant

    def _folded_kernel(self, folding: Folding) -> TiledKernel:
        """The kernel of the same step where axes are folded."""
        single = self.compiled.single
        offsets = tuple(map(folding.extents, single.offsets))
        kernel = Kernel(f"{single.function}_folded", offsets, single.weights)
        options = CompileOptions(
            dtype=self.compiled.element, reassociate=self.compiled.options.reassociate
        )
        return CpuExecutable(compile_cpu(kernel, options))._tiled_kernel()

    def field_stepper(
        self, boundary: Sequence[AxisBoundary], threads: int | None = None
    ) -> FieldStepper:
        """A stepper for the program's fields; raises TwofourError for a boundary it cannot keep."""
        program = self.compiled.program
        loop = program.time_loop
        if loop is not None:
            check_fixed(boundary, loop)
        fields = [field_spec(program, argument) for argument in program.fields]
        if self._calls is None:
            return HostFieldStepper(fields, program.rotation, self.function, boundary)
        workspaces = tuple(
            (shape, field_element_type(element).storage)
            for shape, element in self._calls.workspaces
        )
        numbers = {
            argument.index: field_element_type(argument.element)
            for argument in program.arguments
            if not argument.is_field
        }
        return NativeFieldStepper(
            fields,
            numbers,
            program.rotation,
            self._steps(self._calls.steps),
            workspaces,
            boundary,
            step_driver,
            resolve_threads(threads),
        )

    def _steps(self, steps: Sequence[KernelCall | Loop]) -> tuple[Step, ...]:
        """Calls and loops with their machine code."""
        return tuple(
            replace(step, body=self._steps(step.body))
            if isinstance(step, Loop)
            else Launch(
                self._kernel(step.name, step.rank, len(step.outputs)),
                step.inputs,
                step.outputs,
                uses_index=step.name in self._using_index,
                tables=self._tables.get(step.name, ()),
            )
            for step in steps
        )

    def function(self) -> NativeFunction:
        """The compiled function itself: one call on all its arguments, on one thread."""
        program = self.compiled.program
        scalars = [None if a.is_field else _scalar_type(a.element) for a in program.arguments]
        address = self._code.address(program.name)
        return NativeFunction(
            program.name, address, scalars, program.results, self._code, self._strides
        )


def _scalar_type(element: str) -> type:
    """The type of C for numbers; raises TwofourError for those that no argument can be."""
    if element not in _SCALAR_TYPES:
        raise TwofourError(f"expected scalars of {', '.join(_SCALAR_TYPES)}, got {element}")
    return _SCALAR_TYPES[element]


def _calls(function: func.FuncOp, kernel_inputs: dict[str, int]) -> CallSequence | None:
    """The sweeps of a function, None where only the compiled function itself can run them."""
    kinds = [argument.type for argument in function.regions[0].blocks[0].arguments]
    if any(isinstance(kind, ir.MemRefType) and kind.rank == 0 for kind in kinds):
        # Rounds are shared out by rows.
        return None
    try:
        return read_calls(function, kernel_inputs)
    except NoPlan:
        return None


def _split_off(module: ir.Module, attribute: str) -> ir.Module:
    """Move functions that have an attribute, and that no other calls, to a new module."""
    moved = ir.Module.create()
    with ir.InsertionPoint(moved.body):
        for function in nested_ops(module, "func.func"):
            if attribute in function.attributes:
                function.operation.clone()
                function.operation.erase()
    return moved


def _kernel_inputs(module: ir.Module) -> dict[str, int]:
    """The number of inputs of every kernel in a bufferized module."""
    return {
        op.attributes["sym_name"].value: op.attributes[INPUTS_ATTRIBUTE].value
        for op in module.body.operations
        if INPUTS_ATTRIBUTE in op.attributes
    }


def _kernels_using_index(module: ir.Module) -> set[str]:
    """The kernels whose results depend on the coordinates of points."""
    return {
        op.attributes["sym_name"].value
        for op in module.body.operations
        if USES_INDEX_ATTRIBUTE in op.attributes
    }


def _tables_of_kernels(module: ir.Module) -> dict[str, tuple[int, ...]]:
    """Which inputs kernels read anywhere, for those that have such ones."""
    return {
        op.attributes["sym_name"].value: tuple(op.attributes[TABLES_ATTRIBUTE])
        for op in module.body.operations
        if TABLES_ATTRIBUTE in op.attributes
    }


def _stride_arguments(function: func.FuncOp) -> tuple[int, ...]:
    """The arguments of a function that loops step by."""
    steps = {uncast_index(loop.operands[2]) for loop in nested_ops(function, "scf.for")}
    arguments = function.regions[0].blocks[0].arguments
    return tuple(n for n, argument in enumerate(arguments) if argument in steps)


def _check_memory(function: func.FuncOp) -> None:
    """Raise MemoryError where the buffers of a function cannot exist: its code does not check."""
    for op in nested_ops(function, "memref.alloc"):
        kind = op.results[0].type
        if not kind.has_static_shape:
            continue
        np.empty(kind.shape, field_element_type(str(kind.element_type)).storage)
