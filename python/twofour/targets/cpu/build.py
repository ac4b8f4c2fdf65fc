# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The driver of the CPU target: from a program and options to a module of kernels.

`compile_cpu` keeps what each stage decided, for `explain` to report.
"""

from dataclasses import dataclass, field, replace

from twofour.analysis import (
    Analysis,
    LinearSweep,
    Source,
    SparseLayout,
    analyse,
    lay_out,
    layout_passes,
    load_program,
    run_passes,
)
from twofour.codegen.cpu.direct_kernel import DirectKernel, Terms, build_direct_kernel
from twofour.codegen.cpu.elements import ElementCode
from twofour.codegen.cpu.vector_unit import vector_unit
from twofour.codegen.rolled_loops import keep_outer_loops_rolled
from twofour.diagnostics import located_in
from twofour.dialects.nm.ops import PATCH_OPERATORS, SparsePatchMatmulOp
from twofour.dialects.nm.transforms.to_vector import ConvertNmToVectorPass
from twofour.dialects.stencil.linear_ops import WeightedSumOp
from twofour.dialects.stencil.transforms.apply_to_vector import ConvertStencilApplyToVectorPass
from twofour.dialects.stencil.transforms.block import BlockPass
from twofour.dialects.stencil.transforms.bufferize import BufferizePass
from twofour.dialects.stencil.transforms.copy_to_kernels import ConvertCopyToKernelsPass
from twofour.dialects.stencil.transforms.fuse_siblings import FuseSiblingsPass
from twofour.dialects.stencil.transforms.outer_to_vector import ConvertStencilOuterToVectorPass
from twofour.dialects.stencil.transforms.schedule_outer import ScheduleOuterPass
from twofour.dialects.stencil.transforms.select_cover import SelectCoverPass
from twofour.dialects.stencil.transforms.time_tile import time_tile_of
from twofour.dialects.stencil.transforms.to_loops import ConvertStencilToLoopsPass
from twofour.dialects.stencil.transforms.to_scatter import ToScatterPass
from twofour.dialects.stencil.transforms.to_vector import ConvertStencilToVectorPass
from twofour.kernels import Kernel
from twofour.mlir import ir
from twofour.mlir_support import nested_ops
from twofour.options import CompileOptions
from twofour.passes import ModulePass
from twofour.program import select_function
from twofour.targets.cpu.integer_division import guard_divisions
from twofour.targets.inlining import inline_calls

# A sweep takes about as long as so many terms more in another one (measured: docs/decisions has it
# as composed sweeps).
SWEEP_TERMS = 20


def chosen_schedule(options: CompileOptions) -> str:
    """The schedule of linear stencils: on the CPU, sums over points beat emulated fragments."""
    return "direct" if options.schedule == "auto" else options.schedule


@dataclass
class CompiledCpu(Analysis):
    """An analysed program whose kernels are lowered to upstream dialects.

    `layouts` describes the 2:4 operators, of the sparse schedule or where they were asked for.
    `time_tile` = (steps, extents) is the one that the program names.
    """

    layouts: list[SparseLayout] = field(default_factory=list)
    time_tile: tuple[int, tuple[int, ...]] | None = None

    @property
    def schedule(self) -> str:
        """Direct, sparse or outer, and loops where an apply is left on the general path."""
        return "loops" if self.left else chosen_schedule(self.options)

    def direct_kernel(self, sweep: LinearSweep) -> DirectKernel:
        """What schedule direct computes in a sweep."""
        terms = Terms(sweep.offsets, sweep.weights)
        return DirectKernel(
            sweep.kernel, [terms], sweep.constant, reassociate=self.options.reassociate
        )

    def has_kernel_past_caches(self, sweep: LinearSweep) -> bool:
        """Whether the sweep of a step has a kernel for arrays larger than the caches as well."""
        if self.schedule != "direct":
            return False
        element = ir.Type.parse(self.element, self.module.context)
        return self.direct_kernel(sweep).waits_for_memory(element, vector_unit("host"))

    def kernel_past_caches(self, sweep: LinearSweep) -> ir.Module:
        """A module of the sweep's kernel for arrays larger than the caches, under its usual name.

        By far not all steps need it, so that it is made when it is asked for.
        """
        with self.module.context, ir.Location.unknown():
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                element = ir.Type.parse(self.element)
                kernel = self.direct_kernel(sweep)
                build_direct_kernel(kernel, element, vector_unit("host"), past_caches=True)
            keep_outer_loops_rolled(module)
        return module


def outer_passes(module: ir.Module) -> list[ModulePass]:
    """Passes from weighted sums to outer products in tiles that fit this machine's registers."""
    unit = vector_unit("host")
    sums = nested_ops(module, WeightedSumOp.OPERATION_NAME)
    result = sums[0].results[0].type if sums else None
    lanes = ElementCode(result.element_type, unit.bytes).lanes if sums else 1
    # Rows of tiles, the vectors of an input row and a weight share the registers.
    tiles = max(1, (unit.registers - 1) // (lanes + 1))
    planes = result.rank - 2 if sums else 0
    return [
        ToScatterPass(),
        SelectCoverPass(option="parallel"),
        BlockPass(unroll=(1,) * planes + (tiles,), registers=tiles),
        ScheduleOuterPass(shortest=lanes),
        ConvertStencilOuterToVectorPass(machine="host"),
    ]


def lowering_passes(
    module: ir.Module, is_step: bool, reassociate: bool, whole: bool
) -> list[ModulePass]:
    """Passes from the linear forms that a module holds to functions over memrefs.

    Programs get kernels for arrays larger than the caches as well where their arrays are; one that
    `is_step`, whose arrays may have any extents, where the module is to be `whole`.
    """
    passes: list[ModulePass] = []
    if nested_ops(module, SparsePatchMatmulOp.OPERATION_NAME):
        passes.append(ConvertNmToVectorPass())
    of_step = "beside" if whole else "no"
    direct = ConvertStencilToVectorPass(
        machine="host", reassociate=reassociate, past_caches=of_step if is_step else "large"
    )
    copies = [BufferizePass(), ConvertCopyToKernelsPass()]
    others = ConvertStencilApplyToVectorPass(machine="host", past_caches=True)
    # A step has one sum, which it may take in time tiles.
    siblings = [] if is_step else [FuseSiblingsPass()]
    return [*passes, *siblings, direct, others, ConvertStencilToLoopsPass(), *copies]


def compile_cpu(
    source: Source, options: CompileOptions, *, whole: bool = False, report_layouts: bool = False
) -> CompiledCpu:
    """Compile a file or kernel for the CPU, down to upstream dialects.

    With `whole` the module also holds kernels that are made when they are needed otherwise
    (`kernel_past_caches`). With `report_layouts`, the 2:4 operators of linear sweeps are described
    whatever the schedule. Raises TwofourError for a program that cannot be read or run, and where
    `options` ask for a schedule or fusion that the program does not admit.
    """
    module, filename = load_program(source, options)
    is_kernel = isinstance(source, Kernel)
    return compile_module(
        module,
        filename,
        options,
        is_kernel=is_kernel,
        whole=whole,
        report_layouts=report_layouts,
    )


def compile_module(
    module: ir.Module,
    filename: str,
    options: CompileOptions,
    *,
    is_kernel: bool = False,
    whole: bool = False,
    report_layouts: bool = False,
) -> CompiledCpu:
    """Compile a module for the CPU, in place; see `compile_cpu`."""
    given = _given_layouts(module, filename, options) if report_layouts else None
    found = analyse(module, filename, options, is_kernel=is_kernel, sweep_terms=SWEEP_TERMS)
    with module.context, ir.Location.unknown(), located_in(filename):
        layouts = []
        tile = time_tile_of(select_function(module, found.program.name, filename))
        if chosen_schedule(options) == "sparse":
            layouts = lay_out(module, filename)
            found.passes += layout_passes()
        elif chosen_schedule(options) == "outer":
            passes = outer_passes(module)
            run_passes(module, passes, filename)
            found.passes += passes
        if report_layouts and not layouts:
            layouts = lay_out(given or ir.Module.parse(str(module)), filename)
        lowering = lowering_passes(module, found.is_step, options.reassociate, whole)
        run_passes(module, lowering, filename)
        inline_calls(module, filename)
        guard_divisions(module)
        keep_outer_loops_rolled(module)
    found.passes += lowering
    return CompiledCpu(**vars(found), layouts=layouts, time_tile=tile)


def _given_layouts(module: ir.Module, filename: str, options: CompileOptions) -> ir.Module | None:
    """What schedule sparse would lay out of a module that holds patch operators, else None."""
    if not nested_ops(module, *PATCH_OPERATORS):
        return None
    with module.context:
        copy = ir.Module.parse(str(module))
    analyse(copy, filename, replace(options, schedule="sparse"), sweep_terms=SWEEP_TERMS)
    return copy
