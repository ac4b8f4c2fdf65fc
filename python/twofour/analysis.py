# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The front of every compilation: what a program is, and what of it is linear.

`analyse` leaves a module whose linear applies are weighted sums, and says what it found.
"""

from dataclasses import dataclass, field

from twofour.context import context_of_programs
from twofour.diagnostics import located_in
from twofour.dialects.nm.ops import PATCH_OPERATORS, SparsePatchMatmulOp, permutation_of
from twofour.dialects.nm.transforms.compress import CompressPass
from twofour.dialects.nm.transforms.crush import CrushPass
from twofour.dialects.nm.transforms.permute_2to4 import Permute2to4Pass
from twofour.dialects.nm.transforms.to_stencil import ConvertNmToStencilPass
from twofour.dialects.stencil.levels import reach_of_steps
from twofour.dialects.stencil.linear_ops import linear_terms
from twofour.dialects.stencil.sweep import enclosing_function, kernel_name
from twofour.dialects.stencil.transforms.convert_element_type import (
    ConvertElementTypePass,
    float_types,
)
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
from twofour.dialects.stencil.transforms.to_nm import ConvertStencilToNmPass
from twofour.errors import SourceLocation, TwofourError
from twofour.frontend.source import ProgramText, parse_module
from twofour.frontend.weights import kernel_module
from twofour.kernels import Kernel
from twofour.layout.search import mma_per_128_outputs
from twofour.mlir import func, ir
from twofour.mlir_support import error_at, functions, nested_ops, source_location
from twofour.options import CompileOptions
from twofour.passes import ModulePass
from twofour.pipeline import PassElement, PipelineOptions, run_pipeline
from twofour.program import Program, describe, select_function
from twofour.reach import Reach, reach_of
from twofour.selection import keep_program

# What is compiled: a kernel, the path of a file (`-`: standard input), or what was read from it.
Source = str | Kernel | ProgramText


@dataclass(frozen=True)
class LinearSweep:
    """A function that is one linear step, and the kernel of its sweep.

    The stencil has `offsets` and `weights`, one of each a term, adds `constant` to their sum, and
    advances `steps` time steps.
    """

    function: str
    kernel: str
    offsets: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    steps: int
    constant: float = 0.0

    @property
    def reach_lo(self) -> tuple[int, ...]:
        """Minus the smallest offset per axis."""
        return self.reach[0]

    @property
    def reach_hi(self) -> tuple[int, ...]:
        """The largest offset per axis."""
        return self.reach[1]

    @property
    def reach(self) -> Reach:
        """`reach_lo` and `reach_hi`."""
        return reach_of(self.offsets)

    def has_levels_of(self, single: "LinearSweep") -> bool:
        """Whether steps of `single` that follow each other in a kernel are this sweep.

        They are not where weights are so small that they vanished when they were convolved.
        """
        return self.reach == reach_of_steps(single.reach, self.steps)


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
class Analysis:
    """A module up to the linear form of every sweep, and what was found in it.

    `program` is the function to run, `element` the type of its fields. `single` and `fused` are set
    for programs that are one linear step; `left` lists the applies that stay on the general path.
    `is_kernel` says that the program has no file: its arrays are the domain. `passes` is what ran,
    in order; whoever lowers the module adds to it.
    """

    module: ir.Module
    options: CompileOptions
    filename: str
    program: Program
    element: str
    single: LinearSweep | None
    fused: LinearSweep | None
    left: list[LeftOut]
    is_kernel: bool = False
    passes: list[ModulePass] = field(default_factory=list)

    @property
    def is_step(self) -> bool:
        """Whether the program is one linear step whose result becomes its only input."""
        # A rotation may bring in others, each in its turn.
        if self.single is None or len(self.program.inputs) > 1:
            return False
        source, target = self.program.inputs[0].index, self.program.outputs[0].index
        return source == target or self.program.rotation[source] == target

    def run(self, passes: list[ModulePass]) -> None:
        """Run passes on the module, in place."""
        run_passes(self.module, passes, self.filename)
        self.passes += passes


def load_program(source: Source, options: CompileOptions) -> tuple[ir.Module, str]:
    """The module of a file or a kernel, and the name to report it by."""
    context = context_of_programs()
    with context, ir.Location.unknown():
        if isinstance(source, Kernel):
            if options.function is not None:
                raise TwofourError(
                    f"expected --function with a file only, got kernel '{source.name}'"
                )
            module = kernel_module(source, options.storage or "f32", options.fuse_steps)
            return module, source.name
        program = ProgramText.of(source)
        return parse_module(program.text, program.name), program.name


def front_passes(
    options: CompileOptions, convert: bool, is_wider: bool, sweep_terms: int | None = None
) -> list[ModulePass]:
    """Passes up to the linear form of every sweep.

    `convert` changes the element type, `is_wider` says that sums are of a wider one then.
    `sweep_terms` is what it is worth to have one sweep less (see pass stencil-extract-weights).
    """
    # Weights are rounded where they are found: once, if that is to the wider type.
    conversion = [ConvertElementTypePass(to=options.storage)] if convert else []
    before, after = (conversion, []) if is_wider else ([], conversion)
    # One step is one sum where steps are fused.
    most = sweep_terms if options.fuse_steps == 1 else None
    fusion = [FuseStepsPass(steps=options.fuse_steps)] if options.fuse_steps > 1 else []
    # Where sums are composed, fewer points of those before are read.
    shrink = InferBoundsPass(shrink=True)
    extract = ExtractWeightsPass(sweep_terms=most)
    return [InferBoundsPass(), *before, extract, shrink, *after, *fusion]


def layout_passes(tile: tuple[int, ...] | None = None, *, pairs: bool = False) -> list[ModulePass]:
    """Passes from weighted sums to compressed 2:4 patch operators, of outputs in such tiles.

    With `pairs` the operators are 1:2 sparse too, which tf32 asks for.
    """
    # Staircase and blossom leave one nonzero in each pair of columns.
    permute = Permute2to4Pass(strategy="blossom", fragment=16) if pairs else Permute2to4Pass()
    return [ConvertStencilToNmPass(), CrushPass(tile=tile), permute, CompressPass()]


def run_passes(module: ir.Module, passes: list[ModulePass], filename: str) -> None:
    elements = [PassElement(p.spell(), p) for p in passes]
    run_pipeline(module, elements, PipelineOptions(filename=filename))


def analyse(
    module: ir.Module,
    filename: str,
    options: CompileOptions,
    *,
    is_kernel: bool = False,
    sweep_terms: int | None = None,
) -> Analysis:
    """Find the linear sweeps of a program, in place; `sweep_terms` as for `front_passes`.

    Raises TwofourError for a program that cannot be read or run, and where `options` ask for a
    schedule or fusion that the program does not admit.
    """
    with module.context, ir.Location.unknown(), located_in(filename):
        name = select_function(module, options.function, filename).attributes["sym_name"].value
        keep_program(module, name)
        convert = options.dtype is not None and not is_kernel
        # A program of several float types may have one when its weights are found.
        is_wider = convert and options.storage == "f64" and len(float_types(module)) == 1
        passes = front_passes(options, convert, is_wider, sweep_terms)
        # The sparse schedule of the CPU executes the layouts that there are; others have their own.
        if not _takes_layouts(options) and nested_ops(module, *PATCH_OPERATORS):
            # Behind the bounds, whose errors are to name the ops of the file.
            passes.insert(1, ConvertNmToStencilPass())
        run_passes(module, passes, filename)
        function = select_function(module, name, filename)
        program = describe(function, filename)
        # Those of functions that it calls as well.
        left = list(left_applies(module))
        single, fused = _linear_sweeps(module, name)
        _check_admitted(options, function, program, left, single)
        reasons = [
            LeftOut(item.reason, source_location(item.op.location, filename)) for item in left
        ]
    element = program.fields[0].element if program.fields else ""
    return Analysis(
        module, options, filename, program, element, single, fused, reasons, is_kernel, passes
    )


def _takes_layouts(options: CompileOptions) -> bool:
    return options.target == "cpu" and options.schedule == "sparse" and options.fuse_steps == 1


def lay_out(module: ir.Module, filename: str) -> list[SparseLayout]:
    """Turn every weighted sum into its 2:4 operator, in place, and describe these."""
    run_passes(module, layout_passes(), filename)
    return describe_layouts(module)


def describe_layouts(module: ir.Module) -> list[SparseLayout]:
    """The 2:4 operators of a module."""
    return [_layout(op) for op in nested_ops(module, SparsePatchMatmulOp.OPERATION_NAME)]


def _check_admitted(
    options: CompileOptions,
    function: func.FuncOp,
    program: Program,
    left: list[LeftApply],
    single: LinearSweep | None,
) -> None:
    """Raise TwofourError where the options ask for more than the program admits."""
    elements = {field.element for field in program.fields}
    if options.storage is not None and elements and options.storage not in elements:
        got = ", ".join(sorted(elements))
        raise error_at(function, f"expected float fields to convert to {options.dtype}, got {got}")
    if options.schedule in ("stream", "sparse", "dense", "outer") and left:
        reason = left[0].reason
        raise error_at(
            left[0].op, f"expected constant weights for schedule '{options.schedule}': {reason}"
        )
    if options.fuse_steps > 1 and (single is None or len(program.inputs) > 1):
        raise error_at(function, "expected one linear step of one field, to fuse steps")


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
        offsets, weights, constant = linear_terms(step.weighted_sum)
        steps = 1
        if STEPS_ATTRIBUTE in function.attributes:
            if function.attributes[SINGLE_STEP_ATTRIBUTE].value != name:
                continue
            steps = function.attributes[STEPS_ATTRIBUTE].value
        elif own != name:
            continue
        kernel = kernel_name(step.weighted_sum)
        sweep = LinearSweep(own, kernel, tuple(offsets), tuple(weights), steps, constant)
        if steps > 1:
            fused = sweep
        else:
            single = sweep
    return single, fused
