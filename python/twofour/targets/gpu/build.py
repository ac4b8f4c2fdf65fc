# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler driver of the GPU targets: from a program and options to a bundle."""

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
from twofour.cost.explore import TOLERANCE, reference_gpu
from twofour.diagnostics import located_in
from twofour.dialects.nm.transforms.compress import CompressPass
from twofour.dialects.nm.transforms.crush import CrushPass
from twofour.dialects.nm.transforms.permute_2to4 import Permute2to4Pass
from twofour.dialects.nm.transforms.to_gpu import ConvertNmToGpuPass
from twofour.dialects.stencil.transforms.bufferize import BufferizePass
from twofour.dialects.stencil.transforms.copy_to_gpu import ConvertCopyToGpuPass
from twofour.dialects.stencil.transforms.to_gpu import ConvertStencilToGpuPass
from twofour.dialects.stencil.transforms.to_nm import ConvertStencilToNmPass
from twofour.dialects.stencil.traversal import nested_ops
from twofour.errors import TwofourError, Unsuitable
from twofour.kernels import Kernel
from twofour.layout.chunks import OUTPUTS
from twofour.mlir import ir
from twofour.mlir_support import error_at
from twofour.options import STREAMED, TF32, CompileOptions
from twofour.passes import ModulePass
from twofour.pipeline import (
    PassElement,
    PipelineFailure,
    PipelineOptions,
    pipeline_text,
    run_pipeline,
)
from twofour.program import select_function
from twofour.runtime import (
    AxisBoundary,
    Bundle,
    Launch,
    Loop,
    check_fixed,
    field_entry,
    parse_boundary,
    step_entry,
)
from twofour.runtime.manifest import FORMAT
from twofour.runtime.plan import Step
from twofour.targets.cpu.kernel_abi import INPUTS_ATTRIBUTE
from twofour.targets.fields import check_runnable, field_spec
from twofour.targets.gpu.candidates import Way, best_way, candidates
from twofour.targets.gpu.kernel_abi import BlockShape, kernel_module
from twofour.targets.gpu.lowering import to_llvm_ir, to_nvvm
from twofour.targets.gpu.ptx import assemble, to_ptx
from twofour.targets.plan import KernelCall, NoPlan, read_calls

STAGES = ("stencil", "nm", "gpu", "nvvm", "llvm", "ptx", "cubin")
EDGES = "edges"
# What auto tries after a schedule that cannot take a program.
_NEXT = {"stream": "sparse", "sparse": "simt", "dense": "simt"}


@dataclass(frozen=True)
class Tiling:
    """Choices of the layout that are searched where they are None.

    `tile` holds the outputs of a patch operator per axis, `block` those of a thread block, `stages`
    is the number of halo tiles in shared memory.
    """

    tile: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    stages: int | None = None


@dataclass(frozen=True)
class CompiledGpu:
    """A bundle, and what was decided on the way to it.

    `schedule` is sparse, dense or simt; `layouts` describes the 2:4 operators, of the sparse
    schedule or where they were asked for. `refusal` says why tensor cores cannot take a program
    that they were to take by default.
    """

    bundle: Bundle
    found: Analysis
    schedule: str
    layouts: list[SparseLayout]
    refusal: str | None

    def with_boundary(self, boundary: str | Sequence[str | AxisBoundary]) -> Bundle:
        """The bundle for runs with this boundary; raises TwofourError where it has none such."""
        parsed = parse_boundary(boundary, self.bundle.program.boundary_rank)
        if self.found.program.time_loop is not None:
            check_fixed(parsed, self.found.program.time_loop)
        return self.bundle.with_boundary(parsed)


@dataclass
class _Build:
    """A module on its way, and its text after each stage."""

    found: Analysis
    schedule: str
    texts: dict[str, str]
    layouts: list[SparseLayout] = field(default_factory=list)
    refusal: str | None = None

    def __post_init__(self):
        self._analysed = list(self.found.passes)

    def keep(self, stage: str) -> None:
        """Keep the text of the module as it is now."""
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
    tiling: Tiling | None = None,
    report_layouts: bool = False,
) -> CompiledGpu:
    """Compile a file or a kernel for a GPU target.

    The bundle has machine code where ptxas is installed, unless the target is simulated. With
    `report_layouts` the 2:4 operators are described whatever the schedule. Raises TwofourError as
    `compile_cpu` does, at ops that no kernel can execute, and for a tiling that does not fit.
    """
    build = _convert(source, options, tiling or Tiling(), report_layouts)
    found, module = build.found, build.found.module
    with module.context, ir.Location.unknown(), located_in(found.filename):
        main = select_function(module, found.program.name, found.filename)
        kernels = _kernel_entries(module)
        program = _program_entry(build, main)
    ptx = _ptx(build, options.chip)
    machine = None if options.is_simulated else assemble(ptx, options.chip)
    for name, entry in kernels.items():
        entry["resources"] = asdict(machine.resources[name]) if machine else None
    manifest = {
        "format": FORMAT,
        "generator": f"twofour {__version__}",
        "target": options.chip,
        "element": found.element,
        "arithmetic": _arithmetic(found.element, options),
        "schedule": build.schedule,
        "source": {"name": found.filename, "text": build.texts["source"]},
        "pipeline": pipeline_text([PassElement(p.spell(), p) for p in found.passes]),
        "boundary": ["fixed"],
        "kernels": kernels,
        "program": program,
    }
    bundle = Bundle(manifest, ptx, machine.cubin if machine else None)
    return CompiledGpu(bundle, found, build.schedule, build.layouts, build.refusal)


def emit(source: Source, options: CompileOptions, stage: str) -> str | bytes:
    """What the compiler has after a stage out of STAGES; bytes for machine code.

    Raises TwofourError as `compile_gpu` does, for machine code without ptxas, and for a stage that
    the schedule does not pass through.
    """
    build = _convert(source, options, Tiling(), report_layouts=False)
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
    build = _convert(source, options, Tiling(), report_layouts=False)
    _ptx(build, options.chip)
    return {stage: build.texts[stage] for stage in STAGES if stage in build.texts}


def _convert(
    source: Source, options: CompileOptions, tiling: Tiling, report_layouts: bool
) -> _Build:
    """Front, layout passes and kernels: a module in the gpu dialect."""
    module, filename = load_program(source, options)
    with module.context, ir.Location.unknown():
        text = str(module)
    found = analyse(module, filename, options, is_kernel=isinstance(source, Kernel))
    if found.is_kernel and found.left:
        raise TwofourError(
            f"expected weights in the range of {found.element}: {found.left[0].reason}"
        )
    schedule, refusal = _schedule(found, options)
    build = _Build(found, schedule, {"source": text}, refusal=refusal)
    with module.context, ir.Location.unknown(), located_in(filename):
        build.keep("stencil")
        before = build.texts["stencil"]
        while build.schedule != "simt":
            try:
                _multiply(build, options, tiling)
                break
            except PipelineFailure as failure:
                if options.schedule != "auto" or not isinstance(failure.errors[0], Unsuitable):
                    raise
                # Weights or a reach that tensor cores cannot take; plain threads take all.
                build.start_anew(before, _NEXT[build.schedule], failure.message)
        _to_gpu(build, options)
        if found.fused:
            _add_edges(found.module, ir.Module.parse(before), found.single, options.chip)
        build.keep("gpu")
        if report_layouts and not build.layouts and found.element != "f64":
            passes = _layout_passes(found, "sparse", tiling.tile)
            operators = ir.Module.parse(before)
            run_passes(operators, passes, filename)
            build.layouts = describe_layouts(operators)
    return build


def _multiply(build: _Build, options: CompileOptions, tiling: Tiling) -> None:
    """Turn weighted sums into kernels for tensor cores."""
    found = build.found
    found.run(_layout_passes(found, build.schedule, tiling.tile))
    build.keep("nm")
    build.layouts = describe_layouts(found.module)
    arithmetic = _arithmetic(found.element, options)
    choices = {"block": tiling.block, "stages": tiling.stages}
    levels = build.schedule == "stream" and _way("stream", found, options).levels
    found.run([ConvertNmToGpuPass(chip=options.chip, dtype=arithmetic, levels=levels, **choices)])


def _way(schedule: str, found: Analysis, options: CompileOptions) -> Way:
    """The way to execute a linear step that is predicted to be the fastest of a schedule's."""
    sweep, gpu = found.fused or found.single, reference_gpu(options.chip)
    try:
        return best_way(schedule, sweep, found.single, found.element, gpu)
    except Unsuitable:
        # The pass says why, at the op.
        return Way()


def _to_gpu(build: _Build, options: CompileOptions) -> None:
    """Lower what is left to kernels, and functions to launches of them."""
    found, chip, way = build.found, options.chip, Way()
    # Only programs of one linear step have fields whose rows begin on sectors.
    if build.schedule == "simt" and found.is_step:
        way = _way("simt", found, options)
    found.run(
        [
            ConvertStencilToGpuPass(chip=chip, rolling=way.rolling, levels=way.levels),
            BufferizePass(copies="ops"),
            ConvertCopyToGpuPass(chip=chip),
        ]
    )
    if nested_ops(found.module, "func.call"):
        # What a called function does becomes part of the plan.
        inline = [PassElement("inline{default-pipeline=}", None)]
        run_pipeline(found.module, inline, PipelineOptions(filename=found.filename))


def _schedule(found: Analysis, options: CompileOptions) -> tuple[str, str | None]:
    """The schedule of a program, and why it is not one for tensor cores where it was to be one.

    Raises TwofourError where the program cannot have the schedule asked for.
    """
    if options.schedule in ("stream", "sparse", "dense") and not found.is_step:
        raise TwofourError(
            "expected one linear step of one field whose result becomes its input for schedule "
            f"'{options.schedule}' on a GPU"
        )
    if options.schedule == "auto":
        return _fastest(found, options)
    if options.schedule == "stream" and found.element not in STREAMED:
        raise TwofourError(
            f"expected fields of {' or '.join(STREAMED)} for schedule 'stream', got {found.element}"
        )
    if options.schedule == "sparse" and found.element == "f64":
        return "dense", None
    return options.schedule, None


def _fastest(found: Analysis, options: CompileOptions) -> tuple[str, str | None]:
    """The schedule that is predicted to be the fastest on the chip that stands for the target.

    Programs that are not one linear step can only be executed by plain threads.
    """
    if not found.is_step:
        return "simt", None
    sweep, arithmetic = found.fused or found.single, _arithmetic(found.element, options)
    gpu, refusal, ranking = reference_gpu(options.chip), None, None
    if found.element in STREAMED:
        # Other ways for tensor cores take long to lay out; where rows stream, they are slower.
        tried = ("stream", "simt")
        ranking = candidates(sweep, found.element, arithmetic, gpu, tried, found.single)
        refusal = ranking.refused.get("stream")
    if ranking is None or refusal is not None:
        tried = ("simt", "sparse", "dense")
        ranking = candidates(sweep, found.element, arithmetic, gpu, tried, found.single)
    if not ranking.candidates:
        return "simt", None
    # Of those that are about as fast, the first.
    limit = ranking.candidates[0].prediction.seconds_per_point * (1 + TOLERANCE)
    good = {c.schedule for c in ranking.candidates if c.prediction.seconds_per_point <= limit}
    best = next(schedule for schedule in tried if schedule in good)
    return best, refusal if best == "simt" else None


def _arithmetic(element: str, options: CompileOptions) -> str:
    return TF32 if options.dtype == TF32 else element


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


def _kernel_entries(module: ir.Module) -> dict[str, dict]:
    """The kernels of a module in the gpu dialect, as a manifest holds them."""
    entries = {}
    for op in nested_ops(module, "gpu.func"):
        shape = BlockShape.of(op)
        kinds = list(op.attributes["function_type"].value.inputs)
        views = [isinstance(kind, ir.MemRefType) for kind in kinds]
        inputs = op.attributes[INPUTS_ATTRIBUTE].value
        entries[op.attributes["sym_name"].value] = {
            "rank": kinds[-1].rank,
            "inputs": inputs,
            "outputs": sum(views) - inputs,
            "scalars": [str(k) for k, view in zip(kinds, views, strict=True) if not view],
            "threads": shape.threads,
            "tile": list(shape.tile),
            "march": shape.march,
            "shared_bytes": shape.shared_bytes,
            "alignment": shape.alignment,
            "resident": shape.resident,
        }
    return entries


def _program_entry(build: _Build, main) -> dict:
    found = build.found
    program = found.program
    check_runnable(program, found.filename)
    fields = [field_entry(field_spec(program, argument)) for argument in program.fields]
    if found.is_step:
        return _linear_entry(found, fields)
    if found.fused is not None:
        raise error_at(main, "expected input and output fields of one type to fuse steps")
    inputs = {
        op.attributes["sym_name"].value: op.attributes[INPUTS_ATTRIBUTE].value
        for op in nested_ops(found.module, "gpu.func")
    }
    try:
        sequence = read_calls(main, inputs)
    except NoPlan as stop:
        expected = str(stop) or "expected sweeps, copies and loops over them only"
        raise error_at(stop.op, f"{expected}, for a GPU target") from None
    return {
        "kind": "fields",
        "name": program.name,
        "fields": fields,
        "rotation": list(program.rotation),
        "scalars": [a.element for a in program.arguments if not a.is_field],
        "steps": [step_entry(_step(step)) for step in sequence.steps],
        "workspaces": [[list(shape), element] for shape, element in sequence.workspaces],
        "time_loop": program.time_loop is not None,
    }


def _linear_entry(found: Analysis, fields: list[dict]) -> dict:
    return {
        "kind": "linear",
        "name": found.program.name,
        "rank": len(found.single.reach_lo),
        "single": found.single.kernel,
        "fused": found.fused and found.fused.kernel,
        "edges": EDGES if found.fused else None,
        "fused_steps": found.fused.steps if found.fused else 1,
        "reach_lo": list(found.single.reach_lo),
        "reach_hi": list(found.single.reach_hi),
        "fields": None if found.is_kernel else fields,
    }


def _step(step: KernelCall | Loop) -> Step:
    """A call as the launch of a kernel by its name, or a loop of them."""
    if isinstance(step, Loop):
        return replace(step, body=tuple(map(_step, step.body)))
    return Launch(step.name, step.inputs, step.outputs, step.scalars)
