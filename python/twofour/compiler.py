# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler driver: from a program and options to a module of CPU kernels.

`compile_cpu` keeps what each stage decided, for `explain` to report.
"""

from dataclasses import dataclass

from twofour.context import make_context
from twofour.diagnostics import located_in
from twofour.dialects.nm.ops import SparsePatchMatmulOp, permutation_of
from twofour.dialects.nm.transforms.compress import CompressPass
from twofour.dialects.nm.transforms.crush import CrushPass
from twofour.dialects.nm.transforms.permute_2to4 import Permute2to4Pass
from twofour.dialects.nm.transforms.to_vector import ConvertNmToVectorPass
from twofour.dialects.stencil.ops import linear_terms
from twofour.dialects.stencil.sweep import enclosing_function, kernel_name
from twofour.dialects.stencil.transforms.bufferize import BufferizePass
from twofour.dialects.stencil.transforms.convert_element_type import ConvertElementTypePass
from twofour.dialects.stencil.transforms.extract_weights import (
    ExtractWeightsPass,
    LeftApply,
    left_applies,
)
from twofour.dialects.stencil.transforms.fuse_steps import (
    SINGLE_STEP_ATTRIBUTE,
    STEPS_ATTRIBUTE,
    FuseStepsPass,
    linear_step,
)
from twofour.dialects.stencil.transforms.infer_bounds import InferBoundsPass
from twofour.dialects.stencil.transforms.to_loops import ConvertStencilToLoopsPass
from twofour.dialects.stencil.transforms.to_nm import ConvertStencilToNmPass
from twofour.dialects.stencil.transforms.to_vector import ConvertStencilToVectorPass
from twofour.dialects.stencil.traversal import functions, nested_ops
from twofour.errors import SourceLocation, TwofourError
from twofour.frontend.source import parse_module, read_text
from twofour.frontend.weights import kernel_module
from twofour.kernels import Kernel
from twofour.layout.search import mma_per_128_outputs
from twofour.mlir import ir
from twofour.mlir_support import error_at, source_location
from twofour.passes import ModulePass
from twofour.pipeline import PassElement, PipelineOptions, run_pipeline
from twofour.program import Program, describe, select_function
from twofour.runtime import element_type
from twofour.suggestions import suggest

CPU_SCHEDULES = ("auto", "direct", "sparse")
TARGETS = ("cpu",)


@dataclass(frozen=True)
class CompileOptions:
    """What to compile for.

    `dtype` is a storage type, or None for the program's own (f32 for kernels). `fuse_steps` is the
    number of steps in one sweep (1: no fusion). `function` names the function of a file.
    """

    target: str = "cpu"
    schedule: str = "auto"
    dtype: str | None = None
    fuse_steps: int = 1
    function: str | None = None

    def __post_init__(self):
        for what, value, choices in (
            ("target", self.target, TARGETS),
            ("schedule", self.schedule, CPU_SCHEDULES),
        ):
            if value not in choices:
                raise TwofourError(f"unknown {what} '{value}'{suggest(str(value), choices)}")
        if self.dtype is not None:
            element_type(self.dtype)
        if type(self.fuse_steps) is not int or self.fuse_steps < 1:
            raise TwofourError(f"expected at least 1 fused step, got {self.fuse_steps!r}")

    @property
    def chosen_schedule(self) -> str:
        """The schedule of linear stencils: on the CPU, sums over points beat emulated fragments."""
        return "direct" if self.schedule == "auto" else self.schedule


@dataclass(frozen=True)
class LinearSweep:
    """A function that is one linear step, and the kernel of its sweep.

    The stencil has `offsets` and `weights`, one of each a term, and advances `steps` time steps.
    """

    function: str
    kernel: str
    offsets: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    steps: int


@dataclass(frozen=True)
class SparseLayout:
    """The 2:4 operator of one sweep.

    `columns` counts the distinct inputs of a tile, `k` the columns after padding, `density` the
    share of A (rows x k) that is not zero.
    """

    function: str
    tile: tuple[int, ...]
    rows: int
    columns: int
    k: int
    k_lower_bound: int
    padding_columns: int
    fragment: int
    strategy: str
    proven: bool
    mma_per_128_outputs: float
    density: float


@dataclass(frozen=True)
class LeftOut:
    """Why an apply stays on the general path, and where the op stands that decides it."""

    reason: str
    location: SourceLocation


@dataclass
class CompiledCpu:
    """A module whose kernels are lowered to upstream dialects, and what was decided on the way.

    `single` and `fused` are set for programs that are one linear step; `left` lists the applies
    that stay on the general path; `layouts` describes the 2:4 operators, of the sparse schedule or
    where they were asked for; `passes` is what ran, in order.
    """

    module: ir.Module
    options: CompileOptions
    filename: str
    program: Program
    element: str
    single: LinearSweep | None
    fused: LinearSweep | None
    left: list[LeftOut]
    layouts: list[SparseLayout]
    passes: list[ModulePass]

    @property
    def schedule(self) -> str:
        """Direct or sparse, and loops where an apply is left on the general path."""
        return "loops" if self.left else self.options.chosen_schedule


def load_program(source: str | Kernel, options: CompileOptions) -> tuple[ir.Module, str]:
    """The module of a file or a kernel, in a context of its own, and the name to report it by."""
    context = make_context()
    with context, ir.Location.unknown():
        if isinstance(source, Kernel):
            if options.function is not None:
                raise TwofourError(
                    f"expected --function with a file only, got kernel '{source.name}'"
                )
            module = kernel_module(source, options.dtype or "f32", options.fuse_steps)
            return module, source.name
        return parse_module(read_text(source), source), source


def front_passes(options: CompileOptions, convert: bool) -> list[ModulePass]:
    """Passes up to the linear form of every sweep; `convert` changes the element type."""
    passes: list[ModulePass] = [InferBoundsPass(), ExtractWeightsPass()]
    if convert:
        # After the weights were found, so that they are rounded to the type of sums only.
        passes.append(ConvertElementTypePass(to=options.dtype))
    if options.fuse_steps > 1:
        passes.append(FuseStepsPass(steps=options.fuse_steps))
    return passes


def layout_passes() -> list[ModulePass]:
    """Passes from weighted sums to compressed 2:4 patch operators."""
    return [ConvertStencilToNmPass(), CrushPass(), Permute2to4Pass(), CompressPass()]


def lowering_passes(module: ir.Module) -> list[ModulePass]:
    """Passes from the linear forms that a module holds to functions over memrefs."""
    passes: list[ModulePass] = []
    if nested_ops(module, SparsePatchMatmulOp.OPERATION_NAME):
        passes.append(ConvertNmToVectorPass())
    return [*passes, ConvertStencilToVectorPass(), ConvertStencilToLoopsPass(), BufferizePass()]


def run_passes(module: ir.Module, passes: list[ModulePass], filename: str) -> None:
    elements = [PassElement(p.spell(), p) for p in passes]
    run_pipeline(module, elements, PipelineOptions(filename=filename))


def compile_cpu(
    source: str | Kernel, options: CompileOptions, *, report_layouts: bool = False
) -> CompiledCpu:
    """Compile a file or kernel for the CPU, down to upstream dialects.

    With `report_layouts`, the 2:4 operators of linear sweeps are described whatever the schedule.
    Raises TwofourError for a program that cannot be read or run, and where `options` ask for a
    schedule or fusion that the program does not admit.
    """
    module, filename = load_program(source, options)
    is_kernel = isinstance(source, Kernel)
    return compile_module(
        module, filename, options, is_kernel=is_kernel, report_layouts=report_layouts
    )


def compile_module(
    module: ir.Module,
    filename: str,
    options: CompileOptions,
    *,
    is_kernel: bool = False,
    report_layouts: bool = False,
) -> CompiledCpu:
    """Compile a module for the CPU, in place; see `compile_cpu`."""
    with module.context, ir.Location.unknown(), located_in(filename):
        name = select_function(module, options.function, filename).attributes["sym_name"].value
        _keep_called(module, name)
        _check_symbols(module)
        passes = front_passes(options, options.dtype is not None and not is_kernel)
        run_passes(module, passes, filename)
        function = select_function(module, name, filename)
        program = describe(function, filename)
        left = list(left_applies(function))
        single, fused = _linear_sweeps(module, name)
        _check_admitted(options, function, program, left, single)
        reasons = [
            LeftOut(item.reason, source_location(item.op.location, filename)) for item in left
        ]
        layouts = []
        if options.chosen_schedule == "sparse":
            layouts = _lay_out(module, filename)
            passes += layout_passes()
        elif report_layouts:
            layouts = _lay_out(ir.Module.parse(str(module)), filename)
        lowering = lowering_passes(module)
        run_passes(module, lowering, filename)
        passes += lowering
    element = program.fields[0].element if program.fields else ""
    return CompiledCpu(
        module, options, filename, program, element, single, fused, reasons, layouts, passes
    )


def _keep_called(module: ir.Module, name: str) -> None:
    """Erase the functions that a run of @name does not call."""
    by_name = {f.attributes["sym_name"].value: f for f in nested_ops(module, "func.func")}
    called, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current in by_name and current not in called:
            called.add(current)
            calls = nested_ops(by_name[current], "func.call")
            waiting += [call.attributes["callee"].value for call in calls]
    for other in by_name.keys() - called:
        by_name[other].operation.erase()


def _check_symbols(module: ir.Module) -> None:
    """Raise TwofourError for calls that cannot be linked and for names of fused steps.

    Declarations that nothing calls are erased.
    """
    called = {op.attributes["callee"].value for op in nested_ops(module, "func.call")}
    for op in nested_ops(module, "func.func"):
        name = op.attributes["sym_name"].value
        if STEPS_ATTRIBUTE in op.attributes:
            raise error_at(op, f"expected no {STEPS_ATTRIBUTE}: fused steps are made, not read")
        if not op.regions[0].blocks:
            if name in called:
                raise error_at(op, f"expected a body, got a declaration of @{name} alone")
            op.operation.erase()


def _check_admitted(
    options: CompileOptions,
    function,
    program: Program,
    left: list[LeftApply],
    single: LinearSweep | None,
) -> None:
    """Raise TwofourError where the options ask for more than the program admits."""
    elements = {field.element for field in program.fields}
    if options.dtype is not None and elements and options.dtype not in elements:
        got = ", ".join(sorted(elements))
        raise error_at(function, f"expected float fields to convert to {options.dtype}, got {got}")
    if options.schedule == "sparse" and left:
        reason = left[0].reason
        raise error_at(left[0].op, f"expected constant weights for schedule 'sparse': {reason}")
    if options.fuse_steps > 1 and single is None:
        raise error_at(function, "expected one linear step of one field, to fuse steps")


def _lay_out(module: ir.Module, filename: str) -> list[SparseLayout]:
    """Turn every weighted sum into its 2:4 operator, in place, and describe these."""
    run_passes(module, layout_passes(), filename)
    return [_layout(op) for op in nested_ops(module, SparsePatchMatmulOp.OPERATION_NAME)]


def _layout(op: SparsePatchMatmulOp) -> SparseLayout:
    operator, found = op.operator(), permutation_of(op)
    rows, k = operator.matrix.shape
    return SparseLayout(
        function=enclosing_function(op).attributes["sym_name"].value,
        tile=operator.tile,
        rows=rows,
        columns=k - found["padding_columns"],
        k=k,
        **found,
        mma_per_128_outputs=mma_per_128_outputs(operator.matrix, found["fragment"]),
        density=float((operator.matrix != 0).mean()),
    )


def _linear_sweeps(module: ir.Module, name: str) -> tuple[LinearSweep | None, LinearSweep | None]:
    single = fused = None
    for function in functions(module.operation):
        step = linear_step(function)
        if step is None:
            continue
        own = function.attributes["sym_name"].value
        offsets, weights, _ = linear_terms(step.weighted_sum)
        steps = 1
        if STEPS_ATTRIBUTE in function.attributes:
            if function.attributes[SINGLE_STEP_ATTRIBUTE].value != name:
                continue
            steps = function.attributes[STEPS_ATTRIBUTE].value
        elif own != name:
            continue
        sweep = LinearSweep(
            own, kernel_name(step.weighted_sum), tuple(offsets), tuple(weights), steps
        )
        if steps > 1:
            fused = sweep
        else:
            single = sweep
    return single, fused
