# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The driver of the GPU targets: from a program and options to a bundle."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from twofour import __version__
from twofour.analysis import (
    Analysis,
    LinearSweep,
    Source,
    SparseLayout,
    analyse,
    describe_layouts,
    layout_passes,
    load_program,
    run_passes,
)
from twofour.codegen.gpu.kernel_abi import kernel_module
from twofour.cost.explore import reference_gpu
from twofour.diagnostics import located_in
from twofour.dialects.nm.transforms.compress import CompressPass
from twofour.dialects.nm.transforms.crush import CrushPass
from twofour.dialects.nm.transforms.permute_2to4 import Permute2to4Pass
from twofour.dialects.nm.transforms.to_gpu import ConvertNmToGpuPass
from twofour.dialects.stencil.transforms.add_boundary_kernels import AddBoundaryKernelsPass
from twofour.dialects.stencil.transforms.bufferize import BufferizePass
from twofour.dialects.stencil.transforms.copy_to_gpu import ConvertCopyToGpuPass
from twofour.dialects.stencil.transforms.fuse_siblings import FuseSiblingsPass
from twofour.dialects.stencil.transforms.to_gpu import ConvertStencilToGpuPass
from twofour.dialects.stencil.transforms.to_nm import ConvertStencilToNmPass
from twofour.errors import TwofourError, Unsuitable
from twofour.frontend.source import ProgramText
from twofour.kernels import Kernel
from twofour.layout.chunks import OUTPUTS
from twofour.layout.rolling import rolling_layouts
from twofour.mlir import ir
from twofour.mlir_support import nested_ops
from twofour.options import AUTO, STREAMED, CompileOptions
from twofour.passes import ModulePass
from twofour.pipeline import (
    PassElement,
    PipelineFailure,
    pipeline_text,
)
from twofour.program import select_function
from twofour.runtime import (
    AxisBoundary,
    Bundle,
    check_constants,
    check_fixed,
    field_element_type,
    parse_boundary,
)
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.runtime.manifest import FORMAT, LinearProgram
from twofour.targets.gpu.candidates import Way, arithmetic_of, best_way, fastest
from twofour.targets.gpu.entries import EDGES, halo_kinds, kernel_entries, program_entry
from twofour.targets.gpu.fusion_depth import Depth, best_depth, fusion_depths
from twofour.targets.gpu.lowering import to_llvm_ir, to_nvvm
from twofour.targets.gpu.ptx import assemble, to_ptx
from twofour.targets.inlining import inline_calls
from twofour.tuned.choice import Choice
from twofour.tuned.database import Tuned
from twofour.tuned.lookup import find_tuned

STAGES = ("stencil", "nm", "gpu", "nvvm", "llvm", "ptx", "cubin")
# What auto tries after a schedule that cannot take a program.
_NEXT = {"stream": "sparse", "sparse": "simt", "dense": "simt"}


@dataclass(frozen=True)
class CompiledGpu:
    """A bundle, and what was decided on the way to it.

    `schedule` is stream, sparse, dense or simt; `layouts` describes the 2:4 operators, of the
    sparse schedule or where they were asked for. `refusal` says why tensor cores cannot take a
    program that they were to take by default. `tuned` is the measurement that chose the layout,
    where there was one; `depths` are the depths of fusion that were compared, where one was to be
    chosen.
    """

    bundle: Bundle
    found: Analysis
    schedule: str
    layouts: list[SparseLayout]
    refusal: str | None
    tuned: Tuned | None = None
    depths: Sequence[Depth] = ()

    def with_boundary(self, boundary: str | Sequence[str | AxisBoundary]) -> Bundle:
        """The bundle for runs with this boundary; raises TwofourError where it has none such."""
        program = self.bundle.program
        parsed = parse_boundary(boundary, program.boundary_rank)
        if isinstance(program, LinearProgram):
            check_constants(parsed, field_element_type(self.found.element))
        if self.found.program.time_loop is not None:
            check_fixed(parsed, self.found.program.time_loop)
        return self.bundle.with_boundary(parsed)


@dataclass
class _Build:
    """A module on its way, and its text before its kernels are made and after `stages`."""

    found: Analysis
    schedule: str
    texts: dict[str, str]
    choice: Choice
    stages: Sequence[str]
    layouts: list[SparseLayout] = field(default_factory=list)
    refusal: str | None = None
    tuned: Tuned | None = None
    depths: Sequence[Depth] = ()

    def __post_init__(self):
        self._analysed = list(self.found.passes)

    def keep(self, stage: str) -> None:
        """Keep the text of the module as it is now, where it is asked for."""
        if stage in self.stages:
            self.texts[stage] = str(self.found.module)

    def start_anew(self, text: str, schedule: str, refusal: str) -> None:
        """Go back to the analysed module, to follow another schedule."""
        self.found.module = ir.Module.parse(text)
        self.found.passes = list(self._analysed)
        self.schedule, self.refusal = schedule, refusal
        self.texts.pop("nm", None)
        self.layouts = []


def compile_gpu(
    source: Source,
    options: CompileOptions,
    *,
    choice: Choice | None = None,
    report_layouts: bool = False,
) -> CompiledGpu:
    """Compile a file or a kernel for a GPU target.

    The bundle has machine code where ptxas is installed, unless the target is simulated. `choice`
    is how a linear step is executed; where it is None, what was measured to be fastest if the
    database of `twofour.tune` knows it. With `report_layouts` the 2:4 operators are described
    whatever the schedule. Raises TwofourError as `compile_cpu` does, at ops that no kernel can
    execute, for a choice that does not fit, and for a database that cannot be read.
    """
    build = _convert(source, options, choice, report_layouts=report_layouts)
    found, module = build.found, build.found.module
    with module.context, ir.Location.unknown(), located_in(found.filename):
        main = select_function(module, found.program.name, found.filename)
        kernels = kernel_entries(module)
        program = program_entry(found, main)
    ptx = _ptx(build, options.chip)
    machine = None if options.is_simulated else assemble(ptx, options.chip)
    for name, entry in kernels.items():
        entry["resources"] = asdict(machine.resources[name]) if machine else None
    manifest = {
        "format": FORMAT,
        "generator": f"twofour {__version__}",
        "target": options.chip,
        "element": found.element,
        "arithmetic": arithmetic_of(found.element, options),
        "schedule": build.schedule,
        "source": {"name": found.filename, "text": build.texts["source"]},
        "pipeline": pipeline_text([PassElement(p.spell(), p) for p in found.passes]),
        "boundary": ["fixed"],
        "kernels": kernels,
        "program": program,
    }
    bundle = Bundle(manifest, ptx, machine.cubin if machine else None)
    return CompiledGpu(
        bundle, found, build.schedule, build.layouts, build.refusal, build.tuned, build.depths
    )


def emit(source: Source, options: CompileOptions, stage: str) -> str | bytes:
    """What the compiler has after a stage out of STAGES; bytes for machine code.

    Raises TwofourError as `compile_gpu` does, for machine code without ptxas, and for a stage that
    the schedule does not pass through.
    """
    build = _convert(source, options, stages=[stage])
    if stage in ("nvvm", "llvm", "ptx", "cubin"):
        ptx = _ptx(build, options.chip)
        if stage == "cubin":
            machine = assemble(ptx, options.chip)
            if machine is None:
                raise TwofourError("expected ptxas to emit machine code, got none on the path")
            return machine.cubin
    if stage not in build.texts:
        raise TwofourError(f"expected a stage that schedule '{build.schedule}' has, got '{stage}'")
    return build.texts[stage]


def stage_texts(source: Source, options: CompileOptions) -> dict[str, str]:
    """The program after each stage out of STAGES that its schedule has and that is text, in order.

    Raises TwofourError as `compile_gpu` does.
    """
    build = _convert(source, options, stages=STAGES)
    _ptx(build, options.chip)
    return {stage: build.texts[stage] for stage in STAGES if stage in build.texts}


def _convert(
    source: Source,
    options: CompileOptions,
    choice: Choice | None = None,
    *,
    stages: Sequence[str] = (),
    report_layouts: bool = False,
) -> _Build:
    """Front, layout passes and kernels: a module in the gpu dialect."""
    depths = ()
    if options.fuse_steps == AUTO:
        source = source if isinstance(source, Kernel) else ProgramText.of(source)
        depths = fusion_depths(source, options)
        options = replace(options, fuse_steps=best_depth(depths))
    module, filename = load_program(source, options)
    with module.context, ir.Location.unknown():
        text = str(module)
    found = analyse(module, filename, options, is_kernel=isinstance(source, Kernel))
    if found.is_kernel and found.left:
        raise TwofourError(
            f"expected weights in the range of {found.element}: {found.left[0].reason}"
        )
    tuned = None
    if choice is None:
        arithmetic = arithmetic_of(found.element, options)
        tuned = find_tuned(found, arithmetic, options)
        choice = tuned.choice if tuned else Choice()
    try:
        build = _follow(found, options, choice, text, stages, report_layouts)
    except TwofourError as error:
        if tuned is None:
            raise
        raise tuned.stale(error.message) from None
    build.tuned, build.depths = tuned, depths
    return build


def _follow(
    found: Analysis,
    options: CompileOptions,
    choice: Choice,
    source: str,
    stages: Sequence[str],
    report_layouts: bool,
) -> _Build:
    """The kernels of an analysed program, executed as the choice says."""
    schedule, refusal = _schedule(found, options, choice)
    module, filename = found.module, found.filename
    with module.context, ir.Location.unknown(), located_in(filename):
        before = str(module)
        texts = {"source": source, "stencil": before}
        build = _Build(found, schedule, texts, choice, stages, refusal=refusal)
        while build.schedule != "simt":
            try:
                _multiply(build, options)
                break
            except PipelineFailure as failure:
                is_asked = options.schedule != "auto" or choice.schedule is not None
                if is_asked or not isinstance(failure.errors[0], Unsuitable):
                    raise
                # Weights or a reach that tensor cores cannot take; plain threads take all.
                build.start_anew(before, _NEXT[build.schedule], failure.message)
        _to_gpu(build, options)
        if found.fused:
            _add_edges(found.module, ir.Module.parse(before), found.single, options.chip)
        for rank, bits in halo_kinds(found).items():
            found.run([AddBoundaryKernelsPass(options.chip, rank, bits)])
        build.keep("gpu")
        if report_layouts and not build.layouts and found.element != "f64":
            passes = _layout_passes(found, "sparse", choice.tile)
            operators = ir.Module.parse(before)
            run_passes(operators, passes, filename)
            build.layouts = describe_layouts(operators)
    return build


def _multiply(build: _Build, options: CompileOptions) -> None:
    """Turn weighted sums into kernels for tensor cores."""
    found, choice = build.found, build.choice
    found.run(_layout_passes(found, build.schedule, choice.tile))
    build.keep("nm")
    build.layouts = describe_layouts(found.module)
    convert = ConvertNmToGpuPass(
        chip=options.chip,
        dtype=arithmetic_of(found.element, options),
        block=choice.block,
        stages=choice.stages,
        march=choice.march,
        ring=choice.ring,
        levels=build.schedule == "stream" and _way(build, options).levels,
    )
    found.run([convert])


def _way(build: _Build, options: CompileOptions) -> Way:
    """The way to execute a linear step: the one chosen, or predicted to be the fastest."""
    found, choice = build.found, build.choice
    if choice.rolling is not None or choice.levels is not None:
        return Way(levels=bool(choice.levels), rolling=bool(choice.rolling))
    sweep, gpu = found.fused or found.single, reference_gpu(options.chip)
    try:
        return best_way(build.schedule, sweep, found.single, found.element, gpu)
    except Unsuitable:
        # The pass says why, at the op.
        return Way()


def _to_gpu(build: _Build, options: CompileOptions) -> None:
    """Lower what is left to kernels, and functions to launches of them."""
    found, chip, choice = build.found, options.chip, build.choice
    plain = ConvertStencilToGpuPass(chip=chip)
    # Only programs of one linear step have fields whose rows begin on sectors.
    if build.schedule == "simt" and found.is_step:
        way = _way(build, options)
        names = ("block", "stages", "march", "ring")
        layout = {name: getattr(choice, name) for name in names}
        if choice.rolling:
            _check_march(found, choice, layout)
        plain = replace(plain, aligned=True, rolling=way.rolling, levels=way.levels, **layout)
    siblings = [] if found.is_step else [FuseSiblingsPass()]
    found.run([*siblings, plain, BufferizePass(), ConvertCopyToGpuPass(chip=chip)])
    inline_calls(found.module, found.filename)


def _check_march(found: Analysis, choice: Choice, layout: dict) -> None:
    """Raise TwofourError for a march that was chosen and cannot be: the pass would do without."""
    sweep, levels = found.fused or found.single, 1
    if choice.levels:
        sweep, levels = found.single, found.fused.steps
    itemsize = ELEMENT_TYPES[found.element].itemsize
    terms = (sweep.offsets, sweep.weights)
    rolling_layouts(*terms, itemsize, sweep.reach, levels=levels, **layout)


def _schedule(found: Analysis, options: CompileOptions, choice: Choice) -> tuple[str, str | None]:
    """The schedule of a program, and why it is not one for tensor cores where it was to be one.

    Raises TwofourError where the program cannot have the schedule asked for.
    """
    asked = options.schedule if choice.schedule is None else choice.schedule
    f64_sparse = (options.schedule, asked, found.element) == ("sparse", "dense", "f64")
    if options.schedule not in ("auto", asked) and not f64_sparse:
        raise TwofourError(f"expected a choice of schedule '{options.schedule}', got '{asked}'")
    if asked in ("stream", "sparse", "dense") and not found.is_step:
        raise TwofourError(
            "expected one linear step of one field whose result becomes its input for schedule "
            f"'{asked}' on a GPU"
        )
    if choice.levels and (asked not in ("stream", "simt") or found.fused is None):
        raise TwofourError(f"expected fused steps that march for levels, got {choice}")
    if asked == "auto":
        return _fastest(found, options)
    if asked == "stream" and found.element not in STREAMED:
        raise TwofourError(
            f"expected fields of {' or '.join(STREAMED)} for schedule 'stream', got {found.element}"
        )
    if asked == "sparse" and found.element == "f64":
        return "dense", None
    return asked, None


def _fastest(found: Analysis, options: CompileOptions) -> tuple[str, str | None]:
    """The schedule that is predicted to be the fastest on the chip that stands for the target.

    Programs that are not one linear step can only be executed by plain threads.
    """
    if not found.is_step:
        return "simt", None
    best, refusal = fastest(
        found.fused or found.single,
        found.element,
        arithmetic_of(found.element, options),
        reference_gpu(options.chip),
        found.single,
    )
    if best is None:
        return "simt", None
    return best.schedule, refusal if best.schedule == "simt" else None


def _layout_passes(
    found: Analysis, schedule: str, tile: tuple[int, ...] | None
) -> list[ModulePass]:
    """Passes from weighted sums to the operators that a schedule multiplies."""
    if schedule == "stream":
        rank = len(found.single.reach_lo)
        crushed = CrushPass(tile=tile or (1,) * (rank - 1) + (OUTPUTS,))
        return [ConvertStencilToNmPass(), crushed, Permute2to4Pass("chunks"), CompressPass()]
    if schedule == "dense":
        return [ConvertStencilToNmPass(), CrushPass(tile=tile)]
    return layout_passes(tile, pairs=found.element == "f32")


def _add_edges(module: ir.Module, before: ir.Module, single: LinearSweep, chip: str) -> None:
    """Add a kernel of one step for views of any alignment: the rims of fused sweeps need it."""
    for function in nested_ops(before, "func.func"):
        if function.attributes["sym_name"].value != single.function:
            function.operation.erase()
    ConvertStencilToGpuPass(chip=chip).run(before.operation)
    (kernel,) = nested_ops(before, "gpu.func")
    clone = kernel.operation.clone(ip=ir.InsertionPoint(kernel_module(module.operation, chip)))
    clone.attributes["sym_name"] = ir.StringAttr.get(EDGES)


def _ptx(build: _Build, chip: str) -> str:
    found = build.found
    to_nvvm(found.module, found.filename)
    build.keep("nvvm")
    build.texts["llvm"] = to_llvm_ir(found.module, found.filename)
    build.texts["ptx"] = to_ptx(build.texts["llvm"], chip)
    return build.texts["ptx"]
